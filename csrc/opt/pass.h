/* What the passes share. A pass is `bool tt_opt_NAME(Function *function, Arena *scratch)`: it returns whether
 * it changed anything; `scratch` is emptied when it returns. */
#pragma once
#include "opt/opt.h"

bool tt_opt_canonicalize(Function *function, Arena *scratch);
bool tt_opt_cse(Function *function, Arena *scratch);
bool tt_opt_dce(Function *function, Arena *scratch);
bool tt_opt_licm(Function *function, Arena *scratch);
bool tt_opt_unroll(Function *function, Arena *scratch);
bool tt_opt_combine(Function *function, Arena *scratch);
bool tt_opt_induction(Function *function, Arena *scratch);

/* ---- effects.c: what may be removed, merged or moved --------------------------------------------------- */

/* A `while` that reads memory: it may be waiting until another program writes there. */
bool tt_may_wait(const Op *op);
/* Does it, or anything in its regions, write to memory? */
bool tt_writes_memory(const Op *op);
/* Does it, or anything in its regions, do anything beside computing, reading and writing memory: print,
 * assert, wait? */
bool tt_has_effects(const Op *op);
/* Computes from its operands alone, in its regions too. */
bool tt_is_pure(const Op *op);
/* A load that reads once and as often as it likes. */
bool tt_is_plain_load(const Op *op);

/* ---- control.c: loops and branches by one view --------------------------------------------------------- */

/* A loop carries count values: operands from `init`, arguments of each region from `arg`, operands of
 * `yield`. */
typedef struct Loop {
    Op *op;
    Region *first,
        *body; /* the region whose arguments begin an iteration; the one that ends it (the same for `for`) */
    Op *yield;
    int count, init, arg;
} Loop;
Loop tt_loop(Op *op);
static inline Value *tt_init(const Loop *loop, int i) { return tt_operand(loop->op, loop->init + i); }
static inline Value *tt_carried(const Loop *loop, int i) { return loop->first->args[loop->arg + i]; }
static inline Value *tt_next(const Loop *loop, int i) { return tt_operand(loop->yield, i); }
/* Adds a carried value; returns its index. Its `yield` operand is `init` until the caller sets another. */
int tt_add_carried(Loop *loop, Value *init);
/* How often a `for` runs, when its bounds are constants. */
bool tt_trip_count(const Op *op, int64_t *count);
/* Moves the operations of `region` before `anchor`, its terminator excepted. */
void tt_move_body_before(Region *region, Op *anchor);
/* Replaces the results of `op` by `values` and erases it. */
void tt_replace_op(Op *op, Value *const *values);
