/* ranges: intervals of integers, computed when a kernel is launched. A small program of terms, made while the kernel
 * was compiled (offsets.c), says from the launch's numbers whether arithmetic that was left in 32 bits can wrap around.
 * It knows nothing of the IR. */
#pragma once
#include "analysis/analysis.h"

typedef enum RangeKind {
    RANGE_CONSTANT,   /* `bounds` */
    RANGE_INPUT,      /* number `input` of the program's inputs */
    RANGE_PROGRAM_ID, /* of a grid whose extent is a */
    RANGE_ADD,
    RANGE_SUB,
    RANGE_MUL,
    RANGE_DIV, /* truncated toward zero */
    RANGE_REM,
    RANGE_SHR,
    RANGE_MIN,
    RANGE_MAX,
    RANGE_UNION,    /* one of a and b */
    RANGE_MASKED,   /* a & b, where the constant b is not negative */
    RANGE_LOW,      /* the low 32 bits of a as a signed number */
    RANGE_UNSIGNED, /* the 32 bits of a as an unsigned number */
    RANGE_INDEX,    /* of a loop from a to b */
    RANGE_TRIPS,    /* of a loop from a to b, by steps of c */
    RANGE_CARRIED,  /* a + k * b, where k goes from 0 to c */
    RANGE_BELOW,    /* what starts at a, grows by c, and is below b */
} RangeKind;

typedef struct RangeTerm {
    RangeKind kind;
    bool is_long;  /* of 64 bits */
    bool must_fit; /* in 32 */
    int a, b, c;   /* numbers of earlier terms */
    int input;
    IntBounds bounds; /* whatever the launch */
} RangeTerm;

typedef struct RangeInput {
    bool is_extent; /* of the grid; else a parameter */
    bool is_long;   /* of 64 bits */
    int index;      /* the axis, or the parameter's number */
} RangeInput;

typedef struct RangeProgram {
    int input_count, term_count;
    RangeInput *inputs;
    RangeTerm *terms;
} RangeProgram;

/* Of a term, from those of the terms before it. Wide enough for every value; [INT64_MIN, INT64_MAX] where a computation
 * in 64 bits may wrap around, too. */
IntBounds tt_range_of_term(const RangeTerm *term, const IntBounds *terms, const IntBounds *inputs);
static inline bool tt_fits_32_bits(IntBounds bounds)
{
    return bounds.lowest >= INT32_MIN && bounds.highest <= INT32_MAX;
}
/* Does everything fit that must, for any inputs between the given ones? */
bool tt_ranges_fit(const RangeProgram *program, const IntBounds *inputs);

/* What a launch comes with: 64 bits a parameter, and the grid. */
typedef struct LaunchNumbers {
    const uint64_t *slots;
    int slot_count;
    const int32_t *extents;
} LaunchNumbers;
/* Does everything fit for these numbers? `proved`, a pair for each input and at first {INT64_MAX, INT64_MIN}, are
 * numbers that are known to do: launches between them cost a comparison each. */
bool tt_launch_fits(const RangeProgram *program, IntBounds *proved, LaunchNumbers numbers);
