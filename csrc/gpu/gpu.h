/* gpu: tile IR to PTX. The passes of design.md §8 in order (pipeline in compile.c), then the SIMT lowering, where a
 * tile is an array of LLVM scalars in each thread. */
#pragma once
#include "codegen/codegen.h"
#include "gpu/tensor_map.h"
#include "opt/opt.h"

typedef struct GpuOptions {
    int sm;          /* compute capability: 75, 80, 86, 89, 90, 100, 120, ... */
    int ptx_version; /* 83: PTX 8.3. 0: the oldest with everything that sm has */
    int num_warps;   /* a power of two, 1 to 32; where tiles are cut into strips, times their number */
    int strips;      /* that each warp does one after the other; 0: one. The compiler's own: see strips.c */
    int num_stages;
    int most_stages; /* of any loop, where the rest would not fit beside more; 0: what they ask for. The compiler's own */
    int spared_bytes; /* of shared memory, that loops leave which load further ahead than was asked for. The compiler's own */
    const char
        *source; /* the module's text with its places, to begin again from with fewer stages; NULL: none */
    int max_registers;     /* a thread; 0: no limit asked for */
    bool enable_fp_fusion; /* a * b + c may be rounded once */
    bool debug;            /* a failed assertion leaves a record (below); else it ends the context */
    bool early;            /* launched while the kernel before still runs, for which it has to wait */
    bool waits_as_written; /* if it is: where the program says so, in case that it does */
    const char *libdevice; /* path of libdevice's bitcode; NULL: looked for when it is needed */
    bool texts;            /* are wanted: ttgir and llir */
    bool locations;        /* of operations, in ttgir */
    int left_out; /* for tests of the tests: the synchronisation, counted from 1, that the code lacks; 0: none */
    uint64_t
        padding; /* for tests: what elements outside of a tile's shape are filled with; 0: with anything */
} GpuOptions;

enum { TT_DEFAULT_STAGES = 3 /* of a kernel for which nobody asked for any */ };
enum { FULL_EFFORT = 4 }; /* the highest of the driver's levels of optimisation */

/* Owned by the arena that it was compiled in. */
typedef struct GpuKernel {
    const char *name;  /* of the entry */
    const char *ptx;   /* one kernel parameter for each parameter of the IR */
    const char *llir;  /* LLVM IR after its passes, if texts are wanted */
    const char *ttgir; /* tile IR with layouts, scratch and barriers, likewise */
    int shared_bytes;  /* of dynamic shared memory to launch with */
    int num_warps;
    int effort; /* that the driver's compiler is to spend, of FULL_EFFORT */
    /* Debug: the kernel has one more parameter, the address of a zeroed FailureRecord in device memory. The first thread
     * whose assertion fails fills it in; failing threads end. `message` counts from 1 in `failures`. */
    Failure *failures;
    int failure_count;
    TensorMap *maps; /* a parameter each, behind those of the IR */
    int map_count;
} GpuKernel;

typedef struct FailureRecord {
    int32_t message, program[3];
    int64_t values[2];
} FailureRecord;

/* Compiles the module's kernel; changes the module (layouts, calls inlined). Raises diagnostics. GIL not needed. */
GpuKernel *tt_gpu_compile(Module *module, const GpuOptions *options, Arena *arena);

/* What is known of a kernel after its passes, without its code. */
typedef struct GpuEstimate {
    int shared_bytes, registers; /* of a program; of a thread, by its tiles alone */
    int ahead;                   /* iterations that loads of a loop are ahead at most */
    bool on_tensor_cores;        /* has it products there? */
    Digest code;                 /* the same means that the code is */
    const Module *module;        /* after the passes */
} GpuEstimate;
GpuEstimate tt_gpu_estimate(Module *module, const GpuOptions *options);

/* The same SIMT code for the simulator: a SimEntry in an object file of this machine, which calls what tt_sim_symbol
 * knows. */
typedef struct SimKernel {
    HostObject object;
    const char *llir, *ttgir; /* as above */
    int shared_bytes, num_warps;
    int stack_bytes;      /* a thread needs at most */
    int synchronisations; /* in the code: barriers (syncs of the one warp), waits and fences */
} SimKernel;
SimKernel *tt_gpu_compile_for_simulator(Module *module, const GpuOptions *options, Arena *arena);

/* Runs the pipeline up to and including the pass called `name`. TT_USER_ERROR when there is none. */
void tt_gpu_run_passes(Module *module, const char *last, const GpuOptions *options);
