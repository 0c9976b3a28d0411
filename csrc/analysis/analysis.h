/* analysis: facts about a function, computed on request and owned by the caller's arena. */
#pragma once
#include "ir/ir.h"

/* ---- axis_info.c ------------------------------------------------------------------------------------------
 * For each dimension d of an integer or pointer value (a scalar counts as one dimension of extent 1):
 *   contiguity[d]   the tile splits along d into aligned groups of this many elements that grow by 1
 *                   (pointers: by one element) from each to the next
 *   constancy[d]    ... of this many equal elements
 *   divisibility[d] a number that divides the first element of every contiguity group (pointers: the
 *                   address in bytes); a power of two
 * An "aligned group" starts at an index that is a multiple of its size; the last one may be cut off by the
 * extent, so a number as large as the extent stands for any. All numbers are at least 1 and hold for every
 * run of the program.
 *   apart[d]        a number that divides by how much neighbours along d differ (pointers: in bytes); a power of two.
 *                   Outer dimensions of an array are multiples of inner ones apart
 *   looked_up[d]    whether numbers read from memory decide it: neighbours that are computed are likelier to be
 *                   neighbours in memory than those that are looked up in a table
 *
 * They are meant for choosing how memory is accessed, and rest on assumptions that only matter there: index
 * arithmetic does not overflow, and a parameter that is not said to be negative is not (launches compile other
 * code for negative numbers; a caller who compiles for a signature vouches for it). It matters where a tile is
 * divided or a remainder taken, which truncate toward zero, so that groups break at zero; such an operation with
 * the attribute `whole` divides nothing that is negative, which the launches of the code prove (opt/signs.c). Do
 * not use the numbers to leave out the computation of values that a program can see. */
typedef enum AxisSign {
    SIGN_NOT_NEGATIVE,
    SIGN_BY_DIVISORS, /* not negative unless something is divided by a negative number */
    SIGN_BY_STARTS,   /* ... or a scalar that it is computed from is */
    SIGN_UNKNOWN,
} AxisSign;

typedef struct AxisInfo {
    int rank;
    int64_t contiguity[TT_MAX_RANK], divisibility[TT_MAX_RANK], constancy[TT_MAX_RANK], apart[TT_MAX_RANK];
    bool looked_up[TT_MAX_RANK];
    AxisSign sign;    /* as a signed integer, by the assumptions above */
    bool is_constant; /* every element equals `constant` */
    int64_t constant;
} AxisInfo;

typedef struct AxisInfos AxisInfos;
AxisInfos *tt_analyze_axis_info(const Function *function, Arena *arena);
/* For code whose accesses need no alignment, which would read as far as a program promises runs. Programs promise runs
 * of `index % n` and `where(index < n, index, 0)`, too, that end within a tile; where addresses are aligned a row has
 * room for the rest of the piece that they are cut into, and farther than that no promise counts here. */
AxisInfos *tt_analyze_aligned_axis_info(const Function *function, Arena *arena);
/* Never NULL: a value that the analysis did not see gets ones. */
const AxisInfo *tt_axis_info(const AxisInfos *infos, const Value *value);

static inline bool tt_is_non_negative(const AxisInfo *info) { return info->sign == SIGN_NOT_NEGATIVE; }

/* Do the elements lie closer together along dimension a than along b, for all that is known? */
bool tt_is_faster_axis(const AxisInfo *info, int a, int b);
/* Or, if as much is known of both, are they likelier to? Along b they are apart by multiples of what they are along a. */
bool tt_is_nearer_axis(const AxisInfo *info, int a, int b);
/* The dimension, of the last two, along which a load's elements lie in memory. */
int tt_fastest_axis(const AxisInfos *infos, const Op *load);
/* Those that are neighbours there along a dimension, as many as an asynchronous copy may take, whatever their masks say. 0: their
 * addresses are not even divisible by an element. */
int64_t tt_copied_elements(const AxisInfos *infos, const Op *load, int axis);

/* ---- bounds.c ---------------------------------------------------------------------------------------------
 * Signed bounds that hold for every element in every run; false when none are known. */
typedef struct IntBounds {
    int64_t lowest, highest;
} IntBounds;
bool tt_int_bounds(const Value *value, IntBounds *bounds);

/* ---- extrema.c --------------------------------------------------------------------------------------------
 * The operation by which a reduction or scan combines its two scalars, if that is all it does; else TT_OPCODES. */
Opcode tt_combining_opcode(const Op *op);
/* Is each element of a float 0, negative, or no number in every run, being what it was before less a maximum of that and
 * of others? */
bool tt_is_never_positive(const Value *value);

/* ---- rounding.c -------------------------------------------------------------------------------------------
 * Is what is computed of a float of 32 bits, by sums and products, quotients and roots, all rounded to 16 bits or fewer, so
 * that an error of 2^-18 of it does not show? */
bool tt_goes_to_few_bits(const Value *value, Arena *scratch);

/* ---- residues.c -------------------------------------------------------------------------------------------
 * Numbers that are, but for multiples of `modulus` (a power of two), between low and high. */
typedef struct Residues {
    int64_t modulus, low, high;
} Residues;
/* Of the elements that a pointer, or any of a tile of pointers, is away from the parameter *base; NULL: from none. */
Residues tt_pointer_residues(const Value *pointer, const Value **base);
/* May a number of one be a number of the other? */
bool tt_residues_meet(Residues a, Residues b);

/* Where a pointer lies behind its base, as a sum: of terms, made once in a run of the function, and of a constant. Elements
 * of the terms' sum are multiples of `step` apart, `most` at most. */
enum { TT_OFFSET_TERMS = 6 };
typedef struct OffsetSum {
    const Value *terms[TT_OFFSET_TERMS];
    int count;
    bool is_known;
    int64_t constant, step, most;
} OffsetSum;
OffsetSum tt_offset_sum(const Value *pointer);
/* May an element of one be an element of the other, behind the same base? */
bool tt_offset_sums_meet(const OffsetSum *a, const OffsetSum *b);

/* ---- param_pointers.c -----------------------------------------------------------------------------------------
 * What a function does with the pointers among its parameters; `stored[i]`: it, or one that it calls, may write to
 * memory through parameter i. */
typedef struct ParamPointers {
    bool *stored;
    Map origins;
} ParamPointers;
ParamPointers *tt_analyze_param_pointers(const Function *function, Arena *arena);
/* The one parameter that a pointer is computed from; -1 when there are several or none. */
int tt_pointer_param(const ParamPointers *pointers, const Value *value);

/* ---- products.c -----------------------------------------------------------------------------------------------
 * Does a product multiply it? */
bool tt_is_factor(const Use *use);
/* Do only such uses take a tile, as it is or permuted, or also in another shape? */
bool tt_goes_only_to(bool (*takes)(const Use *use), const Value *tile, bool reshaped);
/* What a tile, or a buffer, was before it was permuted. */
const Value *tt_before_permutes(const Value *value);

/* ---- work.c ---------------------------------------------------------------------------------------------------
 * What one program does, by the numbers of its launch. */
typedef struct WorkInputs {
    const bool *known; /* for each parameter: is its value in `numbers`? */
    const int64_t *numbers;
    int count;
    int32_t grid[3];
} WorkInputs;
typedef struct Work {
    double multiplications, operand_bytes,
        sum_bytes;        /* of products; sums count each time they are added to */
    double operand_width; /* bytes of the widest operand's elements; 0: no product */
    double operations;    /* elements of other arithmetic, costly ones several times */
    double loaded_bytes, stored_bytes;
    double atomics, exchanged; /* elements; of reductions and scans */
    double rounds;             /* of loops */
    double crossed;            /* after a GPU's passes: bytes that go from registers through shared memory */
} Work;
Work tt_count_work(const Function *kernel, const WorkInputs *inputs, Arena *arena);

/* ---- order.c ------------------------------------------------------------------------------------------------------
 * For each parameter: may what is known of it (its divisibility, that it is 1) change the order in which the kernel adds up
 * floats, and with it the last bits of its results, or, where it adds up none, how wide its accesses are? Or does it compute
 * otherwise with a one that is a constant? */
const bool *tt_analyze_order(const Function *kernel, Arena *arena);

/* ---- ones.c -------------------------------------------------------------------------------------------------------
 * Sets those of `matters`, one for each parameter, that are a number by which the kernel computes otherwise when it is one
 * and a constant. */
void tt_find_ones(const Function *kernel, bool *matters, Arena *arena);
