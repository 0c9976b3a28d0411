/* Operations on 16-bit integers that ptxas must not see, since it computes them wrongly (12.8, 13.0):
 * - neg.s16 and abs.s16 in registers of 32 bits, whose result it takes for widened already, which it is not for -32768: where
 *   that is compared, shifted or widened it stays 32768. They are computed in 32 bits, out of LLVM's sight, which would
 *   narrow them again.
 * - Whether the larger or the smaller one of x and c is c, where it knows c to be a constant, by VIMNMX.S16x2 with one predicate
 *   for both halves of a register. Where LLVM knows c, too, it compares x. Otherwise it is asked whether they are different,
 *   which ptxas compares. */
#include "gpu/nvptx_inline.h"

typedef struct Shorts {
    LLVMBuilderRef b;
    unsigned abs, extrema[4];
} Shorts;

static unsigned intrinsic(const char *name) { return LLVMLookupIntrinsicID(name, strlen(name)); }

static bool is_short(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 16;
}

static unsigned intrinsic_of(LLVMValueRef value)
{
    LLVMValueRef callee = LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : NULL;
    return callee && LLVMIsAFunction(callee) ? LLVMGetIntrinsicID(callee) : 0;
}

/* What the instruction negates, or NULL. */
static LLVMValueRef negated(LLVMValueRef instruction)
{
    bool is_difference = LLVMGetInstructionOpcode(instruction) == LLVMSub;
    return is_difference && LLVMIsNull(LLVMGetOperand(instruction, 0)) ? LLVMGetOperand(instruction, 1)
                                                                       : NULL;
}

static void replace(const Shorts *s, LLVMValueRef instruction, const char *text, const char *constraints,
                    LLVMValueRef *operands, unsigned count)
{
    LLVMTypeRef type = LLVMTypeOf(instruction);
    LLVMReplaceAllUsesWith(instruction, nvptx_call(s->b, text, constraints, type, operands, count));
    LLVMInstructionEraseFromParent(instruction);
}

static void widen(const Shorts *s, LLVMValueRef instruction)
{
    static const char negation[] = "{.reg .b32 wide; cvt.s32.s16 wide, $1; neg.s32 wide, wide; "
                                   "cvt.u16.u32 $0, wide;}",
                      magnitude[] = "{.reg .b32 wide; cvt.s32.s16 wide, $1; abs.s32 wide, wide; "
                                    "cvt.u16.u32 $0, wide;}";
    LLVMValueRef operand = negated(instruction);
    bool is_magnitude = !operand && intrinsic_of(instruction) == s->abs;
    if (is_magnitude)
        operand = LLVMGetOperand(instruction, 0);
    LLVMPositionBuilderBefore(s->b, instruction);
    if (operand)
        replace(s, instruction, is_magnitude ? magnitude : negation, "=h,h", &operand, 1);
}

/* The smaller or larger one of two, maybe of another width. */
static bool is_extremum(const Shorts *s, LLVMValueRef value)
{
    while (LLVMIsATruncInst(value) || LLVMIsAZExtInst(value) || LLVMIsASExtInst(value))
        value = LLVMGetOperand(value, 0);
    unsigned id = intrinsic_of(value);
    for (size_t i = 0; i < TT_COUNT(s->extrema); i++)
        if (id == s->extrema[i])
            return true;
    return false;
}

/* Out of LLVM's sight, which may turn it round. */
static void compare_otherwise(const Shorts *s, LLVMValueRef comparison)
{
    static const char differ[] = "setp.ne.b16 $0, $1, $2;",
                      equal[] = "{.reg .pred differ; setp.ne.b16 differ, $1, $2; not.pred $0, differ;}";
    LLVMIntPredicate asked = LLVMGetICmpPredicate(comparison);
    LLVMValueRef operands[] = {LLVMGetOperand(comparison, 0), LLVMGetOperand(comparison, 1)};
    LLVMTypeRef type = LLVMTypeOf(operands[0]), word = LLVMInt16TypeInContext(LLVMGetTypeContext(type));
    bool is_integer = LLVMGetTypeKind(type) == LLVMIntegerTypeKind;
    if (!(asked == LLVMIntEQ || asked == LLVMIntNE) || !is_integer || LLVMGetIntTypeWidth(type) < 8 ||
        LLVMGetIntTypeWidth(type) > 16 || !(is_extremum(s, operands[0]) || is_extremum(s, operands[1])))
        return;
    LLVMPositionBuilderBefore(s->b, comparison);
    for (int i = 0; i < 2; i++)
        operands[i] = LLVMBuildIntCast2(s->b, operands[i], word, 0, "");
    replace(s, comparison, asked == LLVMIntEQ ? equal : differ, "=b,h,h", operands, 2);
}

void tt_nvptx_guard_shorts(Codegen *codegen)
{
    Shorts s = {
        LLVMCreateBuilderInContext(codegen->context),
        intrinsic("llvm.abs"),
        {intrinsic("llvm.smax"), intrinsic("llvm.smin"), intrinsic("llvm.umax"), intrinsic("llvm.umin")}};
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (is_short(LLVMTypeOf(i)))
                    widen(&s, i);
                else if (LLVMIsAICmpInst(i))
                    compare_otherwise(&s, i);
            }
    LLVMDisposeBuilder(s.b);
}
