"""Tiles in other shapes. Elements are numbered row by row, the last dimension fastest."""

from __future__ import annotations

from ._builtin import builtin, method, outside
from .tensors import tensor


@builtin
def broadcast(input: tensor, other: tensor) -> tuple[tensor, tensor]:
    """Both operands in the one shape that NumPy's broadcasting gives them.

    Shapes are aligned at the last dimension; missing dimensions and extents of 1 are repeated to the other's
    extent. Any other difference is an error.
    """
    outside()


@method
def broadcast_to(input: tensor, *shape) -> tensor:
    """`input` repeated to `shape`: ``x.broadcast_to(4, 8)`` or ``x.broadcast_to((4, 8))``.

    Each extent of `input`, aligned at the last dimension, is 1 or that of `shape`.
    """
    outside()


@method
def expand_dims(input: tensor, axis) -> tensor:
    """`input` with a new dimension of extent 1 at `axis` of the result, or several for a tuple of axes.

    Negative axes count from the end of the result. ``x[:, None]`` writes the same.
    """
    outside()


@method
def reshape(input: tensor, *shape, can_reorder: bool = False) -> tensor:
    """The elements of `input`, in their order, in another shape: ``x.reshape(4, 8)`` or ``x.reshape((4,
    8))``.

    :param shape: extents whose product is the number of elements. One of them may be -1: what is left.
    :param can_reorder: permission to change the order of elements, which this compiler does not make use of.
    """
    outside()


@method
def view(input: tensor, *shape) -> tensor:
    """The elements of `input` in another shape, as `reshape` gives them (it is the newer name)."""
    outside()


@method
def trans(input: tensor, *dims) -> tensor:
    """`input` with its dimensions in another order.

    Without `dims` the last two change places. With them the result is `permute`'s.
    """
    outside()


@method
def permute(input: tensor, *dims) -> tensor:
    """`input` with its dimensions in another order: dimension `i` of the result is dimension ``dims[i]`` of
    `input`.

    ``x.permute(2, 1, 0)`` or ``x.permute((2, 1, 0))``; each dimension once.
    """
    outside()


@builtin
def join(a: tensor, b: tensor) -> tensor:
    """`a` and `b`, broadcast to one shape, as the two elements of a new last dimension.

    ``join(a, b)[..., 0]`` is `a`. Two scalars give shape ``[2]``; two tiles of ``[4, 8]`` give ``[4, 8, 2]``.
    """
    outside()


@method
def split(a: tensor) -> tuple[tensor, tensor]:
    """The two halves of the last dimension, which has extent 2; the inverse of `join`.

    A tile of ``[4, 8, 2]`` gives two of ``[4, 8]``; one of ``[2]`` gives two scalars.
    """
    outside()


@method
def item(src: tensor) -> tensor:
    """The one element of a tile of one element, as a scalar."""
    outside()


@method
def gather(src: tensor, index: tensor, axis: int) -> tensor:
    """Elements of `src` picked along `axis` by `index`.

    In two dimensions and for axis 0, ``result[i, j] = src[index[i, j], j]``. `index` is a tile of integers
    with the rank and the extents of `src`, except along `axis`; an index out of range gives an unspecified
    element.

    :return: elements of `src` in the shape of `index`.
    """
    outside()
