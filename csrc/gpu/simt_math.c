/* Mathematical functions of floats. f32 has approximate instructions for the common ones, which is what the operations
 * without _rn promise; everything else is a call of the target's library. f16 and bf16 are computed in f32. */
#include "gpu/simt.h"

static const double log2_e = 1.4426950408889634, ln_2 = 0.6931471805599453;

static LLVMValueRef times(Simt *s, LLVMValueRef x, double factor)
{
    return LLVMBuildFMul(s->b, x, LLVMConstReal(LLVMTypeOf(x), factor), "");
}

static LLVMValueRef library1(Simt *s, const char *name, LLVMValueRef x)
{
    return s->ops->library(s, name, LLVMTypeOf(x), &x, 1);
}

static LLVMValueRef reciprocal(Simt *s, LLVMValueRef x)
{
    return LLVMBuildFDiv(s->b, LLVMConstReal(LLVMTypeOf(x), 1), x, "");
}

/* f32 */
static LLVMValueRef single_math(Simt *s, Opcode opcode, LLVMValueRef const *x)
{
    LLVMValueRef scaled;
    switch (opcode) {
    case OP_fdiv:
        return s->ops->math(s, MATH_DIV, x);
    case OP_sqrt:
        return s->ops->math(s, MATH_SQRT, x);
    case OP_rsqrt:
        return s->ops->math(s, MATH_RSQRT, x);
    case OP_exp:
        scaled = times(s, x[0], log2_e);
        return s->ops->math(s, MATH_EXP2, &scaled);
    case OP_exp2:
        return s->ops->math(s, MATH_EXP2, x);
    case OP_log:
        return times(s, s->ops->math(s, MATH_LOG2, x), ln_2);
    case OP_log2:
        return s->ops->math(s, MATH_LOG2, x);
    default:
        return NULL;
    }
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

static LLVMValueRef wide_math(Simt *s, Opcode opcode, LLVMValueRef const *x)
{
    LLVMValueRef result = LLVMTypeOf(x[0]) == s->f32 ? single_math(s, opcode, x) : NULL;
    return result ? result : any_math(s, opcode, x);
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
        batch->results[i] = simt_cast_scalar(s, wide_math(s, op->opcode, x), wide, type);
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
