/* Kinds of operations, and walks over the virtual values behind a group: what it reads when it is computed. */
#include "cpu/lower.h"

/* ---- kinds of operations ---------------------------------------------------------------------------------------------- */

static bool has_tile_result(const Op *op) { return op->result_count && tt_is_tile(op->results[0]->type); }

static bool has_tile_operand(const Op *op)
{
    for (int i = 0; i < op->operand_count; i++)
        if (tt_is_tile(tt_operand(op, i)->type))
            return true;
    return false;
}

SinkKind sink_kind(const Op *op)
{
    switch (op->opcode) {
    case OP_store:
        return has_tile_operand(op) ? SINK_STORE : SINK_NONE;
    case OP_reduce:
        return SINK_REDUCE;
    case OP_scan:
        return SINK_SCAN;
    case OP_atomic_rmw:
    case OP_atomic_cas:
        return has_tile_operand(op) ? SINK_ATOMIC : SINK_NONE;
    case OP_join:
        return SINK_JOIN;
    case OP_extract:
    case OP_split:
        return has_tile_result(op) ? SINK_NONE : SINK_EXTRACT;
    case OP_assert:
        return SINK_CHECK;
    case OP_histogram:
        return SINK_HISTOGRAM;
    default:
        return SINK_NONE;
    }
}

bool is_virtual_op(const Op *op)
{
    if (!has_tile_result(op) || sink_kind(op) != SINK_NONE || op->opcode == OP_cat || op->opcode == OP_dot)
        return false;
    return tt_has(op, PURE) || op->opcode == OP_load;
}

/* The iteration space of a sink: the shape of the operand that it goes over. */
const Type *space_of(const Op *op)
{
    static const Type point = {.kind = TT_I32};
    return op->opcode == OP_extract || op->opcode == OP_split ? &point : tt_operand(op, 0)->type;
}

bool is_pure_scalar(const Op *op)
{
    return op->result_count == 1 && tt_has(op, PURE) && !has_tile_result(op) && sink_kind(op) == SINK_NONE;
}

bool any_inside(const Op *op, unsigned traits)
{
    if (tt_has(op, traits))
        return true;
    for (int i = 0; i < op->region_count; i++)
        for (Op *inner = op->regions[i]->first; inner; inner = inner->next)
            if (any_inside(inner, traits))
                return true;
    return false;
}

bool is_splat(const Value *value)
{
    return value->op && (value->op->opcode == OP_splat || value->op->opcode == OP_constant);
}

/* Does the reshape only add and remove dimensions of extent 1? */
bool keeps_coordinates(const Op *reshape)
{
    const Type *from = tt_operand(reshape, 0)->type, *to = reshape->results[0]->type;
    for (int i = 0, j = 0;; i++, j++) {
        while (i < from->rank && from->shape[i] == 1)
            i++;
        while (j < to->rank && to->shape[j] == 1)
            j++;
        if (i == from->rank || j == to->rank)
            return i == from->rank && j == to->rank;
        if (from->shape[i] != to->shape[j])
            return false;
    }
}

/* ---- walking virtual values ------------------------------------------------------------------------------------------- */

bool keeps_iteration(const Op *op, int operand)
{
    return tt_has(op, ELEMENTWISE) || op->opcode == OP_load || op->opcode == OP_hint ||
           (op->opcode == OP_gather && operand == 1);
}

/* Is an address computed from the one where a dimension begins, along which all are alike or side by side? eval does. */
static bool starts_elsewhere(const Lower *l, const Value *value)
{
    if (!tt_is_ptr(value->type) || is_splat(value))
        return false;
    const AxisInfo *axes = axis_of(l, value);
    for (int i = 0; i < value->type->rank; i++) {
        int64_t extent = value->type->shape[i];
        if (extent > 1 && (axes->constancy[i] >= extent || axes->contiguity[i] >= extent))
            return true;
    }
    return false;
}

void walk_value(ReadWalk *walk, Value *value, bool same)
{
    if (!tt_is_tile(value->type))
        return;
    ValueInfo *info = info_of(value);
    same = same && !starts_elsewhere(walk->l, value);
    if (info->seen_any == walk->stamp || (same && info->seen_same == walk->stamp))
        return;
    *(same ? &info->seen_same : &info->seen_any) = walk->stamp;
    Op *op = value->op;
    if (!op || !is_virtual_op(op)) {
        if (walk->on_buffer)
            walk->on_buffer(walk, value, same);
        return;
    }
    bool here = same && op->parent == walk->region && info->group == walk->group;
    if (info->materialize && !here) {
        if (walk->on_buffer)
            walk->on_buffer(walk, value, same);
        return;
    }
    if (op->opcode == OP_load && walk->on_load)
        walk->on_load(walk, op, same);
    for (int i = 0; i < op->operand_count; i++)
        walk_value(walk, tt_operand(op, i), same && keeps_iteration(op, i));
}

void walk_sink(ReadWalk *walk, const Sink *sink)
{
    if (sink->kind == SINK_COPY) {
        Op *op = sink->value->op;
        if (!info_of(sink->value)->materialize || sink->to || !op) {
            walk_value(walk, sink->value, true);
            return;
        }
        bool same = !starts_elsewhere(walk->l, sink->value);
        if (op->opcode == OP_load && walk->on_load)
            walk->on_load(walk, op, same);
        for (int i = 0; i < op->operand_count; i++)
            walk_value(walk, tt_operand(op, i), same && keeps_iteration(op, i));
        return;
    }
    for (int i = 0; i < sink->op->operand_count; i++)
        walk_value(walk, tt_operand(sink->op, i), sink->kind != SINK_EXTRACT);
}

static void walk_inside(ReadWalk *walk, Op *op)
{
    for (int i = 0; i < op->operand_count; i++)
        walk_value(walk, tt_operand(op, i), op->opcode == OP_dot && i == 2);
    walk_regions(walk, op);
}

void walk_regions(ReadWalk *walk, const Op *op)
{
    for (int i = 0; i < op->region_count; i++)
        for (Op *inner = op->regions[i]->first; inner; inner = inner->next)
            walk_inside(walk, inner);
}

void walk_group(ReadWalk *walk, const RegionPlan *plan, int group)
{
    walk->region = plan->region;
    walk->group = group;
    walk->stamp = ++walk->l->stamp;
    const Group *g = plan->groups.data[group];
    for (int i = 0; i < g->sinks.count; i++)
        walk_sink(walk, &g->sinks.data[i]);
    if (g->step)
        walk_inside(walk, g->step);
}
