/* Compiling behind the program's back: variants that a launch did without. One thread does it, which is made when there is
 * first something to do, for that takes longer than a launch, and sleeps when there is nothing. It takes the GIL in short pieces while it reads the program, and gives way to all
 * other threads while it compiles. What a launch did without goes before what no launch asks for yet. At exit it is stopped,
 * and a forked process begins without it. */
#define _GNU_SOURCE
#include "python/extension.h"
#include "runtime/cuda.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_WAITING = 64, STACK_BYTES = 16 << 20 };

struct Request {
    Kernel *kernel; /* strong */
    Key key;        /* owned */
    Target target;
    int device;
    uint64_t *slots; /* of the launch that did without */
    int slot_count;
    int32_t extents[3];
    int multiprocessors;
    bool is_spare;
    Request *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wanted, ended;
    pthread_mutex_t compiling; /* held while it compiles without the GIL */
    Request *first, *current;
    int count;
    bool is_running, is_busy, is_stopping;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .wanted = PTHREAD_COND_INITIALIZER,
           .ended = PTHREAD_COND_INITIALIZER,
           .compiling = PTHREAD_MUTEX_INITIALIZER};

/* The thread is one of the process's first interpreter. Who looks at compilations wants those of the program only. */
bool tt_background_enabled(void)
{
    static const char *const looking[] = {"TRITON_DUMP", "TRITON_TIMING", "TRITON_KERNEL_DUMP"};
    const char *asked = tt_variable("TRITON_BACKGROUND");
    bool is_refused = asked && *asked && !tt_is_set("TRITON_BACKGROUND");
    bool enabled = PyInterpreterState_GetID(PyInterpreterState_Get()) == 0 && !queue.is_stopping;
    for (size_t i = 0; i < TT_COUNT(looking); i++)
        enabled &= !tt_is_set(looking[i]);
    return enabled && !is_refused;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

void tt_release_request(Request *request)
{
    Py_DECREF((PyObject *)request->kernel);
    tt_key_release(&request->key);
    free(request->slots);
    free(request);
}

Request *tt_new_request(Kernel *kernel, const Specialization *s, const int32_t extents[3])
{
    Request *request = calloc(1, sizeof *request);
    uint64_t *slots = malloc(sizeof *slots * (size_t)(s->slot_count + 1));
    if (!request || !slots || !tt_copy_key(&s->key, &request->key)) {
        free(request);
        free(slots);
        tt_forget(); /* then it is not compiled */
        return NULL;
    }
    memcpy(slots, s->slots, sizeof *slots * (size_t)s->slot_count);
    request->slots = slots;
    request->slot_count = s->slot_count;
    memcpy(request->extents, extents, sizeof request->extents);
    request->kernel = (Kernel *)Py_NewRef((PyObject *)kernel);
    request->target = s->target;
    request->device = s->place.device;
    request->multiprocessors = tt_multiprocessors(s->target, s->place.device);
    return request;
}

Request *tt_new_request_in_advance(Kernel *kernel, const Specialization *s, const int32_t extents[3])
{
    Request *request = tt_new_request(kernel, s, extents);
    if (request)
        request->is_spare = true;
    return request;
}

static LaunchNumbers numbers_of(const Request *request)
{
    return (LaunchNumbers){request->slots, request->slot_count, request->extents, request->multiprocessors};
}

static bool asks_for(const Request *request, const Request *other)
{
    return request && request->kernel == other->kernel && tt_is_same_key(&request->key, &other->key) &&
           tt_facts_of_grid(numbers_of(request)) == tt_facts_of_grid(numbers_of(other));
}

static void nap(long microseconds) { nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL); }

/* ---- the interpreter's lock ------------------------------------------------------------------------------------------ */

static _Thread_local bool is_behind; /* the thread is the background's */
static atomic_bool runs;             /* there is one, and it does not sleep */
static atomic_int holds;             /* 1: it has the GIL */
static atomic_int waiting;           /* other threads that want the GIL */

PyThreadState *tt_give_gil(void)
{
    tt_guard_environment();
    PyThreadState *released = PyEval_SaveThread();
    tt_leave_environment(true);
    if (is_behind)
        atomic_store(&holds, 0);
    return released;
}

void tt_get_gil(PyThreadState *released)
{
    static const double longest = 0.3; /* milliseconds */
    bool waits = !is_behind && atomic_load_explicit(&runs, memory_order_relaxed);
    if (waits) { /* who wakes up late finds the GIL taken again */
        atomic_fetch_add(&waiting, 1);
        tt_await_zero(&holds, longest);
    }
    PyEval_RestoreThread(released);
    tt_leave_environment(false);
    if (waits)
        atomic_fetch_sub(&waiting, 1);
    if (is_behind)
        atomic_store(&holds, 1);
}

/* Others get the GIL for as long as they want; if none does, reading takes twice as long. With many threads that launch
 * without a pause it gets its turn, too. */
void tt_breathe(void)
{
    enum { PIECE = 30 /* microseconds */, MOST_NAPS = 100 };
    static _Thread_local double since;
    if (!is_behind || (!atomic_load(&waiting) && tt_milliseconds() - since < PIECE * 1e-3))
        return;
    PyThreadState *released = tt_give_gil();
    nap(PIECE);
    for (int i = 0; i < MOST_NAPS && atomic_load(&waiting); i++)
        nap(PIECE);
    tt_get_gil(released);
    since = tt_milliseconds();
}

static PyObject *background_breathe(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    tt_breathe();
    return Py_NewRef(Py_None);
}

/* ---- compiling ----------------------------------------------------------------------------------------------------------- */

static bool is_there(const Request *request)
{
    Compiled *ready = tt_find_ready(request->kernel, &request->key, numbers_of(request));
    Py_XDECREF((PyObject *)ready);
    return ready;
}

/* Until the device is through with what was launched without the variant: code goes to an idle one only, and launches of
 * other threads would wait for that. A device that is never idle gets it all the same: who launches that far ahead of it
 * waits for it now and then anyway. */
static void wait_until_quiet(const Request *request)
{
    enum { PIECE = 200 /* microseconds */, LONGEST = 5000 /* milliseconds */ };
    if (request->target.kind != TARGET_CUDA)
        return;
    PyThreadState *released = tt_give_gil();
    double end = tt_milliseconds() + LONGEST;
    while (!tt_cuda_is_past_mark(request->device) && !queue.is_stopping && tt_milliseconds() < end)
        nap(PIECE);
    tt_get_gil(released);
}

static bool load(const Request *request, Compiled *compiled)
{
    bool is_made;
    if (!tt_prepare_compiled(compiled, &is_made))
        return false;
    wait_until_quiet(request);
    return tt_load_compiled(compiled);
}

/* The code is on its device before a launch runs it. */
static bool compile(const Request *request)
{
    LaunchNumbers numbers = numbers_of(request);
    Compiled *compiled =
        tt_compile_variant(request->kernel, &request->key, request->target, request->device, &numbers, true);
    if (!compiled)
        return false;
    compiled->is_spare = request->is_spare;
    bool done = load(request, compiled) && tt_add_variant(request->kernel, &request->key, compiled, &numbers);
    Py_DECREF((PyObject *)compiled);
    return done;
}

/* What cannot be compiled here is compiled by the launch that needs it, which raises. */
static void serve(const Request *request)
{
    if (!is_there(request) && !PyErr_Occurred() && !compile(request))
        request->kernel->never_behind = true;
    tt_forget();
}

/* Nobody compares with it any more. */
static void finish(Request *request)
{
    pthread_mutex_lock(&queue.lock);
    queue.current = NULL;
    pthread_mutex_unlock(&queue.lock);
    tt_release_request(request);
}

/* What a launch did without goes first. */
static Request **next_request(void)
{
    Request **urgent = &queue.first;
    while (*urgent && (*urgent)->is_spare)
        urgent = &(*urgent)->next;
    return *urgent ? urgent : &queue.first;
}

/* NULL when there is nothing to do any more. */
static Request *take(void)
{
    pthread_mutex_lock(&queue.lock);
    Request **next = next_request(), *request = queue.is_stopping ? NULL : *next;
    if (request) {
        *next = request->next;
        queue.count--;
    } else {
        queue.is_busy = false;
        pthread_cond_broadcast(&queue.ended);
    }
    queue.current = request;
    pthread_mutex_unlock(&queue.lock);
    return request;
}

/* Until there is something to do; false if there never will be: then the thread, which has the GIL, counts as gone. */
static bool sleep_until_wanted(void)
{
    PyThreadState *released = tt_give_gil();
    atomic_store(&runs, false);
    pthread_mutex_lock(&queue.lock);
    while (!queue.first && !queue.is_stopping)
        pthread_cond_wait(&queue.wanted, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
    atomic_store(&runs, true);
    tt_get_gil(released);
    pthread_mutex_lock(&queue.lock);
    queue.is_running = !queue.is_stopping;
    pthread_cond_broadcast(&queue.ended);
    pthread_mutex_unlock(&queue.lock);
    return queue.is_running;
}

static void *run(void *unused)
{
    PyGILState_STATE state = PyGILState_Ensure();
    is_behind = true;
    atomic_store(&runs, true);
    atomic_store(&holds, 1);
    do {
        for (Request *request; (request = take());) {
            serve(request);
            finish(request);
            tt_breathe();
        }
    } while (sleep_until_wanted());
    atomic_store(&holds, 0);
    atomic_store(&runs, false);
    PyGILState_Release(state);
    return unused;
}

static bool start(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* a fault that is blocked ends the process without a word */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&thread, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* ---- its callers ---------------------------------------------------------------------------------------------------- */

/* The code generators' locks are free in a process that is forked. */
static void before_fork(void) { pthread_mutex_lock(&queue.compiling); }

static void after_fork(void) { pthread_mutex_unlock(&queue.compiling); }

static void forget(void)
{
    queue.compiling = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    queue.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    queue.wanted = queue.ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    queue.first = queue.current = NULL; /* what they held stays with the parent's memory */
    queue.count = 0;
    queue.is_running = queue.is_busy = false;
    atomic_store(&holds, 0);
    atomic_store(&runs, false);
    atomic_store(&waiting, 0);
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork, forget); }

/* True if it was put in the queue, whose end then releases it. */
static bool put(Request *request)
{
    Request **last = &queue.first;
    if (queue.is_stopping || queue.count == MOST_WAITING || asks_for(queue.current, request))
        return false;
    for (; *last; last = &(*last)->next)
        if (asks_for(*last, request)) {
            (*last)->is_spare &= request->is_spare;
            return false;
        }
    if (!queue.is_running && !(queue.is_running = start()))
        return false;
    *last = request;
    queue.count++;
    queue.is_busy = true;
    pthread_cond_signal(&queue.wanted);
    return true;
}

/* Nobody has the lock for long, and a launch does not sleep for it. */
static void lock_from_launch(void)
{
    enum { MOST_YIELDS = 100 };
    for (int i = 0; i < MOST_YIELDS; i++, sched_yield())
        if (!pthread_mutex_trylock(&queue.lock))
            return;
    pthread_mutex_lock(&queue.lock);
}

void tt_compile_behind(Request *request)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    lock_from_launch();
    bool is_put = put(request);
    pthread_mutex_unlock(&queue.lock);
    if (!is_put)
        tt_release_request(request);
}

/* `*goes_on` is one of the queue's; whether it is false by then. */
static bool wait_for_end(const bool *goes_on, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&queue.lock);
    int error = 0;
    while (*goes_on && !error)
        error = pthread_cond_timedwait(&queue.ended, &queue.lock, &until);
    bool has_ended = !*goes_on;
    pthread_mutex_unlock(&queue.lock);
    return has_ended;
}

static PyObject *background_wait(PyObject *module, PyObject *seconds)
{
    (void)module;
    double number = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred())
        return NULL;
    PyThreadState *released = tt_give_gil();
    bool has_ended = wait_for_end(&queue.is_busy, number);
    tt_get_gil(released);
    return PyBool_FromLong(has_ended);
}

static atomic_long stand_ins;

void tt_count_stand_in(void) { atomic_fetch_add(&stand_ins, 1); }

static PyObject *background_stand_ins(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(atomic_load(&stand_ins));
}

/* Before the interpreter goes: nothing takes its lock afterwards. */
static PyObject *background_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    pthread_mutex_lock(&queue.lock);
    queue.is_stopping = true;
    pthread_cond_signal(&queue.wanted);
    pthread_mutex_unlock(&queue.lock);
    PyThreadState *released = tt_give_gil();
    wait_for_end(&queue.is_running, 60);
    tt_get_gil(released);
    return Py_NewRef(Py_None);
}

static bool is_stopping(Interrupt *interrupt)
{
    (void)interrupt;
    return queue.is_stopping;
}

bool tt_run_behind(Apart *apart)
{
    Interrupt stop = {is_stopping, false};
    apart->gives_way = true;
    pthread_mutex_lock(&queue.compiling);
    bool has_ended = tt_run_apart(apart, &stop);
    pthread_mutex_unlock(&queue.compiling);
    return has_ended;
}

PyMethodDef tt_background_methods[] = {
    {"background_wait", background_wait, METH_O,
     "background_wait(seconds) -> bool\n--\n\nWait until nothing is compiled in the background any more; "
     "False if it takes longer."},
    {"background_stand_ins", background_stand_ins, METH_NOARGS,
     "background_stand_ins() -> int\n--\n\nHow many launches have run another variant than their own, which "
     "was not "
     "compiled yet."},
    {"background_breathe", background_breathe, METH_NOARGS,
     "background_breathe()\n--\n\nIn the background's thread: let others have the interpreter."},
    {"background_stop", background_stop, METH_NOARGS,
     "background_stop()\n--\n\nGive up what is compiled in the background, for good."},
    {NULL, NULL, 0, NULL},
};
