/* flow.c: which accesses may be under way in other threads when an operation begins: those since the last barrier, on
 * any path. The equations of Tillet, Kung, Cox (MAPL 2019, §5.2.2) for RAW and WAR hazards, solved on the regions. */
#pragma once
#include "gpu/passes.h"

typedef struct Flow Flow;
struct Flow {
    Arena *arena;
    void *context;
    int ids; /* of accesses: numbers below this, those of operations with scratch (Op.index) first */
    /* Called for every operation, more than once in loops, with the accesses that may be under way. What it takes out
     * of `pending`, a barrier before the operation has ended. */
    void (*visit)(Flow *flow, Op *op, uint64_t *pending);
    uint64_t *pending;
};

/* Visits the operations of a function's body. Op.index is the number of an operation's scratch, or -1. */
void tt_flow_region(Flow *flow, const Region *body);
/* Marks an access as under way; for visitors that follow more than scratch. */
static inline void tt_flow_add(uint64_t *pending, int id) { pending[id / 64] |= 1ull << id % 64; }
static inline bool tt_flow_has(const uint64_t *pending, int id) { return pending[id / 64] >> id % 64 & 1; }
