/* Compiled kernels by key: open addressing with linear probing, one is never removed alone. Two entries may have one key:
 * they were compiled while a global that the kernel uses had different values. Entries do not own their kernel, so that
 * both go with the last that uses them: programs make thousands of kernels, and Python's collector comes seldom. A kernel
 * that nobody holds but something compiled from it is kept by that: see kernel_finalize. */
#include "python/extension.h"

/* 1 equal, 0 not, -1 error. Comparing may run the user's __eq__. */
static int same_object(PyObject *a, PyObject *b)
{
    if (a == b)
        return 1;
    return Py_TYPE(a) == Py_TYPE(b) ? PyObject_RichCompareBool(a, b, Py_EQ) : 0;
}

int tt_is_same_key(const Key *a, const Key *b)
{
    if (a->hash != b->hash || a->word_count != b->word_count || a->object_count != b->object_count ||
        memcmp(a->words, b->words, sizeof *a->words * (size_t)a->word_count))
        return 0;
    int same = 1;
    for (int i = 0; i < a->object_count && same == 1; i++)
        same = same_object(a->objects[i], b->objects[i]);
    return same;
}

/* The value a name has now; a new reference, or NULL when it is gone. */
static PyObject *current_value(const UsedName *used, State *state)
{
    PyObject *value;
    if (PyDict_Check(used->space)) {
        value = PyDict_GetItemWithError(used->space, used->name);
        Py_XINCREF(value);
    } else {
        value = tt_look(used->space, state->names.cell_contents);
    }
    return value;
}

/* Nearly always, and then no reference is needed: nothing runs in between. */
static bool is_unchanged(const UsedName *used)
{
    return PyDict_CheckExact(used->space) && PyDict_GetItemWithError(used->space, used->name) == used->value;
}

bool tt_name_holds(const UsedName *used, State *state)
{
    if (is_unchanged(used))
        return true;
    PyObject *value = current_value(used, state);
    bool same = value && same_object(value, used->value) == 1;
    tt_forgive(); /* values that cannot be compared are not the same */
    Py_XDECREF(value);
    return same;
}

/* Does every name have the value that the kernel was compiled with? False with an exception that is not for us to
 * forgive. */
static bool names_hold(Compiled *compiled)
{
    bool same = true;
    for (int i = 0; same && i < compiled->used_name_count; i++)
        same = tt_name_holds(&compiled->used_names[i], compiled->state);
    return same;
}

/* NULL too where an __eq__ changed the table. */
static Compiled *find_once(Table *table, const Key *key)
{
    Compiled **entries = table->entries;
    for (unsigned i = (unsigned)key->hash; table->entries == entries; i++) {
        Compiled *entry = table->entries[i & (unsigned)(table->capacity - 1)];
        if (!entry)
            return NULL;
        int same = tt_is_same_key(&entry->key, key);
        if (same < 0)
            return NULL;
        if (same && names_hold(entry))
            return entry;
        if (PyErr_Occurred())
            return NULL;
    }
    return NULL;
}

static void release_forgotten(Table *table, bool kernel_stays)
{
    while (table->forgotten && !table->lookups) {
        Table *old = table->forgotten;
        table->forgotten = old->forgotten;
        old->forgotten = NULL;
        tt_table_clear(old, kernel_stays);
        PyMem_Free(old);
    }
}

Compiled *tt_table_find(Table *table, const Key *key)
{
    Compiled *found = NULL;
    Compiled **entries;
    table->lookups++;
    do { /* again if an __eq__ launched this kernel and the table grew, or emptied it */
        entries = table->entries;
        found = entries ? find_once(table, key) : NULL;
    } while (entries != table->entries);
    table->lookups--;
    return found;
}

static void place(Table *table, Compiled *compiled)
{
    unsigned mask = (unsigned)table->capacity - 1, i = (unsigned)compiled->key.hash & mask;
    while (table->entries[i])
        i = (i + 1) & mask;
    table->entries[i] = compiled;
}

static bool reserve(Table *table)
{
    if (table->count * 2 < table->capacity)
        return true;
    Table grown = {.count = table->count, .capacity = table->capacity ? table->capacity * 2 : 8};
    grown.entries = PyMem_Calloc((size_t)grown.capacity, sizeof *grown.entries);
    if (!grown.entries)
        return PyErr_NoMemory();
    for (int i = 0; i < table->capacity; i++)
        if (table->entries[i])
            place(&grown, table->entries[i]);
    PyMem_Free(table->entries);
    *table = grown;
    return true;
}

bool tt_copy_key(const Key *from, Key *to)
{
    Key copy = *from;
    copy.words = PyMem_Malloc(sizeof *copy.words * (size_t)TT_MAX(from->word_count, 1));
    copy.objects = PyMem_Malloc(sizeof *copy.objects * (size_t)TT_MAX(from->object_count, 1));
    if (!copy.words || !copy.objects) {
        PyMem_Free(copy.words);
        PyMem_Free(copy.objects);
        return PyErr_NoMemory();
    }
    memcpy(copy.words, from->words, sizeof *copy.words * (size_t)from->word_count);
    for (int i = 0; i < from->object_count; i++)
        copy.objects[i] = Py_NewRef(from->objects[i]);
    *to = copy;
    return true;
}

bool tt_table_add(Table *table, const Key *key, Compiled *compiled)
{
    if (!reserve(table) || !tt_copy_key(key, &compiled->key))
        return false;
    Py_INCREF((PyObject *)compiled);
    place(table, compiled);
    table->count++;
    tt_leave_to_kernel(compiled);
    release_forgotten(table, true);
    return true;
}

void tt_leave_to_kernel(Compiled *compiled)
{
    if (!compiled->owns_kernel || compiled->kernel->was_kept)
        return;
    compiled->owns_kernel = false;
    Py_DECREF((PyObject *)compiled->kernel); /* whoever adds it holds the kernel */
}

static bool has(const Table *table, const Compiled *compiled)
{
    for (int i = 0; i < table->capacity; i++)
        for (const Compiled *each = table->entries[i]; each; each = each->other)
            if (each == compiled)
                return true;
    return false;
}

bool tt_table_rejoin(Table *table, Compiled *compiled)
{
    if (!compiled->owns_kernel || !compiled->key.word_count || has(table, compiled))
        return true;
    if (!reserve(table))
        return false;
    place(table, (Compiled *)Py_NewRef((PyObject *)compiled));
    table->count++;
    tt_leave_to_kernel(compiled);
    return true;
}

/* Entries on their way out of the table. */
static void part(Compiled *compiled, bool kernel_stays)
{
    for (; compiled; compiled = compiled->other) {
        if (compiled->owns_kernel)
            continue;
        compiled->owns_kernel = kernel_stays;
        if (kernel_stays)
            Py_INCREF((PyObject *)compiled->kernel);
        else
            compiled->kernel = NULL;
    }
}

bool tt_table_is_held(const Table *table)
{
    for (; table; table = table->forgotten)
        for (int i = 0; i < table->capacity; i++)
            for (Compiled *each = table->entries[i]; each; each = each->other)
                if (Py_REFCNT((PyObject *)each) > 1)
                    return true;
    return false;
}

int tt_table_traverse(Table *table, visitproc visit, void *arg)
{
    for (; table; table = table->forgotten)
        for (int i = 0; i < table->capacity; i++)
            Py_VISIT(table->entries[i]);
    return 0;
}

void tt_table_clear(Table *table, bool kernel_stays)
{
    Table old = *table;
    *table = (Table){0};
    for (int i = 0; i < old.capacity; i++) {
        part(old.entries[i], kernel_stays);
        Py_XDECREF((PyObject *)old.entries[i]);
    }
    PyMem_Free(old.entries);
    release_forgotten(&old, kernel_stays);
}

void tt_table_forget(Table *table)
{
    if (!table->lookups) {
        tt_table_clear(table, true); /* those of an earlier lookup, too */
        return;
    }
    Table *old = PyMem_Malloc(sizeof *old);
    if (!old)
        return; /* what was not forgotten is still right */
    *old = *table;
    *table = (Table){.lookups = old->lookups, .forgotten = old};
}

void tt_key_release(Key *key)
{
    Key old = *key;
    *key = (Key){0};
    for (int i = 0; i < old.object_count; i++)
        Py_DECREF(old.objects[i]);
    PyMem_Free(old.words);
    PyMem_Free(old.objects);
}
