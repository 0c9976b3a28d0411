/* The watchman: a thread that looks every 50 ms whether the first thread is still in the launch that it was in before,
 * and whether the guards' handlers still stand in front. A launch only counts up a number for it, and wakes it when it
 * has fallen asleep for want of launches. */
#define _GNU_SOURCE
#include "runtime/watch.h"
#include "support/guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 50000000 /* ns */, IDLE_PERIODS = 20 };

static struct {
    _Atomic uint32_t serial;    /* odd: in a launch; each has another */
    _Atomic uint32_t elsewhere; /* launches that other threads are in */
    _Atomic enum { ABSENT, AWAKE, ASLEEP } state;
    pthread_mutex_t lock;
    pthread_cond_t wake;
} watch = {0, 0, ABSENT, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

static void sleep_until_woken(void)
{
    pthread_mutex_lock(&watch.lock);
    while (atomic_load(&watch.state) == ASLEEP)
        pthread_cond_wait(&watch.wake, &watch.lock);
    pthread_mutex_unlock(&watch.lock);
}

/* That it is about to sleep is said one period before, so that a launch that did not see it is seen. */
static void *keep_watch(void *unused)
{
    uint32_t seen = 0;
    (void)unused;
    for (int idle = 0;;) {
        nanosleep(&(struct timespec){.tv_nsec = PERIOD}, NULL);
        uint32_t serial = atomic_load(&watch.serial);
        bool is_idle = serial == seen && !(serial & 1) && !atomic_load(&watch.elsewhere);
        idle = is_idle ? idle + 1 : 0;
        tt_guard_renew();
        if (serial == seen && serial & 1)
            tt_guard_knock_main();
        seen = serial;
        if (idle == IDLE_PERIODS)
            atomic_store(&watch.state, ASLEEP);
        else if (idle > IDLE_PERIODS)
            sleep_until_woken();
        else
            atomic_store(&watch.state, AWAKE);
    }
    return NULL;
}

/* The child of a fork has no watchman, and its first thread may have been another one. */
static _Thread_local enum { UNKNOWN, FIRST, OTHER } place;

static void forget(void)
{
    watch.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    watch.wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    watch.state = ABSENT;
    watch.elsewhere = 0;
    place = UNKNOWN;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget); }

static void start_or_wake(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&watch.lock);
    if (atomic_load(&watch.state) == ABSENT) {
        pthread_t thread;
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (!pthread_create(&thread, NULL, keep_watch, NULL))
            pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    atomic_store(&watch.state, AWAKE);
    pthread_cond_signal(&watch.wake);
    pthread_mutex_unlock(&watch.lock);
}

bool tt_is_first_thread(void)
{
    if (place == UNKNOWN)
        place = syscall(SYS_gettid) == getpid() ? FIRST : OTHER;
    return place == FIRST;
}

static void wake_watchman(void)
{
    if (atomic_load_explicit(&watch.state, memory_order_relaxed) != AWAKE)
        start_or_wake();
}

/* Only the first thread writes the serial. */
bool tt_watch_begin(void)
{
    bool outer = false;
    if (tt_is_first_thread()) {
        uint32_t serial = atomic_load_explicit(&watch.serial, memory_order_relaxed);
        outer = serial & 1;
        atomic_store_explicit(&watch.serial, (serial + 2) | 1, memory_order_relaxed);
    } else {
        atomic_fetch_add(&watch.elsewhere, 1);
    }
    wake_watchman();
    return outer;
}

void tt_watch_end(bool outer)
{
    if (tt_is_first_thread()) {
        uint32_t serial = atomic_load_explicit(&watch.serial, memory_order_relaxed);
        atomic_store_explicit(&watch.serial, ((serial + 2) & ~1u) | outer, memory_order_relaxed);
    } else {
        atomic_fetch_sub(&watch.elsewhere, 1);
    }
}

bool tt_ask_interrupt(Interrupt *interrupt)
{
    if (!interrupt->asked_to_end)
        interrupt->asked_to_end = interrupt->ask(interrupt);
    return interrupt->asked_to_end;
}
