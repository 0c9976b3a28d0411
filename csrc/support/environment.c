/* Variables of the environment, and flags among them, read as `triton.knobs` reads them (runtime/environment.py). Who
 * changes one moves them all, so a thread may look only while it keeps Python's programs from that; else it takes what
 * was kept. */
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

static const char *const names[] = {
    "CUDA_HOME",
    "CUDA_PATH",
    "HOME",
    "TRITON_CACHE_DIR",
    "TRITON_CACHE_SIZE",
    "TRITON_CPU_ARCH",
    "TRITON_CPU_THREADS",
    "TRITON_DEEPEN",
    "TRITON_DUMP",
    "TRITON_EARLY_LAUNCH",
    "TRITON_HOME",
    "TRITON_LIBDEVICE_PATH",
    "TRITON_SIM_MULTIPROCESSORS",
    "TRITON_SIM_PADDING",
    "TRITON_SIM_SEED",
    "TRITON_STRICT",
    "TRITON_TIMING",
    "TRITON_VERIFY",
};

/* Texts stay, for somebody may be reading them: there are few that a program sets. */
typedef struct KeptText {
    struct KeptText *next;
    char text[];
} KeptText;

static _Atomic(const char *) kept[TT_COUNT(names)];
static _Thread_local bool is_away;

static const char *keep(const char *text)
{
    static KeptText *texts;
    KeptText *known = texts;
    while (known && strcmp(known->text, text))
        known = known->next;
    if (!known && (known = malloc(sizeof *known + strlen(text) + 1))) {
        strcpy(known->text, text);
        known->next = texts;
        texts = known;
    }
    return known ? known->text : NULL;
}

void tt_keep_environment(void)
{
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        const char *text = getenv(names[i]);
        atomic_store(&kept[i], text ? keep(text) : NULL);
    }
}

bool tt_leave_environment(bool leave)
{
    bool before = is_away;
    is_away = leave;
    return before;
}

const char *tt_variable(const char *name)
{
    if (!is_away)
        return getenv(name);
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (!strcmp(names[i], name))
            return atomic_load(&kept[i]);
    tt_bug("%s is read by a thread that it was not kept for", name);
}

bool tt_is_set(const char *variable)
{
    static const char *const off[] = {"", "0", "n", "no", "off", "false"};
    const char *text = tt_variable(variable);
    bool is_set = text != NULL;
    for (size_t i = 0; is_set && i < TT_COUNT(off); i++)
        is_set = strcasecmp(text, off[i]) != 0;
    return is_set;
}

/* ---- others' code that looks at the environment ------------------------------------------------------------------------ */

static atomic_int readers;
static atomic_bool is_changing;

/* In the child of a fork those threads are not there. */
static void forget(void)
{
    atomic_store(&readers, 0);
    atomic_store(&is_changing, false);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget); }

void tt_begin_reading_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    while (atomic_fetch_add(&readers, 1), atomic_load(&is_changing)) {
        atomic_fetch_sub(&readers, 1);
        sched_yield();
    }
}

void tt_end_reading_environment(void) { atomic_fetch_sub(&readers, 1); }

bool tt_begin_changing_environment(void)
{
    atomic_store(&is_changing, true);
    if (!atomic_load(&readers))
        return true;
    atomic_store(&is_changing, false);
    return false;
}

void tt_end_changing_environment(void) { atomic_store(&is_changing, false); }
