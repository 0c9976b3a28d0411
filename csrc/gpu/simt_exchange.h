/* Internal to the SIMT lowering: partial results of warps, exchanged through shared memory. Each warp leaves its own;
 * after a barrier, threads read those that they need. */
#pragma once
#include "gpu/simt.h"

enum { MOST_WARPS = 32, MOST_IN_VECTOR = 16 };

/* Partials are numbered by the registers that hold different ones. A partial is one of an element, of which every warp
 * of W along the axis has one. */
typedef struct WarpExchange {
    const Combine *combine;
    const LinearLayout *layout; /* of the threads */
    int64_t scratch;
    const int64_t *offsets; /* of each operand's partials in the scratch */
    int64_t valid_offset;   /* of the flags that they are any */
    uint32_t alike;         /* bits of the lane between which partials are the same */
    uint32_t alike_warps;   /* of the warp */
    bool shares_reading; /* a thread need not see all W: lanes read one each, for shuffles to combine them */
    int index_bits;      /* of a partial's number */
    uint64_t index_elements[32];
    uint64_t thread_elements[32]; /* lane bits, then warp bits */
    int warp_numbers[32];         /* of them: what they add to the warp's number along the axis */
    int warps;                    /* W */
    /* Worked out by simt_plan_exchange. The partials of 2^vector_bits neighbouring numbers are one vector. */
    int vector_bits;
    uint32_t readers; /* bits of the lane that tell which partial it reads; 0: it reads all W */
    uint64_t places[64];
    int place_bits;
    int warp_bit; /* where among the bits of a place the warp's number is */
    uint64_t columns[32], read_columns[32];
} WarpExchange;

/* Given everything down to `warps`. */
void simt_plan_exchange(WarpExchange *x);
/* Lanes that differ in this bit, and hold partials of the same elements, store half of them each: those whose numbers have
 * the highest bit or not, which is no bit of a number from now on. False: a lane has no more than one vector. */
bool simt_share_storing(WarpExchange *x, int lane_bit);
/* partials: by number. */
void simt_store_partials(Simt *s, const WarpExchange *x, Partial *partials);
/* How many partials of an element a thread reads. */
int simt_partials_read(const WarpExchange *x);
/* Loads for the vector that starts with number `first` those of `warps` warps from `warp` on: rows[j][w] for its element j.
 * `own`: what was stored. */
void simt_load_partials(Simt *s, const WarpExchange *x, int first, int warp, int warps, Partial *own,
                        Partial rows[][MOST_WARPS]);
