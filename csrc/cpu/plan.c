/* What becomes a loop nest. Sinks (stores, reductions, materialised tiles, ...) are taken in program order, and each
 * joins the latest earlier group of the same iteration space that everything it needs precedes; so a group stands where
 * its first sink stood, and later ones move up to it. Which tiles are materialised is found by repeating this until
 * nothing new needs a buffer: what several groups or an inner region use and would be dear to compute again, and loads
 * that would otherwise move across a write. */
#include "cpu/lower.h"

enum { DEAR = 12, DEEPEST = 200, DEAREST = 1 << 20, MOST_SINKS = 24 };

typedef struct Planner {
    Lower *l;
    Region *region;
    RegionPlan *plan;
    TT_VECTOR(Op *) writes; /* so far, in program order */
    int fence;              /* first group behind all writes and other effects */
    bool again;             /* something was marked to be materialised */
} Planner;

RegionPlan *plan_of(const Lower *l, const Region *region) { return tt_map_find_ptr(&l->plans, region); }

static int position_of(const Lower *l, const Op *op) { return l->places[op->index].position; }
static int group_of(const Lower *l, const Op *op) { return l->places[op->index].group; }

/* ---- groups ----------------------------------------------------------------------------------------------------------- */

static int add_group(Planner *p, const Op *at, Op *step)
{
    Group *group = TT_NEW(p->l->arena, Group);
    group->step = step;
    group->axis = -1;
    group->alone = step != NULL;
    group->effects = step && any_inside(step, READS | WRITES | HAS_EFFECT);
    group->position = position_of(p->l, at);
    tt_push(p->l->arena, p->plan->groups, group);
    return p->plan->groups.count - 1;
}

static int find_group(const Planner *p, int earliest, const Type *space, int axis)
{
    for (int i = p->plan->groups.count - 1; i >= earliest; i--) {
        const Group *group = p->plan->groups.data[i];
        if (!group->alone && tt_same_shape(group->space, space) && group->sinks.count < MOST_SINKS &&
            (axis < 0 || group->axis < 0 || group->axis == axis))
            return i;
    }
    return -1;
}

static void materialize_load(Planner *p, Op *load)
{
    ValueInfo *info = info_of(load->results[0]);
    if (!info->materialize)
        info->materialize = p->again = true;
}

/* A load that this group evaluates must not have moved behind a write of the program. */
static void on_load(ReadWalk *walk, Op *load, bool same)
{
    Planner *p = walk->context;
    Lower *l = p->l;
    Group *group = p->plan->groups.data[walk->group];
    tt_push(l->arena, group->loads, ((GroupLoad){load, same}));
    int position = load->parent == p->region ? position_of(l, load) : -1;
    for (int i = p->writes.count - 1; i >= 0 && position_of(l, p->writes.data[i]) > position; i--) {
        Op *write = p->writes.data[i];
        int at = group_of(l, write);
        if (at < walk->group || (at == walk->group && !may_interleave(l, load, same, write)))
            materialize_load(p, load);
    }
}

static void collect_loads(Planner *p, int group, const Sink *sink)
{
    ReadWalk walk = {.l = p->l, .region = p->region, .group = group, .context = p, .on_load = on_load};
    walk.stamp = ++p->l->stamp;
    if (sink)
        walk_sink(&walk, sink);
    else
        walk_group(&walk, p->plan, group);
}

static bool must_precede(const Lower *l, const Group *group, Op *store)
{
    bool precedes = group->effects;
    for (int i = 0; i < group->loads.count && !precedes; i++)
        precedes = !may_interleave(l, group->loads.data[i].op, group->loads.data[i].same, store);
    for (int i = 0; i < group->writes.count && !precedes; i++)
        precedes = !may_interleave(l, group->writes.data[i], true, store);
    return precedes;
}

/* The first group that may hold this store: the last one that accesses memory, or the one behind it. */
static int earliest_for_store(const Planner *p, Op *store)
{
    for (int i = p->plan->groups.count - 1; i >= 0; i--) {
        const Group *group = p->plan->groups.data[i];
        if (group->effects || group->loads.count || group->writes.count)
            return i + must_precede(p->l, group, store);
    }
    return 0;
}

static int add_sink(Planner *p, Op *at, Sink sink, int earliest, const Type *space, int axis, bool alone)
{
    Lower *l = p->l;
    int index = alone ? -1 : find_group(p, earliest, space, axis);
    if (index < 0) {
        index = add_group(p, at, NULL);
        p->plan->groups.data[index]->space = space;
        p->plan->groups.data[index]->alone = alone;
    }
    Group *group = p->plan->groups.data[index];
    if (axis >= 0)
        group->axis = axis;
    tt_push(l->arena, group->sinks, sink);
    if (sink.op)
        l->places[at->index].group = index;
    if (sink.op && tt_has(sink.op, WRITES)) {
        tt_push(l->arena, p->writes, at);
        tt_push(l->arena, group->writes, at);
        p->fence = TT_MAX(p->fence, index + 1);
    }
    if (sink.op && tt_has(sink.op, HAS_EFFECT)) {
        group->effects = true;
        p->fence = TT_MAX(p->fence, index + 1);
    }
    collect_loads(p, index, &sink);
    return index;
}

/* ---- scheduling ------------------------------------------------------------------------------------------------------- */

typedef struct Ready {
    int same, any; /* first group that can use it at its own coordinates, and at others */
} Ready;

/* When the operands are there; what comes from outside of the region always is. */
static Ready ready_operands(const Op *op)
{
    Ready ready = {0, 0};
    for (int i = 0; i < op->operand_count; i++) {
        const Value *value = tt_operand(op, i);
        if (!value->op || value->op->parent != op->parent)
            continue;
        const ValueInfo *info = info_of(value);
        bool same = keeps_iteration(op, i) || !is_virtual_op(op);
        ready.any = TT_MAX(ready.any, info->ready_any);
        ready.same = TT_MAX(ready.same, same ? info->ready_same : info->ready_any);
    }
    return ready;
}

static void set_ready(Op *op, int group, int same, int any)
{
    for (int i = 0; i < op->result_count; i++) {
        ValueInfo *info = info_of(op->results[i]);
        info->group = group;
        info->ready_same = same;
        info->ready_any = any;
    }
}

static void schedule_sink(Planner *p, Op *op, SinkKind kind)
{
    Ready ready = ready_operands(op);
    int earliest = kind == SINK_EXTRACT ? ready.any : ready.same;
    if (kind == SINK_STORE)
        earliest = TT_MAX(earliest, earliest_for_store(p, op));
    bool alone = kind == SINK_SCAN || kind == SINK_ATOMIC || kind == SINK_CHECK || kind == SINK_HISTOGRAM;
    int axis = kind == SINK_REDUCE || kind == SINK_SCAN ? (int)tt_int_attr(op, ATTR_axis, 0) : -1;
    int group = add_sink(p, op, (Sink){.kind = kind, .op = op}, earliest, space_of(op), axis, alone);
    set_ready(op, group, group + 1, group + 1);
}

static void schedule_step(Planner *p, Op *op)
{
    int group = add_group(p, op, op);
    p->l->places[op->index].group = group;
    if (any_inside(op, WRITES))
        tt_push(p->l->arena, p->writes, op);
    if (any_inside(op, WRITES | HAS_EFFECT))
        p->fence = group + 1;
    collect_loads(p, group, NULL);
    set_ready(op, group, group + 1, group + 1);
}

static void measure(Planner *p, Op *op)
{
    int cost = op->opcode == OP_load     ? 4
               : tt_has(op, COSTLY)      ? 16
               : tt_has(op, ELEMENTWISE) ? 1
                                         : 0,
        depth = 0;
    for (int i = 0; i < op->operand_count; i++) {
        const Value *value = tt_operand(op, i);
        const ValueInfo *info = info_of(value);
        if (!tt_is_tile(value->type) || info->materialize)
            continue;
        cost = TT_MIN(cost + info->cost, DEAREST);
        depth = TT_MAX(depth, info->depth + 1);
    }
    const Value *result = op->results[0];
    const AxisInfo *axes = axis_of(p->l, result);
    int last = result->type->rank - 1;
    if (!tt_is_float(result->type) && TT_MAX(axes->contiguity[last], axes->constancy[last]) >= 16)
        cost = TT_MIN(cost, 2); /* computed once a vector or once a row */
    for (int i = 0; i < op->result_count; i++) {
        info_of(op->results[i])->cost = cost;
        info_of(op->results[i])->depth = depth;
    }
    if (depth > DEEPEST)
        info_of(op->results[0])->materialize = true;
}

static void schedule_virtual(Planner *p, Op *op)
{
    measure(p, op);
    Ready ready = ready_operands(op);
    if (op->opcode == OP_load) {
        ready.same = TT_MAX(ready.same, p->fence);
        ready.any = TT_MAX(ready.any, p->fence);
    }
    set_ready(op, -1, ready.same, ready.any);
    for (int i = 0; i < op->result_count; i++) {
        Value *result = op->results[i];
        ValueInfo *info = info_of(result);
        if (!info->materialize)
            continue;
        Sink sink = {.kind = SINK_COPY, .value = result};
        info->group = add_sink(p, op, sink, ready.same, result->type, -1, false);
        info->ready_same = info->group;
        info->ready_any = info->group + 1;
        info->cost = 1;
        info->depth = 0;
    }
}

static bool does_nothing(const Op *op)
{
    return op->opcode == OP_barrier || op->opcode == OP_assume || tt_has(op, TERMINATOR);
}

static void schedule(Planner *p)
{
    p->plan->groups.count = p->writes.count = p->fence = 0;
    p->again = false;
    for (Op *op = p->region->first; op; op = op->next) {
        SinkKind kind = sink_kind(op);
        if (kind != SINK_NONE) {
            schedule_sink(p, op, kind);
        } else if (is_virtual_op(op)) {
            schedule_virtual(p, op);
        } else if (is_pure_scalar(op)) {
            Ready ready = ready_operands(op);
            set_ready(op, -1, ready.any, ready.any);
        } else if (op->opcode == OP_barrier) {
            p->fence = TT_MAX(p->fence, p->plan->groups.count);
        } else if (!does_nothing(op)) {
            schedule_step(p, op);
        }
    }
}

/* ---- what is worth a buffer ------------------------------------------------------------------------------------------- */

static void add_reader(ValueInfo *info, int first, int last)
{
    info->first = TT_MIN(info->first, first);
    info->last = TT_MAX(info->last, last);
}

/* The operation of `region` that `op` is or is inside of. */
static const Op *op_in_region(const Op *op, const Region *region)
{
    while (op->parent != region)
        op = op->parent->op;
    return op;
}

static void find_readers(Planner *p, const Value *value)
{
    ValueInfo *info = info_of(value);
    info->first = NEVER;
    info->last = -1;
    info->inner = info->reshaped = false;
    for (const Use *use = value->uses; use; use = use->next) {
        const Op *user = use->user;
        if (user->parent != p->region) {
            info->inner = true;
            int group = group_of(p->l, op_in_region(user, p->region));
            add_reader(info, group, group);
        } else if (is_virtual_op(user)) {
            const ValueInfo *result = info_of(user->results[0]);
            info->reshaped |= tt_has(user, SHAPE) && user->results[0]->type->count > value->type->count;
            info->inner |= !result->materialize && result->inner;
            if (result->materialize)
                add_reader(info, result->group, result->group);
            else
                add_reader(info, result->first, result->last);
        } else if (!tt_has(user, TERMINATOR)) {
            add_reader(info, group_of(p->l, user), group_of(p->l, user));
        }
    }
}

/* A split has two results with readers of their own: its operand is materialised anyway. */
static void mark_shared(Planner *p)
{
    for (Op *op = p->region->last; op; op = op->previous) {
        if (!is_virtual_op(op))
            continue;
        ValueInfo *info = info_of(op->results[0]);
        find_readers(p, op->results[0]);
        bool dear = op->opcode == OP_load || info->cost >= DEAR;
        bool shared = info->inner || info->first < info->last || (info->reshaped && info->cost >= DEAR);
        if (dear && shared && !info->materialize)
            info->materialize = p->again = true;
    }
}

static void plan_region(Lower *l, Region *region)
{
    RegionPlan *plan = TT_NEW(l->arena, RegionPlan);
    plan->region = region;
    *tt_map_slot_ptr(&l->plans, region) = plan;
    Planner planner = {.l = l, .region = region, .plan = plan};
    int position = 0;
    for (Op *op = region->first; op; op = op->next)
        l->places[op->index].position = position++;
    do {
        schedule(&planner);
        if (!planner.again)
            mark_shared(&planner);
    } while (planner.again);
    for (Op *op = region->first; op; op = op->next)
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            plan_region(l, op->regions[i]);
}

/* ---- what needs a buffer whatever it costs ------------------------------------------------------------------------------ */

static void need_buffer(Value *value)
{
    if (tt_is_tile(value->type) && value->op && is_virtual_op(value->op))
        info_of(value)->materialize = true;
}

static void mark_needed(Op *op)
{
    bool all = op->opcode == OP_print || op->opcode == OP_call || op->opcode == OP_return;
    for (int i = 0; i < op->operand_count; i++) {
        Value *value = tt_operand(op, i);
        bool yielded = op->opcode == OP_yield && value->op && value->op->parent == op->parent;
        bool reshaped = op->opcode == OP_reshape && !keeps_coordinates(op) && !is_splat(value);
        if (all || yielded || reshaped || op->opcode == OP_split || (op->opcode == OP_gather && i == 0))
            need_buffer(value);
    }
    if (op->opcode == OP_load && tt_int_attr(op, ATTR_volatile, 0))
        need_buffer(op->results[0]);
}

/* Numbers the operations and gives every value its record. */
static void number_ops(Lower *l, Region *region, int *count)
{
    for (int i = 0; i < region->arg_count; i++)
        region->args[i]->mark = TT_NEW(l->arena, ValueInfo);
    for (Op *op = region->first; op; op = op->next) {
        op->index = (*count)++;
        for (int i = 0; i < op->result_count; i++)
            op->results[i]->mark = TT_NEW(l->arena, ValueInfo);
        for (int i = 0; i < op->region_count; i++)
            number_ops(l, op->regions[i], count);
    }
}

static void mark_all_needed(Region *region)
{
    for (Op *op = region->first; op; op = op->next) {
        mark_needed(op);
        for (int i = 0; i < op->region_count; i++)
            mark_all_needed(op->regions[i]);
    }
}

void plan_function(Lower *l)
{
    int count = 0;
    number_ops(l, l->function->body, &count);
    l->places = TT_NEW_ARRAY(l->arena, OpPlace, count);
    mark_all_needed(l->function->body);
    plan_region(l, l->function->body);
    assign_buffers(l);
}
