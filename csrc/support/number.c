/* Encoding and decoding of the narrow float formats in plain arithmetic: the reference that folding, the simulator
 * and the tests use. Formats as in PTX ISA, "Alternate floating-point data formats"; those whose NaN is the code of -0 as
 * in Noune et al., *8-bit Numerical Formats for Deep Neural Networks*, 2022. */
#include "support/support.h"
#include <math.h>

const FloatFormat tt_format_f8e4m3 = {8, 4, 3, 7, .saturates = true, .nan = TT_NAN_ALL_ONES};
const FloatFormat tt_format_f8e5m2 = {8, 5, 2, 15, true, .saturates = true, .nan = TT_NAN_TOP_EXPONENT};
const FloatFormat tt_format_f8e4m3b15 = {8, 4, 3, 15, .saturates = true, .nan = TT_NAN_NONE};
const FloatFormat tt_format_f8e4m3b8 = {8, 4, 3, 8, .saturates = true, .nan = TT_NAN_NEGATIVE_ZERO};
const FloatFormat tt_format_f8e5m2b16 = {8, 5, 2, 16, .saturates = true, .nan = TT_NAN_NEGATIVE_ZERO};
const FloatFormat tt_format_f16 = {16, 5, 10, 15, true, .nan = TT_NAN_TOP_EXPONENT};
const FloatFormat tt_format_bf16 = {16, 8, 7, 127, true, .nan = TT_NAN_TOP_EXPONENT};
const FloatFormat tt_format_f32 = {32, 8, 23, 127, true, .nan = TT_NAN_TOP_EXPONENT};

/* Without infinities the top exponent holds numbers too; all-ones may be NaN. */
static double largest_finite(const FloatFormat *format)
{
    int top = (1 << format->exponent_bits) - 1 - (format->has_infinity ? 1 : 0);
    int64_t mantissa = (1ll << format->mantissa_bits) - 1 - (format->nan == TT_NAN_ALL_ONES ? 1 : 0);
    return ldexp((double)((1ll << format->mantissa_bits) + mantissa),
                 top - format->bias - format->mantissa_bits);
}

static uint64_t encode(const FloatFormat *format, double value, bool toward_zero)
{
    uint64_t sign = (uint64_t)(signbit(value) != 0) << (format->bits - 1);
    uint64_t top = ((1ull << format->exponent_bits) - 1) << format->mantissa_bits;
    uint64_t quiet = 1ull << (format->mantissa_bits - 1);
    if (isnan(value))
        return format->has_infinity ? sign | top | quiet : sign | ((1ull << (format->bits - 1)) - 1);
    double magnitude = fabs(value), limit = largest_finite(format);
    if (isinf(value) && !format->saturates)
        return sign | top;
    if (isinf(value))
        magnitude = limit;
    if (magnitude == 0)
        return sign;
    int exponent;
    frexp(magnitude, &exponent);
    exponent -= 1; /* magnitude = 1.x * 2^exponent */
    int smallest = 1 - format->bias;
    int scale = TT_MAX(exponent, smallest) - format->mantissa_bits; /* weight of the last mantissa bit */
    double units = ldexp(magnitude, -scale);
    double rounded = toward_zero ? trunc(units) : rint(units);
    magnitude = ldexp(rounded, scale);
    if (magnitude > limit) {
        if (!format->saturates && !toward_zero)
            return sign | top;
        magnitude = limit;
    }
    if (magnitude < ldexp(1, smallest))
        return sign | (uint64_t)ldexp(magnitude, -(smallest - format->mantissa_bits));
    frexp(magnitude, &exponent);
    exponent -= 1;
    uint64_t mantissa =
        (uint64_t)ldexp(magnitude, format->mantissa_bits - exponent) & ((1ull << format->mantissa_bits) - 1);
    return sign | (uint64_t)(exponent + format->bias) << format->mantissa_bits | mantissa;
}

uint64_t tt_float_encode(const FloatFormat *format, double value, bool toward_zero)
{
    uint64_t sign = 1ull << (format->bits - 1);
    if (format->nan != TT_NAN_NEGATIVE_ZERO)
        return encode(format, value, toward_zero);
    uint64_t bits = isnan(value) ? sign : encode(format, value, toward_zero);
    return bits == sign && !isnan(value) ? 0 : bits;
}

double tt_float_decode(const FloatFormat *format, uint64_t bits)
{
    bool negative = bits >> (format->bits - 1) & 1;
    int exponent = (int)(bits >> format->mantissa_bits & ((1u << format->exponent_bits) - 1));
    uint64_t mantissa = bits & ((1ull << format->mantissa_bits) - 1);
    int top = (1 << format->exponent_bits) - 1;
    double value;
    if (format->nan == TT_NAN_NEGATIVE_ZERO && bits == 1ull << (format->bits - 1))
        return NAN;
    if (exponent == top && format->has_infinity)
        value = mantissa ? NAN : INFINITY;
    else if (format->nan == TT_NAN_ALL_ONES && exponent == top &&
             mantissa == (1ull << format->mantissa_bits) - 1)
        value = NAN;
    else if (exponent == 0)
        value = ldexp((double)mantissa, 1 - format->bias - format->mantissa_bits);
    else
        value = ldexp((double)(mantissa | 1ull << format->mantissa_bits),
                      exponent - format->bias - format->mantissa_bits);
    return negative ? -value : value;
}
