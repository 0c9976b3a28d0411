/* cpu: tile IR to native code for this machine, and running a grid of it. */
#pragma once
#include "opt/opt.h"

/* A compiled kernel; owns its machine code. Arguments are 64-bit slots in parameter order: pointers, integers
 * sign-extended, floats as the bits of their own type in the low bytes. */
typedef struct CpuKernel CpuKernel;

typedef struct CpuOptions {
    bool debug;     /* bounds, overflow and assertion checks */
    bool no_fusion; /* a product and a sum are never one fma unless the program says so */
} CpuOptions;

/* Consumes nothing; the module may be printed afterwards. Raises diagnostics. GIL not needed. */
CpuKernel *tt_cpu_compile(Module *module, const CpuOptions *options, Arena *arena);
void tt_cpu_release(CpuKernel *kernel);
/* Tile IR after the passes ("ttir"), LLVM IR ("llir") or assembly ("asm"), made on request in `arena`; NULL for another
 * `what`. */
const char *tt_cpu_text(const CpuKernel *kernel, const char *what, Arena *arena);

/* The tile IR with its places, from which the same kernel can be compiled again. */
const char *tt_cpu_source(const CpuKernel *kernel);
void *tt_cpu_entry(const CpuKernel *kernel);
/* "kernel.py:12" and the calls that lead there, for an instruction of its code; NULL where that is unknown. */
const char *tt_cpu_place(const CpuKernel *kernel, uintptr_t instruction, Arena *arena);

typedef struct CpuFacts {
    double lowering_milliseconds; /* of the time that compiling took; the rest was LLVM's */
    size_t scratch_size;          /* bytes that a program keeps beside its registers */
} CpuFacts;
CpuFacts tt_cpu_facts(const CpuKernel *kernel);

typedef struct Interrupt Interrupt;
/* runtime/cpu_launch.c: runs grid[0] * grid[1] * grid[2] programs on the thread pool and returns when all are done. No
 * text on success or when interrupted, else why it ended (failed assertion, fault, out of memory), allocated in `arena`.
 * What the programs printed is left in *printed (NULL: nothing), allocated in `arena` too. GIL not needed. */
FailureText tt_cpu_launch(CpuKernel *kernel, const uint64_t *args, const int32_t grid[3],
                          Interrupt *interrupt, Arena *arena, const char **printed);
