/* Element types: which type operands meet in, and conversions between types. The rules are those of the
 * public language: a number (compile-time int, float or bool) is weak and takes the type of what it meets,
 * unless it is of a higher kind. */
#include "frontend/semantic.h"
#include <math.h>

/* The order of kinds: the higher one decides the type of a result. */
static int kind_of(const Dtype *d) { return tt_dtype_is_bool(d) ? 0 : tt_dtype_is_int(d) ? 1 : 2; }

static const Dtype *common_float(const Dtype *a, const Dtype *b)
{
    if (tt_dtype_width(a) != tt_dtype_width(b))
        return tt_dtype_width(a) > tt_dtype_width(b) ? a : b;
    return &tt_fp16; /* fp16 with bf16, or one fp8 with another */
}

static const Dtype *common_int(const Dtype *a, const Dtype *b)
{
    int width_a = tt_dtype_width(a), width_b = tt_dtype_width(b);
    if (a->is_unsigned == b->is_unsigned || width_a != width_b)
        return width_a >= width_b ? a : b;
    return a->is_unsigned ? a : b;
}

static const Dtype *common_dtype(const Dtype *a, const Dtype *b)
{
    if (a == b)
        return a;
    if (tt_dtype_is_pointer(a) || tt_dtype_is_pointer(b) || a == &tt_void || b == &tt_void)
        return NULL;
    if (kind_of(a) != kind_of(b))
        return kind_of(a) > kind_of(b) ? a : b;
    return tt_dtype_is_float(a) ? common_float(a, b) : common_int(a, b);
}

/* Raises for what is no operand at all: None, a string, a tuple, ... */
static const Dtype *operand_dtype(Walker *w, const char *what, Term t)
{
    if (tt_is_value(t))
        return t.dtype;
    if (tt_is_number(t))
        return tt_number_dtype(w, t);
    tt_fail(w, "%s takes tensors and numbers, not %s", what, tt_describe(w, t));
}

const Dtype *tt_promoted_dtype(Walker *w, const char *what, Term a, Term b)
{
    const Dtype *type_a = operand_dtype(w, what, a), *type_b = operand_dtype(w, what, b);
    if (tt_is_number(a) != tt_is_number(b) && !tt_dtype_is_pointer(type_a) && !tt_dtype_is_pointer(type_b)) {
        const Dtype *number = tt_is_number(a) ? type_a : type_b, *other = tt_is_number(a) ? type_b : type_a;
        if (kind_of(number) <= kind_of(other))
            return other;
    }
    const Dtype *common = common_dtype(type_a, type_b);
    if (!common)
        tt_fail(w, "%s does not take %s and %s", what, tt_describe(w, a), tt_describe(w, b));
    return common;
}

/* The number may be any Python int, far beyond 64 bits as well. */
bool tt_int_fits(Term number, int width, bool is_unsigned)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number.object, &overflow);
    if (overflow) {
        if (overflow < 0 || !is_unsigned || width < 64)
            return false;
        unsigned long long wide = PyLong_AsUnsignedLongLong(number.object);
        bool fits = !(wide == (unsigned long long)-1 && PyErr_Occurred());
        PyErr_Clear(); /* OverflowError */
        return fits;
    }
    if (is_unsigned)
        return value >= 0 && (width == 64 || value < 1LL << width);
    return width == 64 || (value >= -(1LL << (width - 1)) && value < 1LL << (width - 1));
}

Term tt_convert_operand(Walker *w, const char *what, Term operand, const Dtype *dtype)
{
    if (!tt_is_number(operand) || tt_dtype_is_pointer(dtype))
        return tt_cast(w, operand, dtype, ROUND_NEAREST_EVEN);
    bool is_int = PyLong_Check(operand.object) && tt_dtype_is_int(dtype) && !tt_dtype_is_bool(dtype);
    if (is_int && !tt_int_fits(operand, tt_dtype_width(dtype), dtype->is_unsigned))
        tt_fail_with_remedy(w, "convert the tensor to a type that holds the number, with .to(...)",
                            "%s in %s is out of range for %s, the type of the other operand",
                            tt_describe(w, operand), what, dtype->name);
    return tt_number_value(w, operand, dtype);
}

void tt_unify(Walker *w, const char *what, Term *terms, int count)
{
    /* Among several, numbers are weak against the tensors together. */
    Term meet = terms[0];
    for (int i = 1; i < count; i++) {
        const Dtype *dtype = tt_promoted_dtype(w, what, meet, terms[i]);
        Term tensor = tt_is_value(meet) ? meet : terms[i];
        if (tt_is_value(tensor))
            meet = tt_value_term(tensor.value, dtype);
        else if (tt_number_dtype(w, meet) != dtype)
            meet = terms[i];
    }
    const Dtype *dtype = tt_is_value(meet) ? meet.dtype : tt_number_dtype(w, meet);
    tt_common_shape(w, what, terms, count); /* so that a mismatch names the operands as they are */
    for (int i = 0; i < count; i++)
        terms[i] = tt_convert_operand(w, what, terms[i], dtype);
    tt_broadcast_together(w, what, terms, count);
}

/* ---- conversions --------------------------------------------------------------------------------------- */

Term tt_to_bool(Walker *w, Term t)
{
    return tt_typed_term(tt_typed_truth(&w->builder, tt_typed_of(tt_term_value(w, t))));
}

Term tt_widen_float(Walker *w, Term t)
{
    return tt_typed_term(tt_typed_widen_float(&w->builder, tt_typed_of(t)));
}

/* A number is rounded or wrapped once, straight from Python: 0.1 becomes the fp16 next to 0.1. */
Term tt_cast(Walker *w, Term t, const Dtype *dtype, Rounding rounding)
{
    if (tt_is_number(t) && !tt_dtype_is_pointer(dtype) && dtype != &tt_void)
        return tt_number_value(w, t, dtype);
    t = tt_term_value(w, t);
    if (t.dtype == dtype)
        return t;
    if (dtype == &tt_void)
        tt_fail(w, "%s cannot be converted to void", tt_describe(w, t));
    if (!tt_can_cast(t.dtype, dtype))
        tt_fail_with_remedy(w, "go through tl.int64 if the bits are meant", "%s cannot be converted to %s",
                            tt_describe(w, t), dtype->name);
    return tt_typed_term(tt_typed_cast(&w->builder, tt_typed_of(t), dtype, rounding));
}

/* Does the integer type hold the number, with a sign or without? All bits set are often written 0xFF, or -1. */
static bool holds(Walker *w, PyObject *number, const Dtype *dtype)
{
    if (PyFloat_Check(number)) {
        double value = PyFloat_AsDouble(number);
        if (value != floor(value) || isinf(value))
            return false;
        number = tt_keep(w, PyLong_FromDouble(value));
    }
    Term t = tt_python_term(w, number);
    int width = tt_dtype_width(dtype);
    return tt_int_fits(t, width, true) || tt_int_fits(t, width, false);
}

Term tt_cast_exactly(Walker *w, Term t, const Dtype *dtype)
{
    PyObject *number = tt_is_tile_term(t) ? NULL : tt_term_python(w, t);
    bool is_int = tt_dtype_is_int(dtype) && !tt_dtype_is_bool(dtype);
    if (is_int && number && (PyLong_Check(number) || PyFloat_Check(number)) && !holds(w, number, dtype))
        tt_fail_with_remedy(
            w,
            tt_arena_format(w->arena,
                            "take a type that holds it, or convert it where that is meant: tl.cast(x, %s)",
                            tt_dtype_spelling(w, dtype)),
            "%s got %s, which %s does not hold", tt_call_name(w), tt_describe(w, tt_python_term(w, number)),
            dtype->name);
    return tt_cast(w, t, dtype, ROUND_NEAREST_EVEN);
}

Term tt_semantic_cast(Walker *w, Term t, const Dtype *dtype)
{
    return tt_cast(w, t, dtype, ROUND_NEAREST_EVEN);
}

Term tt_bitcast(Walker *w, Term t, const Dtype *dtype)
{
    t = tt_term_value(w, t);
    if (tt_dtype_width(t.dtype) != tt_dtype_width(dtype))
        tt_fail_with_remedy(w, "take a type of the same width, or leave bitcast out to convert the values",
                            "%s has %d bits an element and cannot be read as %s, which has %d",
                            tt_describe(w, t), tt_dtype_width(t.dtype), dtype->name, tt_dtype_width(dtype));
    if (tt_dtype_is_pointer(t.dtype) != tt_dtype_is_pointer(dtype)) {
        if (tt_dtype_is_pointer(dtype))
            return tt_cast(w, tt_bitcast(w, t, &tt_int64), dtype, ROUND_NEAREST_EVEN);
        return tt_bitcast(w, tt_cast(w, t, &tt_int64, ROUND_NEAREST_EVEN), dtype);
    }
    if (tt_dtype_ir(w, t.dtype) == tt_dtype_ir(w, dtype))
        return tt_value_term(t.value, dtype);
    return tt_value_term(tt_build_cast(&w->builder, OP_bitcast, t.value, tt_dtype_ir(w, dtype)), dtype);
}
