/* Both halves of a product of words by one instruction. LLVM knows one for the high half (mul.hi) and one for the low half
 * (mul.lo.s32), and ptxas does not see that they multiply the same. mul.wide takes as long as mul.hi alone, which is two
 * mul.lo (64 and 32 in a clock on sm_90): random numbers by Philox are such products, twenty of them for four. */
#include "gpu/nvptx_inline.h"

enum { WORD = 32 };

typedef struct Product {
    LLVMValueRef instruction;
    int place; /* in its block */
} Product;

/* What is multiplied, the second factor perhaps a constant: found when it is asked for, since what is replaced may be a factor. */
typedef struct Factors {
    LLVMValueRef at[2];
    bool are_signed; /* of a product of words that were widened */
} Factors;

typedef struct Products {
    LLVMBuilderRef b;
    Arena *arena;
    TT_VECTOR(Product) words, wide; /* of the block: of words, and of what has twice their width */
} Products;

static unsigned bits_of(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

/* The word that was widened; NULL: none was. */
static LLVMValueRef word_of(LLVMValueRef value, LLVMValueRef extension, bool is_signed)
{
    LLVMTypeRef word = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(value)));
    if (LLVMIsAConstantInt(value)) {
        int64_t number = LLVMConstIntGetSExtValue(value);
        bool fits = is_signed ? number == (int32_t)number : number == (uint32_t)number;
        return fits ? LLVMConstInt(word, (unsigned long long)number & UINT32_MAX, 0) : NULL;
    }
    bool is_alike =
        LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMGetInstructionOpcode(extension);
    LLVMValueRef narrow = is_alike ? LLVMGetOperand(value, 0) : NULL;
    return narrow && bits_of(narrow) == WORD ? narrow : NULL;
}

static void note(Products *p, LLVMValueRef instruction, int place)
{
    unsigned bits = bits_of(instruction);
    Product product = {instruction, place};
    if (LLVMGetInstructionOpcode(instruction) != LLVMMul)
        return;
    if (bits == WORD)
        tt_push(p->arena, p->words, product);
    else if (bits == 2 * WORD)
        tt_push(p->arena, p->wide, product);
}

/* False where not words are multiplied. */
static bool find_factors(LLVMValueRef wide, Factors *factors)
{
    LLVMValueRef first = LLVMGetOperand(wide, 0);
    factors->are_signed = LLVMIsASExtInst(first) != NULL;
    if (!factors->are_signed && !LLVMIsAZExtInst(first))
        return false;
    for (unsigned i = 0; i < 2; i++)
        factors->at[i] = word_of(LLVMGetOperand(wide, i), first, factors->are_signed);
    return factors->at[0] && factors->at[1];
}

static bool multiplies(LLVMValueRef word, const Factors *factors)
{
    LLVMValueRef a = LLVMGetOperand(word, 0), b = LLVMGetOperand(word, 1);
    return (a == factors->at[0] && b == factors->at[1]) || (a == factors->at[1] && b == factors->at[0]);
}

/* By inline PTX, out of LLVM's sight, which would make a product of words of what needs no more. */
static void replace(const Products *p, const Product *wide, Product *word, const Factors *factors)
{
    const char *text = factors->are_signed ? "mul.wide.s32 $0, $1, $2;" : "mul.wide.u32 $0, $1, $2;";
    const char *constraints = LLVMIsAConstantInt(factors->at[1]) ? "=l,r,n" : "=l,r,r";
    bool is_first = word->place < wide->place;
    LLVMPositionBuilderBefore(p->b, is_first ? word->instruction : wide->instruction);
    LLVMValueRef both = nvptx_call(p->b, text, constraints, LLVMTypeOf(wide->instruction), factors->at, 2);
    LLVMReplaceAllUsesWith(word->instruction, LLVMBuildTrunc(p->b, both, LLVMTypeOf(word->instruction), ""));
    LLVMReplaceAllUsesWith(wide->instruction, both);
    LLVMInstructionEraseFromParent(word->instruction);
    LLVMInstructionEraseFromParent(wide->instruction);
    word->instruction = NULL;
}

static void join_halves(Products *p)
{
    for (int i = 0; i < p->wide.count; i++) {
        const Product *wide = &p->wide.data[i];
        Factors factors;
        bool joined = !find_factors(wide->instruction, &factors);
        for (int j = 0; j < p->words.count && !joined; j++) {
            Product *word = &p->words.data[j];
            joined = word->instruction && multiplies(word->instruction, &factors);
            if (joined)
                replace(p, wide, word, &factors);
        }
    }
}

void tt_nvptx_join_halves(Codegen *codegen, Arena *arena)
{
    Products p = {.b = LLVMCreateBuilderInContext(codegen->context), .arena = arena};
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block)) {
            int place = p.words.count = p.wide.count = 0;
            for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
                note(&p, i, place++);
            join_halves(&p);
        }
    LLVMDisposeBuilder(p.b);
}
