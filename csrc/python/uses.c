/* See uses.h. A name is kept as the place where it was looked up: in the globals of the n-th kernel that was met, in one of
 * its closure's cells, or in the n-th module. They are met in the same order whenever the names before have the same
 * values. */
#include "python/uses.h"
#include "cache/store.h"
#include "python/fingerprint.h"
#include "runtime/identity.h"

enum { MOST_ALTERNATIVES = 16, MOST_NAMES = 4096 };
static const char reads_num_warps[] = "reads_num_warps";

typedef enum Space { SPACE_GLOBALS, SPACE_CELL, SPACE_MODULE, SPACE_PYTHON } Space;

typedef struct NameUse {
    Space space; /* SPACE_PYTHON: not in the globals, so one of Python's own */
    int number, cell;
    const char *name;
} NameUse;

/* One compilation: of all with the same text, signature and options. */
typedef struct Alternative {
    Bytes made_of, values; /* digests: of the tile IR and the options; of what the names stood for */
    bool reads_num_warps;  /* what the frontend says of the kernel in `info` */
    NameUse *uses;
    int use_count;
} Alternative;

typedef struct Uses {
    Alternative *items;
    int count;
} Uses;

static void transfer_use(Codec *codec, NameUse *use)
{
    TT_CODEC_NUMBER(codec, use->space);
    TT_CODEC_NUMBER(codec, use->number);
    TT_CODEC_NUMBER(codec, use->cell);
    TT_CODEC_STRING(codec, use->name);
}

static void transfer(Codec *codec, Uses *uses)
{
    uses->count = tt_codec_count(codec, uses->count);
    if (!codec->out)
        uses->items = TT_NEW_ARRAY(codec->arena, Alternative, uses->count);
    for (int i = 0; i < uses->count; i++) {
        Alternative *item = &uses->items[i];
        item->made_of = tt_codec_bytes(codec, item->made_of);
        item->values = tt_codec_bytes(codec, item->values);
        TT_CODEC_NUMBER(codec, item->reads_num_warps);
        item->use_count = tt_codec_count(codec, item->use_count);
        codec->failed |= item->made_of.size != sizeof(Digest) || item->values.size != sizeof(Digest);
        if (!codec->out)
            item->uses = TT_NEW_ARRAY(codec->arena, NameUse, item->use_count);
        for (int j = 0; j < item->use_count; j++)
            transfer_use(codec, &item->uses[j]);
    }
}

/* Files may be far away: others have the GIL meanwhile. */
static Bytes read_file(const Digest *key, Arena *arena)
{
    Trap trap;
    Bytes *bytes = TT_NEW(arena, Bytes);
    PyThreadState *released = tt_give_gil();
    if (tt_try(&trap, arena)) {
        *bytes = tt_store_read(SEAL_USES, key, arena);
        tt_end_try(&trap);
    }
    tt_get_gil(released);
    return *bytes;
}

static void write_file(const Digest *key, Bytes content, Arena *arena)
{
    Trap trap;
    PyThreadState *released = tt_give_gil();
    if (tt_try(&trap, arena)) {
        tt_store_write(SEAL_USES, key, tt_seal(SEAL_USES, key, content, arena), arena);
        tt_end_try(&trap);
    }
    tt_get_gil(released);
}

static Uses read_uses(const Digest *key, Arena *arena)
{
    Uses uses = {0};
    Bytes content = tt_unseal(SEAL_USES, key, read_file(key, arena));
    Codec codec = {.at = content.data, .end = (const char *)content.data + content.size, .arena = arena};
    if (content.data)
        transfer(&codec, &uses);
    return codec.failed ? (Uses){0} : uses;
}

/* ---- the key ------------------------------------------------------------------------------------------------------------- */

/* What can be said before any name is looked up. */
static bool begin(Fingerprint *f, const UsesRequest *request, Arena *arena)
{
    tt_fingerprint_init(f, request->kernel->state, arena);
    if (!tt_hash_compiler(&f->hasher) || !tt_hash_language(&f->hasher))
        return false;
    tt_hash_options(&f->hasher, request->options);
    tt_hasher_add_number(&f->hasher, tt_is_strict());
    tt_fingerprint_add(f, request->info);
    tt_breathe();
    tt_fingerprint_add(f, request->signature);
    tt_fingerprint_add(f, (PyObject *)request->kernel);
    tt_breathe();
    return !f->unknown;
}

/* ---- names -------------------------------------------------------------------------------------------------------------- */

/* An attribute of a kernel's function: `__globals__` or `__closure__`; a new reference, or NULL. */
static PyObject *of_function(const Kernel *kernel, const char *name)
{
    PyObject *fn = PyObject_GetAttrString((PyObject *)kernel, "fn");
    PyObject *value = fn ? PyObject_GetAttrString(fn, name) : NULL;
    Py_XDECREF(fn);
    tt_forget();
    return value;
}

/* A new reference to the dict or cell, or NULL. */
static PyObject *find_space(const Fingerprint *f, const NameUse *use)
{
    if (use->number < 0 ||
        use->number >= (use->space == SPACE_MODULE ? f->modules.count : f->functions.count))
        return NULL;
    if (use->space == SPACE_MODULE)
        return Py_XNewRef(PyModule_GetDict(f->modules.data[use->number]));
    const Kernel *kernel = f->functions.data[use->number];
    if (use->space != SPACE_CELL)
        return of_function(kernel, "__globals__");
    PyObject *closure = of_function(kernel, "__closure__");
    bool is_there = closure && PyTuple_Check(closure) && use->cell >= 0 && use->cell < PyTuple_Size(closure);
    PyObject *cell = is_there ? Py_NewRef(PyTuple_GetItem(closure, use->cell)) : NULL;
    Py_XDECREF(closure);
    return cell;
}

static bool is_in_module(const Fingerprint *f, PyObject *space, NameUse *use)
{
    use->space = SPACE_MODULE;
    for (use->number = 0; use->number < f->modules.count; use->number++)
        if (PyModule_GetDict(f->modules.data[use->number]) == space)
            return true;
    return false;
}

/* Among the globals of kernels, or their cells. */
static bool is_of_kernel(const Fingerprint *f, PyObject *space, NameUse *use)
{
    bool found = false;
    for (use->number = 0; use->number < f->functions.count; use->number++) {
        PyObject *globals = of_function(f->functions.data[use->number], "__globals__");
        PyObject *closure = of_function(f->functions.data[use->number], "__closure__");
        found = globals == space;
        use->space = SPACE_GLOBALS;
        for (Py_ssize_t i = 0; !found && closure && PyTuple_Check(closure) && i < PyTuple_Size(closure); i++)
            if ((found = PyTuple_GetItem(closure, i) == space)) {
                use->space = SPACE_CELL;
                use->cell = (int)i;
            }
        Py_XDECREF(globals);
        Py_XDECREF(closure);
        if (found)
            break;
    }
    return found;
}

/* How a global is annotated: some values are allowed only if that is said of them. */
static void add_annotation(Fingerprint *f, PyObject *globals, const char *name)
{
    PyObject *annotations = PyDict_GetItemString(globals, "__annotations__"); /* borrowed */
    PyObject *module_name = PyDict_GetItemString(globals, "__name__"), *owned = NULL;
    if (!annotations && module_name &&
        PyDict_GetItemString(globals, "__annotate__")) { /* from Python 3.14 on */
        PyObject *module = PyImport_GetModule(module_name);
        annotations = owned = module ? PyObject_GetAttrString(module, "__annotations__") : NULL;
        Py_XDECREF(module);
        tt_forget();
    }
    PyObject *annotation =
        annotations && PyDict_Check(annotations) ? PyDict_GetItemString(annotations, name) : NULL;
    tt_fingerprint_add(f, annotation ? annotation : Py_None);
    Py_XDECREF(owned);
}

/* What a name stands for, into the fingerprint. */
static void add_value(Fingerprint *f, PyObject *space, const NameUse *use, PyObject *value)
{
    tt_hasher_add_number(&f->hasher, use->space);
    tt_hasher_add_number(&f->hasher, use->number);
    tt_hasher_add_number(&f->hasher, use->cell);
    tt_hasher_add_string(&f->hasher, use->name);
    if (use->space == SPACE_PYTHON)
        return;
    if (use->space == SPACE_GLOBALS)
        add_annotation(f, space, use->name);
    tt_fingerprint_add(f, value);
}

/* ---- finding ------------------------------------------------------------------------------------------------------------ */

/* The value now, with its place, into the list; false if there is none. */
static bool look_up(Fingerprint *f, const NameUse *use, PyObject *used_names)
{
    PyObject *space = find_space(f, use), *name = NULL, *value = NULL, *entry = NULL;
    bool done = false;
    if (space && use->space == SPACE_CELL) {
        name = Py_NewRef(Py_None);
        value = PyObject_GetAttrString(space, "cell_contents");
    } else if (space && use->name && (name = PyUnicode_FromString(use->name))) {
        value = Py_XNewRef(PyDict_GetItemWithError(space, name));
        done = use->space == SPACE_PYTHON && !value;
    }
    if (value && use->space != SPACE_PYTHON) {
        entry = PyTuple_Pack(3, space, name, value);
        done = entry && !PyList_Append(used_names, entry);
    }
    if (done)
        add_value(f, space, use, value);
    tt_forget();
    Py_XDECREF(space);
    Py_XDECREF(name);
    Py_XDECREF(value);
    Py_XDECREF(entry);
    return done && !f->unknown;
}

/* With the fingerprint as it was before any name. */
static bool holds(Fingerprint f, const Alternative *alternative, PyObject *used_names)
{
    for (int i = 0; i < alternative->use_count; i++) {
        tt_breathe();
        if (!look_up(&f, &alternative->uses[i], used_names))
            return false;
    }
    Digest values = tt_hasher_end(&f.hasher);
    return !memcmp(&values, alternative->values.data, sizeof values);
}

static bool find(const UsesRequest *request, Digest *made_of, Arena *arena)
{
    Fingerprint f;
    if (!begin(&f, request, arena))
        return false;
    Digest key = tt_hasher_end(&f.hasher);
    Uses uses = read_uses(&key, arena);
    for (int i = 0; i < uses.count; i++) {
        if (holds(f, &uses.items[i], request->used_names)) {
            memcpy(made_of, uses.items[i].made_of.data, sizeof *made_of);
            return !PyDict_SetItemString(request->info, reads_num_warps,
                                         uses.items[i].reads_num_warps ? Py_True : Py_False);
        }
        if (PyList_SetSlice(request->used_names, 0, PyList_Size(request->used_names), NULL))
            tt_forget();
    }
    return false;
}

bool tt_find_uses(const UsesRequest *request, Digest *made_of)
{
    Arena arena = {0};
    Trap trap;
    volatile bool found = false;
    if (tt_try(&trap, &arena)) {
        found = find(request, made_of, &arena);
        tt_end_try(&trap);
    }
    tt_arena_release(&arena);
    return found;
}

/* ---- keeping ------------------------------------------------------------------------------------------------------------ */

static bool is_own_space(PyObject *space)
{
    PyObject *name = PyDict_Check(space) ? PyDict_GetItemString(space, "__name__") : NULL;
    return tt_is_own_module(name);
}

/* An entry of the frontend's lists; false if its place cannot be found again. */
static bool add_use(Fingerprint *f, PyObject *entry, bool of_python, NameUse *uses, int *count)
{
    PyObject *space, *name, *value = NULL;
    NameUse use = {0};
    if (!PyArg_ParseTuple(entry, of_python ? "OO" : "OOO", &space, &name, &value))
        return false;
    if (is_own_space(space))
        return true;
    if (!is_of_kernel(f, space, &use) && (of_python || !is_in_module(f, space, &use)))
        return false;
    if (of_python)
        use.space = SPACE_PYTHON;
    if (use.space != SPACE_CELL)
        use.name = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (use.space != SPACE_CELL && !use.name)
        return false;
    add_value(f, space, &use, value);
    uses[(*count)++] = use;
    return !f->unknown;
}

/* All that the frontend has looked up. */
static bool add_uses(Fingerprint *f, const UsesRequest *request, Alternative *alternative, Arena *arena)
{
    Py_ssize_t used = PyList_Size(request->used_names), own = PyList_Size(request->own_names);
    if (used + own > MOST_NAMES)
        return false;
    alternative->uses = TT_NEW_ARRAY(arena, NameUse, used + own);
    for (Py_ssize_t i = 0; i < used + own; i++) {
        tt_breathe();
        PyObject *entry =
            i < used ? PyList_GetItem(request->used_names, i) : PyList_GetItem(request->own_names, i - used);
        if (!add_use(f, entry, i >= used, alternative->uses, &alternative->use_count))
            return false;
    }
    return true;
}

/* In front of the others; the oldest one goes. */
static Uses add_alternative(Uses old, Alternative newest, Arena *arena)
{
    Uses uses = {.items = TT_NEW_ARRAY(arena, Alternative, old.count + 1)};
    uses.items[uses.count++] = newest;
    for (int i = 0; i < old.count && uses.count < MOST_ALTERNATIVES; i++)
        if (memcmp(old.items[i].values.data, newest.values.data, sizeof(Digest)))
            uses.items[uses.count++] = old.items[i];
    return uses;
}

/* As the request was when it was looked for. */
static bool begin_again(Fingerprint *f, const UsesRequest *request, bool *reads, Arena *arena)
{
    *reads = PyDict_GetItemString(request->info, reads_num_warps) == Py_True;
    bool done = !PyDict_SetItemString(request->info, reads_num_warps, Py_False) && begin(f, request, arena);
    return !PyDict_SetItemString(request->info, reads_num_warps, *reads ? Py_True : Py_False) && done;
}

static void keep(const UsesRequest *request, const Digest *made_of, Arena *arena)
{
    Fingerprint f;
    Alternative newest = {.made_of = {made_of, sizeof *made_of}};
    if (!begin_again(&f, request, &newest.reads_num_warps, arena))
        return;
    Digest key = tt_hasher_end(&f.hasher);
    if (!add_uses(&f, request, &newest, arena))
        return;
    Digest values = tt_hasher_end(&f.hasher);
    newest.values = (Bytes){&values, sizeof values};
    Uses uses = add_alternative(read_uses(&key, arena), newest, arena);
    Text text = {.arena = arena};
    transfer(&(Codec){.out = &text}, &uses);
    write_file(&key, (Bytes){text.data, text.length}, arena);
}

void tt_keep_uses(const UsesRequest *request, const Digest *made_of)
{
    Arena arena = {0};
    Trap trap;
    if (tt_try(&trap, &arena)) {
        keep(request, made_of, &arena);
        tt_end_try(&trap);
    }
    tt_forget();
    tt_arena_release(&arena);
}
