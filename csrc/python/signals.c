/* Work without the GIL that Python's signals reach: Ctrl-C among them. */
#include "python/extension.h"

static bool check_signals(Interrupt *interrupt)
{
    SignalCheck *check = (SignalCheck *)interrupt;
    tt_get_gil(check->released);
    bool raised = PyErr_CheckSignals() < 0;
    check->released = tt_give_gil();
    return raised;
}

Interrupt *tt_release_gil(SignalCheck *check)
{
    *check = (SignalCheck){{check_signals, false}, tt_give_gil()};
    return tt_is_first_thread() ? &check->interrupt : NULL;
}

bool tt_take_gil(SignalCheck *check)
{
    tt_get_gil(check->released);
    return !check->interrupt.asked_to_end;
}
