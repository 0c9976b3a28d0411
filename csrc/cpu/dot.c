/* Matrix products: which arithmetic, and the operands' way into scratch. The product itself is dot_kernel.c's.
 *
 * Operands that are not stored in the form the kernel reads are written to packing buffers first: row-major in the type
 * of the arithmetic (a narrow float in f32, say), or, where the machine multiplies pairs of bf16 or i16 along K in one
 * instruction, rows two by two interleaved for b; for a, row-major is that already. The accumulator is updated in the
 * result's buffer. */
#include "cpu/dot.h"

/* ---- which arithmetic --------------------------------------------------------------------------------------------------------- */

static const Type i16_type = {.kind = TT_I16}, i32_type = {.kind = TT_I32}, i64_type = {.kind = TT_I64},
                  bf16_type = {.kind = TT_BF16}, f32_type = {.kind = TT_F32}, f64_type = {.kind = TT_F64};

static bool is_small(const Type *type) { return tt_element(type)->kind == TT_BF16 || tt_is_fp8(type); }

static void choose_arithmetic(const Lower *l, const Op *op, DotPlan *plan)
{
    const Type *a = tt_operand(op, 0)->type, *b = tt_operand(op, 1)->type, *c = tt_operand(op, 2)->type;
    const HostCpu *host = &l->e->codegen->host;
    bool even = plan->k % 2 == 0;
    if (tt_is_int(c)) {
        bool wide = tt_bit_width(c) == 64, bytes = tt_bit_width(a) == 8 && tt_bit_width(b) == 8;
        plan->pairs = bytes && !wide && even && host->has_avx512_vnni;
        plan->element = plan->pairs ? &i16_type : wide ? &i64_type : &i32_type;
        plan->sum = wide ? &i64_type : &i32_type;
        return;
    }
    bool wide =
        tt_element(a)->kind == TT_F64 || tt_element(b)->kind == TT_F64 || tt_element(c)->kind == TT_F64;
    plan->pairs = !wide && even && is_small(a) && is_small(b) && host->has_avx512_bf16;
    plan->element = plan->pairs ? &bf16_type : wide ? &f64_type : &f32_type;
    plan->sum = wide ? &f64_type : &f32_type;
}

/* ---- packing ------------------------------------------------------------------------------------------------------------------- */

static Type *tile_of(Arena *arena, const Type *element, const int64_t *shape, int rank)
{
    Type *type = tt_arena_alloc(arena, sizeof(Type) + sizeof(int64_t) * (size_t)rank);
    *type = (Type){.kind = TT_TILE, .rank = rank, .element = element, .count = 1};
    for (int i = 0; i < rank; i++) {
        type->shape[i] = shape[i];
        type->count *= shape[i];
    }
    return type;
}

static bool is_stored_as(const Value *value, const Type *element)
{
    return info_of(value)->buffer && tt_element(value->type)->kind == element->kind;
}

static Buffer *packing_buffer(Lower *l, const Type *type, const Type *element, int now)
{
    Buffer *buffer = new_buffer(l, tile_of(l->arena, element, type->shape, type->rank));
    buffer->first = buffer->last = now;
    return buffer;
}

void plan_dot(Lower *l, Op *op, int now)
{
    DotPlan *plan = TT_NEW(l->arena, DotPlan);
    *tt_map_slot_ptr(&l->dots, op) = plan;
    Value *a = tt_operand(op, 0), *b = tt_operand(op, 1);
    int rank = a->type->rank;
    plan->batches = rank == 3 ? a->type->shape[0] : 1;
    plan->m = a->type->shape[rank - 2];
    plan->k = a->type->shape[rank - 1];
    plan->n = b->type->shape[rank - 1];
    choose_arithmetic(l, op, plan);
    if (is_stored_as(a, plan->element))
        plan->a = info_of(a)->buffer;
    else
        plan->a = plan->packed_a = packing_buffer(l, a->type, plan->element, now);
    if (is_stored_as(b, plan->element) && !plan->pairs)
        plan->b = info_of(b)->buffer;
    else
        plan->b = plan->packed_b = packing_buffer(l, b->type, plan->element, now);
}

/* Rows 2p and 2p + 1 of b, interleaved: the nest goes over rows by twos. */
static void pack_pairs(Lower *l, const DotPlan *plan, Value *b)
{
    Group group = {.space = b->type, .axis = -1};
    Sink sink = {.kind = SINK_PAIRS, .value = b, .to = plan->packed_b};
    tt_push(l->arena, group.sinks, sink);
    emit_nest(l, &group);
}

void run_pairs(Nest *n, const Sink *sink)
{
    Emit *e = n->e;
    const Type *type = sink->value->type, *element = sink->to->type->element;
    int row = type->rank - 2, align = tt_byte_width(element);
    if ((n->coords[row].offset - n->block_row) % 2) /* done with the row before */
        return;
    Coord coords[TT_MAX_RANK];
    LLVMValueRef rows[2];
    memcpy(coords, n->coords, sizeof coords);
    for (int i = 0; i < 2; i++) {
        coords[row].offset = n->coords[row].offset + i;
        n->coords[row].offset += i; /* where blocks are found */
        LLVMValueRef value = eval_lanes(n, sink->value, coords);
        n->coords[row].offset -= i;
        at_level(n, n->level);
        rows[i] = emit_element_cast(e, value, type, element);
    }
    /* The pair of column j is at row * n + 2 j. */
    coords[row] = n->coords[row];
    coords[row + 1] = scale_coord(n, n->coords[row + 1], 2, 0);
    int64_t stride;
    Vec address = buffer_address(n, sink->to, 0, coords, &stride);
    at_level(n, n->level);
    int width = n->width, indices[128];
    TT_ASSERT(stride == 2);
    for (int i = 0; i < width; i++) {
        indices[2 * i] = i;
        indices[2 * i + 1] = width + i;
    }
    LLVMValueRef pairs = emit_shuffle(e, rows[0], rows[1], indices, 2 * width);
    LLVMValueRef mask = n->active < width ? const_mask(e, 2 * width, 2 * n->active) : NULL;
    emit_masked_store(e, pairs, address.v, mask, align);
}

/* ---- the operation ------------------------------------------------------------------------------------------------------------- */

/* Puts the accumulator into the result's buffer, unless it is there or the same in every element. */
static void place_accumulator(Lower *l, Op *op, DotPlan *plan)
{
    Value *c = tt_operand(op, 2);
    Buffer *result = info_of(op->results[0])->buffer;
    if (info_of(c)->stored && info_of(c)->buffer == result)
        return;
    if (is_splat(c)) {
        Op *splat = c->op;
        plan->start = splat->opcode == OP_constant
                          ? const_scalar(l->e, c->type, tt_find_attr(splat, ATTR_value))
                          : lower_scalar(l, tt_operand(splat, 0));
        return;
    }
    lower_copy(l, c, result, 0);
}

void lower_dot(Lower *l, Op *op)
{
    DotPlan *plan = tt_map_find_ptr(&l->dots, op);
    place_accumulator(l, op, plan);
    if (plan->packed_a)
        lower_copy(l, tt_operand(op, 0), plan->packed_a, 0);
    if (plan->packed_b && plan->pairs)
        pack_pairs(l, plan, tt_operand(op, 1));
    else if (plan->packed_b)
        lower_copy(l, tt_operand(op, 1), plan->packed_b, 0);
    straight(l);
    plan->result = info_of(op->results[0])->buffer;
    emit_dot(l, plan);
    info_of(op->results[0])->stored = true;
}
