"""Memory: pointers, loads, stores, atomics, and windows onto arrays.

A pointer is a scalar or a tile of addresses, made from a pointer argument by adding offsets counted in
elements.
"""

from __future__ import annotations

from ._builtin import builtin, method, must_use_result, outside
from .tensors import block_pointer, tensor


@method
def load(
    pointer: tensor,
    mask: tensor | None = None,
    other: tensor | float | None = None,
    boundary_check=(),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """Read the elements that `pointer` points to.

    `pointer` is one of

    - a scalar pointer: one element is read; `mask` and `other`, if given, are scalars;
    - a tile of pointers: each is read; `mask` and `other` are broadcast to its shape, and `other` is
      converted to the element type;
    - a block pointer of `make_block_ptr`: the window is read; `boundary_check` and `padding_option` take the
      place of `mask` and `other`, which must be None.

    :param mask: where it is false nothing is read. The element is then `other`, and unspecified without one.
    :param other: the value of elements that the mask leaves out; an error without `mask`.
    :param boundary_check: the dimensions of the window (integers) in which it may reach over the edge of the
        array; elements beyond are not read.
    :param padding_option: what elements beyond the edge are: ``"zero"``, ``"nan"`` (floats only), or ``""``
        for unspecified.
    :param cache_modifier: hint: ``""``, ``".ca"``, ``".cg"``, ``".cs"``, ``".cv"``.
    :param eviction_policy: hint: ``""``, ``"evict_first"``, ``"evict_last"``, ``"evict_normal"``.
    :param volatile: read from memory each time, whatever was read before.
    :return: elements of the pointed-to type, in the shape of `pointer` (of the window, for a block pointer).
    """
    outside()


@method
def store(
    pointer: tensor,
    value: tensor | float,
    mask: tensor | None = None,
    boundary_check=(),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write `value` to where `pointer` points.

    `pointer` is a scalar pointer, a tile of pointers or a block pointer, as for `load`. `value` is broadcast
    to its shape and converted to the element type; so is `mask`. If several elements go to one address, one
    of them stays.

    :param mask: where it is false nothing is written.
    :param boundary_check: of a block pointer: the dimensions in which the window may reach over the edge of
        the array; elements beyond are not written.
    :param cache_modifier: hint: ``""``, ``".wb"``, ``".cg"``, ``".cs"``, ``".wt"``.
    :param eviction_policy: hint: ``""``, ``"evict_first"``, ``"evict_last"``, ``"evict_normal"``.
    """
    outside()


@builtin
def make_block_ptr(base: tensor, shape, strides, offsets, block_shape, order) -> block_pointer:
    """A window of `block_shape` elements onto an array, for `load` and `store`; `advance` moves it.

    :param base: scalar pointer to the first element of the array.
    :param shape: extents of the array, run-time or compile-time integers.
    :param strides: distance between neighbours in each dimension, in elements.
    :param offsets: index of the window's first element in each dimension.
    :param block_shape: extents of the window, compile-time integers.
    :param order: the dimensions from the fastest in memory to the slowest; a hint about the layout.
    """
    outside()


@must_use_result("a block pointer is not changed: p = tl.advance(p, offsets)")
@builtin
def advance(base: block_pointer, offsets) -> block_pointer:
    """The window `base` moved by `offsets` elements, one integer a dimension. `base` itself stays."""
    outside()


@method
def atomic_add(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Add `val` to what `pointer` points to, in one step that no other access comes between.

    Integers of 32 and 64 bits, ``float16``, ``bfloat16``, ``float32`` and ``float64``. `val` and `mask` are
    broadcast to the shape of `pointer`, and `val` is converted to the element type.

    :param mask: where it is false nothing happens, and the result is unspecified.
    :param sem: memory order: ``"acq_rel"`` (the default), ``"acquire"``, ``"release"`` or ``"relaxed"``.
    :param scope: whom the order holds for: ``"gpu"`` (the default: the device), ``"cta"`` (the program) or
        ``"sys"``.
    :return: what was there before.
    """
    outside()


@method
def atomic_max(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Replace what `pointer` points to by the larger of itself and `val`, in one step.

    Signed and unsigned integers of 32 and 64 bits, floats of 16, 32 and 64 bits; a NaN loses. Parameters and
    result as for `atomic_add`.
    """
    outside()


@method
def atomic_min(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Replace what `pointer` points to by the smaller of itself and `val`, in one step.

    Signed and unsigned integers of 32 and 64 bits, floats of 16, 32 and 64 bits; a NaN loses. Parameters and
    result as for `atomic_add`.
    """
    outside()


@method
def atomic_and(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Replace what `pointer` points to by its bitwise "and" with `val`, in one step.

    Integers of 32 and 64 bits. Parameters and result as for `atomic_add`.
    """
    outside()


@method
def atomic_or(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Replace what `pointer` points to by its bitwise "or" with `val`, in one step.

    Integers of 32 and 64 bits. Parameters and result as for `atomic_add`.
    """
    outside()


@method
def atomic_xor(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Replace what `pointer` points to by its bitwise exclusive "or" with `val`, in one step.

    Integers of 32 and 64 bits. Parameters and result as for `atomic_add`.
    """
    outside()


@method
def atomic_xchg(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> tensor:
    """Put `val` where `pointer` points to, in one step with reading what was there.

    Element types of 32 and 64 bits, and ``float16``, ``bfloat16``. Parameters and result as for `atomic_add`.
    """
    outside()


@method
def atomic_cas(
    pointer: tensor, cmp: tensor | float, val: tensor | float, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Compare and swap: put `val` where `pointer` points to if `cmp` is there now, in one step.

    Element types of 16, 32 and 64 bits; floats are compared as bits. `cmp` and `val` are broadcast to the
    shape of `pointer` and converted to the element type. `sem` and `scope` as for `atomic_add`.

    :return: what was there before: equal to `cmp` where the swap took place.
    """
    outside()


@method
def atomic_load(
    pointer: tensor, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Read what `pointer` points to, each element in one step, and anew each time.

    Elements of any type. Another program's `atomic_store`, or atomic operation, is seen whole or not at all.

    :param mask: where it is false nothing is read, and the result is unspecified.
    :param sem: memory order: ``"acquire"`` (the default: what the program that stored the value did before its
        release is seen after) or ``"relaxed"``.
    :param scope: as for `atomic_add`.
    """
    outside()


@method
def atomic_store(
    pointer: tensor,
    val: tensor | float,
    mask: tensor | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> None:
    """Write `val` to where `pointer` points, each element in one step.

    Elements of any type. `val` and `mask` are broadcast to the shape of `pointer`, and `val` is converted to the
    element type.

    :param mask: where it is false nothing is written.
    :param sem: memory order: ``"release"`` (the default: who acquires the value sees what this program did before)
        or ``"relaxed"``.
    :param scope: as for `atomic_add`.
    """
    outside()
