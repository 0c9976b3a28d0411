/* The one place where SIMT lowering depends on what runs the code: everything that is not plain arithmetic on LLVM
 * values. nvptx_ops.c spells it as NVVM intrinsics and inline PTX, a simulator as calls into its machine. */
#pragma once
#include "gpu/passes.h"
#include <llvm-c/Core.h>

typedef struct Simt Simt;

typedef enum MemorySpace { GLOBAL_MEMORY = 1, SHARED_MEMORY = 3 } MemorySpace;

/* One access of a thread: `words` words of `word_bits` (8, 16, 32, 64) next to each other, aligned to their sum. */
typedef struct Access {
    MemorySpace space;
    LLVMValueRef
        address; /* GLOBAL: pointer in address space 1; SHARED: i32 offset in the program's shared memory */
    int64_t offset; /* in bytes, added */
    int word_bits, words;
    LLVMValueRef predicate; /* i1: accesses nothing when false; NULL: always accesses */
    const char *cache;      /* ".ca", ".cg", ...; NULL: the default */
    const char *evict;      /* "evict_first", ...; NULL */
    bool is_volatile;
    bool reads_around; /* more than was asked for, in the same aligned words: what there is of it */
    const char *order; /* of one word: an atomic access, ".acquire.gpu" and the like; NULL: a plain one */
} Access;

typedef enum AtomicKind {
    ATOMIC_ADD,
    ATOMIC_FADD,
    ATOMIC_MIN_S,
    ATOMIC_MAX_S,
    ATOMIC_MIN_U,
    ATOMIC_MAX_U,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_XCHG,
    ATOMIC_CAS,
    ATOMIC_LOAD,
    ATOMIC_STORE, /* no result */
    ATOMIC_KINDS,
} AtomicKind;

typedef struct Atomic {
    AtomicKind kind;
    Access access;               /* one word; space, address, offset, predicate */
    TypeKind type;               /* of the operand: TT_I16 to TT_F64 */
    const char *sem;             /* "relaxed", "acquire", "release", "acq_rel" */
    const char *scope;           /* "cta", "gpu", "sys" */
    LLVMValueRef value, compare; /* in the LLVM type of `type`; compare for CAS */
    bool result_unused;
} Atomic;

/* Text in the target's assembly language, with constraints as in LLVM's language reference. */
typedef struct Assembly {
    const char *text, *constraints;
    LLVMTypeRef result; /* a struct when there are several */
    bool has_effect;    /* beyond the result */
} Assembly;

/* ---- tensor cores. Words are i32, filled with elements from the low bits up; which lane holds which elements is what the
 * PTX ISA says ("Matrix Fragments for mma.m16n8k*", "Register Fragments for wgmma.mma_async"). TT_F32 as an operand's type
 * is tf32. ------------------------------------------------------------------------------------------------------------- */

/* A product of a warp: 16 x K by K x 8, where K is 32 bytes of elements (f64: 8 elements). Four words of a and two of b
 * (of f64: values instead of words); four sums: f32, i32 or f64; of f16 two words, each of a row's. */
typedef struct Mma {
    TypeKind a, b, sum;
} Mma;

/* Products of a warpgroup, whose sums are not to be touched until they are waited for: 64 x K by K x n, in steps of K that
 * have 32 bytes. a lies in shared memory (a_words is NULL) or in registers, b in shared memory. The matrices in shared memory
 * are described as in the PTX ISA, "Matrix descriptor". */
typedef struct Wgmma {
    TypeKind a, b, sum;
    int n, steps;
    LLVMValueRef *a_words;                 /* four of each step, or NULL */
    LLVMValueRef *a_matrices, *b_matrices; /* i64, of each step */
    bool a_is_transposed, b_is_transposed; /* M, or N, is contiguous in shared memory, not K */
    bool adds;                             /* the old sums are added; false: they are not read */
    LLVMValueRef *sums; /* n / 2 of f32 or i32, or n / 4 words of f16: before, then after */
} Wgmma;

static inline int tt_wgmma_sums(const Wgmma *w) { return w->sum == TT_F16 ? w->n / 4 : w->n / 2; }

typedef struct TensorOps {
    /* 8 x 8 matrices of 16-bit elements from and to shared memory: lanes 8 i .. 8 i + 7 give the places (i32, plus a
     * constant) of the rows of matrix i, 16 bytes each; every lane gets a word of each of `count` (1, 2, 4) matrices. */
    void (*load_matrices)(Simt *s, LLVMValueRef place, int64_t constant, int count, bool transposed,
                          LLVMValueRef *words);
    void (*store_matrices)(Simt *s, LLVMValueRef place, int64_t constant, int count, bool transposed,
                           LLVMValueRef const *words);
    bool (*has_store_matrices)(const Simt *s);
    void (*mma)(Simt *s, const Mma *mma, LLVMValueRef const *a, LLVMValueRef const *b, LLVMValueRef *sums);
    LLVMValueRef (*shared_base)(
        Simt *s); /* i32: address of the program's shared memory, for matrices; NULL: 0 */
    /* Before the first of several products in a row: the registers they use are settled. */
    void (*wgmma_begin)(Simt *s);
    /* Before that: sums in other registers, for the program has uses for those that they are in; NULL: no need to. */
    void (*wgmma_move)(Simt *s, LLVMValueRef *sums, int count);
    void (*wgmma)(Simt *s, const Wgmma *wgmma);
    void (*wgmma_commit)(Simt *s); /* those since the last commit are a group */
    /* All but the `left` youngest groups are done. The sums of groups in flight pass through it. */
    void (*wgmma_wait)(Simt *s, int left, LLVMValueRef *sums, int count);
} TensorOps;

/* A block of an array of two dimensions into shared memory, as the map says, from `offsets` on (i32, elements; they may lie
 * outside): zeros beyond the array's edges. The simulator has no map, and takes the array as it is. */
typedef struct BlockCopy {
    const TensorMap *map;
    int number;         /* of the map */
    LLVMValueRef place; /* i32, plus the constant: of the box */
    int64_t constant;
    LLVMValueRef barrier;            /* i32: its place */
    LLVMValueRef predicate;          /* i1: of one thread at most */
    LLVMValueRef base;               /* of the array: place chunks of 16 bytes behind what the map is of */
    LLVMValueRef array_place;        /* i32; NULL: 0, and the map has no places */
    LLVMValueRef extents[2], stride; /* i64: rows, columns; from row to row, in elements */
    LLVMValueRef offsets[2];
} BlockCopy;

/* Copies from global to shared memory that go on while the thread does other things. */
typedef struct AsyncOps {
    /* `bytes`: 4, 8 or 16, at addresses that are multiples of it. Where the i1 `predicate` (NULL: true) is false zeros are
     * stored and nothing is read; where that of `hints` is false nothing happens. `hints`: to which caches besides. */
    void (*copy)(Simt *s, LLVMValueRef place, int64_t constant, LLVMValueRef pointer, int bytes,
                 LLVMValueRef predicate, const Access *hints);
    void (*commit)(Simt *s);         /* those since the last commit are a group */
    void (*wait)(Simt *s, int left); /* all but the `left` youngest groups of this thread have landed */
    /* What this thread stored in shared memory is seen by tensor cores that read it there, after a barrier. (Of copies that
     * were waited for they see it without.) */
    void (*fence_proxy)(Simt *s);
    /* Barriers (PTX ISA, "mbarrier") at which blocks arrive, `count` of them at places so far apart, made and ended by the one
     * thread with the i1 `predicate`: each for one arrival, which announces bytes. */
    void (*set_barriers)(Simt *s, LLVMValueRef place, int count, int64_t distance, LLVMValueRef predicate,
                         bool begin);
    void (*expect)(Simt *s, LLVMValueRef barrier, int64_t bytes, LLVMValueRef predicate);
    /* Until the phase of this parity, i32, has ended. */
    void (*await)(Simt *s, LLVMValueRef barrier, LLVMValueRef phase);
    void (*copy_block)(Simt *s, const BlockCopy *copy);
} AsyncOps;

typedef struct TargetOps {
    /* Adds s->function, of which `function` becomes the body, and whatever holds the shared memory. */
    void (*add_kernel)(Simt *s, const Function *function);
    void (*begin)(Simt *s);                                      /* what comes before the body */
    LLVMValueRef (*param)(Simt *s, LLVMTypeRef type, int index); /* i1 as a byte */
    LLVMValueRef (*thread_id)(Simt *s);                          /* i32, 0 .. 32 * warps - 1 */
    LLVMValueRef (*program_id)(Simt *s, int axis);
    LLVMValueRef (*num_programs)(Simt *s, int axis);
    LLVMValueRef (*clock)(Simt *s); /* i64, the nanoseconds of OP_clock as one thread sees them */
    void (*barrier)(Simt *s);       /* all threads of the program, in one place; orders memory */
    void (*meet)(Simt *s);          /* the same in places of their own; each warp in one */
    void (*warp_sync)(Simt *s);     /* all threads of the warp; orders memory */
    /* In all threads, before tt_releases(s->op) and after tt_acquires(s->op): the barriers that these need are there, and
     * a simulator sees to it that they are. NULL: nothing to do. */
    void (*releases)(Simt *s);
    void (*acquired)(Simt *s);

    /* Between the lanes of a warp, all of which take part; `word` is an i32. */
    LLVMValueRef (*shuffle_xor)(Simt *s, LLVMValueRef word, int mask);
    LLVMValueRef (*shuffle_index)(Simt *s, LLVMValueRef word, LLVMValueRef lane);
    /* The combination over all lanes, in each: `opcode` is an integer operation of ops.def. NULL: no instruction. */
    LLVMValueRef (*reduce_warp)(Simt *s, Opcode opcode, LLVMValueRef word);

    /* Words are integers of word_bits. `other`: what a false predicate gives, a value for each word, or NULL (then it
     * gives anything). */
    void (*load)(Simt *s, const Access *access, LLVMValueRef const *other, LLVMValueRef *words);
    void (*store)(Simt *s, const Access *access, LLVMValueRef const *words);
    /* Can the kind run on this type as one operation? Others become loops around ATOMIC_CAS.
     * Loads and stores run on all. */
    bool (*has_atomic)(const Simt *s, AtomicKind kind, TypeKind type);
    LLVMValueRef (*atomic)(Simt *s, const Atomic *atomic); /* the old value; NULL when unused */
    /* How many neighbours one ATOMIC_FADD can add to: a power of two. */
    int (*widest_addition)(const Simt *s, TypeKind type);
    /* Adds to so many, more than one; `atomic` says how, but for the access's words and the value. */
    void (*add_vector)(Simt *s, const Atomic *atomic, LLVMValueRef const *values, int count);
    /* What this thread does before is seen by others before what it does after, in a scope. */
    void (*fence)(Simt *s, const char *scope);

    /* The same word, of which LLVM knows nothing. */
    LLVMValueRef (*hide)(Simt *s, LLVMValueRef word);
    /* pointer + offset * bytes, of an offset narrower than a pointer. */
    LLVMValueRef (*move_pointer)(Simt *s, LLVMValueRef pointer, LLVMValueRef offset, int64_t bytes);
    /* What a loop carries, and so many bytes (i64) more; stays the addition that it is. */
    LLVMValueRef (*advance)(Simt *s, LLVMValueRef pointer, LLVMValueRef bytes);
    LLVMValueRef (*negate)(Simt *s, LLVMValueRef x); /* an integer */
    /* By one instruction, if the target has it for this operation of f32 or f64, 2 ulp off at most; exp2's results below the
     * normal range may become 0. NULL: it has none. */
    LLVMValueRef (*math)(Simt *s, Opcode opcode, LLVMValueRef const *operands);
    LLVMValueRef (*multiply_toward_zero)(Simt *s, LLVMValueRef a, LLVMValueRef b); /* f32 */
    LLVMValueRef (*saturate)(Simt *s, LLVMValueRef x); /* f32: 0 if below or no number, 1 if above */
    /* A function of the mathematical library by its base name ("acosh"); the result is f32 or f64. */
    LLVMValueRef (*library)(Simt *s, const char *name, LLVMTypeRef result, LLVMValueRef const *operands,
                            int count);
    /* One or two f32 rounded to a narrow format: a scalar or a vector of two. NULL when there is no instruction. */
    LLVMValueRef (*narrow)(Simt *s, TypeKind to, LLVMValueRef const *values, int count, bool toward_zero);
    /* An integer of 32 or 64 bits rounded to a narrow format. NULL when there is no instruction. */
    LLVMValueRef (*narrow_int)(Simt *s, TypeKind to, LLVMValueRef x, bool is_signed);
    /* Two fp8 in an i16, as f16. False when there is no instruction. */
    bool (*widen_fp8)(Simt *s, TypeKind from, LLVMValueRef pair, LLVMValueRef *halves);

    LLVMValueRef (*assembly)(Simt *s, const Assembly *assembly, LLVMValueRef const *operands, int count);

    /* printf with the arguments promoted as in C; format is a compile-time string. */
    void (*print)(Simt *s, const char *format, LLVMValueRef const *arguments, int count);
    /* Debug: ends the thread once another one has failed, for which it might wait without end. */
    void (*stop_after_failure)(Simt *s);
    /* Reports and stops the launch; control does not come back. `values`: two i64 for the message. */
    void (*fail)(Simt *s, const Failure *failure, LLVMValueRef const values[2]);
    const TensorOps *tensor;
    const AsyncOps *async;
} TargetOps;

extern const TargetOps tt_nvptx_ops, tt_sim_ops;
