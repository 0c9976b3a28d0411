#include "gpu/flow.h"

static int words(const Flow *flow) { return flow->ids / 64 + 1; }

static uint64_t *copy(Flow *flow)
{
    return tt_arena_copy(flow->arena, flow->pending, sizeof(uint64_t) * (size_t)words(flow));
}

/* Adds `other`; whether that was new. */
static bool join(Flow *flow, const uint64_t *other)
{
    bool changed = false;
    for (int i = 0; i < words(flow); i++) {
        changed |= (other[i] & ~flow->pending[i]) != 0;
        flow->pending[i] |= other[i];
    }
    return changed;
}

static void set(Flow *flow, const uint64_t *pending)
{
    memcpy(flow->pending, pending, sizeof(uint64_t) * (size_t)words(flow));
}

static void flow_region(Flow *flow, const Region *region);

/* The accesses under way at the loop's start are those from before it and from the end of its body. */
static void flow_loop(Flow *flow, const Op *op)
{
    bool tests = op->region_count == 2; /* while: region 0 runs once more than region 1 */
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

static void flow_branches(Flow *flow, const Op *op)
{
    uint64_t *start = copy(flow);
    flow_region(flow, op->regions[0]);
    uint64_t *end = copy(flow);
    set(flow, start);
    flow_region(flow, op->regions[1]);
    join(flow, end);
}

static void flow_op(Flow *flow, Op *op)
{
    if (op->opcode == OP_barrier) {
        memset(flow->pending, 0, sizeof(uint64_t) * (size_t)words(flow));
    } else if (tt_has(op, LOOPS)) {
        flow_loop(flow, op);
    } else if (op->region_count && !tt_has(op, PURE)) {
        flow_branches(flow, op);
    } else {
        flow->visit(flow, op, flow->pending);
        if (op->index < 0)
            return;
        /* its own barrier ended all that was under way, and its reads are now */
        memset(flow->pending, 0, sizeof(uint64_t) * (size_t)words(flow));
        tt_flow_add(flow->pending, op->index);
    }
}

static void flow_region(Flow *flow, const Region *region)
{
    TT_FOR_OPS_SAFE(op, region)
    flow_op(flow, op);
}

void tt_flow_region(Flow *flow, const Region *body)
{
    flow->pending = TT_NEW_ARRAY(flow->arena, uint64_t, words(flow));
    flow_region(flow, body);
}
