/* Open addressing, linear probing, no deletion: all that the compiler's tables need. */
#include "support/support.h"

static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

uint64_t tt_hash_bytes(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u); /* FNV-1a, then a final mix */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return mix(hash);
}

/* Never 0, which is an empty entry's. */
static uint64_t hash_key(const void *key, size_t key_size)
{
    uint64_t hash =
        key_size ? tt_hash_bytes(key, key_size, key_size) : mix((uintptr_t)key * 0x9e3779b97f4a7c15u);
    return hash ? hash : 1;
}

static MapEntry *probe(const Map *map, uint64_t hash, const void *key, size_t key_size)
{
    for (int i = (int)(hash & (uint64_t)(map->capacity - 1));; i = (i + 1) & (map->capacity - 1)) {
        MapEntry *entry = &map->entries[i];
        if (!entry->hash)
            return entry;
        if (entry->hash == hash && entry->key_size == key_size &&
            (key_size ? !memcmp(entry->key, key, key_size) : entry->key == key))
            return entry;
    }
}

void *tt_map_find(const Map *map, const void *key, size_t key_size)
{
    return map->capacity ? probe(map, hash_key(key, key_size), key, key_size)->value : NULL;
}

void **tt_map_slot(Map *map, const void *key, size_t key_size)
{
    if (map->count * 4 >= map->capacity * 3) {
        Map grown = {.arena = map->arena, .capacity = map->capacity ? map->capacity * 2 : 16};
        grown.entries = TT_NEW_ARRAY(map->arena, MapEntry, grown.capacity);
        for (int i = 0; i < map->capacity; i++)
            if (map->entries[i].hash)
                *probe(&grown, map->entries[i].hash, map->entries[i].key, map->entries[i].key_size) =
                    map->entries[i];
        grown.count = map->count;
        *map = grown;
    }
    uint64_t hash = hash_key(key, key_size);
    MapEntry *entry = probe(map, hash, key, key_size);
    if (!entry->hash) {
        *entry = (MapEntry){hash, key_size ? tt_arena_copy(map->arena, key, key_size) : key, key_size, NULL};
        map->count++;
    }
    return &entry->value;
}
