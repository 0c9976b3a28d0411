/* Internal to gpu/: the passes on tile IR and what they share. A pass is one file with one public function that returns
 * whether it changed anything. */
#pragma once
#include "gpu/gpu.h"
#include "opt/pass.h"

enum {
    TT_LANE_BITS = 5,
    TT_LANES = 32,
    TT_WARPGROUP = 4 /* warps */,
    TT_REGISTERS = 64 << 10,     /* of a multiprocessor */
    TT_RESERVED_SHARED = 1 << 10 /* bytes of its shared memory, by the system, for each program */
};

/* ---- transport.c: layouts through operations ------------------------------------------------------------------------
 * What follows from one value's layout for another value of the same operation, such that no element leaves its
 * thread. NULL: the operation moves elements between threads whatever the other layout is. */

/* Layout of every result, given that of a tile operand. */
const LinearLayout *tt_layout_forward(const Op *op, int operand, const LinearLayout *layout);
/* Layout of a tile operand, given that of the results. */
const LinearLayout *tt_layout_backward(const Op *op, int operand, const LinearLayout *layout);
/* Layout of the results of a split whose pairs lie in different threads, once these have exchanged them for other elements of
 * theirs: half of what they hold moves. NULL: pairs lie elsewhere. */
const LinearLayout *tt_split_after_exchange(const Op *op, const LinearLayout *layout);
/* Can the operation be repeated in any layout for the price of its arithmetic? */
bool tt_is_layout_free(const Op *op);
/* How many such operations compute the tile from numbers (indices, masks, constants); 0: others do as well, or too many. `sizes`
 * has what is known of tiles. */
int tt_cheap_size(const Value *value, Map *sizes);
/* Element of a slice's operand, in its padded order, for an element of the result; the bits that do not depend on the
 * latter are in *fixed. False when the map is not one of bits (a reversal, a start that is not aligned, ...). */
bool tt_slice_bits(const Op *op, uint64_t columns[64], uint64_t *fixed);
/* A lookup of the element at the coordinate that differs in the bits of *distance, the same for all elements. */
bool tt_gathers_at_distance(const Op *op, uint64_t *distance);
/* The register that holds `element` in the thread of lane 0 and warp 0. */
int tt_register_of(const LinearLayout *layout, uint64_t element);

/* ---- passes ----------------------------------------------------------------------------------------------------------- */

/* Each of opt/passes.def: returns whether it changed anything. */
#define GPU_PASS(name, stage) bool tt_gpu_##name(Module *module, const GpuOptions *options, Arena *scratch);
#include "opt/passes.def"

/* Is it an atomic by which one thread speaks for the whole program, before which all that the others did must be done, or
 * after which the others begin what follows? */
bool tt_releases(const Op *op);
bool tt_acquires(const Op *op);
/* NULL, or the IR with each value whose layout does not follow from its operation's others. */
const char *tt_verify_layouts(const Module *module, Arena *arena);

/* ---- decide_layouts.c: which layout each tile should have ------------------------------------------------------------ */

typedef struct LayoutGroups LayoutGroups;
LayoutGroups *tt_decide_layouts(Function *function, const GpuOptions *options, Arena *arena);
/* Layout for a value, or NULL when it has none of its own: it is cheap to make in any. */
const LinearLayout *tt_group_layout(const LayoutGroups *groups, const Value *value);
/* Layout in which a memory operation runs. */
const LinearLayout *tt_memory_layout(const LayoutGroups *groups, const Op *op);
/* Every thread holds every element. */
const LinearLayout *tt_everywhere_layout(Module *module, const Type *type, int num_warps);
/* Where nothing speaks for another. */
const LinearLayout *tt_default_layout(Module *module, const Type *type, int num_warps);

/* ---- least_work.c: the layout of a tile that nothing anchors --------------------------------------------------------- */

/* What a tile is made of or gives: a tile that has `axes` of its dimensions, from which it is broadcast, or to which it is
 * reduced along the others. */
typedef struct TileUse {
    uint32_t axes;
    bool combines;
    int64_t weight; /* how often */
} TileUse;
/* Of combining elements along a dimension, of which as many bits are in lanes and in warps; those of a thread's results. */
int64_t tt_work_of_combining(int elements, int lanes, int warps);
int64_t tt_work_in(const LinearLayout *layout, const TileUse *uses, int use_count);
/* NULL: it has fewer elements than there are threads. */
const LinearLayout *tt_layout_of_least_work(Module *module, const Type *type, const TileUse *uses,
                                            int use_count, int num_warps);

/* ---- select_dot.c: products on tensor cores ---------------------------------------------------------------------------- */

bool tt_is_computed_here(const Op *dot,
                         const Value *value); /* in the product's region, not just loaded there */
bool tt_is_product(const Op *op);
bool tt_has_dot(const Region *body);      /* outside of what is nested in it */
bool tt_has_products(Region *region);     /* there too */
bool tt_is_on_tensor_cores(const Op *op); /* a product, and on them */
/* Of such a product: its sums, and an operand in registers. */
const LinearLayout *tt_product_layout(Module *module, const Op *product);
const LinearLayout *tt_fragment_layout(Module *module, const Op *product, int operand);
/* Rows of up to 128 bytes along `fastest`, one of the last two dimensions, their 16-byte chunks exchanged by the number of
 * the row: eight neighbouring rows have a chunk each in different banks. */
const LinearLayout *tt_buffer_layout(Module *module, const Type *type, int fastest);
/* The dimension along which the elements of a buffer with this layout follow each other. */
int tt_buffer_axis(const LinearLayout *layout);
/* The scalar at the beginning of a tile of pointers, base + distance, if all that is added to it stays the same in the loop;
 * and what a carried distance grows by in each iteration, if that does. Else NULL. */
Value *tt_moving_base(const Loop *loop, Value *pointer);
Value *tt_step_of(const Loop *loop, const Value *distance);
/* The same of an operand of a product, which may be permuted; K, one of the two, where its elements are loaded one by one,
 * and the last where they do not come from memory. */
int tt_staged_axis(const AxisInfos *infos, const Value *value, int along_k);
/* Is the product's tile one for wgmma, as it is or `turned`? */
bool tt_fits_wgmma(const Op *dot, const GpuOptions *options, bool turned);
/* Registers of a thread that a wgmma with so many columns of such sums needs: one for two columns, or of fp16 for four, and what
 * ptxas 13.0 insists on besides, 30 with a left operand in registers. */
static inline int64_t tt_wgmma_registers(int64_t columns, const Type *sum)
{
    return columns * tt_byte_width(sum) / 8 + 32;
}

/* ---- stagger.c: warpgroups that take turns ------------------------------------------------------------------------------- */

/* Where an iteration multiplies and computes with the result: the wait for that product, and the product that multiplies
 * what was computed, in registers, or if there is none the same one. */
typedef struct Turn {
    Op *first, *second;
} Turn;
bool tt_find_turn(const Region *body, Turn *turn, Arena *scratch);
/* Are there warpgroups to take turns? */
static inline bool tt_has_turns(const GpuOptions *options) { return options->num_warps > 4; }

/* ---- tf32.c: fp32 operands of tensor cores ------------------------------------------------------------------------------ */

enum {
    /* Units in the last place by which a magnitude grows before the tensor core cuts it: */
    TT_NEAREST = 0x1000, /* to be rounded to nearest */
    TT_AWAY = 0x1fff,    /* away from zero */
    /* Sign and exponent. A unit is 2^-TT_MANTISSA_BITS of the power of two that they are. */
    TT_MANTISSA_BITS = 23,
    TT_POWER_MASK = -(1 << TT_MANTISSA_BITS),
};

/* Is each element known to be a number of tf32? */
bool tt_is_tf32(const Value *value);
Value *tt_build_raised(Builder *b, Value *value, int64_t units);
double tt_raised_by(int64_t units); /* of the power of two */
/* Units by which a product's operand is raised on its way to the tensor core. */
int64_t tt_raised(const Op *product, int operand);

/* ---- plan_dot.c: products by multiply-adds --------------------------------------------------------------------------- */

const LinearLayout *tt_dot_layout(Module *module, const Type *type, int num_warps);
/* Of the buffer for an operand. spread: the lowest bit of k in which lanes differ that store it; -1: they store one k. */
const LinearLayout *tt_factor_layout(Module *module, const Op *dot, int operand, int spread, int num_warps);

/* ---- scratch.c: the shared memory that an operation works in ----------------------------------------------------------
 * Such an operation writes to its scratch, meets all threads at a barrier, and reads from it last. */
int64_t tt_scratch_bytes(const Op *op, const GpuOptions *options);
int64_t tt_scratch_offset(const Op *op); /* once allocated */
/* Half of these bytes, if they will do where the operation's elements cross in turns; else 0. */
int64_t tt_half_scratch(const Op *op, int64_t bytes);
int tt_least_halving_bit(const Type *type); /* of an element: the vectors that threads exchange stay whole */
int64_t tt_buffer_bytes(const Value *buffer);     /* all slots */
int64_t tt_buffer_alignment(const Value *buffer); /* of each slot, in bytes */
int64_t tt_shared_limit(int sm);                  /* bytes of shared memory that a program can have */
int64_t tt_bytes_while_it_runs(const Op *loop);   /* of all buffers that live then */
int64_t tt_programs_by_shared(int sm,
                              int64_t bytes); /* that a multiprocessor has so much shared memory for */
int tt_shared_bytes(const Module *module);    /* of the kernel, once allocated */

/* ---- hints.c --------------------------------------------------------------------------------------------------------- */

/* Is there a loop in the region, at any depth? */
bool tt_has_loop(const Region *region);

/* ---- strips.c: large tiles ------------------------------------------------------------------------------------------ */

/* The options with which the kernel is to be compiled: for more warps than there are if its tiles ask for it. */
GpuOptions tt_with_strips(Module *module, const GpuOptions *options, Arena *scratch);
int tt_warps(const GpuOptions *options); /* that there are */

/* ---- pressure.c ---------------------------------------------------------------------------------------------------------- */

/* What the tiles of a thread take where most of them live. */
int tt_tile_registers(Module *module);
/* Programs that the registers of a multiprocessor should suffice for; 0: as ptxas likes. The choice "programs". */
int tt_wanted_programs(Module *module, const GpuOptions *options);
