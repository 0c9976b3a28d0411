/* Casts between float formats and between floats and integers. Where the hardware has an instruction for the pair of
 * formats it is used, on two elements at a time if it can; else exact integer code (codegen/narrow_floats.h). */
#include "gpu/simt.h"
#include "analysis/analysis.h"
#include "codegen/narrow_floats.h"

static bool is_wide(const Type *type) { return tt_bit_width(type) >= 32; }

/* ---- to f32 -------------------------------------------------------------------------------------------------------------------- */

/* fp8 in pairs through f16, which holds every one of them. False where there is no instruction. */
static bool widen_fp8_pair(Simt *s, TypeKind kind, LLVMValueRef const *x, LLVMValueRef *out)
{
    LLVMValueRef low = LLVMBuildZExt(s->b, x[0], s->i16, ""), high = LLVMBuildZExt(s->b, x[1], s->i16, "");
    LLVMValueRef bits = LLVMBuildOr(s->b, low, LLVMBuildShl(s->b, high, simt_int(s->i16, 8), ""), "");
    return s->ops->widen_fp8(s, kind, bits, out);
}

static void widen_pair(Simt *s, const Type *from, LLVMValueRef const *x, int count, LLVMValueRef *out)
{
    LLVMValueRef halves[2], both[] = {x[0], x[count - 1]};
    if (tt_is_fp8(from) && widen_fp8_pair(s, from->kind, both, halves)) {
        for (int i = 0; i < count; i++)
            out[i] = LLVMBuildFPExt(s->b, halves[i], s->f32, "");
        return;
    }
    for (int i = 0; i < count; i++)
        if (tt_is_fp8(from))
            out[i] = tt_decode_float(s->b, x[i], tt_float_format(from));
        else if (from->kind == TT_BF16)
            out[i] = tt_decode_float(s->b, LLVMBuildBitCast(s->b, x[i], s->i16, ""), &tt_format_bf16);
        else
            out[i] = from->kind == TT_F16 ? LLVMBuildFPExt(s->b, x[i], s->f32, "") : x[i];
}

/* ---- from f32 ------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef narrow_in_software(Simt *s, LLVMValueRef x, const Type *to, bool toward_zero)
{
    LLVMValueRef bits = tt_encode_float(s->b, x, tt_float_format(to), toward_zero);
    return tt_is_fp8(to) ? bits : LLVMBuildBitCast(s->b, bits, simt_type(s, to), "");
}

/* x: `count` f32, one or two. */
static void narrow_pair(Simt *s, const Type *to, LLVMValueRef const *x, int count, bool toward_zero,
                        LLVMValueRef *out)
{
    LLVMValueRef packed = s->ops->narrow(s, to->kind, x, count, toward_zero);
    if (!packed) {
        for (int i = 0; i < count; i++)
            out[i] = narrow_in_software(s, x[i], to, toward_zero);
        return;
    }
    for (int i = 0; i < count; i++)
        out[i] = LLVMGetTypeKind(LLVMTypeOf(packed)) == LLVMVectorTypeKind
                     ? LLVMBuildExtractElement(s->b, packed, simt_i32(s, i), "")
                     : packed;
}

/* ---- any to any ---------------------------------------------------------------------------------------------------------------- */

static void cast_pair(Simt *s, const Type *from, const Type *to, LLVMValueRef const *x, int count,
                      bool toward_zero, LLVMValueRef *out)
{
    LLVMValueRef single[2];
    if (from == to) {
        memcpy(out, x, sizeof(LLVMValueRef) * (size_t)count);
        return;
    }
    for (int i = 0; i < count && from->kind == TT_F64; i++)
        single[i] = to->kind == TT_F32 && !toward_zero ? LLVMBuildFPTrunc(s->b, x[i], s->f32, "")
                                                       : tt_round_to_odd(s->b, x[i], to->kind != TT_F32);
    if (from->kind != TT_F64)
        widen_pair(s, from, x, count, single);
    if (!is_wide(to))
        narrow_pair(s, to, single, count, toward_zero, out);
    else
        for (int i = 0; i < count; i++)
            out[i] = to->kind == TT_F64 ? LLVMBuildFPExt(s->b, single[i], s->f64, "") : single[i];
}

void simt_float_cast(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    const Type *from = tt_element(tt_operand(op, 0)->type), *to = tt_element(op->results[0]->type);
    bool toward_zero = !strcmp(tt_string_attr(op, ATTR_rounding, "rtne"), "rtz");
    for (int i = 0; i < batch->count; i += 2)
        cast_pair(s, from, to, batch->operands[0] + i, TT_MIN(2, batch->count - i), toward_zero,
                  batch->results + i);
}

LLVMValueRef simt_cast_scalar(Simt *s, LLVMValueRef value, const Type *from, const Type *to)
{
    LLVMValueRef result;
    cast_pair(s, tt_element(from), tt_element(to), &value, 1, false, &result);
    return result;
}

/* ---- integers ------------------------------------------------------------------------------------------------------------------ */

/* An f32 or f64 that a second rounding turns into what one rounding of the integer would be. */
static LLVMValueRef from_int(Simt *s, LLVMValueRef x, bool is_signed, const Type *to, const Type **exact)
{
    int bits = (int)LLVMGetIntTypeWidth(LLVMTypeOf(x));
    *exact = to;
    if (!is_wide(to))
        *exact = tt_scalar_type(s->module, bits <= 16 ? TT_F32 : TT_F64);
    LLVMTypeRef type = simt_type(s, *exact);
    return is_signed && bits > 1 ? LLVMBuildSIToFP(s->b, x, type, "") : LLVMBuildUIToFP(s->b, x, type, "");
}

/* 64 bits do not fit into an f64, but every narrow format is settled by the upper ones and whether the rest is zero. */
static LLVMValueRef with_sticky_low_bits(Simt *s, LLVMValueRef x)
{
    LLVMValueRef low = LLVMBuildAnd(s->b, x, simt_int(s->i64, 0xffff), "");
    LLVMValueRef sticky = LLVMBuildSelect(s->b, LLVMBuildICmp(s->b, LLVMIntNE, low, simt_int(s->i64, 0), ""),
                                          simt_int(s->i64, 0x8000), simt_int(s->i64, 0), "");
    LLVMValueRef high = LLVMBuildAnd(s->b, x, simt_int(s->i64, ~0xffffll), "");
    LLVMValueRef rounded = LLVMBuildOr(s->b, high, sticky, "");
    LLVMValueRef magnitude = LLVMBuildSelect(
        s->b, LLVMBuildICmp(s->b, LLVMIntSLT, x, simt_int(s->i64, 0), ""), LLVMBuildNeg(s->b, x, ""), x, "");
    LLVMValueRef fits = LLVMBuildICmp(s->b, LLVMIntULT, magnitude, simt_int(s->i64, 1ll << 53), "");
    return LLVMBuildSelect(s->b, fits, x, rounded, "");
}

static LLVMValueRef to_int(Simt *s, LLVMValueRef x, bool is_signed, LLVMTypeRef type)
{
    int bits = (int)LLVMGetIntTypeWidth(type);
    LLVMTypeRef computed = bits < 32 ? s->i32 : type;
    bool as_signed = is_signed || bits < 32; /* all of u16 fits in i32 */
    LLVMValueRef value =
        as_signed ? LLVMBuildFPToSI(s->b, x, computed, "") : LLVMBuildFPToUI(s->b, x, computed, "");
    value = LLVMBuildFreeze(s->b, value, ""); /* out of range is any number, but one number */
    return bits < 32 ? LLVMBuildTrunc(s->b, value, type, "") : value;
}

/* What the integers that are converted lie between; False: it is not known. */
static bool bounds_of(const Op *op, IntBounds *bounds)
{
    const Value *value = tt_operand(op, 0);
    bool is_signed = op->opcode == OP_int_to_float_s;
    int width = tt_bit_width(value->type);
    if (tt_int_bounds(value, bounds) && (is_signed || bounds->lowest >= 0))
        return true;
    int64_t half = 1ll << (width - 1);
    *bounds = is_signed ? (IntBounds){-half, half - 1} : (IntBounds){0, 2 * half - 1};
    return width > 1 && width <= 16;
}

/* Do so many bits hold all of them, of which one is the sign? */
static bool are_within(const IntBounds *bounds, int bits)
{
    return bounds->lowest >= -(1ll << (bits - 1)) && bounds->highest < 1ll << (bits - 1);
}

enum { GROUP = 4 /* bytes of a word */ };

/* A word of these bytes that have been taken from one word, or two; or NULL. */
static LLVMValueRef word_of(Simt *s, LLVMValueRef const *x, int count)
{
    LLVMTypeRef bytes = LLVMVectorType(s->i8, GROUP);
    LLVMValueRef word = count < GROUP ? LLVMConstNull(bytes) : LLVMGetPoison(bytes), sources[2] = {0};
    for (int i = 0; i < count; i++) {
        LLVMValueRef source = LLVMIsAExtractElementInst(x[i]) ? LLVMGetOperand(x[i], 0) : NULL;
        if (!source || LLVMTypeOf(source) != LLVMTypeOf(word))
            return NULL;
        int known = !sources[0] || sources[0] == source ? 0 : 1;
        if (sources[known] && sources[known] != source)
            return NULL;
        sources[known] = source;
        word = LLVMBuildInsertElement(s->b, word, x[i], simt_i32(s, i), "");
    }
    return word;
}

/* Each byte of the word exclusive-or `flipped`, of which the bits of `kept` are left. */
static LLVMValueRef flip(Simt *s, LLVMValueRef word, uint32_t flipped, uint32_t kept)
{
    enum { EACH = 0x01010101 };
    LLVMValueRef bits = LLVMBuildBitCast(s->b, word, s->i32, "");
    bits = LLVMBuildXor(s->b, bits, simt_i32(s, (int32_t)(flipped * EACH)), "");
    bits = LLVMBuildAnd(s->b, bits, simt_i32(s, (int32_t)(kept * EACH)), "");
    return LLVMBuildBitCast(s->b, bits, LLVMTypeOf(word), "");
}

/* Bytes of the word, by number, among those of `constant`, whose numbers follow. */
static LLVMValueRef permuted(Simt *s, LLVMValueRef word, uint32_t constant, const int order[GROUP],
                             LLVMTypeRef type)
{
    LLVMValueRef places[GROUP];
    for (int i = 0; i < GROUP; i++)
        places[i] = simt_i32(s, order[i]);
    LLVMValueRef other = LLVMConstBitCast(simt_i32(s, constant), LLVMTypeOf(word));
    word = LLVMBuildShuffleVector(s->b, word, other, LLVMConstVector(places, GROUP), "");
    return LLVMBuildBitCast(s->b, word, type, "");
}

/* Small integers that are converted. */
typedef struct Small {
    LLVMValueRef const *x;
    int count; /* GROUP at most */
    bool is_signed, may_be_negative;
} Small;

/* A small integer added to the bits of 1.5 * 2^mantissa is that number plus the integer: an addition and a subtraction,
 * where a conversion takes as long as eight of them. Where none is negative it makes the lowest bits of 2^mantissa, which takes
 * no addition, and a byte has only to come to its place. */
static LLVMValueRef above(Simt *s, const Small *small, int i, LLVMTypeRef bits, int64_t power, int64_t half)
{
    LLVMValueRef x = small->x[i], wide = x;
    if (LLVMTypeOf(x) != s->i32)
        wide = small->is_signed ? LLVMBuildSExt(s->b, x, s->i32, "") : LLVMBuildZExt(s->b, x, s->i32, "");
    LLVMValueRef sum = small->may_be_negative ? LLVMBuildAdd(s->b, wide, simt_i32(s, power + half), "")
                                              : LLVMBuildOr(s->b, wide, simt_i32(s, power), "");
    return bits == s->i32 ? sum : LLVMBuildTrunc(s->b, sum, bits, "");
}

/* What has been added to the integers: `power`, and `half` of its range where they lie to either side of zero. */
static LLVMValueRef bias_of(const Small *small, LLVMTypeRef type, double power, double half)
{
    return LLVMConstReal(type, power + (small->may_be_negative ? half : 0));
}

static void small_to_f32(Simt *s, const Small *small, LLVMValueRef *out)
{
    enum { POWER = 0x4b000000, HALF = 0x400000, SIGN = 0x80 }; /* 2^23 */
    LLVMValueRef word = word_of(s, small->x, small->count);
    if (word && small->may_be_negative)
        word = flip(s, word, SIGN, UINT8_MAX);
    LLVMValueRef bias = bias_of(small, s->f32, 1 << 23, word ? SIGN : HALF);
    for (int i = 0; i < small->count; i++) {
        const int order[] = {i, 4, 5, 7};
        LLVMValueRef sum = word ? permuted(s, word, POWER, order, s->f32)
                                : LLVMBuildBitCast(s->b, above(s, small, i, s->i32, POWER, HALF), s->f32, "");
        out[i] = LLVMBuildFSub(s->b, sum, bias, "");
    }
}

static LLVMValueRef twice(LLVMValueRef x) { return LLVMConstVector((LLVMValueRef[]){x, x}, 2); }

static void subtract_pair(Simt *s, LLVMValueRef pair, LLVMValueRef biases, int count, LLVMValueRef *out)
{
    pair = LLVMBuildFSub(s->b, pair, biases, "");
    for (int i = 0; i < count; i++)
        out[i] = LLVMBuildExtractElement(s->b, pair, simt_i32(s, i), "");
}

/* In pairs, which the hardware subtracts at once: f16 holds 2^10 and more integers above, bf16 2^7, of which a byte has half
 * to either side of zero. */
static void small_to_halves(Simt *s, const Small *small, bool is_f16, LLVMValueRef *out)
{
    int exponent = is_f16 ? 10 : 7, power = is_f16 ? 0x6400 : 0x4300;
    LLVMTypeRef type = is_f16 ? s->f16 : s->bf16, words = LLVMVectorType(s->i16, 2);
    LLVMValueRef word = word_of(s, small->x, small->count);
    int half = !word ? 1 << (exponent - 1) : is_f16 ? 0x80 : 0x40;
    if (word && small->may_be_negative)
        word = flip(s, word, (uint32_t)half, is_f16 ? UINT8_MAX : INT8_MAX);
    LLVMValueRef bias = bias_of(small, type, 1 << exponent, half);
    for (int i = 0; i < small->count; i += 2) {
        int next = TT_MIN(i + 1, small->count - 1);
        const int order[] = {i, 4, next, 4};
        LLVMValueRef pair = LLVMGetPoison(words);
        for (int j = 0; j < 2 && !word; j++) {
            LLVMValueRef sum = above(s, small, j ? next : i, s->i16, power, 1 << (exponent - 1));
            pair = LLVMBuildInsertElement(s->b, pair, sum, simt_i32(s, j), "");
        }
        pair = word ? permuted(s, word, power >> 8, order, words) : pair;
        pair = LLVMBuildBitCast(s->b, pair, LLVMVectorType(type, 2), "");
        subtract_pair(s, pair, twice(bias), next - i + 1, out + i);
    }
}

/* Signed bytes: 128 plus the low seven bits, less 128, or 256 if there is the sign. */
static void bytes_to_bf16(Simt *s, LLVMValueRef word, int count, LLVMValueRef *out)
{
    enum { PLUS = 0x43, SIGNS = 0x00800080, MINUS = 0x43004300 };
    LLVMTypeRef halves = LLVMVectorType(s->bf16, 2);
    for (int i = 0; i < count; i += 2) {
        int next = TT_MIN(i + 1, count - 1);
        const int order[] = {i, 4, next, 4};
        LLVMValueRef both = permuted(s, word, PLUS, order, s->i32);
        LLVMValueRef low = LLVMBuildAnd(s->b, both, simt_i32(s, ~SIGNS), "");
        LLVMValueRef bias = LLVMBuildAnd(s->b, both, simt_i32(s, SIGNS), "");
        bias = LLVMBuildOr(s->b, bias, simt_i32(s, MINUS), "");
        subtract_pair(s, LLVMBuildBitCast(s->b, low, halves, ""), LLVMBuildBitCast(s->b, bias, halves, ""),
                      next - i + 1, out + i);
    }
}

static void small_to_float(Simt *s, const Batch *batch, int first, const IntBounds *bounds)
{
    enum { BITS_OF_F16 = 10, BITS_OF_BF16 = 7 };
    const Type *f32 = tt_scalar_type(s->module, TT_F32), *to = tt_element(batch->op->results[0]->type);
    Small small = {.x = batch->operands[0] + first,
                   .count = TT_MIN(GROUP, batch->count - first),
                   .is_signed = batch->op->opcode == OP_int_to_float_s,
                   .may_be_negative = bounds->lowest < 0};
    LLVMValueRef wide[GROUP], *out = batch->results + first;
    bool is_f16 = to->kind == TT_F16,
         in_pairs = (is_f16 || to->kind == TT_BF16) && simt_has_arithmetic(s, to);
    if (in_pairs && are_within(bounds, is_f16 ? BITS_OF_F16 : BITS_OF_BF16)) {
        small_to_halves(s, &small, is_f16, out);
        return;
    }
    LLVMValueRef word = in_pairs && !is_f16 && small.is_signed ? word_of(s, small.x, small.count) : NULL;
    if (word) {
        bytes_to_bf16(s, word, small.count, out);
        return;
    }
    small_to_f32(s, &small, wide);
    for (int i = 0; i < small.count; i += 2)
        cast_pair(s, f32, to, wide + i, TT_MIN(2, small.count - i), false, out + i);
}

static LLVMValueRef int_to_float(Simt *s, LLVMValueRef x, const Op *op)
{
    const Type *from = tt_element(tt_operand(op, 0)->type), *to = tt_element(op->results[0]->type);
    const Type *exact = tt_scalar_type(s->module, TT_F32);
    bool is_signed = op->opcode == OP_int_to_float_s;
    if (!is_wide(to) && tt_bit_width(from) >= 32) {
        LLVMValueRef rounded = s->ops->narrow_int(s, to->kind, x, is_signed);
        if (rounded)
            return rounded;
    }
    if (from->kind == TT_I64 && !is_wide(to))
        x = with_sticky_low_bits(s, x);
    x = from_int(s, x, is_signed, to, &exact);
    return simt_cast_scalar(s, x, exact, to);
}

void simt_int_float_cast(Simt *s, Batch *batch)
{
    enum { BITS_OF_F32 = 23 };
    const Op *op = batch->op;
    const Type *from = tt_element(tt_operand(op, 0)->type), *to = tt_element(op->results[0]->type);
    IntBounds bounds;
    bool is_small = tt_is_float(to) && to->kind != TT_F64 && tt_bit_width(from) <= 32 &&
                    bounds_of(op, &bounds) && are_within(&bounds, BITS_OF_F32);
    for (int i = 0; i < batch->count && is_small; i += GROUP)
        small_to_float(s, batch, i, &bounds);
    for (int i = 0; i < batch->count && !is_small; i++) {
        LLVMValueRef x = batch->operands[0][i];
        if (!tt_is_float(from)) {
            batch->results[i] = int_to_float(s, x, op);
            continue;
        }
        const Type *wide = is_wide(from) ? from : tt_scalar_type(s->module, TT_F32);
        x = simt_cast_scalar(s, x, from, wide);
        batch->results[i] = to_int(s, x, op->opcode == OP_float_to_int_s, simt_type(s, to));
    }
}
