/* Chunked bump allocator with marks and a clean-up list; and the growable array that lives in it. */
#include "support/support.h"
#include <stdio.h>
#include <stdlib.h>

struct ArenaChunk {
    ArenaChunk *older;
    size_t used, size;
    _Alignas(16) char data[];
};

struct Cleanup {
    Cleanup *older;
    void (*function)(void *);
    void *argument;
};

enum { FIRST_CHUNK = 1 << 14, LARGEST_STEP = 1 << 20 };

static ArenaChunk *add_chunk(Arena *arena, size_t size)
{
    size_t next = arena->chunk ? TT_MIN(arena->chunk->size * 2, (size_t)LARGEST_STEP) : FIRST_CHUNK;
    if (next < size)
        next = size;
    ArenaChunk *chunk = malloc(sizeof(ArenaChunk) + next);
    if (!chunk)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while compiling"});
    chunk->older = arena->chunk;
    chunk->used = 0;
    chunk->size = next;
    arena->chunk = chunk;
    return chunk;
}

void *tt_arena_alloc(Arena *arena, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    ArenaChunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < size)
        chunk = add_chunk(arena, size);
    void *result = chunk->data + chunk->used;
    chunk->used += size;
    return memset(result, 0, size);
}

void *tt_arena_copy(Arena *arena, const void *data, size_t size)
{
    return size ? memcpy(tt_arena_alloc(arena, size), data, size) : NULL;
}

char *tt_arena_strndup(Arena *arena, const char *text, size_t length)
{
    char *copy = tt_arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *tt_arena_strdup(Arena *arena, const char *text) { return tt_arena_strndup(arena, text, strlen(text)); }

char *tt_arena_format(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Text text = {.arena = arena};
    tt_text_add_v(&text, format, args);
    va_end(args);
    return text.data ? text.data : tt_arena_strdup(arena, "");
}

void tt_arena_on_release(Arena *arena, void (*function)(void *), void *argument)
{
    Cleanup *cleanup = TT_NEW(arena, Cleanup);
    *cleanup = (Cleanup){arena->cleanups, function, argument};
    arena->cleanups = cleanup;
}

ArenaMark tt_arena_mark(const Arena *arena)
{
    return (ArenaMark){arena->chunk, arena->chunk ? arena->chunk->used : 0, arena->cleanups};
}

void tt_arena_reset(Arena *arena, ArenaMark mark)
{
    while (arena->cleanups != mark.cleanups) {
        Cleanup *cleanup = arena->cleanups;
        arena->cleanups = cleanup->older;
        cleanup->function(cleanup->argument);
    }
    while (arena->chunk != mark.chunk) {
        ArenaChunk *chunk = arena->chunk;
        arena->chunk = chunk->older;
        free(chunk);
    }
    if (arena->chunk)
        arena->chunk->used = mark.used;
}

void tt_arena_release(Arena *arena) { tt_arena_reset(arena, (ArenaMark){0}); }

void *tt_vector_grow(Arena *arena, void *data, int count, int *capacity, size_t item_size)
{
    *capacity = *capacity ? *capacity * 2 : 8;
    void *grown = tt_arena_alloc(arena, item_size * (size_t)*capacity);
    if (count)
        memcpy(grown, data, item_size * (size_t)count);
    return grown;
}
