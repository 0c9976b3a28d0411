"""Whether launches are interpreted (``TRITON_INTERPRET=1``, `knobs.runtime.interpret`)."""

from .. import _C
from .environment import flag


def _launch(*arguments):
    from ..interpreter.launch import launch

    return launch(*arguments)


def is_asked():
    return flag("TRITON_INTERPRET")


def refresh():
    """Have launches from now on do what the environment says."""
    _C.set_interpreter(_launch if is_asked() else None)
