"""Functions beyond the core: `libdevice`, also as ``tl.extra.cuda.libdevice`` and ``tl.libdevice``.

They are loaded when they are first asked for.
"""

from importlib import import_module


def _load(name):
    if name in ("libdevice", "cuda"):
        return import_module(f"{__name__}.{name}")
    if name in ("hip", "amd", "intel"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: there are the CPU and NVIDIA's GPUs")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import cuda as cuda
    from . import libdevice as libdevice
else:
    __getattr__ = _load  # a type checker would take every name
