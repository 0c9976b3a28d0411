/* The simulator's scheduler, collectives, shared-memory order checking and asynchronous copies. See simulator.h. */
#include "simulator/simulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_BYTES = 256 << 10 };

/* ---- who touched a byte -------------------------------------------------------------------------------------------------- */

/* A block barrier of all threads starts a new block epoch for everyone; a warp collective a new warp epoch for its
 * warp. Access a is ordered before access b when b's block epoch is later, or they are of one warp and b's warp epoch
 * is later, or they are of one thread. */
typedef struct Access {
    uint32_t block_epoch, warp_epoch;
    int16_t thread;  /* -1: nobody */
    bool many_warps; /* readers: other warps read it in this block epoch too */
    bool many_lanes; /* ... other lanes of this warp did in this warp epoch */
    bool atomic;
    const SimSite *site;
} Access;

typedef struct ByteHistory {
    Access write, read;
} ByteHistory;

typedef struct SimCopy {
    struct SimCopy *next;
    uint32_t offset;
    int32_t bytes;
    int32_t group; /* -1 until committed */
    const SimSite *site;
    char data[16];
} SimCopy;

typedef struct SimBlock {
    SimLaunch *launch;
    SimThread *threads;
    char *stacks;
    char *shared;
    ByteHistory *history;
    uint32_t block_epoch;
    uint32_t warp_epoch[SIM_MAX_THREADS / SIM_WARP];
    uint64_t random;
    Coroutine scheduler;
    SimThread *running;
    int live;
} SimBlock;

static bool stopped(const SimLaunch *launch)
{
    return __atomic_load_n(&launch->failed, __ATOMIC_RELAXED) != 0;
}

/* Leaves the thread for good or until the scheduler resumes it. */
static void yield(SimThread *self) { tt_coroutine_switch(&self->coroutine, &self->block->scheduler); }

static _Noreturn void leave(SimThread *self)
{
    self->state = SIM_DONE;
    for (;;)
        yield(self);
}

/* Whether this is the launch's first error, which is the one that is told. */
static bool is_first_error(SimLaunch *launch)
{
    int32_t none = 0;
    return __atomic_compare_exchange_n(&launch->failed, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void record_error(SimLaunch *launch, FailureKind kind, const char *format, ...) TT_PRINTF(3, 4);
static void record_error(SimLaunch *launch, FailureKind kind, const char *format, ...)
{
    if (!is_first_error(launch))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(launch->error.message, sizeof launch->error.message, format, args);
    va_end(args);
    launch->error.kind = kind;
}

typedef struct Place {
    char text[200];
} Place;

static Place describe(const SimSite *site)
{
    Place place;
    if (site)
        snprintf(place.text, sizeof place.text, "%s (%s:%d)", site->what, site->file, site->line);
    else
        snprintf(place.text, sizeof place.text, "an unnamed access");
    return place;
}

static _Noreturn void fail_access(SimThread *self, const char *message, const SimSite *site)
{
    record_error(self->block->launch, FAILURE_ACCESS, "%s:%d: %s, in program (%d, %d, %d), thread %d",
                 site->file, site->line, message, self->program[0], self->program[1], self->program[2],
                 self->index);
    leave(self);
}

void tt_sim_fail_check(SimThread *self, int32_t kind, const char *place, const char *message, int64_t first,
                       int64_t second)
{
    SimLaunch *launch = self->block->launch;
    if (is_first_error(launch)) {
        launch->error.check = (Failure){(FailureKind)kind, place, message};
        memcpy(launch->error.values, (int64_t[]){first, second}, sizeof launch->error.values);
        memcpy(launch->error.program, self->program, sizeof launch->error.program);
    }
    leave(self);
}

/* ---- order in shared memory ------------------------------------------------------------------------------------------------ */

static bool ordered(const SimBlock *block, const Access *earlier, const SimThread *now)
{
    int warp = now->index / SIM_WARP;
    if (earlier->thread < 0 || earlier->block_epoch < block->block_epoch)
        return true;
    if (earlier->many_warps)
        return false;
    if (earlier->thread / SIM_WARP != warp)
        return false;
    if (earlier->warp_epoch < block->warp_epoch[warp])
        return true;
    return earlier->thread == now->index && !earlier->many_lanes;
}

static void race(SimThread *self, const char *how, const Access *earlier, uint32_t byte, const SimSite *site)
{
    record_error(
        self->block->launch, FAILURE_RACE,
        "race in shared memory at byte %u: %s by thread %d in %s, and by thread %d in %s, with no barrier "
        "between them; program (%d, %d, %d)",
        byte, how, earlier->thread, describe(earlier->site).text, self->index, describe(site).text,
        self->program[0], self->program[1], self->program[2]);
    leave(self);
}

static void note_read(SimBlock *block, Access *read, const SimThread *self, const SimSite *site)
{
    int warp = self->index / SIM_WARP;
    Access now = {
        block->block_epoch, block->warp_epoch[warp], (int16_t)self->index, false, false, false, site};
    if (read->thread >= 0 && read->block_epoch == block->block_epoch) {
        bool same_warp = read->thread / SIM_WARP == warp;
        now.many_warps = read->many_warps || !same_warp;
        now.many_lanes = same_warp && read->warp_epoch == now.warp_epoch &&
                         (read->many_lanes || read->thread != self->index);
    }
    *read = now;
}

/* `data`: what a plain store writes, else NULL. */
static void access_shared(SimThread *self, uint32_t offset, int32_t bytes, bool is_write, bool is_atomic,
                          const char *data, const SimSite *site)
{
    SimBlock *block = self->block;
    if ((uint64_t)offset + (uint64_t)bytes > (uint64_t)block->launch->shared_bytes)
        fail_access(self, "access outside shared memory", site);
    for (uint32_t byte = offset; byte < offset + (uint32_t)bytes; byte++) {
        ByteHistory *history = &block->history[byte];
        bool harmless = (is_atomic && history->write.atomic) ||
                        (data && self->shared[byte] == data[byte - offset]); /* the same value again */
        if (!harmless && !ordered(block, &history->write, self))
            race(self, is_write ? "written" : "written, then read", &history->write, byte, site);
        if (is_write && !is_atomic && !ordered(block, &history->read, self))
            race(self, "read, then written", &history->read, byte, site);
        if (!is_write) {
            note_read(block, &history->read, self, site);
        } else {
            int warp = self->index / SIM_WARP;
            history->write = (Access){block->block_epoch,
                                      block->warp_epoch[warp],
                                      (int16_t)self->index,
                                      false,
                                      false,
                                      is_atomic,
                                      site};
        }
    }
}

static void access_global(SimThread *self, uint64_t address, int32_t bytes, bool is_write,
                          const SimSite *site)
{
    const SimLaunch *launch = self->block->launch;
    if (!launch->buffer_count)
        return;
    int low = 0, high = launch->buffer_count; /* the last buffer that starts at or before the address */
    while (low < high) {
        int middle = (low + high) / 2;
        if (launch->buffers[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const SimBuffer *buffer = low ? &launch->buffers[low - 1] : NULL;
    char message[256];
    const char *access = is_write ? "store" : "load";
    if (buffer && address + (uint64_t)bytes <= buffer->end) {
        if (!is_write || !buffer->read_only)
            return;
        snprintf(message, sizeof message, "write to %s, which is read-only", buffer->name);
    } else if (buffer) {
        snprintf(message, sizeof message,
                 "%s out of bounds of every array; of the nearest one below, %s, it is index %lld, and it "
                 "has %lld "
                 "elements",
                 access, buffer->name, (long long)(address - buffer->start) / buffer->element_bytes,
                 (long long)(buffer->end - buffer->start) / buffer->element_bytes);
    } else {
        snprintf(message, sizeof message, "%s out of bounds: address 0x%llx lies below every array", access,
                 (unsigned long long)address);
    }
    fail_access(self, message, site);
}

/* Vectors of up to 16 bytes must be aligned to their size, as the hardware has it. */
static void check_alignment(SimThread *self, uint64_t address, int32_t bytes, const SimSite *site)
{
    if (address % (uint64_t)bytes)
        fail_access(self, "misaligned access", site);
}

void *tt_sim_access(SimThread *self, int32_t space, uint64_t address, int32_t bytes, int32_t access,
                    int32_t predicate, const SimSite *site)
{
    if (!predicate)
        return memset(self->dummy, 0, sizeof self->dummy);
    check_alignment(self, address, bytes, site);
    if (space == SIM_SHARED) {
        access_shared(self, (uint32_t)address, bytes, access != SIM_READ, access == SIM_ATOMIC, NULL, site);
        return self->shared + (uint32_t)address;
    }
    if (!(access & SIM_ANYWHERE))
        access_global(self, address, bytes, access != SIM_READ, site);
    return (void *)(uintptr_t)address;
}

void tt_sim_store(SimThread *self, int32_t space, uint64_t address, int32_t bytes, int32_t access,
                  const void *data, int32_t predicate, const SimSite *site)
{
    if (!predicate)
        return;
    check_alignment(self, address, bytes, site);
    char *place = (char *)(uintptr_t)address;
    if (space == SIM_SHARED) {
        access_shared(self, (uint32_t)address, bytes, true, false, data, site);
        place = self->shared + (uint32_t)address;
    } else if (!(access & SIM_ANYWHERE)) {
        access_global(self, address, bytes, true, site);
    }
    memcpy(place, data, (size_t)bytes);
}

static float in_low_bits(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

float tt_sim_float_to_bf16(float value)
{
    return in_low_bits(tt_float_encode(&tt_format_bf16, value, false));
}

float tt_sim_double_to_bf16(double value)
{
    return in_low_bits(tt_float_encode(&tt_format_bf16, value, false));
}

float tt_sim_double_to_f16(double value)
{
    return in_low_bits(tt_float_encode(&tt_format_f16, value, false));
}

/* One conversion of the format at a time, each with the slot read as its letter says. */
static void print_piece(Text *text, const char *piece, uint64_t slot)
{
    double number;
    char letter = piece[strlen(piece) - 1];
    memcpy(&number, &slot, sizeof number);
    char out[400];
    if (strchr("feg", letter))
        snprintf(out, sizeof out, piece, number);
    else if (letter == 's')
        snprintf(out, sizeof out, piece, (const char *)(uintptr_t)slot);
    else
        snprintf(out, sizeof out, piece, (long long)slot);
    tt_text_add(text, "%s", out);
}

static void print_formatted(Text *text, const char *format, const uint64_t *arguments)
{
    for (;;) {
        size_t plain = strcspn(format, "%");
        tt_text_add_n(text, format, plain);
        format += plain;
        if (!*format)
            return;
        char piece[32];
        bool percent = format[1] == '%';
        size_t length = percent ? 2 : strcspn(format, "dufegsxX") + 1;
        snprintf(piece, sizeof piece, "%.*s", (int)length, format);
        if (percent)
            tt_text_add(text, "%%");
        else
            print_piece(text, piece, *arguments++);
        format += length;
    }
}

void tt_sim_print(SimThread *self, const char *format, const uint64_t *arguments)
{
    SimLaunch *launch = self->block->launch;
    Trap trap;
    pthread_mutex_lock(&launch->lock);
    if (tt_try(&trap, launch->printed->arena)) {
        print_formatted(launch->printed, format, arguments);
        tt_end_try(&trap);
    }
    pthread_mutex_unlock(&launch->lock);
}

/* ---- meetings ---------------------------------------------------------------------------------------------------------------- */

void tt_sim_barrier(SimThread *self, int32_t id, int32_t count, const SimSite *site)
{
    self->state = SIM_AT_BARRIER;
    self->barrier = id;
    self->argument = count ? count : self->block->launch->threads;
    self->site = site;
    yield(self);
}

static uint64_t meet_warp(SimThread *self, int collective, uint32_t mask, uint64_t value, int argument,
                          const SimSite *site)
{
    self->state = SIM_AT_COLLECTIVE;
    self->collective = collective;
    self->mask = mask;
    self->value = value;
    self->argument = argument;
    self->site = site;
    yield(self);
    return self->result;
}

void tt_sim_warp_sync(SimThread *self, uint32_t mask, const SimSite *site)
{
    meet_warp(self, SIM_SYNC, mask, 0, 0, site);
}

uint64_t tt_sim_shuffle(SimThread *self, int32_t mode, uint64_t value, int32_t argument, const SimSite *site)
{
    return meet_warp(self, mode, 0xffffffffu, value, argument, site);
}

uint32_t tt_sim_ballot(SimThread *self, int32_t predicate, const SimSite *site)
{
    return (uint32_t)meet_warp(self, SIM_BALLOT, 0xffffffffu, predicate != 0, 0, site);
}

static uint64_t collective_result(const SimThread *warp, int lane)
{
    const SimThread *self = &warp[lane];
    int source = lane;
    switch (self->collective) {
    case SIM_SHUFFLE_XOR:
        source = lane ^ self->argument;
        break;
    case SIM_SHUFFLE_UP:
        source = lane - self->argument;
        break;
    case SIM_SHUFFLE_DOWN:
        source = lane + self->argument;
        break;
    case SIM_SHUFFLE_INDEX:
        source = self->argument & (SIM_WARP - 1);
        break;
    case SIM_BALLOT: {
        uint64_t votes = 0;
        for (int i = 0; i < SIM_WARP; i++)
            votes |= (self->mask >> i & 1) && warp[i].value ? 1ull << i : 0;
        return votes;
    }
    default:
        return 0;
    }
    return source >= 0 && source < SIM_WARP ? warp[source].value : self->value;
}

/* Lets the warp go on when all lanes of the waiting lanes' mask have come to the same collective. */
static bool release_warp(SimBlock *block, int warp)
{
    SimThread *lanes = block->threads + warp * SIM_WARP;
    for (int first = 0; first < SIM_WARP; first++) {
        if (lanes[first].state != SIM_AT_COLLECTIVE)
            continue;
        uint32_t mask = lanes[first].mask;
        bool together = true;
        for (int i = 0; i < SIM_WARP; i++)
            if (mask >> i & 1)
                together = together && lanes[i].state == SIM_AT_COLLECTIVE && lanes[i].mask == mask &&
                           lanes[i].collective == lanes[first].collective;
        if (!together)
            continue;
        block->warp_epoch[warp]++;
        for (int i = 0; i < SIM_WARP; i++)
            if (mask >> i & 1)
                lanes[i].result = collective_result(lanes, i);
        for (int i = 0; i < SIM_WARP; i++)
            if (mask >> i & 1)
                lanes[i].state = SIM_READY;
        return true;
    }
    return false;
}

static bool release_barrier(SimBlock *block)
{
    int threads = block->launch->threads;
    for (int id = 0; id < SIM_BARRIERS; id++) {
        int waiting = 0, expected = 0;
        for (int i = 0; i < threads; i++)
            if (block->threads[i].state == SIM_AT_BARRIER && block->threads[i].barrier == id) {
                waiting++;
                expected = block->threads[i].argument;
            }
        if (!waiting || waiting < expected)
            continue;
        if (expected == threads) {
            block->block_epoch++;
        } else {
            /* A barrier of some warps orders those warps. Counting it as a block epoch would hide races of the
             * others, so their warp epochs move on; order across those warps is then found missing only if real. */
            for (int i = 0; i < threads; i++)
                if (block->threads[i].state == SIM_AT_BARRIER && block->threads[i].barrier == id)
                    block->warp_epoch[i / SIM_WARP]++;
        }
        for (int i = 0; i < threads; i++)
            if (block->threads[i].state == SIM_AT_BARRIER && block->threads[i].barrier == id)
                block->threads[i].state = SIM_READY;
        return true;
    }
    return false;
}

/* ---- asynchronous copies -------------------------------------------------------------------------------------------------------- */

void tt_sim_copy_async(SimThread *self, uint32_t offset, uint64_t address, int32_t bytes,
                       int32_t source_bytes, const SimSite *site)
{
    if (source_bytes)
        access_global(self, address, source_bytes, false, site);
    SimCopy *copy = calloc(1, sizeof *copy);
    if (!copy || bytes > (int)sizeof copy->data)
        fail_access(self, "an asynchronous copy of more than 16 bytes, or no memory", site);
    *copy = (SimCopy){.offset = offset, .bytes = bytes, .group = -1, .site = site};
    memcpy(copy->data, (const void *)(uintptr_t)address, (size_t)source_bytes);
    *self->copies_end = copy;
    self->copies_end = &copy->next;
}

void tt_sim_copy_commit(SimThread *self)
{
    for (SimCopy *copy = self->copies; copy; copy = copy->next)
        if (copy->group < 0)
            copy->group = self->open_groups;
    self->open_groups++;
}

void tt_sim_copy_wait(SimThread *self, int32_t groups_left)
{
    int landed = self->open_groups - groups_left; /* groups below this number must be complete */
    while (self->copies && self->copies->group >= 0 && self->copies->group < landed) {
        SimCopy *copy = self->copies;
        self->copies = copy->next;
        if (!self->copies)
            self->copies_end = &self->copies;
        access_shared(self, copy->offset, copy->bytes, true, false, NULL, copy->site);
        memcpy(self->shared + copy->offset, copy->data, (size_t)copy->bytes);
        free(copy);
    }
}

/* ---- the scheduler ------------------------------------------------------------------------------------------------------------------ */

static void run_thread(void *argument)
{
    SimThread *self = argument;
    self->block->launch->entry(self, self->block->launch->args);
    leave(self);
}

static uint64_t next_random(SimBlock *block)
{
    block->random ^= block->random << 13; /* xorshift64 (Marsaglia 2003) */
    block->random ^= block->random >> 7;
    return block->random ^= block->random << 17;
}

static void report_deadlock(SimBlock *block)
{
    const SimThread *stuck = NULL;
    int waiting = 0, done = 0;
    for (int i = 0; i < block->launch->threads; i++) {
        const SimThread *thread = &block->threads[i];
        done += thread->state == SIM_DONE;
        if (thread->state == SIM_AT_BARRIER || thread->state == SIM_AT_COLLECTIVE) {
            waiting++;
            stuck = stuck ? stuck : thread;
        }
    }
    record_error(
        block->launch, FAILURE_OTHER,
        "%d threads wait at a %s in %s that the others never reach (%d have ended); program (%d, %d, %d)",
        waiting, stuck->state == SIM_AT_BARRIER ? "barrier" : "warp collective", describe(stuck->site).text,
        done, stuck->program[0], stuck->program[1], stuck->program[2]);
}

/* Runs every ready thread once; warps in a random order when there is a seed. True if any ran. */
static bool run_ready(SimBlock *block)
{
    int warps = block->launch->threads / SIM_WARP;
    int first = block->launch->seed ? (int)(next_random(block) % (uint64_t)warps) : 0;
    bool ran = false;
    for (int w = 0; w < warps; w++) {
        SimThread *lanes = block->threads + (w + first) % warps * SIM_WARP;
        for (int i = 0; i < SIM_WARP && !stopped(block->launch); i++) {
            if (lanes[i].state != SIM_READY)
                continue;
            ran = true;
            tt_coroutine_switch(&block->scheduler, &lanes[i].coroutine);
        }
    }
    return ran;
}

static bool release_any(SimBlock *block)
{
    bool released = false;
    for (int warp = 0; warp < block->launch->threads / SIM_WARP; warp++)
        while (release_warp(block, warp))
            released = true;
    while (release_barrier(block))
        released = true;
    return released;
}

static bool all_done(const SimBlock *block)
{
    for (int i = 0; i < block->launch->threads; i++)
        if (block->threads[i].state != SIM_DONE)
            return false;
    return true;
}

static void free_copies(SimBlock *block)
{
    for (int i = 0; i < block->launch->threads; i++)
        for (SimCopy *copy = block->threads[i].copies, *next; copy; copy = next) {
            next = copy->next;
            free(copy);
        }
}

void tt_sim_run_block(SimLaunch *launch, const int32_t program[3])
{
    size_t stack_bytes = (size_t)launch->threads * STACK_BYTES;
    SimBlock block = {.launch = launch, .random = launch->seed ^ 0x9e3779b97f4a7c15u};
    block.random ^= ((uint64_t)program[0] << 42) ^ ((uint64_t)program[1] << 21) ^ (uint64_t)program[2];
    block.threads = calloc((size_t)launch->threads, sizeof *block.threads);
    block.shared = aligned_alloc(1024, ((size_t)launch->shared_bytes + 2047) & ~(size_t)1023);
    block.history = calloc((size_t)launch->shared_bytes + 1, sizeof *block.history);
    block.stacks =
        mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!block.threads || !block.shared || !block.history || block.stacks == MAP_FAILED) {
        record_error(launch, FAILURE_OTHER, "out of memory for a simulated block of %d threads",
                     launch->threads);
    } else {
        memset(block.shared, 0xff, (size_t)launch->shared_bytes); /* poison: NaN in every float format */
        for (int i = 0; i < launch->shared_bytes; i++)
            block.history[i].write.thread = block.history[i].read.thread = -1;
        for (int i = 0; i < launch->threads; i++) {
            SimThread *thread = &block.threads[i];
            *thread = (SimThread){.index = i, .shared = block.shared, .block = &block};
            memcpy(thread->program, program, sizeof thread->program);
            memcpy(thread->grid, launch->grid, sizeof thread->grid);
            thread->copies_end = &thread->copies;
            tt_coroutine_prepare(&thread->coroutine, block.stacks + (size_t)i * STACK_BYTES, STACK_BYTES,
                                 run_thread, thread);
        }
        while (!stopped(launch) && !all_done(&block))
            if (!run_ready(&block) && !release_any(&block))
                report_deadlock(&block);
        free_copies(&block);
    }
    if (block.stacks != MAP_FAILED)
        munmap(block.stacks, stack_bytes);
    free(block.history);
    free(block.shared);
    free(block.threads);
}
