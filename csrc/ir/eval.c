/* The scalar semantics of pure elementwise operations: the fold expressions of ops.def, expanded once for
 * float, once for double and once for integers; and the casts between all types. */
#include "ir/ir.h"
#include <math.h>

/* ---- what the fold expressions call -------------------------------------------------------------------- */

/* Of operands that are sign-extended from at most 64 bits, sums, products and negations do not overflow
 * 128. */
typedef __int128 Wide;

#define BY_TYPE(name, a) _Generic((a), float: name##f, double: name)
#define tt_fabs(a) BY_TYPE(fabs, a)(a)
#define tt_floor(a) BY_TYPE(floor, a)(a)
#define tt_ceil(a) BY_TYPE(ceil, a)(a)
#define tt_sqrt(a) BY_TYPE(sqrt, a)(a)
#define tt_exp(a) BY_TYPE(exp, a)(a)
#define tt_exp2(a) BY_TYPE(exp2, a)(a)
#define tt_log(a) BY_TYPE(log, a)(a)
#define tt_log2f(a) BY_TYPE(log2, a)(a)
#define tt_sin(a) BY_TYPE(sin, a)(a)
#define tt_cos(a) BY_TYPE(cos, a)(a)
#define tt_tanh(a) BY_TYPE(tanh, a)(a)
#define tt_erf(a) BY_TYPE(erf, a)(a)
#define tt_fmod(a, b) BY_TYPE(fmod, a)(a, b)
#define tt_fma(a, b, c) BY_TYPE(fma, a)(a, b, c)
/* IEEE minimumNumber and maximumNumber: -0 is below 0, which C leaves open. */
#define tt_fmin(a, b)                                                                                        \
    ((a) != (a) ? (b) : (b) != (b) ? (a) : (a) < (b) || ((a) == (b) && signbit(a)) ? (a) : (b))
#define tt_fmax(a, b)                                                                                        \
    ((a) != (a) ? (b) : (b) != (b) ? (a) : (a) > (b) || ((a) == (b) && !signbit(a)) ? (a) : (b))
#define tt_mulhi_s(a, b, bits) ((a) * (b) >> (bits))
#define tt_mulhi_u(ua, ub, bits) ((Wide)((unsigned __int128)(ua) * (ub) >> (bits)))
#define tt_int_min(bits) (-((Wide)1 << ((bits) - 1)))

/* ---- the rows of ops.def ------------------------------------------------------------------------------- */

static bool eval_float(Opcode opcode, float a, float b, float c, float *result)
{
    switch (opcode) {
#define OP(...)
#define FLOAT_OP(name, operands, traits, fold, meaning)                                                      \
    case OP_##name:                                                                                          \
        *result = (fold);                                                                                    \
        return true;
#include "ir/ops.def"
    default:
        return false;
    }
}

static bool eval_double(Opcode opcode, double a, double b, double c, double *result)
{
    switch (opcode) {
#define OP(...)
#define FLOAT_OP(name, operands, traits, fold, meaning)                                                      \
    case OP_##name:                                                                                          \
        *result = (fold);                                                                                    \
        return true;
#include "ir/ops.def"
    default:
        return false;
    }
}

float tt_eval_single(int32_t opcode, float x)
{
    float result = 0;
    eval_float((Opcode)opcode, x, 0, 0, &result);
    return result;
}

double tt_eval_double(int32_t opcode, double x)
{
    double result = 0;
    eval_double((Opcode)opcode, x, 0, 0, &result);
    return result;
}

/* On numbers of any float type: all of them are doubles. */
static bool eval_float_compare(Opcode opcode, double a, double b, int64_t *result)
{
    switch (opcode) {
#define OP(...)
#define FLOAT_COMPARE(name, traits, fold, meaning)                                                           \
    case OP_##name:                                                                                          \
        *result = (fold);                                                                                    \
        return true;
#include "ir/ops.def"
    default:
        return false;
    }
}

#define NO_FOLD (folds = false, (Wide)0)

/* The result is not yet wrapped to its width. */
static bool eval_int(Opcode opcode, Wide a, Wide b, unsigned bits, Wide *result)
{
    uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1, ua = (uint64_t)a & mask,
             ub = (uint64_t)b & mask;
    bool folds = true;
    switch (opcode) {
#define OP(...)
#define INT_OP(name, operands, traits, fold, meaning)                                                        \
    case OP_##name:                                                                                          \
        *result = (fold);                                                                                    \
        return folds;
#define INT_COMPARE(name, traits, fold, meaning)                                                             \
    case OP_##name:                                                                                          \
        *result = (fold);                                                                                    \
        return true;
#include "ir/ops.def"
    default:
        return false;
    }
}

/* ---- types --------------------------------------------------------------------------------------------- */

/* As the Attr convention has it: sign-extended, but 0 or 1 for i1. */
static int64_t wrap(Wide value, unsigned bits)
{
    uint64_t low = (uint64_t)value;
    return bits == 1 ? (int64_t)(low & 1) : (int64_t)(low << (64 - bits)) >> (64 - bits);
}

/* An i1 is a number of one bit: true is -1. */
static int64_t signed_value(int64_t value, unsigned bits) { return bits == 1 ? -value : value; }

static uint64_t unsigned_value(int64_t value, unsigned bits)
{
    return bits == 64 ? (uint64_t)value : (uint64_t)value & ((1ull << bits) - 1);
}

/* To nearest even in one rounding, through a double: of what does not fit there, the lost bits leave a mark
 * in the lowest one kept (rounding to odd), which decides ties in the narrower format as the lost bits would
 * have. */
static double int_to_float(uint64_t magnitude, bool negative, const Type *type)
{
    double value = (double)magnitude;
    if (tt_element(type)->kind == TT_F32)
        value = (float)magnitude;
    else if (tt_float_format(type) && magnitude >> 53)
        value = (double)(magnitude >> 11 | ((magnitude & 2047) != 0)) * 2048;
    value = tt_round_to(type, value);
    return negative ? -value : value;
}

/* The bits of a value of the type. Infinity is one even in a format whose casts saturate. */
static uint64_t float_bits(double value, const Type *type)
{
    const FloatFormat *format = tt_float_format(type);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!format)
        return bits;
    if (isinf(value) && format->has_infinity)
        return (uint64_t)(signbit(value) != 0) << (format->bits - 1) | ((1ull << format->exponent_bits) - 1)
                                                                           << format->mantissa_bits;
    return tt_float_encode(format, value, false);
}

static double float_from_bits(uint64_t bits, const Type *type)
{
    const FloatFormat *format = tt_float_format(type);
    double value;
    memcpy(&value, &bits, sizeof value);
    return format ? tt_float_decode(format, bits) : value;
}

/* Not folded when a NaN is involved: constants do not keep its payload. */
static bool eval_bitcast(const Type *from, const Type *to, const Scalar *operand, Scalar *result)
{
    unsigned width = (unsigned)tt_bit_width(from);
    if (tt_is_float(from) && isnan(operand->f))
        return false;
    uint64_t bits = tt_is_float(from) ? float_bits(operand->f, from) : unsigned_value(operand->i, width);
    if (tt_is_float(to)) {
        result->f = float_from_bits(bits, to);
        return !isnan(result->f);
    }
    result->i = wrap((Wide)bits, width);
    return true;
}

static bool eval_cast(Opcode opcode, const Type *from, const Type *to, const Scalar *operand, Scalar *result)
{
    unsigned from_bits = (unsigned)tt_bit_width(from), to_bits = (unsigned)tt_bit_width(to);
    double limit;
    switch (opcode) {
    case OP_trunc:
        result->i = wrap(operand->i, to_bits);
        return true;
    case OP_ext_s:
        result->i = wrap(signed_value(operand->i, from_bits), to_bits);
        return true;
    case OP_ext_u:
        result->i = wrap((Wide)unsigned_value(operand->i, from_bits), to_bits);
        return true;
    case OP_int_to_float_s: {
        int64_t value = signed_value(operand->i, from_bits);
        result->f = int_to_float(value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0, to);
        return true;
    }
    case OP_int_to_float_u:
        result->f = int_to_float(unsigned_value(operand->i, from_bits), false, to);
        return true;
    case OP_float_to_int_s:
        limit = ldexp(1, (int)to_bits - 1);
        if (!(trunc(operand->f) >= -limit && trunc(operand->f) < limit))
            return false;
        result->i = wrap((Wide)operand->f, to_bits);
        return true;
    case OP_float_to_int_u:
        limit = ldexp(1, (int)to_bits);
        if (!(trunc(operand->f) >= 0 && trunc(operand->f) < limit))
            return false;
        result->i = wrap((Wide)operand->f, to_bits);
        return true;
    case OP_float_cast:
        result->f = tt_float_format(to) && tt_element(to)->kind != TT_F32
                        ? tt_float_decode(tt_float_format(to),
                                          tt_float_encode(tt_float_format(to), operand->f, false))
                        : tt_round_to(to, operand->f);
        return true;
    case OP_bitcast:
        return eval_bitcast(from, to, operand, result);
    default:
        return false;
    }
}

static bool eval_float_op(Opcode opcode, const Type *type, const Scalar *operands, int count, Scalar *result)
{
    double a = operands[0].f, b = count > 1 ? operands[1].f : 0, c = count > 2 ? operands[2].f : 0;
    if (tt_element(type)->kind == TT_F64)
        return eval_double(opcode, a, b, c, &result->f);
    /* Rounding a float again to fewer than half its bits is right for all but this one. */
    if (opcode == OP_fma && tt_element(type)->kind != TT_F32)
        return false;
    float rounded;
    if (!eval_float(opcode, (float)a, (float)b, (float)c, &rounded))
        return false;
    result->f = tt_round_to(type, rounded);
    return true;
}

bool tt_eval_scalar(Opcode opcode, const Type *operand_type, const Type *result_type, const Scalar *operands,
                    Scalar *result)
{
    const OpInfo *info = &tt_op_infos[opcode];
    if (info->rule == SELECT) {
        *result = operands[0].i ? operands[1] : operands[2];
        return true;
    }
    if (info->rule == CAST)
        return eval_cast(opcode, operand_type, result_type, operands, result);
    if (info->traits & ON_FLOATS)
        return info->rule == COMPARE
                   ? eval_float_compare(opcode, operands[0].f, operands[1].f, &result->i)
                   : eval_float_op(opcode, operand_type, operands, info->operands_max, result);
    if (!(info->traits & ON_INTS) || !tt_is_int(operand_type))
        return false;
    unsigned bits = (unsigned)tt_bit_width(operand_type);
    Wide a = signed_value(operands[0].i, bits),
         b = info->operands_max > 1 ? signed_value(operands[1].i, bits) : 0, wide;
    if (!eval_int(opcode, a, b, bits, &wide))
        return false;
    result->i = info->rule == COMPARE ? wide != 0 : wrap(wide, bits);
    return true;
}
