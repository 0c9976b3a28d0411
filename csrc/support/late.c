/* Constructors of a library inside of this one that not every process needs: they run when it is first used. The linker
 * lists them (codegen/late.ld); where it did not, they ran when this library was loaded. */
#include "support/support.h"
#include <pthread.h>
#include <stdatomic.h>

typedef void Constructor(void);
extern Constructor *const tt_late_begin[] __attribute__((weak, visibility("hidden")));
extern Constructor *const tt_late_end[] __attribute__((weak, visibility("hidden")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_done;

/* A fork waits for constructors that run: in the child they could neither go on nor begin again. */
static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(hold, let_go, let_go); }

bool tt_was_constructed_late(void) { return atomic_load_explicit(&is_done, memory_order_acquire); }

void tt_construct_late(void (*then)(void))
{
    if (tt_was_constructed_late())
        return;
    hold();
    if (!tt_was_constructed_late()) {
        for (Constructor *const *each = tt_late_begin; each < tt_late_end; each++)
            (*each)();
        then();
        atomic_store_explicit(&is_done, true, memory_order_release);
    }
    let_go();
}
