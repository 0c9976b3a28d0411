/* How much of a thread's stack a recursion may use. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "support/support.h"
#include <pthread.h>

/* Bytes of stack that this thread may still use below `here`, as far as the system tells. */
static ptrdiff_t stack_left(const char *here)
{
    ptrdiff_t left = 512 << 10;
#ifdef __GLIBC__
    pthread_attr_t attr;
    void *bottom;
    size_t size;
    if (!pthread_getattr_np(pthread_self(), &attr)) {
        if (!pthread_attr_getstack(&attr, &bottom, &size))
            left = here - (const char *)bottom;
        pthread_attr_destroy(&attr);
    }
#else
    (void)here;
#endif
    return left;
}

bool tt_stack_is_short(StackUse *use, ptrdiff_t most)
{
    enum { ALWAYS_THERE = 64 << 10 };
    const char *here = __builtin_frame_address(0);
    ptrdiff_t used = use->base - here;
    if (used < (use->limit ? use->limit : ALWAYS_THERE))
        return false;
    if (!use->limit) /* asked for only here, for it takes the system a while */
        use->limit = TT_MIN(used + stack_left(here) / 2, most);
    return used >= use->limit;
}
