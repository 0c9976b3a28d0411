/* The time that has passed. */
#include "support/support.h"
#include <sched.h>
#include <time.h>

int64_t tt_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

double tt_milliseconds(void) { return (double)tt_nanoseconds() * 1e-6; }

void tt_await_zero(const _Atomic int *count, double milliseconds)
{
    if (!*count)
        return;
    double end = tt_milliseconds() + milliseconds;
    while (*count && tt_milliseconds() < end)
        sched_yield();
}
