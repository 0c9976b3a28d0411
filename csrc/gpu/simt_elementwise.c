/* Elementwise operations: each distinct set of operands is computed once, however many registers it stands in, and
 * 16-bit floats two at a time where the hardware works on pairs. */
#include "gpu/simt.h"

/* ---- integers -------------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef binary_intrinsic(Simt *s, const char *name, LLVMValueRef const *x)
{
    return simt_intrinsic2(s, name, x[0], x[1]);
}

static LLVMValueRef with_false(Simt *s, const char *name, LLVMValueRef x)
{
    LLVMValueRef arguments[] = {x, LLVMConstNull(s->i1)};
    return simt_intrinsic(s, name, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, arguments, 2);
}

/* The high half of the product: of twice the width. */
static LLVMValueRef high_product(Simt *s, LLVMValueRef const *x, bool is_signed)
{
    LLVMTypeRef type = LLVMTypeOf(x[0]);
    int bits = (int)LLVMGetIntTypeWidth(type);
    LLVMTypeRef wide = simt_int_type(s, 2 * bits);
    LLVMValueRef a = is_signed ? LLVMBuildSExt(s->b, x[0], wide, "") : LLVMBuildZExt(s->b, x[0], wide, "");
    LLVMValueRef b = is_signed ? LLVMBuildSExt(s->b, x[1], wide, "") : LLVMBuildZExt(s->b, x[1], wide, "");
    LLVMValueRef product = LLVMBuildMul(s->b, a, b, "");
    return LLVMBuildTrunc(s->b, LLVMBuildLShr(s->b, product, simt_int(wide, bits), ""), type, "");
}

static LLVMValueRef integer_op(Simt *s, const Op *op, LLVMValueRef const *x)
{
    Opcode opcode = op->opcode;
    switch (opcode) {
    case OP_add:
        return simt_add(s, x[0], x[1]);
    case OP_sub:
        return simt_sub(s, x[0], x[1]);
    case OP_mul:
        return simt_mul(s, x[0], x[1]);
    case OP_shl:
        return simt_shl(s, x[0], x[1]);
    case OP_shr_s:
    case OP_shr_u:
        return simt_shift(s, opcode, x[0], x[1]);
    case OP_div_s:
    case OP_div_u:
    case OP_rem_s:
    case OP_rem_u:
        return simt_divide(s, op, x[0], x[1]);
    case OP_mulhi_s:
        return high_product(s, x, true);
    case OP_mulhi_u:
        return high_product(s, x, false);
    case OP_and:
        return LLVMBuildAnd(s->b, x[0], x[1], "");
    case OP_or:
        return LLVMBuildOr(s->b, x[0], x[1], "");
    case OP_xor:
        return LLVMBuildXor(s->b, x[0], x[1], "");
    case OP_min_s:
        return binary_intrinsic(s, "llvm.smin", x);
    case OP_min_u:
        return binary_intrinsic(s, "llvm.umin", x);
    case OP_max_s:
        return binary_intrinsic(s, "llvm.smax", x);
    case OP_max_u:
        return binary_intrinsic(s, "llvm.umax", x);
    case OP_abs_s:
        return with_false(s, "llvm.abs", x[0]);
    case OP_popcount:
        return simt_intrinsic1(s, "llvm.ctpop", x[0]);
    case OP_clz:
        return with_false(s, "llvm.ctlz", x[0]);
    default:
        return simt_compare(s, opcode, x[0], x[1]);
    }
}

/* ---- floats ------------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef fused(Simt *s, LLVMValueRef value)
{
    if (s->options->enable_fp_fusion && LLVMIsAInstruction(value))
        LLVMSetFastMathFlags(value, LLVMFastMathAllowContract);
    return value;
}

static LLVMValueRef fma_of(Simt *s, LLVMValueRef const *x)
{
    return simt_intrinsic(s, "llvm.fma", (LLVMTypeRef[]){LLVMTypeOf(x[0])}, 1, x, 3);
}

/* On scalars or vectors of a type that the hardware computes in. */
static LLVMValueRef float_op(Simt *s, Opcode opcode, LLVMValueRef const *x)
{
    switch (opcode) {
    case OP_fadd:
        return fused(s, LLVMBuildFAdd(s->b, x[0], x[1], ""));
    case OP_fsub:
        return fused(s, LLVMBuildFSub(s->b, x[0], x[1], ""));
    case OP_fmul:
        return fused(s, LLVMBuildFMul(s->b, x[0], x[1], ""));
    case OP_fneg:
        return LLVMBuildFNeg(s->b, x[0], "");
    case OP_fabs:
        return simt_intrinsic1(s, "llvm.fabs", x[0]);
    case OP_fma:
        return fma_of(s, x);
    case OP_fmin:
        return binary_intrinsic(s, "llvm.minnum", x);
    case OP_fmax:
        return binary_intrinsic(s, "llvm.maxnum", x);
    case OP_fmin_nan:
        return binary_intrinsic(s, "llvm.minimum", x);
    case OP_fmax_nan:
        return binary_intrinsic(s, "llvm.maximum", x);
    case OP_floor:
        return simt_intrinsic1(s, "llvm.floor", x[0]);
    case OP_ceil:
        return simt_intrinsic1(s, "llvm.ceil", x[0]);
    case OP_feq:
        return LLVMBuildFCmp(s->b, LLVMRealOEQ, x[0], x[1], "");
    case OP_fne:
        return LLVMBuildFCmp(s->b, LLVMRealUNE, x[0], x[1], "");
    case OP_flt:
        return LLVMBuildFCmp(s->b, LLVMRealOLT, x[0], x[1], "");
    case OP_fle:
        return LLVMBuildFCmp(s->b, LLVMRealOLE, x[0], x[1], "");
    case OP_fgt:
        return LLVMBuildFCmp(s->b, LLVMRealOGT, x[0], x[1], "");
    case OP_fge:
        return LLVMBuildFCmp(s->b, LLVMRealOGE, x[0], x[1], "");
    default:
        return NULL; /* a function of simt_math.c */
    }
}

/* Operations that the hardware has for 16-bit floats, pairs included. */
static bool has_in_16_bits(Opcode opcode)
{
    switch (opcode) {
    case OP_fadd:
    case OP_fsub:
    case OP_fmul:
    case OP_fma:
    case OP_fneg:
    case OP_fabs:
        return true;
    default:
        return false;
    }
}

bool simt_has_arithmetic(const Simt *s, const Type *type)
{
    switch (tt_element(type)->kind) {
    case TT_F16:
        return true; /* from sm_53 on */
    case TT_BF16:
        return s->options->sm >= 90;
    default:
        return true;
    }
}

LLVMValueRef simt_pair(Simt *s, LLVMValueRef low, LLVMValueRef high)
{
    LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(low), 2));
    vector = LLVMBuildInsertElement(s->b, vector, low, simt_i32(s, 0), "");
    return LLVMBuildInsertElement(s->b, vector, high, simt_i32(s, 1), "");
}

static void compute_pair(Simt *s, Batch *batch, int at)
{
    LLVMValueRef x[4];
    for (int i = 0; i < batch->op->operand_count; i++)
        x[i] = simt_pair(s, batch->operands[i][at], batch->operands[i][at + 1]);
    LLVMValueRef result = float_op(s, batch->op->opcode, x);
    for (int i = 0; i < 2; i++)
        batch->results[at + i] = LLVMBuildExtractElement(s->b, result, simt_i32(s, i), "");
}

/* Through f32: exact for one operation and then one rounding, fma excepted, which is done in f64. */
static LLVMValueRef compute_wider(Simt *s, const Op *op, LLVMValueRef const *x)
{
    Module *module = s->module;
    const Type *type = tt_element(tt_operand(op, 0)->type), *result = tt_element(op->results[0]->type);
    const Type *wide = tt_scalar_type(module, op->opcode == OP_fma ? TT_F64 : TT_F32);
    LLVMValueRef widened[4];
    for (int i = 0; i < op->operand_count; i++)
        widened[i] = simt_cast_scalar(s, x[i], type, wide);
    LLVMValueRef value = float_op(s, op->opcode, widened);
    return tt_is_float(result) ? simt_cast_scalar(s, value, wide, type) : value;
}

static void float_arithmetic(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    const Type *type = tt_operand(op, 0)->type;
    int bits = tt_bit_width(type), at = 0;
    bool native = simt_has_arithmetic(s, type) && (bits > 16 || has_in_16_bits(op->opcode));
    if (op->opcode == OP_fneg || op->opcode == OP_fabs)
        native = true; /* a bit */
    for (; native && bits == 16 && at + 1 < batch->count; at += 2)
        compute_pair(s, batch, at);
    for (; at < batch->count; at++) {
        LLVMValueRef x[4];
        for (int i = 0; i < op->operand_count; i++)
            x[i] = batch->operands[i][at];
        batch->results[at] = native ? float_op(s, op->opcode, x) : compute_wider(s, op, x);
    }
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef cast(Simt *s, const Op *op, LLVMValueRef x)
{
    LLVMTypeRef type = simt_type(s, op->results[0]->type);
    switch (op->opcode) {
    case OP_trunc:
        /* else LLVM lets a branch choose among narrow values, of which ptxas puts two into a register there */
        if (tt_def(tt_operand(op, 0), OP_if) && LLVMTypeOf(x) == s->i32)
            x = s->ops->hide(s, x);
        return LLVMBuildTrunc(s->b, x, type, "");
    case OP_ext_s:
        return LLVMBuildSExt(s->b, x, type, "");
    case OP_ext_u:
        return LLVMBuildZExt(s->b, x, type, "");
    case OP_ptr_to_int:
        return LLVMBuildPtrToInt(s->b, x, type, "");
    case OP_int_to_ptr:
        return LLVMBuildIntToPtr(s->b, x, type, "");
    case OP_bitcast:
        return LLVMTypeOf(x) == type ? x : LLVMBuildBitCast(s->b, x, type, "");
    default:
        tt_bug("no SIMT lowering of '%s'", tt_op_infos[op->opcode].name);
    }
}

static LLVMValueRef scalar_op(Simt *s, const Op *op, LLVMValueRef const *x)
{
    if (tt_has(op, ON_INTS))
        return integer_op(s, op, x);
    switch (op->opcode) {
    case OP_select:
        return LLVMBuildSelect(s->b, x[0], x[1], x[2], "");
    case OP_addptr:
        return simt_addptr(s, x[0], x[1], tt_byte_width(tt_element(op->results[0]->type)->element));
    default:
        return cast(s, op, x[0]);
    }
}

static void compute_batch(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    if (op->opcode == OP_extern_call) {
        simt_extern_call(s, batch);
    } else if (tt_has(op, ON_FLOATS)) {
        if (tt_has(op, COSTLY))
            simt_math(s, batch);
        else
            float_arithmetic(s, batch);
    } else if (op->opcode == OP_float_cast) {
        simt_float_cast(s, batch);
    } else if (tt_op_infos[op->opcode].rule == CAST &&
               tt_is_float(tt_operand(op, 0)->type) != tt_is_float(op->results[0]->type) &&
               op->opcode != OP_bitcast) {
        simt_int_float_cast(s, batch);
    } else {
        simt_compute_words(s, batch);
        for (int i = 0; i < batch->count; i++) {
            LLVMValueRef x[4];
            for (int operand = 0; operand < op->operand_count; operand++)
                x[operand] = batch->operands[operand][i];
            if (!batch->results[i])
                batch->results[i] = scalar_op(s, op, x);
        }
    }
}

void simt_elementwise(Simt *s, const Op *op)
{
    enum { MOST = 4 };
    int operands = op->operand_count, registers = simt_registers(op->results[0]);
    if (operands > MOST)
        tt_unsupported(op->loc, "%s with %d operands", tt_op_infos[op->opcode].name, operands);
    const Tile *tiles[MOST];
    Batch batch = {.op = op, .results = TT_NEW_ARRAY(s->arena, LLVMValueRef, registers)};
    for (int i = 0; i < operands; i++) {
        tiles[i] = simt_tile(s, tt_operand(op, i));
        TT_ASSERT(tiles[i]->count == registers);
        batch.operands[i] = TT_NEW_ARRAY(s->arena, LLVMValueRef, registers);
    }
    Map seen = {.arena = s->arena}; /* operands -> index in the batch, plus one */
    int *place = TT_NEW_ARRAY(s->arena, int, registers);
    for (int r = 0; r < registers; r++) {
        LLVMValueRef key[MOST] = {0};
        bool is_left_out = false; /* of a part that was read */
        for (int i = 0; i < operands; i++) {
            key[i] = tiles[i]->at[r];
            is_left_out |= LLVMIsUndef(key[i]) && op->opcode != OP_select;
        }
        place[r] = -1;
        if (is_left_out)
            continue;
        void **slot = tt_map_slot(&seen, key, sizeof key);
        if (!*slot) {
            for (int i = 0; i < operands; i++)
                batch.operands[i][batch.count] = key[i];
            *slot = (void *)(intptr_t)++batch.count;
        }
        place[r] = (int)(intptr_t)*slot - 1;
    }
    compute_batch(s, &batch);
    Tile *tile = simt_new_tile(s, registers);
    for (int r = 0; r < registers; r++)
        tile->at[r] =
            place[r] < 0 ? LLVMGetUndef(simt_type(s, op->results[0]->type)) : batch.results[place[r]];
    simt_set(s, op->results[0], tile);
}
