/* Mathematical functions of floats. f32 has approximate instructions for the common ones; exp and log, for which those
 * are off by more than 2 ulp, are completed in line. Everything else is a call of the target's library. f16 and bf16 are
 * computed in f32. */
#include "codegen/logarithms.h"
#include "gpu/simt.h"

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

/* ---- exp of f32 ------------------------------------------------------------------------------------------------------------------ */

static const double log2_e = 0x1.715476p+0, log2_e_above = 0x1.715478p+0 /* the next f32 */;
static const double ln_2 = 0x1.62e430p-1;

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

/* Without care for what the product's rounding lost, which is less than 2^-18 of the result. */
static LLVMValueRef exp_of_few_bits(Simt *s, LLVMValueRef x)
{
    LLVMValueRef power = LLVMBuildFMul(s->b, x, real(x, log2_e), "");
    return fast(s, OP_exp2, &power);
}

/* ---- all of them ----------------------------------------------------------------------------------------------------------------- */

typedef LLVMValueRef Exponential(Simt *s, LLVMValueRef x);

static Exponential *exponential_of(Simt *s, const Op *op)
{
    bool is_rounded =
        tt_bit_width(op->results[0]->type) < 32 || tt_goes_to_few_bits(op->results[0], s->arena);
    return is_rounded ? exp_of_few_bits : tt_is_never_positive(tt_operand(op, 0)) ? exp_of_negative : exp_of;
}

/* In f32 or f64, by an instruction, in line, or by a call. */
static LLVMValueRef wide_math(Simt *s, const Op *op, Exponential *exponential, LLVMValueRef const *x)
{
    Opcode opcode = op->opcode;
    bool single = LLVMTypeOf(x[0]) == s->f32;
    if (single && opcode == OP_exp)
        return exponential(s, x[0]);
    if (single &&
        (opcode == OP_log || opcode == OP_log2)) /* lg2.approx has too few digits near 1, where it is small */
        return tt_build_log(s->b, x[0], opcode == OP_log2);
    return fast(s, opcode, x);
}

void simt_math(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    const Type *type = tt_element(op->results[0]->type);
    const Type *wide = tt_bit_width(type) < 32 ? tt_scalar_type(s->module, TT_F32) : type;
    Exponential *exponential = op->opcode == OP_exp ? exponential_of(s, op) : NULL;
    for (int i = 0; i < batch->count; i++) {
        LLVMValueRef x[4];
        for (int operand = 0; operand < op->operand_count; operand++)
            x[operand] = simt_cast_scalar(s, batch->operands[operand][i], type, wide);
        batch->results[i] = simt_cast_scalar(s, wide_math(s, op, exponential, x), wide, type);
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
