/* See order.h. History is kept by words of four bytes as long as whole words are accessed, and by bytes in words of which
 * parts are. Memory of the log is zeroed, and a zeroed Note is nobody's. */
#include "simulator/order.h"

#include <stdlib.h>

enum { WORD = 4, SEGMENT_BITS = 8, SEGMENT_WORDS = (1 << SEGMENT_BITS) / WORD, CHUNK_BYTES = 1 << 20 };

/* The last access of a kind. */
typedef struct Note {
    const SimSite *site;
    SimMoment moment;
    int32_t fences;       /* of the thread then */
    unsigned thread : 11; /* plus one; 0: nobody */
    bool many_warps : 1;  /* other warps did so too in this block epoch */
    bool many_lanes : 1;  /* ... other lanes of this warp in this warp epoch */
    bool atomic : 1;
    unsigned stage : 2; /* OrderStage */
} Note;

typedef struct Cell {
    Note write, read;
} Cell;

struct OrderWord {
    Cell whole;
    Cell *bytes; /* NULL: all four are alike */
};

struct OrderChunk {
    OrderChunk *next;
    _Alignas(16) char data[];
};

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static void *allocate(OrderLog *log, size_t size)
{
    if (!log->chunks || log->chunk_used + size > CHUNK_BYTES) {
        OrderChunk *chunk = calloc(1, sizeof *chunk + TT_MAX((size_t)CHUNK_BYTES, size));
        if (!chunk) {
            log->out_of_memory = true;
            return NULL;
        }
        chunk->next = log->chunks;
        log->chunks = chunk;
        log->chunk_used = 0;
    }
    void *memory = log->chunks->data + log->chunk_used;
    log->chunk_used += (size + 15) & ~(size_t)15;
    return memory;
}

bool tt_order_begin(OrderLog *log, int shared_bytes)
{
    log->shared = calloc((size_t)shared_bytes / WORD + 1, sizeof *log->shared);
    return log->shared;
}

static void free_chunks(OrderChunk *chunk)
{
    for (OrderChunk *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}

void tt_order_forget(OrderLog *log, int shared_bytes)
{
    memset(log->shared, 0, ((size_t)shared_bytes / WORD + 1) * sizeof *log->shared);
    if (log->capacity)
        memset(log->segments, 0, log->capacity * sizeof *log->segments);
    log->count = 0;
    log->last_segment = 0;
    if (!log->chunks)
        return;
    free_chunks(log->chunks->next);
    log->chunks->next = NULL;
    memset(log->chunks->data, 0, log->chunk_used);
    log->chunk_used = 0;
}

void tt_order_end(OrderLog *log)
{
    free_chunks(log->chunks);
    free(log->shared);
    free(log->global);
    free(log->segments);
}

/* Where the segment is in the table, or would be. */
static uint32_t find(const uint64_t *segments, uint32_t capacity, uint64_t key)
{
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (capacity - 1);
    while (segments[at] && segments[at] != key)
        at = (at + 1) & (capacity - 1);
    return at;
}

static bool grow(OrderLog *log)
{
    uint32_t capacity = TT_MAX(64u, 2 * log->capacity);
    uint64_t *segments = calloc(capacity, sizeof *segments);
    OrderWord **global = calloc(capacity, sizeof(OrderWord *));
    for (uint32_t i = 0; segments && global && i < log->capacity; i++)
        if (log->segments[i]) {
            uint32_t at = find(segments, capacity, log->segments[i]);
            segments[at] = log->segments[i];
            global[at] = log->global[i];
        }
    if (segments && global) {
        free(log->segments);
        free(log->global);
        log->segments = segments;
        log->global = global;
        log->capacity = capacity;
        return true;
    }
    free(segments);
    free(global);
    log->out_of_memory = true;
    return false;
}

/* Words of the segment that the address is in; NULL when there is no memory. */
static OrderWord *segment_of(OrderLog *log, uint64_t address)
{
    uint64_t key = (address >> SEGMENT_BITS) + 1;
    if (key == log->last_segment)
        return log->last;
    if (2 * log->count >= log->capacity && !grow(log))
        return NULL;
    uint32_t at = find(log->segments, log->capacity, key);
    if (!log->segments[at]) {
        OrderWord *words = allocate(log, SEGMENT_WORDS * sizeof(OrderWord));
        if (!words)
            return NULL;
        log->segments[at] = key;
        log->global[at] = words;
        log->count++;
    }
    log->last_segment = key;
    return log->last = log->global[at];
}

/* ---- one byte, or four alike ----------------------------------------------------------------------------------------------- */

static bool in_warp_of(const Note *note, const OrderAccess *now)
{
    return (int)(note->thread - 1) / SIM_WARP == now->thread / SIM_WARP;
}

/* Only possible where the access did not begin now. */
static bool came_after(const Note *note, const OrderAccess *now)
{
    return note->moment.block_epoch > now->began.block_epoch ||
           (in_warp_of(note, now) && note->moment.warp_epoch > now->began.warp_epoch);
}

static bool ordered(const Note *earlier, const OrderAccess *now)
{
    if (!earlier->thread || earlier->moment.block_epoch < now->began.block_epoch)
        return true;
    if (came_after(earlier, now) || earlier->many_warps || now->reach == ORDER_WARPS ||
        !in_warp_of(earlier, now))
        return false;
    bool same_thread = (int)earlier->thread - 1 == now->thread && now->reach == ORDER_THREAD;
    return earlier->moment.warp_epoch < now->began.warp_epoch || (same_thread && !earlier->many_lanes);
}

static Note note_of(const OrderAccess *now)
{
    return (Note){.site = now->site,
                  .moment = now->now,
                  .fences = now->fences,
                  .thread = (unsigned)now->thread + 1,
                  .many_warps = now->reach == ORDER_WARPS,
                  .many_lanes = now->reach != ORDER_THREAD,
                  .atomic = now->is_atomic,
                  .stage = now->stage};
}

static void note_read(Note *read, const OrderAccess *now)
{
    Note note = note_of(now);
    if (read->thread && read->moment.block_epoch == note.moment.block_epoch) {
        bool same_warp = in_warp_of(read, now);
        note.atomic &= read->atomic;
        note.many_warps |= read->many_warps || !same_warp;
        note.many_lanes |= same_warp && read->moment.warp_epoch == note.moment.warp_epoch &&
                           (read->many_lanes || read->thread != note.thread);
    }
    *read = note;
}

static bool report(const Note *earlier, bool was_write, OrderLack lack, OrderConflict *conflict)
{
    *conflict = (OrderConflict){
        .lack = lack, .was_write = was_write, .thread = (int)earlier->thread - 1, .site = earlier->site};
    return true;
}

static bool conflicts(const Note *earlier, bool was_write, const OrderAccess *now, OrderConflict *conflict)
{
    if (ordered(earlier, now))
        return false;
    OrderLack lack = came_after(earlier, now) ? ORDER_LACKS_WAIT : ORDER_LACKS_BARRIER;
    return report(earlier, was_write, lack, conflict);
}

/* Of a write with a barrier after it: did its thread make a fence in between? */
static bool lacks_fence(const Note *write, const OrderAccess *now, OrderConflict *conflict)
{
    return now->threads && write->thread && now->threads[write->thread - 1].settled_fences <= write->fences &&
           report(write, true, ORDER_LACKS_FENCE, conflict);
}

static void note(Cell *cell, const OrderAccess *now)
{
    if (now->is_write)
        cell->write = note_of(now);
    else
        note_read(&cell->read, now);
}

/* Lanes that write to one place in one operation hold copies of an element, and any may come last. They may differ in the
 * sign of a zero or of a NaN: the host's minimum depends on the order of its operands, where a GPU's does not. */
static bool writes_copies(const Note *earlier, const OrderAccess *now)
{
    return earlier->thread && in_warp_of(earlier, now) && !came_after(earlier, now) &&
           earlier->site == now->site && !now->is_atomic;
}

/* Copies of several threads to one place do no harm if they bring the same. That shows where each but the first ends: one that begins leaves
 * the note of another alone. */
static bool is_compared_later(const Note *earlier, const OrderAccess *now)
{
    bool own = (int)earlier->thread - 1 == now->thread;
    if (!now->is_write || own || earlier->stage == ORDER_AT_ONCE || ordered(earlier, now))
        return false;
    return now->stage == ORDER_BEGINS || (now->stage == ORDER_ENDS && earlier->stage == ORDER_BEGINS);
}

/* Atomic accesses have an order of their own. */
static bool both_atomic(const Note *earlier, const OrderAccess *now)
{
    return now->is_atomic && earlier->atomic;
}

/* `harmless`: after a write that it need not be ordered with, in itself. */
static bool access_cell(Cell *cell, const OrderAccess *now, bool harmless, OrderConflict *conflict)
{
    harmless |= both_atomic(&cell->write, now);
    harmless |= now->is_write && writes_copies(&cell->write, now);
    bool later = is_compared_later(&cell->write, now);
    if (!harmless && !later && conflicts(&cell->write, true, now, conflict))
        return false;
    if (now->is_write && !both_atomic(&cell->read, now) && conflicts(&cell->read, false, now, conflict))
        return false;
    if (lacks_fence(&cell->write, now, conflict))
        return false;
    if (!later || now->stage == ORDER_ENDS)
        note(cell, now);
    return true;
}

/* The compiler keeps the order of what goes through one parameter. */
static bool through_one_parameter(const Note *earlier, const OrderAccess *now)
{
    return earlier->thread && earlier->site->array == now->site->array;
}

static bool access_global_cell(Cell *cell, const OrderAccess *now, OrderConflict *conflict)
{
    bool reads = !now->is_write || now->is_atomic;
    if (reads && !both_atomic(&cell->write, now) && through_one_parameter(&cell->write, now) &&
        conflicts(&cell->write, true, now, conflict))
        return false;
    if (now->is_write && !both_atomic(&cell->read, now) && through_one_parameter(&cell->read, now) &&
        conflicts(&cell->read, false, now, conflict))
        return false;
    note(cell, now);
    return true;
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

static bool split(OrderLog *log, OrderWord *word)
{
    if (!word->bytes)
        word->bytes = allocate(log, WORD * sizeof(Cell));
    for (int i = 0; word->bytes && i < WORD; i++)
        word->bytes[i] = word->whole;
    return word->bytes;
}

static bool same_value(const OrderAccess *now, int byte, int bytes)
{
    return now->data && !memcmp(now->data + byte, now->present + byte, (size_t)bytes);
}

static bool access_one(Cell *cell, const OrderAccess *now, bool is_global, int byte, int bytes,
                       OrderConflict *conflict)
{
    return is_global ? access_global_cell(cell, now, conflict)
                     : access_cell(cell, now, same_value(now, byte, bytes), conflict);
}

/* Bytes first .. last of a word; `byte` of the access is the first of them. */
static bool access_word(OrderLog *log, OrderWord *word, int first, int last, int byte, const OrderAccess *now,
                        bool is_global, OrderConflict *conflict)
{
    bool is_whole = !first && last == WORD - 1;
    if (is_whole && !word->bytes)
        return access_one(&word->whole, now, is_global, byte, WORD, conflict);
    if (!word->bytes && !split(log, word))
        return true;
    for (int i = first; i <= last; i++)
        if (!access_one(&word->bytes[i], now, is_global, byte + i - first, 1, conflict))
            return false;
    return true;
}

static bool access_bytes(OrderLog *log, uint64_t address, int bytes, const OrderAccess *now, bool is_global,
                         OrderConflict *conflict)
{
    for (int byte = 0; byte < bytes;) {
        uint64_t at = address + (uint64_t)byte;
        OrderWord *words = is_global ? segment_of(log, at) : log->shared;
        if (!words)
            return true;
        uint64_t index = is_global ? at / WORD % SEGMENT_WORDS : at / WORD;
        int first = (int)(at % WORD), last = TT_MIN(WORD - 1, first + bytes - byte - 1);
        if (!access_word(log, &words[index], first, last, byte, now, is_global, conflict)) {
            conflict->address = at;
            return false;
        }
        byte += last - first + 1;
    }
    return true;
}

bool tt_order_shared(OrderLog *log, uint32_t offset, int bytes, const OrderAccess *access,
                     OrderConflict *conflict)
{
    return access_bytes(log, offset, bytes, access, false, conflict);
}

bool tt_order_global(OrderLog *log, uint64_t address, int bytes, const OrderAccess *access,
                     OrderConflict *conflict)
{
    return access_bytes(log, address, bytes, access, true, conflict);
}
