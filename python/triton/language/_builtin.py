"""What marks the functions of the language that the compiler implements.

A builtin is a Python function with signature, type hints and docstring, and no work in its body: the compiler
finds its name in ``__triton_builtin__``, binds the arguments of a call by the signature, and builds IR. In
plain Python a call has nothing to compute with, so the body is one call of `outside`, which raises.
"""

import sys
from typing import NoReturn


def builtin(fn):
    """Mark `fn` as the stub of the compiler's builtin of the same name.

    A function that is not of this language becomes one of kernels, as by ``@triton.jit``.
    """
    if not fn.__module__.startswith("triton.language"):
        from ..runtime.jit import jit

        return jit(fn)
    fn.__triton_builtin__ = fn.__name__
    return fn


def is_builtin(fn):
    """Whether `fn` is a function that the compiler implements."""
    return getattr(fn, "__triton_builtin__", None) is not None


def method(fn):
    """Mark `fn` as a builtin that is also a method of `tl.tensor`, whose first parameter is the tensor."""
    fn.__triton_method__ = True
    return builtin(fn)


def must_use_result(advice=True):
    """Decorator of a function of kernels: a call whose result nobody uses is an error.

    :param advice: a text that says what to do, or True. (As a decorator without arguments: the function.)
    """
    if callable(advice):
        advice._must_use_result = True
        return advice

    def mark(fn):
        fn._must_use_result = advice
        return fn

    return mark


def function(fn):
    """Mark `fn` as a function of one float: a builtin, a method, and one of `tl.extra.libdevice`."""
    fn.__triton_function__ = True
    return method(fn)


def builtins_of(namespace):
    """The names of the builtins in a module's namespace."""
    return [name for name, value in namespace.items() if is_builtin(value)]


def outside() -> NoReturn:
    """Raise the error of a builtin that the Python interpreter called; the caller's name is the builtin's."""
    name = sys._getframe(1).f_code.co_name
    raise RuntimeError(
        f"tl.{name} was called by the Python interpreter, but it only means something inside a kernel: "
        "did you forget to add @triton.jit to the function that calls it?"
    )
