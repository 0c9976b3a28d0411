/* Running a grid of programs of a compiled kernel: inline when it is little work, else on the pool; and what programs
 * call back while they run. */
#include "runtime/thread_pool.h"
#include "cpu/kernel.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* Waking a worker costs several microseconds; a job shorter than this is done before one has arrived. */
static const float WORTH_WAKING = 15e3f, WORTH_A_CHUNK = 4e3f;

typedef struct Running {
    CpuLaunch launch; /* first: the callbacks get a pointer to it */
    CpuKernel *kernel;
    pthread_mutex_t lock; /* of what follows */
    Arena arena;
    Text printed;
    const char *error;
    _Atomic bool stopped;
} Running;

static float now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (float)(time.tv_sec & 0xffff) * 1e9f + (float)time.tv_nsec;
}

static bool run_programs(void *context, int64_t begin, int64_t end)
{
    Running *running = context;
    if (atomic_load_explicit(&running->stopped, memory_order_relaxed))
        return false;
    void *scratch = tt_thread_scratch(running->kernel->scratch_size);
    if (!scratch) {
        running->error = "out of memory for the kernel's scratch";
        running->stopped = true;
        return false;
    }
    running->kernel->entry(&running->launch, scratch, begin, end);
    return true;
}
