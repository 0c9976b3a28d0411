/* exp and exp2 of f32, in line: a call of the vector library would spill every vector register around it. The argument
 * is split into an integer n and a rest r, e^x = 2^n e^r with |r| <= ln(2) / 2 (or 2^x = 2^n 2^r, |r| <= 1/2), and the
 * function of the rest is a polynomial: the minimax ones of relative error 2^-28, by the Remez exchange. The result is
 * within 1 ulp, denormals included. */
#include "cpu/emit.h"

/* e^r = 1 + r + r^2 p(r); 2^r = 1 + r p(r); lowest power first */
static const double exp_terms[] = {0x1.fffffcp-2, 0x1.555490p-3, 0x1.5558f4p-5, 0x1.123a6cp-7, 0x1.6a2352p-10};
static const double exp2_terms[] = {0x1.62e430p-1, 0x1.ebfbdcp-3, 0x1.c6aee8p-5,
                                    0x1.3b2d4cp-7, 0x1.5f3e52p-10, 0x1.41fbbcp-13};
/* ln(2) in two parts: the first has few enough bits that n times it is exact */
static const double log2_e = 0x1.715476p+0, ln2_high = 0x1.62e400p-1, ln2_low = 0x1.7f7d1cp-20;
/* Adding it to a number below 2^22 rounds to an integer, which is then in the low bits. */
static const double rounder = 0x1.8p23;

static LLVMValueRef fma_of(Emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    return emit_intrinsic(e, "llvm.fma", &type, 1, (LLVMValueRef[]){a, b, c}, 3);
}

static LLVMValueRef polynomial(Emit *e, LLVMValueRef x, const double *terms, int count)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef sum = const_float(type, terms[count - 1]);
    for (int i = count - 2; i >= 0; i--)
        sum = fma_of(e, sum, x, const_float(type, terms[i]));
    return sum;
}

/* value * 2^n in two steps, so that neither factor leaves the normal range. */
static LLVMValueRef scale(Emit *e, LLVMValueRef value, LLVMValueRef n)
{
    LLVMTypeRef type = LLVMTypeOf(value), ints = with_element(type, e->i32);
    LLVMValueRef half = LLVMBuildAShr(e->b, n, const_int(ints, 1), "");
    LLVMValueRef rest = LLVMBuildSub(e->b, n, half, ""), parts[2] = {half, rest};
    for (int i = 0; i < 2; i++) {
        LLVMValueRef biased = LLVMBuildAdd(e->b, parts[i], const_int(ints, 127), "");
        LLVMValueRef bits = LLVMBuildShl(e->b, biased, const_int(ints, 23), "");
        value = LLVMBuildFMul(e->b, value, LLVMBuildBitCast(e->b, bits, type, ""), "");
    }
    return value;
}

/* The same by one instruction, from n as a float. */
static LLVMValueRef scale_by_instruction(Emit *e, LLVMValueRef value, LLVMValueRef n)
{
    LLVMValueRef all = const_int(e->i16, -1), rounding = const_int(e->i32, 4 /* the current direction */);
    LLVMValueRef args[5] = {value, n, value, all, rounding};
    return emit_intrinsic(e, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, args, 5);
}

/* Lets NaN through: the comparison with it is false. */
static LLVMValueRef clamp(Emit *e, LLVMValueRef x, double low, double high)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef top = const_float(type, high), bottom = const_float(type, low);
    x = emit_select(e, LLVMBuildFCmp(e->b, LLVMRealOLT, top, x, ""), top, x);
    return emit_select(e, LLVMBuildFCmp(e->b, LLVMRealOGT, bottom, x, ""), bottom, x);
}

static LLVMValueRef emit_exp(Emit *e, LLVMValueRef x, bool base2)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef one = const_float(type, 1), shift = const_float(type, rounder), value;
    x = base2 ? clamp(e, x, -152, 129) : clamp(e, x, -105, 89);
    LLVMValueRef shifted = base2 ? LLVMBuildFAdd(e->b, x, shift, "")
                                 : fma_of(e, x, const_float(type, log2_e), shift);
    LLVMValueRef n = LLVMBuildFSub(e->b, shifted, shift, "");
    if (base2) {
        LLVMValueRef rest = LLVMBuildFSub(e->b, x, n, "");
        value = fma_of(e, polynomial(e, rest, exp2_terms, TT_COUNT(exp2_terms)), rest, one);
    } else {
        LLVMValueRef rest = fma_of(e, n, const_float(type, -ln2_high), x);
        rest = fma_of(e, n, const_float(type, -ln2_low), rest);
        LLVMValueRef square = LLVMBuildFMul(e->b, rest, rest, "");
        value = fma_of(e, polynomial(e, rest, exp_terms, TT_COUNT(exp_terms)), square, rest);
        value = LLVMBuildFAdd(e->b, value, one, "");
    }
    if (e->codegen->host.has_avx512 && width_of(x) == 16)
        return scale_by_instruction(e, value, n);
    LLVMTypeRef ints = with_element(type, e->i32);
    LLVMValueRef bits = LLVMBuildBitCast(e->b, shifted, ints, "");
    return scale(e, value, LLVMBuildSub(e->b, bits, LLVMBuildBitCast(e->b, shift, ints, ""), ""));
}

LLVMValueRef emit_exponential(Emit *e, const char *name, LLVMTypeRef type, LLVMValueRef x)
{
    bool base2 = !strcmp(name, "exp2");
    if (element_of(type) != e->f32 || !e->codegen->host.has_fma || (!base2 && strcmp(name, "exp")))
        return NULL;
    return emit_exp(e, x, base2);
}
