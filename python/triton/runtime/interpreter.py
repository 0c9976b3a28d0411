"""The public API's name for kernels that are interpreted; what interprets them is `triton.interpreter`."""

from . import interpret
from .errors import InterpreterError
from .jit import JITFunction


class _Interpreted(type):
    def __instancecheck__(cls, value):
        return isinstance(value, JITFunction) and interpret.is_asked()


class InterpretedFunction(metaclass=_Interpreted):
    """Every kernel is one while launches are interpreted (``TRITON_INTERPRET=1``): for `isinstance`.

    ``InterpretedFunction(fn)`` is ``triton.jit(fn)``.
    """

    def __new__(cls, fn, **options):
        from .jit import jit

        return jit(fn, **options)


__all__ = ["InterpretedFunction", "InterpreterError"]
