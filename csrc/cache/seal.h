/* Bytes that travel - to files, to other processes and machines - in one form: what they are, what they were made of, and
 * a checksum of all of it. Whoever opens them gets what was sealed, or nothing. */
#pragma once
#include "support/support.h"

typedef enum SealKind {
    SEAL_IMAGE = 1, /* a compiled kernel: runtime/image.h */
    SEAL_USES,      /* which images were made of a kernel's source: python/uses.c */
} SealKind;

enum { SEAL_BYTES = 88 }; /* in front of the content */

/* In the arena. `key`: the digest of all that the content was made of. */
Bytes tt_seal(SealKind kind, const Digest *key, Bytes content, Arena *arena);
/* The content, where it lies; nothing if it is not of this kind, version and (unless NULL) key, or was changed. */
Bytes tt_unseal(SealKind kind, const Digest *key, Bytes sealed);
/* The kind and key of sealed bytes that are whole; false for others. */
bool tt_read_seal(Bytes sealed, SealKind *kind, Digest *key);
