/* Internal to gpu/: the lowering of tile IR with layouts to LLVM IR for one thread. A tile is an array of LLVM scalars,
 * one for each register of its layout; equal elements share one value. */
#pragma once
#include "gpu/plans.h"
#include "codegen/codegen.h"

typedef struct Tile {
    LLVMValueRef *at; /* by register; scalars have one */
    int count;
    int phase; /* in which it was computed, see simt_strips.c */
} Tile;

struct Simt {
    Arena *arena;
    Module *module;
    const GpuOptions *options;
    const TargetOps *ops;
    AxisInfos *axis_infos;
    ParamPointers *pointers;
    struct DebugInfo *debug_info;
    struct Codegen *codegen;
    LLVMContextRef context;
    LLVMModuleRef llvm;
    LLVMBuilderRef b;
    LLVMValueRef function;
    const Op *op; /* being lowered */
    bool has_products;
    Map pairs; /* layouts of sums in fp16, see simt_pairs.c */
    LLVMTypeRef i1, i8, i16, i32, i64, f16, bf16, f32, f64, global_ptr, none;
    LLVMValueRef entry_end; /* where values that do not depend on the program's course are computed */
    LLVMValueRef thread, lane, warp;
    LLVMValueRef warpgroup; /* of simt_wgmma.c; NULL until it is asked for */
    LLVMValueRef shared;    /* the program's shared memory */
    Map known_zeros;        /* parameter or loop index -> how many zero bits it is known to end with */
    Map per_thread;         /* what is computed once per thread: key in simt_index.c -> LLVMValueRef */
    Map sums;               /* base of an affine sum in this block, see simt_integers.c */
    LLVMBasicBlockRef sums_block;
    Map symbols;                 /* strings in the module */
    TT_VECTOR(TensorMap) maps;   /* of arrays that are copied in blocks: parameters behind the program's */
    TT_VECTOR(Failure) failures; /* that tt_nvptx_ops.fail reports, by number */
    int synchronisations;        /* so far */
    struct Strips *strips;       /* of large tiles; NULL: a thread holds its part of each at once */
};

/* ---- of a module after its passes --------------------------------------------------------------------------------- */
/* order.c: puts arithmetic next to what needs it. */
void tt_order_arithmetic(struct Codegen *codegen, bool has_products, Arena *arena);
/* nvptx_constants.c: behind all passes, keeps constants of 8-bit floats from ptxas, which widens some of them wrongly. */
void tt_nvptx_hide_constants(struct Codegen *codegen, Arena *arena);
/* nvptx_shorts.c: the same, of operations on 16-bit integers that it computes wrongly. */
void tt_nvptx_guard_shorts(struct Codegen *codegen);
/* nvptx_products.c: both halves of a product by one instruction, which LLVM has none for. */
void tt_nvptx_join_halves(struct Codegen *codegen, Arena *arena);
/* nvptx_known.c: drops accesses that never happen and exchanges of constants; returns whether there were any. */
bool tt_nvptx_use_known(struct Codegen *codegen);
/* nvptx_unused.c: shuffles and the like that nobody uses, since ptxas drops more with them than it may. */
void tt_nvptx_drop_unused(struct Codegen *codegen, Arena *arena);

/* ---- simt_values.c: types and values --------------------------------------------------------------------------------- */

LLVMTypeRef simt_type(Simt *s, const Type *type); /* of the element */
LLVMTypeRef simt_int_type(Simt *s, int bits);
int simt_bits(LLVMTypeRef type);
int simt_bytes(LLVMTypeRef type);       /* in memory: 1 for i1 */
int simt_registers(const Value *value); /* LLVM values that it has in each thread */
Tile *simt_new_tile(Simt *s, int count);
Tile *simt_tile(Simt *s, const Value *value);
LLVMValueRef simt_scalar(Simt *s, const Value *value);
void simt_set(Simt *s, const Value *value, Tile *tile);
void simt_set_scalar(Simt *s, const Value *value, LLVMValueRef scalar);
static inline LLVMValueRef simt_int(LLVMTypeRef type, int64_t value)
{
    return LLVMConstInt(type, (unsigned long long)value, 1);
}
static inline LLVMValueRef simt_i32(const Simt *s, int64_t value) { return simt_int(s->i32, value); }
LLVMBasicBlockRef simt_new_block(Simt *s, const char *name);
/* What follows runs only where the predicate holds (NULL: everywhere); returns the block to go on in. */
LLVMBasicBlockRef simt_enter_where(Simt *s, LLVMValueRef predicate);
LLVMValueRef simt_and(Simt *s, LLVMValueRef a, LLVMValueRef b); /* of i1; NULL is true */
LLVMValueRef simt_intrinsic(Simt *s, const char *name, LLVMTypeRef *overloads, int overload_count,
                            LLVMValueRef const *arguments, int count);
LLVMValueRef simt_intrinsic1(Simt *s, const char *name, LLVMValueRef x); /* overloaded on x's type */
LLVMValueRef simt_intrinsic2(Simt *s, const char *name, LLVMValueRef x, LLVMValueRef y);
/* Of a function that is somewhere else, by its name. */
LLVMValueRef simt_call(Simt *s, const char *name, LLVMTypeRef result, LLVMValueRef const *arguments,
                       int count);
LLVMValueRef simt_string(Simt *s, const char *text,
                         unsigned space); /* ends in a zero; the address space's number */
void simt_add_attribute(Simt *s, const char *name, const char *value); /* to the kernel */
/* An integer as wide as the value (at least 8 bits), and back. */
LLVMValueRef simt_to_bits(Simt *s, LLVMValueRef value);
LLVMValueRef simt_from_bits(Simt *s, LLVMValueRef bits, LLVMTypeRef type);

/* ---- simt_dispatch.c: the walk ------------------------------------------------------------------------------------------ */

void simt_lower_region(Simt *s, const Region *region); /* its terminator excepted */
void simt_lower_op(Simt *s, const Op *op);

/* ---- simt_index.c: which elements a thread holds -------------------------------------------------------------------------- */

/* Where the builder stood when it went to the entry block. */
typedef struct Place {
    LLVMBasicBlockRef block;
    LLVMMetadataRef location;
} Place;
Place simt_go_to_entry(Simt *s);
void simt_come_back(Simt *s, Place place);
/* On the stack, once for the function, wherever it is used. */
LLVMValueRef simt_new_array(Simt *s, LLVMTypeRef type, int count);
/* Coordinate along `axis` of the element in a register: a per-thread base plus a constant. */
LLVMValueRef simt_coordinate(Simt *s, const LinearLayout *layout, int axis, int reg);
/* i1: the register's element lies in the logical shape; NULL when that is so for all threads. */
LLVMValueRef simt_in_bounds(Simt *s, const Type *type, const LinearLayout *layout, int reg);
LLVMValueRef simt_in_bounds_along(Simt *s, const Type *type, const LinearLayout *layout, int axis, int reg);
/* The tile with zeros beyond its logical shape. */
Tile *simt_without_padding(Simt *s, const Value *value);
/* i1: this thread is the first of those that hold the same elements; NULL when there are no copies. Registers that hold
 * copies: simt_is_register_copy. */
LLVMValueRef simt_is_first_copy(Simt *s, const LinearLayout *layout);
bool simt_is_register_copy(const LinearLayout *layout, int reg);
/* The sum of columns[i] over the set bits i of (lane, warp), times `scale`, as i32: offset that a linear map gives a
 * thread. columns: LANE bits, then WARP bits. */
LLVMValueRef simt_thread_offset(Simt *s, const uint64_t *columns, int lane_bits, int warp_bits,
                                int64_t scale);
/* sum + the sum of columns[i] over the set bits i of x; sum may be NULL, and the result is when nothing is added. */
LLVMValueRef simt_apply_columns(Simt *s, LLVMValueRef x, const uint64_t *columns, int count,
                                LLVMValueRef sum);
/* base + constant where the bits of the two never meet, else their exclusive or, moved to where the immediate can go. */
void simt_add_offset(Simt *s, const uint64_t *thread_columns, int count, LLVMValueRef base, uint64_t constant,
                     int64_t scale, LLVMValueRef *address, int64_t *immediate);
/* The same behind the place of a buffer. */
void simt_add_offset_in(Simt *s, const Value *buffer, const uint64_t *thread_columns, int count,
                        LLVMValueRef base, uint64_t constant, int64_t scale, LLVMValueRef *address,
                        int64_t *immediate);

/* ---- simt_integers.c: arithmetic that keeps constants on the outside, so that they end up in addresses ----------------- */

LLVMValueRef simt_add(Simt *s, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef simt_sub(Simt *s, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef simt_mul(Simt *s, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef simt_shl(Simt *s, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef simt_add_constant(Simt *s, LLVMValueRef a, int64_t constant);
LLVMValueRef simt_addptr(Simt *s, LLVMValueRef pointer, LLVMValueRef offset, int64_t element_bytes);
/* value = *base + the result; *base is NULL when value is constant. */
int64_t simt_peel(LLVMValueRef value, LLVMValueRef *base);
/* pointer = *base + the result. */
int64_t simt_peel_pointer(LLVMValueRef pointer, LLVMValueRef *base);
int simt_known_zeros(const Simt *s, LLVMValueRef value); /* how many zero bits it ends with, at least */
LLVMValueRef simt_compare(Simt *s, Opcode opcode, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef simt_divide(Simt *s, const Op *op, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef simt_shift(Simt *s, Opcode opcode, LLVMValueRef a, LLVMValueRef b);

/* ---- simt_elementwise.c, simt_math.c, simt_casts.c ---------------------------------------------------------------------- */

/* `count` sets of operands at once: results[i] = op(operands[0][i], operands[1][i], ...). */
typedef struct Batch {
    const Op *op;
    int count;
    LLVMValueRef *operands[4]; /* extern_call: as many as it has, up to four */
    LLVMValueRef *results;
} Batch;
void simt_elementwise(Simt *s, const Op *op);
void simt_math(Simt *s, Batch *batch);
void simt_extern_call(Simt *s, Batch *batch);
void simt_float_cast(Simt *s, Batch *batch);
void simt_int_float_cast(Simt *s, Batch *batch);
/* The results that are had by computing with words of bytes; the others stay NULL. */
void simt_compute_words(Simt *s, Batch *batch);
LLVMValueRef simt_cast_scalar(Simt *s, LLVMValueRef value, const Type *from, const Type *to); /* floats */
LLVMValueRef simt_pair(Simt *s, LLVMValueRef low, LLVMValueRef high);                         /* a vector */
bool simt_has_arithmetic(const Simt *s,
                         const Type *type); /* of f16 or bf16, in hardware; true for wider ones */

void simt_inline_asm(Simt *s, const Op *op); /* simt_asm.c */

/* ---- simt_memory.c, simt_atomics.c ---------------------------------------------------------------------------------------- */

void simt_load(Simt *s, const Op *op);
void simt_store(Simt *s, const Op *op);
void simt_atomic(Simt *s, const Op *op);
void simt_clock(Simt *s, const Op *op);
/* Elements packed into words and back, for an access. */
void simt_pack(Simt *s, LLVMValueRef const *elements, int count, int element_bytes, const Access *access,
               LLVMValueRef *words);
void simt_unpack(Simt *s, LLVMValueRef const *words, const Access *access, int count, int element_bytes,
                 LLVMTypeRef type, LLVMValueRef *elements);
void simt_set_words(Access *access, int bytes);
/* An access of nothing, to pack into and unpack from registers by. */
Access simt_register_access(int bytes);

/* ---- simt_shared.c: scratch, conversions between layouts -------------------------------------------------------------------- */

/* Access of `bytes` in the shared memory at this i32 offset plus a constant. */
Access simt_shared_access(LLVMValueRef offset, int64_t constant, int bytes);
LLVMValueRef simt_shared_load(Simt *s, LLVMValueRef offset, int64_t constant, LLVMTypeRef type);
void simt_shared_store(Simt *s, LLVMValueRef offset, int64_t constant, LLVMValueRef value,
                       LLVMValueRef predicate);
/* `count` neighbours at once: a power of two, 16 bytes at most. */
void simt_shared_load_vector(Simt *s, LLVMValueRef offset, int64_t constant, int count, LLVMTypeRef type,
                             LLVMValueRef *elements);
void simt_shared_store_vector(Simt *s, LLVMValueRef offset, int64_t constant, int count,
                              LLVMValueRef const *elements, LLVMValueRef predicate);
/* Counts a barrier, a wait or a fence. Is the code to have it? Tests leave one out. */
bool simt_has_next_sync(Simt *s);
/* All threads of the program meet, and see what the others wrote. */
void simt_sync(Simt *s);
/* One side of an exchange: where the registers of a layout lie in the memory that both sides know. */
typedef struct SharedSide {
    const LinearLayout *layout;
    const uint64_t *offsets;   /* columns for register, lane and warp bits, in elements */
    const uint32_t *registers; /* register masks of the vector's bits */
    int vector_bits;
    LLVMValueRef base;   /* of the thread, in bytes */
    const Value *buffer; /* behind whose place all of it lies; NULL: 0 */
    int element_bytes;
    const Attr *part; /* what is loaded, if not all */
} SharedSide;
/* Is the register, in some thread, of the part [axis, first, end]? NULL: all are. */
bool simt_is_in_part(const LinearLayout *layout, const Attr *part, int reg);
void simt_store_side(Simt *s, const SharedSide *side, const Tile *tile, int64_t scratch);
Tile *simt_load_side(Simt *s, const SharedSide *side, LLVMTypeRef type, int64_t scratch);
/* Through `room` bytes at `scratch`, in halves if these are fewer than the tile's. */
Tile *simt_convert(Simt *s, const Tile *tile, const Type *type, const LinearLayout *from,
                   const LinearLayout *to, int64_t scratch, int64_t room);
LLVMValueRef simt_shuffle_xor(Simt *s, LLVMValueRef value, int mask); /* of any type */
LLVMValueRef simt_shuffle_index(Simt *s, LLVMValueRef value, LLVMValueRef lane);

/* ---- simt_pairs.c: sums in fp16 --------------------------------------------------------------------------------------------- */

void simt_find_pairs(Simt *s, const Function *function);
/* The value's tile with two elements in a register, i32, where they are in pairs; else as it is. And back. */
Tile *simt_to_words(Simt *s, const Value *value, Tile *tile);
Tile *simt_from_words(Simt *s, const Value *value, Tile *words);

/* ---- simt_buffers.c, simt_mma.c, simt_wgmma.c ------------------------------------------------------------------------------- */

/* Offsets in a buffer, in elements, of each bit of a place. */
void simt_memory_columns(const LinearLayout *places, const LinearLayout *memory, uint64_t columns[64]);
void simt_smem_alloc(Simt *s, const Op *op);
void simt_smem_view(Simt *s, const Op *op);
void simt_smem_load(Simt *s, const Op *op);
void simt_smem_store(Simt *s, const Op *op);
void simt_async_copy(Simt *s, const Op *op);
/* simt_block_copies.c; first which tensor maps the kernel needs. */
void simt_find_maps(Simt *s, const Function *function);
void simt_mbarrier(Simt *s, const Op *op);
void simt_tensor_copy(Simt *s, const Op *op);
void simt_async_commit(Simt *s);
void simt_async_wait(Simt *s, const Op *op);
void simt_mma(Simt *s, const Op *op);
/* A word of f32, the magnitude greater by so many `units` in the last place (tf32.c). */
LLVMValueRef simt_raised(Simt *s, LLVMValueRef word, int64_t units);
void simt_wgmma(Simt *s, const Op *op);
void simt_wgmma_wait(Simt *s, const Op *op);

/* ---- the others -------------------------------------------------------------------------------------------------------------- */

void simt_shape(Simt *s, const Op *op); /* simt_shape.c */
/* Stores a tile's elements in the scratch, each at its number: constant + the sum of coordinates times strides. */
void simt_store_numbered(Simt *s, const Value *value, const int64_t *strides, int64_t constant,
                         int64_t scratch);
void simt_gather(Simt *s, const Op *op); /* simt_gather.c */
void simt_histogram(Simt *s, const Op *op);
void simt_reduce(Simt *s, const Op *op); /* simt_reduce.c */
void simt_extract(Simt *s, const Op *op);
void simt_scan(Simt *s, const Op *op); /* simt_scan.c */
void simt_dot(Simt *s, const Op *op);  /* simt_dot.c */
void simt_for(Simt *s, const Op *op);  /* simt_control.c */
void simt_while(Simt *s, const Op *op);
void simt_if(Simt *s, const Op *op);
/* The warpgroup's number within the program, the same for all its threads and known to be so. */
LLVMValueRef simt_warpgroup(Simt *s);
void simt_print(Simt *s, const Op *op); /* simt_effects.c */
void simt_assert(Simt *s, const Op *op);
void simt_assume(Simt *s, const Op *op);

/* ---- simt_strips.c: large tiles, a strip at a time; where there are none, the first six do nothing -------------------------- */

void simt_begin_strips(Simt *s);
void simt_finish_strips(Simt *s);
/* Around what threads do only together: meeting at a barrier, branching where they will meet inside. */
void simt_leave_phase(Simt *s);
void simt_enter_phase(Simt *s);
bool simt_meets(const Simt *s, const Op *op);               /* do threads meet in its regions? */
void simt_share_between_strips(Simt *s, LLVMValueRef phi);  /* one between phases that counts iterations */
LLVMValueRef simt_is_last_strip(Simt *s);                   /* i1; NULL outside of phases */
int simt_phase(const Simt *s);                              /* number; 0 outside */
bool simt_is_made_again(const Simt *s, const Value *value); /* where it is wanted, in this phase */
void simt_begin_nested(Simt *s, const Op *op);              /* a loop or branch within the phase */
void simt_end_nested(Simt *s);

/* ---- simt_combine.c: the region of a reduce or scan ---------------------------------------------------------------------- */

typedef struct Combine {
    const Op *op;
    int count;     /* operands */
    Opcode single; /* the region is this one operation on its two arguments; TT_OPCODES when it is not */
    LLVMValueRef neutral; /* of `single`; NULL when none is known */
} Combine;
/* A value for each operand; `valid` (i1; NULL: true) tells whether there is one. */
typedef struct Partial {
    LLVMValueRef at[TT_MAX_COMBINED];
    LLVMValueRef valid;
} Partial;
Combine simt_combine_of(Simt *s, const Op *op);
Partial simt_combine(Simt *s, const Combine *combine, Partial first, Partial second);
/* The value of a register, neutral or not valid where the tile is padding. */
Partial simt_partial_of(Simt *s, const Combine *combine, Tile *const *tiles, int reg);
Partial simt_shuffled(Simt *s, const Combine *combine, Partial partial, int mask);
Partial simt_partial_from(Simt *s, const Combine *combine, Partial partial, LLVMValueRef lane);
/* Combines each partial with those of the strips whose numbers differ in the bits `folded` of the warp, lowest first. */
void simt_fold_strips(Simt *s, const Combine *combine, uint32_t folded, Partial *partials, int count);

/* ---- simt_lower.c ------------------------------------------------------------------------------------------------------------- */

/* What the kernel may fail with is left in `kernel` if that is not NULL. Returns how many synchronisations it has. */
int tt_lower_kernel(Codegen *codegen, Module *module, const GpuOptions *options, const TargetOps *ops,
                    GpuKernel *kernel);
