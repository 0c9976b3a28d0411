"""What libm and libdevice compute alike: one call of the target's library.

Floats of 16 bits are computed in ``float32`` and rounded once. Operands are broadcast and promoted.
"""

from __future__ import annotations

from .._builtin import builtin, outside
from ..tensors import tensor


@builtin
def acos(x: tensor) -> tensor:
    """Arc cosine, in radians from 0 to pi."""
    outside()


@builtin
def acosh(x: tensor) -> tensor:
    """Inverse hyperbolic cosine, not negative."""
    outside()


@builtin
def asin(x: tensor) -> tensor:
    """Arc sine, in radians from -pi/2 to pi/2."""
    outside()


@builtin
def asinh(x: tensor) -> tensor:
    """Inverse hyperbolic sine."""
    outside()


@builtin
def atan(x: tensor) -> tensor:
    """Arc tangent, in radians from -pi/2 to pi/2."""
    outside()


@builtin
def atan2(y: tensor, x: tensor) -> tensor:
    """The angle of the point ``(x, y)``, in radians from -pi to pi."""
    outside()


@builtin
def atanh(x: tensor) -> tensor:
    """Inverse hyperbolic tangent."""
    outside()


@builtin
def cbrt(x: tensor) -> tensor:
    """Cube root."""
    outside()


@builtin
def copysign(x: tensor, y: tensor) -> tensor:
    """The magnitude of `x` with the sign of `y`."""
    outside()


@builtin
def cosh(x: tensor) -> tensor:
    """Hyperbolic cosine."""
    outside()


@builtin
def erfc(x: tensor) -> tensor:
    """``1 - erf(x)``, without the loss of digits."""
    outside()


@builtin
def exp10(x: tensor) -> tensor:
    """10 to the power of `x`."""
    outside()


@builtin
def expm1(x: tensor) -> tensor:
    """``exp(x) - 1``, without the loss of digits near 0."""
    outside()


@builtin
def fdim(x: tensor, y: tensor) -> tensor:
    """``x - y`` where that is positive, else 0."""
    outside()


@builtin
def hypot(x: tensor, y: tensor) -> tensor:
    """``sqrt(x * x + y * y)``, without overflow in between."""
    outside()


@builtin
def j0(x: tensor) -> tensor:
    """Bessel function of the first kind, order 0."""
    outside()


@builtin
def j1(x: tensor) -> tensor:
    """Bessel function of the first kind, order 1."""
    outside()


@builtin
def jn(n: tensor, x: tensor) -> tensor:
    """Bessel function of the first kind, of integer order `n`."""
    outside()


@builtin
def ldexp(x: tensor, n: tensor) -> tensor:
    """`x` times 2 to the power of the integer `n`."""
    outside()


@builtin
def lgamma(x: tensor) -> tensor:
    """Logarithm of the magnitude of the gamma function."""
    outside()


@builtin
def log10(x: tensor) -> tensor:
    """Logarithm to base 10."""
    outside()


@builtin
def log1p(x: tensor) -> tensor:
    """``log(1 + x)``, without the loss of digits near 0."""
    outside()


@builtin
def logb(x: tensor) -> tensor:
    """The exponent of `x`, as a float: the floor of the logarithm of its magnitude to base 2."""
    outside()


@builtin
def pow(x: tensor, y: tensor) -> tensor:
    """`x` to the power of `y`."""
    outside()


@builtin
def remainder(x: tensor, y: tensor) -> tensor:
    """``x - n * y`` for the integer `n` nearest to ``x / y``, the even one of two."""
    outside()


@builtin
def rint(x: tensor) -> tensor:
    """The nearest integral value, the even one of two."""
    outside()


@builtin
def round(x: tensor) -> tensor:
    """The nearest integral value, of two the one farther from 0."""
    outside()


@builtin
def sinh(x: tensor) -> tensor:
    """Hyperbolic sine."""
    outside()


@builtin
def tan(x: tensor) -> tensor:
    """Tangent of `x` radians."""
    outside()


@builtin
def tanh(x: tensor) -> tensor:
    """Hyperbolic tangent."""
    outside()


@builtin
def tgamma(x: tensor) -> tensor:
    """Gamma function."""
    outside()


@builtin
def trunc(x: tensor) -> tensor:
    """The integral value next to `x` on the side of 0."""
    outside()


@builtin
def y0(x: tensor) -> tensor:
    """Bessel function of the second kind, order 0."""
    outside()


@builtin
def y1(x: tensor) -> tensor:
    """Bessel function of the second kind, order 1."""
    outside()


@builtin
def yn(n: tensor, x: tensor) -> tensor:
    """Bessel function of the second kind, of integer order `n`."""
    outside()


@builtin
def clz(x: tensor) -> tensor:
    """How many zero bits are above the highest one bit of an integer of 32 or 64 bits, as ``int32``."""
    outside()


@builtin
def popc(x: tensor) -> tensor:
    """How many bits of an integer of 32 or 64 bits are one, as ``int32``."""
    outside()


@builtin
def mulhi(x: tensor, y: tensor) -> tensor:
    """The high half of the product of two integers of 32 or 64 bits, signed if their type is."""
    outside()
