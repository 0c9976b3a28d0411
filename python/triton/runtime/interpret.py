"""Whether launches are interpreted (``TRITON_INTERPRET=1``, `knobs.runtime.interpret`)."""

import sys

from .. import _C
from .environment import flag


def _launch(*arguments):
    from ..interpreter.launch import launch

    return launch(*arguments)


def is_asked():
    knobs = sys.modules.get("triton.knobs")  # what a program sets there goes before the environment
    return flag("TRITON_INTERPRET") if knobs is None else knobs.runtime.interpret


def refresh():
    """Have launches from now on do what the environment says."""
    _C.set_interpreter(_launch if is_asked() else None)
