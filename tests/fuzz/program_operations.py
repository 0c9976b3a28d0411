"""Steps of a random program that need more than one line: control flow, calls, memory, combine functions."""

import numpy as np
from generate import Reference
from harness import DTYPES, INTS, offsets
from operations import combine, convert, is_exact_int, is_number
from tile_operations import dimension, is_sortable, is_tile, moved

TRIPLE, TWICE = 3, 2


def literal(value, x):
    return Reference(np.asarray(value).astype(x.values.dtype), x.dtype)


def times(x, factor):
    return combine("*", x, literal(factor, x), x.dtype)


def is_scalar_int(x):
    return x.exact and x.shape == () and x.dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16")


def small_count(value):
    return int(value.values) & 3


def run_time_loop(g):
    """As many iterations as a value says."""
    i, n = g.find(is_number), g.find(is_scalar_int)
    if i is None or n is None:
        return

    def compute(_, x, n):
        value = x
        for _ in range(small_count(n)):
            value = combine("+", value, x, x.dtype)
        return value

    loop = g.pick(["for k in range({1} & 3):", "for k in tl.range(0, {1} & 3):", "for k in range({1} & 3, 0, -1):"])
    g.add(f"{{out}} = {{0}}\n{loop}\n    {{out}} = {{out}} + {{0}}", [i, n], compute)


def while_loop(g):
    i, n = g.find(is_number), g.find(is_scalar_int)
    if i is None or n is None:
        return
    code = "{out} = {0}\nleft = ({1} & 3).to(tl.int32)\nwhile left > 0:\n    {out} = {out} + {out}\n    left -= 1"

    def compute(_, x, n):
        for _ in range(small_count(n)):
            x = combine("+", x, x, x.dtype)
        return x

    g.add(code, [i, n], compute)


def nested_loops(g):
    """An integer counted through two loops with continue, break and branches, used once."""
    i, n = g.find(is_exact_int), g.find(is_scalar_int)
    if i is None or n is None:
        return
    outer, skip, stop = g.integer(1, 5), g.integer(0, 4), g.integer(2, 9)
    code = f"""total = 0
for a in range({outer}):
    if a == {skip}:
        continue
    for b in range(a, {stop}):
        if b * a > ({{1}} & 3):
            break
        if b % 2 == 0:
            total += a + b
        else:
            total -= 1
{{out}} = {{0}} + total.to({{0}}.dtype)"""

    def compute(_, x, n):
        total, limit = 0, small_count(n)
        for a in range(outer):
            if a == skip:
                continue
            for b in range(a, stop):
                if b * a > limit:
                    break
                total += a + b if b % 2 == 0 else -1
        return Reference(x.values + np.asarray(total).astype(x.values.dtype), x.dtype)

    g.add(code, [i, n], compute)


def branches_in_a_loop(g):
    """Two values of one type that change places."""
    i = g.find(is_number)
    j = None if i is None else g.find(lambda y: y.dtype == g.values[i].dtype and y.shape == g.values[i].shape)
    n = g.find(is_scalar_int)
    if j is None or n is None:
        return
    code = """p, q = {0}, {1}
for k in range(3):
    if k < ({2} & 3):
        p, q = q, p
    else:
        p = q
{out} = p"""

    def compute(_, x, y, n):
        for k in range(3):
            x, y = (y, x) if k < small_count(n) else (y, y)
        return x

    g.add(code, [i, j, n], compute)


def call(g):
    i = g.find(is_number)
    if i is None:
        return
    kind = g.integer(0, 3)
    if kind == 0:
        g.add("tripled({0})", [i], lambda _, x: times(x, 3))
    elif kind == 1:
        g.add("tripled(x={0}, n=2, less=True)", [i], lambda _, x: combine("-", times(x, 2), x, x.dtype))
    else:
        count = g.integer(0, 3)

        def compute(_, x):
            for _ in range(count):
                x = times(x, 2)
            return x

        g.add(f"apart({{0}}, {count})", [i], compute)


def run_time_index(g):
    i, n = g.find(is_tile), g.find(is_scalar_int)
    if i is not None and n is not None:
        extent = g.values[i].shape[0]

        def compute(_, x, n):
            return moved(lambda values: np.asarray(values[small_count(n) % extent]))(None, x)

        g.add(f"{{0}}[({{1}} & 3).to(tl.int32) % {extent}]", [i, n], compute)


def running_maximum(g):
    i = g.find(lambda x: is_tile(x) and x.number)
    if i is None:
        return
    axis, _ = dimension(g, g.values[i])
    reverse = g.chance(0.5)

    def prefix(function, values):
        values = np.flip(values, axis) if reverse else values
        result = function.accumulate(values, axis)
        return np.flip(result, axis) if reverse else result

    def compute(_, x):
        error = None if x.exact else prefix(np.maximum, x.error)
        return Reference(prefix(np.fmax, x.values), x.dtype, error)

    g.add(f"tl.associative_scan({{0}}, {axis}, larger, reverse={reverse})", [i], compute)


def affine_scan(g):
    """A combination that does not commute, on integers that wrap."""
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in INTS)
    j = None if i is None else g.find(lambda y: y.dtype == g.values[i].dtype and y.shape == g.values[i].shape)
    if j is None:
        return
    axis, _ = dimension(g, g.values[i])

    def compute(_, x, y):
        a, b = np.moveaxis(x.values, axis, 0), np.moveaxis(y.values, axis, 0)
        state = np.zeros_like(b[0])
        result = np.empty_like(b)
        for k in range(len(a)):
            state = state * a[k] + b[k]
            result[k] = state
        return Reference(np.moveaxis(result, 0, axis).copy(), x.dtype)

    g.add(f"_, {{out}} = tl.associative_scan(({{0}}, {{1}}), {axis}, affine)", [i, j], compute)


def reduce_two(g):
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in INTS)
    j = None if i is None else g.find(lambda y: y.exact and y.number and y.shape == g.values[i].shape)
    if j is None:
        return
    axis, spelled = dimension(g, g.values[i])
    if g.chance(0.5):

        def compute(_, x, y):
            return Reference(np.asarray(x.values.sum(axis, dtype=x.values.dtype)), x.dtype)

        g.add(f"{{out}}, _ = tl.reduce(({{0}}, {{1}}), {spelled}, total_and_least)", [i, j], compute)
    else:

        def compute(_, x, y):
            return Reference(np.asarray(np.fmin.reduce(y.values, axis)), y.dtype)

        g.add(f"_, {{out}} = tl.reduce(({{0}}, {{1}}), {spelled}, total_and_least)", [i, j], compute)


def histogram(g):
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in ("int32", "int64", "uint8", "uint32"))
    if i is not None:
        bins = g.pick([1, 2, 7, 16, 100])

        def compute(_, x):
            place = x.values.ravel() & x.values.dtype.type(15)
            counts = np.bincount(place[place < bins].astype(np.int64), minlength=bins)
            return Reference(counts.astype(np.int32), "int32")

        g.add(f"tl.histogram(tl.ravel({{0}} & 15), {bins})", [i], compute)


def top(g):
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in INTS and is_sortable(x))
    if i is not None:
        k = g.integer(1, g.values[i].shape[-1] + 1)
        g.add(f"tl.topk({{0}}, {k})", [i], moved(lambda x: np.sort(x)[..., ::-1][..., :k]))


# ---- memory of its own ------------------------------------------------------------------------------------------


def has_memory(x):
    return DTYPES[x.dtype].numpy is not None


def through_memory(g):
    """Stored, and loaded again in another order or with a mask."""
    i = g.find(lambda x: is_tile(x) and has_memory(x))
    if i is None:
        return
    shape, dtype = g.values[i].shape, g.values[i].dtype
    size = int(np.prod(shape))
    store = f"tl.store({{memory}} + ({offsets(shape)}), {{0}})\ntl.debug_barrier()\n"
    kind = g.integer(0, 3)
    if kind == 0:
        code = f"{{out}} = tl.load({{memory}} + ({size - 1} - tl.arange(0, {size})))"
        g.add(store + code, [i], moved(lambda x: x.ravel()[::-1]), (dtype, size))
    elif kind == 1:
        step = g.pick([1, 2, 3])
        code = f"{{out}} = tl.load({{memory}} + tl.arange(0, {-(-size // step)}) * {step})"
        g.add(store + code, [i], moved(lambda x: x.ravel()[::step]), (dtype, size))
    else:
        count = g.integer(0, size + 1)
        code = f"{{out}} = tl.load({{memory}} + tl.arange(0, {size}), mask=tl.arange(0, {size}) < {count}, other=1)"

        def masked(x):
            return np.where(np.arange(size) < count, x.ravel(), x.dtype.type(x.dtype == x.dtype))

        if g.values[i].exact:
            g.add(store + code, [i], moved(masked), (dtype, size))


def masked_store(g):
    """What a mask leaves out stays zero."""
    c = g.find(lambda x: x.dtype == "int1" and is_tile(x))
    i = None if c is None else g.find(lambda y: y.shape == g.values[c].shape and y.exact and has_memory(y))
    if i is None:
        return
    shape, dtype = g.values[i].shape, g.values[i].dtype
    place = f"{{memory}} + ({offsets(shape)})"
    code = f"tl.store({place}, {{1}}, mask={{0}})\ntl.debug_barrier()\n{{out}} = tl.load({place})"

    def compute(_, mask, x):
        return Reference(np.where(mask.values, x.values, x.values.dtype.type(0)), x.dtype)

    g.add(code, [c, i], compute, (dtype, int(np.prod(shape))))


def atomic_sums(g):
    """Scattered sums of integers."""
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in ("int32", "int64", "uint32", "uint64"))
    j = None if i is None else g.find(lambda y: y.exact and y.dtype in INTS[:4] and y.shape == g.values[i].shape)
    if j is None:
        return
    dtype, bins = g.values[i].dtype, g.pick([1, 5, 16])
    place = f"((({{1}}.to(tl.int64) % {bins}) + {bins}) % {bins})"
    code = f"tl.atomic_add({{memory}} + {place}, {{0}})\ntl.debug_barrier()\n"
    code += f"{{out}} = tl.load({{memory}} + tl.arange(0, {bins}))"

    def compute(_, x, y):
        sums = np.zeros(bins, x.values.dtype)
        np.add.at(sums, y.values.astype(np.int64).ravel() % bins, x.values.ravel())
        return Reference(sums, dtype)

    g.add(code, [i, j], compute, (dtype, bins))


def to_another_type(g):
    """A store converts."""
    i = g.find(lambda x: is_tile(x) and x.exact and x.dtype in INTS)
    if i is not None:
        dtype = g.pick([*INTS, "float32", "float64"])
        shape = g.values[i].shape
        place = f"{{memory}} + ({offsets(shape)})"
        code = f"tl.store({place}, {{0}})\ntl.debug_barrier()\n{{out}} = tl.load({place})"
        g.add(code, [i], lambda _, x: convert(x, dtype), (dtype, int(np.prod(shape))))


OPERATIONS = [run_time_loop, while_loop, nested_loops, branches_in_a_loop, call, run_time_index, running_maximum]
OPERATIONS += [affine_scan, reduce_two, histogram, top, through_memory, masked_store, atomic_sums, to_another_type]
