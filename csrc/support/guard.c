/* Handlers of signals do no more than to change where the thread goes on: the kernel then restores the rest of its state,
 * as after any handler. See guard.h. */
#define _GNU_SOURCE
#include "support/guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static _Thread_local struct {
    Guard *guard; /* the innermost */
    bool prepared;
    bool passing;                   /* the handler that a signal was passed on to has raised it again */
    const void *passed, *passed_at; /* what it was told of it, and the frame from which it was called */
} own;

/* ---- the thread's registers ------------------------------------------------------------------------------------------ */

enum { BELOW_STACK = 128 }; /* bytes that functions may use without moving the pointer (System V x86-64) */

#if defined(__x86_64__)

static uintptr_t instruction_of(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

static void call_leave(ucontext_t *context, Guard *guard)
{
    greg_t *registers = context->uc_mcontext.gregs;
    uintptr_t top = guard->stack ? (uintptr_t)guard->stack : (uintptr_t)registers[REG_RSP];
    registers[REG_RSP] = (greg_t)(((top - BELOW_STACK) & ~(uintptr_t)63) - 8); /* as if called from there */
    registers[REG_RDI] = (greg_t)(uintptr_t)guard;
    registers[REG_RIP] = (greg_t)(uintptr_t)guard->leave;
}

/* The error code of a page fault (trap 14) has bit 1 set for writes. Other traps do not say the address. */
static Fault fault_of(int signal, const siginfo_t *info, const ucontext_t *context)
{
    enum { PAGE_FAULT = 14, IS_WRITE = 2 };
    const greg_t *registers = context->uc_mcontext.gregs;
    if (registers[REG_TRAPNO] != PAGE_FAULT)
        return (Fault){signal, FAULT_ACCESS, false, 0, instruction_of(context)};
    return (Fault){signal, registers[REG_ERR] & IS_WRITE ? FAULT_WRITE : FAULT_READ, true,
                   (uintptr_t)info->si_addr, instruction_of(context)};
}

#elif defined(__aarch64__)

static uintptr_t instruction_of(const ucontext_t *context) { return context->uc_mcontext.pc; }

static void call_leave(ucontext_t *context, Guard *guard)
{
    uintptr_t top = guard->stack ? (uintptr_t)guard->stack : context->uc_mcontext.sp;
    context->uc_mcontext.sp = (top - BELOW_STACK) & ~(uintptr_t)15;
    context->uc_mcontext.regs[0] = (uintptr_t)guard;
    context->uc_mcontext.pc = (uintptr_t)guard->leave;
}

static Fault fault_of(int signal, const siginfo_t *info, const ucontext_t *context)
{
    return (Fault){signal, FAULT_ACCESS, true, (uintptr_t)info->si_addr, instruction_of(context)};
}

#else
#error "guards know the registers of x86-64 and AArch64"
#endif

/* ---- faults ------------------------------------------------------------------------------------------------------------- */

/* Whoever handles faults outside of guarded code: the one before us, and the last one that took our place, behind which we
 * then stand again. A place in `later` is written anew long after it was the last. */
enum { LATER = 16 };
typedef struct FaultSignal {
    int signal;
    struct sigaction first, later[LATER];
    _Atomic unsigned latest; /* the number of those that took our place; the last one's is at that number */
} FaultSignal;

static FaultSignal faults[] = {{.signal = SIGSEGV}, {.signal = SIGBUS}};
static int knock;
static CodeRange mathematics; /* functions that hold no locks */

static bool is_in(const CodeRange *range, uintptr_t instruction)
{
    return instruction - range->start < range->size;
}

static bool can_leave(const Guard *guard, uintptr_t instruction)
{
    return guard && (!guard->away || is_in(&guard->code, instruction));
}

/* Once: what runs then is no code that could be left. */
static void leave(ucontext_t *context, Guard *guard)
{
    guard->away = true;
    call_leave(context, guard);
}

static void handle_as_before(const struct sigaction *before, int signal, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0;
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(signal, info, context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(signal);
    } else if (before->sa_handler == SIG_DFL || !sent) {
        /* The instruction fails again, now for the system to handle; a signal that was sent is sent again. */
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (sent)
            raise(signal);
    }
}

/* Of our own process, by raise(): a handler that goes on to the one before it. */
static bool is_passed_on(const siginfo_t *info)
{
    return info->si_code == SI_TKILL && info->si_pid == getpid();
}

/* The last handler that took our place may go on to the one that it found, which is us: by raising the signal again, or
 * by calling us, from deeper in the stack and with the same words. Then it is the turn of the one before us. */
static const struct sigaction *next_handler(const FaultSignal *fault, const siginfo_t *info,
                                            const void *frame)
{
    unsigned latest = atomic_load(&fault->latest);
    bool is_called = own.passed == info && (uintptr_t)frame < (uintptr_t)own.passed_at;
    bool is_raised = own.passing && is_passed_on(info);
    return latest && !is_called && !is_raised ? &fault->later[latest % LATER] : &fault->first;
}

static bool is_pending(int signal)
{
    sigset_t pending;
    return !sigpending(&pending) && sigismember(&pending, signal) > 0;
}

static void pass_on(const FaultSignal *fault, siginfo_t *info, void *context)
{
    const void *frame = __builtin_frame_address(0);
    const struct sigaction *next = next_handler(fault, info, frame);
    own.passing = false;
    own.passed = info;
    own.passed_at = frame;
    handle_as_before(next, fault->signal, info, context);
    own.passed = NULL;
    own.passing = is_pending(fault->signal);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    Guard *guard = own.guard;
    uintptr_t instruction = instruction_of(context);
    if (info->si_code > 0 && can_leave(guard, instruction)) {
        guard->fault = fault_of(signal, info, context);
        leave(context, guard);
        return;
    }
    if (guard && is_passed_on(info)) /* going on fails again, and comes here directly */
        return;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].signal == signal)
            pass_on(&faults[i], info, context);
}

const char *tt_fault_text(const Fault *fault, char *out, size_t size)
{
    static const char *const kinds[] = {"access to an address that is not accessible",
                                        "read of an address that cannot be read",
                                        "write to an address that cannot be written"};
    if (fault->has_address)
        snprintf(out, size, "%s (0x%llx)", kinds[fault->kind], (unsigned long long)fault->address);
    else
        snprintf(out, size, "%s", kinds[fault->kind]);
    return out;
}

/* ---- knocks --------------------------------------------------------------------------------------------------------------- */

static void on_knock(int signal, siginfo_t *info, void *context)
{
    Guard *guard = own.guard;
    int error = errno;
    (void)signal, (void)info;
    if (!guard)
        return;
    uintptr_t instruction = instruction_of(context);
    if (!can_leave(guard, instruction) && !(guard->elsewhere && is_in(&mathematics, instruction))) {
        guard->knocked = true;
        return;
    }
    bool was_away = guard->away;
    guard->away = true;
    bool leaves = guard->must_leave(guard);
    guard->away = was_away;
    if (leaves)
        leave(context, guard);
    errno = error;
}

void tt_guard_knock(pthread_t thread)
{
    if (knock)
        pthread_kill(thread, knock);
}

void tt_guard_knock_main(void)
{
    if (knock)
        syscall(SYS_tgkill, getpid(), getpid(), knock);
}

Guard *tt_guard_go_away(void)
{
    own.guard->away = true;
    return own.guard;
}

void tt_guard_return(Guard *guard)
{
    bool leaves = guard->knocked && guard->must_leave(guard);
    guard->knocked = false;
    guard->away = false;
    if (leaves)
        guard->leave(guard);
}

/* ---- where code lies -------------------------------------------------------------------------------------------------- */

typedef struct Search {
    uintptr_t address;
    CodeRange found;
} Search;

static int search_library(struct dl_phdr_info *info, size_t size, void *context)
{
    Search *search = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        CodeRange segment = {info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_phdr[i].p_memsz};
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !is_in(&segment, search->address))
            continue;
        search->found = segment;
        return 1;
    }
    return 0;
}

CodeRange tt_find_code(void (*function)(void))
{
    Search search = {.address = (uintptr_t)function};
    dl_iterate_phdr(search_library, &search);
    return search.found;
}

/* The C library's. A program that has the address of `sin` in its own text, as Debian's Python does, gives it a place there. */
static CodeRange find_mathematics(void)
{
    void *library = dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD),
         *sine = library ? dlsym(library, "sin") : NULL;
    if (library)
        dlclose(library);
    void (*function)(void) = (void (*)(void))(double (*)(double))sin;
    if (sine)
        memcpy(&function, &sine, sizeof function);
    return tt_find_code(function);
}

/* ---- installing ------------------------------------------------------------------------------------------------------------- */

/* A real-time signal that nobody uses. */
static int free_signal(void)
{
    struct sigaction present;
    for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; signal--)
        if (!sigaction(signal, NULL, &present) && !(present.sa_flags & SA_SIGINFO) &&
            present.sa_handler == SIG_DFL)
            return signal;
    return 0;
}

static struct sigaction on_faults;
static atomic_bool is_installed;

static bool is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

/* A knock may come while its handler has gone away to other code, and is taken on the stack that the code is on; but not
 * while a fault is handled, whose signal would stay blocked. */
static void install(void)
{
    mathematics = find_mathematics();
    knock = free_signal();
    struct sigaction on_knocks = {.sa_sigaction = on_knock, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    on_faults = (struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&on_faults.sa_mask);
    if (knock) {
        sigaddset(&on_faults.sa_mask, knock);
        sigaction(knock, &on_knocks, NULL);
    }
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigaction(faults[i].signal, &on_faults, &faults[i].first);
    is_installed = true;
}

static pthread_once_t installed = PTHREAD_ONCE_INIT;

/* By the watchman only. What is found is told before our handler can be called. */
void tt_guard_renew(void)
{
    for (size_t i = 0; is_installed && i < sizeof faults / sizeof *faults; i++) {
        FaultSignal *fault = &faults[i];
        struct sigaction present;
        if (sigaction(fault->signal, NULL, &present) || is_ours(&present))
            continue;
        unsigned next = atomic_load(&fault->latest) + 1;
        fault->later[next % LATER] = present;
        atomic_store(&fault->latest, next ? next : LATER);
        sigaction(fault->signal, &on_faults, NULL);
    }
}

void tt_guard_allow(void *signals)
{
    pthread_once(&installed, install);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(signals, faults[i].signal);
    if (knock)
        sigdelset(signals, knock);
}

/* ---- a stack for the handlers of each thread ---------------------------------------------------------------------------------- */

static size_t handler_stack_size(void) { return (size_t)getauxval(AT_MINSIGSTKSZ) + (64 << 10); }

static pthread_key_t handler_stack;

static void free_handler_stack(void *stack)
{
    stack_t present;
    if (!sigaltstack(NULL, &present) && present.ss_sp == stack)
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    munmap(stack, handler_stack_size());
}

static void make_key(void) { pthread_key_create(&handler_stack, free_handler_stack); }

/* What has run out of stack can still be told; threads that have such a stack keep theirs. */
static void give_handler_stack(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    stack_t present;
    if (sigaltstack(NULL, &present) || !(present.ss_flags & SS_DISABLE))
        return;
    size_t size = handler_stack_size();
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return;
    pthread_once(&once, make_key);
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = size}, NULL))
        munmap(stack, size);
    else
        pthread_setspecific(handler_stack, stack);
}

static __attribute__((noinline)) void prepare_thread(void)
{
    own.prepared = true;
    pthread_once(&installed, install);
    give_handler_stack();
}

/* What it calls here is where the code will be called: `leave` may have all from there on. */
__attribute__((noinline)) void tt_guard_enter(Guard *guard)
{
    if (!own.prepared)
        prepare_thread();
    guard->stack = guard->elsewhere ? NULL : __builtin_frame_address(0);
    guard->outer = own.guard;
    own.guard = guard;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void tt_guard_exit(Guard *guard)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own.guard = guard->outer;
}
