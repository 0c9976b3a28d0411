/* Buffers: which value is written where. A loop-carried tile has one buffer, which its region arguments and results
 * share; the value yielded for it is computed right into it when nothing needs the old value any more, else into a
 * buffer of its own and copied at the end. Then liveness in program order gives each buffer its place in the arena. */
#include "cpu/lower.h"

enum { ALIGNMENT = 64, RESERVED = sizeof(CpuScratch), SLACK = 512 };

/* Where a region's yielded value belongs, and the value that lives there before, if any. */
typedef struct Target {
    Buffer *buffer;
    const Value *old;
} Target;

Buffer *new_buffer(Lower *l, const Type *type)
{
    Buffer *buffer = TT_NEW(l->arena, Buffer);
    buffer->type = type;
    buffer->bytes = type->count * tt_byte_width(type);
    buffer->first = NEVER;
    buffer->last = -1;
    tt_push(l->arena, l->buffers, buffer);
    return buffer;
}

/* ---- computing into a buffer whose old value is still read ------------------------------------------------------------- */

typedef struct OldReads {
    const Value *old;
    bool same, any; /* read at the coordinates of the iteration; at others */
} OldReads;

static void on_old_read(ReadWalk *walk, Value *value, bool same)
{
    OldReads *reads = walk->context;
    if (value == reads->old)
        *(same ? &reads->same : &reads->any) = true;
}

static OldReads reads_of_old(Lower *l, const RegionPlan *plan, int group, const Value *old)
{
    OldReads reads = {.old = old};
    ReadWalk walk = {.l = l, .context = &reads, .on_buffer = on_old_read};
    walk_group(&walk, plan, group);
    return reads;
}

/* Of what is computed inside of the operation's regions. */
static OldReads reads_inside(Lower *l, const Op *op, const Value *old)
{
    OldReads reads = {.old = old};
    ReadWalk walk = {.l = l, .group = -1, .context = &reads, .on_buffer = on_old_read};
    walk.stamp = ++l->stamp;
    walk_regions(&walk, op);
    return reads;
}

/* Of a value that is computed when all groups of the region are done. */
static OldReads reads_at_end(Lower *l, const RegionPlan *plan, Value *value, const Value *old)
{
    OldReads reads = {.old = old};
    ReadWalk walk = {
        .l = l, .region = plan->region, .group = -1, .context = &reads, .on_buffer = on_old_read};
    walk.stamp = ++l->stamp;
    walk_value(&walk, value, true);
    return reads;
}

/* A loop may go on in the buffer of the value it starts from, if that is its only use. */
static bool loop_can_continue(Lower *l, const Op *loop, int result, const Value *old)
{
    int first = loop->opcode == OP_for ? 3 : 0;
    for (const Use *use = old->uses; use; use = use->next)
        if (use->user == loop && use != &loop->operands[first + result])
            return false;
    if (tt_operand(loop, first + result) != old)
        return false;
    OldReads reads = reads_inside(l, loop, old);
    return !reads.same && !reads.any;
}

static bool can_overwrite(Lower *l, const RegionPlan *plan, const Value *value, const Value *old)
{
    if (!old)
        return true;
    int group = info_of(value)->group;
    for (int i = group + 1; i < plan->groups.count; i++) {
        OldReads reads = reads_of_old(l, plan, i, old);
        if (reads.same || reads.any)
            return false;
    }
    if (value->op->opcode == OP_if)
        return true; /* its regions decide for themselves */
    if (value->op->opcode == OP_for || value->op->opcode == OP_while)
        return loop_can_continue(l, value->op, value->index, old);
    return !reads_of_old(l, plan, group, old).any;
}

/* Gives the buffer to the value, and to the accumulators of dots that lead to it. */
static void take_buffer(Lower *l, const RegionPlan *plan, Value *value, Target target)
{
    info_of(value)->buffer = target.buffer;
    info_of(value)->old = target.old;
    while (value->op && value->op->opcode == OP_dot) {
        Value *accumulator = tt_operand(value->op, 2);
        bool stored =
            accumulator->op && accumulator->op->parent == plan->region && info_of(accumulator)->group >= 0;
        if (!stored || info_of(accumulator)->buffer || !tt_has_one_use(accumulator) ||
            tt_is_control(accumulator->op) || !can_overwrite(l, plan, accumulator, target.old))
            return;
        info_of(accumulator)->buffer = target.buffer;
        info_of(accumulator)->old = target.old;
        value = accumulator;
    }
}

static bool is_stored_in(const Value *value, const RegionPlan *plan)
{
    return value->op && value->op->parent == plan->region && info_of(value)->group >= 0;
}

/* Is the old value of a target read by what is yielded for others? */
static bool others_read(Lower *l, const RegionPlan *plan, const Op *yield, int slot, const Value *old)
{
    for (int i = 0; old && i < yield->operand_count; i++) {
        OldReads reads = reads_at_end(l, plan, tt_operand(yield, i), old);
        if (i != slot && (reads.same || reads.any))
            return true;
    }
    return false;
}

/* Does a copy into target `slot` read what other copies overwrite, or what it overwrites itself before it is read? */
static bool reads_overwritten(Lower *l, const RegionPlan *plan, const Op *yield, const Target *targets,
                              int slot)
{
    Value *value = tt_operand(yield, slot);
    for (int i = 0; i < yield->operand_count; i++) {
        if (!targets[i].old || tt_operand(yield, i) == targets[i].old)
            continue;
        OldReads reads = reads_at_end(l, plan, value, targets[i].old);
        if (reads.any || (reads.same && i != slot))
            return true;
    }
    return false;
}

/* Decides for each yielded tile whether it is computed in place; the rest is copied at the end, by way of temporaries
 * where it needs another target's old value. */
static void assign_yields(Lower *l, RegionPlan *plan, const Target *targets)
{
    Op *yield = tt_terminator(plan->region);
    for (int i = 0; i < yield->operand_count; i++) {
        Value *value = tt_operand(yield, i);
        if (!tt_is_tile(value->type) || value == targets[i].old)
            continue;
        if (is_stored_in(value, plan) && !info_of(value)->buffer &&
            can_overwrite(l, plan, value, targets[i].old) &&
            !others_read(l, plan, yield, i, targets[i].old)) {
            take_buffer(l, plan, value, targets[i]);
            continue;
        }
        YieldCopy copy = {value, NULL, targets[i].buffer};
        if (reads_overwritten(l, plan, yield, targets, i))
            copy.by_way_of = new_buffer(l, value->type);
        tt_push(l->arena, plan->copies, copy);
    }
}

/* ---- buffers of a region's values ----------------------------------------------------------------------------------------- */

static void assign_region(Lower *l, Region *region, const Target *targets);

static void assign_control(Lower *l, Op *op)
{
    int first = op->opcode == OP_for ? 1 : 0;
    Target *targets = TT_NEW_ARRAY(l->arena, Target, op->result_count);
    for (int i = 0; i < op->result_count; i++) {
        Value *result = op->results[i];
        if (!tt_is_tile(result->type))
            continue;
        ValueInfo *info = info_of(result);
        if (!info->buffer)
            info->buffer = new_buffer(l, result->type);
        else
            targets[i].old = info->old;
        targets[i].buffer = info->buffer;
    }
    for (int i = 0; i < op->region_count; i++) {
        Region *region = op->regions[i];
        for (int j = 0; j < op->result_count; j++) {
            if (!targets[j].buffer || op->opcode == OP_if)
                continue;
            targets[j].old = region->args[first + j];
            info_of(targets[j].old)->buffer = targets[j].buffer;
        }
        assign_region(l, region, targets);
    }
}

static void assign_results(Lower *l, Op *op)
{
    if (tt_is_control(op)) {
        assign_control(l, op);
        return;
    }
    for (int i = 0; i < op->result_count; i++)
        if (tt_is_tile(op->results[i]->type) && !info_of(op->results[i])->buffer)
            info_of(op->results[i])->buffer = new_buffer(l, op->results[i]->type);
    if (op->opcode == OP_dot)
        take_buffer(l, plan_of(l, op->parent), op->results[0],
                    (Target){info_of(op->results[0])->buffer, info_of(op->results[0])->old});
}

static void assign_region(Lower *l, Region *region, const Target *targets)
{
    RegionPlan *plan = plan_of(l, region);
    if (targets && tt_terminator(region) && tt_terminator(region)->opcode == OP_yield)
        assign_yields(l, plan, targets);
    for (Op *op = region->last; op; op = op->previous) {
        if (!is_virtual_op(op)) {
            assign_results(l, op);
            continue;
        }
        for (int i = 0; i < op->result_count; i++)
            if (info_of(op->results[i])->materialize && !info_of(op->results[i])->buffer)
                info_of(op->results[i])->buffer = new_buffer(l, op->results[i]->type);
    }
}

/* ---- liveness and places ---------------------------------------------------------------------------------------------------- */

typedef struct Clock {
    Lower *l;
    int now;
} Clock;

static void touch(Buffer *buffer, int now)
{
    buffer->first = TT_MIN(buffer->first, now);
    buffer->last = TT_MAX(buffer->last, now);
}

static void on_read(ReadWalk *walk, Value *value, bool same)
{
    (void)same;
    const Clock *clock = walk->context;
    if (info_of(value)->buffer)
        touch(info_of(value)->buffer, clock->now);
}

static void touch_results(Clock *clock, const Op *op)
{
    for (int i = 0; i < op->result_count; i++)
        if (info_of(op->results[i])->buffer)
            touch(info_of(op->results[i])->buffer, clock->now);
}

static void time_region(Clock *clock, const Region *region);

/* What a loop reads from before it is live until its end. */
static void time_control(Clock *clock, Op *op)
{
    int start = clock->now;
    for (int i = 0; i < op->region_count; i++)
        time_region(clock, op->regions[i]);
    clock->now++;
    touch_results(clock, op);
    if (!tt_is_loop(op))
        return;
    for (int i = 0; i < clock->l->buffers.count; i++) {
        Buffer *buffer = clock->l->buffers.data[i];
        if (buffer->first <= start && buffer->last >= start)
            buffer->last = clock->now;
    }
}

static void time_group(Clock *clock, const RegionPlan *plan, int index)
{
    const Group *group = plan->groups.data[index];
    clock->now++;
    for (int i = 0; i < group->sinks.count; i++) {
        const Sink *sink = &group->sinks.data[i];
        if (sink->kind == SINK_COPY)
            touch(info_of(sink->value)->buffer, clock->now);
        else
            touch_results(clock, sink->op);
    }
    ReadWalk walk = {.l = clock->l, .context = clock, .on_buffer = on_read};
    walk_group(&walk, plan, index);
    if (!group->step)
        return;
    touch_results(clock, group->step);
    if (group->step->opcode == OP_dot)
        plan_dot(clock->l, group->step, clock->now);
    if (tt_is_control(group->step))
        time_control(clock, group->step);
}

static void time_region(Clock *clock, const Region *region)
{
    const RegionPlan *plan = plan_of(clock->l, region);
    for (int i = 0; i < plan->groups.count; i++)
        time_group(clock, plan, i);
    clock->now++;
    ReadWalk walk = {.l = clock->l, .region = region, .group = -1, .context = clock, .on_buffer = on_read};
    walk.stamp = ++clock->l->stamp;
    for (int i = 0; i < plan->copies.count; i++) {
        walk_value(&walk, plan->copies.data[i].value, true);
        touch(plan->copies.data[i].to, clock->now);
        if (plan->copies.data[i].by_way_of)
            touch(plan->copies.data[i].by_way_of, clock->now);
    }
    const Op *end = tt_terminator(region);
    for (int i = 0; end && i < end->operand_count; i++)
        walk_value(&walk, tt_operand(end, i), true);
}

/* The lowest place that no buffer live at the same time occupies. */
static int64_t find_place(const Lower *l, int index)
{
    const Buffer *buffer = l->buffers.data[index];
    int64_t offset = RESERVED;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < index; i++) {
            const Buffer *other = l->buffers.data[i];
            bool together = other->first <= buffer->last && buffer->first <= other->last;
            if (together && offset < other->offset + other->bytes && other->offset < offset + buffer->bytes) {
                offset = (other->offset + other->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                moved = true;
            }
        }
    }
    return offset;
}

void assign_buffers(Lower *l)
{
    assign_region(l, l->function->body, NULL);
    Clock clock = {l, 0};
    time_region(&clock, l->function->body);
    int64_t end = RESERVED;
    for (int i = 0; i < l->buffers.count; i++) {
        Buffer *buffer = l->buffers.data[i];
        buffer->offset = find_place(l, i);
        end = TT_MAX(end, buffer->offset + buffer->bytes);
    }
    l->scratch_size = (end + SLACK + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}
