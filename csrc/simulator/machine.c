/* The simulator's scheduler, collectives, checks of memory accesses and asynchronous copies. See simulator.h. */
#include "simulator/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

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
    struct SimBlock *next_idle;
    SimThread *threads;
    char *stacks;
    char *shared;
    OrderLog order;
    uint32_t block_epoch;
    uint32_t warp_epoch[SIM_MAX_THREADS / SIM_WARP];
    uint64_t random;
    Guard guard;
    SimThread *running; /* NULL: the scheduler */
    bool
        asks; /* the thread that runs has gone to the scheduler to have it ask whether the launch is to end */
    Coroutine scheduler;
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
    bool first =
        __atomic_compare_exchange_n(&launch->failed, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (first)
        launch->knock();
    return first;
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

/* ---- being interrupted: see support/guard.h ------------------------------------------------------------------------- */

void tt_sim_ask(SimLaunch *launch)
{
    if (!stopped(launch) && launch->ask && pthread_equal(launch->caller, pthread_self()) &&
        launch->ask(launch))
        record_error(launch, FAILURE_OTHER, "interrupted");
}

/* Asking may run any code of Python's, for which a thread's stack is too small: the scheduler does it. */
static bool is_to_end(SimThread *self)
{
    self->block->asks = true;
    yield(self);
    return stopped(self->block->launch);
}

static bool must_leave(Guard *guard)
{
    const SimBlock *block = (SimBlock *)((char *)guard - offsetof(SimBlock, guard));
    return block->running && is_to_end(block->running);
}

/* A knock while the machine was at work is answered where threads come by. */
static void answer_knock(SimThread *self)
{
    if (!self->block->guard.knocked)
        return;
    self->block->guard.knocked = false;
    if (is_to_end(self))
        leave(self);
}

static void leave_thread(Guard *guard)
{
    SimBlock *block = (SimBlock *)((char *)guard - offsetof(SimBlock, guard));
    char words[100];
    if (guard->fault.signal)
        fail_access(block->running, tt_fault_text(&guard->fault, words, sizeof words), block->running->site);
    leave(block->running);
}

void tt_sim_stop_after_failure(SimThread *self)
{
    if (stopped(self->block->launch))
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

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

/* What a thread did, and where. */
typedef struct Deed {
    const char *verb;
    int thread;
    const SimSite *site;
} Deed;

static void race(SimThread *self, const char *memory, Deed earlier, Deed later)
{
    record_error(self->block->launch, FAILURE_RACE,
                 "race in %s: %s by thread %d in %s, then %s by thread %d in %s, with no barrier between; "
                 "program (%d, %d, %d)",
                 memory, earlier.verb, earlier.thread, describe(earlier.site).text, later.verb, later.thread,
                 describe(later.site).text, self->program[0], self->program[1], self->program[2]);
    leave(self);
}

static void report_conflict(SimThread *self, const char *memory, const OrderConflict *conflict, bool is_write,
                            const SimSite *site)
{
    race(self, memory, (Deed){conflict->was_write ? "written" : "read", conflict->thread, conflict->site},
         (Deed){is_write ? "written" : "read", self->index, site});
}

static OrderAccess access_now(const SimThread *self, bool is_write, bool is_atomic, const SimSite *site)
{
    const SimBlock *block = self->block;
    return (OrderAccess){.block_epoch = block->block_epoch,
                         .warp_epoch = block->warp_epoch[self->index / SIM_WARP],
                         .thread = self->index,
                         .is_write = is_write,
                         .is_atomic = is_atomic,
                         .site = site};
}

/* `data`: what a plain store writes, else NULL. */
static void access_shared(SimThread *self, uint32_t offset, int32_t bytes, bool is_write, bool is_atomic,
                          const char *data, const SimSite *site)
{
    SimBlock *block = self->block;
    OrderConflict conflict;
    answer_knock(self);
    if ((uint64_t)offset + (uint64_t)bytes > (uint64_t)block->launch->shared_bytes)
        fail_access(self, "access outside shared memory", site);
    OrderAccess access = access_now(self, is_write, is_atomic, site);
    access.data = data;
    access.present = self->shared + offset;
    if (tt_order_shared(&block->order, offset, bytes, &access, &conflict))
        return;
    char memory[64];
    snprintf(memory, sizeof memory, "shared memory at byte %llu", (unsigned long long)conflict.address);
    report_conflict(self, memory, &conflict, is_write, site);
}

/* Of an access through this site; NULL where it may go anywhere, as through a pointer that was loaded. */
static const SimBuffer *buffer_of(const SimLaunch *launch, const SimSite *site)
{
    bool known = site->array >= 0 && site->array < launch->buffer_count;
    return known ? &launch->buffers[site->array] : NULL;
}

static void check_bounds(SimThread *self, uint64_t address, int32_t bytes, const SimSite *site)
{
    const SimBuffer *buffer = buffer_of(self->block->launch, site);
    if (!buffer || (address >= buffer->start && address + (uint64_t)bytes <= buffer->end))
        return;
    uint64_t first =
        address < buffer->start ? address : TT_MAX(address, buffer->end); /* byte that is outside */
    char message[256];
    snprintf(message, sizeof message, "%s out of bounds of %s: index %lld, and it has %lld elements",
             site->what, buffer->name, (long long)(first - buffer->start) / buffer->element_bytes,
             (long long)(buffer->end - buffer->start) / buffer->element_bytes);
    fail_access(self, message, site);
}

static SimMoment moment_of(const SimThread *self)
{
    const SimBlock *block = self->block;
    return (SimMoment){block->block_epoch, block->warp_epoch[self->index / SIM_WARP]};
}

/* Is there a barrier between what this thread did at a moment and what thread 0 does now, or the other way round? */
static bool meets_first_thread(const SimThread *self, SimMoment moment)
{
    SimMoment now = moment_of(self);
    bool in_its_warp = self->index < SIM_WARP;
    return !self->index || moment.block_epoch < now.block_epoch ||
           (in_its_warp && moment.warp_epoch < now.warp_epoch);
}

void tt_sim_release(SimThread *self, const SimSite *site)
{
    if (!meets_first_thread(self, self->touched))
        race(self, "global memory", (Deed){"used", self->index, self->touched_site},
             (Deed){"released", 0, site});
}

void tt_sim_acquired(SimThread *self, const SimSite *site)
{
    self->acquired = moment_of(self);
    self->acquired_site = site;
}

static void access_global(SimThread *self, uint64_t address, int32_t bytes, int32_t access,
                          const SimSite *site)
{
    SimBlock *block = self->block;
    OrderConflict conflict;
    answer_knock(self);
    self->site = site;
    check_bounds(self, address, bytes, site);
    if (!meets_first_thread(self, self->acquired))
        race(self, "global memory", (Deed){"acquired", 0, self->acquired_site},
             (Deed){"used", self->index, site});
    self->touched = moment_of(self);
    self->touched_site = site;
    OrderAccess now = access_now(self, access != SIM_READ, access == SIM_ATOMIC, site);
    if (tt_order_global(&block->order, address, bytes, &now, &conflict))
        return;
    const SimBuffer *buffer = buffer_of(block->launch, site);
    char memory[200] = "global memory";
    if (buffer)
        snprintf(memory, sizeof memory, "global memory at byte %llu of %s",
                 (unsigned long long)(conflict.address - buffer->start), buffer->name);
    report_conflict(self, memory, &conflict, now.is_write, site);
}

/* Between the machine's memory and the user's, which may not be there. */
static void copy_user(SimThread *self, void *to, const void *from, int32_t bytes)
{
    self->block->guard.away = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(to, from, (size_t)bytes);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->block->guard.away = true;
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
    access_global(self, address, bytes, access, site);
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
    } else {
        access_global(self, address, bytes, access, site);
    }
    copy_user(self, place, data, bytes);
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
        block->warp_epoch[warp] += lanes[first].collective == SIM_SYNC;
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
        access_global(self, address, source_bytes, SIM_READ, site);
    SimCopy *copy = calloc(1, sizeof *copy);
    if (!copy || bytes > (int)sizeof copy->data)
        fail_access(self, "an asynchronous copy of more than 16 bytes, or no memory", site);
    *copy = (SimCopy){.offset = offset, .bytes = bytes, .group = -1, .site = site};
    copy_user(self, copy->data, (const void *)(uintptr_t)address, source_bytes);
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
    tt_coroutine_entered(&self->block->scheduler);
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

static void resume(SimBlock *block, SimThread *thread)
{
    do {
        block->asks = false;
        block->running = thread;
        tt_coroutine_switch(&block->scheduler, &thread->coroutine);
        block->running = NULL;
        if (block->asks || block->guard.knocked) {
            block->guard.knocked = false;
            tt_sim_ask(block->launch);
        }
    } while (block->asks && !stopped(block->launch));
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
            resume(block, &lanes[i]);
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

/* ---- blocks ------------------------------------------------------------------------------------------------------------------------ */

static size_t shared_size(const SimLaunch *launch)
{
    return ((size_t)launch->shared_bytes + 2047) & ~(size_t)1023;
}

static size_t stack_size(const SimLaunch *launch)
{
    return ((size_t)launch->stack_bytes + 4095) & ~(size_t)4095;
}

static size_t stacks_size(const SimLaunch *launch) { return (size_t)launch->threads * stack_size(launch); }

static void free_block(SimBlock *block)
{
    if (block->stacks != MAP_FAILED) {
        tt_coroutine_clear(block->stacks, stacks_size(block->launch));
        munmap(block->stacks, stacks_size(block->launch));
    }
    tt_order_end(&block->order);
    free(block->shared);
    free(block->threads);
    free(block);
}

static SimBlock *new_block(SimLaunch *launch)
{
    SimBlock *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->launch = launch;
    block->threads = calloc((size_t)launch->threads, sizeof *block->threads);
    block->shared = aligned_alloc(1024, shared_size(launch));
    block->stacks = mmap(NULL, stacks_size(launch), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool has_log = tt_order_begin(&block->order, launch->shared_bytes);
    if (has_log && block->threads && block->shared && block->stacks != MAP_FAILED)
        return block;
    free_block(block);
    return NULL;
}

static SimBlock *take_block(SimLaunch *launch)
{
    pthread_mutex_lock(&launch->lock);
    SimBlock *block = launch->idle;
    if (block)
        launch->idle = block->next_idle;
    pthread_mutex_unlock(&launch->lock);
    return block ? block : new_block(launch);
}

static void give_back(SimBlock *block)
{
    SimLaunch *launch = block->launch;
    tt_order_forget(&block->order, launch->shared_bytes);
    pthread_mutex_lock(&launch->lock);
    block->next_idle = launch->idle;
    launch->idle = block;
    pthread_mutex_unlock(&launch->lock);
}

void tt_sim_end(SimLaunch *launch)
{
    for (SimBlock *block = launch->idle, *next; block; block = next) {
        next = block->next_idle;
        free_block(block);
    }
}

static void prepare(SimBlock *block, const int32_t program[3])
{
    const SimLaunch *launch = block->launch;
    block->guard = (Guard){.elsewhere = true,
                           .away = true,
                           .code = {(uintptr_t)launch->entry, launch->code_size},
                           .leave = leave_thread,
                           .must_leave = must_leave};
    block->block_epoch = 1;
    memset(block->warp_epoch, 0, sizeof block->warp_epoch);
    block->random = launch->seed ^ 0x9e3779b97f4a7c15u;
    block->random ^= ((uint64_t)program[0] << 42) ^ ((uint64_t)program[1] << 21) ^ (uint64_t)program[2];
    memset(block->shared, 0xff, shared_size(launch)); /* poison: NaN in every float format */
    for (int i = 0; i < launch->threads; i++) {
        SimThread *thread = &block->threads[i];
        *thread = (SimThread){.index = i, .shared = block->shared, .block = block};
        memcpy(thread->program, program, sizeof thread->program);
        memcpy(thread->grid, launch->grid, sizeof thread->grid);
        thread->copies_end = &thread->copies;
        tt_coroutine_prepare(&thread->coroutine, block->stacks + (size_t)i * stack_size(launch),
                             stack_size(launch), run_thread, thread);
    }
}

void tt_sim_run_block(SimLaunch *launch, const int32_t program[3])
{
    SimBlock *block = take_block(launch);
    if (!block) {
        record_error(launch, FAILURE_OTHER, "out of memory for a simulated block of %d threads",
                     launch->threads);
        return;
    }
    prepare(block, program);
    tt_guard_enter(&block->guard);
    while (!stopped(launch) && !all_done(block))
        if (!run_ready(block) && !release_any(block))
            report_deadlock(block);
    tt_guard_exit(&block->guard);
    free_copies(block);
    if (block->order.out_of_memory)
        record_error(launch, FAILURE_OTHER, "out of memory for the checks of a simulated block's order");
    give_back(block);
}
