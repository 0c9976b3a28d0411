/* simulator: a simulator of the GPU's execution model, for GPU code compiled for the host.
 *
 * A block (CTA) runs on one host thread; its GPU threads are coroutines that switch only where GPU threads meet: block
 * barriers and warp collectives. Between two meetings a thread runs alone, so what the machine must find is not torn
 * data but missing order (order.h): two accesses of different threads of a block without a barrier between them, one a
 * write, are a race, in shared memory as in global memory. Asynchronous copies and products take effect as late as the
 * program's waits permit. Global memory is checked against the buffers of the launch.
 *
 * Generated code calls the tt_sim_ functions below with its SimThread; a SimSite says which Python line an access
 * belongs to. Errors end the launch: the first one is kept. */
#pragma once
#include "simulator/coroutine.h"
#include "support/guard.h"
#include "support/support.h"

enum { SIM_WARP = 32, SIM_WARPGROUP = 128, SIM_MAX_THREADS = 1024, SIM_BARRIERS = 16 };

/* When a thread did something. */
typedef struct SimMoment {
    uint32_t block_epoch, warp_epoch; /* see order.h; epochs begin with 1, so 0 is never */
} SimMoment;

typedef struct SimSite {
    const char *file;
    int32_t line, column;
    int32_t array;    /* whose pointer among the parameters an access of global memory goes through, or -1 */
    const char *what; /* "load", "convert_layout", ...: for messages */
} SimSite;

/* What generated code reads directly: keep the order of the fields up to `shared`. */
typedef struct SimThread {
    int32_t index; /* in the block */
    int32_t program[3], grid[3];
    char *shared; /* the block's shared memory */
    struct SimBlock *block;
    Coroutine coroutine;
    /* the meeting it waits at */
    enum { SIM_READY, SIM_AT_BARRIER, SIM_AT_COLLECTIVE, SIM_AT_MEETING, SIM_AT_ARRIVAL, SIM_DONE } state;
    int barrier;
    int collective;
    uint32_t mask;
    int argument;
    uint64_t value, result;
    const SimSite *site;
    SimMoment touched, acquired; /* global memory, last; another thread acquired for this one */
    const SimSite *touched_site, *acquired_site;
    _Alignas(16) char dummy[64];
    struct SimCopy *copies, **copies_end; /* asynchronous copies in flight, oldest first */
    int open_groups;
    int32_t fences, settled_fences; /* of the asynchronous proxy: made so far, and before the last barrier */
    uint32_t products, committed;   /* of a warpgroup: begun so far, and groups of them */
    bool begins;                    /* products may follow: registers are settled */
} SimThread;

typedef void SimEntry(SimThread *self, const uint64_t *args);

/* The memory behind a pointer among the parameters, which the kernel may touch through it. */
typedef struct SimBuffer {
    uint64_t start, end;
    const char *name; /* "the array 'x'" */
    int64_t element_bytes;
} SimBuffer;

typedef struct SimError {
    FailureKind kind;
    char message[1024];
    Failure check; /* one of the kernel's own that failed: then it has a message, for these values */
    int64_t values[2];
    int32_t program[3];
} SimError;

typedef struct SimLaunch {
    SimEntry *entry;
    size_t code_size; /* bytes of machine code from there on */
    const uint64_t *args;
    int32_t grid[3];
    int threads; /* a block; a multiple of 32 */
    int shared_bytes;
    int stack_bytes;          /* a thread */
    const SimBuffer *buffers; /* one for each pointer parameter, in their order */
    int buffer_count;
    uint64_t seed; /* 0: threads in order and copies as late as allowed; else a random choice of both */
    SimError error;
    Text *printed; /* by the programs; under `lock` */
    pthread_mutex_t lock;
    bool (*ask)(
        struct SimLaunch *launch); /* in the caller's thread: is the launch to end? NULL: nobody to ask */
    void *interrupt;               /* for it */
    pthread_t caller;
    void (*knock)(void);   /* at the guards of all threads that may run blocks */
    int32_t failed;        /* set once, atomically; then `error` says why */
    struct SimBlock *idle; /* that have ended: their memory serves the next ones; under `lock` */
} SimLaunch;

/* Runs one block to its end or to the launch's first error. Blocks may run on several host threads at once. */
void tt_sim_run_block(SimLaunch *launch, const int32_t program[3]);
/* Ends the launch if that is asked for; in the caller's thread. */
void tt_sim_ask(SimLaunch *launch);
/* Frees what the blocks had. */
void tt_sim_end(SimLaunch *launch);

/* ---- called by generated code --------------------------------------------------------------------------------------- */

/* bar.sync id, count (0: the whole block). */
void tt_sim_barrier(SimThread *self, int32_t id, int32_t count, const SimSite *site);
/* bar.warp.sync: orders the lanes of `mask`. */
void tt_sim_warp_sync(SimThread *self, uint32_t mask, const SimSite *site);
/* Thread 0 of the block is about to release, or has acquired, for all its threads: what another one did before must have
 * a barrier between, and so must what it does next. Called by all; `site` is NULL where it has not acquired yet. */
void tt_sim_release(SimThread *self, const SimSite *site);
int64_t tt_sim_clock(SimThread *self); /* nanoseconds */
void tt_sim_acquired(SimThread *self, const SimSite *site);
typedef enum SimCollective {
    SIM_SHUFFLE_XOR,
    SIM_SHUFFLE_UP,
    SIM_SHUFFLE_DOWN,
    SIM_SHUFFLE_INDEX,
    SIM_SYNC
} SimCollective;
/* shfl.sync over the full warp; `argument` is the mask, delta or lane. Up and down keep the own value at the edge. */
uint64_t tt_sim_shuffle(SimThread *self, int32_t mode, uint64_t value, int32_t argument, const SimSite *site);
typedef enum SimSpace { SIM_GLOBAL = 1, SIM_SHARED = 3 } SimSpace;
/* Around: the aligned bytes that what was asked for lies in. */
typedef enum SimAccess { SIM_READ, SIM_WRITE, SIM_ATOMIC, SIM_ATOMIC_READ, SIM_READ_AROUND } SimAccess;
/* Checks an access of `bytes` at an address of global memory or an offset in shared memory, and gives the place in host
 * memory to carry it out on: for a false predicate a dummy of 64 bytes. Atomics order themselves among each other. */
void *tt_sim_access(SimThread *self, int32_t space, uint64_t address, int32_t bytes, int32_t access,
                    int32_t predicate, const SimSite *site);
/* Carries out a store of `data`. Threads may write the same value to one byte of shared memory without order: copies of
 * a tile's element do. */
void tt_sim_store(SimThread *self, int32_t space, uint64_t address, int32_t bytes, int32_t access,
                  const void *data, int32_t predicate, const SimSite *site);
/* What LLVM calls where the host has no instruction: rounding to nearest even, the result in the low 16 bits. */
float tt_sim_float_to_bf16(float value);
float tt_sim_double_to_bf16(double value);
float tt_sim_double_to_f16(double value);
/* printf; each argument in a slot of 64 bits. */
void tt_sim_print(SimThread *self, const char *format, const uint64_t *arguments);

/* cp.async of 4, 8 or 16 bytes (0: none is issued), of which `source_bytes` come from memory and the rest are zero; commit_group;
 * wait_group n. */
void tt_sim_copy_async(SimThread *self, uint32_t offset, uint64_t address, int32_t bytes,
                       int32_t source_bytes, const SimSite *site);
void tt_sim_copy_commit(SimThread *self);
void tt_sim_copy_wait(SimThread *self, int32_t groups_left);
/* mbarrier.init for one arrival, or mbarrier.inval; arrive.expect_tx of so many bytes; try_wait.parity until it is true. */
void tt_sim_set_arrivals(SimThread *self, uint32_t offset, int32_t begin, int32_t predicate,
                         const SimSite *site);
void tt_sim_expect(SimThread *self, uint32_t offset, int32_t bytes, int32_t predicate, const SimSite *site);
void tt_sim_await(SimThread *self, uint32_t offset, int32_t phase, const SimSite *site);
/* An array of rows and columns, and a box of it, from the offsets on, whose 16-byte chunks are exchanged as cp.async.bulk.tensor does
 * for rows of 32, 64 or 128 bytes. */
typedef struct SimBlockCopy {
    int64_t base, rows, columns, stride; /* in elements */
    int64_t row, column;
    int64_t element_bytes, box_rows, row_bytes;
} SimBlockCopy;
/* cp.async.bulk.tensor.2d, whose bytes arrive at a barrier. */
void tt_sim_copy_block(SimThread *self, uint32_t offset, uint32_t barrier, const SimBlockCopy *block,
                       int32_t predicate, const SimSite *site);
/* fence.proxy.async: what this thread wrote to shared memory is there for products of a warpgroup, after a barrier. */
void tt_sim_fence_proxy(SimThread *self);

/* ---- tensor cores (tensor.c, wgmma.c). Fragments are those of the PTX ISA: "Matrix fragments for mma.m16n8k*" and
 * "Register fragments for wgmma.mma_async". ------------------------------------------------------------------------------ */

/* Operands' elements. Sums are i32 (of I8), f64 (of F64) or f32. */
typedef enum SimElement { SIM_F16, SIM_BF16, SIM_TF32, SIM_I8, SIM_E4M3, SIM_E5M2, SIM_F64 } SimElement;
/* ldmatrix and stmatrix of `count` 8 x 8 matrices of 16-bit elements: lane 8 i + r has the offset of row r of matrix i.
 * A word for each matrix. */
void tt_sim_load_matrices(SimThread *self, uint32_t offset, int32_t count, int32_t transposed,
                          uint32_t *words, const SimSite *site);
void tt_sim_store_matrices(SimThread *self, uint32_t offset, int32_t count, int32_t transposed,
                           const uint32_t *words, const SimSite *site);
/* What a lane gives to mma.sync m16n8k(32 bytes), each register in the low bits of its own. */
typedef struct SimMma {
    uint64_t a[4], b[2], sums[4]; /* in_halves: two words of sums in fp16, two of a row in each */
} SimMma;
void tt_sim_mma(SimThread *self, int32_t a, int32_t b, int32_t in_halves, SimMma *mma, const SimSite *site);

/* What a thread gives to wgmma m64nNk(32 bytes). */
typedef struct SimWgmma {
    uint64_t a_matrix, b_matrix; /* descriptors */
    uint32_t adds, in_halves;    /* in_halves: sums in fp16, two of a row in a word */
    uint32_t a_words[4];         /* read if a is in registers */
    uint32_t sums[128];          /* n / 2 of them, or n / 4 words in_halves; read if adds */
} SimWgmma;
typedef enum SimMajor { SIM_K_MAJOR, SIM_MN_MAJOR, SIM_IN_REGISTERS } SimMajor;
/* wgmma.fence: products of the next group may use the registers as they are. Those that add to the sums of a product before
 * can do without if they take nothing else from registers. */
void tt_sim_wgmma_begin(SimThread *self);
/* The sums become tickets (signaling NaNs, as floats), which only a further product or the wait makes numbers of. */
void tt_sim_wgmma(SimThread *self, int32_t a, int32_t b, int32_t n, int32_t a_major, int32_t b_major,
                  SimWgmma *product, const SimSite *site);
void tt_sim_wgmma_commit(SimThread *self);
/* Carries out the groups but the youngest `groups_left`; where their tickets are among `sums` the results come in place. */
void tt_sim_wgmma_wait(SimThread *self, int32_t groups_left, uint32_t *sums, int32_t count,
                       const SimSite *site);

/* Ends the thread if the launch has failed. */
void tt_sim_stop_after_failure(SimThread *self);
/* Ends the launch: a check that the kernel makes did not hold. The texts outlive the launch. */
void tt_sim_fail_check(SimThread *self, int32_t kind, const char *place, const char *message, int64_t first,
                       int64_t second);

/* ---- symbols.c ------------------------------------------------------------------------------------------------------ */

/* What generated code calls by this name: one of the functions above, or of the C library. NULL: nothing. */
void *tt_sim_symbol(const char *name);
