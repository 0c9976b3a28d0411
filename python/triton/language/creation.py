"""Tiles from nothing, and tiles of another type."""

from __future__ import annotations

from ._builtin import builtin, method, outside
from .dtypes import dtype
from .tensors import tensor


@builtin
def arange(start: int, end: int) -> tensor:
    """The integers from `start` up to, and without, `end`.

    Both bounds are compile-time integers, and ``end > start``. The extent may be any number: ``tl.arange(0,
    96)`` works.

    :return: an ``int32`` tile of shape ``[end - start]``.
    """
    outside()


@builtin
def full(shape, value, dtype: dtype) -> tensor:
    """A tile whose elements all are `value`.

    :param shape: the extents, a tuple or list of compile-time integers; ``()`` or ``[]`` gives a scalar.
    :param value: a Python number or a scalar of the kernel, converted to `dtype`.
    :param dtype: the element type; None takes that of a `value` which is a scalar of the kernel.
    """
    outside()


@method
def cast(input: tensor, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """`input` converted to another element type; ``x.to(dtype)`` is the same.

    Between integers the low bits stay; a float becomes an integer by dropping the fraction; anything becomes
    ``int1`` by asking whether it differs from zero. A value that the integer type does not hold gives an
    unspecified integer.

    :param dtype: the element type, or a pointer type.
    :param fp_downcast_rounding: how a float becomes a narrower one: ``"rtne"`` (the default: to the nearest,
        ties to the even one) or ``"rtz"`` (toward zero).
    :param bitcast: keep the bits and read them as the new type, which must be as wide.
    """
    outside()


@method
def to(self: tensor, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """This tensor converted to another element type, as `cast` does."""
    outside()


@builtin
def to_tensor(x) -> tensor:
    """A Python number as a scalar of the kernel; a tensor as it is.

    A bool becomes ``int1``; an integer the first of ``int32``, ``uint32``, ``int64``, ``uint64`` that holds
    it; a float ``float32``, or ``float64`` where the number is finite and out of the range of ``float32``.
    """
    outside()


@builtin
def cat(input: tensor, other: tensor, can_reorder: bool = False, dim: int = 0) -> tensor:
    """`other` behind `input` along a dimension.

    Both have one element type and the same extents, except along `dim`. Elements keep their order, so
    `can_reorder` (which permits any order) changes nothing.

    :return: a tile whose extent along `dim` is the sum of the two.
    """
    outside()
