/* runtime: what runs compiled kernels. */
#pragma once
#include "support/support.h"

/* ---- thread_pool.c: one pool a process, started by the first parallel job, gone and started anew after a fork -------- */

/* Does the items begin .. end - 1 in the calling thread; false: the job is to stop. */
typedef bool (*ParallelWork)(void *context, int64_t begin, int64_t end);

/* Threads that a job may use, the caller included: TRITON_CPU_THREADS, else the cores this process may run on. */
int tt_thread_count(void);
/* Does `count` items, `chunk` at a time, in the caller and up to `threads` - 1 others; returns when all are done. When
 * another thread's job occupies the pool, the caller does it alone. `wait` is called about every 50 ms while the caller
 * waits for the others. */
void tt_parallel_for(int64_t count, int64_t chunk, int threads, ParallelWork work,
                     void (*wait)(void *context), void *context);
/* Knocks (support/guard.h) at all threads that may be in the calling thread's job. */
void tt_knock_at_job(void);
/* Memory for the calling thread, aligned to a page; NULL when there is none left. What the thread takes first it keeps
 * for the next time, until it ends. */
void *tt_take_scratch(size_t size);
void tt_return_scratch(void *data);
