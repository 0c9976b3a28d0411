/* cpu: tile IR to native code for this machine, and running a grid of it. */
#pragma once
#include "opt/opt.h"

typedef struct CpuOptions {
    bool debug;     /* bounds, overflow and assertion checks */
    bool no_fusion; /* a product and a sum are never one fma unless the program says so */
} CpuOptions;

/* A compiled kernel as plain data. */
typedef struct CpuImage {
    const char *name;
    const char
        *source; /* the tile IR with its places, from which the same code and its texts can be made again */
    CpuOptions options;
    Bytes object;                 /* a relocatable object file of this machine */
    size_t scratch_size;          /* bytes that a program keeps beside its registers, one program at a time */
    bool streams;                 /* its stores can bypass the caches */
    float stored_bytes;           /* by one program, of those stores: a guess */
    double lowering_milliseconds; /* of the time that compiling took; the rest was LLVM's */
} CpuImage;

/* In the arena. Consumes nothing; the module may be printed afterwards. Raises diagnostics. GIL not needed. */
CpuImage *tt_cpu_compile(Module *module, const CpuOptions *options, Arena *arena);
/* Tile IR after the passes ("ttir"), LLVM IR ("llir") or assembly ("asm"), made on request in `arena`; NULL for another
 * `what`. */
const char *tt_cpu_text(const CpuImage *image, const char *what, Arena *arena);
/* math.c: what the code calls by this name, or NULL. */
void *tt_cpu_symbol(const char *name);

/* Its machine code in memory, which it owns. Arguments are 64-bit slots in parameter order: pointers, integers
 * sign-extended, floats as the bits of their own type in the low bytes. */
typedef struct CpuKernel CpuKernel;
/* The texts and bytes of the image must outlive the kernel. */
CpuKernel *tt_cpu_load(const CpuImage *image);
void tt_cpu_release(CpuKernel *kernel);
void *tt_cpu_entry(const CpuKernel *kernel);
/* "kernel.py:12" and the calls that lead there, for an instruction of its code; NULL where that is unknown. */
const char *tt_cpu_place(const CpuKernel *kernel, uintptr_t instruction, Arena *arena);

typedef struct Interrupt Interrupt;
typedef struct Printed Printed;
/* runtime/cpu_launch.c: runs grid[0] * grid[1] * grid[2] programs on the thread pool and returns when all are done. No
 * text on success or when interrupted, else why it ended (failed assertion, fault, out of memory), allocated in `arena`.
 * What the programs printed is left in *printed (NULL: nothing), in `arena` and the kernel's memory. GIL not needed. */
FailureText tt_cpu_launch(CpuKernel *kernel, const uint64_t *args, const int32_t grid[3],
                          Interrupt *interrupt, Arena *arena, const Printed **printed);
