/* code: a compiled kernel on whichever target runs it: the handles that are made of an image, and launches. With image.c
 * the one place that knows all targets. GIL not needed. */
#pragma once
#include "runtime/apart.h"
#include "runtime/image.h"

typedef struct Code Code;

/* From the bytes of an image (of this key, unless NULL), which are copied. NULL if they are none, or none for this machine;
 * raises diagnostics where its code does not link. */
Code *tt_new_code(Bytes bytes, const Digest *key);
void tt_code_release(Code *code);
const Image *tt_code_image(const Code *code);
Bytes tt_code_bytes(const Code *code); /* of the image */

/* What is known once the code is on a device. */
typedef struct LoadedFacts {
    int registers, spills, max_threads;
    void *function, *module; /* the driver's handles; on the CPU the entry, and NULL */
} LoadedFacts;
/* What of that can be done without holding up launches in other threads; whether only loading is left. */
bool tt_code_prepare(Code *code, int device, Arena *arena);
LoadedFacts tt_code_load(Code *code, int device, Arena *arena);

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
    FailureText failure;           /* of a program (a failed assertion, ...) */
    const struct Printed *printed; /* by the programs on a CPU, or NULL */
    const char *output;            /* of those in the simulator, as text, or NULL */
} LaunchResult;
/* On the CPU returns when all programs are done (or left, when the launch is interrupted), on CUDA when they are enqueued. Texts are in `arena`, what was printed also in `code`; refusals of the
 * driver are raised. */
LaunchResult tt_code_launch(Code *code, Place place, const uint64_t *args, const int32_t grid[3],
                            Arena *arena);
