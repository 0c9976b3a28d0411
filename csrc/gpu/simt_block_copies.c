/* Blocks of arrays that one thread has copied into buffers (TMA; PTX ISA, "cp.async.bulk.tensor"), and the barriers at which they
 * arrive. The hardware finds an array by a tensor map, a parameter of the kernel that the launch makes of the map's
 * description here. A buffer's rows of more than 128 bytes lie in panels, which are a copy each. */
#include "gpu/simt.h"

static bool same_map(const TensorMap *a, const TensorMap *b)
{
    return a->param == b->param && a->element_bytes == b->element_bytes && a->row_bytes == b->row_bytes &&
           a->rows == b->rows && a->has_places == b->has_places &&
           !memcmp(a->terms, b->terms, sizeof a->terms);
}

/* Bytes of a row that lie together in a buffer whose 16-byte chunks are exchanged as both wgmma and the copy know it. */
static int row_bytes(const Value *buffer)
{
    const LinearLayout *memory = buffer->layout;
    int64_t shape[] = {1ll << memory->out_bits[0], 1ll << memory->out_bits[1]};
    int bytes = tt_byte_width(buffer->type);
    for (int row = 128; row >= 32; row /= 2) {
        LinearLayout known = tt_layout_nvmma(shape, 2, bytes, row);
        if (shape[1] * bytes >= row && tt_layout_equal(&known, memory))
            return row;
    }
    tt_bug("a block is copied into a buffer that the copy does not know");
}

/* In an operand of each copy. */
enum { BASE = 3, EXTENTS, STRIDES = 6, OFFSETS = 8, PLACE = 10 };

static TensorMap map_of(const Op *copy)
{
    const Value *buffer = tt_operand(copy, 0);
    TensorMap map = {.param = tt_operand(copy, BASE)->index,
                     .has_places = !tt_is_zero(tt_operand(copy, PLACE)),
                     .element_bytes = tt_byte_width(buffer->type),
                     .row_bytes = row_bytes(buffer),
                     .rows = (int)buffer->type->shape[0]};
    const Attr *terms = tt_find_attr(copy, ATTR_terms);
    for (int i = 0; i < MAP_TERMS; i++)
        map.terms[i] = (int)terms->ints[i];
    return map;
}

static void find_map(Op *op, void *context)
{
    Simt *s = context;
    if (op->opcode != OP_tensor_copy)
        return;
    TensorMap map = map_of(op);
    for (int i = 0; i < s->maps.count; i++)
        if (same_map(&s->maps.data[i], &map))
            return;
    tt_push(s->arena, s->maps, map);
}

void simt_find_maps(Simt *s, const Function *function) { tt_walk(function->body, find_map, s); }

static int number_of(const Simt *s, const TensorMap *map)
{
    int number = 0;
    while (!same_map(&s->maps.data[number], map))
        number++;
    return number;
}

static LLVMValueRef is_first_thread(Simt *s)
{
    return LLVMBuildICmp(s->b, LLVMIntEQ, s->thread, simt_i32(s, 0), "");
}

void simt_mbarrier(Simt *s, const Op *op)
{
    const AsyncOps *async = s->ops->async;
    const Value *buffer = tt_operand(op, 0);
    LLVMValueRef place = simt_scalar(s, buffer), first = is_first_thread(s);
    int slots = buffer->type->slots;
    int64_t distance = tt_buffer_bytes(buffer) / slots;
    switch (op->opcode) {
    case OP_mbarrier_init:
        async->set_barriers(s, place, slots, distance, first, true);
        async->fence_proxy(s); /* what this thread accessed there before, and the barriers */
        simt_sync(s);
        break;
    case OP_mbarrier_end:
        async->set_barriers(s, place, slots, distance, first, false);
        break;
    case OP_mbarrier_expect:
        async->expect(s, place, tt_int_attr(op, ATTR_bytes, 0),
                      simt_and(s, first, simt_scalar(s, tt_operand(op, 1))));
        break;
    default:
        if (simt_has_next_sync(s))
            async->await(s, place, simt_scalar(s, tt_operand(op, 1)));
    }
}

/* Where the array begins. */
static LLVMValueRef array_of(Simt *s, const Op *copy)
{
    LLVMValueRef base = simt_scalar(s, tt_operand(copy, BASE)),
                 place = simt_scalar(s, tt_operand(copy, PLACE));
    place = LLVMBuildSExt(s->b, place, s->i64, "");
    place = LLVMBuildMul(s->b, place, simt_int(s->i64, TT_CHUNK), "");
    return LLVMBuildGEP2(s->b, s->i8, base, &place, 1, "");
}

void simt_tensor_copy(Simt *s, const Op *op)
{
    const Value *buffer = tt_operand(op, 0);
    TensorMap map = map_of(op);
    int columns = map.row_bytes / map.element_bytes;
    BlockCopy copy = {.map = &map,
                      .number = number_of(s, &map),
                      .place = simt_scalar(s, buffer),
                      .barrier = simt_scalar(s, tt_operand(op, 1)),
                      .predicate = simt_and(s, is_first_thread(s), simt_scalar(s, tt_operand(op, 2))),
                      .base = array_of(s, op),
                      .array_place = map.has_places ? simt_scalar(s, tt_operand(op, PLACE)) : NULL,
                      .stride = simt_scalar(s, tt_operand(op, STRIDES))};
    for (int d = 0; d < 2; d++) {
        copy.extents[d] =
            map.terms[d] < 0 ? simt_int(s->i64, MAP_UNCHECKED) : simt_scalar(s, tt_operand(op, EXTENTS + d));
        copy.offsets[d] = simt_scalar(s, tt_operand(op, OFFSETS + d));
    }
    LLVMValueRef column = copy.offsets[1];
    for (int64_t first = 0; first < buffer->type->shape[1]; first += columns) {
        copy.constant = first / columns * map.rows * map.row_bytes;
        copy.offsets[1] = LLVMBuildAdd(s->b, column, simt_i32(s, first), "");
        s->ops->async->copy_block(s, &copy);
    }
}
