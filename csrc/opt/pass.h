/* What the passes share: who runs them, and what they ask of the IR. */
#pragma once
#include "opt/opt.h"

/* ---- pass_manager.c: running passes -------------------------------------------------------------------------------------- */

typedef struct Pass {
    const char *name;
    bool (*run)(Module *module, const void *options, Arena *scratch); /* whether it changed anything */
    Stage stage;                                                      /* of the IR when it has run */
} Pass;

typedef struct PassTable {
    const char *name; /* what TRITON_DUMP calls the result of them all */
    const Pass *passes;
    int count;
    const void *options;                                       /* that the passes get */
    const char *(*verify)(const Module *module, Arena *arena); /* beside tt_verify; or NULL */
} PassTable;

/* Runs one, which may run others, and says, checks and measures what the environment asks for. */
bool tt_run_pass(Module *module, const PassTable *table, int index);
/* Index of a pass; TT_USER_ERROR when there is none of the name. */
int tt_find_pass(const PassTable *table, const char *name);
/* All of them in order, or those up to and including `last`. */
void tt_run_passes(Module *module, const PassTable *table, const char *last);
/* After the last one of a table: what is said of the result, and the end of scratch memory. */
void tt_passes_done(Module *module, const PassTable *table);
/* TRITON_VERIFY=1: what passes make is checked. */
bool tt_verifies_passes(void);

/* ---- pipeline.c: the machine-independent ones ------------------------------------------------------------------------------ */

#define OPT_PASS(name, steps) bool tt_opt_##name(Function *function, Arena *scratch);
#include "opt/passes.def"

typedef enum OptPass {
#define OPT_PASS(name, steps) PASS_##name,
#include "opt/passes.def"
} OptPass;

bool tt_opt_run_pass(Module *module, OptPass pass);
/* signs.c: takes back marks that rest on other facts than these. */
void tt_forget_signs(Function *function, unsigned facts);
/* depths.c: what its marks say in launches of which these facts hold. */
void tt_settle_depths(Function *function, unsigned facts);
/* block_copies.c: the same; whether a block is left that is not copied as one. */
bool tt_settle_blocks(Function *function, unsigned facts);
/* unroll.c: writes the body out so often, in a loop in front of this one, which is left with the rest; returns that loop. The
 * step of all copies must fit unsigned integers as wide as the loop's. */
Op *tt_unroll_by(Op *loop, int64_t copies, Arena *scratch);
/* What is left to do after a pass that writes code out: canonicalize, cse and dce, once. */
void tt_simplify(Module *module);

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
/* Costs more to compute again than to store and load. An integer divided by a constant power of two does not. */
bool tt_is_costly(const Op *op);
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
/* Is the value made in an iteration? */
bool tt_is_in_loop(const Loop *loop, const Value *value);
/* Which of the carried values it is at the beginning of an iteration, or -1. */
int tt_carried_index(const Loop *loop, const Value *value);
/* What a value of a `for`'s body, computed by pure operations without regions, is in the first iteration: built with
 * `before`; `known` has what was built, and what stands for others. */
Value *tt_in_first_iteration(const Loop *loop, Value *value, Builder *before, Map *known, Arena *scratch);
/* Adds a carried value; returns its index. Its `yield` operand is `init` until the caller sets another. */
int tt_add_carried(Loop *loop, Value *init);
/* Calls `change` on every `for` of a region, inner ones first; returns whether it changed any. */
bool tt_change_loops(Region *region, bool (*change)(Op *loop, void *context), void *context);
/* How often a `for` runs, when its bounds are constants. */
bool tt_trip_count(const Op *op, int64_t *count);
/* No more than so many, by bounds whose distance is constant (a block of a diagonal, cut off at the end); INT64_MAX when
 * nothing is known. */
int64_t tt_most_trips(const Op *op);
/* Moves the operations of `region` before `anchor`, its terminator excepted. */
void tt_move_body_before(Region *region, Op *anchor);
/* Replaces the results of `op` by `values` and erases it. */
void tt_replace_op(Op *op, Value *const *values);
