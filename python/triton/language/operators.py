"""Methods that operators of Python stand for: some programs spell ``x << 4`` as ``x.__lshift__(4)``."""

from ..runtime.jit import jit


@jit
def __add__(x, y):
    return x + y


@jit
def __sub__(x, y):
    return x - y


@jit
def __mul__(x, y):
    return x * y


@jit
def __truediv__(x, y):
    return x / y


@jit
def __floordiv__(x, y):
    return x // y


@jit
def __mod__(x, y):
    return x % y


@jit
def __and__(x, y):
    return x & y


@jit
def __or__(x, y):
    return x | y


@jit
def __xor__(x, y):
    return x ^ y


@jit
def __lshift__(x, y):
    return x << y


@jit
def __rshift__(x, y):
    return x >> y
