/* The simulator's scheduler, meetings of threads, and what else they ask of the machine. See simulator.h. */
#include "simulator/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static bool is_stopped(const SimLaunch *launch)
{
    return __atomic_load_n(&launch->failed, __ATOMIC_RELAXED) != 0;
}

/* Leaves the thread for good or until the scheduler resumes it. */
void sim_yield(SimThread *self) { tt_coroutine_switch(&self->coroutine, &self->block->scheduler); }

void sim_leave(SimThread *self)
{
    self->state = SIM_DONE;
    for (;;)
        sim_yield(self);
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

void sim_record_error(SimLaunch *launch, FailureKind kind, const char *format, ...)
{
    if (!is_first_error(launch))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(launch->error.message, sizeof launch->error.message, format, args);
    va_end(args);
    launch->error.kind = kind;
}

void sim_fail(SimThread *self, FailureKind kind, const SimSite *site, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    sim_record_error(self->block->launch, kind, "%s:%d: %s, in program (%d, %d, %d), thread %d", site->file,
                     site->line, message, self->program[0], self->program[1], self->program[2], self->index);
    sim_leave(self);
}

/* ---- being interrupted: see support/guard.h ------------------------------------------------------------------------- */

void tt_sim_ask(SimLaunch *launch)
{
    if (!is_stopped(launch) && launch->ask && pthread_equal(launch->caller, pthread_self()) &&
        launch->ask(launch))
        sim_record_error(launch, FAILURE_OTHER, "interrupted");
}

/* Asking may run any code of Python's, for which a thread's stack is too small: the scheduler does it. */
static bool is_to_end(SimThread *self)
{
    self->block->asks = true;
    sim_yield(self);
    return is_stopped(self->block->launch);
}

static bool must_leave(Guard *guard)
{
    const SimBlock *block = (SimBlock *)((char *)guard - offsetof(SimBlock, guard));
    return block->running && is_to_end(block->running);
}

void sim_answer_knock(SimThread *self)
{
    if (!self->block->guard.knocked)
        return;
    self->block->guard.knocked = false;
    if (is_to_end(self))
        sim_leave(self);
}

static void leave_thread(Guard *guard)
{
    SimBlock *block = (SimBlock *)((char *)guard - offsetof(SimBlock, guard));
    char words[100];
    if (guard->fault.signal)
        sim_fail(block->running, FAILURE_ACCESS, block->running->site, "%s",
                 tt_fault_text(&guard->fault, words, sizeof words));
    sim_leave(block->running);
}

void tt_sim_stop_after_failure(SimThread *self)
{
    if (is_stopped(self->block->launch))
        sim_leave(self);
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
    sim_leave(self);
}

/* ---- services --------------------------------------------------------------------------------------------------------------- */

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
    sim_yield(self);
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
    sim_yield(self);
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

bool sim_meet(SimThread *self, int threads, void *value, const SimSite *site)
{
    self->state = SIM_AT_MEETING;
    self->argument = threads;
    self->value = (uintptr_t)value;
    self->site = site;
    sim_yield(self);
    bool is_first = self->result;
    SimThread *first = self - self->index % threads;
    for (int i = 0; is_first && i < threads; i++)
        first[i].result = 0;
    return is_first;
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

/* Lets the threads from this one on go on if all that are to meet have come. */
static bool release_meeting(SimThread *first)
{
    int threads = first->argument;
    if (first->state != SIM_AT_MEETING || first->index % threads)
        return false;
    for (int i = 1; i < threads; i++)
        if (first[i].state != SIM_AT_MEETING || first[i].argument != threads || first[i].site != first->site)
            return false;
    for (int i = 0; i < threads; i++) {
        first[i].state = SIM_READY;
        first[i].result = 1;
    }
    return true;
}

static void settle_fences(SimThread *thread) { thread->settled_fences = thread->fences; }

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
            if (block->threads[i].state == SIM_AT_BARRIER && block->threads[i].barrier == id) {
                settle_fences(&block->threads[i]);
                block->threads[i].state = SIM_READY;
            }
        return true;
    }
    return false;
}

/* ---- the scheduler ------------------------------------------------------------------------------------------------------------------ */

static void run_thread(void *argument)
{
    SimThread *self = argument;
    tt_coroutine_entered(&self->block->scheduler);
    self->block->launch->entry(self, self->block->launch->args);
    sim_check_copies(self);
    sim_check_products(self);
    sim_check_blocks(self);
    sim_leave(self);
}

uint64_t sim_random(SimBlock *block)
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
        if (thread->state != SIM_DONE) {
            waiting++;
            stuck = stuck ? stuck : thread;
        }
    }
    sim_record_error(
        block->launch, FAILURE_OTHER,
        "%d threads wait at a %s in %s that the others never reach (%d have ended); program (%d, %d, %d)",
        waiting,
        stuck->state == SIM_AT_BARRIER   ? "barrier"
        : stuck->state == SIM_AT_ARRIVAL ? "barrier for copies"
                                         : "warp collective",
        sim_describe(stuck->site).text, done, stuck->program[0], stuck->program[1], stuck->program[2]);
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
    } while (block->asks && !is_stopped(block->launch));
}

/* Runs every ready thread once; warps in a random order when there is a seed. True if any ran. */
static bool run_ready(SimBlock *block)
{
    int warps = block->launch->threads / SIM_WARP;
    int first = block->launch->seed ? (int)(sim_random(block) % (uint64_t)warps) : 0;
    bool ran = false;
    for (int w = 0; w < warps; w++) {
        SimThread *lanes = block->threads + (w + first) % warps * SIM_WARP;
        for (int i = 0; i < SIM_WARP && !is_stopped(block->launch); i++) {
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
        while (release_warp(block, warp) || release_meeting(block->threads + warp * SIM_WARP))
            released = true;
    while (release_barrier(block))
        released = true;
    released |= sim_release_arrivals(block);
    return released;
}

static bool all_done(const SimBlock *block)
{
    for (int i = 0; i < block->launch->threads; i++)
        if (block->threads[i].state != SIM_DONE)
            return false;
    return true;
}

static void free_pending(SimBlock *block)
{
    for (int i = 0; i < block->launch->threads; i++)
        sim_free_copies(&block->threads[i]);
    sim_free_products(block);
    sim_free_blocks(block);
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
    block->blocks_end = &block->blocks;
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
        sim_record_error(launch, FAILURE_OTHER, "out of memory for a simulated block of %d threads",
                         launch->threads);
        return;
    }
    prepare(block, program);
    tt_guard_enter(&block->guard);
    while (!is_stopped(launch) && !all_done(block))
        if (!run_ready(block) && !release_any(block))
            report_deadlock(block);
    tt_guard_exit(&block->guard);
    free_pending(block);
    if (block->order.out_of_memory)
        sim_record_error(launch, FAILURE_OTHER, "out of memory for the checks of a simulated block's order");
    give_back(block);
}
