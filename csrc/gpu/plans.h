/* What an operation on whole tiles does with its layouts, worked out once for scratch.c, which reserves the shared
 * memory, and for the lowering, which uses it. */
#pragma once
#include "gpu/target_ops.h"

/* The plan of an operation that has been worked out, or NULL; layouts stay as they are from then on. */
void **tt_plan_slot(const Op *op);
Arena *tt_plans_arena(const Op *op); /* where it is kept */

enum { TT_MAX_COMBINED = 16 }; /* tiles that one reduce or scan takes */

typedef struct ReducePlan {
    int axis;
    const LinearLayout *from, *to; /* to: NULL when the result is a scalar */
    uint32_t lanes, warps;         /* bits along the axis: combined by shuffles, through shared memory */
    uint32_t folded;               /* bits of the warp that number strips: combined by each thread before */
    int64_t results;               /* elements of the result, padding included */
    int64_t offsets[TT_MAX_COMBINED],
        valid_offset; /* of each operand's partials, and of the flags that they are any */
    int64_t bytes;
} ReducePlan;
const ReducePlan *tt_plan_reduce(const Op *op, const GpuOptions *options); /* also of extract */

/* A scan goes through the bits of its axis from the lowest. Registers in the lowest ones are a chain; then every bit
 * joins two halves, wherever it lives; neighbouring bits that are warps are joined at once, through shared memory. */
typedef struct ScanBit {
    LayoutInput input;
    int bit; /* of the input */
} ScanBit;
typedef struct ScanPlan {
    int axis, axis_bits;
    const LinearLayout *layout;
    ScanBit bits[32];
    int chain_bits;
    int64_t area; /* bytes of one run of warp bits; the runs' areas follow each other */
    int64_t bytes;
    int64_t offsets[TT_MAX_COMBINED], valid_offset; /* within an area */
} ScanPlan;
const ScanPlan *tt_plan_scan(const Op *op);

/* How threads read an operand of a product by multiply-adds from its buffer. All offsets are columns, in elements. */
typedef struct DotOperand {
    uint64_t load_offsets
        [64]; /* of each bit of a place of the result: the rows of a, columns of b, that it needs */
    uint64_t k_offsets[32];    /* of each bit of k */
    int vector_bits;           /* 2^bits elements are loaded at once */
    int k_bits, vector_k_bits; /* how many; of them within a loaded vector */
} DotOperand;
typedef struct DotPlan {
    DotOperand a, b;
} DotPlan;
const DotPlan *tt_plan_dot(const Op *op);

/* A lookup of the element at the coordinate that differs in fixed bits: which register, lane and warp has it, as what is
 * to be exclusive-or'ed to one's own. */
typedef struct DistancePlan {
    uint32_t registers, lanes, warps;
} DistancePlan;
/* False when `op`, a gather, is another kind of lookup. */
bool tt_plan_distance(const Op *op, DistancePlan *plan);

/* Shape operations whose elements change threads store one operand after the other at the row-major number that each
 * element has in the result (in_result) or in the operand, and load from there. */
bool tt_moves_elements(const Op *op);
