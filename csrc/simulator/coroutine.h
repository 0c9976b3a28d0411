/* coroutine: stackful coroutines for the simulator's GPU threads. Switching costs a few nanoseconds and no system
 * call. x86-64 and AArch64 (System V calling conventions). */
#pragma once
#include <stddef.h>

typedef struct Coroutine {
    void *stack_pointer; /* where it left off */
    const void *stack;   /* for the address sanitizer */
    size_t stack_size;
} Coroutine;

/* Prepares `coroutine` to run body(argument) on the given stack when first switched to. body must not return: it ends
 * with a switch away that nobody resumes. */
void tt_coroutine_prepare(Coroutine *coroutine, void *stack, size_t stack_size, void (*body)(void *),
                          void *argument);
/* Before a stack serves another purpose: one that ended in the middle of its work has left the sanitizer's marks. */
void tt_coroutine_clear(void *stack, size_t stack_size);
/* What body does first: `from` is the coroutine that switched to it. */
void tt_coroutine_entered(Coroutine *from);
/* Saves the running context in `from` and continues `to`. */
void tt_coroutine_switch(Coroutine *from, Coroutine *to);
