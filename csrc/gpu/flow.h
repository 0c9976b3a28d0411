/* flow.c: which accesses may be under way in other threads when an operation begins: those since the last barrier, on
 * any path. A copy in flight outlasts barriers: from where its thread has waited for it, it counts as an access of that
 * thread. The equations of Tillet, Kung, Cox (MAPL 2019, §5.2.2) for RAW and WAR hazards, solved on the regions. */
#pragma once
#include "gpu/passes.h"

typedef struct Flow Flow;
struct Flow {
    Arena *arena;
    void *context;
    int ids; /* of accesses: numbers below this, those of operations with scratch (Op.index, or -1) first */
    /* Must the operation wait for any of the accesses under way? NULL: it never does. */
    bool (*must_wait)(const Flow *flow, const Op *op, const uint64_t *pending);
    /* Adds the accesses that the operation leaves under way, scratch excepted, or notes those it finds. */
    void (*visit)(Flow *flow, Op *op, uint64_t *pending);
    uint64_t *pending, *in_flight;
    /* While a loop is looked at before barriers are put into it: */
    enum { FLOW_INSERTS, FLOW_LOOKS_INSIDE, FLOW_LOOKS_OUTSIDE } mode;
    Map waits_inside; /* operations that wait for accesses of the loop itself */
    bool waits_for_outside;
    bool inserted; /* any barrier */
};

/* Goes through the operations of a function's body, and puts barriers where they must wait. */
void tt_flow_region(Flow *flow, const Region *body);
static inline void tt_flow_add(uint64_t *pending, int id) { pending[id / 64] |= 1ull << id % 64; }
static inline bool tt_flow_has(const uint64_t *pending, int id) { return pending[id / 64] >> id % 64 & 1; }
