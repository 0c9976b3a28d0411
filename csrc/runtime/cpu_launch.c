/* Running a grid of programs of a compiled kernel: inline when it is little work, else on the pool; and what programs
 * call back while they run. */
#include "cpu/kernel.h"
#include "runtime/failure.h"
#include "runtime/thread_pool.h"
#include "runtime/watch.h"
#include "support/guard.h"
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* Waking a worker costs several microseconds; a job shorter than this is done before one has arrived. */
static const float WORTH_WAKING = 15e3f, WORTH_A_CHUNK = 4e3f;

enum { CHUNKS_A_THREAD = 8 };

typedef struct Running {
    CpuLaunch launch; /* first: the callbacks get a pointer to it */
    CpuKernel *kernel;
    Interrupt *interrupt;
    pthread_t caller;
    pthread_mutex_t lock; /* of what follows */
    Arena *arena;
    Printed *printed, **printed_end;
    FailureText error;
    Fault fault; /* the first one */
    int32_t fault_program[3];
} Running;

static bool stopped(const Running *running)
{
    return __atomic_load_n(&running->launch.stopped, __ATOMIC_RELAXED);
}

/* Programs that run are left where they stand, and no others begin. */
static void stop(Running *running)
{
    if (!__atomic_exchange_n(&running->launch.stopped, 1, __ATOMIC_SEQ_CST))
        tt_knock_at_job();
}

/* ---- what programs call back --------------------------------------------------------------------------------------------------- */

/* Under a trap, for there may be no memory; then the launch fails. */
static void with_lock(Running *running, void (*keep)(Running *running, void *context), void *context)
{
    Trap trap;
    Guard *guard = tt_guard_go_away();
    pthread_mutex_lock(&running->lock);
    if (tt_try(&trap, running->arena)) {
        keep(running, context);
        tt_end_try(&trap);
    } else {
        running->error.text = "out of memory for the output of the kernel";
        stop(running);
    }
    pthread_mutex_unlock(&running->lock);
    tt_guard_return(guard);
}

typedef struct Callback {
    const CpuSite *site;
    int32_t program[3];
    const void *const *operands; /* of a print */
    const int64_t *values;       /* of an assertion, or NULL */
} Callback;

static void write_failure(Running *running, void *context)
{
    const Callback *call = context;
    Text text = {.arena = running->arena};
    stop(running);
    if (running->error.text)
        return;
    tt_write_failure(&text, &call->site->failure, call->values, call->program);
    running->error = (FailureText){call->site->failure.kind, text.data};
}

static void on_failure(CpuLaunch *launch, const CpuSite *site, int32_t x, int32_t y, int32_t z,
                       const int64_t *values)
{
    Callback call = {site, {x, y, z}, NULL, values};
    with_lock((Running *)launch, write_failure, &call);
}

static void keep_print(Running *running, void *context)
{
    const Callback *call = context;
    const CpuSite *site = call->site;
    Printed *printed = TT_NEW(running->arena, Printed);
    *printed = (Printed){.site = site,
                         .program = {call->program[0], call->program[1], call->program[2]},
                         .values = TT_NEW_ARRAY(running->arena, Bytes, site->operand_count)};
    for (int i = 0; i < site->operand_count; i++) {
        size_t size = (size_t)site->operands[i].size;
        printed->values[i] = (Bytes){tt_arena_copy(running->arena, call->operands[i], size), size};
    }
    *running->printed_end = printed;
    running->printed_end = &printed->next;
}

static void on_print(CpuLaunch *launch, const CpuSite *site, int32_t x, int32_t y, int32_t z,
                     const void *const *operands)
{
    Callback call = {site, {x, y, z}, operands, NULL};
    with_lock((Running *)launch, keep_print, &call);
}

/* ---- the launch ------------------------------------------------------------------------------------------------------------------ */

/* Programs in a thread: from `begin` of the grid on. */
typedef struct Run {
    Guard guard; /* first: its functions get a pointer to it */
    Running *running;
    void *out[5]; /* for GCC's own setjmp, which is a few instructions */
} Run;

static void leave_programs(Guard *guard) { __builtin_longjmp(((Run *)guard)->out, 1); }

/* Only the caller's thread may ask whether the launch is interrupted. */
static bool is_interrupted(Running *running)
{
    if (!stopped(running) && running->interrupt && pthread_equal(pthread_self(), running->caller) &&
        tt_ask_interrupt(running->interrupt))
        stop(running);
    return stopped(running);
}

static bool must_leave_programs(Guard *guard) { return is_interrupted(((Run *)guard)->running); }

static void place_of(const Running *running, int64_t number, int32_t program[3])
{
    const int32_t *grid = running->launch.grid;
    program[0] = (int32_t)(number % grid[0]);
    program[1] = (int32_t)(number / grid[0] % grid[1]);
    program[2] = (int32_t)(number / grid[0] / grid[1]);
}

static void note_fault(Running *running, const Fault *fault, int64_t program)
{
    pthread_mutex_lock(&running->lock);
    if (!running->fault.signal) {
        running->fault = *fault;
        place_of(running, program, running->fault_program);
    }
    pthread_mutex_unlock(&running->lock);
    stop(running);
}

/* The knock that comes with a stop is missed by who is not under a guard yet; who is asks once more. */
static bool run_programs(void *context, int64_t begin, int64_t end)
{
    Running *running = context;
    CpuScratch *scratch = stopped(running) ? NULL : tt_take_scratch(running->kernel->image.scratch_size);
    if (!scratch) {
        if (!stopped(running))
            running->error.text = "out of memory for the kernel's scratch";
        stop(running);
        return false;
    }
    int32_t first[3];
    place_of(running, begin, first);
    Run run;
    run.guard = (Guard){.leave = leave_programs, .must_leave = must_leave_programs};
    run.running = running;
    if (!__builtin_setjmp(run.out)) {
        tt_guard_enter(&run.guard);
        if (!stopped(running))
            running->kernel->entry(&running->launch, scratch, end - begin, first[0], first[1], first[2]);
    } else if (run.guard.fault.signal) {
        note_fault(running, &run.guard.fault, end - scratch->left);
    }
    tt_guard_exit(&run.guard);
    tt_return_scratch(scratch);
    return !stopped(running);
}

static void while_waiting(void *context) { is_interrupted(context); }

/* What one program took the last times decides whether others are woken, and for how much at a time. */
static void run_grid(Running *running, int64_t count)
{
    CpuKernel *kernel = running->kernel;
    float each = kernel->nanoseconds;
    int threads = count > 1 && (each == 0 || each * (float)count > WORTH_WAKING) ? tt_thread_count() : 1;
    if (count == 1) {
        run_programs(running, 0, 1);
        return;
    }
    double start = tt_milliseconds();
    if (threads == 1) {
        run_programs(running, 0, count);
    } else {
        int64_t chunk = TT_MAX(count / ((int64_t)threads * CHUNKS_A_THREAD), 1);
        if (each > 0 && (float)chunk * each < WORTH_A_CHUNK)
            chunk = TT_MIN((int64_t)(WORTH_A_CHUNK / each) + 1, (count + threads - 1) / threads);
        tt_parallel_for(count, chunk, threads, run_programs, while_waiting, running);
    }
    float measured = (float)((tt_milliseconds() - start) * 1e6 * threads / (double)count);
    kernel->nanoseconds = each > 0 ? 0.75f * each + 0.25f * measured : measured;
}

/* Bytes of the cache that a core shares with its neighbours. (sysconf adds up all such caches of some machines.) */
static double last_cache(void)
{
    static _Atomic long known;
    long kilobytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (kilobytes)
        return (double)kilobytes * 1024;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (!file || fscanf(file, "%ldK", &kilobytes) != 1 || kilobytes < 1024)
        kilobytes = 32 << 10;
    if (file)
        fclose(file);
    atomic_store(&known, kilobytes);
    return (double)kilobytes * 1024;
}

/* What does not fit the last cache beside what was read for it need not go through the caches: storing a line there
 * reads it from memory first. */
static bool should_stream(const CpuKernel *kernel, double programs)
{
    if (!kernel->image.streams)
        return false;
    return programs * (double)kernel->stored_bytes >= 0.45 * last_cache();
}

/* In the arena; empty if it cannot be found out. */
static const char *place_of_fault(const Running *running)
{
    Trap trap;
    if (!tt_try(&trap, running->arena))
        return "";
    const char *place = tt_cpu_place(running->kernel, running->fault.instruction, running->arena);
    tt_end_try(&trap);
    return place ? place : "";
}

static FailureText describe_fault(const Running *running)
{
    Text text = {.arena = running->arena};
    char words[100];
    Failure failure = {.kind = FAILURE_ACCESS,
                       .place = place_of_fault(running),
                       .message = tt_fault_text(&running->fault, words, sizeof words)};
    tt_write_failure(&text, &failure, NULL, running->fault_program);
    tt_text_add(&text, "; with TRITON_DEBUG=1 the array and the index are named");
    return (FailureText){FAILURE_ACCESS, text.data};
}

FailureText tt_cpu_launch(CpuKernel *kernel, const uint64_t *args, const int32_t grid[3],
                          Interrupt *interrupt, Arena *arena, const Printed **printed)
{
    Running running = {
        .launch = {.args = args,
                   .grid = {grid[0], grid[1], grid[2]},
                   .stream = should_stream(kernel, (double)grid[0] * grid[1] * grid[2]),
                   .print = on_print,
                   .fail = on_failure},
        .kernel = kernel,
        .interrupt = interrupt,
        .caller = pthread_self(),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .arena = arena,
    };
    running.printed_end = &running.printed;
    *printed = NULL;
    int64_t count = (int64_t)grid[0] * grid[1];
    if (count < 1 || grid[2] < 1)
        return (FailureText){0};
    run_grid(&running, count * grid[2]);
    if (kernel->image.streams)
        kernel->stored_bytes = (float)((double)running.launch.stored_bytes / ((double)count * grid[2]));
    *printed = running.printed;
    if (running.fault.signal && !running.error.text)
        running.error = describe_fault(&running);
    return running.error;
}
