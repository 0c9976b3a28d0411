/* Internal to simulator/: a block, and how its threads fail, access shared memory and meet. */
#pragma once
#include "simulator/order.h"

typedef struct SimBlock {
    SimLaunch *launch;
    struct SimBlock *next_idle;
    SimThread *threads;
    char *stacks;
    char *shared;
    OrderLog order;
    uint32_t block_epoch;
    uint32_t warp_epoch[SIM_MAX_THREADS / SIM_WARP];
    struct SimProduct *products[SIM_MAX_THREADS / SIM_WARPGROUP]; /* begun, oldest first, by warpgroup */
    struct SimArrival *arrivals;                                  /* barriers at which blocks arrive */
    struct SimCopy *blocks, **blocks_end;                         /* on their way, oldest first */
    uint64_t random;
    Guard guard;
    SimThread *running; /* NULL: the scheduler */
    bool
        asks; /* the thread that runs has gone to the scheduler to have it ask whether the launch is to end */
    Coroutine scheduler;
} SimBlock;

/* ---- machine.c ------------------------------------------------------------------------------------------------------------- */

/* The launch's error, if it is the first. */
void sim_record_error(SimLaunch *launch, FailureKind kind, const char *format, ...) TT_PRINTF(3, 4);
/* A knock while the machine was at work is answered where threads come by: see support/guard.h. */
void sim_answer_knock(SimThread *self);
/* Leaves the thread for good. */
_Noreturn void sim_leave(SimThread *self);
/* Ends the launch: "file:line: message, in program (...), thread n". */
_Noreturn void sim_fail(SimThread *self, FailureKind kind, const SimSite *site, const char *format, ...)
    TT_PRINTF(4, 5);
/* Waits until all `threads` from the multiple of that number below this one on have come here with their `value`. True in
 * the first of them that goes on: it works for all, while the others' values are still what they gave. */
bool sim_meet(SimThread *self, int threads, void *value, const SimSite *site);
static inline SimMoment sim_moment(const SimThread *self)
{
    const SimBlock *block = self->block;
    return (SimMoment){block->block_epoch, block->warp_epoch[self->index / SIM_WARP]};
}
uint64_t sim_random(SimBlock *block);

/* Lets others run until the thread's state is SIM_READY again. */
void sim_yield(SimThread *self);

/* ---- memory.c -------------------------------------------------------------------------------------------------------------- */

typedef struct SimPlace {
    char text[200];
} SimPlace;
SimPlace sim_describe(const SimSite *site);
/* An access by this thread that begins and ends now: a plain one of its own, of which the rest may be changed. */
OrderAccess sim_access_now(const SimThread *self, bool is_write, const SimSite *site);
/* Checks and notes an access of shared memory; one outside or in conflict with another ends the launch, told by `self`,
 * which is the thread that runs. */
void sim_note_shared(SimThread *self, uint32_t offset, int32_t bytes, const OrderAccess *access);
/* A copy of up to 16 bytes, from the heap, that began now; and its end. */
typedef struct SimCopy {
    struct SimCopy *next;
    SimMoment began;
    uint32_t offset;
    uint64_t address;
    int32_t bytes, source_bytes; /* the rest is zero */
    int32_t group;               /* -1 until committed */
    uint32_t barrier;            /* at which it arrives, of a block */
    bool is_for_all;             /* all threads wait for it themselves */
    const SimSite *site;
} SimCopy;
SimCopy *sim_begin_copy(SimThread *self, SimCopy begun);
void sim_land(SimThread *self, const SimCopy *copy);
void sim_free_copies(SimThread *thread);
/* At the thread's end: nothing is still under way. */
void sim_check_copies(SimThread *self);

/* ---- blocks.c -------------------------------------------------------------------------------------------------------------- */

/* Lets threads go on that wait for what can come now; whether there were any. */
bool sim_release_arrivals(SimBlock *block);
/* At a program's end: no barrier is left, and no copy. */
void sim_check_blocks(SimThread *self);
void sim_free_blocks(SimBlock *block);

/* ---- wgmma.c --------------------------------------------------------------------------------------------------------------- */

void sim_free_products(SimBlock *block);
void sim_check_products(SimThread *self);
