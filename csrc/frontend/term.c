/* Terms: making them, and reading what is known of them at compile time. */
#include "frontend/walker.h"
#include <math.h>

PyObject *tt_keep(Walker *w, PyObject *new_reference)
{
    if (!new_reference)
        tt_python_error(w);
    tt_push(w->arena, w->state->kept, new_reference);
    return new_reference;
}

/* ---- making --------------------------------------------------------------------------------------------------------- */

Term tt_value_term(Value *value, const Dtype *dtype)
{
    return (Term){.kind = TERM_VALUE, .dtype = dtype, .value = value};
}

Term tt_typed_term(Typed x) { return tt_value_term(x.value, x.dtype); }

Typed tt_typed_of(Term t) { return (Typed){t.value, t.dtype}; }

Term tt_tuple_term(Walker *w, const Term *items, int count)
{
    return (Term){.kind = TERM_TUPLE,
                  .count = count,
                  .items = tt_arena_copy(w->arena, items, sizeof(Term) * (size_t)count)};
}

Term tt_tuple_like(Walker *w, PyObject *tuple)
{
    int count = (int)PyTuple_Size(tuple);
    Term term = {.kind = TERM_TUPLE, .count = count, .items = TT_NEW_ARRAY(w->arena, Term, count)};
    if (!PyTuple_CheckExact(tuple) && tt_attribute_or_null(w, tuple, FIELD__fields))
        term.object = tt_keep(w, Py_NewRef((PyObject *)Py_TYPE(tuple)));
    return term;
}

static Term tuple_of_objects(Walker *w, PyObject *tuple)
{
    tt_check_depth(w);
    Term term = tt_tuple_like(w, tuple);
    for (int i = 0; i < term.count; i++)
        term.items[i] = tt_python_term(w, PyTuple_GetItem(tuple, i));
    return term;
}

/* NumPy's scalars are no int, float or bool, but stand for one; NULL for anything that does not. */
static PyObject *plain_number(Walker *w, PyObject *object)
{
    PyObject *number = NULL, *type = (PyObject *)Py_TYPE(object);
    if (PyIndex_Check(object)) {
        number = PyNumber_Index(object);
    } else {
        PyObject *module = tt_attribute_or_null(w, type, FIELD___module__);
        bool is_numpy =
            module && PyUnicode_Check(module) && !PyUnicode_CompareWithASCIIString(module, "numpy");
        number = is_numpy && !PyType_Check(object) ? PyObject_CallMethod(object, "item", NULL) : NULL;
        if (number && !PyLong_Check(number) && !PyFloat_Check(number))
            Py_CLEAR(number);
    }
    tt_look_away(w); /* an array, perhaps */
    return number;
}

Term tt_python_term(Walker *w, PyObject *object)
{
    Term term = {.kind = TERM_PYTHON, .object = object};
    if (object == Py_None || PyLong_Check(object) || PyUnicode_Check(object) || PyFloat_Check(object)) {
        tt_keep(w, Py_NewRef(object));
        return term;
    }
    if (PyTuple_Check(object))
        return tuple_of_objects(w, object);
    if (tt_object_kind(w, object) == OBJECT_CONSTEXPR) {
        tt_check_depth(w);
        return tt_python_term(w, tt_attribute(w, object, FIELD_value));
    }
    PyObject *number = tt_object_kind(w, object) == OBJECT_OTHER ? plain_number(w, object) : NULL;
    term.object = tt_keep(w, number ? number : Py_NewRef(object));
    return term;
}

Term tt_new_python_term(Walker *w, PyObject *object) { return tt_python_term(w, tt_keep(w, object)); }

Term tt_none(Walker *w)
{
    (void)w;
    return (Term){.kind = TERM_PYTHON, .object = Py_None};
}

Term tt_bool_term(Walker *w, bool value)
{
    (void)w;
    return (Term){.kind = TERM_PYTHON, .object = value ? Py_True : Py_False};
}

Term tt_int_term(Walker *w, int64_t value)
{
    return (Term){.kind = TERM_PYTHON, .object = tt_keep(w, PyLong_FromLongLong(value))};
}

Term tt_string_term(Walker *w, const char *text)
{
    return (Term){.kind = TERM_PYTHON, .object = tt_keep(w, PyUnicode_FromString(text))};
}

Term tt_dtype_term(Walker *w, const Dtype *dtype)
{
    return (Term){.kind = TERM_PYTHON, .object = tt_dtype_to_object(w, dtype)};
}

Term tt_shape_term(Walker *w, const int64_t *shape, int rank)
{
    Term items[TT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        items[i] = tt_int_term(w, shape[i]);
    return tt_tuple_term(w, items, rank);
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

bool tt_is_number(Term t)
{
    return t.kind == TERM_PYTHON && (PyLong_Check(t.object) || PyFloat_Check(t.object));
}

int tt_term_shape(Term t, const int64_t **shape)
{
    const Type *type = t.value->type;
    *shape = type->shape;
    return tt_is_tile(type) ? type->rank : 0;
}

/* The Python number that a scalar constant of the IR stands for; NULL for anything else. */
static PyObject *constant_number(Walker *w, Term t)
{
    const Op *op = tt_is_tile(t.value->type) ? NULL : tt_def(t.value, OP_constant);
    if (!op)
        return NULL;
    const Attr *attr = tt_find_attr(op, ATTR_value);
    if (tt_dtype_is_float(t.dtype))
        return tt_keep(w, PyFloat_FromDouble(attr->f));
    if (tt_dtype_is_bool(t.dtype))
        return attr->i ? Py_True : Py_False;
    if (!tt_dtype_is_int(t.dtype))
        return NULL;
    uint64_t mask = ~0ull >> (64 - tt_bit_width(t.value->type));
    return tt_keep(w, t.dtype->is_unsigned ? PyLong_FromUnsignedLongLong((uint64_t)attr->i & mask)
                                           : PyLong_FromLongLong(attr->i));
}

/* A tuple, or the named tuple it was, of what is known of the items. */
static PyObject *python_tuple(Walker *w, Term t)
{
    PyObject *tuple = tt_keep(w, PyTuple_New(t.count));
    for (int i = 0; i < t.count; i++) {
        PyObject *item = tt_term_python(w, t.items[i]);
        if (!item)
            return NULL;
        PyTuple_SetItem(tuple, i, Py_NewRef(item));
    }
    return tt_class_tuple(w, t, tuple);
}

Term tt_as_slice(Walker *w, Term t)
{
    static const FieldName parts[] = {FIELD_start, FIELD_stop, FIELD_step};
    Term items[TT_COUNT(parts)];
    if (t.kind != TERM_PYTHON || !PySlice_Check(t.object))
        return t;
    for (size_t i = 0; i < TT_COUNT(parts); i++)
        items[i] = tt_python_term(w, tt_attribute(w, t.object, parts[i]));
    Term slice = tt_tuple_term(w, items, TT_COUNT(parts));
    slice.kind = TERM_SLICE;
    return slice;
}

PyObject *tt_term_python(Walker *w, Term t)
{
    switch (t.kind) {
    case TERM_PYTHON:
        return t.object;
    case TERM_VALUE:
        return constant_number(w, t);
    case TERM_TUPLE:
        return python_tuple(w, t);
    default:
        return NULL;
    }
}

static PyObject *scalar_object(Walker *w, Term t)
{
    return t.kind == TERM_PYTHON ? t.object : t.kind == TERM_VALUE ? constant_number(w, t) : NULL;
}

bool tt_term_int(Walker *w, Term t, int64_t *out)
{
    PyObject *object = scalar_object(w, t);
    if (!object || !PyLong_Check(object))
        return false;
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow)
        tt_fail(w, "%s does not fit into 64 bits", tt_describe(w, t));
    return true;
}

/* As tt_term_int; also from an int. */
static bool term_float(Walker *w, Term t, double *out)
{
    PyObject *object = scalar_object(w, t);
    if (!object || (!PyLong_Check(object) && !PyFloat_Check(object)))
        return false;
    *out = PyFloat_AsDouble(object);
    if (*out == -1 && PyErr_Occurred()) {
        tt_look_away(w); /* an int past the largest double */
        tt_fail(w, "%s is too large for a float", tt_describe(w, t));
    }
    return true;
}

bool tt_term_bool(Walker *w, Term t, bool *out)
{
    PyObject *object = scalar_object(w, t);
    if (!object || !PyLong_Check(object))
        return false;
    *out = PyObject_IsTrue(object) == 1;
    return true;
}

const char *tt_term_string(Walker *w, Term t)
{
    return t.kind == TERM_PYTHON && PyUnicode_Check(t.object) ? tt_utf8(w, t.object) : NULL;
}

const Dtype *tt_term_dtype(Walker *w, Term t)
{
    return t.kind == TERM_PYTHON ? tt_dtype_from_object(w, t.object) : NULL;
}

bool tt_term_items(Walker *w, Term t, const Term **items, int *count)
{
    if (t.kind == TERM_PYTHON && PyList_Check(t.object))
        t = tuple_of_objects(w, tt_keep(w, PyList_AsTuple(t.object)));
    *items = t.items;
    *count = t.count;
    return t.kind == TERM_TUPLE;
}

/* ---- numbers to values ---------------------------------------------------------------------------------------------- */

static const Dtype *int_dtype(PyObject *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (!overflow)
        return value >= INT32_MIN && value <= INT32_MAX ? &tt_int32
               : value >= 0 && value <= UINT32_MAX      ? &tt_uint32
                                                        : &tt_int64;
    PyLong_AsUnsignedLongLong(number);
    bool fits = overflow > 0 && !PyErr_Occurred();
    PyErr_Clear(); /* OverflowError */
    return fits ? &tt_uint64 : NULL;
}

static const Dtype *dtype_of_number(PyObject *number)
{
    if (Py_IS_TYPE(number, &PyBool_Type))
        return &tt_int1;
    if (PyLong_Check(number))
        return int_dtype(number);
    double value = PyFloat_AsDouble(number);
    return isfinite(value) && fabs(value) > 3.4028234663852886e38 ? &tt_fp64 : &tt_fp32;
}

const Dtype *tt_number_dtype(Walker *w, Term number)
{
    const Dtype *dtype = dtype_of_number(number.object);
    if (!dtype)
        tt_fail(w, "%s does not fit into 64 bits", tt_describe(w, number));
    return dtype;
}

/* As hardware casts infinities: to the ends of the type. */
static int64_t end_of(const Dtype *dtype, bool is_last)
{
    bool has_sign = !tt_dtype_is_unsigned(dtype);
    int64_t last = (int64_t)(~0ull >> (64 + has_sign - tt_dtype_width(dtype)));
    return is_last ? last : has_sign ? -last - 1 : 0;
}

Term tt_number_value(Walker *w, Term number, const Dtype *dtype)
{
    if (number.kind == TERM_VALUE && number.dtype == dtype)
        return number;
    TT_ASSERT(tt_is_number(number) && dtype->kind < TT_PTR);
    const Type *type = tt_dtype_ir(w, dtype);
    PyObject *object = number.object;
    if (tt_dtype_is_float(dtype)) {
        double value = 0;
        term_float(w, number, &value);
        return tt_value_term(tt_build_float(&w->builder, type, value), dtype);
    }
    if (PyFloat_Check(object) && isinf(PyFloat_AsDouble(object)))
        return tt_value_term(tt_build_int(&w->builder, type, end_of(dtype, PyFloat_AsDouble(object) > 0)),
                             dtype);
    if (PyFloat_Check(object)) { /* toward zero, as a cast does */
        object = PyNumber_Long(object);
        if (!object) {
            tt_look_away(w);
            tt_fail(w, "%s is no integer, and %s is needed", tt_describe(w, number), dtype->name);
        }
        tt_keep(w, object);
    }
    if (tt_dtype_is_bool(dtype))
        return tt_value_term(tt_build_int(&w->builder, type, PyObject_IsTrue(object) == 1), dtype);
    uint64_t bits = PyLong_AsUnsignedLongLongMask(object);
    return tt_value_term(tt_build_int(&w->builder, type, (int64_t)bits), dtype);
}

Term tt_term_value(Walker *w, Term t)
{
    if (t.kind == TERM_VALUE)
        return t;
    if (tt_is_number(t))
        return tt_number_value(w, t, tt_number_dtype(w, t));
    tt_fail(w, "a run-time value is needed here, not %s", tt_describe(w, t));
}
