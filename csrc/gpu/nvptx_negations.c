/* Negations and magnitudes of 16-bit integers that ptxas must not see. It computes neg.s16 and abs.s16 in registers of 32 bits
 * and takes the result for widened already, which it is not for -32768: where that is compared, shifted or widened it stays
 * 32768 (12.8, 13.0). So they are computed in 32 bits, out of LLVM's sight, which would narrow them again. */
#include "gpu/simt.h"

typedef struct Widening {
    LLVMBuilderRef b;
    unsigned abs;
} Widening;

static bool is_short(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 16;
}

static bool is_magnitude(const Widening *w, LLVMValueRef instruction)
{
    LLVMValueRef callee = LLVMIsACallInst(instruction) ? LLVMGetCalledValue(instruction) : NULL;
    return callee && LLVMIsAFunction(callee) && LLVMGetIntrinsicID(callee) == w->abs;
}

/* What the instruction negates, or NULL. */
static LLVMValueRef negated(LLVMValueRef instruction)
{
    bool is_difference = LLVMGetInstructionOpcode(instruction) == LLVMSub;
    return is_difference && LLVMIsNull(LLVMGetOperand(instruction, 0)) ? LLVMGetOperand(instruction, 1)
                                                                       : NULL;
}

static void widen(const Widening *w, LLVMValueRef instruction)
{
    static const char constraints[] = "=h,h",
                      negation[] = "{.reg .b32 wide; cvt.s32.s16 wide, $1; neg.s32 wide, wide; "
                                   "cvt.u16.u32 $0, wide;}",
                      magnitude[] = "{.reg .b32 wide; cvt.s32.s16 wide, $1; abs.s32 wide, wide; "
                                    "cvt.u16.u32 $0, wide;}";
    LLVMTypeRef type = LLVMTypeOf(instruction);
    LLVMValueRef operand = is_short(type) ? negated(instruction) : NULL;
    const char *text = negation;
    if (!operand && is_short(type) && is_magnitude(w, instruction)) {
        operand = LLVMGetOperand(instruction, 0);
        text = magnitude;
    }
    if (!operand)
        return;
    LLVMTypeRef function = LLVMFunctionType(type, &type, 1, 0);
    LLVMValueRef code = LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), 0, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMPositionBuilderBefore(w->b, instruction);
    LLVMReplaceAllUsesWith(instruction, LLVMBuildCall2(w->b, function, code, &operand, 1, ""));
    LLVMInstructionEraseFromParent(instruction);
}

void tt_nvptx_widen_negations(Codegen *codegen)
{
    static const char name[] = "llvm.abs";
    Widening w = {LLVMCreateBuilderInContext(codegen->context), LLVMLookupIntrinsicID(name, strlen(name))};
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                widen(&w, i);
            }
    LLVMDisposeBuilder(w.b);
}
