/* Interrupting what the process's first thread does: launches there are knocked at (support/guard.h) when they take
 * long, so that they can ask whether they are to end. */
#pragma once
#include "support/support.h"

typedef struct Interrupt {
    bool (*ask)(struct Interrupt *interrupt); /* in the thread that launched */
    bool asked_to_end;                        /* it once said so */
} Interrupt;

bool tt_ask_interrupt(Interrupt *interrupt);
/* Whether this is the process's first thread, where Python handles signals. */
bool tt_is_first_thread(void);
/* Around a launch; the second takes what the first returned. */
bool tt_watch_begin(void);
void tt_watch_end(bool outer);
