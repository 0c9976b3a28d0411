/* Both halves of a product of words by one instruction. LLVM knows one for the high half (mul.hi) and one for the low half
 * (mul.lo.s32), and ptxas does not see that they multiply the same. mul.wide takes as long as mul.hi alone, which is two
 * mul.lo (64 and 32 in a clock on sm_90): random numbers by Philox are such products, twenty of them for four. */
#include "gpu/nvptx_inline.h"

enum { WORD = 32 };

/* A product of words: as one of words, or widened to twice that. */
typedef struct Product {
    LLVMValueRef instruction, factors[2]; /* the second one may be a constant */
    bool is_wide, is_signed;
    int place; /* in its block */
} Product;

typedef struct Products {
    LLVMBuilderRef b;
    Arena *arena;
    TT_VECTOR(Product) words, wide; /* of the block */
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
    if (LLVMGetInstructionOpcode(instruction) != LLVMMul || (bits != WORD && bits != 2 * WORD))
        return;
    Product product = {.instruction = instruction, .is_wide = bits == 2 * WORD, .place = place};
    LLVMValueRef a = LLVMGetOperand(instruction, 0), b = LLVMGetOperand(instruction, 1);
    product.factors[0] = a;
    product.factors[1] = b;
    if (!product.is_wide) {
        tt_push(p->arena, p->words, product);
        return;
    }
    product.is_signed = LLVMIsASExtInst(a) != NULL;
    if (!product.is_signed && !LLVMIsAZExtInst(a))
        return;
    product.factors[0] = word_of(a, a, product.is_signed);
    product.factors[1] = word_of(b, a, product.is_signed);
    if (product.factors[0] && product.factors[1])
        tt_push(p->arena, p->wide, product);
}

static bool multiply_the_same(const Product *x, const Product *y)
{
    return (x->factors[0] == y->factors[0] && x->factors[1] == y->factors[1]) ||
           (x->factors[0] == y->factors[1] && x->factors[1] == y->factors[0]);
}

/* Out of LLVM's sight, which would make a product of words of what needs no more. */
static LLVMValueRef multiply(const Products *p, const Product *product)
{
    static const char unsigned_text[] = "mul.wide.u32 $0, $1, $2;",
                      signed_text[] = "mul.wide.s32 $0, $1, $2;";
    const char *text = product->is_signed ? signed_text : unsigned_text;
    const char *constraints = LLVMIsAConstantInt(product->factors[1]) ? "=l,r,n" : "=l,r,r";
    LLVMTypeRef word = LLVMTypeOf(product->factors[0]), types[] = {word, word};
    LLVMTypeRef function = LLVMFunctionType(LLVMTypeOf(product->instruction), types, 2, 0);
    LLVMValueRef code = LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), 0, 0,
                                         LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(p->b, function, code, (LLVMValueRef *)product->factors, 2, "");
}

static void replace(const Products *p, const Product *wide, Product *word)
{
    bool is_first = word->place < wide->place;
    LLVMPositionBuilderBefore(p->b, is_first ? word->instruction : wide->instruction);
    LLVMValueRef both = multiply(p, wide);
    LLVMReplaceAllUsesWith(word->instruction, LLVMBuildTrunc(p->b, both, LLVMTypeOf(word->instruction), ""));
    LLVMReplaceAllUsesWith(wide->instruction, both);
    LLVMInstructionEraseFromParent(word->instruction);
    LLVMInstructionEraseFromParent(wide->instruction);
    word->instruction = NULL;
}

static void join_halves(Products *p)
{
    for (int i = 0; i < p->wide.count; i++)
        for (int j = 0; j < p->words.count; j++)
            if (p->words.data[j].instruction && multiply_the_same(&p->wide.data[i], &p->words.data[j])) {
                replace(p, &p->wide.data[i], &p->words.data[j]);
                break;
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
