"""Whether launches are interpreted (``TRITON_INTERPRET=1``, `knobs.runtime.interpret`)."""

import os

from .. import _C


def _launch(*arguments):
    from ..interpreter.launch import launch

    return launch(*arguments)


def is_asked():
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")


def refresh():
    """Have launches from now on do what the environment says."""
    _C.set_interpreter(_launch if is_asked() else None)
