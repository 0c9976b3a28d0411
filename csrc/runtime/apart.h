/* Work in a thread of its own, with a stack of its own, which its caller may stop waiting for. */
#pragma once
#include "runtime/watch.h"

typedef struct Apart {
    void (*work)(struct Apart *apart);    /* touches nothing that belongs to Python, and may raise */
    void (*release)(struct Apart *apart); /* of work that was given up, when it has ended; in its thread */
    Arena *arena;                         /* of messages */
    bool gives_way;                       /* to all other threads of the machine */
    bool raised;
    Diagnostic diagnostic; /* what it raised; what crashes in it raises a bug */
} Apart;

/* Does the work and returns true; or, once `interrupt` (NULL: nobody) asks to end, returns false, and the work goes on
 * until it notices or has ended, for nobody. When the process exits it is stopped where it is. */
bool tt_run_apart(Apart *apart, Interrupt *interrupt);
/* In work: ends it if it was given up. */
void tt_stop_if_given_up(void);
