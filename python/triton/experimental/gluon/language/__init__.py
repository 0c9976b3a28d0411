"""What Gluon has in common with ``triton.language``; layouts, and what takes them, are not supported."""

from triton import language as _tl


def __getattr__(name):
    if name.startswith("__") or not hasattr(_tl, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: Gluon is not supported", name=name)
    return getattr(_tl, name)
