#include "codegen/logarithms.h"
#include "codegen/codegen.h"
#include <math.h>

static const double log2_e = 0x1.715476p+0, log2_e_low = 0x1.4ae0c0p-26; /* two parts of log2(e) */
/* ln(2) such that the first part has few enough bits for an exponent times it to be exact */
static const double ln_2_high = 0x1.62e400p-1, ln_2_low = 0x1.7f7d1cp-20;

static LLVMValueRef splat(LLVMTypeRef type, LLVMValueRef element)
{
    LLVMValueRef elements[64];
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return element;
    unsigned count = LLVMGetVectorSize(type);
    TT_ASSERT(count <= TT_COUNT(elements));
    for (unsigned i = 0; i < count; i++)
        elements[i] = element;
    return LLVMConstVector(elements, count);
}

static LLVMTypeRef element_of(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static LLVMValueRef real(LLVMValueRef like, double value)
{
    LLVMTypeRef type = LLVMTypeOf(like);
    return splat(type, LLVMConstReal(element_of(type), value));
}

static LLVMValueRef integer(LLVMValueRef like, int64_t value)
{
    LLVMTypeRef type = LLVMTypeOf(like);
    return splat(type, LLVMConstInt(element_of(type), (unsigned long long)value, 1));
}

static LLVMValueRef fma_of(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    static const char name[] = "llvm.fma";
    LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInsertBlock(b)));
    LLVMTypeRef overload = LLVMTypeOf(x);
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(module, id, &overload, 1);
    LLVMTypeRef type = LLVMIntrinsicGetType(LLVMGetModuleContext(module), id, &overload, 1);
    return LLVMBuildCall2(b, type, function, (LLVMValueRef[]){x, y, z}, 3, "");
}

/* x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); e as a float. Sets *tail such that log(1 + f) = f + *tail:
 * f^2 times a polynomial, the minimax one of relative error 2^-25 (Remez exchange), lowest power first. */
static LLVMValueRef split(LLVMBuilderRef b, LLVMValueRef x, LLVMTypeRef ints, LLVMValueRef *tail,
                          LLVMValueRef *exponent)
{
    static const double terms[] = {-0x1.fffffap-2, 0x1.5556f4p-2, -0x1.00049ep-2, 0x1.98d27cp-3,
                                   -0x1.535c20p-3, 0x1.31871ap-3, -0x1.250e02p-3, 0x1.65d400p-4};
    enum { SQRT_HALF = 0x3f3504f3, MANTISSA_BITS = 23 };
    LLVMTypeRef floats = LLVMTypeOf(x);
    LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, real(x, 0x1p-126), "");
    x = LLVMBuildSelect(b, tiny, LLVMBuildFMul(b, x, real(x, 0x1p23), ""), x, "");
    LLVMValueRef bits = LLVMBuildBitCast(b, x, ints, "");
    LLVMValueRef e = LLVMBuildSub(b, bits, integer(bits, SQRT_HALF), "");
    e = LLVMBuildAnd(b, e, integer(e, -(1 << MANTISSA_BITS)), ""); /* in its place: no shifts */
    bits = LLVMBuildSub(b, bits, e, "");
    LLVMValueRef f = LLVMBuildFSub(b, LLVMBuildBitCast(b, bits, floats, ""), real(x, 1), "");
    LLVMValueRef scaled = LLVMBuildSelect(b, tiny, real(x, -MANTISSA_BITS), real(x, 0), "");
    *exponent = fma_of(b, LLVMBuildSIToFP(b, e, floats, ""), real(x, 0x1p-23), scaled);
    LLVMValueRef sum = real(x, terms[TT_COUNT(terms) - 1]);
    for (int i = (int)TT_COUNT(terms) - 2; i >= 0; i--)
        sum = fma_of(b, sum, f, real(x, terms[i]));
    *tail = LLVMBuildFMul(b, LLVMBuildFMul(b, f, f, ""), sum, "");
    return f;
}

/* What has a logarithm that is a number lies between 0 and infinity, by its bits below infinity's. Others are multiplied
 * to what theirs is, but for 0. */
LLVMValueRef tt_build_log(LLVMBuilderRef b, LLVMValueRef x, bool binary)
{
    enum { INFINITE = 0x7f800000 };
    LLVMTypeRef type = LLVMTypeOf(x), word = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
    LLVMTypeRef ints = type == element_of(type) ? word : LLVMVectorType(word, LLVMGetVectorSize(type));
    LLVMValueRef tail, e, f = split(b, x, ints, &tail, &e), result;
    if (binary) {
        LLVMValueRef sum = LLVMBuildFAdd(b, f, tail, "");
        result = fma_of(b, sum, real(x, log2_e), fma_of(b, sum, real(x, log2_e_low), e));
    } else {
        LLVMValueRef sum = LLVMBuildFAdd(b, f, fma_of(b, e, real(x, ln_2_low), tail), "");
        result = fma_of(b, e, real(x, ln_2_high), sum);
    }
    LLVMValueRef bits = LLVMBuildBitCast(b, x, ints, "");
    LLVMValueRef special = LLVMBuildICmp(b, LLVMIntUGE, bits, integer(bits, INFINITE), "");
    LLVMValueRef infinite = real(x, INFINITY), zero = LLVMBuildFCmp(b, LLVMRealOEQ, x, real(x, 0), "");
    result = LLVMBuildSelect(b, special, fma_of(b, x, infinite, infinite), result, "");
    return LLVMBuildSelect(b, zero, real(x, -INFINITY), result, "");
}
