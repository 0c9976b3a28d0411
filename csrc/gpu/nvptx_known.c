/* What LLVM found out and cannot use by itself: an access whose predicate is false leaves its registers as they were, and a
 * constant is the same in all lanes that exchange it. ptxas would find these constants, late, and computes wrongly with such
 * 16-bit integers: of whether the larger one of a register and a constant is that constant it makes a VIMNMX.S16x2 with one
 * predicate for both halves (12.8, 13.0). */
#include "gpu/nvptx_inline.h"

#include <stdlib.h>

/* Of an access by inline PTX, whether its predicate is a constant that keeps it from happening. */
static bool never_happens(LLVMValueRef call)
{
    const char *text = nvptx_text_of(call);
    if (!text || strncmp(text, "@$", 2))
        return false;
    int place = atoi(text + 2) - nvptx_result_count(call);
    LLVMValueRef predicate = LLVMGetOperand(call, (unsigned)place);
    return LLVMIsAConstantInt(predicate) && !LLVMConstIntGetZExtValue(predicate);
}

/* What its registers held before; zeros, where nothing is said of them. */
static LLVMValueRef before(LLVMBuilderRef b, LLVMValueRef call)
{
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMValueRef values = LLVMConstNull(type);
    int tied = nvptx_tied_count(call);
    if (LLVMGetTypeKind(type) != LLVMStructTypeKind)
        return tied ? LLVMGetOperand(call, 0) : values;
    for (int i = 0; i < tied; i++)
        values = LLVMBuildInsertValue(b, values, LLVMGetOperand(call, (unsigned)i), (unsigned)i, "");
    return values;
}

/* Of a shuffle among the lanes: what all of them give, or NULL. */
static LLVMValueRef exchanged_constant(LLVMValueRef call)
{
    static const char start[] = "llvm.nvvm.shfl.sync.";
    LLVMValueRef callee = LLVMGetCalledValue(call);
    size_t size;
    const char *name = LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &size) : "";
    if (strncmp(name, start, sizeof start - 1) || LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMIntegerTypeKind)
        return NULL;
    LLVMValueRef word = LLVMGetOperand(call, 1);
    return LLVMIsAConstantInt(word) ? word : NULL;
}

static bool use(LLVMBuilderRef b, LLVMValueRef call)
{
    bool is_dead = never_happens(call);
    LLVMPositionBuilderBefore(b, call);
    LLVMValueRef value = is_dead && nvptx_result_count(call) ? before(b, call) : exchanged_constant(call);
    if (value)
        LLVMReplaceAllUsesWith(call, value);
    if (is_dead || value)
        LLVMInstructionEraseFromParent(call);
    return is_dead || value;
}

bool tt_nvptx_use_known(Codegen *codegen)
{
    bool changed = false;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(codegen->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                changed |= LLVMIsACallInst(i) && use(b, i);
            }
    LLVMDisposeBuilder(b);
    return changed;
}
