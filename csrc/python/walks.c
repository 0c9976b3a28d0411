/* See walks.h. Kernel.walks is a list of (digest, tile IR, used names, own names) while somebody wants it. */
#include "python/walks.h"
#include "python/fingerprint.h"

/* What the frontend does not look at, but for num_warps, of which it says so. "options" repeats those that were given. */
static const char *const others[] = {"num_warps", "num_stages", "num_ctas",  "maxnreg",
                                     "choices",   "options",    "launch_pdl"};

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
        tt_fingerprint_add(&f, request->signature);
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

const char *tt_find_walk(const Kernel *kernel, const FrontendRequest *request, Arena *arena)
{
    Digest digest;
    const char *volatile text = NULL;
    if (!kernel->walks || !digest_of(kernel, request, &digest))
        return NULL;
    PyObject *walks = Py_NewRef(kernel->walks);
    for (Py_ssize_t i = 0; !text && i < PyList_Size(walks); i++) {
        PyObject *key, *bytes, *used, *own;
        Trap trap;
        if (!PyArg_ParseTuple(PyList_GetItem(walks, i), "OOOO", &key, &bytes, &used, &own) ||
            memcmp(PyBytes_AsString(key), &digest, sizeof digest) || !extend(request->used_names, used) ||
            !extend(request->own_names, own) || !tt_try(&trap, arena))
            continue;
        text = tt_arena_strdup(arena, PyBytes_AsString(bytes));
        tt_end_try(&trap);
    }
    Py_DECREF(walks);
    tt_forget();
    return text;
}

static void keep(Kernel *kernel, const FrontendRequest *request, const Digest *digest, const char *text)
{
    PyObject *used = PyList_GetSlice(request->used_names, 0, PyList_Size(request->used_names));
    PyObject *own = PyList_GetSlice(request->own_names, 0, PyList_Size(request->own_names));
    PyObject *entry = used && own ? Py_BuildValue("(y#yOO)", (const char *)digest, (Py_ssize_t)sizeof *digest,
                                                  text, used, own)
                                  : NULL;
    if (entry && kernel->walks)
        PyList_Append(kernel->walks, entry);
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
    if (!kernel->walks || request->had_effects || reads == Py_True || module->remarks.count ||
        !digest_of(kernel, request, &digest) || !tt_try(&trap, module->arena))
        return;
    const char *text = tt_print_module(module, module->arena, TT_PRINT_LOCATIONS);
    tt_end_try(&trap);
    keep(kernel, request, &digest, text);
}
