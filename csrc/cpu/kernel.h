/* What a compiled kernel is to the runtime: its entry, its memory, and the calls that its code makes back. */
#pragma once
#include "cpu/cpu.h"

typedef struct CpuLaunch CpuLaunch;

/* An operand of a print: elements row-major in memory form. */
typedef struct CpuPrintOperand {
    TypeKind kind;
    bool is_unsigned;
    int rank;
    const int64_t *shape;
    int64_t size; /* bytes */
} CpuPrintOperand;

/* A place in the program that calls back. */
typedef struct CpuSite {
    Failure failure;     /* of an assertion */
    const char *message; /* of a print */
    bool hex;
    int operand_count;
    CpuPrintOperand *operands;
} CpuSite;

/* What a program printed; the next one in the order of printing. */
struct Printed {
    Printed *next;
    const CpuSite *site;
    int32_t program[3];
    Bytes *values; /* of each operand, its elements */
};

/* What the code sees of a launch. Field offsets are known to the lowering (cpu/lower.c, effects.c). */
struct CpuLaunch {
    const uint64_t *args;
    int32_t grid[3];
    int32_t stream;       /* 1: stores should bypass the caches */
    int32_t stopped;      /* 1: a program has failed; set atomically */
    int64_t stored_bytes; /* counted by the code, of the stores that can */
    void (*print)(CpuLaunch *launch, const CpuSite *site, int32_t x, int32_t y, int32_t z,
                  const void *const *operands);
    void (*fail)(CpuLaunch *launch, const CpuSite *site, int32_t x, int32_t y, int32_t z,
                 const int64_t *values);
};

/* The beginning of the scratch memory. */
typedef struct CpuScratch {
    char dummy[56]; /* where masked accesses go */
    int64_t left;   /* programs that the entry has not ended yet */
} CpuScratch;

/* Runs `count` >= 1 programs, from the one at (x, y, z) of the grid on; axis 0 is the fastest. */
typedef void (*CpuEntry)(CpuLaunch *launch, void *scratch, int64_t count, int32_t x, int32_t y, int32_t z);

struct CpuKernel {
    Arena arena; /* owns all of it, the code included */
    CpuImage image;
    CpuEntry entry;
    float
        stored_bytes; /* by one program, of the stores that can bypass the caches: a guess, then the last launch's */
    float nanoseconds; /* of one program, by the last launches; 0: not launched yet. Races do no harm. */
};
