/* The pool. A job is announced by a new generation number; idle workers spin on it for a moment, then sleep. A worker
 * takes part by entering the job, which the announcer closes once no items are left; so nobody waits for a worker
 * that is still waking up, and a job that ends before it has entered passes it by. */
#define _GNU_SOURCE
#include "runtime/thread_pool.h"
#include "support/guard.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_THREADS = 1024,
    IDLE_SPINS = 4000,  /* about 40 us: the gap between launches that follow each other */
    JOIN_SPINS = 20000, /* the caller's wait for the last chunks before it sleeps */
};

/* A run of a job's items, for the thread of that number first: what a launch finds in the caches of its cores is what the
 * launches before it left there. Who has done his own takes of the others', from the lowest on, so that every item
 * is begun though those before it may wait for nobody but each other. */
typedef struct Share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} Share;

typedef struct Job {
    ParallelWork work;
    void *context;
    int64_t chunk;
    int threads; /* that have shares */
    _Atomic bool stopped;
} Job;

/* `entry` is generation << 32 | open << 31 | workers inside. */
static const uint64_t OPEN = 1ull << 31, INSIDE = OPEN - 1;

static struct Pool {
    pthread_mutex_t owner; /* held by the thread whose job is running */
    pthread_mutex_t sleep;
    pthread_cond_t wake, left;
    _Atomic uint64_t entry;
    _Atomic int sleepers;
    _Atomic bool caller_sleeps;
    Job job;
    Share shares[MOST_THREADS];
    pthread_t caller; /* whose job it is */
    pthread_t workers[MOST_THREADS];
    _Atomic int threads; /* 0: not started */
} pool = {PTHREAD_MUTEX_INITIALIZER,
          PTHREAD_MUTEX_INITIALIZER,
          PTHREAD_COND_INITIALIZER,
          PTHREAD_COND_INITIALIZER,
          0,
          0,
          false,
          {0},
          {{0}},
          0,
          {0},
          0};

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("" ::: "memory");
#endif
}

static void run_share(Job *job, Share *share)
{
    while (!atomic_load_explicit(&job->stopped, memory_order_relaxed)) {
        int64_t begin = atomic_fetch_add_explicit(&share->next, job->chunk, memory_order_relaxed);
        if (begin >= share->end)
            return;
        if (!job->work(job->context, begin, TT_MIN(begin + job->chunk, share->end)))
            atomic_store(&job->stopped, true);
    }
}

/* The part of thread `number` in the job: 0 is the caller. */
static void run_shares(Job *job, int number)
{
    if (number < job->threads)
        run_share(job, &pool.shares[number]);
    for (int i = 0; i < job->threads; i++)
        run_share(job, &pool.shares[i]);
}

static void deal_shares(Job *job, int64_t count)
{
    int64_t each = count / job->threads, more = count % job->threads, begin = 0;
    for (int i = 0; i < job->threads; i++) {
        atomic_store_explicit(&pool.shares[i].next, begin, memory_order_relaxed);
        begin += each + (i < more);
        pool.shares[i].end = begin;
    }
}

/* ---- workers ---------------------------------------------------------------------------------------------------------- */

static uint64_t wait_for_job(uint64_t seen)
{
    for (int i = 0; i < IDLE_SPINS; i++) {
        uint64_t entry = atomic_load_explicit(&pool.entry, memory_order_acquire);
        if (entry >> 32 != seen)
            return entry >> 32;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.sleep);
    atomic_fetch_add(&pool.sleepers, 1);
    while (atomic_load(&pool.entry) >> 32 == seen)
        pthread_cond_wait(&pool.wake, &pool.sleep);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.sleep);
    return atomic_load(&pool.entry) >> 32;
}

static bool enter(uint64_t generation)
{
    uint64_t entry = atomic_load(&pool.entry);
    while (entry >> 32 == generation && entry & OPEN)
        if (atomic_compare_exchange_weak(&pool.entry, &entry, entry + 1))
            return true;
    return false;
}

static void leave(void)
{
    uint64_t entry = atomic_fetch_sub(&pool.entry, 1) - 1;
    if (!(entry & (OPEN | INSIDE)) && atomic_load(&pool.caller_sleeps)) {
        pthread_mutex_lock(&pool.sleep);
        pthread_cond_signal(&pool.left);
        pthread_mutex_unlock(&pool.sleep);
    }
}

static void *run_worker(void *number)
{
    for (uint64_t seen = 0;;) {
        seen = wait_for_job(seen);
        if (!enter(seen))
            continue;
        run_shares(&pool.job, (int)(intptr_t)number);
        leave();
    }
    return NULL;
}

/* ---- start ------------------------------------------------------------------------------------------------------------ */

/* The child of a fork has none of the threads, and perhaps a lock that one of them held. */
static void forget_threads(void)
{
    pool.owner = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.sleep = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.wake = pool.left = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.entry = 0;
    pool.sleepers = 0;
    pool.caller_sleeps = false;
    pool.threads = 0;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_threads); }

static int wanted_threads(void)
{
    const char *text = tt_variable("TRITON_CPU_THREADS");
    long wanted = text ? strtol(text, NULL, 10) : 0;
    cpu_set_t cores;
    if (wanted < 1)
        wanted = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    return (int)TT_MIN(wanted, MOST_THREADS);
}

/* The cores for `wanted` threads. A caller that may run on fewer has been bound to its own, as OpenMP does with the main
 * thread, and that is not to hold for others. */
static cpu_set_t usable_cores(int wanted)
{
    cpu_set_t cores;
    if (!sched_getaffinity(0, sizeof cores, &cores) && CPU_COUNT(&cores) >= wanted)
        return cores;
    CPU_ZERO(&cores);
    for (long i = TT_MIN(sysconf(_SC_NPROCESSORS_ONLN), CPU_SETSIZE) - 1; i >= 0; i--)
        CPU_SET(i, &cores);
    return cores;
}

/* With a thread for every core each worker gets its own, other than the caller's: schedulers that save power wake a
 * worker on the core of the thread that wakes it, and then the two take turns. */
static cpu_set_t cores_of_worker(const cpu_set_t *usable, int wanted, int worker)
{
    int left = worker, caller = sched_getcpu();
    if (CPU_COUNT(usable) != wanted)
        return *usable;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, usable) && i != caller && !--left) {
            cpu_set_t own;
            CPU_ZERO(&own);
            CPU_SET(i, &own);
            return own;
        }
    return *usable;
}

static bool start_worker(int number, pthread_attr_t *attributes, const cpu_set_t *cores)
{
    pthread_t *thread = &pool.workers[number];
    void *argument = (void *)(intptr_t)number;
    pthread_attr_setaffinity_np(attributes, sizeof *cores, cores);
    if (!pthread_create(thread, attributes, run_worker, argument))
        return true;
    cpu_set_t any; /* the system forbids those cores: let it choose */
    memset(&any, 0xff, sizeof any);
    pthread_attr_setaffinity_np(attributes, sizeof any, &any);
    return !pthread_create(thread, attributes, run_worker, argument);
}

/* Returns how many threads there are, the caller included. Signals are left to the threads of the program, but for those
 * of the code that the workers run. */
static int start_workers(int wanted)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    tt_guard_allow(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cpu_set_t usable = usable_cores(wanted);
    int started = 1;
    while (started < wanted) {
        cpu_set_t cores = cores_of_worker(&usable, wanted, started);
        if (!start_worker(started, &attributes, &cores))
            break;
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

int tt_thread_count(void)
{
    int threads = atomic_load_explicit(&pool.threads, memory_order_acquire);
    if (threads)
        return threads;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&pool.owner);
    if (!pool.threads)
        pool.threads = start_workers(wanted_threads());
    threads = pool.threads;
    pthread_mutex_unlock(&pool.owner);
    return threads;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------------- */

static void announce(int helpers)
{
    uint64_t generation = (atomic_load(&pool.entry) >> 32) + 1;
    atomic_store(&pool.entry, (generation & 0xffffffff) << 32 | OPEN);
    if (!atomic_load(&pool.sleepers))
        return;
    pthread_mutex_lock(&pool.sleep);
    for (int i = TT_MIN(helpers, pool.sleepers); i > 0; i--)
        pthread_cond_signal(&pool.wake);
    pthread_mutex_unlock(&pool.sleep);
}

static struct timespec soon(void)
{
    enum { NANOSECONDS = 50000000 };
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time); /* the clock of condition variables */
    time.tv_nsec += NANOSECONDS;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void close_and_wait(void (*wait)(void *context), void *context)
{
    uint64_t entry = atomic_fetch_and(&pool.entry, ~OPEN);
    for (int i = 0; i < JOIN_SPINS && entry & INSIDE; i++) {
        pause_briefly();
        entry = atomic_load_explicit(&pool.entry, memory_order_acquire);
    }
    if (!(entry & INSIDE))
        return;
    pthread_mutex_lock(&pool.sleep);
    atomic_store(&pool.caller_sleeps, true);
    while (atomic_load(&pool.entry) & INSIDE) {
        struct timespec until = soon();
        if (pthread_cond_timedwait(&pool.left, &pool.sleep, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&pool.sleep);
        wait(context);
        pthread_mutex_lock(&pool.sleep);
    }
    atomic_store(&pool.caller_sleeps, false);
    pthread_mutex_unlock(&pool.sleep);
}

void tt_knock_at_job(void)
{
    int threads = atomic_load_explicit(&pool.threads, memory_order_acquire);
    for (int i = 1; i < threads; i++)
        tt_guard_knock(pthread_equal(pool.workers[i], pthread_self()) ? pool.caller : pool.workers[i]);
}

void tt_parallel_for(int64_t count, int64_t chunk, int threads, ParallelWork work,
                     void (*wait)(void *context), void *context)
{
    threads = TT_MIN(threads, tt_thread_count());
    if (threads == 1 || count <= chunk || pthread_mutex_trylock(&pool.owner)) {
        work(context, 0, count);
        return;
    }
    pool.job.work = work;
    pool.job.context = context;
    pool.job.chunk = chunk;
    pool.job.threads = threads;
    pool.caller = pthread_self();
    atomic_store_explicit(&pool.job.stopped, false, memory_order_relaxed);
    deal_shares(&pool.job, count);
    announce(threads - 1);
    run_shares(&pool.job, 0);
    close_and_wait(wait, context);
    pthread_mutex_unlock(&pool.owner);
}

/* ---- scratch memory --------------------------------------------------------------------------------------------------- */

static _Thread_local struct {
    void *data;
    size_t size;
    bool taken;
} scratch;
static pthread_key_t scratch_key;

static void make_scratch_key(void) { pthread_key_create(&scratch_key, free); }

static void *whole_pages(size_t size) { return aligned_alloc(4096, (size + 4095) & ~(size_t)4095); }

static bool grow_scratch(size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_scratch_key);
    free(scratch.data);
    scratch.data = whole_pages(size);
    scratch.size = scratch.data ? size : 0;
    pthread_setspecific(scratch_key, scratch.data);
    return scratch.data;
}

void *tt_take_scratch(size_t size)
{
    if (scratch.taken)
        return whole_pages(size);
    if (size > scratch.size && !grow_scratch(size))
        return NULL;
    scratch.taken = true;
    return scratch.data;
}

void tt_return_scratch(void *data)
{
    if (data == scratch.data)
        scratch.taken = false;
    else
        free(data);
}
