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

/* Are all numbers of so many bits, of which one is the sign? */
static bool are_within(const Op *op, int bits)
{
    const Value *value = tt_operand(op, 0);
    bool is_signed = op->opcode == OP_int_to_float_s;
    int width = tt_bit_width(value->type);
    IntBounds bounds;
    if (!tt_int_bounds(value, &bounds) || (!is_signed && bounds.lowest < 0)) {
        if (width == 1 || width > 16)
            return false;
        int64_t half = 1ll << (width - 1);
        bounds = is_signed ? (IntBounds){-half, half - 1} : (IntBounds){0, 2 * half - 1};
    }
    return bounds.lowest >= -(1ll << (bits - 1)) && bounds.highest < 1ll << (bits - 1);
}

/* A small integer added to the bits of 1.5 * 2^mantissa is that number plus the integer: an addition and a subtraction,
 * where a conversion takes as long as eight of them. */
static LLVMValueRef above(Simt *s, LLVMValueRef x, bool is_signed, LLVMTypeRef bits, int64_t one_and_a_half)
{
    LLVMValueRef wide = is_signed ? LLVMBuildSExt(s->b, x, s->i32, "") : LLVMBuildZExt(s->b, x, s->i32, "");
    wide = LLVMTypeOf(x) == s->i32 ? x : wide;
    LLVMValueRef sum = LLVMBuildAdd(s->b, wide, simt_i32(s, one_and_a_half), "");
    return bits == s->i32 ? sum : LLVMBuildTrunc(s->b, sum, bits, "");
}

static LLVMValueRef small_to_f32(Simt *s, LLVMValueRef x, bool is_signed)
{
    LLVMValueRef sum = LLVMBuildBitCast(s->b, above(s, x, is_signed, s->i32, 0x4b400000), s->f32, "");
    return LLVMBuildFSub(s->b, sum, LLVMConstReal(s->f32, 12582912.0), "");
}

/* In pairs, which the hardware subtracts at once. */
static void small_to_f16(Simt *s, const Batch *batch, bool is_signed)
{
    LLVMTypeRef half = LLVMHalfTypeInContext(s->context);
    LLVMTypeRef words = LLVMVectorType(s->i16, 2), halves = LLVMVectorType(half, 2);
    LLVMValueRef bias = LLVMConstReal(half, 1536.0),
                 biases = LLVMConstVector((LLVMValueRef[]){bias, bias}, 2);
    for (int i = 0; i < batch->count; i += 2) {
        LLVMValueRef pair = LLVMGetPoison(words);
        int count = TT_MIN(2, batch->count - i);
        for (int j = 0; j < 2; j++) {
            LLVMValueRef sum =
                above(s, batch->operands[0][i + TT_MIN(j, count - 1)], is_signed, s->i16, 0x6600);
            pair = LLVMBuildInsertElement(s->b, pair, sum, simt_i32(s, j), "");
        }
        pair = LLVMBuildFSub(s->b, LLVMBuildBitCast(s->b, pair, halves, ""), biases, "");
        for (int j = 0; j < count; j++)
            batch->results[i + j] = LLVMBuildExtractElement(s->b, pair, simt_i32(s, j), "");
    }
}

static LLVMValueRef int_to_float(Simt *s, LLVMValueRef x, const Op *op, bool is_small)
{
    const Type *from = tt_element(tt_operand(op, 0)->type), *to = tt_element(op->results[0]->type);
    const Type *exact = tt_scalar_type(s->module, TT_F32);
    bool is_signed = op->opcode == OP_int_to_float_s;
    if (is_small && to->kind != TT_F64)
        return simt_cast_scalar(s, small_to_f32(s, x, is_signed), exact, to);
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
    const Op *op = batch->op;
    const Type *from = tt_element(tt_operand(op, 0)->type), *to = tt_element(op->results[0]->type);
    bool is_small = tt_is_float(to) && tt_bit_width(from) <= 32 && are_within(op, 23);
    if (to->kind == TT_F16 && is_small && are_within(op, 10)) {
        small_to_f16(s, batch, op->opcode == OP_int_to_float_s);
        return;
    }
    for (int i = 0; i < batch->count; i++) {
        LLVMValueRef x = batch->operands[0][i];
        if (!tt_is_float(from)) {
            batch->results[i] = int_to_float(s, x, op, is_small);
            continue;
        }
        const Type *wide = is_wide(from) ? from : tt_scalar_type(s->module, TT_F32);
        x = simt_cast_scalar(s, x, from, wide);
        batch->results[i] = to_int(s, x, op->opcode == OP_float_to_int_s, simt_type(s, to));
    }
}
