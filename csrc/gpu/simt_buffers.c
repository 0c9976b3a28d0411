/* Buffers: tiles in shared memory that outlive an operation. A buffer is the place of its first byte (an i32); where an
 * element lies behind it follows from its layout, which is the exclusive or of what each bit of its place contributes. */
#include "gpu/simt_vectors.h"

void simt_memory_columns(const LinearLayout *places, const LinearLayout *memory, uint64_t columns[64])
{
    uint64_t inverse[64];
    tt_layout_right_inverse(memory, inverse);
    for (int i = 0; i < tt_layout_in_total(places); i++)
        columns[i] = tt_f2_apply(inverse, places->bases[i]);
}

/* The vector's next bit is a register's, and that of nothing else. */
static bool next_vector_bit(const LinearLayout *places, const uint64_t *columns, int bit, uint32_t *reg)
{
    *reg = 0;
    for (int i = 0; i < tt_layout_in_total(places); i++) {
        bool alone = i < places->in_bits[LAYOUT_REGISTER] && columns[i] == 1ull << bit && !*reg;
        if (columns[i] >> bit & 1 && !alone)
            return false;
        *reg |= alone ? 1u << i : 0;
    }
    return *reg != 0;
}

/* Along the part's axis, where the register's element may lie in some thread: the least and the largest index. */
static void reach_of(const LinearLayout *layout, const Attr *part, int reg, int64_t reach[2])
{
    int axis = (int)part->ints[0], start = tt_layout_axis_start(layout, axis),
        registers = layout->in_bits[LAYOUT_REGISTER];
    uint64_t at = tt_f2_apply(layout->bases, (uint64_t)reg), threads = 0;
    for (int i = registers; i < tt_layout_in_total(layout); i++)
        threads |= layout->bases[i];
    uint64_t mask = (1ull << layout->out_bits[axis]) - 1;
    reach[0] = (int64_t)((at & ~threads) >> start & mask);
    reach[1] = (int64_t)((at | threads) >> start & mask);
}

bool simt_is_in_part(const LinearLayout *layout, const Attr *part, int reg)
{
    int64_t reach[2];
    if (!part)
        return true;
    reach_of(layout, part, reg, reach);
    return reach[1] >= part->ints[1] && reach[0] < part->ints[2];
}

typedef struct BufferSide {
    SharedSide side;
    uint64_t columns[64];
    uint32_t registers[4];
} BufferSide;

/* How a tile's registers lie in a buffer. */
static void plan_side(Simt *s, BufferSide *b, const LinearLayout *places, const Value *buffer)
{
    int bytes = tt_byte_width(buffer->type);
    simt_memory_columns(places, buffer->layout, b->columns);
    b->side = (SharedSide){
        .layout = places, .offsets = b->columns, .registers = b->registers, .element_bytes = bytes};
    while (bytes << b->side.vector_bits < 16 &&
           next_vector_bit(places, b->columns, b->side.vector_bits, &b->registers[b->side.vector_bits]))
        b->side.vector_bits++;
    b->side.base = simt_thread_offset(s, b->columns + places->in_bits[LAYOUT_REGISTER],
                                      places->in_bits[LAYOUT_LANE], places->in_bits[LAYOUT_WARP], bytes);
    b->side.buffer = buffer;
}

/* Does a later store, before threads meet, fence this one too? Threads meet within operations that have scratch, which may be
 * why they do not before the product: if they do, the later fence is early enough. */
static bool is_fenced_later(const Op *op)
{
    bool has_met = false, is_fenced = false;
    while ((op = op->next) && !op->region_count && op->opcode != OP_async_wait && op->opcode != OP_wgmma) {
        is_fenced |= tt_find_attr(op, ATTR_proxy) != NULL;
        if (op->opcode == OP_barrier)
            return is_fenced;
        if (is_fenced && !has_met)
            return true;
        has_met |= tt_find_attr(op, ATTR_scratch) != NULL && op->opcode != OP_smem_alloc;
    }
    return false;
}

static void fence_proxy(Simt *s, const Op *op)
{
    if (tt_find_attr(op, ATTR_proxy) && !is_fenced_later(op) && simt_has_next_sync(s))
        s->ops->async->fence_proxy(s);
}

static void store_tile(Simt *s, const Op *op, const Value *tile, const Value *buffer)
{
    BufferSide b = {0};
    plan_side(s, &b, tile->layout, buffer);
    simt_store_side(s, &b.side, simt_without_padding(s, tile), 0); /* which a product would add */
    fence_proxy(s, op);
}

void simt_smem_alloc(Simt *s, const Op *op)
{
    simt_set_scalar(s, op->results[0], simt_i32(s, tt_scratch_offset(op)));
    if (op->operand_count)
        store_tile(s, op, tt_operand(op, 0), op->results[0]);
}

void simt_smem_store(Simt *s, const Op *op) { store_tile(s, op, tt_operand(op, 0), tt_operand(op, 1)); }

void simt_smem_view(Simt *s, const Op *op)
{
    const Value *buffer = tt_operand(op, 0);
    int64_t slot = tt_buffer_bytes(op->results[0]);
    LLVMValueRef offset = LLVMBuildMul(s->b, simt_scalar(s, tt_operand(op, 1)), simt_i32(s, slot), "");
    simt_set_scalar(s, op->results[0], LLVMBuildAdd(s->b, simt_scalar(s, buffer), offset, ""));
}

void simt_smem_load(Simt *s, const Op *op)
{
    BufferSide b = {0};
    const Value *result = op->results[0];
    plan_side(s, &b, result->layout, tt_operand(op, 0));
    b.side.part = tt_find_attr(op, ATTR_part);
    simt_set(s, result, simt_load_side(s, &b.side, simt_type(s, result->type), 0));
}

/* ---- asynchronous copies ----------------------------------------------------------------------------------------------------------- */

/* Which elements of a vector a constant mask leaves out differs from vector to vector. */
static bool are_uniform_masks(const Masks *masks, const Vectors *v, int registers)
{
    for (int r = 0; r < registers; r++)
        if (!((uint32_t)r & v->mask) && !simt_is_uniform_mask(masks, v, r))
            return false;
    return true;
}

/* As many neighbours as are neighbours in the buffer, too, and under one mask. */
static Vectors plan_copies(Simt *s, const Op *op, const Masks *masks, const uint64_t *columns)
{
    const LinearLayout *layout = tt_operand(op, 0)->layout;
    int bytes = tt_byte_width(tt_operand(op, 1)->type);
    for (int most = 16 / bytes;; most /= 2) {
        Vectors v = simt_plan_vectors(s, op, layout, bytes, most);
        bool neighbours = bytes << v.count_bits >= 4;
        for (int i = 0; i < v.count_bits; i++)
            neighbours &= columns[v.bits[i]] == 1ull << i;
        if (neighbours && are_uniform_masks(masks, &v, 1 << layout->in_bits[LAYOUT_REGISTER]))
            return v;
        if (most * bytes <= 4)
            tt_bug("an asynchronous copy of less than 4 bytes");
    }
}

/* i1: is what the thread copies from this register on in the part? `others`: what is asked besides, or NULL. */
static LLVMValueRef copies_part(Simt *s, const LinearLayout *layout, const Attr *part, int reg,
                                LLVMValueRef others)
{
    int64_t reach[2];
    if (!part)
        return others;
    reach_of(layout, part, reg, reach);
    if (reach[0] >= part->ints[1] && reach[1] < part->ints[2])
        return others;
    LLVMValueRef index = simt_coordinate(s, layout, (int)part->ints[0], reg);
    LLVMValueRef distance = LLVMBuildSub(s->b, index, simt_i32(s, part->ints[1]), "");
    LLVMValueRef inside =
        LLVMBuildICmp(s->b, LLVMIntULT, distance, simt_i32(s, part->ints[2] - part->ints[1]), "");
    return others ? LLVMBuildAnd(s->b, others, inside, "") : inside;
}

void simt_async_copy(Simt *s, const Op *op)
{
    const Attr *part = tt_find_attr(op, ATTR_part);
    const Value *pointer = tt_operand(op, 0), *buffer = tt_operand(op, 1);
    const LinearLayout *layout = pointer->layout;
    int bytes = tt_byte_width(buffer->type), lanes = layout->in_bits[LAYOUT_LANE],
        warps = layout->in_bits[LAYOUT_WARP];
    uint64_t columns[64], *threads = columns + layout->in_bits[LAYOUT_REGISTER];
    simt_memory_columns(layout, buffer->layout, columns);
    Masks masks = simt_masks_of(s, op, 2, layout);
    Vectors v = plan_copies(s, op, &masks, columns);
    LLVMValueRef base = simt_thread_offset(s, threads, lanes, warps, bytes);
    const Tile *pointers = simt_tile(s, pointer);
    LLVMValueRef first = simt_is_first_copy(s, layout);
    Access hints = {.cache = tt_string_attr(op, ATTR_cache, NULL)};
    for (int r = 0; r < pointers->count; r++) {
        LLVMValueRef single[LONGEST_VECTOR], place;
        int64_t constant;
        if ((uint32_t)r & v.mask || simt_is_register_copy(layout, r) || !simt_is_in_part(layout, part, r))
            continue;
        hints.predicate = copies_part(s, layout, part, r, first);
        simt_add_offset_in(s, buffer, threads, lanes + warps, base, tt_f2_apply(columns, (uint64_t)r), bytes,
                           &place, &constant);
        LLVMValueRef mask = simt_vector_masks(s, &masks, &v, r, single);
        s->ops->async->copy(s, place, constant, pointers->at[r], bytes << v.count_bits, mask, &hints);
    }
}

/* One group, however many strips. */
void simt_async_commit(Simt *s)
{
    simt_leave_phase(s);
    s->ops->async->commit(s);
    simt_enter_phase(s);
}

void simt_async_wait(Simt *s, const Op *op)
{
    LLVMBasicBlockRef after = NULL;
    if (tt_find_attr(op, ATTR_half)) {
        LLVMValueRef half = LLVMBuildAnd(s->b, simt_warpgroup(s), simt_i32(s, 1), "");
        LLVMValueRef own = simt_i32(s, tt_int_attr(op, ATTR_half, 0));
        after = simt_enter_where(s, LLVMBuildICmp(s->b, LLVMIntEQ, half, own, ""));
    }
    if (simt_has_next_sync(s))
        s->ops->async->wait(s, (int)tt_int_attr(op, ATTR_left, 0));
    if (after) {
        if (simt_has_next_sync(s))
            s->ops->meet(s);
        LLVMBuildBr(s->b, after);
        LLVMPositionBuilderAtEnd(s->b, after);
    } else if (!tt_int_attr(op, ATTR_alone, 0)) {
        simt_sync(s);
    }
}
