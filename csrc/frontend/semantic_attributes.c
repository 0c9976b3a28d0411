/* Attributes of tensors and block pointers: x.shape, x.dtype, x.T, x.sum(...), ... */
#include "frontend/semantic.h"

const char *tt_call_name(Walker *w) { return tt_arena_format(w->arena, "tl.%s", w->call->name); }

bool tt_debug(const Walker *w)
{
    PyObject *debug = w->options ? PyDict_GetItemString(w->options, "debug") : NULL;
    return debug && PyObject_IsTrue(debug) == 1;
}

static PyObject *shape_tuple(Walker *w, const int64_t *extents, int rank)
{
    PyObject *tuple = tt_keep(w, PyTuple_New(rank));
    for (int i = 0; i < rank; i++) {
        PyObject *extent = PyLong_FromLongLong(extents[i]);
        if (!extent || PyTuple_SetItem(tuple, i, extent))
            tt_python_error(w);
    }
    return tuple;
}

/* tl.block_type(dtype, shape) */
static PyObject *tile_type(Walker *w, const Dtype *dtype, const int64_t *extents, int rank)
{
    return tt_keep(w, PyObject_CallFunctionObjArgs(tt_language_object(w, "block_type"),
                                                   tt_dtype_to_object(w, dtype),
                                                   shape_tuple(w, extents, rank), NULL));
}

static Term type_of(Walker *w, Term t)
{
    Shape shape = tt_shape_of(t);
    return shape.rank ? tt_python_term(w, tile_type(w, t.dtype, shape.extents, shape.rank))
                      : tt_dtype_term(w, t.dtype);
}

static Term transpose(Walker *w, Term t)
{
    Shape shape = tt_shape_of(t);
    if (shape.rank != 2)
        tt_fail_with_remedy(w, "take tl.trans(x, dims) or tl.permute(x, dims) for other ranks",
                            ".T is for tiles of two dimensions, not for %s", tt_describe(w, t));
    return tt_permute(w, t, (int64_t[]){1, 0});
}

static bool data_attribute(Walker *w, Term t, PyObject *name, Term *out)
{
    Shape shape = tt_shape_of(t);
    if (!PyUnicode_CompareWithASCIIString(name, "dtype"))
        *out = tt_dtype_term(w, t.dtype);
    else if (!PyUnicode_CompareWithASCIIString(name, "shape"))
        *out = tt_shape_term(w, shape.extents, shape.rank);
    else if (!PyUnicode_CompareWithASCIIString(name, "numel"))
        *out = tt_int_term(w, tt_shape_count(&shape));
    else if (!PyUnicode_CompareWithASCIIString(name, "type"))
        *out = type_of(w, t);
    else if (!PyUnicode_CompareWithASCIIString(name, "T"))
        *out = transpose(w, t);
    else
        return false;
    return true;
}

/* " (did you mean `reshape`?)", or an empty string. */
static const char *suggestion(Walker *w, PyObject *name)
{
    PyObject *difflib = tt_keep(w, PyImport_ImportModule("difflib"));
    PyObject *known = tt_keep(w, PyObject_Dir(tt_language_object(w, "tensor")));
    PyObject *close = tt_keep(w, PyObject_CallMethod(difflib, "get_close_matches", "OOi", name, known, 1));
    if (PyList_Size(close) < 1)
        return "";
    PyObject *utf8 = tt_keep(w, PyUnicode_AsUTF8String(PyList_GetItem(close, 0)));
    return tt_arena_format(w->arena, " (did you mean `%s`?)", PyBytes_AsString(utf8));
}

static _Noreturn void unknown_attribute(Walker *w, Term t, PyObject *name)
{
    PyObject *utf8 = tt_keep(w, PyUnicode_AsUTF8String(name));
    tt_fail(w, "%s has no attribute `%s`%s", tt_describe(w, t), PyBytes_AsString(utf8), suggestion(w, name));
}

static Term bound_method(Walker *w, Term t, PyObject *function)
{
    Term *self = TT_NEW(w->arena, Term);
    *self = t;
    return (Term){.kind = TERM_METHOD, .count = 1, .object = function, .items = self};
}

/* A builtin or jit function that the class tl.tensor holds, bound to `t`. */
static Term method(Walker *w, Term t, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(tt_language_object(w, "tensor"), name);
    PyErr_Clear();
    bool usable = found && (PyObject_HasAttrString(found, "__triton_builtin__") ||
                            PyObject_HasAttrString((PyObject *)Py_TYPE(found), "__triton_kind__"));
    if (found)
        tt_keep(w, found);
    if (!usable)
        unknown_attribute(w, t, name);
    return bound_method(w, t, found);
}

/* The type of a block pointer is that of a pointer to tiles; its only method is advance. */
static Term block_pointer_attribute(Walker *w, Term t, PyObject *name)
{
    if (!PyUnicode_CompareWithASCIIString(name, "advance"))
        return bound_method(w, t, tt_language_object(w, "advance"));
    if (PyUnicode_CompareWithASCIIString(name, "type") && PyUnicode_CompareWithASCIIString(name, "dtype"))
        unknown_attribute(w, t, name);
    PyObject *tile = tile_type(w, t.items[0].dtype->pointee, t.block->shape, t.block->rank);
    PyObject *pointer = PyObject_CallFunctionObjArgs(tt_language_object(w, "pointer_type"), tile, NULL);
    return tt_python_term(w, tt_keep(w, pointer));
}

Term tt_semantic_attribute(Walker *w, Term t, PyObject *name)
{
    Term out;
    if (t.kind == TERM_BLOCK_POINTER)
        return block_pointer_attribute(w, t, name);
    return data_attribute(w, t, name, &out) ? out : method(w, t, name);
}
