"""`breakpoint()` in a kernel: Python's debugger, whose steps pass over what stands behind a kernel's operations."""

import os
import sys
from pdb import Pdb

from .operations import codes


def _is_behind(frame):
    """Does an operation of a kernel run this frame?"""
    while frame is not None and frame.f_code not in codes:
        if frame.f_globals.get("__name__", "").startswith("triton."):
            return True
        frame = frame.f_back
    return False


class Debugger(Pdb):
    def stop_here(self, frame):
        return super().stop_here(frame) and not _is_behind(frame)


def stop(*args, **kwargs):
    """What `breakpoint()` calls, unless the program or PYTHONBREAKPOINT chose another debugger."""
    if os.environ.get("PYTHONBREAKPOINT"):
        return sys.__breakpointhook__(*args, **kwargs)
    Debugger().set_trace(sys._getframe(1))
