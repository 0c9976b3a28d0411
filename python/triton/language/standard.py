"""The part of the language that is best written in the language: compositions of what `core` holds."""

from __future__ import annotations

from ..runtime.jit import jit
from . import core
from .compile_time import constexpr_function
from .core import constexpr
from .programs import nanoseconds
from .reduction import map_elements

__all__ = [
    "argmax",
    "argmin",
    "atomic_poll",
    "bitonic_merge",
    "cdiv",
    "cumprod",
    "cumsum",
    "expect_zero",
    "flip",
    "interleave",
    "map_elementwise",
    "max",
    "min",
    "ravel",
    "reduce_or",
    "sigmoid",
    "softmax",
    "sort",
    "squeeze",
    "sum",
    "swizzle2d",
    "topk",
    "unsqueeze",
    "xor_sum",
    "zeros",
    "zeros_like",
]

# What decides about shapes and types at compile time is plain Python.


@constexpr_function
def _axis(axis, rank):
    """`axis` counted from the front."""
    if not -rank <= axis < rank:
        raise ValueError(f"dimension {axis} is out of range for a tile of {rank} dimension{'s' * (rank != 1)}")
    return axis % rank


@constexpr_function
def _log2(number):
    """The exponent of a power of two; kernels of other libraries, torch's among them, count dimensions with it."""
    if number < 1 or number & (number - 1):
        raise ValueError(f"the number must be a power of 2, not {number}")
    return number.bit_length() - 1


@constexpr_function
def _line_shape(shape, axis):
    """The shape of a line along `axis`, ready for broadcasting."""
    return tuple(extent if i == axis else 1 for i, extent in enumerate(shape))


@constexpr_function
def _with_extent(shape, axis, extent):
    return tuple(extent if i == axis else old for i, old in enumerate(shape))


@constexpr_function
def _with_last(shape, extents):
    """The shape with these extents in place of the last one."""
    return (*shape[:-1], *extents)


@constexpr_function
def _exchanged(rank, axis):
    """The order of dimensions in which `axis` and the last one change places."""
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return tuple(order)


@constexpr_function
def _next_power_of_2(n):
    return 1 << (n - 1).bit_length()


@constexpr_function
def _sum_dtype(element, asked):
    """The type of a sum: the asked one, no integer narrower than 32 bits, float32 for bfloat16."""
    if asked is not None:
        return asked
    if element.is_int() and element.primitive_bitwidth < 32:
        return core.int32 if element.is_int_signed() else core.uint32
    return core.float32 if element.is_bf16() else element


@constexpr_function
def _accumulator(element):
    """The type that sums of `element` are added up in."""
    half = element.is_floating() and element.primitive_bitwidth < 32
    return core.float32 if half else element


@constexpr_function
def _extremum_dtype(element):
    """The type of a maximum or minimum: 32 bits at least."""
    if element.primitive_bitwidth >= 32:
        return element
    return core.float32 if element.is_floating() else core.int32


@constexpr_function
def _without_bfloat16(element):
    return core.float32 if element.is_bf16() else element


# Elements.


@jit
def cdiv(x, div) -> core.tensor:
    """`x` divided by `div`, rounded up; for non-negative integers."""
    return (x + div - 1) // div


@jit
def sigmoid(x) -> core.tensor:
    """``1 / (1 + exp(-x))``."""
    wide = x.to(_accumulator(x.dtype))
    return (1 / (1 + core.exp(-wide))).to(x.dtype)


@jit
def softmax(x, dim=None, keep_dims=None, ieee_rounding=False) -> core.tensor:
    """``exp(x)``, scaled so that it adds up to 1 along `dim` (None: the first dimension).

    The largest element is subtracted first, so that nothing overflows.

    :param keep_dims: accepted for compatibility: the result has the shape of `x` in any case.
    :param ieee_rounding: divide with correct rounding.
    :return: of floats narrower than 32 bits ``float32``, else the type of `x`.
    """
    axis: constexpr = 0 if dim is None else dim
    powers = core.exp(x - max(x, axis, keep_dims=True))
    return core.fdiv(powers, sum(powers, axis, keep_dims=True), ieee_rounding)


@jit
def expect_zero(x, mask) -> core.tensor:
    """`x`, with the claim that it is 0 wherever `mask` is true.

    Kernels that are compiled for debugging check it, as by `device_assert`; others do not.
    """
    core.device_assert(x == 0, "tl.expect_zero: an element under the mask is not 0", mask=mask)
    return x


# Shapes and creation.


@jit
def zeros(shape, dtype) -> core.tensor:
    """A tile of zeros of `shape` (compile-time integers) and element type `dtype`."""
    return core.full(shape, 0, dtype)


@jit
def zeros_like(input) -> core.tensor:
    """A tile of zeros of the shape and element type of `input`."""
    return core.full(input.shape, 0, input.dtype)


@jit
def ravel(x, can_reorder=False) -> core.tensor:
    """The elements of `x`, in their order, in one dimension."""
    return core.reshape(x, (x.numel,), can_reorder=can_reorder)


@jit
def interleave(a, b) -> core.tensor:
    """The elements of `a` and `b` in turn along the last dimension, which becomes twice as long.

    ``interleave([a0, a1], [b0, b1])`` is ``[a0, b0, a1, b1]``; two scalars give a tile of two elements.
    """
    both = core.join(a, b)
    if len(both.shape) == 1:
        return both
    return core.reshape(both, both.shape[:-2] + (2 * both.shape[-2],))


@jit
def flip(x, dim=None) -> core.tensor:
    """`x` with its elements along `dim` (None: the last dimension) in reverse order."""
    rank: constexpr = len(x.shape)
    axis: constexpr = _axis(rank - 1 if dim is None else dim, rank)
    if axis == rank - 1:
        return x[..., ::-1]
    order: constexpr = _exchanged(rank, axis)
    return core.permute(core.permute(x, order)[..., ::-1], order)


@jit
def _indices(shape: constexpr, axis: constexpr):
    """The coordinate along `axis` of each element of a shape."""
    line: constexpr = _line_shape(shape, axis)
    return core.broadcast_to(core.reshape(core.arange(0, shape[axis]), line), shape)


@jit
def squeeze(x, dim: constexpr) -> core.tensor:
    """`x` without its dimension `dim`, whose extent is 1."""
    axis: constexpr = _axis(dim, len(x.shape))
    core.static_assert(x.shape[axis] == 1, "the extent of the dimension is not 1")
    return core.reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


@jit
def unsqueeze(x, dim: constexpr) -> core.tensor:
    """`x` with a new dimension of extent 1 at `dim`."""
    return core.expand_dims(x, dim)


@jit
def swizzle2d(i, j, size_i, size_j, size_g) -> tuple[core.tensor, core.tensor]:
    """Another order of the elements of a matrix: row by row within groups of `size_g` rows becomes column by
    column.

    With `size_i` and `size_j` of 4 and `size_g` of 2, the row-major numbers ::

        [[0 , 1 , 2 , 3 ],          [[0, 2,  4 , 6 ],
         [4 , 5 , 6 , 7 ],    go     [1, 3,  5 , 7 ],
         [8 , 9 , 10, 11],    to     [8, 10, 12, 14],
         [12, 13, 14, 15]]           [9, 11, 13, 15]]

    Programs that run at the same time then work on a group of rows and reuse what they load.

    :return: the new row and column of element ``(i, j)``.
    """
    position = i * size_j + j
    group = position // (size_g * size_j)
    first_row = group * size_g
    rows = core.minimum(size_i - first_row, size_g)  # the last group may be smaller
    position = position % (size_g * size_j)
    return first_row + position % rows, position // rows


# Maxima and minima. A NaN loses.


@jit
def _elementwise_max(a, b):
    return core.maximum(a, b)


@jit
def _elementwise_min(a, b):
    return core.minimum(a, b)


@jit
def _argmax_combine_tie_break_left(value1, index1, value2, index2):
    keep = (value1 > value2) | (value2 != value2) | ((value1 == value2) & (index1 < index2))
    return core.where(keep, value1, value2), core.where(keep, index1, index2)


@jit
def _argmax_combine_tie_break_fast(value1, index1, value2, index2):
    keep = (value1 > value2) | (value2 != value2)
    return core.where(keep, value1, value2), core.where(keep, index1, index2)


@jit
def _argmin_combine_tie_break_left(value1, index1, value2, index2):
    keep = (value1 < value2) | (value2 != value2) | ((value1 == value2) & (index1 < index2))
    return core.where(keep, value1, value2), core.where(keep, index1, index2)


@jit
def _argmin_combine_tie_break_fast(value1, index1, value2, index2):
    keep = (value1 < value2) | (value2 != value2)
    return core.where(keep, value1, value2), core.where(keep, index1, index2)


@jit
def _with_indices(input, axis, combine_fn, keep_dims):
    """What `combine_fn` selects along `axis`, and the index where it was."""
    if axis is None:
        index = core.reshape(core.arange(0, input.numel), input.shape)
    else:
        index = _indices(input.shape, _axis(axis, len(input.shape)))
    return core.reduce((input, index), axis, combine_fn, keep_dims=keep_dims)


@jit
def max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False) -> core.tensor:
    """The largest element along `axis`; a NaN loses against a number.

    :param axis: the dimension, negative from the end; None for all elements.
    :param return_indices: give the index of the element along `axis` as well, as `argmax` does.
    :param return_indices_tie_break_left: of equal elements the first one's index; else that of any.
    :param keep_dims: leave the dimension in the result, with extent 1.
    :return: of integers narrower than 32 bits ``int32``, of narrow floats ``float32``, else the type of
        `input`. With `return_indices` a pair: the element (of a ``bfloat16`` as ``float32``), and an
        ``int32`` index.
    """
    if return_indices:
        values = input.to(_without_bfloat16(input.dtype))
        if return_indices_tie_break_left:
            return _with_indices(values, axis, _argmax_combine_tie_break_left, keep_dims)
        else:
            return _with_indices(values, axis, _argmax_combine_tie_break_fast, keep_dims)
    else:
        return core.reduce(input.to(_extremum_dtype(input.dtype)), axis, _elementwise_max, keep_dims=keep_dims)


@jit
def min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False) -> core.tensor:
    """The smallest element along `axis`; a NaN loses against a number. Parameters and result as for `max`."""
    if return_indices:
        values = input.to(_without_bfloat16(input.dtype))
        if return_indices_tie_break_left:
            return _with_indices(values, axis, _argmin_combine_tie_break_left, keep_dims)
        else:
            return _with_indices(values, axis, _argmin_combine_tie_break_fast, keep_dims)
    else:
        return core.reduce(input.to(_extremum_dtype(input.dtype)), axis, _elementwise_min, keep_dims=keep_dims)


@jit
def argmax(input, axis, tie_break_left=True, keep_dims=False) -> core.tensor:
    """The index of the largest element along `axis`, an ``int32``; of all elements, in their order, for None.

    :param tie_break_left: of equal elements the first one's index; else that of any.
    :param keep_dims: leave the dimension in the result, with extent 1.
    """
    value, index = max(input, axis, True, tie_break_left, keep_dims)
    return index


@jit
def argmin(input, axis, tie_break_left=True, keep_dims=False) -> core.tensor:
    """The index of the smallest element along `axis`, an ``int32``. Parameters as for `argmax`."""
    value, index = min(input, axis, True, tie_break_left, keep_dims)
    return index


# Sums and other reductions.


@jit
def _sum_combine(a, b):
    return a + b


@jit
def _prod_combine(a, b):
    return a * b


@jit
def _xor_combine(a, b):
    return a ^ b


@jit
def _or_combine(a, b):
    return a | b


@jit
def sum(input, axis=None, keep_dims=False, dtype: constexpr = None) -> core.tensor:
    """The sum of the elements along `axis`.

    :param axis: the dimension, negative from the end; None for all elements.
    :param keep_dims: leave the dimension in the result, with extent 1.
    :param dtype: the type that elements are converted to first. By default integers narrower than 32 bits
        become ``int32`` or ``uint32`` and ``bfloat16`` becomes ``float32``; other types stay.
    :return: elements of that type. Sums of ``float16`` are added up in ``float32`` and rounded once.
    """
    total: constexpr = _sum_dtype(input.dtype, dtype)
    added = core.reduce(input.to(total).to(_accumulator(total)), axis, _sum_combine, keep_dims=keep_dims)
    return added.to(total)


@jit
def xor_sum(input, axis=None, keep_dims=False) -> core.tensor:
    """The exclusive "or" of the integers along `axis` (None: of all)."""
    core.static_assert(input.dtype.is_int(), "the elements are no integers")
    return core.reduce(input, axis, _xor_combine, keep_dims=keep_dims)


@jit
def reduce_or(input, axis=None, keep_dims=False) -> core.tensor:
    """The bitwise "or" of the integers along `axis` (None: of all)."""
    core.static_assert(input.dtype.is_int(), "the elements are no integers")
    return core.reduce(input, axis, _or_combine, keep_dims=keep_dims)


# Any function of elements.


@jit
def _parts(x, count: constexpr):
    """Every `count`-th element of a line, from the first on, from the second on, ..."""
    if count == 1:
        return (x,)
    else:
        even, odd = core.split(core.reshape(x, (x.shape[0] // 2, 2)))
        first, second = _parts(even, count // 2), _parts(odd, count // 2)
        parts = ()
        for i in core.static_range(count // 2):
            parts = parts + (first[i], second[i])
        return parts


@jit
def _line_of(parts):
    """The line that `_parts` took apart."""
    if len(parts) == 1:
        return parts[0]
    else:
        line = core.join(_line_of(parts[0::2]), _line_of(parts[1::2]))
        return core.reshape(line, (line.numel,))


@jit
def map_elementwise(scalar_fn: constexpr, *args, pack: constexpr = 1):
    """A function of scalars, called for each element of tiles.

    It may branch and loop on the values of its parameters: what it does for one element does not depend on the others.
    It computes only, without access to memory.

    :param scalar_fn: a ``@triton.jit`` function. It returns a scalar, or several as a tuple.
    :param args: tiles and numbers, one for each parameter of `scalar_fn`, broadcast to one shape.
    :param pack: a power of 2: the function gets so many neighbours at a time, of each tile in turn, and returns as many
        of each result. Neighbours are elements that follow each other in row-major order.
    :return: a tile, or a tuple of them where the function returns several scalars.
    """
    if pack == 1:
        return map_elements(scalar_fn, args)
    else:
        core.static_assert(pack == _next_power_of_2(pack), "pack must be a power of 2")
        tiles = core.broadcast(*args) if len(args) > 1 else args
        parts = ()
        for tile in core.static_range(len(args)):
            parts = parts + _parts(core.reshape(tiles[tile], (tiles[tile].numel,)), pack)
        results = map_elements(scalar_fn, parts)
        core.static_assert(len(results) % pack == 0, "the function must return `pack` scalars of each result")
        lines = ()
        for i in core.static_range(len(results) // pack):
            line = _line_of(results[i * pack : (i + 1) * pack])
            lines = lines + (core.reshape(line, tiles[0].shape),)
        return lines[0] if len(lines) == 1 else lines


# Scans.


@jit
def cumsum(input, axis=0, reverse=False, dtype: constexpr = None) -> core.tensor:
    """The sum of each element along `axis` and all before it; with `reverse`, all after it.

    :param dtype: the type that elements are converted to first; the default is that of `sum`.
    """
    total: constexpr = _sum_dtype(input.dtype, dtype)
    added = core.associative_scan(input.to(total).to(_accumulator(total)), axis, _sum_combine, reverse)
    return added.to(total)


@jit
def cumprod(input, axis=0, reverse=False, dtype: constexpr = None) -> core.tensor:
    """The product of each element along `axis` and all before it; with `reverse`, all after it.

    :param dtype: the type that elements are converted to first; the default is that of `sum`.
    """
    total: constexpr = _sum_dtype(input.dtype, dtype)
    product = core.associative_scan(input.to(total).to(_accumulator(total)), axis, _prod_combine, reverse)
    return product.to(total)


# Sorting. Keys are integers whose order is that of the elements; NaNs come last. A bitonic network (Batcher,
# AFIPS 1968) runs over them as a loop, each step a gather of the partners, so that the code is short for any
# extent.


@constexpr_function
def _key_dtype(element):
    if element.is_floating():
        return core.get_int_dtype(element.primitive_bitwidth, True)
    return core.int8 if element.is_bool() else element


@jit
def _to_keys(x):
    """Integers in the order of the elements of `x`."""
    if x.dtype.is_floating():
        # Sign and magnitude to two's complement; every NaN first becomes the positive one.
        bits = core.where(x != x, float("nan"), x).to(x.dtype).to(_key_dtype(x.dtype), bitcast=True)
        return core.where(bits < 0, bits ^ _key_dtype(x.dtype).get_int_max_value(), bits)
    else:
        return x.to(_key_dtype(x.dtype))


@jit
def _from_keys(keys, dtype: constexpr):
    """The elements that `_to_keys` made `keys` of."""
    if dtype.is_floating():
        return core.where(keys < 0, keys ^ keys.dtype.get_int_max_value(), keys).to(dtype, bitcast=True)
    else:
        return keys.to(dtype)


@jit
def _merge(keys, index, axis: constexpr, run, descending):
    """One round of the network: bitonic runs of length `run` become sorted, in alternating directions.

    `index` numbers the elements along `axis`, in the shape of `keys`.
    """
    down = ((index & run) != 0) ^ descending
    distance = run >> 1
    while distance > 0:
        partner = core.gather(keys, index ^ distance, axis)
        keep_smaller = ((index & distance) == 0) ^ down
        keys = core.where((keys < partner) == keep_smaller, keys, partner)
        distance >>= 1
    return keys


@jit
def _padded_keys(x, axis: constexpr, descending: constexpr):
    """The keys of `x`, padded at the end of `axis` to the next power of two, with what is sorted behind all others."""
    keys = _to_keys(x)
    n: constexpr = x.shape[axis]
    padded: constexpr = _next_power_of_2(n)
    if padded != n:
        last: constexpr = keys.dtype.get_int_min_value() if descending else keys.dtype.get_int_max_value()
        fill = core.full(_with_extent(x.shape, axis, padded - n), last, keys.dtype)
        return core.cat(keys, fill, dim=axis)
    else:
        return keys


@jit
def _sorted_runs(keys, axis: constexpr, length: constexpr, descending: constexpr):
    """Runs of `length` along `axis` sorted, in alternating directions."""
    index = _indices(keys.shape, axis)
    run = 2
    while run <= length:
        keys = _merge(keys, index, axis, run, descending)
        run *= 2
    return keys


@jit
def _first(x, axis: constexpr, n: constexpr):
    """The first `n` elements along `axis`."""
    rank: constexpr = len(x.shape)
    if x.shape[axis] == n:
        return x
    elif axis == rank - 1:
        return x[..., :n]
    else:
        order: constexpr = _exchanged(rank, axis)
        return core.permute(core.permute(x, order)[..., :n], order)


@jit
def sort(x, dim: constexpr = None, descending: constexpr = False) -> core.tensor:
    """`x` with its elements sorted along `dim` (None: the last dimension). NaNs count as the largest."""
    rank: constexpr = len(x.shape)
    axis: constexpr = _axis(rank - 1 if dim is None else dim, rank)
    keys = _padded_keys(x, axis, descending)
    keys = _sorted_runs(keys, axis, keys.shape[axis], descending)
    return _from_keys(_first(keys, axis, x.shape[axis]), x.dtype)


@jit
def _first_keys(keys, run: constexpr, descending: constexpr):
    """The `run` largest (smallest) along the last dimension, in order, of runs sorted in alternating directions.

    Of a run that falls and one that rises, the larger elements place by place are the largest of both.
    """
    rank: constexpr = len(keys.shape)
    n: constexpr = keys.shape[rank - 1]
    if n == run:
        return keys
    else:
        pairs = core.reshape(keys, _with_last(keys.shape, (n // (2 * run), 2, run)))
        chosen = core.reduce(pairs, rank, core.maximum if descending else core.minimum)
        chosen = core.reshape(chosen, _with_last(keys.shape, (n // 2,)))
        merged = _merge(chosen, _indices(chosen.shape, rank - 1), rank - 1, run, descending)
        return _first_keys(merged, run, descending)


@jit
def topk(x, k: constexpr, dim: constexpr = None, descending: constexpr = True) -> core.tensor:
    """The `k` largest elements along `dim` (None: the last one), largest first; not `descending`, the smallest,
    smallest first. NaNs count as the largest."""
    rank: constexpr = len(x.shape)
    axis: constexpr = _axis(rank - 1 if dim is None else dim, rank)
    core.static_assert(0 < k <= x.shape[axis], "k is not between 1 and the extent of the dimension")
    order: constexpr = _exchanged(rank, axis)
    run: constexpr = _next_power_of_2(k)
    keys = _padded_keys(core.permute(x, order) if axis != rank - 1 else x, rank - 1, descending)
    keys = _first_keys(_sorted_runs(keys, rank - 1, run, descending), run, descending)
    keys = keys if run == k else keys[..., :k]
    return _from_keys(core.permute(keys, order) if axis != rank - 1 else keys, x.dtype)


@jit
def bitonic_merge(x, dim: constexpr = None, descending: constexpr = False) -> core.tensor:
    """`x`, which first rises and then falls along `dim` (or the other way round), sorted in one round of
    merging.

    The extent along `dim` is a power of two.
    """
    rank: constexpr = len(x.shape)
    axis: constexpr = _axis(rank - 1 if dim is None else dim, rank)
    core.static_assert(x.shape[axis] == _next_power_of_2(x.shape[axis]), "the extent must be a power of 2")
    keys = _to_keys(x)
    keys = _merge(keys, _indices(keys.shape, axis), axis, x.shape[axis], descending)
    return _from_keys(keys, x.dtype)


# Waiting.


@jit
def _everywhere(condition):
    """Whether a condition holds for all elements."""
    if len(condition.shape) == 0:
        return condition
    else:
        return min(condition.to(core.int32)) != 0


@jit
def atomic_poll(
    pointer, expected_value, sem: constexpr = None, scope: constexpr = None, timeout_ns=None
) -> core.tensor:
    """Wait until `expected_value` is what `pointer` points to, for each element, looking by `atomic_load`.

    Integers of 16, 32 and 64 bits. `expected_value` is broadcast to the shape of `pointer`, and converted to the
    element type. Each element is looked at once at least; one that was found is not looked at again, and all of them
    are waited for.

    :param sem: memory order: ``"acquire"`` (the default) or ``"relaxed"``.
    :param scope: as for `atomic_add`.
    :param timeout_ns: how long to wait for all of them together, in nanoseconds; None: for ever.
    :return: an ``int1`` for each element: true where the value was found, false where the time ran out before.
    """
    core.static_assert(pointer.dtype.is_ptr(), "it takes pointers")
    element: constexpr = pointer.dtype.element_ty
    core.static_assert(
        element.is_int() and element.primitive_bitwidth >= 16,
        f"elements must be integers of 16, 32 or 64 bits, not {element}",
    )
    negative: constexpr = not isinstance(timeout_ns, core.tensor) and timeout_ns is not None and timeout_ns < 0
    core.static_assert(not negative, "timeout_ns must not be negative")
    limit = 0 if timeout_ns is None else core.to_tensor(timeout_ns).to(core.int64)
    start = 0 if timeout_ns is None else nanoseconds()
    expected = core.broadcast_to(core.to_tensor(expected_value).to(element), pointer.shape)
    found = core.atomic_load(pointer, None, sem, scope) == expected
    while not _everywhere(found) and (timeout_ns is None or nanoseconds() - start < limit):
        found |= core.atomic_load(pointer, ~found, sem, scope) == expected
    if len(pointer.shape) > 0 and sem != "relaxed":
        core.debug_barrier()  # each thread acquired for itself
    return found
