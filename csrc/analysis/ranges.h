/* ranges: intervals of integers, computed when a kernel is launched. A small program of terms, made while the kernel
 * was compiled (offsets.c), says from the launch's numbers whether arithmetic that was left in 32 bits can wrap around,
 * and whether what is divided may be negative. It knows nothing of the IR. */
#pragma once
#include "analysis/analysis.h"

/* What code may rest on, where a launch's numbers prove it: a set of these. */
typedef enum LaunchFact {
    FACT_FITS = 1 << 0,     /* offsets fit in 32 bits */
    FACT_DIVISORS = 1 << 1, /* what is divided is not negative, nor what that is divided by */
    FACT_STARTS = 1 << 2,   /* what is divided is not negative, though scalars are subtracted in it */
    FACT_ONE_EACH = 1 << 3, /* the grid has no more programs than the device has multiprocessors */
    FACT_TWO_EACH = 1 << 4, /* no more than twice as many */
    FACT_MAPS = 1
        << 5, /* extents and strides of arrays that are copied in blocks are positive numbers of 32 bits */
    /* Code that rests on these is right in every launch, and best where they hold. */
    FACTS_OF_GRID = FACT_ONE_EACH | FACT_TWO_EACH,
    ALL_FACTS = FACT_FITS | FACT_DIVISORS | FACT_STARTS | FACTS_OF_GRID | FACT_MAPS,
    /* Of code that others launch, who vouch for it. */
    VOUCHED_FACTS = FACT_FITS | FACT_DIVISORS,
} LaunchFact;

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
    bool is_long;   /* of 64 bits */
    unsigned facts; /* which its bounds prove or not: that it fits in 32 bits, that it is not negative */
    int a, b, c;    /* numbers of earlier terms */
    int input;
    IntBounds bounds; /* whatever the launch */
} RangeTerm;

typedef struct RangeInput {
    bool is_extent; /* of the grid; else a parameter */
    bool is_long;   /* of 64 bits */
    int index;      /* the axis, or the parameter's number */
} RangeInput;

typedef struct RangeProgram {
    bool counts_programs; /* does the code hang on FACTS_OF_GRID? */
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
/* What holds if some facts, which terms decide, do and the rest do not: those that no term decides always hold. NULL: no
 * term. */
unsigned tt_facts_with(const RangeProgram *program, unsigned facts);

/* What a launch comes with: 64 bits a parameter, the grid, and where it runs. */
typedef struct LaunchNumbers {
    const uint64_t *slots; /* NULL: they are not known, and vouched for */
    int slot_count;
    const int32_t *extents; /* NULL: not known */
    int multiprocessors;    /* of the device; 0: not known */
} LaunchNumbers;
/* Of FACTS_OF_GRID. */
unsigned tt_facts_of_grid(LaunchNumbers numbers);
/* What holds for these numbers. */
unsigned tt_facts_of_numbers(const RangeProgram *program, LaunchNumbers numbers);
/* What the terms are in this launch: of those that only RANGE_CONSTANT, INPUT, ADD, SUB, MUL, DIV, MIN and MAX lead to, that number
 * twice. Room for all terms. */
void tt_range_terms(const RangeProgram *program, LaunchNumbers numbers, IntBounds *terms);
/* Launches of which something is known, the latest in front: what holds for all whose numbers lie between these, a pair
 * for each input. */
enum { KNOWN_LAUNCHES = 4 };
typedef struct KnownLaunches {
    int count;
    struct {
        unsigned facts;
        IntBounds *inputs;
    } ranges[KNOWN_LAUNCHES];
} KnownLaunches;
/* The same, with less to do: a launch between those of the latest one costs a comparison each. `known` is zeros at first,
 * but for room for the inputs. */
unsigned tt_facts_of_launch(const RangeProgram *program, KnownLaunches *known, LaunchNumbers numbers);
