/* exp, exp2, exp10, erf, log and log2 of f32, in line: a call of the vector library would spill every vector register around it.
 *
 * The argument of an exponential is split into an integer n and a rest r, e^x = 2^n e^r with |r| <= ln(2) / 2 (or
 * 2^x = 2^n 2^r, |r| <= 1/2), and the function of the rest is a polynomial: the minimax ones of relative error 2^-28, by
 * the Remez exchange. exp and exp2 are within 1 ulp, exp10 within 2, denormals included. erf, within 2, is a polynomial up
 * to 1, and 1 - q(|x|)^4 from there on: the fourth root of erfc is as smooth as its logarithm, and raising it to its power
 * takes a fraction of what an exponential does. */
#include "codegen/logarithms.h"
#include "cpu/emit.h"

/* e^r = 1 + r + r^2 p(r); 2^r = 1 + r p(r); lowest power first */
static const double exp_terms[] = {0x1.fffffcp-2, 0x1.555490p-3, 0x1.5558f4p-5, 0x1.123a6cp-7,
                                   0x1.6a2352p-10};
static const double exp2_terms[] = {0x1.62e430p-1, 0x1.ebfbdcp-3,  0x1.c6aee8p-5,
                                    0x1.3b2d4cp-7, 0x1.5f3e52p-10, 0x1.41fbbcp-13};
/* ln(2) in two parts: the first has few enough bits that n times it is exact */
static const double log2_e = 0x1.715476p+0, ln2_high = 0x1.62e400p-1, ln2_low = 0x1.7f7d1cp-20;
static const double log2_10 = 0x1.a934f0p+1, log10_2_high = 0x1.3440p-2, log10_2_low = 0x1.3509f8p-18;
static const double ln10_high = 0x1.26bb1cp+1, ln10_low = -0x1.12aabap-25;
/* erf(x) = x + x p(x^2) up to 1; (1 - erf(x))^(1/4) = q(x) from 1 on, to where 1 - q^4 is 1 */
static const double erf_terms[] = {0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2cf8p-4, -0x1.b7f90ep-6,
                                   0x1.5405b2p-8, -0x1.a3f700p-11, 0x1.496a32p-14};
static const double erfc_root_terms[] = {0x1.0104a4p+0, -0x1.35d568p-2, -0x1.2f7488p-4, -0x1.4c062ep-5,
                                         0x1.f10120p-5, -0x1.4f3710p-6, 0x1.7fc4e0p-9,  -0x1.497212p-13};
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

/* value * 2^n in two steps, so that neither factor leaves the normal range. At n = -254 they are 0: what is far from any
 * number, as e^-inf of masked elements is, does not go through denormals, which take several times as long. */
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

typedef enum Base { BASE_E, BASE_2, BASE_10 } Base;

/* base^rest, where |base^rest| is within a factor of sqrt(2) of 1 */
static LLVMValueRef emit_rest(Emit *e, Base base, LLVMValueRef rest)
{
    LLVMTypeRef type = LLVMTypeOf(rest);
    LLVMValueRef one = const_float(type, 1);
    if (base == BASE_2)
        return fma_of(e, polynomial(e, rest, exp2_terms, TT_COUNT(exp2_terms)), rest, one);
    if (base == BASE_10) {
        LLVMValueRef low = LLVMBuildFMul(e->b, rest, const_float(type, ln10_low), "");
        rest = fma_of(e, rest, const_float(type, ln10_high), low);
    }
    LLVMValueRef square = LLVMBuildFMul(e->b, rest, rest, "");
    LLVMValueRef value = fma_of(e, polynomial(e, rest, exp_terms, TT_COUNT(exp_terms)), square, rest);
    return LLVMBuildFAdd(e->b, value, one, "");
}

static LLVMValueRef emit_exp(Emit *e, LLVMValueRef x, Base base)
{
    static const struct {
        double low, high;         /* beyond, the result is 0 or infinite; at `low` 2^(n/2) is 0, too */
        double factor;            /* log2 of the base */
        double log_high, log_low; /* log of 2 to the base */
    } bases[] = {
        [BASE_E] = {-176, 89, log2_e, ln2_high, ln2_low},
        [BASE_2] = {-254, 129, 1, 1, 0},
        [BASE_10] = {-76.4, 39, log2_10, log10_2_high, log10_2_low},
    };
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef shift = const_float(type, rounder);
    x = clamp(e, x, bases[base].low, bases[base].high);
    LLVMValueRef shifted = fma_of(e, x, const_float(type, bases[base].factor), shift);
    LLVMValueRef n = LLVMBuildFSub(e->b, shifted, shift, "");
    LLVMValueRef rest = fma_of(e, n, const_float(type, -bases[base].log_high), x);
    if (bases[base].log_low != 0)
        rest = fma_of(e, n, const_float(type, -bases[base].log_low), rest);
    LLVMValueRef value = emit_rest(e, base, rest);
    if (e->codegen->host.has_avx512 && width_of(x) == 16)
        return scale_by_instruction(e, value, n);
    LLVMTypeRef ints = with_element(type, e->i32);
    LLVMValueRef bits = LLVMBuildBitCast(e->b, shifted, ints, "");
    return scale(e, value, LLVMBuildSub(e->b, bits, LLVMBuildBitCast(e->b, shift, ints, ""), ""));
}

static LLVMValueRef emit_erf(Emit *e, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef one = const_float(type, 1), size = emit_intrinsic1(e, "llvm.fabs", x);
    LLVMValueRef square = LLVMBuildFMul(e->b, x, x, "");
    LLVMValueRef small = fma_of(e, x, polynomial(e, square, erf_terms, TT_COUNT(erf_terms)), x);
    LLVMValueRef end = const_float(type, 4.1875);
    LLVMValueRef bounded = emit_select(e, LLVMBuildFCmp(e->b, LLVMRealOLT, end, size, ""), end, size);
    LLVMValueRef root = polynomial(e, bounded, erfc_root_terms, TT_COUNT(erfc_root_terms));
    square = LLVMBuildFMul(e->b, root, root, "");
    LLVMValueRef large = fma_of(e, LLVMBuildFNeg(e->b, square, ""), square, one);
    large = emit_intrinsic2(e, "llvm.copysign", large, x);
    return emit_select(e, LLVMBuildFCmp(e->b, LLVMRealOLT, size, one, ""), small, large);
}

LLVMValueRef emit_exponential(Emit *e, const char *name, LLVMTypeRef type, LLVMValueRef x)
{
    if (element_of(type) != e->f32 || !e->codegen->host.has_fma)
        return NULL;
    if (!strcmp(name, "erf"))
        return emit_erf(e, x);
    if (!strcmp(name, "exp"))
        return emit_exp(e, x, BASE_E);
    if (!strcmp(name, "exp2"))
        return emit_exp(e, x, BASE_2);
    if (!strcmp(name, "log") || !strcmp(name, "log2"))
        return tt_build_log(e->b, x, name[3] == '2');
    return strcmp(name, "exp10") ? NULL : emit_exp(e, x, BASE_10);
}
