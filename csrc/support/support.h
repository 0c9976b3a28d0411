/* support: what every other folder stands on, and which knows nothing above it.
 *
 * Memory is owned by arenas. A compilation has one arena for everything that lives as long as it does and one for
 * the pass in progress; nothing calls free() in between. Whatever else must be released (LLVM handles, Python
 * references, mapped files) is put on the arena's clean-up list.
 *
 * Failure: user errors, unsupported features and internal bugs all become one Diagnostic and unwind with longjmp to
 * the compile entry (tt_try). Because memory lives in arenas and the rest on the clean-up list, unwinding loses
 * nothing. No function here prints, exits or aborts. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
enum { TT_MAX_RANK = 16 }; /* of a tile */

#define TT_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TT_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- arena.c -------------------------------------------------------------------------------------------------- */

typedef struct ArenaChunk ArenaChunk;
typedef struct Cleanup Cleanup;

typedef struct Arena {
    ArenaChunk *chunk; /* newest first */
    Cleanup *cleanups; /* newest first */
} Arena;

typedef struct ArenaMark {
    ArenaChunk *chunk;
    size_t used;
    Cleanup *cleanups;
} ArenaMark;

/* Zeroed memory aligned to 16 bytes, valid until the arena is reset past it. Out of memory raises through the
 * innermost tt_try of this thread (see diag.c). */
void *tt_arena_alloc(Arena *arena, size_t size);
void *tt_arena_copy(Arena *arena, const void *data, size_t size);
char *tt_arena_strdup(Arena *arena, const char *text);
char *tt_arena_strndup(Arena *arena, const char *text, size_t length);
char *tt_arena_format(Arena *arena, const char *format, ...) TT_PRINTF(2, 3);
/* `function(argument)` runs when the arena is released or reset below this point, newest first. */
void tt_arena_on_release(Arena *arena, void (*function)(void *), void *argument);
ArenaMark tt_arena_mark(const Arena *arena);
void tt_arena_reset(Arena *arena, ArenaMark mark);
void tt_arena_release(Arena *arena);

#define TT_NEW(arena, type) ((type *)tt_arena_alloc((arena), sizeof(type)))
#define TT_NEW_ARRAY(arena, type, count) ((type *)tt_arena_alloc((arena), sizeof(type) * (size_t)(count)))

/* ---- vector: one growable array, in an arena -------------------------------------------------------------------
 *   TT_VECTOR(Value *) values = {0};   tt_push(arena, values, v);   values.data[i], values.count */
#define TT_VECTOR(type)                                                                                      \
    struct {                                                                                                 \
        type *data;                                                                                          \
        int count, capacity;                                                                                 \
    }
#define tt_push(arena, vector, item)                                                                         \
    do {                                                                                                     \
        if ((vector).count == (vector).capacity)                                                             \
            (vector).data = tt_vector_grow((arena), (vector).data, (vector).count, &(vector).capacity,       \
                                           sizeof(*(vector).data));                                          \
        (vector).data[(vector).count++] = (item);                                                            \
    } while (0)
void *tt_vector_grow(Arena *arena, void *data, int count, int *capacity, size_t item_size);

/* ---- text.c: string builder ------------------------------------------------------------------------------------ */

typedef struct Text {
    Arena *arena;
    char *data; /* always NUL-terminated once anything was added; NULL before */
    size_t length, capacity;
} Text;
void tt_text_add(Text *text, const char *format, ...) TT_PRINTF(2, 3);
void tt_text_add_v(Text *text, const char *format, va_list args);
void tt_text_add_n(Text *text, const char *bytes, size_t length);
void tt_text_add_string(Text *text, const char *string);
void tt_text_add_number(Text *text, int64_t number); /* decimal */
int tt_decimal_digits(int64_t number);               /* as it is printed, its sign included */

/* ---- map.c: one hash map, from 64-bit keys or byte strings to pointers ------------------------------------------- */

typedef struct MapEntry {
    uint64_t hash;
    const void *key;
    size_t key_size; /* 0: the key is the pointer itself */
    void *value;
} MapEntry;
typedef struct Map {
    Arena *arena;
    MapEntry *entries;
    int count, capacity;
} Map;
/* Pointer to the value slot of a key (NULL inside when new), or NULL from tt_map_find when absent. */
void **tt_map_slot(Map *map, const void *key, size_t key_size);
void *tt_map_find(const Map *map, const void *key, size_t key_size);
#define tt_map_slot_ptr(map, pointer) tt_map_slot((map), (pointer), 0)
#define tt_map_find_ptr(map, pointer) tt_map_find((map), (pointer), 0)
uint64_t tt_hash_bytes(const void *data, size_t size, uint64_t seed);

/* ---- words.c: what somebody may have meant ----------------------------------------------------------------------- */

/* The candidate that is spelled most like `name`, or NULL when none is. */
const char *tt_closest_word(const char *name, const char *const *candidates, int count);
/* One candidate more: *best becomes it if it is less than *distance edits away, which begins as tt_word_limit(name). */
void tt_consider_word(const char *name, const char *candidate, int *distance, const char **best);
int tt_word_limit(const char *name);

/* ---- environment.c ----------------------------------------------------------------------------------------------- */

/* A variable, or NULL: as it is, or as it was kept if the thread has left the environment to others, which change it. */
const char *tt_variable(const char *name);
/* Who calls it has not left it. */
void tt_keep_environment(void);
/* Leaves it, or returns; what was before. */
bool tt_leave_environment(bool leave);
/* Around code of others that reads variables on a thread that does not keep Python's programs from changing them (PTX is compiled
 * with getenv). */
void tt_begin_reading_environment(void);
void tt_end_reading_environment(void);
/* Around a change, by who keeps other changes away: false, and to be tried again, as long as somebody reads. */
bool tt_begin_changing_environment(void);
void tt_end_changing_environment(void);
/* Is a flag on? Not if it is empty, or one of 0, n, no, off, false. */
bool tt_is_set(const char *variable);

/* ---- clock.c ------------------------------------------------------------------------------------------------------- */

/* From some moment in the past on; they never go back. */
double tt_milliseconds(void);
/* Until a count is zero, or for so long at most; without sleeping, for to be woken up takes a tenth of a millisecond. */
void tt_await_zero(const _Atomic int *count, double milliseconds);
int64_t tt_nanoseconds(void);

/* ---- hash.c: hashes that say what was hashed ------------------------------------------------------------------- */

typedef struct Digest {
    uint8_t bytes[32];
} Digest;
typedef struct Hasher {
    uint64_t state[8], count; /* bytes in the state */
    uint8_t block[128];       /* what comes next to it */
    size_t filled;
} Hasher;
void tt_hasher_init(Hasher *hasher);
void tt_hasher_add(Hasher *hasher, const void *data, size_t size);
/* With its length (NULL is a text too, that none else is like), so that what follows cannot be taken for part of it. */
void tt_hasher_add_string(Hasher *hasher, const char *text);
void tt_hasher_add_number(Hasher *hasher, int64_t number);
Digest tt_hasher_end(const Hasher *hasher); /* which can go on after it */
Digest tt_digest(const void *data, size_t size);
/* Another one after any change of eight bytes, and nearly always after others; anybody can make data that have it. */
Digest tt_checksum(const void *data, size_t size);
const char *tt_digest_text(const Digest *digest, char out[2 * sizeof(Digest) + 1]);

/* ---- codec.c: structures as bytes ------------------------------------------------------------------------------ */

typedef struct Bytes {
    const void *data; /* NULL: none */
    size_t size;
} Bytes;
/* Writes to `out`, or (NULL) reads from `at` up to `end`. Each function writes its argument and returns it, or returns
 * what it reads, which points into what is read from; zeros once reading has failed. */
typedef struct Codec {
    Text *out;
    const char *at, *end;
    bool failed;
    Arena *arena; /* of what is read and is not just bytes */
} Codec;
int64_t tt_codec_number(Codec *codec, int64_t value);
double tt_codec_real(Codec *codec, double value);
int tt_codec_count(Codec *codec, int count); /* of items that follow */
Bytes tt_codec_bytes(Codec *codec, Bytes bytes);
const char *tt_codec_string(Codec *codec, const char *text); /* or NULL */
#define TT_CODEC_NUMBER(codec, field)                                                                        \
    ((field) = (__typeof__(field))tt_codec_number((codec), (int64_t)(field)))
#define TT_CODEC_STRING(codec, field) ((field) = tt_codec_string((codec), (field)))

/* ---- bits ------------------------------------------------------------------------------------------------------- */

static inline bool tt_is_pow2(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }
static inline int64_t tt_next_pow2(int64_t x)
{
    int64_t p = 1;
    while (p < x)
        p <<= 1;
    return p;
}
static inline int tt_log2(int64_t x) { return 63 - __builtin_clzll((unsigned long long)x); }
static inline int64_t tt_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* ---- number.c: the narrow float formats, exactly ------------------------------------------------------------------
 * Values travel as double, which holds every one of them exactly. Encoding rounds to nearest even unless toward_zero.
 * The fp8 formats saturate to the largest finite value as PTX's cvt.rn.satfinite does (PTX ISA, cvt); NaN stays NaN. */
typedef struct FloatFormat {
    int bits, exponent_bits, mantissa_bits, bias;
    bool has_infinity; /* e5m2 and the wider ones */
    bool saturates;    /* values past the largest finite one clamp to it */
    enum {
        TT_NAN_NONE, /* e4m3b15: a NaN becomes its largest value */
        TT_NAN_TOP_EXPONENT,
        TT_NAN_ALL_ONES,
        TT_NAN_NEGATIVE_ZERO, /* e4m3b8 and e5m2b16, in which zero has no sign */
    } nan;
} FloatFormat;
extern const FloatFormat tt_format_f8e4m3, tt_format_f8e5m2, tt_format_f8e4m3b15, tt_format_f8e4m3b8,
    tt_format_f8e5m2b16, tt_format_f16, tt_format_bf16, tt_format_f32;
uint64_t tt_float_encode(const FloatFormat *format, double value, bool toward_zero);
double tt_float_decode(const FloatFormat *format, uint64_t bits);

/* ---- stack.c ---------------------------------------------------------------------------------------------------- */

/* How deep a recursion over the user's program is; `base` is the frame address where it began. */
typedef struct StackUse {
    const char *base;
    ptrdiff_t limit; /* bytes below the base; 0 before it is asked for */
} StackUse;
/* Has it used `most` bytes, or half of what this thread's stack had left? */
bool tt_stack_is_short(StackUse *use, ptrdiff_t most);

/* ---- late.c ----------------------------------------------------------------------------------------------------- */

/* Once a process: runs the constructors that loading this library left out, and `then`. */
void tt_construct_late(void (*then)(void));
bool tt_was_constructed_late(void);

/* ---- diag.c ----------------------------------------------------------------------------------------------------- */

/* Where something stands in the user's program. Interned by nobody; cheap to share by pointer. */
typedef struct Loc {
    const char *file;
    const char *function;
    int line, column; /* 1-based line, 0-based column as in Python's ast; 0, 0 when unknown */
    int end_line, end_column;
    const struct Loc *caller; /* call site this code was inlined at, or NULL */
} Loc;
/* TRITON_STRICT=1: what may be undefined, and requests that cannot be met, are errors. */
bool tt_is_strict(void);
/* Where the user's program called what `loc` is in, when that is a function of triton.language written in itself. */
const Loc *tt_user_loc(const Loc *loc);

typedef enum DiagKind {
    TT_USER_ERROR,       /* the program is wrong: location, both sides, advice */
    TT_FAILED_ASSERTION, /* a static assertion of the program does not hold */
    TT_UNSUPPORTED, /* the program may be right, this compiler or target cannot: names feature and target */
    TT_BUG,         /* the compiler is wrong: names op and pass, IR dumped beside it */
    TT_OUT_OF_MEMORY,
    TT_OUT_OF_RESOURCES, /* the kernel needs more of `resource` than the device has for a program */
    TT_DEVICE_ERROR,     /* the device's driver refuses, or reports that a kernel failed */
    TT_PYTHON_ERROR,     /* a Python exception is set and should propagate as it is */
} DiagKind;

typedef struct DiagNote {
    const Loc *loc;
    const char *message;
} DiagNote;

typedef struct Diagnostic {
    DiagKind kind;
    const Loc *loc;
    const char *message;
    const char *remedy; /* one sentence that says what to do, or NULL */
    DiagNote notes[4];
    int note_count;
    const char *resource; /* of TT_OUT_OF_RESOURCES */
    int64_t needed, available;
} Diagnostic;

/* ---- what a kernel says when a check in it fails ---------------------------------------------------------------- */

typedef enum FailureKind {
    FAILURE_OTHER,
    FAILURE_ASSERTION,
    FAILURE_ACCESS,
    FAILURE_OVERFLOW,
    FAILURE_DIVISION,
    FAILURE_RACE,
    FAILURE_KINDS
} FailureKind;

typedef struct Failure {
    FailureKind kind;
    const char *place;   /* "file:line", and the calls that lead there; empty if unknown */
    const char *message; /* {0} and {1} stand for values of the element that fails */
} Failure;

/* What is told of one that happened. */
typedef struct FailureText {
    FailureKind kind;
    const char *text; /* NULL: nothing failed */
} FailureText;

/* A protected region. Use:
 *   Trap trap;
 *   if (tt_try(&trap, arena)) { ...work that may tt_raise...; tt_end_try(&trap); } else { trap.diag says why }
 * Traps nest and belong to the thread. */
typedef struct Trap {
    jmp_buf jump;
    struct Trap *outer;
    Arena *arena; /* where messages are allocated */
    Diagnostic diag;
} Trap;
#define tt_try(trap, arena) (tt_trap_enter((trap), (arena)), setjmp((trap)->jump) == 0)
void tt_trap_enter(Trap *trap, Arena *arena);
void tt_end_try(Trap *trap);

/* None of these returns. */
_Noreturn void tt_raise(const Diagnostic *diag);
_Noreturn void tt_error(const Loc *loc, const char *format, ...) TT_PRINTF(2, 3);
_Noreturn void tt_error_with_remedy(const Loc *loc, const char *remedy, const char *format, ...)
    TT_PRINTF(3, 4);
_Noreturn void tt_unsupported(const Loc *loc, const char *format, ...) TT_PRINTF(2, 3);
_Noreturn void tt_bug(const char *format, ...) TT_PRINTF(1, 2);
#define TT_ASSERT(condition)                                                                                 \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            tt_bug("%s:%d: assertion failed: %s", __FILE__, __LINE__, #condition);                           \
    } while (0)
