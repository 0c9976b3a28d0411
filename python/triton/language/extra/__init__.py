"""Functions beyond the core: `libdevice`, also as ``tl.extra.cuda.libdevice`` and ``tl.libdevice``.

They are loaded when they are first asked for.
"""

from importlib import import_module


def __getattr__(name: str):
    if name in ("libdevice", "cuda"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
