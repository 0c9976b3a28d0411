/* The loops of a group. All extents are known, so a loop has a known number of steps, and the last vector of a row, when
 * it is not full, is code of its own. Each open loop has a builder that stands before the inner loop: what a value
 * depends on decides at which level it is computed, so invariants are hoisted as they are made. */
#include "cpu/lower.h"

enum { SMALL_BODY = 24 };

void at_level(Nest *n, int level) { n->e->b = n->l->builders[level]; }

LLVMValueRef active_mask(const Nest *n)
{
    return n->width && n->active < n->width ? const_mask(n->e, n->width, n->active) : NULL;
}

/* ---- levels ------------------------------------------------------------------------------------------------------------- */

static int carried_count(const Nest *n) { return n->carrying ? n->copies * n->slots : 0; }

/* The builder of the current level stays before the new loop, the next level's goes into it. */
static EmitLoop open_loop(Nest *n, LLVMValueRef first, LLVMValueRef end, int64_t step)
{
    LLVMBuilderRef outer = n->l->builders[n->level], inner = n->l->builders[n->level + 1];
    LLVMBasicBlockRef before = LLVMGetInsertBlock(outer);
    at_level(n, n->level);
    EmitLoop loop = begin_loop_between(n->e, first, end, step, n->accumulators, carried_count(n));
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

/* The coordinates of a copy: the next vector, or in a block the next row. */
static void enter_copy(Nest *n, int64_t row, int64_t vector, int copy)
{
    if (n->rows)
        n->coords[n->block_dim].offset = row + copy;
    else if (n->lane_dim >= 0)
        n->coords[n->lane_dim].offset = vector + (int64_t)copy * n->width;
}

/* Loads of a group come before its stores in the program, and a sink may write where another one still reads; so where
 * there are several, everything is evaluated (and kept by the memos) before anything is stored. */
static void emit_body(Nest *n)
{
    int64_t row = n->rows ? n->coords[n->block_dim].offset : 0;
    int64_t vector = n->lane_dim >= 0 ? n->coords[n->lane_dim].offset : 0;
    bool in_order = n->group->sinks.count > 1;
    n->block_row = row;
    n->body_vector = vector;
    for (int pass = in_order ? 0 : 1; pass < 2; pass++)
        for (int copy = 0; copy < n->copies; copy++) {
            enter_copy(n, row, vector, copy);
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
    enter_copy(n, row, vector, 0);
}

static void emit_dims(Nest *n, int k);

/* The loop over steps first, first + step, ... below end of the k-th dimension, all of which `divisor` divides. Not 0,
 * `mirror` is the sum of the first and the last one: it goes down from the last. */
static void emit_loop(Nest *n, int k, LLVMValueRef first, LLVMValueRef end, int64_t step, int64_t divisor,
                      int64_t mirror)
{
    Coord *coord = &n->coords[n->order[k]];
    EmitLoop loop = open_loop(n, first, end, step);
    *coord = (Coord){.base = loop.index, .level = n->level, .divisor = divisor, .stride = coord->stride};
    if (mirror) {
        at_level(n, n->level);
        coord->base = LLVMBuildSub(n->e->b, const_int(n->e->i64, mirror), loop.index, "");
        coord->divisor = tt_gcd(mirror, divisor);
    }
    emit_dims(n, k + 1);
    close_loop(n, &loop);
}

static void emit_steps(Nest *n, int k, int64_t first, int64_t end, int64_t step)
{
    Coord *coord = &n->coords[n->order[k]];
    if (first >= end)
        return;
    if (end - first <= step) {
        *coord = (Coord){.offset = first, .stride = coord->stride};
        emit_dims(n, k + 1);
        return;
    }
    bool down = n->reverse && n->order[k] == n->axis;
    int64_t mirror = down ? 2 * first + (end - first - 1) / step * step : 0;
    emit_loop(n, k, const_int(n->e->i64, first), const_int(n->e->i64, end), step, tt_gcd(first, step),
              mirror);
}

/* ---- loops in two parts, of which masks are true in the first ------------------------------------------------------ */

/* From the accumulators of both ways to a block to those in it. */
static void merge_accumulators(Nest *n, LLVMValueRef *skipped, LLVMBasicBlockRef from, LLVMBasicBlockRef last)
{
    for (int i = 0; i < carried_count(n); i++) {
        LLVMValueRef phi = LLVMBuildPhi(n->e->b, LLVMTypeOf(skipped[i]), "");
        LLVMAddIncoming(phi, &skipped[i], &from, 1);
        LLVMAddIncoming(phi, &n->accumulators[i], &last, 1);
        n->accumulators[i] = phi;
    }
}

/* The steps from `from` below `to`, if there are any; those are all that there are between `first` and `end`, or some. */
static void emit_some(Nest *n, int k, LLVMValueRef from, LLVMValueRef to, int64_t first, int64_t end,
                      int64_t step, bool assumes)
{
    Emit *e = n->e;
    LLVMBuilderRef outer = n->l->builders[n->level];
    LLVMBasicBlockRef before = LLVMGetInsertBlock(outer), inside = new_block(e, assumes ? "plain" : "masked"),
                      after = new_block(e, "joined");
    LLVMValueRef *skipped =
        tt_arena_copy(n->l->arena, n->accumulators, sizeof(LLVMValueRef) * (size_t)carried_count(n));
    at_level(n, n->level);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, from, to, ""), inside, after);
    LLVMPositionBuilderBefore(outer, LLVMGetBasicBlockTerminator(before));
    open_branch(n, inside);
    n->assumed_level = assumes ? n->level : 0;
    if (end - first <= step)
        emit_steps(n, k, first, end, step);
    else
        emit_loop(n, k, from, to, step, tt_gcd(first, step), 0);
    n->assumed_level = 0;
    LLVMBasicBlockRef last = LLVMGetInsertBlock(n->l->builders[n->level]);
    close_branch(n, after);
    LLVMPositionBuilderAtEnd(outer, after);
    at_level(n, n->level);
    merge_accumulators(n, skipped, before, last);
}

static bool can_part(const Nest *n, int k)
{
    return k == n->depth - 1 && n->mask_count && n->width && !n->assumed_level && !n->reverse &&
           !n->e->codegen->host.has_avx512;
}

static void emit_parts(Nest *n, int k, int64_t first, int64_t end, int64_t step)
{
    Emit *e = n->e;
    LLVMValueRef low = const_int(e->i64, first), high = const_int(e->i64, end),
                 reach = first < end && can_part(n, k) ? emit_reach(n, n->order[k]) : NULL;
    if (!reach) {
        emit_steps(n, k, first, end, step);
        return;
    }
    LLVMValueRef last = emit_last_store(n);
    at_level(n, n->level);
    reach = emit_intrinsic2(e, "llvm.smin", emit_intrinsic2(e, "llvm.smax", reach, low), high);
    LLVMValueRef part = LLVMBuildURem(e->b, LLVMBuildSub(e->b, reach, low, ""), const_int(e->i64, step), "");
    LLVMValueRef whole = LLVMBuildSub(e->b, reach, part, "");
    emit_some(n, k, low, whole, first, end, step, true);
    at_level(n, n->level);
    if (last)
        high = emit_intrinsic2(e, "llvm.smin", last, high);
    int copies = n->copies;
    if (!carried_count(n) && !n->rows && n->order[k] == n->lane_dim) { /* few masked stores */
        n->copies = 1;
        step = n->width;
    }
    emit_some(n, k, whole, high, first, end, step, false);
    n->copies = copies;
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
    emit_parts(n, k, first, end, step);
}

/* How many vectors stand side by side: a divisor of their number, so that no rest remains. */
static int choose_copies(const Nest *n, int64_t vectors)
{
    bool scans = n->group->sinks.count && n->group->sinks.data[0].kind == SINK_SCAN;
    if (scans || n->effort > SMALL_BODY)
        return 1;
    bool inside = n->axis >= 0 && n->axis != n->lane_dim; /* sums are in registers, side by side */
    int most = n->slots > 2 ? 2 : inside && n->slots == 1 ? MOST_COPIES : 4;
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
    n->assumed_level = n->level;
    n->streamed = true;
    n->streaming = n->l->image->streams = true;
    emit_range(n, k, 0, end, step);
    n->streaming = false;
    n->assumed_level = 0;
    close_branch(n, after);
    open_branch(n, cached);
    emit_range(n, k, 0, end, step);
    close_branch(n, after);
    LLVMPositionBuilderAtEnd(outer, after);
}

static void emit_lane_dim(Nest *n, int k)
{
    int64_t extent = n->shape[n->lane_dim], vectors = extent / n->width, full = vectors * n->width;
    int copies = n->rows ? n->rows : vectors ? choose_copies(n, vectors) : 1;
    int64_t step = n->rows ? n->width : (int64_t)copies * n->width;
    n->coords[n->lane_dim].stride = 1;
    for (int part = 0; part < 2; part++) {
        bool tail = part == (n->reverse && n->axis == n->lane_dim ? 0 : 1);
        if (tail ? n->square : n->only_tails)
            continue;
        n->copies = n->rows ? n->rows : tail ? 1 : copies;
        n->active = tail ? (int)(extent - full) : n->width;
        if (tail)
            emit_range(n, k, full, extent, n->width);
        else if (k == n->depth - 1 && !n->rows && can_stream(n))
            emit_streaming(n, k, full, step);
        else
            emit_range(n, k, 0, full, step);
    }
    n->copies = vectors ? copies : 1;
    n->active = vectors ? n->width : (int)(extent - full);
}

/* Rows by the square block, as many as a vector has lanes, so that lanes and rows can change places; then what is behind
 * the last whole vector of these rows, and the rows behind the last block: one by one, or by pairs. */
static void emit_block_dim(Nest *n, int k)
{
    int64_t extent = n->shape[n->block_dim], blocks = n->transposes ? extent / n->width * n->width : 0;
    n->square = true;
    n->rows = n->width;
    emit_range(n, k, 0, blocks, n->width);
    n->square = false;
    n->rows = n->by_pairs ? 2 : 0;
    n->only_tails = true;
    if (n->shape[n->lane_dim] % n->width)
        emit_range(n, k, 0, blocks, TT_MAX(n->rows, 1));
    n->only_tails = false;
    emit_range(n, k, blocks, extent, TT_MAX(n->rows, 1));
    n->rows = 0;
}

static void emit_axis(Nest *n, int k)
{
    int copies = n->order[k] == n->lane_dim ? 4 : n->copies;
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
    } else if (n->order[k] == n->block_dim) {
        emit_block_dim(n, k);
    } else {
        emit_range(n, k, 0, n->shape[n->order[k]], 1);
    }
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

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
    choose_dims(n);
    prepare_accumulators(n);
    for (int i = 0; i < group->sinks.count; i++)
        prepare_sink(n, &group->sinks.data[i]);
    emit_dims(n, 0);
    straight(l);
    if (n->streamed) {
        l->streaming_nests++;
        count_stores(n);
    }
    for (int i = 0; i < group->sinks.count; i++)
        finish_sink(&group->sinks.data[i]);
}
