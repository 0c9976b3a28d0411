/* Conversions between element types, element by element. */
#include "language/language.h"

static Typed cast_value(Builder *b, Opcode opcode, Typed x, const Dtype *to)
{
    return (Typed){tt_build_cast(b, opcode, x.value, tt_dtype_type(b->module, to)), to};
}

/* The same IR value, read as another dtype of the same IR type. */
static Typed relabel(Typed x, const Dtype *dtype) { return (Typed){x.value, dtype}; }

static Value *zero_like(Builder *b, Typed x)
{
    return tt_dtype_is_float(x.dtype) ? tt_build_float(b, x.value->type, 0)
                                      : tt_build_int(b, x.value->type, 0);
}

/* A pointer is compared as a number; fp8 has no comparison of its own. NaN is different from zero. */
Typed tt_typed_truth(Builder *b, Typed x)
{
    if (tt_dtype_is_bool(x.dtype))
        return x;
    if (tt_dtype_is_pointer(x.dtype))
        x = cast_value(b, OP_ptr_to_int, x, &tt_int64);
    x = tt_dtype_is_fp8(x.dtype) ? tt_typed_widen_float(b, x) : x;
    Opcode opcode = tt_dtype_is_float(x.dtype) ? OP_fne : OP_ne;
    return (Typed){tt_build2(b, opcode, x.value, zero_like(b, x)), &tt_int1};
}

Typed tt_typed_widen_float(Builder *b, Typed x)
{
    bool narrow = tt_dtype_is_float(x.dtype) && tt_dtype_width(x.dtype) < 32;
    return narrow ? cast_value(b, OP_float_cast, x, &tt_fp32) : x;
}

/* What decides about the new bits is the sign of the old type. */
static Typed int_to_int(Builder *b, Typed x, const Dtype *to)
{
    int from_width = tt_dtype_width(x.dtype), width = tt_dtype_width(to);
    if (from_width == width)
        return relabel(x, to);
    return cast_value(b,
                      width < from_width              ? OP_trunc
                      : tt_dtype_is_unsigned(x.dtype) ? OP_ext_u
                                                      : OP_ext_s,
                      x, to);
}

/* Rounding is said only where it can be: a float that does not become narrower keeps its value. */
static Typed float_to_float(Builder *b, Typed x, const Dtype *to, Rounding rounding)
{
    bool narrows = tt_dtype_width(to) < tt_dtype_width(x.dtype);
    Attr *attrs = NULL;
    if (narrows && rounding == ROUND_TO_ZERO)
        attrs = tt_attr_string(b->module, ATTR_rounding, "rtz", NULL);
    const Type *type = tt_with_element(b->module, x.value->type, tt_dtype_type(b->module, to));
    return (Typed){tt_build(b, OP_float_cast, &x.value, 1, type, attrs), to};
}

/* fp8 goes through fp32, which loses nothing: it holds every fp8 value, and integers that it rounds are
 * far beyond the largest fp8. */
static Typed int_to_float(Builder *b, Typed x, const Dtype *to)
{
    Opcode opcode = tt_dtype_is_unsigned(x.dtype) ? OP_int_to_float_u : OP_int_to_float_s;
    if (tt_dtype_is_fp8(to))
        return cast_value(b, OP_float_cast, cast_value(b, opcode, x, &tt_fp32), to);
    return cast_value(b, opcode, x, to);
}

static Typed float_to_int(Builder *b, Typed x, const Dtype *to)
{
    x = tt_dtype_is_fp8(x.dtype) ? tt_typed_widen_float(b, x) : x;
    return cast_value(b, to->is_unsigned ? OP_float_to_int_u : OP_float_to_int_s, x, to);
}

/* Pointers are 64 bits: any integer reaches them through int64. */
static Typed pointer_cast(Builder *b, Typed x, const Dtype *to)
{
    bool from_pointer = tt_dtype_is_pointer(x.dtype);
    if (from_pointer && tt_dtype_is_pointer(to)) {
        bool same = tt_dtype_type(b->module, x.dtype) == tt_dtype_type(b->module, to);
        return same ? relabel(x, to) : cast_value(b, OP_bitcast, x, to);
    }
    if (from_pointer)
        return int_to_int(b, cast_value(b, OP_ptr_to_int, x, &tt_int64), to);
    return cast_value(b, OP_int_to_ptr, int_to_int(b, x, &tt_int64), to);
}

bool tt_can_cast(const Dtype *from, const Dtype *to)
{
    bool one_pointer = tt_dtype_is_pointer(from) != tt_dtype_is_pointer(to);
    if (from == &tt_void || to == &tt_void)
        return false;
    if (one_pointer) /* the truth of a pointer is whether it is null */
        return tt_dtype_is_int(from) || tt_dtype_is_int(to);
    return true;
}

Typed tt_typed_cast(Builder *b, Typed x, const Dtype *to, Rounding rounding)
{
    TT_ASSERT(tt_can_cast(x.dtype, to));
    if (x.dtype == to)
        return x;
    if (tt_dtype_is_bool(to))
        return tt_typed_truth(b, x);
    if (tt_dtype_is_pointer(x.dtype) || tt_dtype_is_pointer(to))
        return pointer_cast(b, x, to);
    if (tt_dtype_is_float(x.dtype))
        return tt_dtype_is_float(to) ? float_to_float(b, x, to, rounding) : float_to_int(b, x, to);
    return tt_dtype_is_float(to) ? int_to_float(b, x, to) : int_to_int(b, x, to);
}

Value *tt_build_filler(Builder *b, const Type *type)
{
    if (tt_is_float(type))
        return tt_build_float(b, type, 0);
    if (tt_is_int(type))
        return tt_build_int(b, type, 0);
    const Type *address = tt_with_element(b->module, type, tt_scalar_type(b->module, TT_I64));
    return tt_build_cast(b, OP_int_to_ptr, tt_build_int(b, address, 0), tt_element(type));
}
