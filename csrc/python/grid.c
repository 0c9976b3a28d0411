/* The grid of a launch: an int, one to three of them, or a function of the call's arguments that gives either. */
#include "python/extension.h"

static bool grid_error(const Kernel *kernel, PyObject *exception, const char *format, PyObject *value)
{
    PyObject *what = PyUnicode_FromFormat(format, value);
    if (what)
        PyErr_Format(exception, "%U[grid]: %U", kernel->name, what);
    Py_XDECREF(what);
    return false;
}

static bool read_extent(const Kernel *kernel, PyObject *value, int32_t *extent)
{
    PyObject *index = PyNumber_Index(value);
    if (!index) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return false;
        PyErr_Clear();
        return grid_error(kernel, PyExc_TypeError,
                          "an extent of the grid is %R, which is no integer; divide with // or triton.cdiv",
                          value);
    }
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (number < 0 && !overflow)
        return grid_error(kernel, PyExc_ValueError, "an extent of the grid is %S; extents cannot be negative",
                          value);
    if (overflow || number > INT32_MAX)
        return grid_error(kernel, PyExc_ValueError,
                          "an extent of the grid is %S; the largest possible is 2**31 - 1", value);
    *extent = (int32_t)number;
    return true;
}

/* Programs are counted in 64 bits. */
static bool can_count(const int32_t extents[3])
{
    return !extents[2] || (int64_t)extents[0] * extents[1] <= INT64_MAX / extents[2];
}

static bool read_extents(const Kernel *kernel, PyObject *grid, int32_t extents[3])
{
    extents[0] = extents[1] = extents[2] = 1;
    bool is_tuple = PyTuple_Check(grid);
    if (!is_tuple && !PyList_Check(grid))
        return read_extent(kernel, grid, &extents[0]);
    Py_ssize_t count = is_tuple ? PyTuple_Size(grid) : PyList_Size(grid);
    if (count < 1 || count > 3)
        return grid_error(kernel, PyExc_ValueError, "a grid has one to three extents, not %R", grid);
    for (Py_ssize_t i = 0; i < count; i++) {
        /* Owned, for __index__ is the user's code and could change the list. */
        PyObject *item = is_tuple ? PyTuple_GetItem(grid, i) : PyList_GetItem(grid, i);
        if (!item)
            return false;
        Py_INCREF(item);
        bool done = read_extent(kernel, item, &extents[i]);
        Py_DECREF(item);
        if (!done)
            return false;
    }
    return can_count(extents) ||
           grid_error(kernel, PyExc_ValueError, "the grid %R has more than 2**63 - 1 programs", grid);
}

/* What a function of the meta-parameters gets: every argument by name, and the options that were given. */
static PyObject *meta_parameters(const Kernel *kernel, const Call *call)
{
    PyObject *meta = call->meta ? PyDict_Copy(call->meta) : PyDict_New();
    for (int i = 0; meta && i < TT_OPTION_COUNT; i++)
        if (call->options[i] && tt_option_kinds[i] != OPTION_LAUNCH &&
            PyDict_SetItem(meta, kernel->state->options[i], call->options[i]) < 0)
            Py_CLEAR(meta);
    for (int i = 0; meta && i < kernel->param_count; i++)
        if (i != kernel->meta && PyDict_SetItem(meta, kernel->params[i].name, call->values[i]) < 0)
            Py_CLEAR(meta);
    return meta;
}

bool tt_read_grid(const Kernel *kernel, PyObject *grid, const Call *call, int32_t extents[3])
{
    if (PyTuple_Check(grid) || PyLong_Check(grid) || !PyCallable_Check(grid))
        return read_extents(kernel, grid, extents);
    PyObject *meta = meta_parameters(kernel, call);
    PyObject *result = meta ? PyObject_CallFunctionObjArgs(grid, meta, NULL) : NULL;
    bool done = result && read_extents(kernel, result, extents);
    Py_XDECREF(result);
    Py_XDECREF(meta);
    return done;
}
