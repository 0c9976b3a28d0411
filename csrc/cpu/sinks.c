/* What happens to values in a nest's body: a sink is prepared before the loops, begun and ended around the loop over its
 * axis if it accumulates, run in the body, and finished after all. */
#include "cpu/lower.h"

int sink_slots(const Sink *sink)
{
    return sink->kind == SINK_REDUCE || sink->kind == SINK_SCAN ? sink->op->operand_count : 0;
}

static Buffer *result_buffer(const Op *op) { return info_of(op->results[0])->buffer; }

void prepare_sink(Nest *n, const Sink *sink)
{
    if (sink->kind != SINK_HISTOGRAM)
        return;
    const Buffer *bins = result_buffer(sink->op);
    at_level(n, 0);
    LLVMBuildMemSet(n->e->b, buffer_pointer(n->l, bins), const_int(n->e->i8, 0),
                    const_int(n->e->i64, bins->bytes), 64);
}

void begin_sink(Nest *n, const Sink *sink, LLVMValueRef *slots)
{
    if (sink->kind == SINK_REDUCE)
        begin_reduce(n, sink->op, slots);
}

void end_sink(Nest *n, const Sink *sink, int slot)
{
    if (sink->kind == SINK_REDUCE)
        end_reduce(n, sink->op, slot);
}

void eval_operands(Nest *n, const Sink *sink)
{
    if (sink->kind == SINK_PAIRS)
        return;
    if (sink->kind == SINK_COPY)
        eval(n, sink->value, n->coords);
    else if (sink->kind == SINK_STORE)
        eval_store(n, sink->op);
    else
        for (int i = 0; i < sink->op->operand_count; i++)
            eval(n, tt_operand(sink->op, i), n->coords);
}

/* ---- the smaller sinks ---------------------------------------------------------------------------------------------------------- */

static void run_copy(Nest *n, const Sink *sink)
{
    const Buffer *to = sink->to ? sink->to : info_of(sink->value)->buffer;
    Vec value = eval(n, sink->value, n->coords);
    at_level(n, value.level);
    value.v = emit_element_cast(n->e, value.v, sink->value->type, to->type);
    write_buffer(n, to, sink->origin, n->coords, value);
}

/* Pairs side by side: one store of both vectors interleaved where the pairs lie in the lanes' direction. */
static void run_join(Nest *n, const Op *op)
{
    Emit *e = n->e;
    const Buffer *buffer = result_buffer(op);
    Vec a = eval(n, tt_operand(op, 0), n->coords), b = eval(n, tt_operand(op, 1), n->coords);
    Coord coords[TT_MAX_RANK];
    memcpy(coords, n->coords, sizeof coords);
    int last = buffer->type->rank - 1;
    coords[last] = zero_coord();
    int64_t stride;
    Vec address = buffer_address(n, buffer, 0, coords, &stride);
    if (stride != 2 || n->width > 32) {
        write_buffer(n, buffer, 0, coords, a);
        coords[last] = const_coord(1);
        write_buffer(n, buffer, 0, coords, b);
        return;
    }
    int indices[64];
    for (int i = 0; i < n->width; i++) {
        indices[2 * i] = i;
        indices[2 * i + 1] = n->width + i;
    }
    LLVMValueRef x = splat(n, a), y = splat(n, b);
    at_level(n, n->level);
    LLVMValueRef pairs = emit_shuffle(e, x, y, indices, 2 * n->width);
    LLVMValueRef mask = n->active < n->width ? const_mask(e, 2 * n->width, 2 * n->active) : NULL;
    emit_masked_store(e, to_memory_form(e, pairs), address.v, mask, tt_byte_width(buffer->type));
}

static void run_extract(Nest *n, Op *op)
{
    Coord coords[TT_MAX_RANK];
    for (int i = 0; i < op->result_count; i++) {
        operand_coords(n, op, i, n->coords, coords);
        info_of(op->results[i])->scalar = eval(n, tt_operand(op, 0), coords).v;
    }
}

static void run_check(Nest *n, Op *op)
{
    Emit *e = n->e;
    LLVMValueRef holds = eval_lanes(n, tt_operand(op, 0), n->coords);
    LLVMValueRef mask = tt_assert_mask(op) ? eval_lanes(n, tt_assert_mask(op), n->coords) : NULL;
    LLVMValueRef active = active_mask(n), values[2];
    Value *shown[2];
    int count = tt_assert_values(op, shown);
    for (int i = 0; i < count; i++)
        values[i] = eval_lanes(n, shown[i], n->coords);
    at_level(n, n->level);
    LLVMValueRef fails = LLVMBuildNot(e->b, holds, "");
    if (mask)
        fails = LLVMBuildAnd(e->b, fails, mask, "");
    if (active)
        fails = LLVMBuildAnd(e->b, fails, active, "");
    emit_failure(n->l, op, fails, values, count);
}

/* One element at a time (the nest is scalar); what falls outside of the bins counts in a place of our own. */
static void run_histogram(Nest *n, const Op *op)
{
    Emit *e = n->e;
    const Buffer *bins = result_buffer(op);
    Vec at = eval(n, tt_operand(op, 0), n->coords);
    Vec mask = op->operand_count > 1 ? eval(n, tt_operand(op, 1), n->coords) : (Vec){NULL, 0, true};
    at_level(n, n->level);
    LLVMValueRef counted =
        LLVMBuildICmp(e->b, LLVMIntULT, at.v, const_int(LLVMTypeOf(at.v), bins->type->count), "");
    if (LLVMGetIntTypeWidth(LLVMTypeOf(at.v)) < 32 &&
        bins->type->count >> LLVMGetIntTypeWidth(LLVMTypeOf(at.v)))
        counted = const_int(e->i1, 1);
    if (mask.v)
        counted = LLVMBuildAnd(e->b, counted, mask.v, "");
    LLVMValueRef index = LLVMBuildZExt(e->b, at.v, e->i64, "");
    if (LLVMGetIntTypeWidth(LLVMTypeOf(at.v)) == 64)
        index = at.v;
    LLVMValueRef pointer = emit_index(e, e->i32, buffer_pointer(n->l, bins), index);
    pointer = emit_select(e, counted, pointer, n->l->scratch);
    LLVMValueRef count = emit_load(e, e->i32, pointer, 4);
    emit_store(e, LLVMBuildAdd(e->b, count, const_int(e->i32, 1), ""), pointer, 4);
}

void run_sink(Nest *n, const Sink *sink, LLVMValueRef *slots)
{
    switch (sink->kind) {
    case SINK_COPY:
        run_copy(n, sink);
        break;
    case SINK_STORE:
        sink_store(n, sink->op);
        break;
    case SINK_REDUCE:
        step_reduce(n, sink->op, slots);
        break;
    case SINK_SCAN:
        step_scan(n, sink->op, slots);
        break;
    case SINK_ATOMIC:
        sink_atomic(n, sink->op);
        break;
    case SINK_JOIN:
        run_join(n, sink->op);
        break;
    case SINK_EXTRACT:
        run_extract(n, sink->op);
        break;
    case SINK_CHECK:
        run_check(n, sink->op);
        break;
    case SINK_HISTOGRAM:
        run_histogram(n, sink->op);
        break;
    case SINK_PAIRS:
        run_pairs(n, sink);
        break;
    case SINK_NONE:
        break;
    }
}

void finish_sink(const Sink *sink)
{
    if (sink->kind == SINK_COPY && !sink->to)
        info_of(sink->value)->stored = true;
    for (int i = 0; sink->op && i < sink->op->result_count; i++)
        info_of(sink->op->results[i])->stored = tt_is_tile(sink->op->results[i]->type);
}
