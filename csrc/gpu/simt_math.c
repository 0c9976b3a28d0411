/* Mathematical functions of floats. f32 has approximate instructions for the common ones; exp and log, for which those
 * are off by more than 2 ulp, are completed in line. Everything else is a call of the target's library. f16 and bf16 are
 * computed in f32. */
#include "gpu/simt.h"
#include <math.h>

static LLVMValueRef real(LLVMValueRef like, double value) { return LLVMConstReal(LLVMTypeOf(like), value); }

static LLVMValueRef fma_of(Simt *s, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    return simt_intrinsic(s, "llvm.fma", (LLVMTypeRef[]){LLVMTypeOf(a)}, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* ---- by instructions and calls ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef library1(Simt *s, const char *name, LLVMValueRef x)
{
    return s->ops->library(s, name, LLVMTypeOf(x), &x, 1);
}

static LLVMValueRef reciprocal(Simt *s, LLVMValueRef x)
{
    return LLVMBuildFDiv(s->b, LLVMConstReal(LLVMTypeOf(x), 1), x, "");
}

static LLVMValueRef any_math(Simt *s, Opcode opcode, LLVMValueRef const *x)
{
    switch (opcode) {
    case OP_fdiv:
    case OP_fdiv_rn:
        return LLVMBuildFDiv(s->b, x[0], x[1], "");
    case OP_sqrt:
    case OP_sqrt_rn:
        return simt_intrinsic1(s, "llvm.sqrt", x[0]);
    case OP_rsqrt:
        return reciprocal(s, simt_intrinsic1(s, "llvm.sqrt", x[0]));
    case OP_frem:
        return s->ops->library(s, "fmod", LLVMTypeOf(x[0]), x, 2);
    default: /* exp, log, sin, ...: libm's names */
        return library1(s, tt_op_infos[opcode].name, x[0]);
    }
}

/* By an instruction, but what is constant is divided here, so that LLVM goes on with the quotient. */
static LLVMValueRef fast(Simt *s, Opcode opcode, LLVMValueRef const *x)
{
    if (opcode == OP_fdiv && LLVMIsConstant(x[0]) && LLVMIsConstant(x[1]))
        return any_math(s, opcode, x);
    LLVMValueRef result = s->ops->math(s, opcode, x);
    return result ? result : any_math(s, opcode, x);
}

/* ---- exp, log, log2 of f32 ------------------------------------------------------------------------------------------------------- */

static const double log2_e = 0x1.715476p+0, log2_e_low = 0x1.4ae0c0p-26; /* two parts of log2(e) */
static const double log2_e_above = 0x1.715478p+0;                        /* the next f32 */
static const double ln_2 = 0x1.62e430p-1;
/* the same such that the first has few enough bits for an exponent times it to be exact */
static const double ln_2_high = 0x1.62e400p-1, ln_2_low = 0x1.7f7d1cp-20;

/* 2^(x log2(e)): the product is rounded, and what that lost, x - power ln(2), is added. Rounded toward zero it is no
 * infinity unless x is one, where the loss is no number, and the minimum makes it one; and loses nothing negative where the
 * power is infinite. Within 6 ulp (2 with ln(2) in two parts, an operation more, which rows of 256 in a softmax and cross
 * entropies feel); results below the normal range may become 0. */
static LLVMValueRef exp_of(Simt *s, LLVMValueRef x)
{
    LLVMValueRef power = s->ops->multiply_toward_zero(s, x, real(x, log2_e));
    LLVMValueRef lost = fma_of(s, power, real(x, -ln_2), x);
    lost = simt_intrinsic2(s, "llvm.minnum", lost, real(x, 0.5));
    LLVMValueRef result = fast(s, OP_exp2, &power);
    return fma_of(s, result, lost, result);
}

/* The same where x is never positive: with log2(e) a little too large the loss never is negative, so that saturation
 * changes nothing but what is no number; and no power is infinite. An operation less. */
static LLVMValueRef exp_of_negative(Simt *s, LLVMValueRef x)
{
    LLVMValueRef power = LLVMBuildFMul(s->b, x, real(x, log2_e_above), "");
    LLVMValueRef lost = s->ops->saturate(s, fma_of(s, power, real(x, -ln_2), x));
    LLVMValueRef result = fast(s, OP_exp2, &power);
    return fma_of(s, result, lost, result);
}

/* x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); e as a float. Sets *tail such that log(1 + f) = f + *tail:
 * f^2 times a polynomial, the minimax one of relative error 2^-25 (Remez exchange), lowest power first. */
static LLVMValueRef split_for_log(Simt *s, LLVMValueRef x, LLVMValueRef *tail, LLVMValueRef *exponent)
{
    static const double terms[] = {-0x1.fffffap-2, 0x1.5556f4p-2, -0x1.00049ep-2, 0x1.98d27cp-3,
                                   -0x1.535c20p-3, 0x1.31871ap-3, -0x1.250e02p-3, 0x1.65d400p-4};
    enum { SQRT_HALF = 0x3f3504f3, MANTISSA_BITS = 23 };
    LLVMValueRef tiny = LLVMBuildFCmp(s->b, LLVMRealOLT, x, real(x, 0x1p-126), "");
    x = LLVMBuildSelect(s->b, tiny, LLVMBuildFMul(s->b, x, real(x, 0x1p23), ""), x, "");
    LLVMValueRef bits = LLVMBuildBitCast(s->b, x, s->i32, "");
    LLVMValueRef e = LLVMBuildSub(s->b, bits, simt_i32(s, SQRT_HALF), "");
    e = LLVMBuildAnd(s->b, e, simt_i32(s, -(1 << MANTISSA_BITS)), ""); /* in its place: no shifts */
    bits = LLVMBuildSub(s->b, bits, e, "");
    LLVMValueRef f = LLVMBuildFSub(s->b, LLVMBuildBitCast(s->b, bits, s->f32, ""), real(x, 1), "");
    LLVMValueRef scaled = LLVMBuildSelect(s->b, tiny, real(x, -MANTISSA_BITS), real(x, 0), "");
    *exponent = fma_of(s, LLVMBuildSIToFP(s->b, e, s->f32, ""), real(x, 0x1p-23), scaled);
    LLVMValueRef sum = real(x, terms[TT_COUNT(terms) - 1]);
    for (int i = (int)TT_COUNT(terms) - 2; i >= 0; i--)
        sum = fma_of(s, sum, f, real(x, terms[i]));
    *tail = LLVMBuildFMul(s->b, LLVMBuildFMul(s->b, f, f, ""), sum, "");
    return f;
}

/* What has a logarithm that is a number lies between 0 and infinity, by its bits below infinity's. Others are multiplied
 * to what theirs is, but for 0. lg2.approx near 1, where the logarithm is small, has too few digits, and takes three more
 * instructions for numbers below the normal range. */
static LLVMValueRef log_of(Simt *s, LLVMValueRef x, bool binary)
{
    enum { INFINITE = 0x7f800000 };
    LLVMValueRef tail, e, f = split_for_log(s, x, &tail, &e), result;
    if (binary) {
        LLVMValueRef sum = LLVMBuildFAdd(s->b, f, tail, "");
        result = fma_of(s, sum, real(x, log2_e), fma_of(s, sum, real(x, log2_e_low), e));
    } else {
        LLVMValueRef sum = LLVMBuildFAdd(s->b, f, fma_of(s, e, real(x, ln_2_low), tail), "");
        result = fma_of(s, e, real(x, ln_2_high), sum);
    }
    LLVMValueRef bits = LLVMBuildBitCast(s->b, x, s->i32, "");
    LLVMValueRef special = LLVMBuildICmp(s->b, LLVMIntUGE, bits, simt_i32(s, INFINITE), "");
    LLVMValueRef infinite = real(x, INFINITY), zero = LLVMBuildFCmp(s->b, LLVMRealOEQ, x, real(x, 0), "");
    result = LLVMBuildSelect(s->b, special, fma_of(s, x, infinite, infinite), result, "");
    return LLVMBuildSelect(s->b, zero, real(x, -INFINITY), result, "");
}

/* ---- all of them ----------------------------------------------------------------------------------------------------------------- */

/* In f32 or f64, by an instruction, in line, or by a call. */
static LLVMValueRef wide_math(Simt *s, const Op *op, LLVMValueRef const *x)
{
    Opcode opcode = op->opcode;
    bool single = LLVMTypeOf(x[0]) == s->f32;
    if (single && opcode == OP_exp)
        return tt_is_never_positive(tt_operand(op, 0)) ? exp_of_negative(s, x[0]) : exp_of(s, x[0]);
    if (single && (opcode == OP_log || opcode == OP_log2))
        return log_of(s, x[0], opcode == OP_log2);
    return fast(s, opcode, x);
}

void simt_math(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    const Type *type = tt_element(op->results[0]->type);
    const Type *wide = tt_bit_width(type) < 32 ? tt_scalar_type(s->module, TT_F32) : type;
    for (int i = 0; i < batch->count; i++) {
        LLVMValueRef x[4];
        for (int operand = 0; operand < op->operand_count; operand++)
            x[operand] = simt_cast_scalar(s, batch->operands[operand][i], type, wide);
        batch->results[i] = simt_cast_scalar(s, wide_math(s, op, x), wide, type);
    }
}

void simt_extern_call(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    const char *symbol = tt_string_attr(op, ATTR_symbol, "");
    LLVMTypeRef type = simt_type(s, op->results[0]->type);
    if (type != s->f32 && type != s->f64)
        tt_unsupported(op->loc, "the library function '%s' of %s", symbol,
                       tt_type_name(tt_element(op->results[0]->type)->kind));
    for (int i = 0; i < batch->count; i++) {
        LLVMValueRef x[4];
        for (int operand = 0; operand < op->operand_count; operand++)
            x[operand] = batch->operands[operand][i];
        batch->results[i] = s->ops->library(s, symbol, type, x, op->operand_count);
    }
}
