#include "codegen/narrow_floats.h"

/* ---- integers and floats of the shape of a value ------------------------------------------------------------------------------ */

static LLVMTypeRef with_element(LLVMTypeRef shape, LLVMTypeRef element)
{
    return LLVMGetTypeKind(shape) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(shape))
                                                        : element;
}

static LLVMTypeRef ints_like(LLVMValueRef value, int bits)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return with_element(type, LLVMIntTypeInContext(LLVMGetTypeContext(type), (unsigned)bits));
}

static LLVMTypeRef floats_like(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return with_element(type, LLVMFloatTypeInContext(LLVMGetTypeContext(type)));
}

static LLVMValueRef constant_like(LLVMValueRef value, int64_t constant)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return LLVMConstInt(type, (unsigned long long)constant, 1);
    LLVMValueRef elements[64],
        element = LLVMConstInt(LLVMGetElementType(type), (unsigned long long)constant, 1);
    unsigned count = LLVMGetVectorSize(type);
    TT_ASSERT(count <= TT_COUNT(elements));
    for (unsigned i = 0; i < count; i++)
        elements[i] = element;
    return LLVMConstVector(elements, count);
}

static LLVMValueRef bits_of(LLVMBuilderRef b, LLVMValueRef value)
{
    return LLVMBuildBitCast(b, value, ints_like(value, 32), "");
}

static LLVMValueRef float_of(LLVMBuilderRef b, LLVMValueRef bits)
{
    return LLVMBuildBitCast(b, bits, floats_like(bits), "");
}

static LLVMValueRef and_constant(LLVMBuilderRef b, LLVMValueRef x, int64_t mask)
{
    return LLVMBuildAnd(b, x, constant_like(x, mask), "");
}

static LLVMValueRef or_constant(LLVMBuilderRef b, LLVMValueRef x, int64_t bits)
{
    return LLVMBuildOr(b, x, constant_like(x, bits), "");
}

static LLVMValueRef add_constant(LLVMBuilderRef b, LLVMValueRef x, int64_t addend)
{
    return LLVMBuildAdd(b, x, constant_like(x, addend), "");
}

static LLVMValueRef shift_left(LLVMBuilderRef b, LLVMValueRef x, int count)
{
    return LLVMBuildShl(b, x, constant_like(x, count), "");
}

static LLVMValueRef shift_right(LLVMBuilderRef b, LLVMValueRef x, int count)
{
    return LLVMBuildLShr(b, x, constant_like(x, count), "");
}

static LLVMValueRef select_where(LLVMBuilderRef b, LLVMIntPredicate predicate, LLVMValueRef x,
                                 int64_t constant, LLVMValueRef then, LLVMValueRef otherwise)
{
    return LLVMBuildSelect(b, LLVMBuildICmp(b, predicate, x, constant_like(x, constant), ""), then, otherwise,
                           "");
}

/* The bits of 2^exponent as f32. */
static int64_t power(int exponent) { return (int64_t)(exponent + 127) << 23; }

/* ---- to f32 -------------------------------------------------------------------------------------------------------------------- */

LLVMValueRef tt_decode_float(LLVMBuilderRef b, LLVMValueRef value, const FloatFormat *format)
{
    LLVMValueRef bits = LLVMBuildZExt(b, value, ints_like(value, 32), "");
    int mantissa = format->mantissa_bits, top = (1 << format->exponent_bits) - 1;
    if (format->bias == 127)
        return float_of(b, shift_left(b, bits, 23 - mantissa));
    LLVMValueRef sign = shift_left(b, shift_right(b, bits, format->bits - 1), 31);
    LLVMValueRef magnitude = and_constant(b, bits, (1 << (format->bits - 1)) - 1);
    LLVMValueRef aligned = shift_left(b, magnitude, 23 - mantissa);
    LLVMValueRef result = add_constant(b, aligned, (int64_t)(127 - format->bias) << 23);
    /* A denormal is its mantissa as an integer, scaled: exact. */
    LLVMValueRef units = LLVMBuildSIToFP(b, magnitude, floats_like(bits), "");
    LLVMValueRef unit = float_of(b, constant_like(bits, power(1 - format->bias - mantissa)));
    LLVMValueRef denormal = bits_of(b, LLVMBuildFMul(b, units, unit, ""));
    result = select_where(b, LLVMIntULT, magnitude, 1 << mantissa, denormal, result);
    if (format->has_infinity)
        result = select_where(b, LLVMIntUGE, magnitude, (int64_t)top << mantissa,
                              or_constant(b, aligned, 0x7f800000), result);
    else if (format->nan == TT_NAN_ALL_ONES)
        result = select_where(b, LLVMIntEQ, magnitude, (1 << (format->bits - 1)) - 1,
                              constant_like(bits, 0x7fc00000), result);
    result = LLVMBuildOr(b, result, sign, "");
    if (format->nan == TT_NAN_NEGATIVE_ZERO)
        result = select_where(b, LLVMIntEQ, bits, 1 << (format->bits - 1), constant_like(bits, 0x7fc00000),
                              result);
    return float_of(b, result);
}

/* ---- from f32 ------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef magnitude_of(LLVMBuilderRef b, LLVMValueRef value)
{
    LLVMValueRef negative = LLVMBuildFCmp(b, LLVMRealOLT, value, LLVMConstNull(LLVMTypeOf(value)), "");
    return LLVMBuildSelect(b, negative, LLVMBuildFNeg(b, value, ""), value, "");
}

/* Toward zero from the nearest f32: one unit down where that is farther out than the value. */
LLVMValueRef tt_round_to_odd(LLVMBuilderRef b, LLVMValueRef value, bool sticky)
{
    LLVMValueRef nearest = LLVMBuildFPTrunc(b, value, floats_like(value), "");
    LLVMValueRef back = LLVMBuildFPExt(b, nearest, LLVMTypeOf(value), "");
    LLVMValueRef too_far = LLVMBuildFCmp(b, LLVMRealOGT, magnitude_of(b, back), magnitude_of(b, value), "");
    LLVMValueRef bits = bits_of(b, nearest);
    LLVMValueRef down = LLVMBuildSelect(b, too_far, add_constant(b, bits, -1), bits, "");
    if (sticky)
        down = or_constant(b, down, 1);
    LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, back, value, "");
    return float_of(b, LLVMBuildSelect(b, inexact, down, bits, ""));
}

/* The bits of a magnitude below the format's smallest normal number. */
static LLVMValueRef encode_denormal(LLVMBuilderRef b, LLVMValueRef magnitude, const FloatFormat *format,
                                    bool toward_zero)
{
    LLVMValueRef value = float_of(b, magnitude);
    int unit = 1 - format->bias - format->mantissa_bits;
    if (toward_zero) {
        LLVMValueRef scale = float_of(b, constant_like(magnitude, power(-unit)));
        LLVMValueRef units =
            LLVMBuildFPToSI(b, LLVMBuildFMul(b, value, scale, ""), LLVMTypeOf(magnitude), "");
        return LLVMBuildFreeze(b, units, "");
    }
    /* Added to 2^23 units, the value is rounded to units by the addition. */
    LLVMValueRef anchor = constant_like(magnitude, power(23 + unit));
    LLVMValueRef sum = LLVMBuildFAdd(b, value, float_of(b, anchor), "");
    return LLVMBuildSub(b, bits_of(b, sum), anchor, "");
}

/* Nearest even: add half a unit, less a little when the last bit that stays is even. */
static LLVMValueRef rounded_magnitude(LLVMBuilderRef b, LLVMValueRef magnitude, int shift, bool toward_zero)
{
    if (toward_zero)
        return shift_right(b, magnitude, shift);
    LLVMValueRef odd = and_constant(b, shift_right(b, magnitude, shift), 1);
    LLVMValueRef sum = LLVMBuildAdd(b, add_constant(b, magnitude, (1 << (shift - 1)) - 1), odd, "");
    return shift_right(b, sum, shift);
}

LLVMValueRef tt_encode_float(LLVMBuilderRef b, LLVMValueRef value, const FloatFormat *format,
                             bool toward_zero)
{
    int mantissa = format->mantissa_bits, top = (1 << format->exponent_bits) - 1;
    int64_t infinity = (int64_t)top << mantissa, all = (1 << (format->bits - 1)) - 1;
    int64_t largest = format->has_infinity ? infinity - 1 : format->nan == TT_NAN_ALL_ONES ? all - 1 : all;
    LLVMValueRef bits = bits_of(b, value), magnitude = and_constant(b, bits, 0x7fffffff);
    LLVMValueRef result = rounded_magnitude(b, magnitude, 23 - mantissa, toward_zero);
    if (format->bias != 127) {
        result = add_constant(b, result, -((int64_t)(127 - format->bias) << mantissa));
        result = select_where(b, LLVMIntULT, magnitude, power(1 - format->bias),
                              encode_denormal(b, magnitude, format, toward_zero), result);
    }
    int64_t limit = format->saturates || toward_zero ? largest : infinity;
    result = select_where(b, LLVMIntSGT, result, limit, constant_like(result, limit), result);
    if (toward_zero && !format->saturates)
        result = select_where(b, LLVMIntEQ, magnitude, 0x7f800000, constant_like(result, infinity), result);
    int64_t nan = format->has_infinity ? infinity | 1 << (mantissa - 1) : all;
    result = select_where(b, LLVMIntUGT, magnitude, 0x7f800000, constant_like(result, nan), result);
    LLVMValueRef sign = shift_left(b, shift_right(b, bits, 31), format->bits - 1);
    LLVMValueRef code = LLVMBuildOr(b, result, sign, "");
    if (format->nan == TT_NAN_NEGATIVE_ZERO) {
        code = select_where(b, LLVMIntEQ, result, 0, result, code);
        code = select_where(b, LLVMIntUGT, magnitude, 0x7f800000,
                            constant_like(code, 1 << (format->bits - 1)), code);
    }
    return LLVMBuildTrunc(b, code, ints_like(bits, format->bits), "");
}
