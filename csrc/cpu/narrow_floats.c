/* Conversions between the narrow float formats (as bits in integers) and f32, in integer code that works on scalars and
 * vectors alike and is exact: nearest even, denormals, NaN and saturation as support/number.c has them. f16 uses the
 * hardware's conversions where there are some; bf16 does not, for those flush denormals. */
#include "cpu/emit.h"

static LLVMTypeRef ints_like(Emit *e, LLVMValueRef value) { return with_element(LLVMTypeOf(value), e->i32); }

static LLVMValueRef bits_of_f32(Emit *e, LLVMValueRef value)
{
    return LLVMBuildBitCast(e->b, value, ints_like(e, value), "");
}

static LLVMValueRef f32_of_bits(Emit *e, LLVMValueRef bits)
{
    return LLVMBuildBitCast(e->b, bits, with_element(LLVMTypeOf(bits), e->f32), "");
}

static LLVMValueRef and_constant(Emit *e, LLVMValueRef x, int64_t mask)
{
    return LLVMBuildAnd(e->b, x, const_int(LLVMTypeOf(x), mask), "");
}

static LLVMValueRef or_constant(Emit *e, LLVMValueRef x, int64_t bits)
{
    return LLVMBuildOr(e->b, x, const_int(LLVMTypeOf(x), bits), "");
}

static LLVMValueRef add_constant(Emit *e, LLVMValueRef x, int64_t addend)
{
    return LLVMBuildAdd(e->b, x, const_int(LLVMTypeOf(x), addend), "");
}

static LLVMValueRef shift_left(Emit *e, LLVMValueRef x, int count)
{
    return LLVMBuildShl(e->b, x, const_int(LLVMTypeOf(x), count), "");
}

static LLVMValueRef shift_right(Emit *e, LLVMValueRef x, int count)
{
    return LLVMBuildLShr(e->b, x, const_int(LLVMTypeOf(x), count), "");
}

static LLVMValueRef compare_constant(Emit *e, LLVMIntPredicate predicate, LLVMValueRef x, int64_t constant)
{
    return LLVMBuildICmp(e->b, predicate, x, const_int(LLVMTypeOf(x), constant), "");
}

/* The bits of 2^exponent as f32. */
static int64_t f32_power(int exponent) { return (int64_t)(exponent + 127) << 23; }

static bool uses_hardware(const Emit *e, const FloatFormat *format)
{
    return format == &tt_format_f16 && (e->codegen->host.has_f16c || !e->codegen->host.is_x86);
}

/* ---- to f32 ----------------------------------------------------------------------------------------------------------- */

static LLVMValueRef decode(Emit *e, LLVMValueRef value, const FloatFormat *format)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    if (uses_hardware(e, format)) {
        LLVMValueRef half = LLVMBuildBitCast(e->b, value, with_element(type, e->f16), "");
        return LLVMBuildFPExt(e->b, half, with_element(type, e->f32), "");
    }
    LLVMValueRef bits = LLVMBuildZExt(e->b, value, with_element(type, e->i32), "");
    if (format == &tt_format_bf16)
        return f32_of_bits(e, shift_left(e, bits, 16));
    int mantissa = format->mantissa_bits, top = (1 << format->exponent_bits) - 1;
    LLVMValueRef sign = shift_left(e, shift_right(e, bits, format->bits - 1), 31);
    LLVMValueRef magnitude = and_constant(e, bits, (1 << (format->bits - 1)) - 1);
    LLVMValueRef aligned = shift_left(e, magnitude, 23 - mantissa);
    LLVMValueRef result = add_constant(e, aligned, (int64_t)(127 - format->bias) << 23);
    /* A denormal is its mantissa as an integer, scaled: exact. */
    LLVMTypeRef floats = with_element(type, e->f32);
    LLVMValueRef units = LLVMBuildSIToFP(e->b, magnitude, floats, "");
    LLVMValueRef unit = f32_of_bits(e, const_int(LLVMTypeOf(bits), f32_power(1 - format->bias - mantissa)));
    LLVMValueRef denormal = bits_of_f32(e, LLVMBuildFMul(e->b, units, unit, ""));
    result = emit_select(e, compare_constant(e, LLVMIntULT, magnitude, 1 << mantissa), denormal, result);
    if (format->has_infinity)
        result = emit_select(e, compare_constant(e, LLVMIntUGE, magnitude, (int64_t)top << mantissa),
                             or_constant(e, aligned, 0x7f800000), result);
    else if (format->has_nan)
        result = emit_select(e, compare_constant(e, LLVMIntEQ, magnitude, (1 << (format->bits - 1)) - 1),
                             const_int(LLVMTypeOf(bits), 0x7fc00000), result);
    return f32_of_bits(e, LLVMBuildOr(e->b, result, sign, ""));
}

/* ---- from f32 --------------------------------------------------------------------------------------------------------- */

/* f64 to f32 so that a second rounding gives what one rounding of the f64 would: toward zero, with the last bit set
 * when anything was lost ("round to odd", Boldo and Melquiond, 2008). */
static LLVMValueRef round_to_odd(Emit *e, LLVMValueRef value, bool sticky)
{
    LLVMTypeRef type = LLVMTypeOf(value), floats = with_element(type, e->f32);
    LLVMValueRef nearest = LLVMBuildFPTrunc(e->b, value, floats, "");
    LLVMValueRef back = LLVMBuildFPExt(e->b, nearest, type, "");
    LLVMValueRef too_far = LLVMBuildFCmp(e->b, LLVMRealOGT, emit_intrinsic1(e, "llvm.fabs", back),
                                         emit_intrinsic1(e, "llvm.fabs", value), "");
    LLVMValueRef bits = bits_of_f32(e, nearest);
    LLVMValueRef down = emit_select(e, too_far, add_constant(e, bits, -1), bits);
    if (sticky)
        down = or_constant(e, down, 1);
    LLVMValueRef inexact = LLVMBuildFCmp(e->b, LLVMRealONE, back, value, "");
    return f32_of_bits(e, emit_select(e, inexact, down, bits));
}

/* The bits of |value| in the format when it is below the smallest normal number. */
static LLVMValueRef encode_denormal(Emit *e, LLVMValueRef magnitude, const FloatFormat *format,
                                    bool toward_zero)
{
    LLVMTypeRef type = LLVMTypeOf(magnitude);
    LLVMValueRef value = f32_of_bits(e, magnitude);
    int unit = 1 - format->bias - format->mantissa_bits;
    if (toward_zero) {
        LLVMValueRef scale = f32_of_bits(e, const_int(type, f32_power(-unit)));
        LLVMValueRef units = LLVMBuildFPToSI(e->b, LLVMBuildFMul(e->b, value, scale, ""), type, "");
        return LLVMBuildFreeze(e->b, units, "");
    }
    /* Added to 2^23 units, the value is rounded to units by the addition. */
    LLVMValueRef anchor = const_int(type, f32_power(23 + unit));
    LLVMValueRef sum = LLVMBuildFAdd(e->b, value, f32_of_bits(e, anchor), "");
    return LLVMBuildSub(e->b, bits_of_f32(e, sum), anchor, "");
}

static LLVMValueRef encode(Emit *e, LLVMValueRef value, const FloatFormat *format, bool toward_zero)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeRef narrow = with_element(type, LLVMIntTypeInContext(e->context, (unsigned)format->bits));
    if (uses_hardware(e, format) && !toward_zero) {
        LLVMValueRef half = LLVMBuildFPTrunc(e->b, value, with_element(type, e->f16), "");
        return LLVMBuildBitCast(e->b, half, narrow, "");
    }
    int mantissa = format->mantissa_bits, shift = 23 - mantissa, top = (1 << format->exponent_bits) - 1;
    int64_t infinity = (int64_t)top << mantissa, all = (1 << (format->bits - 1)) - 1;
    int64_t largest = format->has_infinity ? infinity - 1 : format->has_nan ? all - 1 : all;
    LLVMValueRef bits = bits_of_f32(e, value);
    LLVMValueRef magnitude = and_constant(e, bits, 0x7fffffff), rounded = magnitude;
    if (!toward_zero) {
        LLVMValueRef odd = and_constant(e, shift_right(e, magnitude, shift), 1);
        rounded = LLVMBuildAdd(e->b, add_constant(e, magnitude, (1 << (shift - 1)) - 1), odd, "");
    }
    LLVMValueRef result = shift_right(e, rounded, shift);
    if (format->bias != 127) {
        result = add_constant(e, result, -((int64_t)(127 - format->bias) << mantissa));
        LLVMValueRef below = compare_constant(e, LLVMIntULT, magnitude, f32_power(1 - format->bias));
        result = emit_select(e, below, encode_denormal(e, magnitude, format, toward_zero), result);
    }
    LLVMTypeRef ints = LLVMTypeOf(bits);
    if (format->saturates || toward_zero)
        result = emit_intrinsic2(e, "llvm.smin", result, const_int(ints, largest));
    else
        result = emit_intrinsic2(e, "llvm.smin", result, const_int(ints, infinity));
    if (toward_zero && !format->saturates)
        result = emit_select(e, compare_constant(e, LLVMIntEQ, magnitude, 0x7f800000),
                             const_int(ints, infinity), result);
    int64_t nan = format->has_infinity ? infinity | 1 << (mantissa - 1) : all;
    result =
        emit_select(e, compare_constant(e, LLVMIntUGT, magnitude, 0x7f800000), const_int(ints, nan), result);
    LLVMValueRef sign = shift_left(e, shift_right(e, bits, 31), format->bits - 1);
    return LLVMBuildTrunc(e->b, LLVMBuildOr(e->b, result, sign, ""), narrow, "");
}

/* ---- what others use -------------------------------------------------------------------------------------------------- */

static bool is_narrow(const Type *type)
{
    const FloatFormat *format = tt_float_format(type);
    return format && format->bits < 32;
}

LLVMValueRef emit_widen(Emit *e, LLVMValueRef value, const Type *type)
{
    return is_narrow(type) ? decode(e, value, tt_float_format(type)) : value;
}

LLVMValueRef emit_narrow(Emit *e, LLVMValueRef value, const Type *type)
{
    return is_narrow(type) ? encode(e, value, tt_float_format(type), false) : value;
}

LLVMValueRef emit_float_cast(Emit *e, LLVMValueRef value, const Type *from, const Type *to, bool toward_zero)
{
    from = tt_element(from), to = tt_element(to);
    if (from == to)
        return value;
    value = emit_widen(e, value, from);
    if (to->kind == TT_F64)
        return from->kind == TT_F64
                   ? value
                   : LLVMBuildFPExt(e->b, value, with_element(LLVMTypeOf(value), e->f64), "");
    if (to->kind == TT_F32) {
        if (from->kind != TT_F64)
            return value;
        if (toward_zero)
            return round_to_odd(e, value, false);
        return LLVMBuildFPTrunc(e->b, value, with_element(LLVMTypeOf(value), e->f32), "");
    }
    if (from->kind == TT_F64)
        value = round_to_odd(e, value, true);
    return encode(e, value, tt_float_format(to), toward_zero);
}
