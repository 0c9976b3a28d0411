"""Steps of a random program that move elements or combine them: shapes, reductions, scans, products, sorts."""

import math
from dataclasses import replace

import numpy as np
from generate import FLOATS, Reference, rounded
from harness import DTYPES, INTS, round_to, ulp


def is_tile(x):
    return len(x.shape) > 0


def moved(function):
    """A step that only moves elements: errors move with them."""

    def compute(_, *operands):
        values = function(*[x.values for x in operands])
        exact = all(x.exact for x in operands)
        error = None if exact else np.array(function(*[x.bound for x in operands]))
        return Reference(np.array(values), operands[0].dtype, error)

    return compute


def dimension(g, x):
    axis = g.integer(0, len(x.shape))
    return axis, axis - len(x.shape) if g.chance(0.3) else axis


def reshape(g):
    i = g.find()
    size = g.values[i].values.size
    shape, rest = [], size
    for _ in range(g.integer(0, 4)):
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        shape.append(g.pick(divisors))
        rest //= shape[-1]
    shape = tuple([*shape, rest])
    if is_tile(g.values[i]):
        g.add(f"tl.reshape({{0}}, {shape})", [i], moved(lambda x: x.reshape(shape)))


def permute(g):
    i = g.find(lambda x: len(x.shape) >= 2)
    if i is not None:
        order = tuple(int(k) for k in g.random.permutation(len(g.values[i].shape)))
        g.add(f"tl.permute({{0}}, {order})", [i], moved(lambda x: np.transpose(x, order)))


def new_axis(g):
    i = g.find(lambda x: 0 < len(x.shape) < 4)
    if i is not None:
        axis, spelled = g.integer(0, len(g.values[i].shape) + 1), ""
        spelled = ", ".join("None" if k == axis else ":" for k in range(len(g.values[i].shape) + 1))
        g.add(f"{{0}}[{spelled}]", [i], moved(lambda x: np.expand_dims(x, axis)))


def broadcast(g):
    i = g.find()
    shape = tuple(n if n != 1 else g.pick([1, 2, 3, 8]) for n in g.values[i].shape)
    shape = (g.pick([2, 3, 4]), *shape) if g.chance(0.5) and len(shape) < 4 else shape
    if math.prod(shape) <= 4096 and shape:
        g.add(f"tl.broadcast_to({{0}}, {shape})", [i], moved(lambda x: np.broadcast_to(x, shape)))


def flip(g):
    i = g.find(is_tile)
    if i is not None:
        axis, spelled = dimension(g, g.values[i])
        g.add(f"tl.flip({{0}}, {spelled})", [i], moved(lambda x: np.flip(x, axis)))


def subscript(g):
    i = g.find(is_tile)
    if i is None:
        return
    parts = []
    for extent in g.values[i].shape:
        kind = g.integer(0, 4)
        if kind == 0:
            parts.append(str(g.integer(-extent, extent)))
        elif kind == 1:
            start = g.integer(0, extent)
            parts.append(f"{start}:{g.integer(start + 1, extent + 1)}")
        elif kind == 2:
            parts.append(f"::{g.pick([1, 2, 3])}")
        else:
            parts.append(":")
    spelled = ", ".join(parts)
    g.add(f"{{0}}[{spelled}]", [i], moved(lambda x: np.asarray(eval(f"x[{spelled}]", {"x": x}))))


def join(g):
    i = g.find(lambda x: len(x.shape) < 4)
    j = None if i is None else g.find(lambda y: y.shape == g.values[i].shape and y.dtype == g.values[i].dtype)
    if j is not None:
        name = g.pick(["join", "interleave"])
        shape = (*g.values[i].shape[:-1], -1) if name == "interleave" and g.values[i].shape else None

        def joined(x, y):
            both = np.stack([x, y], -1)
            return both if shape is None else both.reshape(shape)

        g.add(f"tl.{name}({{0}}, {{1}})", [i, j], moved(joined))


def split(g):
    i = g.find(lambda x: x.shape[-1:] == (2,))
    if i is not None:
        half = g.integer(0, 2)
        g.add(f"tl.split({{0}})[{half}]", [i], moved(lambda x: np.asarray(x[..., half])))


def concatenate(g):
    i = g.find(lambda x: len(x.shape) == 1)
    j = None if i is None else g.find(lambda y: y.shape == g.values[i].shape and y.dtype == g.values[i].dtype)
    if j is not None:
        g.add("tl.cat({0}, {1})", [i, j], moved(lambda x, y: np.concatenate([x, y])))


def gather(g):
    i = g.find(is_tile)
    j = None if i is None else g.find(lambda y: is_index(y, g.values[i]))
    if j is None:
        return
    axis = next(k for k in range(len(g.values[i].shape)) if fits_along(g.values[j], g.values[i], k))
    extent = g.values[i].shape[axis]

    def compute(_, x, index):
        place = index.values.astype(np.int64) % extent
        error = None if x.exact else np.take_along_axis(x.error, place, axis)
        return Reference(np.take_along_axis(x.values, place, axis), x.dtype, error)

    wrapped = f"(({{1}}.to(tl.int64) % {extent} + {extent}) % {extent}).to(tl.int32)"
    g.add(f"tl.gather({{0}}, {wrapped}, {axis})", [i, j], compute)


def is_index(y, x):
    return y.exact and y.dtype in INTS[:7] and any(fits_along(y, x, axis) for axis in range(len(x.shape)))


def fits_along(y, x, axis):
    return len(y.shape) == len(x.shape) and all(
        a == b for k, (a, b) in enumerate(zip(y.shape, x.shape, strict=True)) if k != axis
    )


def is_sortable(x):
    """In reasonable time: a network of many registers is much code."""
    return x.shape[-1] <= 257 and x.values.size <= 1024


def sort(g):
    i = g.find(lambda x: is_tile(x) and x.exact and x.number and is_sortable(x))
    if i is not None:
        descending = g.chance(0.5)

        def ordered(x):
            result = np.sort(np.where(x == x, x, x.dtype.type(0)))
            return result[..., ::-1] if descending else result

        code = "tl.where({0} == {0}, {0}, 0)"
        g.add(f"tl.sort({code}, descending={descending})", [i], moved(ordered))


# ---- reductions and scans -----------------------------------------------------------------------------------------


def sum_dtype(dtype):
    if DTYPES[dtype].kind != "float":
        return dtype if DTYPES[dtype].bits >= 32 else {"int": "int32", "uint": "uint32"}[DTYPES[dtype].kind]
    return "float32" if dtype == "bfloat16" else dtype


def accumulate(function, x, dtype, count, axis):
    """A sum or prefix sum of `count` elements, in any order."""
    if x.kind != "float":
        return Reference(function(x.values.astype(DTYPES[dtype].numpy), axis).astype(DTYPES[dtype].numpy), dtype)
    result, magnitude = function(x.wide, axis), function(np.abs(x.wide), axis)
    inner = "float32" if DTYPES[dtype].bits == 16 else dtype
    return rounded(result, dtype, function(x.bound, axis) + sum_error(magnitude, inner, count))


def sum_error(magnitude, dtype, count):
    """Of a sum of so many terms in any order, whose absolute values add up to the magnitude."""
    overflows = ~np.isfinite(round_to(magnitude, dtype).values)
    return np.where(overflows, np.inf, count * ulp(magnitude, dtype))


def reduce_sum(g):
    i = g.find(lambda x: is_tile(x) and x.number)
    if i is None:
        return
    axis, spelled = dimension(g, g.values[i])
    keep = g.chance(0.3)
    axis = None if g.chance(0.2) else axis
    dtype, count = sum_dtype(g.values[i].dtype), g.values[i].values.size

    def compute(_, x):
        def total(values, axis):
            return np.asarray(values.sum(axis, keepdims=keep, dtype=values.dtype))

        return accumulate(total, x, dtype, count, axis)

    where = "None" if axis is None else spelled
    g.add(f"tl.sum({{0}}, axis={where}, keep_dims={keep})", [i], compute)


def reduce_extreme(g):
    i = g.find(lambda x: is_tile(x) and x.number)
    if i is None:
        return
    axis, spelled = dimension(g, g.values[i])
    name, dtype = g.pick(["max", "min"]), g.values[i].dtype
    function = {"max": np.fmax.reduce, "min": np.fmin.reduce}[name]

    def compute(_, x):
        error = None if x.exact else np.asarray(x.error.max(axis))
        return Reference(np.asarray(function(x.values, axis)), x.dtype, error)

    g.add(f"tl.{name}({{0}}, axis={spelled}).to(tl.{dtype})", [i], compute)


def reduce_place(g):
    i = g.find(lambda x: is_tile(x) and x.number and x.exact)
    if i is not None:
        axis, spelled = dimension(g, g.values[i])
        name = g.pick(["argmax", "argmin"])

        def compute(_, x):
            values = np.where(x.values == x.values, x.values, x.values.dtype.type(0))
            return Reference(np.asarray(getattr(values, name)(axis)).astype(np.int32), "int32")

        g.add(f"tl.{name}(tl.where({{0}} == {{0}}, {{0}}, 0), axis={spelled})", [i], compute)


def reduce_bits(g):
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in ("int32", "uint32", "int64", "uint64"))
    if i is not None:
        axis, spelled = dimension(g, g.values[i])

        def compute(_, x):
            return Reference(np.asarray(np.bitwise_xor.reduce(x.values, axis)), x.dtype)

        g.add(f"tl.xor_sum({{0}}, axis={spelled})", [i], compute)


def prefix_sum(g):
    i = g.find(lambda x: is_tile(x) and x.number)
    if i is None:
        return
    axis, _ = dimension(g, g.values[i])
    reverse, dtype, count = g.chance(0.4), sum_dtype(g.values[i].dtype), g.values[i].shape[axis]

    def compute(_, x):
        def prefix(values, axis):
            values = np.flip(values, axis) if reverse else values
            sums = np.cumsum(values, axis, dtype=values.dtype)
            return np.flip(sums, axis) if reverse else sums

        return accumulate(prefix, x, dtype, count, axis)

    g.add(f"tl.cumsum({{0}}, {axis}, reverse={reverse})", [i], compute)


def product(g):
    """A matrix times a transposed one."""
    i = g.find(lambda x: len(x.shape) == 2 and x.dtype in FLOATS and x.exact)
    j = None if i is None else g.find(lambda y: fits_product(y, g.values[i]))
    if j is None:
        return
    dtype = "float64" if g.values[i].dtype == "float64" else "float32"

    def compute(_, x, y):
        result, magnitude = x.wide @ y.wide.T, np.abs(x.wide) @ np.abs(y.wide.T)
        return replace(rounded(result, dtype, sum_error(magnitude, dtype, x.shape[1])), terms=x.shape[1])

    g.add('tl.dot({0}, tl.trans({1}), input_precision="ieee")', [i, j], compute)


def fits_product(y, x):
    return len(y.shape) == 2 and y.exact and y.dtype == x.dtype and y.shape[1] == x.shape[1]


OPERATIONS = [reshape, permute, new_axis, broadcast, flip, subscript, join, split, concatenate, gather, sort]
OPERATIONS += [reduce_sum, reduce_sum, reduce_extreme, reduce_extreme, reduce_place, reduce_bits, prefix_sum, product]
