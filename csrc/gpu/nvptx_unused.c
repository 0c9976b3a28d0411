/* What the lanes of a warp do together and nobody uses: ptxas must not see it. LLVM takes it for an effect and keeps it; ptxas
 * drops it, but late. Where it computes a or b and a and b, of predicates, by one instruction (PLOP3), and only what it dropped
 * used the second, it keeps that one and loses the first (12.4 to 13.5, every GPU). So these calls are without effect for as
 * long as LLVM looks for what nobody uses; no longer, since of two that are alike it would drop one, and keep the other's result
 * in a register (scans took up to a quarter more of them). */
#include "gpu/simt.h"

typedef TT_VECTOR(LLVMValueRef) Calls;

static bool begins_with(const char *text, const char *start) { return !strncmp(text, start, strlen(start)); }

static bool is_of_a_warp(LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    size_t size;
    if (LLVMIsAInlineAsm(callee))
        return begins_with(LLVMGetInlineAsmAsmString(callee, &size), "ldmatrix.");
    const char *name = LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &size) : "";
    return begins_with(name, "llvm.nvvm.shfl.") || begins_with(name, "llvm.nvvm.redux.");
}

static Calls calls_of_warps(Codegen *codegen, Arena *arena)
{
    Calls calls = {0};
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
                if (LLVMIsACallInst(i) && is_of_a_warp(i))
                    tt_push(arena, calls, i);
    return calls;
}

static void set_effect(Codegen *codegen, Calls calls, bool has_effect)
{
    static const char *const names[] = {"memory", "willreturn"}; /* memory: 0 is none */
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    for (int i = 0; i < calls.count; i++)
        for (size_t k = 0; k < TT_COUNT(names); k++) {
            unsigned kind = LLVMGetEnumAttributeKindForName(names[k], strlen(names[k]));
            if (has_effect)
                LLVMRemoveCallSiteEnumAttribute(calls.data[i], at, kind);
            else
                LLVMAddCallSiteAttribute(calls.data[i], at,
                                         LLVMCreateEnumAttribute(codegen->context, kind, 0));
        }
}

void tt_nvptx_drop_unused(Codegen *codegen, Arena *arena)
{
    set_effect(codegen, calls_of_warps(codegen, arena), false);
    tt_codegen_run_passes(codegen, "function(adce)");
    set_effect(codegen, calls_of_warps(codegen, arena), true);
}
