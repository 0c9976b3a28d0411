/* Elementwise operations on LLVM scalars or vectors of one width. Arithmetic on floats narrower than f32 is done in
 * f32 and rounded after each operation; integer division never traps. */
#include "cpu/emit.h"

typedef LLVMValueRef (*Binary)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char *);

/* ---- integers --------------------------------------------------------------------------------------------------------- */

static LLVMValueRef emit_shift(Emit *e, Opcode opcode, LLVMValueRef a, LLVMValueRef count)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    int bits = (int)LLVMGetIntTypeWidth(element_of(type));
    if (opcode == OP_shr_s)
        return LLVMBuildAShr(e->b, a, emit_intrinsic2(e, "llvm.umin", count, const_int(type, bits - 1)), "");
    Binary shift = opcode == OP_shl ? LLVMBuildShl : LLVMBuildLShr;
    LLVMValueRef fits = LLVMBuildICmp(e->b, LLVMIntULT, count, const_int(type, bits), "");
    return emit_select(e, fits, shift(e->b, a, count, ""), LLVMConstNull(type));
}

static LLVMValueRef emit_high_product(Emit *e, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    unsigned bits = LLVMGetIntTypeWidth(element_of(type));
    LLVMTypeRef wide = with_element(type, LLVMIntTypeInContext(e->context, 2 * bits));
    a = is_signed ? LLVMBuildSExt(e->b, a, wide, "") : LLVMBuildZExt(e->b, a, wide, "");
    b = is_signed ? LLVMBuildSExt(e->b, b, wide, "") : LLVMBuildZExt(e->b, b, wide, "");
    LLVMValueRef product = LLVMBuildMul(e->b, a, b, "");
    return LLVMBuildTrunc(e->b, LLVMBuildLShr(e->b, product, const_int(wide, bits), ""), type, "");
}

/* Vectors up to 32 bits divide as floats: the true quotient of integers below 2^n is at least 2^-n, relatively, away
 * from the next integer above it, so a type with more than n bits of mantissa rounds to the right side. */
static LLVMValueRef divide_as_floats(Emit *e, bool is_signed, LLVMValueRef a, LLVMValueRef b, unsigned bits)
{
    LLVMTypeRef type = LLVMTypeOf(a), floats = with_element(type, bits > 16 ? e->f64 : e->f32);
    LLVMValueRef x = is_signed ? LLVMBuildSIToFP(e->b, a, floats, "") : LLVMBuildUIToFP(e->b, a, floats, "");
    LLVMValueRef y = is_signed ? LLVMBuildSIToFP(e->b, b, floats, "") : LLVMBuildUIToFP(e->b, b, floats, "");
    LLVMValueRef quotient = LLVMBuildFDiv(e->b, x, y, "");
    /* The least number by -1 is beyond the largest: it wraps around in 32 bits, and would not in those of a narrow type. */
    LLVMTypeRef wide = is_signed && bits < 32 ? with_element(type, e->i32) : type;
    quotient =
        is_signed ? LLVMBuildFPToSI(e->b, quotient, wide, "") : LLVMBuildFPToUI(e->b, quotient, wide, "");
    quotient = LLVMBuildFreeze(e->b, quotient, "");
    return wide == type ? quotient : LLVMBuildTrunc(e->b, quotient, type, "");
}

/* The divisor, or 1 where the division would trap. */
static LLVMValueRef safe_divisor(Emit *e, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(b);
    LLVMValueRef bad = LLVMBuildICmp(e->b, LLVMIntEQ, b, LLVMConstNull(type), "");
    if (is_signed) {
        unsigned bits = LLVMGetIntTypeWidth(element_of(type));
        LLVMValueRef lowest = const_int(type, (int64_t)(UINT64_MAX << (bits - 1)));
        LLVMValueRef minus = LLVMBuildICmp(e->b, LLVMIntEQ, b, LLVMConstAllOnes(type), "");
        LLVMValueRef low = LLVMBuildICmp(e->b, LLVMIntEQ, a, lowest, "");
        bad = LLVMBuildOr(e->b, bad, LLVMBuildAnd(e->b, minus, low, ""), "");
    }
    return emit_select(e, bad, const_int(type, 1), b);
}

static LLVMValueRef emit_divide(Emit *e, bool is_signed, bool remainder, LLVMValueRef a, LLVMValueRef b)
{
    unsigned bits = LLVMGetIntTypeWidth(element_of(LLVMTypeOf(a)));
    if (bits == 1) /* by 1 it is a, by 0 anything */
        return remainder ? LLVMConstNull(LLVMTypeOf(a)) : a;
    LLVMValueRef quotient;
    if (width_of(a) && bits <= 32 && !LLVMIsConstant(b)) {
        quotient = divide_as_floats(e, is_signed, a, b, bits);
    } else {
        LLVMValueRef divisor = safe_divisor(e, is_signed, a, b);
        quotient = is_signed ? LLVMBuildSDiv(e->b, a, divisor, "") : LLVMBuildUDiv(e->b, a, divisor, "");
    }
    return remainder ? LLVMBuildSub(e->b, a, LLVMBuildMul(e->b, quotient, b, ""), "") : quotient;
}

static LLVMValueRef emit_abs(Emit *e, LLVMValueRef a)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    return emit_intrinsic(e, "llvm.abs", &type, 1, (LLVMValueRef[]){a, const_int(e->i1, 0)}, 2);
}

static LLVMValueRef emit_leading_zeros(Emit *e, LLVMValueRef a)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    return emit_intrinsic(e, "llvm.ctlz", &type, 1, (LLVMValueRef[]){a, const_int(e->i1, 0)}, 2);
}

static LLVMValueRef emit_int_compare(Emit *e, LLVMIntPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildICmp(e->b, predicate, a, b, "");
}

/* ---- floats ----------------------------------------------------------------------------------------------------------- */

/* A product that feeds a sum may become one fma, as the language allows. */
static LLVMValueRef contracted(const Emit *e, LLVMValueRef value)
{
    if (!e->no_fusion && LLVMCanValueUseFastMathFlags(value))
        LLVMSetFastMathFlags(value, LLVMFastMathAllowContract);
    return value;
}

/* The machine's own minimum gives its second operand when one is NaN: a < b ? a : b. */
static LLVMValueRef pick_smaller(Emit *e, bool larger, LLVMValueRef a, LLVMValueRef b)
{
    return emit_select(e, LLVMBuildFCmp(e->b, larger ? LLVMRealOGT : LLVMRealOLT, a, b, ""), a, b);
}

static LLVMValueRef emit_min_max(Emit *e, bool larger, bool nan_wins, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef picked = pick_smaller(e, larger, a, b); /* b when either is NaN */
    if (nan_wins) {
        LLVMValueRef unordered = LLVMBuildFCmp(e->b, LLVMRealUNO, a, b, "");
        return emit_select(e, unordered, LLVMBuildFAdd(e->b, a, b, ""), picked);
    }
    return emit_select(e, LLVMBuildFCmp(e->b, LLVMRealUNO, b, b, ""), a, picked);
}

static LLVMValueRef emit_remainder(Emit *e, const Op *op, LLVMValueRef *args)
{
    return emit_math(e, op, "fmod", args, 2);
}

static LLVMValueRef emit_fma(Emit *e, const Op *op, LLVMValueRef *args)
{
    if (!e->codegen->host.has_fma)
        return emit_math(e, op, "fma", args, 3);
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    return emit_intrinsic(e, "llvm.fma", &type, 1, args, 3);
}

/* In f32 or f64. */
static LLVMValueRef emit_float_op(Emit *e, const Op *op, LLVMValueRef *x)
{
    LLVMTypeRef type = LLVMTypeOf(x[0]);
    switch (op->opcode) {
    case OP_fadd:
        return contracted(e, LLVMBuildFAdd(e->b, x[0], x[1], ""));
    case OP_fsub:
        return contracted(e, LLVMBuildFSub(e->b, x[0], x[1], ""));
    case OP_fmul:
        return contracted(e, LLVMBuildFMul(e->b, x[0], x[1], ""));
    case OP_fdiv:
    case OP_fdiv_rn:
        return LLVMBuildFDiv(e->b, x[0], x[1], "");
    case OP_frem:
        return emit_remainder(e, op, x);
    case OP_fma:
        return emit_fma(e, op, x);
    case OP_fmin:
    case OP_fmax:
        return emit_min_max(e, op->opcode == OP_fmax, false, x[0], x[1]);
    case OP_fmin_nan:
    case OP_fmax_nan:
        return emit_min_max(e, op->opcode == OP_fmax_nan, true, x[0], x[1]);
    case OP_floor:
        return emit_intrinsic1(e, "llvm.floor", x[0]);
    case OP_ceil:
        return emit_intrinsic1(e, "llvm.ceil", x[0]);
    case OP_sqrt:
    case OP_sqrt_rn:
        return emit_intrinsic1(e, "llvm.sqrt", x[0]);
    case OP_rsqrt:
        return LLVMBuildFDiv(e->b, const_float(type, 1), emit_intrinsic1(e, "llvm.sqrt", x[0]), "");
    default: /* exp, log, ...: named as in C */
        return emit_math(e, op, tt_op_infos[op->opcode].name, x, op->operand_count);
    }
}

static LLVMValueRef emit_float_compare(Emit *e, Opcode opcode, LLVMValueRef a, LLVMValueRef b)
{
    LLVMRealPredicate predicate = opcode == OP_feq   ? LLVMRealOEQ
                                  : opcode == OP_fne ? LLVMRealUNE
                                  : opcode == OP_flt ? LLVMRealOLT
                                  : opcode == OP_fle ? LLVMRealOLE
                                  : opcode == OP_fgt ? LLVMRealOGT
                                                     : LLVMRealOGE;
    return LLVMBuildFCmp(e->b, predicate, a, b, "");
}

/* Sign operations of every format are bit operations. */
static LLVMValueRef emit_sign_op(Emit *e, Opcode opcode, const Type *type, LLVMValueRef x)
{
    if (is_float_type(LLVMTypeOf(x)))
        return opcode == OP_fneg ? LLVMBuildFNeg(e->b, x, "") : emit_intrinsic1(e, "llvm.fabs", x);
    int64_t sign = 1ll << (tt_bit_width(type) - 1);
    LLVMTypeRef ints = LLVMTypeOf(x);
    return opcode == OP_fneg ? LLVMBuildXor(e->b, x, const_int(ints, sign), "")
                             : LLVMBuildAnd(e->b, x, const_int(ints, sign - 1), "");
}

static LLVMValueRef emit_on_floats(Emit *e, const Op *op, LLVMValueRef *operands)
{
    const Type *type = tt_operand(op, 0)->type, *result = op->results[0]->type;
    if (op->opcode == OP_fneg || op->opcode == OP_fabs)
        return emit_sign_op(e, op->opcode, type, operands[0]);
    LLVMValueRef wide[8];
    TT_ASSERT(op->operand_count <= (int)TT_COUNT(wide));
    for (int i = 0; i < op->operand_count; i++)
        wide[i] = emit_widen(e, operands[i], tt_operand(op, i)->type);
    if (tt_op_infos[op->opcode].rule == COMPARE)
        return emit_float_compare(e, op->opcode, wide[0], wide[1]);
    return emit_narrow(e, emit_float_op(e, op, wide), result);
}

/* ---- casts ------------------------------------------------------------------------------------------------------------ */

/* A 64-bit integer of at most 53 significant bits that rounds to any narrower format as x does: the low bits of a large
 * one become a single sticky bit above them. */
static LLVMValueRef keep_53_bits(Emit *e, bool is_signed, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef low = LLVMBuildAnd(e->b, x, const_int(type, 0x7ff), "");
    LLVMValueRef lost = LLVMBuildICmp(e->b, LLVMIntNE, low, LLVMConstNull(type), "");
    LLVMValueRef sticky = emit_select(e, lost, const_int(type, 0x800), LLVMConstNull(type));
    LLVMValueRef kept = LLVMBuildOr(e->b, LLVMBuildSub(e->b, x, low, ""), sticky, "");
    LLVMValueRef size = is_signed ? emit_abs(e, x) : x;
    return emit_select(e, LLVMBuildICmp(e->b, LLVMIntUGE, size, const_int(type, 1ll << 53), ""), kept, x);
}

/* Rounded once also where f32 or f64 is too narrow to hold the integer before the second rounding. */
static LLVMValueRef emit_int_to_float(Emit *e, bool is_signed, LLVMValueRef x, const Type *from,
                                      const Type *to)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef (*convert)(LLVMBuilderRef, LLVMValueRef, LLVMTypeRef, const char *) =
        is_signed ? LLVMBuildSIToFP : LLVMBuildUIToFP;
    TypeKind kind = tt_element(to)->kind;
    if (kind == TT_F32 || kind == TT_F64)
        return convert(e->b, x, with_element(type, kind == TT_F32 ? e->f32 : e->f64), "");
    Type f32 = {.kind = TT_F32}, f64 = {.kind = TT_F64};
    bool exact = tt_bit_width(from) <= 16;
    if (tt_bit_width(from) == 64)
        x = keep_53_bits(e, is_signed, x);
    LLVMValueRef wide = convert(e->b, x, with_element(type, exact ? e->f32 : e->f64), "");
    return emit_float_cast(e, wide, exact ? &f32 : &f64, to, false);
}

/* Narrow integers go through i32, so that a value out of range wraps as it does in C on most machines. */
static LLVMValueRef emit_float_to_int(Emit *e, bool is_signed, LLVMValueRef x, const Type *from,
                                      const Type *to)
{
    x = emit_widen(e, x, from);
    int bits = tt_bit_width(to);
    LLVMTypeRef type = LLVMTypeOf(x), result = with_element(type, register_type(e, to));
    if (bits < 32) {
        LLVMValueRef wide = LLVMBuildFPToSI(e->b, x, with_element(type, e->i32), "");
        return LLVMBuildTrunc(e->b, LLVMBuildFreeze(e->b, wide, ""), result, "");
    }
    LLVMValueRef value =
        is_signed ? LLVMBuildFPToSI(e->b, x, result, "") : LLVMBuildFPToUI(e->b, x, result, "");
    return LLVMBuildFreeze(e->b, value, "");
}

static LLVMValueRef emit_bitcast(Emit *e, LLVMValueRef x, const Type *to)
{
    LLVMTypeRef type = with_element(LLVMTypeOf(x), register_type(e, to));
    return LLVMTypeOf(x) == type ? x : LLVMBuildBitCast(e->b, x, type, "");
}

static LLVMValueRef emit_cast(Emit *e, const Op *op, LLVMValueRef x)
{
    const Type *from = tt_operand(op, 0)->type, *to = op->results[0]->type;
    LLVMTypeRef type = with_element(LLVMTypeOf(x), register_type(e, to));
    switch (op->opcode) {
    case OP_trunc:
        return LLVMBuildTrunc(e->b, x, type, "");
    case OP_ext_s:
        return LLVMBuildSExt(e->b, x, type, "");
    case OP_ext_u:
        return LLVMBuildZExt(e->b, x, type, "");
    case OP_int_to_float_s:
    case OP_int_to_float_u:
        return emit_int_to_float(e, op->opcode == OP_int_to_float_s, x, from, to);
    case OP_float_to_int_s:
    case OP_float_to_int_u:
        return emit_float_to_int(e, op->opcode == OP_float_to_int_s, x, from, to);
    case OP_float_cast:
        return emit_float_cast(e, x, from, to, !strcmp(tt_string_attr(op, ATTR_rounding, "rtne"), "rtz"));
    case OP_bitcast:
        return emit_bitcast(e, x, to);
    case OP_ptr_to_int:
        return LLVMBuildPtrToInt(e->b, x, type, "");
    case OP_int_to_ptr:
        return LLVMBuildIntToPtr(e->b, x, type, "");
    default:
        tt_bug("cpu: no cast %s", tt_op_infos[op->opcode].name);
    }
}

LLVMValueRef emit_element_cast(Emit *e, LLVMValueRef value, const Type *from, const Type *to)
{
    from = tt_element(from), to = tt_element(to);
    if (from->kind == to->kind)
        return value;
    if (tt_is_float(from) && tt_is_float(to))
        return emit_float_cast(e, value, from, to, false);
    LLVMTypeRef type = with_element(LLVMTypeOf(value), register_type(e, to));
    TT_ASSERT(tt_is_int(from) && tt_is_int(to));
    return LLVMBuildIntCast2(e->b, value, type, true, "");
}

/* ---- all of them ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef emit_on_ints(Emit *e, const Op *op, LLVMValueRef *x)
{
    switch (op->opcode) {
    case OP_add:
        return LLVMBuildAdd(e->b, x[0], x[1], "");
    case OP_sub:
        return LLVMBuildSub(e->b, x[0], x[1], "");
    case OP_mul:
        return LLVMBuildMul(e->b, x[0], x[1], "");
    case OP_mulhi_s:
    case OP_mulhi_u:
        return emit_high_product(e, op->opcode == OP_mulhi_s, x[0], x[1]);
    case OP_div_s:
    case OP_div_u:
        return emit_divide(e, op->opcode == OP_div_s, false, x[0], x[1]);
    case OP_rem_s:
    case OP_rem_u:
        return emit_divide(e, op->opcode == OP_rem_s, true, x[0], x[1]);
    case OP_and:
        return LLVMBuildAnd(e->b, x[0], x[1], "");
    case OP_or:
        return LLVMBuildOr(e->b, x[0], x[1], "");
    case OP_xor:
        return LLVMBuildXor(e->b, x[0], x[1], "");
    case OP_shl:
    case OP_shr_s:
    case OP_shr_u:
        return emit_shift(e, op->opcode, x[0], x[1]);
    case OP_min_s:
        return emit_intrinsic2(e, "llvm.smin", x[0], x[1]);
    case OP_min_u:
        return emit_intrinsic2(e, "llvm.umin", x[0], x[1]);
    case OP_max_s:
        return emit_intrinsic2(e, "llvm.smax", x[0], x[1]);
    case OP_max_u:
        return emit_intrinsic2(e, "llvm.umax", x[0], x[1]);
    case OP_abs_s:
        return emit_abs(e, x[0]);
    case OP_popcount:
        return emit_intrinsic1(e, "llvm.ctpop", x[0]);
    case OP_clz:
        return emit_leading_zeros(e, x[0]);
    case OP_eq:
        return emit_int_compare(e, LLVMIntEQ, x[0], x[1]);
    case OP_ne:
        return emit_int_compare(e, LLVMIntNE, x[0], x[1]);
    case OP_lt_s:
        return emit_int_compare(e, LLVMIntSLT, x[0], x[1]);
    case OP_le_s:
        return emit_int_compare(e, LLVMIntSLE, x[0], x[1]);
    case OP_gt_s:
        return emit_int_compare(e, LLVMIntSGT, x[0], x[1]);
    case OP_ge_s:
        return emit_int_compare(e, LLVMIntSGE, x[0], x[1]);
    case OP_lt_u:
        return emit_int_compare(e, LLVMIntULT, x[0], x[1]);
    case OP_le_u:
        return emit_int_compare(e, LLVMIntULE, x[0], x[1]);
    case OP_gt_u:
        return emit_int_compare(e, LLVMIntUGT, x[0], x[1]);
    case OP_ge_u:
        return emit_int_compare(e, LLVMIntUGE, x[0], x[1]);
    default:
        tt_bug("cpu: no integer operation %s", tt_op_infos[op->opcode].name);
    }
}

LLVMValueRef emit_elementwise(Emit *e, const Op *op, LLVMValueRef *operands)
{
    if (tt_has(op, ON_FLOATS))
        return emit_on_floats(e, op, operands);
    if (tt_has(op, ON_INTS))
        return emit_on_ints(e, op, operands);
    if (tt_op_infos[op->opcode].rule == CAST)
        return emit_cast(e, op, operands[0]);
    switch (op->opcode) {
    case OP_select:
        return emit_select(e, operands[0], operands[1], operands[2]);
    case OP_addptr: {
        const Type *pointee = tt_element(tt_operand(op, 0)->type)->element;
        return emit_index(e, memory_type(e, pointee), operands[0], operands[1]);
    }
    case OP_extern_call: {
        LLVMValueRef wide[8];
        TT_ASSERT(op->operand_count <= (int)TT_COUNT(wide));
        for (int i = 0; i < op->operand_count; i++)
            wide[i] = emit_widen(e, operands[i], tt_operand(op, i)->type);
        LLVMValueRef result = emit_math(e, op, tt_string_attr(op, ATTR_symbol, ""), wide, op->operand_count);
        return emit_narrow(e, result, op->results[0]->type);
    }
    default:
        tt_bug("cpu: no elementwise operation %s", tt_op_infos[op->opcode].name);
    }
}
