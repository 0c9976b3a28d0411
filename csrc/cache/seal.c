/* See seal.h. In front of the content stand, little-endian: a mark, the version of all formats, the kind, the key, the
 * size, and the checksum of these and the content. */
#include "cache/seal.h"

enum { VERSION = 2 }; /* to be raised whenever a structure that is sealed has other fields than before */

typedef struct Seal {
    char mark[8];
    uint32_t version, kind;
    Digest key;
    uint64_t size;
    Digest checksum;
} Seal;
_Static_assert(sizeof(Seal) == SEAL_BYTES, "no padding");

static const char mark[8] = "tritonc";

static Digest checksum(const Seal *seal, const void *content)
{
    Digest sums[2] = {tt_checksum(seal, offsetof(Seal, checksum)), tt_checksum(content, seal->size)};
    return tt_checksum(sums, sizeof sums);
}

Bytes tt_seal(SealKind kind, const Digest *key, Bytes content, Arena *arena)
{
    Seal seal = {.version = VERSION, .kind = kind, .key = *key, .size = content.size};
    memcpy(seal.mark, mark, sizeof mark);
    seal.checksum = checksum(&seal, content.data);
    char *sealed = tt_arena_alloc(arena, sizeof seal + content.size);
    memcpy(sealed, &seal, sizeof seal);
    memcpy(sealed + sizeof seal, content.data, content.size);
    return (Bytes){sealed, sizeof seal + content.size};
}

static bool is_whole(Bytes sealed, Seal *seal)
{
    if (sealed.size < sizeof *seal)
        return false;
    memcpy(seal, sealed.data, sizeof *seal);
    if (memcmp(seal->mark, mark, sizeof mark) || seal->version != VERSION ||
        seal->size != sealed.size - sizeof *seal)
        return false;
    Digest sum = checksum(seal, (const char *)sealed.data + sizeof *seal);
    return !memcmp(&sum, &seal->checksum, sizeof sum);
}

Bytes tt_unseal(SealKind kind, const Digest *key, Bytes sealed)
{
    Seal seal;
    if (!is_whole(sealed, &seal) || seal.kind != kind || (key && memcmp(key, &seal.key, sizeof *key)))
        return (Bytes){0};
    return (Bytes){(const char *)sealed.data + sizeof seal, seal.size};
}

bool tt_read_seal(Bytes sealed, SealKind *kind, Digest *key)
{
    Seal seal;
    if (!is_whole(sealed, &seal))
        return false;
    *kind = (SealKind)seal.kind;
    *key = seal.key;
    return true;
}
