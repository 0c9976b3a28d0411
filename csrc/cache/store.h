/* store: sealed bytes in files, by what they were made of. Nothing here raises, waits for another process, or holds
 * anything open: what cannot be read is not there, and what cannot be written is not kept.
 *
 *   TRITON_CACHE_DIR   where (~/.triton/cache, with TRITON_HOME in place of ~)
 *   TRITON_CACHE_SIZE  how much at most, in bytes or with K, M or G behind (1G); 0: nothing is kept, nor looked for */
#pragma once
#include "cache/seal.h"

/* The folder in `arena`; NULL: there is no place for one. */
const char *tt_store_folder(Arena *arena);
int64_t tt_store_limit(void);

/* The bytes as they lie there, in the arena, for the caller to unseal; nothing if there are none, or others may have
 * written them: only files of this user and of root are read. */
Bytes tt_store_read(SealKind kind, const Digest *key, Arena *arena);
/* Takes the place of what is there, for all readers at once or not at all. */
void tt_store_write(SealKind kind, const Digest *key, Bytes sealed, Arena *arena);
const char *tt_store_kind(SealKind kind); /* its folder's name */

/* The same for bytes that say themselves what they are, in any folder; false if they are damaged or cannot be written. */
bool tt_store_add(const char *folder, Bytes sealed, Arena *arena);

/* Takes away what writers that ended too early have left, and then what was not used for the longest time until the rest
 * takes at most `limit` bytes (INT64_MAX: as much as there is). Both happen by themselves: the first when a process first
 * reads, the second every now and then when it writes. */
void tt_store_sweep(const char *folder, int64_t limit);
