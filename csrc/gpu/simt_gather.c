/* Elements looked up by run-time indices, and counted by their value: both through shared memory. Lookups at a fixed
 * distance are shuffles, or renamed registers. */
#include "gpu/simt.h"

/* ---- at a distance -------------------------------------------------------------------------------------------------------------------- */

/* Vectors of registers lie thread by thread: whichever thread one reads from, a warp reads a row. */
static void swap_between_warps(Simt *s, const Tile *source, const DistancePlan *plan, int64_t scratch,
                               Tile *result)
{
    LLVMTypeRef type = LLVMTypeOf(source->at[0]);
    int bytes = simt_bytes(type), vector = TT_MIN(source->count, TT_MAX(1, 16 / bytes));
    int64_t row = (int64_t)vector * bytes * TT_LANES * s->options->num_warps;
    LLVMValueRef other = simt_i32(s, plan->warps << TT_LANE_BITS | plan->lanes),
                 size = simt_i32(s, vector * bytes);
    LLVMValueRef own = LLVMBuildMul(s->b, s->thread, size, "");
    other = LLVMBuildMul(s->b, LLVMBuildXor(s->b, s->thread, other, ""), size, "");
    for (int r = 0; r < source->count; r += vector)
        simt_shared_store_vector(s, own, scratch + r / vector * row, vector, source->at + r, NULL);
    simt_sync(s);
    for (int r = 0; r < source->count; r += vector) {
        LLVMValueRef elements[16];
        int first = (r ^ (int)plan->registers) / vector;
        simt_shared_load_vector(s, other, scratch + first * row, vector, type, elements);
        for (int i = 0; i < vector; i++)
            result->at[r + i] = elements[i ^ ((int)plan->registers & (vector - 1))];
    }
}

static void gather_at_distance(Simt *s, const Op *op, const DistancePlan *plan)
{
    const Tile *source = simt_tile(s, tt_operand(op, 0));
    Tile *tile = simt_new_tile(s, source->count);
    if (plan->warps)
        swap_between_warps(s, source, plan, tt_scratch_offset(op), tile);
    for (int r = 0; r < source->count && !plan->warps; r++) {
        LLVMValueRef element = source->at[r ^ (int)plan->registers];
        tile->at[r] = plan->lanes ? simt_shuffle_xor(s, element, (int)plan->lanes) : element;
    }
    simt_set(s, op->results[0], tile);
}

/* ---- by run-time indices -------------------------------------------------------------------------------------------------------------- */

static void row_major_strides(const Type *type, int64_t *strides)
{
    int64_t stride = 1;
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        stride *= type->shape[axis];
    }
}

/* An index outside of the axis gives an unspecified element of the tile, never an access outside of it. */
void simt_gather(Simt *s, const Op *op)
{
    const Value *source = tt_operand(op, 0), *index = tt_operand(op, 1), *result = op->results[0];
    int gathered = (int)tt_int_attr(op, ATTR_axis, 0);
    int64_t strides[TT_MAX_RANK], scratch = tt_scratch_offset(op), bytes = tt_byte_width(source->type);
    DistancePlan plan;
    if (tt_plan_distance(op, &plan)) {
        gather_at_distance(s, op, &plan);
        return;
    }
    row_major_strides(source->type, strides);
    simt_store_numbered(s, source, strides, 0, scratch);
    simt_sync(s);
    const Tile *indices = simt_tile(s, index);
    Tile *tile = simt_new_tile(s, simt_registers(result));
    LLVMValueRef last = simt_i32(s, (source->type->count - 1) * bytes);
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef place = LLVMBuildIntCast2(s->b, indices->at[r], s->i32, 1, "");
        place = simt_mul(s, place, simt_i32(s, strides[gathered] * bytes));
        for (int axis = 0; axis < result->type->rank; axis++)
            if (axis != gathered)
                place = simt_add(s, place,
                                 simt_mul(s, simt_coordinate(s, result->layout, axis, r),
                                          simt_i32(s, strides[axis] * bytes)));
        place = simt_intrinsic2(s, "llvm.umin", place, last);
        tile->at[r] = simt_shared_load(s, place, scratch, simt_type(s, result->type));
    }
    simt_set(s, result, tile);
}

/* ---- histogram ------------------------------------------------------------------------------------------------------------------------ */

enum { COUNT_BYTES = 4 };

static void clear_counts(Simt *s, int64_t bins, int64_t scratch)
{
    int64_t threads = (int64_t)TT_LANES * s->options->num_warps;
    LLVMValueRef place = LLVMBuildMul(s->b, s->thread, simt_i32(s, COUNT_BYTES), "");
    for (int64_t first = 0; first < bins; first += threads) {
        LLVMValueRef inside = NULL;
        if (bins - first < threads)
            inside = LLVMBuildICmp(s->b, LLVMIntULT, s->thread, simt_i32(s, bins - first), "");
        simt_shared_store(s, place, scratch + first * COUNT_BYTES, simt_i32(s, 0), inside);
    }
}

static void count_elements(Simt *s, const Op *op, int64_t bins, int64_t scratch)
{
    const Value *value = tt_operand(op, 0);
    const Tile *tile = simt_tile(s, value),
               *mask = op->operand_count > 1 ? simt_tile(s, tt_operand(op, 1)) : NULL;
    LLVMTypeRef type = simt_type(s, value->type);
    LLVMValueRef first = simt_is_first_copy(s, value->layout);
    bool all_fit = tt_bit_width(value->type) < 32 && bins >= 1ll << tt_bit_width(value->type);
    for (int r = 0; r < tile->count; r++) {
        if (simt_is_register_copy(value->layout, r))
            continue;
        LLVMValueRef counts = simt_and(s, first, simt_in_bounds(s, value->type, value->layout, r));
        if (mask)
            counts = simt_and(s, counts, mask->at[r]);
        if (!all_fit)
            counts =
                simt_and(s, counts, LLVMBuildICmp(s->b, LLVMIntULT, tile->at[r], simt_int(type, bins), ""));
        LLVMValueRef bin = LLVMBuildIntCast2(s->b, tile->at[r], s->i32, 0, "");
        Atomic add = {
            .kind = ATOMIC_ADD, .type = TT_I32, .sem = "relaxed", .scope = "cta", .result_unused = true};
        add.value = simt_i32(s, 1);
        add.access =
            simt_shared_access(LLVMBuildMul(s->b, bin, simt_i32(s, COUNT_BYTES), ""), scratch, COUNT_BYTES);
        add.access.predicate = counts;
        s->ops->atomic(s, &add);
    }
}

void simt_histogram(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    int64_t scratch = tt_scratch_offset(op), bins = result->type->shape[0];
    clear_counts(s, bins, scratch);
    simt_sync(s);
    count_elements(s, op, bins, scratch);
    simt_sync(s);
    Tile *tile = simt_new_tile(s, simt_registers(result));
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef bin = simt_coordinate(s, result->layout, 0, r);
        if (!tt_is_pow2(bins))
            bin = simt_intrinsic2(s, "llvm.umin", bin, simt_i32(s, bins - 1));
        tile->at[r] = simt_shared_load(s, simt_mul(s, bin, simt_i32(s, COUNT_BYTES)), scratch, s->i32);
    }
    simt_set(s, result, tile);
}
