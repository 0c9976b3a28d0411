/* The store of compiled kernels as Python reaches it: for triton.tools.cache, and for tests. */
#include "cache/store.h"
#include "python/extension.h"

static PyObject *store_folder(PyObject *module, PyObject *unused)
{
    Arena arena = {0};
    Trap trap;
    (void)module, (void)unused;
    if (!tt_try(&trap, &arena)) {
        tt_arena_release(&arena);
        return PyErr_NoMemory();
    }
    const char *folder = tt_store_folder(&arena);
    tt_end_try(&trap);
    PyObject *result = folder ? PyUnicode_DecodeFSDefault(folder) : Py_NewRef(Py_None);
    tt_arena_release(&arena);
    return result;
}

static PyObject *store_limit(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLongLong(tt_store_limit());
}

static PyObject *store_sweep(PyObject *module, PyObject *args)
{
    PyObject *folder;
    long long limit;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&L", PyUnicode_FSConverter, &folder, &limit))
        return NULL;
    tt_store_sweep(PyBytes_AsString(folder), limit);
    Py_DECREF(folder);
    return Py_NewRef(Py_None);
}

static PyObject *read_seal(PyObject *module, PyObject *args)
{
    Bytes sealed;
    Py_ssize_t size;
    SealKind kind;
    Digest key;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &sealed.data, &size))
        return NULL;
    sealed.size = (size_t)size;
    if (!tt_read_seal(sealed, &kind, &key) || !tt_store_kind(kind))
        return Py_NewRef(Py_None);
    return Py_BuildValue("(sy#)", tt_store_kind(kind), key.bytes, (Py_ssize_t)sizeof key.bytes);
}

/* Work on bytes that may raise diagnostics, which there is nothing to say of: false then. */
static bool run(bool (*work)(const char *folder, Bytes bytes, Arena *arena), const char *folder, Bytes bytes,
                Arena *arena)
{
    Trap trap;
    if (!tt_try(&trap, arena))
        return false;
    bool done = work(folder, bytes, arena);
    tt_end_try(&trap);
    return done;
}

static PyObject *store_add(PyObject *module, PyObject *args)
{
    PyObject *folder;
    Bytes bytes;
    Py_ssize_t size;
    Arena arena = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O&y#", PyUnicode_FSConverter, &folder, &bytes.data, &size))
        return NULL;
    bytes.size = (size_t)size;
    bool done = run(tt_store_add, PyBytes_AsString(folder), bytes, &arena);
    tt_arena_release(&arena);
    Py_DECREF(folder);
    return PyBool_FromLong(done);
}

static PyObject *image_facts(PyObject *module, PyObject *args)
{
    Bytes bytes;
    Py_ssize_t size;
    Arena arena = {0};
    Trap trap;
    PyObject *volatile facts = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &bytes.data, &size))
        return NULL;
    bytes.size = (size_t)size;
    if (tt_try(&trap, &arena)) {
        char name[16];
        const Image *image = tt_read_image(bytes, NULL, &arena);
        if (image)
            facts = Py_BuildValue("{ss ss si si sL ss sy#}", "name", image->name, "target",
                                  tt_target_name(image->options.target, name), "num_warps",
                                  image->options.num_warps, "num_stages", image->options.num_stages, "shared",
                                  (long long)image->memory, "source", image->source, "code", image->code.data,
                                  (Py_ssize_t)image->code.size);
        tt_end_try(&trap);
    }
    tt_arena_release(&arena);
    return facts || PyErr_Occurred() ? facts : Py_NewRef(Py_None);
}

static PyObject *digest(PyObject *module, PyObject *args)
{
    const void *data;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &data, &size))
        return NULL;
    Digest result = tt_digest(data, (size_t)size);
    return PyBytes_FromStringAndSize((const char *)result.bytes, sizeof result.bytes);
}

static PyObject *store_write(PyObject *module, PyObject *args)
{
    const void *key, *data;
    Py_ssize_t key_size, size;
    Digest digest;
    Arena arena = {0};
    Trap trap;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#y#", &key, &key_size, &data, &size))
        return NULL;
    if (key_size != sizeof digest)
        return PyErr_Format(PyExc_ValueError, "a key has %zu bytes", sizeof digest);
    memcpy(&digest, key, sizeof digest);
    if (tt_try(&trap, &arena)) {
        tt_store_write(SEAL_IMAGE, &digest, tt_seal(SEAL_IMAGE, &digest, (Bytes){data, (size_t)size}, &arena),
                       &arena);
        tt_end_try(&trap);
    }
    tt_arena_release(&arena);
    return Py_NewRef(Py_None);
}

PyMethodDef tt_store_methods[] = {
    {"store_folder", store_folder, METH_NOARGS,
     "store_folder() -> str | None\n--\n\nWhere compiled kernels are kept; None: nowhere."},
    {"store_limit", store_limit, METH_NOARGS, "store_limit() -> int\n--\n\nBytes that they may take."},
    {"store_sweep", store_sweep, METH_VARARGS,
     "store_sweep(folder, limit)\n--\n\nTake away what is left over, and what was not used for the longest "
     "time."},
    {"read_seal", read_seal, METH_VARARGS,
     "read_seal(data) -> tuple[str, bytes] | None\n--\n\nThe kind and the key of the contents of a file; "
     "None if it is "
     "damaged."},
    {"store_add", store_add, METH_VARARGS,
     "store_add(folder, data) -> bool\n--\n\nPut the contents of a file where they belong; False if they are "
     "damaged."},
    {"image_facts", image_facts, METH_VARARGS,
     "image_facts(data) -> dict | None\n--\n\nWhat an image says of itself: name, target, ..., tile IR, "
     "code."},
    {"_digest", digest, METH_VARARGS, "_digest(data) -> bytes\n--\n\nThe hash that files are kept under."},
    {"_store_write", store_write, METH_VARARGS, "_store_write(key, data)\n--\n\nKeep data under a key."},
    {NULL, NULL, 0, NULL},
};
