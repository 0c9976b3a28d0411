/* Attributes of tensors and block pointers: x.shape, x.dtype, x.T, x.sum(...), ... */
#include "frontend/semantic.h"

const char *tt_call_name(Walker *w) { return tt_arena_format(w->arena, "tl.%s", w->call->name); }

static bool option(const Walker *w, const char *name, bool otherwise)
{
    PyObject *value = w->options ? PyDict_GetItemString(w->options, name) : NULL;
    return value && value != Py_None ? PyObject_IsTrue(value) == 1 : otherwise;
}

bool tt_debug(const Walker *w) { return option(w, "debug", false); }
bool tt_checks_overflow(const Walker *w) { return tt_debug(w) && option(w, "sanitize_overflow", true); }

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

/* What a tensor is; all known at compile time except the transpose. */
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

/* What arrays have and tiles spell otherwise. */
static const char *habit(const char *name)
{
    static const struct {
        const char *name, *remedy;
    } habits[] = {
        {"mean", "divide the sum by the number of elements: tl.sum(x, axis) / n"},
        {"std", "compute it from tl.sum(x, axis) and tl.sum(x * x, axis)"},
        {"var", "compute it from tl.sum(x, axis) and tl.sum(x * x, axis)"},
        {"any", "take tl.max of the condition as integers: tl.max(c.to(tl.int32), axis) > 0"},
        {"all", "take tl.min of the condition as integers: tl.min(c.to(tl.int32), axis) > 0"},
        {"astype", "convert with x.to(dtype)"},
        {"float", "convert with x.to(tl.float32)"},
        {"half", "convert with x.to(tl.float16)"},
        {"int", "convert with x.to(tl.int32)"},
        {"long", "convert with x.to(tl.int64)"},
        {"size", "the number of elements is x.numel, the extents are x.shape"},
        {"stride", "a tile has no strides: pass those of an array as arguments"},
        {"ndim", "the number of dimensions is len(x.shape)"},
        {"flatten", "take tl.ravel(x)"},
        {"transpose", "take tl.trans(x) or tl.permute(x, dims)"},
        {"dot", "take tl.dot(x, y)"},
        {"clip", "take tl.clamp(x, low, high)"},
        {"append", "tiles do not grow: write each part to memory with tl.store"},
    };
    for (size_t i = 0; i < TT_COUNT(habits); i++)
        if (!strcmp(habits[i].name, name))
            return habits[i].remedy;
    return NULL;
}

static _Noreturn void unknown_attribute(Walker *w, Term t, PyObject *name)
{
    const char *text = PyBytes_AsString(tt_keep(w, PyUnicode_AsUTF8String(name))), *remedy = habit(text);
    const char *closest = tt_closest(w, text, tt_keep(w, PyObject_Dir(tt_language_object(w, "tensor"))));
    static const char *const of_arrays[] = {"size",   "stride",        "strides", "ndim",
                                            "device", "is_contiguous", "dim"};
    for (size_t i = 0; i < TT_COUNT(of_arrays) && tt_dtype_is_pointer(t.dtype); i++)
        if (!strcmp(of_arrays[i], text))
            remedy = "a kernel gets the address of an array and nothing else: pass extents and strides as "
                     "arguments";
    if (!remedy && closest)
        remedy = tt_arena_format(w->arena, "did you mean `%s`?", closest);
    if (!remedy)
        remedy = "a tile has the methods of tl.tensor, and every function of triton.language takes it";
    tt_fail_with_remedy(w, remedy, "%s has no attribute `%s`", tt_describe(w, t), text);
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
    tt_look_away(w);
    bool usable = found && (PyObject_HasAttrString(found, "__triton_builtin__") ||
                            PyObject_HasAttrString((PyObject *)Py_TYPE(found), "__triton_kind__"));
    if (found)
        tt_keep(w, found);
    if (!usable)
        unknown_attribute(w, t, name);
    return bound_method(w, t, found);
}

/* The type of a block pointer is that of a pointer to tiles; its methods are advance, load and store. */
static Term block_pointer_attribute(Walker *w, Term t, PyObject *name)
{
    static const char *const methods[] = {"advance", "load", "store"};
    for (size_t i = 0; i < TT_COUNT(methods); i++)
        if (!PyUnicode_CompareWithASCIIString(name, methods[i]))
            return bound_method(w, t, tt_language_object(w, methods[i]));
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
