/* guard: leaving compiled code from outside of it. A program of the user's may touch memory that is not there, and may
 * never end. A thread that runs such code is under a guard; a hardware fault, or a knock of another thread when the code
 * is to end, then makes it call the guard's `leave` in place of the next instruction. Nothing of this costs a system call
 * unless it happens. Faults outside of guarded code go to whoever handled them before, or to a handler that was installed
 * later: such a one takes our place, in which a fault of guarded code is what it makes of it, until tt_guard_renew. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Fault {
    int signal; /* 0: none */
    enum { FAULT_ACCESS, FAULT_READ, FAULT_WRITE } kind;
    bool has_address; /* the hardware says it */
    uintptr_t address, instruction;
} Fault;

typedef struct CodeRange {
    uintptr_t start, size;
} CodeRange;
/* The code of the library that has this function. */
CodeRange tt_find_code(void (*function)(void));

typedef struct Guard Guard;
struct Guard {
    Guard *outer;
    bool
        elsewhere; /* the code runs on stacks of its own, where `leave` is called too; else on the guard's, all anew */
    void *stack;
    /* While `away`, code that may hold locks runs, and can be left only in `code`. */
    volatile bool away;
    volatile bool knocked; /* while it could not be left */
    CodeRange code;
    void (*leave)(Guard *guard);      /* does not return */
    bool (*must_leave)(Guard *guard); /* asked after a knock, in the thread and in place of its code */
    Fault fault;                      /* that it is left for */
};

/* For the calling thread, until tt_guard_exit, on whichever of its stacks. */
void tt_guard_enter(Guard *guard);
void tt_guard_exit(Guard *guard);
/* Around what guarded code calls and what must not be left. */
Guard *tt_guard_go_away(void);
void tt_guard_return(Guard *guard);

/* Has the thread's guard asked whether to leave; a thread without one is not disturbed. */
void tt_guard_knock(pthread_t thread);
void tt_guard_knock_main(void); /* the process's first thread */
/* Puts our handlers back in front of those that a program has installed since; one thread does it now and then. */
void tt_guard_renew(void);
/* Before a thread with all signals blocked is made: those that it has to take. */
void tt_guard_allow(void *signals);
/* "write to an address that cannot be written (0x10)" */
const char *tt_fault_text(const Fault *fault, char *out, size_t size);
