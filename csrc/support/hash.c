/* BLAKE2b with 32 bytes of result (RFC 7693): what compiled kernels are kept under. And a checksum, which tells a thirtieth
 * of that time later whether a file is as it was written. */
#include "support/support.h"

static const uint64_t start[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

static const uint8_t order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t rotate(uint64_t x, int bits) { return x >> bits | x << (64 - bits); }

static inline void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 63);
}

/* Sections 3.1 and 3.2; the machines of all targets are little-endian. */
static void compress(Hasher *hasher, const uint8_t *block, bool last)
{
    uint64_t m[16], v[16];
    memcpy(m, block, sizeof m);
    memcpy(v, hasher->state, sizeof hasher->state);
    memcpy(v + 8, start, sizeof start);
    v[12] ^= hasher->count;
    v[14] ^= last ? ~(uint64_t)0 : 0;
#pragma GCC unroll 12 /* then the order is in the code: three times as fast */
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = order[round % 10];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
    }
    for (int i = 0; i < 8; i++)
        hasher->state[i] ^= v[i] ^ v[8 + i];
}

void tt_hasher_init(Hasher *hasher)
{
    *hasher = (Hasher){0};
    memcpy(hasher->state, start, sizeof start);
    hasher->state[0] ^= 0x01010000u ^ sizeof(Digest);
}

void tt_hasher_add(Hasher *hasher, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    while (size) {
        if (hasher->filled == sizeof hasher->block) { /* not the last one, for more follows */
            hasher->count += sizeof hasher->block;
            compress(hasher, hasher->block, false);
            hasher->filled = 0;
        }
        size_t part = TT_MIN(size, sizeof hasher->block - hasher->filled);
        memcpy(hasher->block + hasher->filled, bytes, part);
        hasher->filled += part;
        bytes += part;
        size -= part;
    }
}

void tt_hasher_add_string(Hasher *hasher, const char *text)
{
    uint64_t length = text ? strlen(text) : ~(uint64_t)0;
    tt_hasher_add(hasher, &length, sizeof length);
    if (text)
        tt_hasher_add(hasher, text, length);
}

void tt_hasher_add_number(Hasher *hasher, int64_t number) { tt_hasher_add(hasher, &number, sizeof number); }

Digest tt_hasher_end(const Hasher *hasher)
{
    Hasher end = *hasher;
    Digest digest;
    memset(end.block + end.filled, 0, sizeof end.block - end.filled);
    end.count += end.filled;
    compress(&end, end.block, true);
    memcpy(digest.bytes, end.state, sizeof digest.bytes);
    return digest;
}

Digest tt_digest(const void *data, size_t size)
{
    Hasher hasher;
    tt_hasher_init(&hasher);
    tt_hasher_add(&hasher, data, size);
    return tt_hasher_end(&hasher);
}

/* One step with each word: whatever the words before and behind, another word makes another lane of it. */
static void mix_lanes(uint64_t lanes[4], const uint8_t *block)
{
    uint64_t words[4];
    memcpy(words, block, sizeof words);
    for (int i = 0; i < 4; i++)
        lanes[i] = rotate((lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15u, 31);
}

Digest tt_checksum(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t lanes[4];
    uint8_t last[sizeof lanes] = {0};
    size_t whole = size - size % sizeof lanes;
    memcpy(lanes, start, sizeof lanes);
    for (size_t i = 0; i < whole; i += sizeof lanes)
        mix_lanes(lanes, bytes + i);
    memcpy(last, bytes + whole, size - whole);
    mix_lanes(lanes, last);
    lanes[0] ^= size;
    Digest sum;
    memcpy(sum.bytes, lanes, sizeof sum.bytes);
    return sum;
}

const char *tt_digest_text(const Digest *digest, char out[2 * sizeof(Digest) + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[2 * sizeof digest->bytes] = 0;
    return out;
}
