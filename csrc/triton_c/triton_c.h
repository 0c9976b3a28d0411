/* triton_c: the second front end, from Triton-C (docs/triton-c.md) to tile IR. No Python here. */
#pragma once
#include "ir/ir.h"

/* ---- what a program declares ---------------------------------------------------------------------------------------- */

typedef struct CParameter {
    const char *name, *type; /* as in signatures: "*kfp32", "i32" */
} CParameter;

typedef struct CTunable {
    const char *name;
    const int64_t *values;
    int count;
} CTunable;

typedef struct CKernel {
    const char *name;
    const CParameter *parameters; /* in the order of a launch; behind them the constant arrays of the file */
    int parameter_count;
    const CTunable *tunables; /* of the file */
    int tunable_count;
    int line; /* of its definition */
} CKernel;

/* A program; text and file live as long as the arena. */
typedef struct CSource {
    const char *text, *file;
    size_t length;
} CSource;

/* The kernels of a program, in its order. Raises diagnostics: the program is parsed, but no body is looked into. */
const CKernel *tt_triton_c_describe(Arena *arena, const CSource *source, int *count);

/* ---- building --------------------------------------------------------------------------------------------------------- */

typedef struct CArgument {
    const char *type; /* as a signature has it, or NULL: it is None, or known */
    int64_t divisibility;
    bool is_known, is_float; /* known when compiling: as `whole`, or as `number` */
    int64_t whole;
    double number;
} CArgument;

typedef struct CRequest {
    CSource source;
    const char *kernel;
    const CArgument *arguments; /* one a parameter; NULL: of the types that are declared */
    int argument_count;
    const char *const *tunable_names; /* those that are not named have their first value */
    const int64_t *tunable_values;
    int tunable_count;
    bool debug, checks_overflow; /* check assertions, and arithmetic, at run time */
} CRequest;

/* The kernel as verified tile IR. `extents`, unless NULL: those of its global ranges by axis, 0 where it has none. Raises
 * diagnostics. */
Module *tt_triton_c_build(Arena *arena, const CRequest *request, int64_t extents[3]);
