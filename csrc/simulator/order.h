/* order: which accesses of a block's threads have a barrier between them. Every byte of shared memory, and every byte of
 * global memory that the block touches, remembers who wrote and who read it last; two accesses of different threads
 * without order between them, one a write, are a race.
 *
 * A block barrier of all threads starts a new block epoch for everyone; a warp-level sync a new warp epoch for its warp
 * (a shuffle makes lanes wait, but orders no memory). Access a is ordered before access b when b's block epoch is later,
 * or they are of one warp and b's warp epoch is later, or they are of one thread.
 *
 * What goes on by itself (asynchronous copies, products of a warpgroup) is noted twice: when it begins, and when it is
 * waited for. Nothing that conflicts with it may happen in between, whatever barriers there are. */
#pragma once
#include "simulator/simulator.h"

typedef struct OrderChunk OrderChunk;
typedef struct OrderWord OrderWord;
typedef struct OrderLog {
    OrderWord *shared;  /* one a word of shared memory */
    OrderWord **global; /* by hash of the segment */
    uint64_t *segments; /* keys of `global`, plus one; 0: free */
    uint32_t capacity, count;
    uint64_t last_segment; /* plus one */
    OrderWord *last;
    OrderChunk *chunks; /* all memory that the log has */
    size_t chunk_used;
    bool out_of_memory; /* it misses what it should have noted */
} OrderLog;

/* Who accesses: one thread; all lanes of its warp, with each other; several warps, likewise. */
typedef enum OrderReach { ORDER_THREAD, ORDER_WARP, ORDER_WARPS } OrderReach;

/* What goes on by itself begins and ends apart from each other. */
typedef enum OrderStage { ORDER_AT_ONCE, ORDER_BEGINS, ORDER_ENDS } OrderStage;

/* An access, now. */
typedef struct OrderAccess {
    OrderStage stage;
    SimMoment began, now; /* differ where it ends */
    int thread;
    int32_t fences; /* that the thread has made so far; of a write that needs none: -1 */
    OrderReach reach;
    bool is_write, is_atomic;
    const char *data,
        *present;             /* of a plain store, or the end of a copy: what it writes, and what is there */
    const SimThread *threads; /* of a read that sees only what its writers made a fence after; else NULL */
    const SimSite *site;
} OrderAccess;

typedef enum OrderLack {
    ORDER_LACKS_BARRIER, /* between the two */
    ORDER_LACKS_WAIT,    /* for the access, which began before the other one */
    ORDER_LACKS_FENCE,   /* between the two: there is a barrier */
} OrderLack;

typedef struct OrderConflict {
    OrderLack lack;
    bool was_write; /* of the other access: */
    int thread;
    const SimSite *site;
    uint64_t address;
} OrderConflict;

bool tt_order_begin(OrderLog *log, int shared_bytes);  /* *log is zeroed */
void tt_order_forget(OrderLog *log, int shared_bytes); /* as after begin */
void tt_order_end(OrderLog *log);
/* Notes an access of shared memory at an offset. Threads may write the same value without order. False: it conflicts. */
bool tt_order_shared(OrderLog *log, uint32_t offset, int bytes, const OrderAccess *access,
                     OrderConflict *conflict);
/* The same in global memory, among accesses through one parameter: which of two stores comes last is not checked, for
 * programs may leave it open; nor are atomics with each other, which have an order of their own. */
bool tt_order_global(OrderLog *log, uint64_t address, int bytes, const OrderAccess *access,
                     OrderConflict *conflict);
