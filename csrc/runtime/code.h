/* code: a compiled kernel on whichever target runs it. The one place that knows all targets: it turns tile IR that the
 * machine-independent pipeline has seen into machine code, and launches that. GIL not needed. */
#pragma once
#include "ir/ir.h"
#include "runtime/apart.h"

typedef enum TargetKind { TARGET_CPU, TARGET_CUDA, TARGET_SIM, TARGET_KINDS } TargetKind;
typedef struct Target {
    TargetKind kind;
    int sm; /* compute capability, 90 for 9.0; 0 on the CPU */
} Target;

/* "cpu", "cuda:90", "sim:90". False when it is none; a sm of 0 in "cuda" is for the caller to fill in. */
bool tt_target_parse(const char *name, Target *target);
const char *tt_target_name(Target target, char out[16]);

typedef struct CodeOptions {
    Target target;
    int num_warps, num_stages, num_ctas;
    int max_registers; /* a thread; 0: no limit asked for */
    bool debug;        /* assertions are checked */
    bool traps; /* one that fails on CUDA ends the context; the kernel has no parameter for a record of it */
    bool no_fusion;      /* a product and a sum are never one fma unless the program says so */
    bool cooperative;    /* all programs run at the same time, or the launch fails */
    bool early;          /* blocks may be set up while the kernel before still runs */
    const char *choices; /* see Module.asked_choices; not looked at on the CPU */
    int left_out;        /* GpuOptions.left_out; only tests set it */
} CodeOptions;

typedef struct Code Code;

/* Raises diagnostics. The module is changed, and not needed afterwards. */
Code *tt_code_compile(Module *module, const CodeOptions *options, Arena *arena);
void tt_code_release(Code *code);
Target tt_code_target(const Code *code);

typedef struct CodeFacts {
    double lowering_milliseconds; /* of the time that compiling took; the rest was LLVM's */
    int64_t shared;               /* bytes of fast memory a program keeps */
    int synchronisations;         /* simulator: places in the code where threads wait for each other */
} CodeFacts;
CodeFacts tt_code_facts(const Code *code);

/* What is known once the code is on a device. */
typedef struct LoadedFacts {
    int registers, spills, max_threads;
    void *function, *module; /* the driver's handles; on the CPU the entry, and NULL */
} LoadedFacts;
LoadedFacts tt_code_load(Code *code, int device, Arena *arena);

/* The tile IR that the code was made from, with places in the source: tt_code_compile makes the same code of it. */
const char *tt_code_source(const Code *code);
/* Names of the stages whose text or bytes can be asked for, NULL at the end. */
const char *const *tt_code_stages(const Code *code);
/* In `arena` or the code's own memory; NULL for no such stage. *size is its length. "cubin" is bytes. */
const char *tt_code_stage(Code *code, const char *stage, int device, Arena *arena, size_t *size);

typedef struct Place {
    int device;
    void *stream;         /* CUDA */
    void *const *awaited; /* CUDA: streams whose work so far comes first */
    int awaited_count;
    const uint64_t
        *ranges; /* simulator: begin and end of the memory behind each pointer, in the order of arguments */
    int range_count;
    Interrupt *
        interrupt; /* CPU and simulator, in the process's first thread: asked about every 50 ms; NULL: nobody */
} Place;
typedef struct LaunchResult {
    FailureText failure; /* of a program (a failed assertion, ...) */
    const char *printed; /* by the programs, or NULL */
} LaunchResult;
/* On the CPU returns when all programs are done (or left, when the launch is interrupted), on CUDA when they are enqueued. Texts are in `arena`; refusals of the
 * driver are raised. */
LaunchResult tt_code_launch(Code *code, Place place, const uint64_t *args, const int32_t grid[3],
                            Arena *arena);
