"""Functions of elements: ``tl.math.exp`` is ``tl.exp``.

Operands are broadcast to one shape and promoted to one type. A function that is defined on floats computes
half precision (``float16``, ``bfloat16``) in ``float32`` and rounds once.

What is not here but in `tl.extra.libdevice` is found by its name there: ``tl.math.tanh`` is
``libdevice.tanh``.
"""

from __future__ import annotations

from enum import Enum

from ._builtin import builtin, builtins_of, function, method, outside
from .tensors import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class PropagateNan(Enum):
    """What `minimum`, `maximum` and `clamp` make of a NaN: ``NONE`` the other operand, ``ALL`` a NaN."""

    NONE = 0
    ALL = 0xFFFF


@function
def abs(x: tensor) -> tensor:
    """Absolute value, of integers and floats. An unsigned integer stays as it is."""
    outside()


@function
def exp(x: tensor) -> tensor:
    """e to the power of `x`."""
    outside()


@function
def exp2(x: tensor) -> tensor:
    """2 to the power of `x`."""
    outside()


@function
def log(x: tensor) -> tensor:
    """Natural logarithm."""
    outside()


@function
def log2(x: tensor) -> tensor:
    """Logarithm to base 2."""
    outside()


@function
def sin(x: tensor) -> tensor:
    """Sine of `x` radians."""
    outside()


@function
def cos(x: tensor) -> tensor:
    """Cosine of `x` radians."""
    outside()


@function
def sqrt(x: tensor) -> tensor:
    """Square root, as fast as the target computes it: it may be off in the last place."""
    outside()


@function
def sqrt_rn(x: tensor) -> tensor:
    """Square root, correctly rounded."""
    outside()


@function
def rsqrt(x: tensor) -> tensor:
    """One divided by the square root."""
    outside()


@function
def erf(x: tensor) -> tensor:
    """Error function."""
    outside()


@function
def floor(x: tensor) -> tensor:
    """The largest integral value that is not above `x`, as a float."""
    outside()


@function
def ceil(x: tensor) -> tensor:
    """The smallest integral value that is not below `x`, as a float."""
    outside()


@builtin
def fdiv(x: tensor | float, y: tensor | float, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    """Quotient of floats; with `ieee_rounding` correctly rounded, else as fast as the target computes it.

    :param approx: of ``float32`` only, and not with `ieee_rounding`: 2 ulps are exact enough, as they are without it.
    """
    outside()


@builtin
def div_rn(x: tensor | float, y: tensor | float) -> tensor:
    """Quotient of floats, correctly rounded."""
    outside()


@builtin
def fma(x: tensor | float, y: tensor | float, z: tensor | float) -> tensor:
    """``x * y + z`` of floats, rounded once."""
    outside()


@builtin
def umulhi(x: tensor | float, y: tensor | float) -> tensor:
    """The high half of the product of two integers of 32 or 64 bits, both taken as unsigned."""
    outside()


@builtin
def add(x: tensor | float, y: tensor | float, sanitize_overflow: bool = True) -> tensor:
    """``x + y``. Integers wrap around; `sanitize_overflow` allows a debug build to report it."""
    outside()


@builtin
def sub(x: tensor | float, y: tensor | float, sanitize_overflow: bool = True) -> tensor:
    """``x - y``. Integers wrap around; `sanitize_overflow` allows a debug build to report it."""
    outside()


@builtin
def mul(x: tensor | float, y: tensor | float, sanitize_overflow: bool = True) -> tensor:
    """``x * y``. Integers wrap around; `sanitize_overflow` allows a debug build to report it."""
    outside()


@builtin
def minimum(x: tensor | float, y: tensor | float, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The smaller of `x` and `y`, element by element, of integers and floats.

    :param propagate_nan: ``tl.PropagateNan.NONE``: a NaN loses against a number; ``ALL``: a NaN wins.
    """
    outside()


@builtin
def maximum(x: tensor | float, y: tensor | float, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The larger of `x` and `y`, element by element, of integers and floats.

    :param propagate_nan: ``tl.PropagateNan.NONE``: a NaN loses against a number; ``ALL``: a NaN wins.
    """
    outside()


@builtin
def clamp(
    x: tensor | float, min: tensor | float, max: tensor | float, propagate_nan: PropagateNan = PropagateNan.NONE
) -> tensor:
    """`x`, but no less than `min` and no more than `max`; floats. The result is unspecified where ``min >
    max``.

    :param propagate_nan: what a NaN in `x` gives: ``tl.PropagateNan.NONE`` gives `min`, ``ALL`` gives NaN.
    """
    outside()


@builtin
def where(condition: tensor | float, x: tensor | float, y: tensor | float) -> tensor:
    """`x` where `condition` is true, else `y`, element by element.

    The three are broadcast to one shape, `x` and `y` promoted to one type; a `condition` that is not ``int1``
    asks whether it differs from zero. Both `x` and `y` are computed: to avoid a memory access, give the load
    a mask.
    """
    outside()


@method
def logical_and(self: tensor, other: tensor | float) -> tensor:
    """Whether both are different from zero, element by element: ``self and other``."""
    outside()


@method
def logical_or(self: tensor, other: tensor | float) -> tensor:
    """Whether one of both is different from zero, element by element: ``self or other``."""
    outside()


if not TYPE_CHECKING:  # which reads lists of names only that are written out
    __all__ = ["PropagateNan", *builtins_of(globals())]


def __getattr__(name: str) -> Callable[..., tensor]:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .extra import libdevice

    if name == "libdevice":
        return libdevice
    try:
        return getattr(libdevice, name)
    except AttributeError:
        raise AttributeError(f"neither tl.math nor tl.extra.libdevice has a function {name!r}") from None
