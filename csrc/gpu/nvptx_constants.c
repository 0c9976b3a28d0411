/* Constants that ptxas must not see. To widen the upper half of a register of 8-bit floats it has an instruction of its own
 * (F2FP.UNPACK_B R.H1), and where it finds out late that the register holds a constant it encodes garbage (12.8, 13.0; right
 * where it knows early): because a load under a predicate has the same register as its result, because the predicate turns
 * out to be false, or the loop is unrolled. Products by mma.sync are such widenings on sm_90. So whatever constant may
 * become an operand of these is computed from what ptxas does not know. */
#include "gpu/nvptx_inline.h"

typedef struct Hiding {
    Codegen *codegen;
    Arena *arena;
    Map seen; /* instructions that were pushed */
    TT_VECTOR(LLVMValueRef) pending;
    LLVMBuilderRef b;
    LLVMValueRef zero; /* i32, in the function at hand; NULL until it is asked for */
    Map hidden;        /* constant -> the same, computed there */
} Hiding;

static bool widens_fp8(LLVMValueRef instruction)
{
    static const char *const names[] = {"f16x2.e4m3x2", "f16x2.e5m2x2", ".f32.e4m3.", ".f32.e5m2."};
    const char *text = nvptx_text_of(instruction);
    for (size_t i = 0; text && i < TT_COUNT(names); i++)
        if (strstr(text, names[i]))
            return true;
    return false;
}

/* ---- hiding --------------------------------------------------------------------------------------------------------------------------- */

/* i32: zero, since no lane's number is below 0. */
static LLVMValueRef hidden_zero(Hiding *h)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(h->codegen->context);
    if (!h->zero) {
        LLVMValueRef mask = nvptx_call(h->b, "mov.u32 $0, %lanemask_gt;", "=r", i32, NULL, 0);
        h->zero = LLVMBuildAnd(h->b, mask, LLVMConstInt(i32, 1, 0), "");
    }
    return h->zero;
}

/* Bits of an integer or of a vector of them that fits a register; 0: something else. */
static unsigned integer_bits(LLVMTypeRef type)
{
    unsigned count = 1;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        count = LLVMGetVectorSize(type);
        type = LLVMGetElementType(type);
    }
    unsigned bits = LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? count * LLVMGetIntTypeWidth(type) : 0;
    return bits <= 64 ? bits : 0;
}

static LLVMValueRef hidden(Hiding *h, LLVMValueRef constant)
{
    LLVMTypeRef type = LLVMTypeOf(constant);
    unsigned bits = integer_bits(type);
    if (!bits || LLVMIsUndef(constant) || LLVMIsPoison(constant))
        return constant;
    void **slot = tt_map_slot_ptr(&h->hidden, constant);
    if (!*slot) {
        LLVMTypeRef word = LLVMIntTypeInContext(h->codegen->context, bits);
        LLVMValueRef zero = LLVMBuildIntCast2(h->b, hidden_zero(h), word, 0, "");
        LLVMValueRef value = LLVMBuildXor(h->b, zero, LLVMBuildBitCast(h->b, constant, word, ""), "");
        *slot = LLVMBuildBitCast(h->b, value, type, "");
    }
    return *slot;
}

/* ---- what becomes an operand ---------------------------------------------------------------------------------------------------------- */

static void follow(Hiding *h, LLVMValueRef value)
{
    bool is_word =
        integer_bits(LLVMTypeOf(value)) > 1 || LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMStructTypeKind;
    if (!is_word || !LLVMIsAInstruction(value) || tt_map_find_ptr(&h->seen, value))
        return;
    *tt_map_slot_ptr(&h->seen, value) = value;
    tt_push(h->arena, h->pending, value);
}

/* Of what is an element or a word of them as it stands. */
static void hide_operands(Hiding *h, LLVMValueRef user, int first, int end)
{
    for (int i = first; i < end; i++) {
        LLVMValueRef value = LLVMGetOperand(user, (unsigned)i);
        if (LLVMIsConstant(value))
            LLVMSetOperand(user, (unsigned)i, hidden(h, value));
        follow(h, value);
    }
}

static void visit(Hiding *h, LLVMValueRef instruction)
{
    int count = LLVMGetNumOperands(instruction);
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMPHI:
        hide_operands(h, instruction, 0, count);
        break;
    case LLVMSelect:
        hide_operands(h, instruction, 1, count);
        break;
    case LLVMInsertElement:
    case LLVMShuffleVector:
        hide_operands(h, instruction, 0, 2);
        break;
    case LLVMCall:
        if (nvptx_text_of(instruction)) {
            hide_operands(h, instruction, 0, nvptx_tied_count(instruction));
            break;
        }
        /* fall through */
    case LLVMAnd: /* masks and distances stay: they leave nothing constant of what is not */
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMBitCast:
    case LLVMFreeze:
    case LLVMExtractElement:
    case LLVMExtractValue:
        for (int i = 0; i < count; i++)
            follow(h, LLVMGetOperand(instruction, (unsigned)i));
        break;
    default:
        break; /* memory's, or what ptxas does not compute */
    }
}

static void hide_in(Hiding *h, LLVMValueRef function)
{
    LLVMPositionBuilderBefore(h->b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
    h->zero = NULL;
    h->hidden = (Map){.arena = h->arena};
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            if (widens_fp8(i))
                hide_operands(h, i, nvptx_tied_count(i), (int)LLVMGetNumArgOperands(i));
    while (h->pending.count)
        visit(h, h->pending.data[--h->pending.count]);
}

void tt_nvptx_hide_constants(Codegen *codegen, Arena *arena)
{
    Hiding h = {.codegen = codegen, .arena = arena, .seen = {.arena = arena}};
    h.b = LLVMCreateBuilderInContext(codegen->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        if (LLVMCountBasicBlocks(f))
            hide_in(&h, f);
    LLVMDisposeBuilder(h.b);
}
