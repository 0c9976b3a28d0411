/* Triton-C from Python: what a program declares, and kernels whose parse() gives a text instead of a tree. */
#include "python/extension.h"
#include "triton_c/triton_c.h"

/* The text and the name of the file; both live as long as their objects. False with an error set. */
static bool read_source(PyObject *text, PyObject *file, Arena *arena, CSource *source)
{
    Py_ssize_t length;
    PyObject *bytes = PyUnicode_AsUTF8String(text), *name = bytes ? PyUnicode_AsUTF8String(file) : NULL;
    if (name) {
        length = PyBytes_Size(bytes);
        source->text = tt_arena_strndup(arena, PyBytes_AsString(bytes), (size_t)length);
        source->length = (size_t)length;
        source->file = tt_arena_strdup(arena, PyBytes_AsString(name));
    }
    Py_XDECREF(bytes);
    Py_XDECREF(name);
    return name != NULL;
}

/* ---- what a program declares -------------------------------------------------------------------------------------------- */

static PyObject *parameters_of(const CKernel *kernel)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < kernel->parameter_count; i++) {
        PyObject *item = Py_BuildValue("(ss)", kernel->parameters[i].name, kernel->parameters[i].type);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *values_of(const CTunable *tunable)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < tunable->count; i++) {
        PyObject *item = PyLong_FromLongLong(tunable->values[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *tunables_of(const CKernel *kernel)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < kernel->tunable_count; i++) {
        PyObject *item = Py_BuildValue("(sN)", kernel->tunables[i].name, values_of(&kernel->tunables[i]));
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *list_kernels(const CKernel *kernels, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        PyObject *item = Py_BuildValue("(sNNi)", kernels[i].name, parameters_of(&kernels[i]),
                                       tunables_of(&kernels[i]), kernels[i].line);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *describe(PyObject *text, PyObject *file, Arena *arena)
{
    Trap trap;
    CSource source;
    if (!tt_try(&trap, arena)) {
        tt_set_error(&trap.diag, NULL);
        return NULL;
    }
    int count;
    bool done = read_source(text, file, arena, &source);
    const CKernel *kernels = done ? tt_triton_c_describe(arena, &source, &count) : NULL;
    tt_end_try(&trap);
    return done ? list_kernels(kernels, count) : NULL;
}

static PyObject *py_describe(PyObject *module, PyObject *args)
{
    PyObject *text, *file;
    (void)module;
    if (!PyArg_ParseTuple(args, "UU", &text, &file))
        return NULL;
    Arena arena = {0};
    PyObject *list = describe(text, file, &arena);
    tt_arena_release(&arena);
    return list;
}

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

/* The compile-time value of an entry of a signature, a new reference; NULL without an error when it is none. */
static PyObject *constant_of(PyObject *entry)
{
    if (PyTuple_CheckExact(entry))
        return NULL;
    return PyObject_GetAttrString(entry, "value");
}

static bool read_tunables(PyObject *values, Arena *arena, CRequest *request)
{
    Py_ssize_t count = PyDict_Size(values), at = 0;
    PyObject *key, *value;
    const char **names = TT_NEW_ARRAY(arena, const char *, count + 1);
    int64_t *numbers = TT_NEW_ARRAY(arena, int64_t, count + 1);
    for (int i = 0; PyDict_Next(values, &at, &key, &value); i++) {
        PyObject *bytes = PyUnicode_AsUTF8String(key), *number = bytes ? PyNumber_Index(value) : NULL;
        if (number) {
            names[i] = tt_arena_strdup(arena, PyBytes_AsString(bytes));
            numbers[i] = PyLong_AsLongLong(number);
        }
        Py_XDECREF(bytes);
        Py_XDECREF(number);
        if (PyErr_Occurred())
            return false;
    }
    request->tunable_names = names;
    request->tunable_values = numbers;
    request->tunable_count = (int)count;
    return true;
}

static bool flag(PyObject *options, const char *name, bool otherwise)
{
    PyObject *value = options && options != Py_None ? PyDict_GetItemString(options, name) : NULL;
    return value && value != Py_None ? PyObject_IsTrue(value) == 1 : otherwise;
}

/* A parameter's value that is known when compiling: None, or a number. */
static bool read_known(PyObject *constant, CArgument *argument)
{
    if (constant == Py_None)
        return true;
    argument->is_known = true;
    argument->is_float = PyFloat_Check(constant);
    if (argument->is_float) {
        argument->number = PyFloat_AsDouble(constant);
        return true;
    }
    PyObject *number = PyNumber_Index(constant);
    if (number)
        argument->whole = PyLong_AsLongLong(number);
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

/* Entries of parameters first, then those of tunables, whose names are the kernel's later ones. */
static bool read_entries(const FrontendRequest *from, Arena *arena, CRequest *request)
{
    PyObject *names = PyObject_GetAttrString(from->function, "arg_names"),
             *tunables = names ? PyDict_New() : NULL,
             *choices = tunables ? PyObject_GetAttrString(from->function, "tunables") : NULL;
    Py_ssize_t count = PyTuple_Size(from->signature);
    CArgument *arguments = TT_NEW_ARRAY(arena, CArgument, count + 1);
    bool done = choices && count >= 0 && PyList_Check(names) && PyList_Size(names) == count;
    Py_ssize_t parameters = done ? count - PyList_Size(choices) : 0;
    for (Py_ssize_t i = 0; done && i < count; i++) {
        PyObject *entry = PyTuple_GetItem(from->signature, i), *constant = constant_of(entry);
        const char *type = NULL;
        long long divisibility = 1;
        CArgument *argument = &arguments[request->argument_count];
        if (!constant)
            done = !PyErr_Occurred() && PyArg_ParseTuple(entry, "sL", &type, &divisibility);
        else if (i < parameters)
            done = read_known(constant, argument);
        else
            done = !PyDict_SetItem(tunables, PyList_GetItem(names, i), constant);
        if (done && i < parameters) {
            argument->type = type ? tt_arena_strdup(arena, type) : NULL;
            argument->divisibility = divisibility;
            request->argument_count++;
        }
        Py_XDECREF(constant);
    }
    request->arguments = arguments;
    done = done && read_tunables(tunables, arena, request);
    if (!done && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the signature does not have one entry for each parameter");
    Py_XDECREF(names);
    Py_XDECREF(tunables);
    Py_XDECREF(choices);
    return done;
}

static bool read_request(const FrontendRequest *from, PyObject *text, Arena *arena, CRequest *request)
{
    PyObject *file = PyObject_GetAttrString(from->function, "source_file");
    PyObject *name = file ? PyObject_GetAttrString(from->function, "__name__") : NULL;
    PyObject *bytes = name ? PyUnicode_AsUTF8String(name) : NULL;
    bool done =
        bytes && read_source(text, file, arena, &request->source) && read_entries(from, arena, request);
    if (done) {
        request->kernel = tt_arena_strdup(arena, PyBytes_AsString(bytes));
        request->debug = flag(from->options, "debug", false);
        request->checks_overflow = request->debug && flag(from->options, "sanitize_overflow", true);
    }
    Py_XDECREF(file);
    Py_XDECREF(name);
    Py_XDECREF(bytes);
    return done;
}

static _Noreturn void raise_python_error(void)
{
    tt_raise(&(Diagnostic){.kind = TT_PYTHON_ERROR, .message = "a kernel's source could not be read"});
}

static Module *read_tile_ir(PyObject *function, PyObject *bytes, Arena *arena)
{
    PyObject *path = PyObject_GetAttrString(function, "source_file");
    const char *name = path ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
    const char *file = name ? tt_arena_strdup(arena, name) : NULL;
    const char *text = tt_arena_strdup(arena, PyBytes_AsString(bytes));
    Py_XDECREF(path);
    Py_DECREF(bytes);
    if (!file)
        raise_python_error();
    Module *module = tt_parse_module(arena, text, file);
    const char *mistakes = tt_verify(module, arena);
    if (mistakes)
        tt_error(NULL, "%s", mistakes);
    return module;
}

/* By what the kernel's parse() gives: a tree of Python's, a text in Triton-C, or bytes, which are tile IR. */
Module *tt_build_kernel(Arena *arena, FrontendRequest *request)
{
    PyObject *tree = PyObject_CallMethod(request->function, "parse", NULL);
    if (!tree)
        raise_python_error();
    if (PyBytes_Check(tree))
        return read_tile_ir(request->function, tree, arena);
    if (!PyUnicode_Check(tree)) {
        Py_DECREF(tree); /* the kernel holds it */
        return tt_frontend_build(arena, request);
    }
    CRequest *own = TT_NEW(arena, CRequest);
    bool done = read_request(request, tree, arena, own);
    Py_DECREF(tree);
    if (!done)
        raise_python_error();
    return tt_triton_c_build(arena, own, NULL);
}

/* ---- global ranges ------------------------------------------------------------------------------------------------------- */

static bool find_extents(PyObject *text, PyObject *file, const char *kernel, PyObject *tunables, Arena *arena,
                         int64_t extents[3])
{
    Trap trap;
    if (!tt_try(&trap, arena)) {
        tt_set_error(&trap.diag, NULL);
        return false;
    }
    CRequest request = {.kernel = kernel};
    bool done = read_source(text, file, arena, &request.source) && read_tunables(tunables, arena, &request);
    if (done)
        tt_triton_c_build(arena, &request, extents);
    tt_end_try(&trap);
    return done;
}

static PyObject *py_extents(PyObject *module, PyObject *args)
{
    PyObject *text, *file, *tunables;
    const char *kernel;
    int64_t extents[3] = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "UUsO!", &text, &file, &kernel, &PyDict_Type, &tunables))
        return NULL;
    Arena arena = {0};
    bool done = find_extents(text, file, kernel, tunables, &arena, extents);
    tt_arena_release(&arena);
    return done ? Py_BuildValue("(LLL)", (long long)extents[0], (long long)extents[1], (long long)extents[2])
                : NULL;
}

PyMethodDef tt_triton_c_methods[] = {
    {"triton_c_describe", py_describe, METH_VARARGS,
     "triton_c_describe(text, file) -> [(name, [(parameter, type)], [(tunable, [value])], line)]\n--\n\n"
     "The kernels of a program in Triton-C."},
    {"triton_c_extents", py_extents, METH_VARARGS,
     "triton_c_extents(text, file, kernel, tunables) -> (extent, extent, extent)\n--\n\n"
     "The extents of a kernel's global ranges by axis; 0 where it has none."},
    {NULL, NULL, 0, NULL},
};
