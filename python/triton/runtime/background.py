"""Variants of kernels that are compiled while the program runs on.

A launch whose arguments fall into a class that nothing was compiled for yet (a number that is no multiple of 16, where
those before were) runs a variant that knows nothing of numbers, if there is one, and the special one is compiled by a
thread of low priority; launches take it once it is there. ``TRITON_BACKGROUND=0`` compiles where the launch is, so that
each launch runs the same code in every run of a program.
"""

import atexit
import os

from .. import _C


def wait(seconds=60):
    """Until nothing is compiled in the background any more; False if it takes longer."""
    return _C.background_wait(seconds)


def settle(fn):
    """Call `fn`, and see to it that its next call runs the variants that were made for its launches."""
    before = _C.background_stand_ins()
    result = fn()
    if _C.background_stand_ins() != before:
        wait()
    return result


atexit.register(_C.background_stop)
os.register_at_fork(after_in_child=_C.wake_collector)
