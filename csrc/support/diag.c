/* Diagnostics and the unwinding that carries them. The chain of traps is per thread and is the only thread-local
 * state of the compiler: it must be reachable from an allocator that has no other argument than its arena. */
#include "support/support.h"
#include <stdlib.h>

static _Thread_local Trap *innermost;

void tt_trap_enter(Trap *trap, Arena *arena)
{
    trap->outer = innermost;
    trap->arena = arena;
    innermost = trap;
}

void tt_end_try(Trap *trap) { innermost = trap->outer; }

_Noreturn void tt_raise(const Diagnostic *diag)
{
    Trap *trap = innermost;
    if (!trap)
        __builtin_trap(); /* a raise outside every compile entry: cannot be reached from Python */
    trap->diag = *diag;
    innermost = trap->outer;
    longjmp(trap->jump, 1);
}

static _Noreturn void raise_v(DiagKind kind, const Loc *loc, const char *remedy, const char *format,
                              va_list args)
{
    Text text = {.arena = innermost ? innermost->arena : NULL};
    if (text.arena)
        tt_text_add_v(&text, format, args);
    va_end(args);
    tt_raise(
        &(Diagnostic){.kind = kind, .loc = loc, .message = text.data ? text.data : format, .remedy = remedy});
}

_Noreturn void tt_error(const Loc *loc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    raise_v(TT_USER_ERROR, loc, NULL, format, args);
}

_Noreturn void tt_error_with_remedy(const Loc *loc, const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    raise_v(TT_USER_ERROR, loc, remedy, format, args);
}

_Noreturn void tt_unsupported(const Loc *loc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    raise_v(TT_UNSUPPORTED, loc, NULL, format, args);
}

_Noreturn void tt_bug(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    raise_v(TT_BUG, NULL, NULL, format, args);
}

bool tt_is_strict(void) { return tt_is_set("TRITON_STRICT"); }

const Loc *tt_user_loc(const Loc *loc)
{
    while (loc && loc->caller && loc->file && strstr(loc->file, "/triton/language/"))
        loc = loc->caller;
    return loc;
}
