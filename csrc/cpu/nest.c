/* The loops of a group. All extents are known, so a loop has a known number of steps, and the last vector of a row, when
 * it is not full, is code of its own. Each open loop has a builder that stands before the inner loop: what a value
 * depends on decides at which level it is computed, so invariants are hoisted as they are made. */
#include "cpu/lower.h"

enum { MOST_COPIES = 4, SMALL_BODY = 24 };

void at_level(Nest *n, int level) { n->e->b = n->l->builders[level]; }

LLVMValueRef active_mask(const Nest *n)
{
    return n->width && n->active < n->width ? const_mask(n->e, n->width, n->active) : NULL;
}

/* ---- levels ------------------------------------------------------------------------------------------------------------- */

/* The builder of the current level stays before the new loop, the next level's goes into it. */
static EmitLoop open_loop(Nest *n, int64_t first, int64_t end, int64_t step)
{
    LLVMBuilderRef outer = n->l->builders[n->level], inner = n->l->builders[n->level + 1];
    LLVMBasicBlockRef before = LLVMGetInsertBlock(outer);
    at_level(n, n->level);
    EmitLoop loop =
        begin_loop(n->e, first, end, step, n->accumulators, n->carrying ? n->copies * n->slots : 0);
    LLVMPositionBuilderBefore(outer, LLVMGetBasicBlockTerminator(before));
    LLVMPositionBuilderAtEnd(inner, loop.header);
    n->level++;
    n->instance[n->level] = ++n->instances;
    return loop;
}

static void close_loop(Nest *n, EmitLoop *loop)
{
    LLVMBuilderRef inner = n->l->builders[n->level], outer = n->l->builders[n->level - 1];
    at_level(n, n->level);
    end_loop(n->e, loop, n->accumulators);
    LLVMPositionBuilderAtEnd(outer, LLVMGetInsertBlock(inner));
    n->level--;
    at_level(n, n->level);
}

/* The branch is a level of its own: what one side computes does not hold on the other. */
static void open_branch(Nest *n, LLVMBasicBlockRef block)
{
    n->level++;
    n->instance[n->level] = ++n->instances;
    LLVMPositionBuilderAtEnd(n->l->builders[n->level], block);
}

static void close_branch(Nest *n, LLVMBasicBlockRef after)
{
    LLVMBuildBr(n->l->builders[n->level], after);
    n->level--;
}

/* ---- bodies --------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef *slots_of(Nest *n, int copy) { return n->accumulators + copy * n->slots; }

/* Loads of a group come before its stores in the program, and a sink may write where another one still reads; so where
 * there are several, everything is evaluated (and kept by the memos) before anything is stored. */
static void emit_body(Nest *n)
{
    int64_t offset = n->lane_dim >= 0 ? n->coords[n->lane_dim].offset : 0;
    bool in_order = n->group->sinks.count > 1;
    for (int pass = in_order ? 0 : 1; pass < 2; pass++)
        for (int copy = 0; copy < n->copies; copy++) {
            if (n->lane_dim >= 0)
                n->coords[n->lane_dim].offset = offset + (int64_t)copy * n->width;
            LLVMValueRef *slots = slots_of(n, copy);
            for (int i = 0; i < n->group->sinks.count; i++) {
                const Sink *sink = &n->group->sinks.data[i];
                if (pass == 0)
                    eval_operands(n, sink);
                else
                    run_sink(n, sink, slots);
                slots += sink_slots(sink);
            }
        }
    if (n->lane_dim >= 0)
        n->coords[n->lane_dim].offset = offset;
}

static void emit_dims(Nest *n, int k);

/* Steps first, first + step, ... below end of the k-th loop's dimension. */
static void emit_steps(Nest *n, int k, int64_t first, int64_t end, int64_t step)
{
    Coord *coord = &n->coords[n->order[k]];
    if (first >= end)
        return;
    int64_t stride = coord->stride;
    if (end - first <= step) {
        *coord = (Coord){.offset = first, .stride = stride};
        emit_dims(n, k + 1);
        return;
    }
    EmitLoop loop = open_loop(n, first, end, step);
    *coord = (Coord){.base = loop.index, .level = n->level, .divisor = tt_gcd(first, step), .stride = stride};
    if (n->reverse && n->order[k] == n->axis) { /* from the last step down to the first */
        at_level(n, n->level);
        int64_t last = first + (end - first - 1) / step * step;
        coord->base = LLVMBuildSub(n->e->b, const_int(n->e->i64, first + last), loop.index, "");
        coord->divisor = tt_gcd(first + last, coord->divisor);
    }
    emit_dims(n, k + 1);
    close_loop(n, &loop);
}

/* The first step of a combination without a neutral element sets the accumulators; it stands before the loop. */
static void emit_range(Nest *n, int k, int64_t first, int64_t end, int64_t step)
{
    if (n->first && n->order[k] == n->axis && first < end) {
        int64_t last = first + (end - first - 1) / step * step;
        if (n->reverse) {
            emit_steps(n, k, last, end, step);
            n->first = false;
            end = last;
        } else {
            emit_steps(n, k, first, first + step, step);
            n->first = false;
            first += step;
        }
    }
    emit_steps(n, k, first, end, step);
}

/* How many vectors stand side by side: a divisor of their number, so that no rest remains. */
static int choose_copies(const Nest *n, int64_t vectors)
{
    bool scans = n->group->sinks.count && n->group->sinks.data[0].kind == SINK_SCAN;
    if (scans || n->effort > SMALL_BODY)
        return 1;
    int most = n->slots > 2 ? 2 : MOST_COPIES;
    for (int copies = most; copies > 1; copies--)
        if (vectors % copies == 0)
            return copies;
    return 1;
}

/* Two loops over the same vectors, of which the first one bypasses the caches. */
static void emit_streaming(Nest *n, int k, int64_t end, int64_t step)
{
    Emit *e = n->e;
    LLVMBuilderRef outer = n->l->builders[n->level];
    LLVMValueRef condition = stream_condition(n, end);
    LLVMBasicBlockRef stream = new_block(e, "stream"), cached = new_block(e, "cached"),
                      after = new_block(e, "stored");
    at_level(n, n->level);
    LLVMBuildCondBr(e->b, condition, stream, cached);
    LLVMPositionBuilderBefore(outer, LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(outer)));
    open_branch(n, stream);
    n->streaming = n->l->kernel->streams = true;
    emit_range(n, k, 0, end, step);
    n->streaming = false;
    n->assumed_count = 0;
    close_branch(n, after);
    open_branch(n, cached);
    emit_range(n, k, 0, end, step);
    close_branch(n, after);
    LLVMPositionBuilderAtEnd(outer, after);
}

static void emit_lane_dim(Nest *n, int k)
{
    int64_t extent = n->shape[n->lane_dim], vectors = extent / n->width, full = vectors * n->width;
    int copies = vectors ? choose_copies(n, vectors) : 1;
    n->coords[n->lane_dim].stride = 1;
    for (int part = 0; part < 2; part++) {
        bool tail = part == (n->reverse && n->axis == n->lane_dim ? 0 : 1);
        n->copies = tail ? 1 : copies;
        n->active = tail ? (int)(extent - full) : n->width;
        if (tail)
            emit_range(n, k, full, extent, n->width);
        else if (k == n->depth - 1 && can_stream(n))
            emit_streaming(n, k, full, (int64_t)copies * n->width);
        else
            emit_range(n, k, 0, full, (int64_t)copies * n->width);
    }
    n->copies = vectors ? copies : 1;
    n->active = vectors ? n->width : (int)(extent - full);
}

static void emit_axis(Nest *n, int k)
{
    int copies = n->order[k] == n->lane_dim ? MOST_COPIES : n->copies;
    for (int copy = 0; copy < copies; copy++) {
        LLVMValueRef *slots = slots_of(n, copy);
        for (int i = 0; i < n->group->sinks.count; i++) {
            begin_sink(n, &n->group->sinks.data[i], slots);
            slots += sink_slots(&n->group->sinks.data[i]);
        }
    }
    n->carrying = true;
    n->first = n->needs_first;
    if (n->order[k] == n->lane_dim)
        emit_lane_dim(n, k);
    else
        emit_range(n, k, 0, n->shape[n->order[k]], 1);
    n->carrying = false;
    int slot = 0;
    for (int i = 0; i < n->group->sinks.count; i++) {
        end_sink(n, &n->group->sinks.data[i], slot);
        slot += sink_slots(&n->group->sinks.data[i]);
    }
}

static void emit_dims(Nest *n, int k)
{
    if (k == n->depth) {
        at_level(n, n->level);
        emit_body(n);
    } else if (n->order[k] == n->axis && !n->carrying) {
        emit_axis(n, k);
    } else if (n->order[k] == n->lane_dim) {
        emit_lane_dim(n, k);
    } else {
        emit_range(n, k, 0, n->shape[n->order[k]], 1);
    }
}

/* ---- shape of the nest ---------------------------------------------------------------------------------------------------- */

/* Bytes of the widest element that is computed with, and how much is computed. */
typedef struct Effort {
    Nest *n;
    int bytes, ops;
} Effort;

static void count_value(Effort *effort, const Value *value, bool as_data)
{
    Lower *l = effort->n->l;
    if (!tt_is_tile(value->type))
        return;
    ValueInfo *info = info_of(value);
    int bytes = tt_byte_width(value->type);
    if (tt_is_float(value->type) && value->op && tt_has(value->op, ON_FLOATS))
        bytes = TT_MAX(bytes, 4);
    if (tt_is_float(value->type) || as_data)
        effort->bytes = TT_MAX(effort->bytes, tt_is_bool(value->type) ? 1 : bytes);
    if (info->seen_any == l->stamp)
        return;
    info->seen_any = l->stamp;
    const Op *op = value->op;
    if (!op || !is_virtual_op(op) || info->stored)
        return;
    effort->ops += op->opcode == OP_load ? 2 : tt_has(op, COSTLY) ? 16 : tt_has(op, ELEMENTWISE) ? 1 : 0;
    for (int i = 0; i < op->operand_count; i++)
        count_value(effort, tt_operand(op, i), false);
}

static Effort measure(Nest *n)
{
    Effort effort = {n, 1, 0};
    n->l->stamp++;
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        effort.ops++;
        if (sink->value)
            count_value(&effort, sink->value, true);
        for (int j = 0; sink->op && j < sink->op->operand_count; j++) {
            const Value *operand = tt_operand(sink->op, j);
            bool pointer = tt_is_ptr(operand->type) && tt_has(sink->op, READS | WRITES);
            count_value(&effort, operand, !pointer && !tt_is_bool(operand->type));
        }
    }
    return effort;
}

/* The dimension that vectors run along, and their width. */
static void choose_lanes(Nest *n)
{
    Effort effort = measure(n);
    n->effort = effort.ops;
    n->lane_dim = -1;
    SinkKind kind = n->group->sinks.count ? n->group->sinks.data[0].kind : SINK_NONE;
    if (kind == SINK_ATOMIC || kind == SINK_HISTOGRAM)
        return; /* one element after the other */
    for (int i = 0; i < n->rank; i++)
        if (n->shape[i] > 1)
            n->lane_dim = i;
    if (n->lane_dim < 0)
        return;
    n->width = TT_MIN(n->e->widest / effort.bytes, 64);
    n->width = (int)TT_MIN(n->width, tt_next_pow2(n->shape[n->lane_dim]));
}

/* Lanes innermost, except that an accumulated axis is inside of them. */
static void choose_order(Nest *n)
{
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < n->rank; i++) {
            int place = i == n->axis ? 2 : i == n->lane_dim ? 1 : 0;
            bool loops = n->shape[i] > 1 || i == n->axis;
            if (loops && place == pass)
                n->order[n->depth++] = i;
        }
}

static void prepare_accumulators(Nest *n)
{
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        n->slots += sink_slots(sink);
        n->needs_first |= sink_slots(sink) && !has_identity(sink->op);
        n->reverse |= sink->kind == SINK_SCAN && tt_int_attr(sink->op, ATTR_reverse, 0);
    }
    n->accumulators = TT_NEW_ARRAY(n->l->arena, LLVMValueRef, n->slots * MOST_COPIES);
}

void emit_nest(Lower *l, const Group *group)
{
    Nest *n = TT_NEW(l->arena, Nest);
    *n = (Nest){.l = l, .e = l->e, .group = group, .copies = 1, .instances = 1};
    n->rank = group->space->rank;
    n->shape = group->space->shape;
    n->axis = group->axis;
    n->instance[0] = 1;
    choose_lanes(n);
    choose_order(n);
    prepare_accumulators(n);
    for (int i = 0; i < group->sinks.count; i++)
        prepare_sink(n, &group->sinks.data[i]);
    emit_dims(n, 0);
    straight(l);
    for (int i = 0; i < group->sinks.count; i++)
        finish_sink(&group->sinks.data[i]);
}
