/* See apart.h. A thread that works must not run on while the process's last functions take down what it uses, nor be
 * waited for: at exit it is put to sleep, at a place where it holds no lock that others need then. */
#define _GNU_SOURCE
#include "runtime/apart.h"
#include "codegen/codegen.h"
#include "support/guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 16 << 20 }; /* few enough for the C library to keep it for the next one */

typedef enum TaskState { WORKING, ENDED, GIVEN_UP } TaskState;
typedef struct Task {
    Guard guard; /* first: its functions get a pointer to it */
    Apart *apart;
    pthread_t thread;
    _Atomic TaskState state;
    atomic_bool asleep;
    struct Task *next, **link;
} Task;

static _Thread_local Task *own;
static struct {
    pthread_mutex_t lock;
    Task *first;
    bool exiting;
} tasks = {PTHREAD_MUTEX_INITIALIZER, NULL, false};

void tt_stop_if_given_up(void)
{
    if (own && atomic_load(&own->state) == GIVEN_UP)
        tt_error(NULL, "interrupted");
}

/* ---- at exit -------------------------------------------------------------------------------------------------------- */

static void sleep_for_good(Task *task)
{
    atomic_store(&task->asleep, true);
    for (;;)
        pause();
}

static bool fall_asleep(Guard *guard)
{
    sleep_for_good((Task *)guard);
    return false;
}

static void nap(long milliseconds) { nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL); }

/* Runs before whatever was to be taken down when the library was loaded. */
static void put_to_sleep(void)
{
    enum { MOST_KNOCKS = 500 };
    pthread_mutex_lock(&tasks.lock);
    tasks.exiting = true;
    pthread_mutex_unlock(&tasks.lock);
    for (Task *task = tasks.first; task; task = task->next)
        for (int i = 0; i < MOST_KNOCKS && !task->asleep && task->state != ENDED; i++) {
            tt_guard_knock(task->thread);
            nap(1);
        }
}

static void forget_tasks(void)
{
    tasks.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    tasks.first = NULL;
}

/* ---- the thread --------------------------------------------------------------------------------------------------------- */

static CodeRange own_code; /* who is there holds no lock of the C library */

static void prepare(void)
{
    tt_start_llvm(); /* first: at exit what it registers then is taken down after the threads that use it sleep */
    own_code = tt_find_code(prepare);
    pthread_atfork(NULL, NULL, forget_tasks);
    atexit(put_to_sleep);
}

static void leave_work(Guard *guard)
{
    char words[100];
    tt_fault_text(&guard->fault, words, sizeof words);
    guard->fault = (Fault){0};
    tt_bug("the compiler crashed: %s", words);
}

static void work(Apart *apart, Guard *guard)
{
    Trap trap;
    if (tt_try(&trap, apart->arena)) {
        if (guard)
            tt_guard_enter(guard);
        apart->work(apart);
        tt_end_try(&trap);
    } else {
        apart->raised = true;
        apart->diagnostic = trap.diag;
    }
}

static void add_task(Task *task)
{
    pthread_mutex_lock(&tasks.lock);
    if ((task->next = tasks.first))
        task->next->link = &task->next;
    task->link = &tasks.first;
    tasks.first = task;
    pthread_mutex_unlock(&tasks.lock);
}

static void release_task(Task *task)
{
    pthread_mutex_lock(&tasks.lock);
    bool exiting = tasks.exiting;
    if (!exiting && (*task->link = task->next))
        task->next->link = task->link;
    pthread_mutex_unlock(&tasks.lock);
    if (!exiting)
        free(task);
    else if (task == own)
        sleep_for_good(task);
}

static void *run(void *argument)
{
    Task *task = own = argument;
    TaskState state = WORKING;
    tt_leave_environment(true);
    if (task->apart->gives_way)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
    work(task->apart, &task->guard);
    if (atomic_compare_exchange_strong(&task->state, &state, ENDED))
        return NULL;
    task->apart->release(task->apart);
    tt_guard_exit(&task->guard);
    release_task(task);
    return NULL;
}

static bool start(Task *task)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    tt_guard_allow(&all);
    add_task(task);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&task->thread, &attributes, run, task);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* ---- the caller ---------------------------------------------------------------------------------------------------------- */

static bool has_ended(Task *task)
{
    enum { PERIOD = 50000000 /* ns */ };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PERIOD;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return !pthread_timedjoin_np(task->thread, NULL, &until);
}

/* False: the work is given up, and its thread's. */
static bool wait_for(Task *task, Interrupt *interrupt)
{
    TaskState state = WORKING;
    while (!has_ended(task)) {
        if (!interrupt || !tt_ask_interrupt(interrupt))
            continue;
        if (atomic_compare_exchange_strong(&task->state, &state, GIVEN_UP)) {
            pthread_detach(task->thread);
            return false;
        }
        pthread_join(task->thread, NULL);
        break;
    }
    release_task(task);
    return true;
}

bool tt_run_apart(Apart *apart, Interrupt *interrupt)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    Task *task = calloc(1, sizeof *task);
    if (task) {
        task->apart = apart;
        task->guard = (Guard){.away = true, .code = own_code, .leave = leave_work, .must_leave = fall_asleep};
        if (start(task))
            return wait_for(task, interrupt);
        release_task(task);
    }
    work(apart, NULL);
    return true;
}
