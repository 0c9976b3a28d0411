/* See walks.h. Kernel.walks is a list of (digest, tile IR, used names, own names) once somebody wants it. */
#include "python/walks.h"
#include "python/fingerprint.h"

enum { MOST_WALKS = 8 }; /* of a kernel that is not tuned */

/* What the frontend does not look at, but for num_warps, of which it says so. "options" repeats those that were given;
 * what a parameter is known to be a multiple of it notes with the parameter, and that is all. */
static const char *const others[] = {"num_warps", "num_stages", "num_ctas",     "maxnreg",    "choices",
                                     "options",   "launch_pdl", "divisibility", "ir_override"};

/* Whether an entry of a signature is a run-time parameter: a type with a number. */
static bool is_parameter(PyObject *entry) { return PyTuple_CheckExact(entry); }

/* Else a list or a named tuple of entries; NULL: it is a constant. A new reference. */
static PyObject *entries_of(PyObject *entry)
{
    return PyList_Check(entry) || PyTuple_Check(entry) ? PySequence_Tuple(entry) : NULL;
}

/* An entry without the numbers. */
static void add_types(Fingerprint *f, PyObject *entry)
{
    PyObject *entries = is_parameter(entry) ? NULL : entries_of(entry);
    if (!entries) {
        tt_fingerprint_add(f, is_parameter(entry) ? PyTuple_GetItem(entry, 0) : entry);
        return;
    }
    tt_fingerprint_add(f, (PyObject *)Py_TYPE(entry));
    tt_hasher_add_number(&f->hasher, (uint64_t)PyTuple_Size(entries));
    for (Py_ssize_t i = 0; i < PyTuple_Size(entries); i++)
        add_types(f, PyTuple_GetItem(entries, i));
    Py_DECREF(entries);
}

/* False if a value among the arguments cannot be told from others. */
static bool digest_of(const Kernel *kernel, const FrontendRequest *request, Digest *digest)
{
    Arena arena = {0};
    Trap trap;
    PyObject *info = PyDict_Copy(request->options);
    volatile bool done = info != NULL;
    for (size_t i = 0; done && i < TT_COUNT(others); i++)
        if (PyDict_GetItemString(info, others[i]))
            done = !PyDict_DelItemString(info, others[i]);
    if (done && tt_try(&trap, &arena)) {
        Fingerprint f;
        tt_fingerprint_init(&f, kernel->state, &arena);
        tt_fingerprint_add(&f, info);
        for (Py_ssize_t i = 0; i < PyTuple_Size(request->signature); i++)
            add_types(&f, PyTuple_GetItem(request->signature, i));
        *digest = tt_hasher_end(&f.hasher);
        done = !f.unknown;
        tt_end_try(&trap);
    } else {
        done = false;
    }
    tt_arena_release(&arena);
    Py_XDECREF(info);
    tt_forget();
    return done;
}

static bool extend(PyObject *list, PyObject *with)
{
    return !PyList_SetSlice(list, PyList_Size(list), PyList_Size(list), with);
}

/* What it looked up outside of the kernel. */
static bool names_hold(const Kernel *kernel, PyObject *used_names, PyObject *own_names)
{
    bool hold = true;
    for (Py_ssize_t i = 0; hold && i < PyList_Size(used_names); i++) {
        UsedName used;
        hold = PyArg_ParseTuple(PyList_GetItem(used_names, i), "OOO", &used.space, &used.name, &used.value) &&
               tt_name_holds(&used, kernel->state);
    }
    for (Py_ssize_t i = 0; hold && i < PyList_Size(own_names); i++) {
        PyObject *globals, *name;
        hold = PyArg_ParseTuple(PyList_GetItem(own_names, i), "OO", &globals, &name) &&
               !PyDict_GetItemWithError(globals, name) && !PyErr_Occurred();
    }
    return hold;
}

/* The numbers in a signature, in the order of the parameters of its function. */
typedef TT_VECTOR(int64_t) Numbers;
static void add_numbers(Arena *arena, PyObject *entry, Numbers *numbers)
{
    PyObject *entries = is_parameter(entry) ? NULL : entries_of(entry);
    if (is_parameter(entry))
        tt_push(arena, *numbers, PyLong_AsLongLong(PyTuple_GetItem(entry, 1)));
    for (Py_ssize_t i = 0; entries && i < PyTuple_Size(entries); i++)
        add_numbers(arena, PyTuple_GetItem(entries, i), numbers);
    Py_XDECREF(entries);
}

static Walk copy_walk(PyObject *text, PyObject *signature, Arena *arena)
{
    Numbers numbers = {0};
    for (Py_ssize_t i = 0; i < PyTuple_Size(signature); i++)
        add_numbers(arena, PyTuple_GetItem(signature, i), &numbers);
    return (Walk){tt_arena_strdup(arena, PyBytes_AsString(text)), numbers.data, numbers.count};
}

Walk tt_find_walk(const Kernel *kernel, const FrontendRequest *request, Arena *arena)
{
    Digest digest;
    Walk *volatile walk = NULL;
    if (!kernel->walks || !digest_of(kernel, request, &digest))
        return (Walk){0};
    PyObject *walks = PyList_GetSlice(kernel->walks, 0, PyList_Size(kernel->walks));
    for (Py_ssize_t i = 0; walks && !walk && i < PyList_Size(walks); i++) {
        PyObject *key, *text, *used, *own;
        Trap trap;
        if (!PyArg_ParseTuple(PyList_GetItem(walks, i), "OOOO", &key, &text, &used, &own) ||
            memcmp(PyBytes_AsString(key), &digest, sizeof digest) || !names_hold(kernel, used, own) ||
            !extend(request->used_names, used) || !extend(request->own_names, own) || !tt_try(&trap, arena))
            continue;
        walk = TT_NEW(arena, Walk);
        *walk = copy_walk(text, request->signature, arena);
        tt_end_try(&trap);
    }
    Py_XDECREF(walks);
    tt_forget();
    return walk ? *walk : (Walk){0};
}

Module *tt_walked_module(const Walk *walk, Arena *arena)
{
    Module *module = tt_parse_module(arena, walk->text, "kernel");
    Function *kernel = module->functions;
    while (kernel && !kernel->is_kernel)
        kernel = kernel->next;
    if (!kernel || kernel->body->arg_count != walk->count)
        tt_bug("a walk is of another signature than it was found by");
    for (int i = 0; i < walk->count; i++)
        kernel->param_attrs[i] = tt_parameter_attrs(module, walk->divisibilities[i]);
    return module;
}

static void keep(Kernel *kernel, const FrontendRequest *request, const Digest *digest, const char *text)
{
    PyObject *used = PyList_GetSlice(request->used_names, 0, PyList_Size(request->used_names));
    PyObject *own = PyList_GetSlice(request->own_names, 0, PyList_Size(request->own_names));
    PyObject *entry = used && own ? Py_BuildValue("(y#yOO)", (const char *)digest, (Py_ssize_t)sizeof *digest,
                                                  text, used, own)
                                  : NULL;
    if (entry && !kernel->walks && request->breathe)
        kernel->walks = PyList_New(0);
    if (entry && kernel->walks && !PyList_Append(kernel->walks, entry) && request->breathe &&
        PyList_Size(kernel->walks) > MOST_WALKS)
        PyList_SetSlice(kernel->walks, 0, 1, NULL);
    Py_XDECREF(entry);
    Py_XDECREF(used);
    Py_XDECREF(own);
    tt_forget();
}

void tt_keep_walk(Kernel *kernel, const FrontendRequest *request, const Module *module)
{
    Digest digest;
    Trap trap;
    PyObject *reads = PyDict_GetItemString(request->options, "reads_num_warps");
    if ((!kernel->walks && !request->breathe) || request->had_effects || reads == Py_True ||
        module->remarks.count || !digest_of(kernel, request, &digest))
        return;
    const char *volatile text = NULL;
    PyThreadState *released = tt_give_gil();
    if (tt_try(&trap, module->arena)) {
        text = tt_print_module(module, module->arena, TT_PRINT_LOCATIONS);
        tt_end_try(&trap);
    }
    tt_get_gil(released);
    if (text)
        keep(kernel, request, &digest, text);
}
