#include "gpu/flow.h"

static int words(const Flow *flow) { return flow->ids / 64 + 1; }

/* What is pending and, behind it, what is in flight. */
static size_t bytes(const Flow *flow) { return 2 * sizeof(uint64_t) * (size_t)words(flow); }

static uint64_t *copy(Flow *flow) { return tt_arena_copy(flow->arena, flow->pending, bytes(flow)); }

/* Adds `other`; whether that was new. */
static bool join(Flow *flow, const uint64_t *other)
{
    bool changed = false;
    for (int i = 0; i < 2 * words(flow); i++) {
        changed |= (other[i] & ~flow->pending[i]) != 0;
        flow->pending[i] |= other[i];
    }
    return changed;
}

static void set(Flow *flow, const uint64_t *pending) { memcpy(flow->pending, pending, bytes(flow)); }

static void clear(Flow *flow) { memset(flow->pending, 0, bytes(flow)); }

/* A barrier: all threads are done with what they did themselves. */
static void meet(Flow *flow) { memset(flow->pending, 0, bytes(flow) / 2); }

/* Copies that this thread has waited for are like accesses of its own. */
static void land(Flow *flow)
{
    for (int i = 0; i < words(flow); i++)
        flow->pending[i] |= flow->in_flight[i];
    memset(flow->in_flight, 0, bytes(flow) / 2);
}

static void insert_barrier(Flow *flow, Op *op)
{
    Builder builder = tt_builder_before(op);
    tt_build_op(&builder, OP_barrier, NULL, 0, NULL, 0, NULL)->index = -1;
    flow->inserted = true;
    meet(flow);
}

static void flow_region(Flow *flow, const Region *region);

/* ---- operations ---------------------------------------------------------------------------------------------------------------------- */

static void wait(Flow *flow, Op *op)
{
    switch (flow->mode) {
    case FLOW_INSERTS:
        insert_barrier(flow, op);
        break;
    case FLOW_LOOKS_INSIDE:
        *tt_map_slot_ptr(&flow->waits_inside, op) = op;
        break;
    case FLOW_LOOKS_OUTSIDE:
        flow->waits_for_outside |= !tt_map_find_ptr(&flow->waits_inside, op);
        break;
    }
    meet(flow);
}

static void flow_access(Flow *flow, Op *op)
{
    bool adds = flow->mode != FLOW_LOOKS_OUTSIDE; /* there, what begins inside of the loop is left out */
    if (flow->must_wait && flow->must_wait(flow, op, flow->pending))
        wait(flow, op);
    if (adds)
        flow->visit(flow, op, flow->pending);
    if (op->index < 0)
        return;
    meet(flow); /* the operation's own barrier ended all that was under way, */
    if (adds)
        tt_flow_add(flow->pending, op->index); /* and its reads are under way now */
}

static void flow_branches(Flow *flow, const Op *op)
{
    uint64_t *start = copy(flow);
    flow_region(flow, op->regions[0]);
    uint64_t *end = copy(flow);
    set(flow, start);
    flow_region(flow, op->regions[1]);
    join(flow, end);
}

/* ---- loops --------------------------------------------------------------------------------------------------------------------------- */

/* The accesses under way at the loop's start are those from before it and from the end of its body. */
static void flow_body(Flow *flow, const Op *op)
{
    bool tests = tt_control(op) == WHILE; /* while: region 0 runs once more than region 1 */
    for (;;) {
        uint64_t *start = copy(flow);
        flow_region(flow, op->regions[0]);
        uint64_t *left = copy(flow);
        if (tests)
            flow_region(flow, op->regions[1]);
        uint64_t *end = copy(flow);
        set(flow, start);
        if (join(flow, end))
            continue;
        if (tests)
            set(flow, left);
        return;
    }
}

/* What is under way before a loop is waited for before it, and not in each of its iterations; unless the operation that
 * waits must do so in each iteration anyway. */
static void flow_into_loop(Flow *flow, Op *op)
{
    uint64_t *start = copy(flow);
    flow->waits_inside = (Map){.arena = flow->arena};
    flow->mode = FLOW_LOOKS_INSIDE;
    clear(flow);
    flow_body(flow, op);
    flow->mode = FLOW_LOOKS_OUTSIDE;
    flow->waits_for_outside = false;
    set(flow, start);
    for (int i = 0; i < op->region_count; i++)
        flow_region(flow, op->regions[i]);
    flow->mode = FLOW_INSERTS;
    set(flow, start);
    if (flow->waits_for_outside)
        insert_barrier(flow, op);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------------------- */

static void flow_op(Flow *flow, Op *op)
{
    if (op->opcode == OP_async_wait && !tt_int_attr(op, ATTR_left, 0))
        land(flow);
    if (op->opcode == OP_mbarrier_init) {
        flow_access(flow, op);
        meet(flow);
    } else if (op->opcode == OP_barrier || (op->opcode == OP_async_wait && !tt_int_attr(op, ATTR_alone, 0))) {
        meet(flow);
    } else if (tt_is_loop(op)) {
        if (flow->mode == FLOW_INSERTS && flow->must_wait)
            flow_into_loop(flow, op);
        flow_body(flow, op);
    } else if (tt_is_control(op)) {
        flow_branches(flow, op);
    } else {
        flow_access(flow, op);
    }
}

static void flow_region(Flow *flow, const Region *region)
{
    TT_FOR_OPS_SAFE(op, region)
    flow_op(flow, op);
}

void tt_flow_region(Flow *flow, const Region *body)
{
    flow->pending = TT_NEW_ARRAY(flow->arena, uint64_t, 2 * words(flow));
    flow->in_flight = flow->pending + words(flow);
    flow->mode = FLOW_INSERTS;
    flow_region(flow, body);
}
