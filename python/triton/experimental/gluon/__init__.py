"""A place for the names of Gluon, the lower-level language beside the public API, which is not supported.

Programs import it together with what they do use, and some of their kernels are written in it for GPUs that are not
there. So it can be imported and kernels can be decorated; compiling one is what is refused. What holds the operations
of one generation of GPUs (``language.nvidia.hopper``) is not here: programs ask for it to see whether they can use it.
"""

from triton.errors import UnsupportedError
from triton.language import constexpr_function
from triton.runtime.jit import JITFunction

from . import language

__all__ = ["GluonJITFunction", "constexpr_function", "jit", "language"]


class GluonJITFunction(JITFunction):
    """A kernel in Gluon, which can be looked at, but not compiled."""

    def parse(self):
        raise UnsupportedError(
            f"{self.__name__!r} is a kernel in Gluon, which is not supported",
            location=self.source.location,
            remedy="write it in triton.language",
        )


def jit(fn=None, **options):
    """The decorator of kernels in Gluon, with the options of ``triton.jit``."""
    return GluonJITFunction(fn, **options) if fn is not None else lambda fn: GluonJITFunction(fn, **options)
