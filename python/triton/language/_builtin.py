"""What marks the functions of the language that the compiler implements.

A builtin is a Python function with signature, type hints and docstring, and no work in its body: the compiler
finds its name in ``__triton_builtin__``, binds the arguments of a call by the signature, and builds IR. In
plain Python a call has nothing to compute with, so the body is one call of `outside`, which raises; but where
Python runs for a kernel (the ``__init__`` of an aggregate) the call is the kernel's.
"""

import sys
import threading
from contextlib import contextmanager
from functools import wraps
from typing import NoReturn


class _ForKernel(threading.local):
    compute = None


_for_kernel = _ForKernel()


def compute_for_kernel():
    """What computes for the kernel that Python runs for in this thread, ``compute(operation, args, keywords)``; None
    where it runs for none. An operation is a function of kernels, or an operator by its text."""
    return _for_kernel.compute


@contextmanager
def for_kernel(compute):
    """A part of the program in which Python runs for a kernel."""
    outer, _for_kernel.compute = _for_kernel.compute, compute
    try:
        yield
    finally:
        _for_kernel.compute = outer


def place_of(frame):
    """Where a frame is: (file, function, line, column, end line, end column), columns in bytes."""
    code = frame.f_code
    line, end_line, column, end_column = next(
        (p for i, p in enumerate(code.co_positions()) if i == frame.f_lasti // 2), (frame.f_lineno, None, None, None)
    )
    line = line or frame.f_lineno
    return code.co_filename, code.co_name, line, column or 0, end_line or line, end_column or 0


def builtin(fn):
    """Mark `fn` as the stub of the compiler's builtin of the same name.

    A function that is not of this language becomes one of kernels, as by ``@triton.jit``.
    """
    if not fn.__module__.startswith("triton.language"):
        from ..runtime.jit import jit

        return jit(fn)

    @wraps(fn)
    def stub(*args, _semantic=None, **keywords):
        compute = compute_for_kernel()
        return fn(*args, **keywords) if compute is None else compute(stub, args, keywords)

    stub.__triton_builtin__ = fn.__name__
    return stub


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
