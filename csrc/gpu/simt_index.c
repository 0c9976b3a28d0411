/* Which elements a thread holds: coordinates of registers, bounds, copies, and the offsets that linear maps give
 * threads. What depends on the thread alone is computed once, at the function's entry; registers add constants. */
#include "gpu/simt.h"

/* ---- values of the entry block ----------------------------------------------------------------------------------------------- */

typedef struct PerThreadKey {
    int64_t kind, scale;
    uint64_t columns[32]; /* LANE bits, then WARP bits */
} PerThreadKey;
enum { THREAD_OFFSET, FIRST_COPY };

Place simt_go_to_entry(Simt *s)
{
    Place place = {LLVMGetInsertBlock(s->b), LLVMGetCurrentDebugLocation2(s->b)};
    LLVMPositionBuilderBefore(s->b, s->entry_end); /* takes over that instruction's location */
    return place;
}

void simt_come_back(Simt *s, Place place)
{
    LLVMPositionBuilderAtEnd(s->b, place.block);
    LLVMSetCurrentDebugLocation2(s->b, place.location);
}

LLVMValueRef simt_new_array(Simt *s, LLVMTypeRef type, int count)
{
    Place here = {LLVMGetInsertBlock(s->b), LLVMGetCurrentDebugLocation2(s->b)};
    LLVMPositionBuilderBefore(s->b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(s->function)));
    LLVMValueRef array = LLVMBuildAlloca(s->b, LLVMArrayType2(type, (uint64_t)count), "");
    simt_come_back(s, here);
    return array;
}

/* Bits that move together by the same
 * distance are one mask and one shift: (x & mask) << distance. */
LLVMValueRef simt_apply_columns(Simt *s, LLVMValueRef x, const uint64_t *columns, int count, LLVMValueRef sum)
{
    for (int distance = -count; distance < 40; distance++) {
        uint64_t mask = 0;
        for (int i = 0; i < count; i++)
            if (i + distance >= 0 && columns[i] >> (i + distance) & 1)
                mask |= 1ull << i;
        if (!mask)
            continue;
        LLVMValueRef part = x;
        if (mask != (1ull << count) - 1)
            part = LLVMBuildAnd(s->b, part, simt_i32(s, (int64_t)mask), "");
        if (distance > 0)
            part = LLVMBuildShl(s->b, part, simt_i32(s, distance), "");
        else if (distance < 0)
            part = LLVMBuildLShr(s->b, part, simt_i32(s, -distance), "");
        sum = sum ? LLVMBuildXor(s->b, sum, part, "") : part;
    }
    return sum;
}

LLVMValueRef simt_thread_offset(Simt *s, const uint64_t *columns, int lane_bits, int warp_bits, int64_t scale)
{
    PerThreadKey key = {.kind = THREAD_OFFSET, .scale = scale};
    memcpy(key.columns, columns, sizeof(uint64_t) * (size_t)(lane_bits + warp_bits));
    void **slot = tt_map_slot(&s->per_thread, &key, sizeof key);
    if (*slot)
        return *slot;
    Place place = simt_go_to_entry(s);
    LLVMValueRef sum = simt_apply_columns(s, s->lane, columns, lane_bits, NULL);
    sum = simt_apply_columns(s, s->warp, columns + lane_bits, warp_bits, sum);
    if (!sum)
        sum = simt_i32(s, 0);
    if (scale != 1)
        sum = LLVMBuildMul(s->b, sum, simt_i32(s, scale), "");
    simt_come_back(s, place);
    return *slot = sum;
}

void simt_add_offset(Simt *s, const uint64_t *thread_columns, int count, LLVMValueRef base, uint64_t constant,
                     int64_t scale, LLVMValueRef *address, int64_t *immediate)
{
    uint64_t thread_bits = 0;
    for (int i = 0; i < count; i++)
        thread_bits |= thread_columns[i];
    uint64_t meeting = constant & thread_bits; /* these bits carry no addition: exclusive or */
    *immediate = (int64_t)(constant ^ meeting) * scale;
    *address = meeting ? LLVMBuildXor(s->b, base, simt_i32(s, (int64_t)meeting * scale), "") : base;
}

/* Behind the place of a slot, which the loop changes, the bits that meet are exchanged last if the slot is aligned to them: the
 * sum of thread and slot is the same for all registers then, and each has the one operation left. */
void simt_add_offset_in(Simt *s, const Value *buffer, const uint64_t *thread_columns, int count,
                        LLVMValueRef base, uint64_t constant, int64_t scale, LLVMValueRef *address,
                        int64_t *immediate)
{
    LLVMValueRef memory = simt_scalar(s, buffer);
    uint64_t thread_bits = 0;
    for (int i = 0; i < count; i++)
        thread_bits |= thread_columns[i];
    bool comes_first = !LLVMIsConstant(memory) &&
                       (constant & thread_bits) * (uint64_t)scale < (uint64_t)tt_buffer_alignment(buffer);
    if (comes_first)
        base = LLVMBuildAdd(s->b, base, memory, "");
    simt_add_offset(s, thread_columns, count, base, constant, scale, address, immediate);
    if (!comes_first)
        *address = LLVMBuildAdd(s->b, *address, memory, "");
}

/* ---- coordinates ---------------------------------------------------------------------------------------------------------------- */

static uint64_t coordinate_of(const LinearLayout *layout, int axis, uint64_t element)
{
    return element >> tt_layout_axis_start(layout, axis) & ((1ull << layout->out_bits[axis]) - 1);
}

static uint64_t register_element(const LinearLayout *layout, int reg)
{
    return tt_f2_apply(layout->bases, (uint64_t)reg);
}

/* The coordinates of the lane and warp bits; returns how many. */
static int coordinate_columns(const LinearLayout *layout, int axis, uint64_t *columns)
{
    int first = layout->in_bits[LAYOUT_REGISTER],
        count = layout->in_bits[LAYOUT_LANE] + layout->in_bits[LAYOUT_WARP];
    for (int i = 0; i < count; i++)
        columns[i] = coordinate_of(layout, axis, layout->bases[first + i]);
    return count;
}

LLVMValueRef simt_coordinate(Simt *s, const LinearLayout *layout, int axis, int reg)
{
    uint64_t columns[32];
    int count = coordinate_columns(layout, axis, columns);
    LLVMValueRef base =
        simt_thread_offset(s, columns, layout->in_bits[LAYOUT_LANE], layout->in_bits[LAYOUT_WARP], 1);
    int64_t immediate;
    simt_add_offset(s, columns, count, base, coordinate_of(layout, axis, register_element(layout, reg)), 1,
                    &base, &immediate);
    return simt_add_constant(s, base, immediate);
}

LLVMValueRef simt_in_bounds_along(Simt *s, const Type *type, const LinearLayout *layout, int axis, int reg)
{
    uint64_t columns[32], farthest = coordinate_of(layout, axis, register_element(layout, reg));
    int count = coordinate_columns(layout, axis, columns);
    for (int i = 0; i < count; i++)
        farthest |= columns[i];
    if ((int64_t)farthest < type->shape[axis])
        return NULL;
    LLVMValueRef coordinate = simt_coordinate(s, layout, axis, reg);
    return LLVMBuildICmp(s->b, LLVMIntULT, coordinate, simt_i32(s, type->shape[axis]), "");
}

LLVMValueRef simt_in_bounds(Simt *s, const Type *type, const LinearLayout *layout, int reg)
{
    LLVMValueRef all = NULL;
    for (int axis = 0; axis < type->rank; axis++)
        all = simt_and(s, all, simt_in_bounds_along(s, type, layout, axis, reg));
    return all;
}

Tile *simt_without_padding(Simt *s, const Value *value)
{
    const Tile *tile = simt_tile(s, value);
    Tile *filled = simt_new_tile(s, tile->count);
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef inside = simt_in_bounds(s, value->type, value->layout, r);
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(tile->at[r]));
        filled->at[r] = inside ? LLVMBuildSelect(s->b, inside, tile->at[r], zero, "") : tile->at[r];
    }
    return filled;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------------- */

bool simt_is_register_copy(const LinearLayout *layout, int reg)
{
    return (tt_layout_replication(layout, LAYOUT_REGISTER) & (uint32_t)reg) != 0;
}

static LLVMValueRef has_no_bits(Simt *s, LLVMValueRef x, uint32_t mask)
{
    LLVMValueRef bits = LLVMBuildAnd(s->b, x, simt_i32(s, (int64_t)mask), "");
    return LLVMBuildICmp(s->b, LLVMIntEQ, bits, simt_i32(s, 0), "");
}

LLVMValueRef simt_is_first_copy(Simt *s, const LinearLayout *layout)
{
    uint32_t lanes = TT_LANES - 1, warps = (uint32_t)s->options->num_warps - 1; /* of a scalar: all copies */
    if (layout) {
        lanes = tt_layout_replication(layout, LAYOUT_LANE);
        warps = tt_layout_replication(layout, LAYOUT_WARP);
    }
    if (!lanes && !warps)
        return NULL;
    PerThreadKey key = {.kind = FIRST_COPY, .columns = {lanes, warps}};
    void **slot = tt_map_slot(&s->per_thread, &key, sizeof key);
    if (*slot)
        return *slot;
    Place place = simt_go_to_entry(s);
    LLVMValueRef first = has_no_bits(s, s->thread, lanes | warps << TT_LANE_BITS);
    simt_come_back(s, place);
    return *slot = first;
}
