/* layout: linear layouts over F2 (Zhou et al., "Linear Layouts", arXiv 2505.23819).
 *
 * A layout maps the bits of a place in the machine to the bits of an element of a tile. A place of a distributed tile
 * is (register, lane, warp, block); of a shared-memory tile it is an offset, which uses the register bits alone. An
 * element is its row-major index in the tile's padded shape (extents are powers of two), so reshaping a tile leaves
 * its layout alone and a transposition permutes bits. The map is linear: it is given by the image of each place bit.
 * A zero image is replication: both places hold the same element. */
#pragma once
#include "support/support.h"

/* ---- f2.c: vectors are bit masks, a matrix is its columns ------------------------------------------------------------ */

int tt_f2_rank(const uint64_t *columns, int count);
/* x, a mask of columns whose sum is `target`; prefers early columns. False when target is not in the image. */
bool tt_f2_solve(const uint64_t *columns, int count, uint64_t target, uint64_t *x);
/* Basis of { x : sum of the columns in x is 0 }; returns its size (at most count). */
int tt_f2_kernel(const uint64_t *columns, int count, uint64_t *basis);
/* Bases of sum and intersection of two spans; return the size. */
int tt_f2_basis(const uint64_t *vectors, int count, uint64_t *basis);
int tt_f2_intersection(const uint64_t *a, int a_count, const uint64_t *b, int b_count, uint64_t *basis);
/* Unit vectors, or members of `candidates` first, that extend the independent `basis` to dimension `bits`. */
int tt_f2_extend(const uint64_t *basis, int count, const uint64_t *candidates, int candidate_count, int bits,
                 uint64_t *added);
static inline uint64_t tt_f2_apply(const uint64_t *columns, uint64_t x)
{
    uint64_t sum = 0;
    for (; x; x &= x - 1)
        sum ^= columns[__builtin_ctzll(x)];
    return sum;
}

/* ---- layout.c --------------------------------------------------------------------------------------------------------- */

typedef enum LayoutInput {
    LAYOUT_REGISTER,
    LAYOUT_LANE,
    LAYOUT_WARP,
    LAYOUT_BLOCK,
    LAYOUT_INPUTS
} LayoutInput;

typedef struct LinearLayout {
    int rank;
    int out_bits[TT_MAX_RANK]; /* log2 of the padded extents */
    int in_bits[LAYOUT_INPUTS];
    uint64_t
        bases[64]; /* image of each input bit, register bits first; bit 0 is the last dimension's lowest */
} LinearLayout;

int tt_layout_in_total(const LinearLayout *layout);
int tt_layout_out_total(const LinearLayout *layout);
int tt_layout_in_start(const LinearLayout *layout, LayoutInput input); /* index of its first base */
/* First bit of dimension `axis` in an element index. */
int tt_layout_axis_start(const LinearLayout *layout, int axis);
void tt_layout_coordinates(const LinearLayout *layout, uint64_t element, int64_t *coordinates);
bool tt_layout_equal(const LinearLayout *a, const LinearLayout *b);
bool tt_layout_is_surjective(const LinearLayout *layout);
bool tt_layout_is_injective(const LinearLayout *layout);
/* outer after inner: inner maps places to offsets, outer maps offsets (its register bits) to elements. */
LinearLayout tt_layout_compose(const LinearLayout *outer, const LinearLayout *inner);
/* columns[i]: a place (all inputs, register bits lowest) that holds element bit i. The layout must be surjective. */
void tt_layout_right_inverse(const LinearLayout *layout, uint64_t *columns);
/* The layout on registers [2^bits, ...) after taking `bits` leading register bits away when they are the identity on
 * the lowest element bits; false when they are not. The quotient of a vector or instruction tile. */
bool tt_layout_quotient(const LinearLayout *layout, int bits, LinearLayout *out);
/* Consecutive elements of the last dimension that register indices 0, 1, 2, .. hold: the vector width. */
int64_t tt_layout_contiguous(const LinearLayout *layout);
/* Mask of the bits of an input that hold copies (their images add nothing to the images of the bits before them). */
uint32_t tt_layout_replication(const LinearLayout *layout, LayoutInput input);
/* What reducing along `axis` needs: which bits of each input move along it. */
typedef struct AxisBits {
    uint32_t along[LAYOUT_INPUTS];
} AxisBits;
AxisBits tt_layout_axis_bits(const LinearLayout *layout, int axis);

/* ---- construct.c ------------------------------------------------------------------------------------------------------ */

/* Shapes here are padded: powers of two. */
LinearLayout tt_layout_empty(const int64_t *shape, int rank);
/* Fills dimensions in `order` (fastest first) with size_per_thread elements a thread, then lanes, then warps; what is
 * left of the shape goes to registers, what exceeds it is replicated. */
LinearLayout tt_layout_blocked(const int64_t *shape, int rank, const int64_t *size_per_thread,
                               const int64_t *threads_per_warp, const int64_t *warps, const int *order);
LinearLayout tt_layout_slice(const LinearLayout *layout,
                             int axis); /* of a reduction along axis: images lose it */
LinearLayout tt_layout_expand(const LinearLayout *layout, int axis); /* inserts a dimension of extent 1 */
LinearLayout tt_layout_broadcast(const LinearLayout *layout,
                                 const int64_t *shape); /* new bits in registers */
LinearLayout tt_layout_permute(const LinearLayout *layout,
                               const int *order); /* dimension i of the result is order[i] */
LinearLayout tt_layout_reshape(const LinearLayout *layout, const int64_t *shape, int rank);
LinearLayout
tt_layout_join(const LinearLayout *layout); /* a last dimension of extent 2 in a new lowest register bit */
bool tt_layout_split(const LinearLayout *layout,
                     LinearLayout *out); /* false when the last dimension is no register */
/* Drops register bits that hold copies. */
LinearLayout tt_layout_without_register_copies(const LinearLayout *layout);
/* The highest element bit, at least `least`, that is the whole image of a register bit, and of no other bit a part, in both
 * layouts; -1: there is none. By it a tile falls into halves, each in other registers of every thread. */
int tt_layout_halving_bit(const LinearLayout *a, const LinearLayout *b, int least);
/* The layout of such a half, and which register bit says which half it is. */
LinearLayout tt_layout_half(const LinearLayout *layout, int element_bit, int *register_bit);
/* With elements that several lanes have in registers shared out among these. */
LinearLayout tt_layout_shared_out(const LinearLayout *layout);
/* Row-major shared memory, swizzled: vectors of `vec` elements of the last dimension are XORed by the row divided by
 * per_phase, modulo max_phase. vec = per_phase = max_phase = 1 is plain row-major. Rank 1 or more. */
LinearLayout tt_layout_swizzled(const int64_t *shape, int rank, int64_t vec, int64_t per_phase,
                                int64_t max_phase);
/* What wgmma and TMA read (PTX ISA, "Shared memory matrix layouts"): the last dimension is cut into panels of
 * `swizzle_bytes` (32, 64, 128), rows follow each other in a panel, and 16-byte chunks are XORed by the row. */
LinearLayout tt_layout_nvmma(const int64_t *shape, int rank, int element_bytes, int swizzle_bytes);
/* Bytes of a chunk: an asynchronous copy takes one at most, and blocks are copied in whole ones. */
enum { TT_CHUNK = 16 };

/* Puts a base behind the last bit of `input`. */
void tt_layout_add_base(LinearLayout *layout, LayoutInput input, uint64_t base);

/* ---- mma.c ------------------------------------------------------------------------------------------------------------ */

typedef enum MmaPart { MMA_ACCUMULATOR, MMA_A, MMA_B } MmaPart;
/* Registers of mma.sync m16n8k*: M x N accumulators, or the M x K or K x N operand of elements of 1, 2, 4 or 8 bytes; of
 * rank 3 with a batch dimension before them. warps: how many along the batch, M and N. What the instruction's tile and the
 * warps leave of the shape is in further registers, K (or N) first; warps along N have neighbouring columns. */
LinearLayout tt_layout_mma(const int64_t *shape, int rank, MmaPart part, int element_bytes,
                           const int64_t *warps);
/* Sums of one wgmma. */
enum { TT_WGMMA_ROWS = 64, TT_WGMMA_LEAST_COLUMNS = 8, TT_WGMMA_MOST_COLUMNS = 256 };
/* Bytes of shared memory that a program can have there. */
enum { TT_SM90_SHARED = 227 << 10 };

/* ---- convert.c -------------------------------------------------------------------------------------------------------- */

typedef enum ConvertKind {
    CONVERT_NONE,      /* the same registers already hold the same elements */
    CONVERT_REGISTERS, /* a permutation or copy of registers within each thread */
    CONVERT_SHUFFLE,   /* values move between lanes of a warp */
    CONVERT_SHARED,    /* values cross warps: through shared memory */
} ConvertKind;

/* Shuffles. Register and lane parts are linear, so a few columns say it all. In round t (0 .. rounds - 1) a lane l
 * publishes register send[0] applied to (t, l), and receives from lane source(t, l) into register keep(t, l):
 *   keep   = t ^ keep_lane(l)
 *   source = source_round(t) ^ source_lane(l)
 *   send   = send_round(t) ^ send_lane(l)            seen from the publishing lane
 * each given by columns. */
typedef struct ShufflePlan {
    int rounds_bits, lane_bits;
    uint64_t keep_lane[8], source_round[16], source_lane[8], send_round[16], send_lane[8];
} ShufflePlan;

/* Shared memory. `memory` maps offsets (in elements) to elements; vectors of 2^store_bits elements are stored and of
 * 2^load_bits loaded at once; neither access has a bank conflict. The bits differ where one side has rows of 16 bytes and
 * the other a word of each in four lanes, as 8 x 8 matrices are stored or loaded, too. */
typedef struct SharedPlan {
    LinearLayout memory;
    int store_bits, load_bits;
    uint64_t store_offsets[64]; /* columns: offset of each source place bit (register, lane, warp) */
    uint64_t load_offsets[64];  /* ... of each destination place bit */
    uint32_t store_registers[16],
        load_registers[16]; /* register masks that are the vector's bits, lowest first */
} SharedPlan;

typedef struct ConvertPlan {
    ConvertKind kind;
    uint64_t
        register_source[16]; /* CONVERT_REGISTERS: columns, destination register bits to source registers */
    ShufflePlan shuffle;
    SharedPlan shared;
} ConvertPlan;

/* How values of element_bytes move from one layout of a shape to another. Both must cover the tile. stores_matrices: 8 x 8
 * ones are stored by one instruction, as they are loaded everywhere. */
ConvertPlan tt_layout_plan_conversion(const LinearLayout *from, const LinearLayout *to, int element_bytes,
                                      bool stores_matrices);
/* Wavefronts (128-byte transactions) of a warp's vector access at its worst instruction, and the fewest possible: the
 * enumeration that tests compare the plan's claim with. offsets: columns for register, lane, warp bits. */
void tt_layout_bank_conflicts(const uint64_t *lane_offsets, int lane_bits, int vector_bytes,
                              int element_bytes, int *wavefronts, int *fewest);
