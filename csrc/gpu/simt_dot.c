/* Matrix products on fused multiply-adds. Both operands go through shared memory (unless the threads hold what they need
 * already) into layouts in which a thread has all of K for its rows and columns. What it loads from there it loads as
 * late as possible: a chunk of K at a time, so that registers hold a chunk and the accumulators. */
#include "gpu/simt.h"

enum { STRAIGHT_LINE_LIMIT = 4096 /* multiply-adds in one basic block */, LONGEST_VECTOR = 16 };

/* ---- layouts of the operands --------------------------------------------------------------------------------------------------------- */

/* The layout in which threads read an operand. `kept` is the dimension of the result that the operand has: the image of
 * each place moves along it as in the result, and K is added in registers: the lowest for a (rows of K are contiguous),
 * the highest for b (rows of N are). */
static LinearLayout operand_layout(const LinearLayout *result, const Type *type, bool is_a)
{
    LinearLayout layout = tt_padded_layout(type);
    int rank = type->rank, kept = is_a ? rank - 2 : rank - 1, k = is_a ? rank - 1 : rank - 2, at = 0;
    int k_bits = layout.out_bits[k], registers = 0;
    uint64_t k_start = (uint64_t)tt_layout_axis_start(&layout, k);
    for (int bit = 0; is_a && bit < k_bits; bit++, registers++)
        layout.bases[at++] = 1ull << (k_start + (uint64_t)bit);
    for (int i = 0; i < tt_layout_in_total(result); i++) {
        int64_t coordinates[TT_MAX_RANK];
        tt_layout_coordinates(result, result->bases[i], coordinates);
        uint64_t image = (uint64_t)coordinates[kept] << tt_layout_axis_start(&layout, kept);
        if (rank == 3)
            image |= (uint64_t)coordinates[0] << tt_layout_axis_start(&layout, 0);
        if (i == result->in_bits[LAYOUT_REGISTER])
            for (int bit = 0; !is_a && bit < k_bits; bit++, registers++)
                layout.bases[at++] = 1ull << (k_start + (uint64_t)bit);
        if (i >= result->in_bits[LAYOUT_REGISTER])
            layout.bases[at++] = image;
        else if (image)
            layout.bases[at++] = image, registers++;
    }
    memcpy(layout.in_bits, result->in_bits, sizeof layout.in_bits);
    layout.in_bits[LAYOUT_REGISTER] = registers;
    return layout;
}

static void plan_operand(const Op *op, int index, DotPlan *plan)
{
    const Value *operand = tt_operand(op, index);
    DotOperand *x = index ? &plan->b : &plan->a;
    int bytes = tt_byte_width(operand->type);
    x->layout = operand_layout(op->results[0]->layout, operand->type, index == 0);
    x->plan = tt_layout_plan_conversion(operand->layout, &x->layout, bytes);
    x->offset = plan->bytes;
    if (x->plan.kind == CONVERT_SHARED)
        plan->bytes += (((int64_t)bytes << tt_layout_out_total(&x->layout)) + 15) / 16 * 16;
}

DotPlan tt_plan_dot(const Op *op)
{
    DotPlan plan = {0};
    plan_operand(op, 0, &plan);
    plan_operand(op, 1, &plan);
    return plan;
}

/* ---- reading operands ------------------------------------------------------------------------------------------------------------------ */

typedef struct Operand {
    const DotOperand *plan;
    const Type *type;
    const Type *computed; /* element type of the products */
    int64_t scratch;
    const Tile *tile; /* the values, when they did not go through shared memory */
    SharedSide side;
    Tile *loaded; /* registers read so far, in the type of the products */
    int k_axis;
} Operand;

static void store_operand(Simt *s, const Op *op, int index, const DotOperand *plan, const Type *computed,
                          Operand *x)
{
    const Value *operand = tt_operand(op, index);
    int rank = operand->type->rank;
    *x = (Operand){.plan = plan, .type = tt_element(operand->type), .computed = computed};
    x->k_axis = index ? rank - 2 : rank - 1;
    x->scratch = tt_scratch_offset(op) + plan->offset;
    x->loaded = simt_new_tile(s, 1 << plan->layout.in_bits[LAYOUT_REGISTER]);
    Tile *tile = simt_tile(s, operand);
    Tile *filled = simt_new_tile(s, tile->count);
    for (int r = 0; r < tile->count; r++) { /* padding along K must not count */
        LLVMValueRef inside = simt_in_bounds_along(s, operand->type, operand->layout, x->k_axis, r);
        filled->at[r] = tile->at[r];
        if (inside)
            filled->at[r] =
                LLVMBuildSelect(s->b, inside, tile->at[r], LLVMConstNull(LLVMTypeOf(tile->at[r])), "");
    }
    if (plan->plan.kind != CONVERT_SHARED) {
        x->tile = simt_convert(s, filled, operand->type, operand->layout, &plan->layout, 0);
        return;
    }
    int bytes = tt_byte_width(operand->type);
    SharedSide stored = simt_shared_side(s, operand->layout, &plan->plan.shared, true, bytes);
    simt_store_side(s, &stored, filled, x->scratch);
    x->side = simt_shared_side(s, &plan->layout, &plan->plan.shared, false, bytes);
}

static LLVMValueRef widened(Simt *s, const Operand *x, LLVMValueRef value)
{
    if (tt_is_int(x->computed))
        return LLVMBuildIntCast2(s->b, value, simt_type(s, x->computed), 1, "");
    return simt_cast_scalar(s, value, x->type, x->computed);
}

/* The element in a register of the operand's layout, with the K that a loop has reached added to its address. */
static LLVMValueRef operand_element(Simt *s, Operand *x, int reg, const SharedMove *move)
{
    if (x->loaded->at[reg])
        return x->loaded->at[reg];
    if (x->tile) {
        x->loaded->at[reg] = widened(s, x, x->tile->at[reg]);
        return x->loaded->at[reg];
    }
    LLVMValueRef elements[16];
    int registers[16];
    int count =
        simt_load_vector_of(s, &x->side, reg, x->scratch, move, simt_type(s, x->type), elements, registers);
    for (int i = 0; i < count; i++)
        x->loaded->at[registers[i]] = widened(s, x, elements[i]);
    return x->loaded->at[reg];
}

static void forget_elements(Operand *x)
{
    memset(x->loaded->at, 0, sizeof(LLVMValueRef) * (size_t)x->loaded->count);
}

/* ---- multiplying ----------------------------------------------------------------------------------------------------------------------- */

typedef struct Product {
    Simt *s;
    const Op *op;
    const LinearLayout *layout; /* of the result */
    Operand a, b;
    const Type *computed;
    LLVMValueRef *sums;
    int count;
} Product;

static LLVMValueRef multiply_add(Simt *s, const Type *type, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    if (tt_is_int(type))
        return LLVMBuildAdd(s->b, LLVMBuildMul(s->b, a, b, ""), c, "");
    return simt_intrinsic(s, "llvm.fma", (LLVMTypeRef[]){LLVMTypeOf(a)}, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* Register of an operand for register `reg` of the result and this k. */
static int operand_register(const Product *p, const Operand *x, int reg, int64_t k)
{
    const LinearLayout *layout = &x->plan->layout;
    int rank = layout->rank, kept = x->k_axis == rank - 1 ? rank - 2 : rank - 1;
    int64_t coordinates[TT_MAX_RANK];
    tt_layout_coordinates(p->layout, tt_f2_apply(p->layout->bases, (uint64_t)reg), coordinates);
    uint64_t element = (uint64_t)coordinates[kept] << tt_layout_axis_start(layout, kept);
    element |= (uint64_t)k << tt_layout_axis_start(layout, x->k_axis);
    if (rank == 3)
        element |= (uint64_t)coordinates[0] << tt_layout_axis_start(layout, 0);
    return tt_register_of(layout, element);
}

static void multiply_range(Product *p, int64_t end, const SharedMove *a_move, const SharedMove *b_move)
{
    for (int64_t k = 0; k < end; k++)
        for (int r = 0; r < p->count; r++) {
            LLVMValueRef a = operand_element(p->s, &p->a, operand_register(p, &p->a, r, k), a_move);
            LLVMValueRef b = operand_element(p->s, &p->b, operand_register(p, &p->b, r, k), b_move);
            p->sums[r] = multiply_add(p->s, p->computed, a, b, p->sums[r]);
        }
}

/* What the bits of k above a chunk do to an operand's addresses: their columns, applied at run time. */
static SharedMove move_along_k(Product *p, const Operand *x, LLVMValueRef k, int chunk_bits)
{
    Simt *s = p->s;
    const LinearLayout *layout = &x->plan->layout;
    int start = tt_layout_axis_start(layout, x->k_axis);
    SharedMove move = {.bytes = simt_i32(s, 0)};
    for (int bit = chunk_bits; bit < layout->out_bits[x->k_axis]; bit++) {
        int reg = tt_register_of(layout, 1ull << (start + bit));
        uint64_t offset = tt_f2_apply(x->side.offsets, (uint64_t)reg);
        LLVMValueRef is_set = LLVMBuildAnd(s->b, k, simt_i32(s, 1ll << bit), "");
        is_set = LLVMBuildICmp(s->b, LLVMIntNE, is_set, simt_i32(s, 0), "");
        LLVMValueRef bytes = simt_i32(s, (int64_t)offset * x->side.element_bytes);
        move.bytes =
            LLVMBuildXor(s->b, move.bytes, LLVMBuildSelect(s->b, is_set, bytes, simt_i32(s, 0), ""), "");
        move.bits |= offset;
    }
    return move;
}

/* for (k = 0; k < extent; k += chunk) multiply_range */
static void multiply_in_loop(Product *p, int64_t extent, int64_t chunk)
{
    Simt *s = p->s;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b), body = simt_new_block(s, "k"),
                      after = simt_new_block(s, "");
    LLVMBuildBr(s->b, body);
    LLVMPositionBuilderAtEnd(s->b, body);
    LLVMValueRef k = LLVMBuildPhi(s->b, s->i32, "");
    LLVMValueRef *phis = TT_NEW_ARRAY(s->arena, LLVMValueRef, p->count);
    for (int r = 0; r < p->count; r++) {
        phis[r] = LLVMBuildPhi(s->b, LLVMTypeOf(p->sums[r]), "");
        LLVMAddIncoming(phis[r], &p->sums[r], &before, 1);
        p->sums[r] = phis[r];
    }
    int bits = tt_log2(chunk);
    SharedMove a_move = move_along_k(p, &p->a, k, bits), b_move = move_along_k(p, &p->b, k, bits);
    multiply_range(p, chunk, &a_move, &b_move);
    LLVMValueRef next = LLVMBuildAdd(s->b, k, simt_i32(s, chunk), "");
    LLVMAddIncoming(k, (LLVMValueRef[]){simt_i32(s, 0), next}, (LLVMBasicBlockRef[]){before, body}, 2);
    for (int r = 0; r < p->count; r++)
        LLVMAddIncoming(phis[r], &p->sums[r], &body, 1);
    LLVMBuildCondBr(s->b, LLVMBuildICmp(s->b, LLVMIntSLT, next, simt_i32(s, extent), ""), body, after);
    LLVMPositionBuilderAtEnd(s->b, after);
    forget_elements(&p->a);
    forget_elements(&p->b);
}

/* Bits of k that a chunk must have: those within a vector of the operand's cannot be added to its address. */
static int bits_in_vector(const Operand *x)
{
    const LinearLayout *layout = &x->plan->layout;
    int start = tt_layout_axis_start(layout, x->k_axis), bits = 0;
    for (int bit = 0; bit < layout->out_bits[x->k_axis] && !x->tile; bit++) {
        int reg = tt_register_of(layout, 1ull << (start + bit));
        if (tt_f2_apply(x->side.offsets, (uint64_t)reg) & ((1ull << x->side.vector_bits) - 1))
            bits = bit + 1;
    }
    return bits;
}

static void multiply(Product *p)
{
    int64_t k = tt_operand(p->op, 0)->type->shape[p->layout->rank - 1];
    int64_t limit = STRAIGHT_LINE_LIMIT / p->count, chunk = TT_MAX(LONGEST_VECTOR, limit / 4);
    chunk = TT_MAX(chunk, 1ll << TT_MAX(bits_in_vector(&p->a), bits_in_vector(&p->b)));
    if (!p->a.tile && !p->b.tile && k > TT_MAX(chunk, limit))
        multiply_in_loop(p, k, 1ll << tt_log2(chunk)); /* beyond the extent of K the operands are zero */
    else
        multiply_range(p, k, NULL, NULL);
}

/* Products of narrow floats are exact in f32, and sums of them are kept there whatever c is. */
static const Type *computed_type(Simt *s, const Type *type)
{
    type = tt_element(type);
    return tt_bit_width(type) < 32 ? tt_scalar_type(s->module, tt_is_int(type) ? TT_I32 : TT_F32) : type;
}

void simt_dot(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    Product p = {.s = s, .op = op, .layout = result->layout, .count = simt_registers(result)};
    p.computed = computed_type(s, result->type);
    DotPlan plan = tt_plan_dot(op);
    store_operand(s, op, 0, &plan.a, p.computed, &p.a);
    store_operand(s, op, 1, &plan.b, p.computed, &p.b);
    if (plan.bytes)
        simt_sync(s);
    const Tile *initial = simt_tile(s, tt_operand(op, 2));
    Operand c = {.type = tt_element(result->type), .computed = p.computed};
    p.sums = TT_NEW_ARRAY(s->arena, LLVMValueRef, p.count);
    for (int r = 0; r < p.count; r++)
        p.sums[r] = widened(s, &c, initial->at[r]);
    multiply(&p);
    Tile *tile = simt_new_tile(s, p.count);
    for (int r = 0; r < p.count; r++)
        tile->at[r] = tt_is_int(p.computed) ? LLVMBuildTrunc(s->b, p.sums[r], simt_type(s, result->type), "")
                                            : simt_cast_scalar(s, p.sums[r], p.computed, c.type);
    simt_set(s, result, tile);
}
