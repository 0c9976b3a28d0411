/* Selects of integers and 16-bit floats as masks. x86's conditional moves read the flags, and where hundreds of them share
 * a condition, LLVM's scheduler tries again and again to keep the flags alive: minutes for a few thousand instructions. */
#include "codegen/codegen.h"

/* An integer as wide as a type whose selects read the flags; NULL for others. */
static LLVMTypeRef mask_type(const Codegen *codegen, LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMIntegerTypeKind)
        return LLVMGetIntTypeWidth(type) > 1 ? type : NULL;
    bool is_half = kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
    return is_half ? LLVMInt16TypeInContext(codegen->context) : NULL;
}

static LLVMValueRef masked(LLVMBuilderRef b, LLVMValueRef select, LLVMTypeRef bits)
{
    LLVMValueRef mask = LLVMBuildSExt(b, LLVMGetOperand(select, 0), bits, "");
    LLVMValueRef yes = LLVMBuildBitCast(b, LLVMGetOperand(select, 1), bits, "");
    LLVMValueRef no = LLVMBuildBitCast(b, LLVMGetOperand(select, 2), bits, "");
    yes = LLVMBuildAnd(b, LLVMBuildFreeze(b, yes, ""), mask, ""); /* what is not chosen may be poison */
    no = LLVMBuildAnd(b, LLVMBuildFreeze(b, no, ""), LLVMBuildNot(b, mask, ""), "");
    return LLVMBuildBitCast(b, LLVMBuildOr(b, yes, no, ""), LLVMTypeOf(select), "");
}

static void mask_selects_in(const Codegen *codegen, LLVMBasicBlockRef block, LLVMBuilderRef b)
{
    for (LLVMValueRef instruction = LLVMGetFirstInstruction(block), next; instruction; instruction = next) {
        next = LLVMGetNextInstruction(instruction);
        LLVMTypeRef bits = mask_type(codegen, LLVMTypeOf(instruction));
        if (!bits || LLVMGetInstructionOpcode(instruction) != LLVMSelect)
            continue;
        LLVMPositionBuilderBefore(b, instruction);
        LLVMReplaceAllUsesWith(instruction, masked(b, instruction, bits));
        LLVMInstructionEraseFromParent(instruction);
    }
}

void tt_codegen_mask_selects(Codegen *codegen)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(codegen->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            mask_selects_in(codegen, block, b);
    LLVMDisposeBuilder(b);
}
