"""Reductions, scans and histograms."""

from __future__ import annotations

from ._builtin import builtin, method, outside
from .tensors import tensor


@method
def reduce(input: tensor | tuple, axis: int | None, combine_fn, keep_dims: bool = False) -> tensor | tuple:
    """Combine all elements along `axis` into one.

    :param input: a tile, or a tuple of tiles of one shape that are reduced together.
    :param axis: the dimension, negative from the end; None for all elements of the tile.
    :param combine_fn: a ``@triton.jit`` function. It takes two scalars and returns one; for `n` tiles it
        takes ``2 n``, those of the first partial result and then those of the second, and returns `n`. It
        must be associative and commutative.
    :param keep_dims: leave the dimension in the result, with extent 1.
    :return: a tile without the dimension, or a scalar; a tuple of them for a tuple.
    """
    outside()


@method
def associative_scan(input: tensor | tuple, axis: int, combine_fn, reverse: bool = False) -> tensor | tuple:
    """Combine each element along `axis` with all before it.

    :param input: a tile, or a tuple of tiles of one shape that are scanned together.
    :param axis: the dimension, negative from the end.
    :param combine_fn: a ``@triton.jit`` function as for `reduce`; it must be associative.
    :param reverse: begin at the end: combine each element with all after it.
    :return: a tile of the shape of `input`; a tuple of them for a tuple.
    """
    outside()


@builtin
def map_elements(function, values: tuple) -> tensor | tuple:
    """`triton.language.map_elementwise` of values that are broadcast, an element at a time.

    :param function: a ``@triton.jit`` function of as many scalars as there are values.
    :param values: tiles and numbers.
    :return: a tile, or a tuple of them where the function returns several scalars.
    """
    outside()


@method
def histogram(input: tensor, num_bins: int, mask: tensor | None = None) -> tensor:
    """How often each of the integers from 0 to ``num_bins - 1`` occurs.

    :param input: a tile of integers, of any shape. Values outside of the bins are not counted.
    :param num_bins: a compile-time integer.
    :param mask: elements where it is false are not counted; broadcast to the shape of `input`.
    :return: an ``int32`` tile of shape ``[num_bins]``.
    """
    outside()
