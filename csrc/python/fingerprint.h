/* fingerprints: hashes of Python values that are equal in every process where a kernel would be compiled the same with
 * them, and differ where it might not be. */
#pragma once
#include "python/extension.h"

typedef struct Fingerprint {
    Hasher hasher;
    const State *state;
    Arena *arena;
    bool unknown; /* a value was met that cannot be told from others */
    int depth, count;
    /* In the order they were met: kernels and modules borrowed; the others, which may refer to themselves, the arena's. */
    TT_VECTOR(Kernel *) functions;
    TT_VECTOR(PyObject *) modules;
    TT_VECTOR(PyObject *) seen;
} Fingerprint;

/* The arena is to be released with the GIL. */
void tt_fingerprint_init(Fingerprint *f, const State *state, Arena *arena);
/* Adds a value: what it is and all that it consists of. */
void tt_fingerprint_add(Fingerprint *f, PyObject *value);
/* Whether this package, and not the program, has defined what is in a module of this name (a string, or anything). */
bool tt_is_own_module(PyObject *name);
