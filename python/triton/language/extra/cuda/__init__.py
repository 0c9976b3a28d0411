"""The place where the public API keeps `libdevice` for CUDA; the functions are the same on every target."""


def __getattr__(name: str):
    if name == "libdevice":
        from .. import libdevice

        return libdevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
