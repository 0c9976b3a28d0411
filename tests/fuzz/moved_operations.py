"""Steps of a random program that combine several tiles of one shape, each of which was moved about before: padding of
tiles lies elsewhere after every move, and must not get into a result."""

from dataclasses import replace

import numpy as np
from generate import Reference, rounded
from harness import DTYPES, offsets
from operations import is_exact_int
from tile_operations import dimension, is_sortable, is_tile, moved

# ---- a tile of the same shape -----------------------------------------------------------------------------------


def add_moved(g, code, i, function):
    """The index of a value with the elements of another in other places, if it could be added."""
    before = len(g.values)
    g.add(code, [i], moved(function))
    return len(g.values) - 1 if len(g.values) > before else None


def flipped(g, i):
    axis, spelled = dimension(g, g.values[i])
    return add_moved(g, f"tl.flip({{0}}, {spelled})", i, lambda x: np.flip(x, axis))


def sorted_rows(g, i):
    if g.values[i].kind == "float" or not is_sortable(g.values[i]):
        return flipped(g, i)
    if g.chance(0.5):
        return add_moved(g, "tl.sort({0})", i, lambda x: np.sort(x))
    return add_moved(g, "tl.sort({0}, descending=True)", i, lambda x: np.sort(x)[..., ::-1])


def rotated(g, i):
    """Two slices, the second in front of the first."""
    shape, size = g.values[i].shape, g.values[i].values.size
    if size < 2:
        return flipped(g, i)
    k = g.integer(1, size)
    code = f"flat = tl.ravel({{0}})\n{{out}} = tl.reshape(tl.cat(flat[{k}:], flat[:{k}]), {shape})"
    return add_moved(g, code, i, lambda x: np.roll(x.ravel(), -k).reshape(shape))


def transposed(g, i):
    """In the order of a permutation, written into the old shape."""
    shape = g.values[i].shape
    order = tuple(int(k) for k in g.random.permutation(len(shape)))
    code = f"tl.reshape(tl.permute({{0}}, {order}), {shape})"
    return add_moved(g, code, i, lambda x: np.transpose(x, order).reshape(shape))


def crossed(g, i):
    """Through a matrix of another shape and its transpose."""
    shape, size = g.values[i].shape, g.values[i].values.size
    rows = g.pick([d for d in range(1, size + 1) if size % d == 0])
    code = f"tl.reshape(tl.trans(tl.reshape({{0}}, ({rows}, {size // rows}))), {shape})"
    return add_moved(g, code, i, lambda x: x.reshape(rows, -1).T.reshape(shape))


def interleaved(g, i):
    """Every second element of the tile joined with itself turned over, from the start or the middle."""
    shape, extent = g.values[i].shape, g.values[i].shape[-1]
    axis = len(shape) - 1
    start = g.integer(0, extent + 1)
    place = ", ".join([":"] * axis + [f"{start}:{start + extent}"])
    code = f"{{out}} = tl.interleave({{0}}, tl.flip({{0}}, {axis}))[{place}]"

    def function(x):
        both = np.stack([x, np.flip(x, axis)], -1).reshape(*shape[:-1], -1)
        return both[..., start : start + extent]

    return add_moved(g, code, i, function)


def gathered(g, i):
    """Looked up in another order along an axis."""
    shape = g.values[i].shape
    axis = g.integer(0, len(shape))
    step, extent = g.pick([1, 3, 5, 7]), shape[axis]
    place = "[" + ", ".join(":" if k == axis else "None" for k in range(len(shape))) + "]"
    index = f"tl.broadcast_to(((tl.arange(0, {extent}) * {step} + 1) % {extent}){place}, {shape})"
    rows = (np.arange(extent) * step + 1) % extent
    return add_moved(g, f"tl.gather({{0}}, {index}, {axis})", i, lambda x: np.take(x, rows, axis))


def picked_half(g, i):
    """A row of two of the tile joined with itself, split again."""
    return add_moved(g, "tl.split(tl.join({0}, {0}))[1]", i, lambda x: x) if len(g.values[i].shape) < 4 else i


MOVES = [flipped, flipped, sorted_rows, rotated, transposed, crossed, interleaved, gathered, picked_half]


def moved_about(g, i):
    """Another tile of the same shape and dtype, after up to three moves."""
    for _ in range(g.integer(0, 4)):
        result = g.pick(MOVES)(g, i)
        i = i if result is None else result
    return i


def several(g, test, count, alike=False):
    """Indices of tiles of one shape (and, if they are to be alike, one dtype), each moved about by itself, or None."""
    i = g.find(lambda x: is_tile(x) and test(x))
    if i is None:
        return None
    first = g.values[i]
    others = [
        g.find(lambda y: y.shape == first.shape and test(y) and (y.dtype == first.dtype or not alike))
        for _ in range(count - 1)
    ]
    return [moved_about(g, k) for k in [i, *others]]


# ---- what combines them --------------------------------------------------------------------------------------------


# name in HELPERS -> operands, does it commute, the function of NumPy arrays of the operands' dtypes
COMBINATIONS = {
    "affine": (2, False, lambda a, b, c, d: (a * c, b * c + d)),
    "sum_and_bits": (2, True, lambda a, b, c, d: (a + c, b | d)),
    "total_and_least": (2, True, lambda a, b, c, d: (a + c, np.minimum(b, d))),
    "last_odd": (2, False, lambda a, b, c, d: (np.where(d & 1, c, a), b | d)),
    "sum_most_bits": (3, True, lambda a, b, c, d, e, f: (a + d, np.maximum(b, e), c ^ f)),
}


def in_order(function, operands, axis, reverse):
    """Prefixes along the first axis of the results, as tuples of arrays without the scanned axis."""
    rows = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in operands]
    prefixes = [tuple(row[0] for row in rows)]
    for k in range(1, len(rows[0])):
        combined = function(*prefixes[-1], *(row[k] for row in rows))
        prefixes.append(tuple(np.asarray(c).astype(row.dtype) for c, row in zip(combined, rows, strict=True)))
    return prefixes


def combine_several(g, name, spelling, compute_all):
    """A reduction or scan by one of COMBINATIONS, of which one result is kept.

    spelling      code, with {operands} and {axis}
    compute_all   from arrays and the axis to all results
    """
    count = COMBINATIONS[name][0]
    operands = several(g, is_wide_int, count, alike=name == "affine")
    if operands is None:
        return
    axis, spelled = dimension(g, g.values[operands[0]])
    kept = g.integer(0, count)

    def compute(_, *values):
        return Reference(np.asarray(compute_all([x.values for x in values], axis)[kept]), values[kept].dtype)

    names = ", ".join("{out}" if k == kept else "_" for k in range(count))
    places = ", ".join(f"{{{k}}}" for k in range(count))
    g.add(f"{names} = {spelling.format(operands=f'({places})', axis=spelled, name=name)}", operands, compute)


def is_wide_int(x):
    return is_exact_int(x) and DTYPES[x.dtype].bits >= 32


def scan_several(g):
    name, reverse = g.pick(list(COMBINATIONS)), g.chance(0.6)

    def scanned(operands, axis):
        prefixes = in_order(COMBINATIONS[name][2], operands, axis, reverse)
        results = [np.moveaxis(np.array(rows), 0, axis) for rows in zip(*prefixes, strict=True)]
        return [np.flip(x, axis) for x in results] if reverse else results

    combine_several(g, name, f"tl.associative_scan({{operands}}, {{axis}}, {{name}}, reverse={reverse})", scanned)


def reduce_several(g):
    name = g.pick([name for name, (_, commutes, _) in COMBINATIONS.items() if commutes])

    def reduced(operands, axis):
        return in_order(COMBINATIONS[name][2], operands, axis, reverse=False)[-1]

    combine_several(g, name, "tl.reduce({operands}, {axis}, {name})", reduced)


def small_product(g):
    """Of matrices of small integers as floats, which loses nothing."""
    operands = several(g, lambda x: len(x.shape) == 2 and is_exact_int(x) and x.values.size <= 2048, 2)
    if operands is None:
        return
    dtype = g.pick(["float16", "float32", "bfloat16"])
    cast = f".to(tl.{dtype})"

    def compute(_, x, y):
        x, y = [(v.values & v.values.dtype.type(7)).astype(np.float64) for v in (x, y)]
        return replace(rounded(x @ y.T, "float32", 0.0), terms=x.shape[1])  # what is added later may come first

    code = f'tl.dot(({{0}} & 7){cast}, tl.trans(({{1}} & 7){cast}), input_precision="ieee")'
    g.add(code, operands, compute)


def stored_where(g):
    """Stored where another tile says, over a third."""
    operands = several(g, is_exact_int, 3, alike=True)
    if operands is None:
        return
    shape, dtype = g.values[operands[0]].shape, g.values[operands[0]].dtype
    place = f"{{memory}} + ({offsets(shape)})"
    code = f"tl.store({place}, {{2}})\ntl.debug_barrier()\n"
    code += f"tl.store({place}, {{0}}, mask=({{1}} & 1) == 1)\ntl.debug_barrier()\n{{out}} = tl.load({place})"

    def compute(_, x, mask, under):
        return Reference(np.where(mask.values & mask.values.dtype.type(1), x.values, under.values), dtype)

    g.add(code, operands, compute, (dtype, int(np.prod(shape))))


def counted(g):
    """A histogram of the elements that another tile chooses."""
    operands = several(g, lambda x: is_exact_int(x) and x.dtype in ("int32", "int64", "uint32"), 2)
    if operands is None:
        return
    bins, low = g.pick([3, 8, 16]), g.pick([1, 3, 7, 31])

    def compute(_, x, mask):
        chosen = (x.values & x.values.dtype.type(low))[mask.values & mask.values.dtype.type(1) == 1]
        return Reference(np.bincount(chosen.astype(np.int64), minlength=32)[:bins].astype(np.int32), "int32")

    g.add(f"tl.histogram(tl.ravel({{0}} & {low}), {bins}, mask=tl.ravel(({{1}} & 1) == 1))", operands, compute)


def added_atomically(g):
    """One tile's elements added where another's say; and what each found, added up."""
    operands = several(g, lambda x: is_exact_int(x) and x.dtype in ("int32", "int64", "uint32", "uint64"), 2)
    if operands is None:
        return
    dtype, bins = g.values[operands[0]].dtype, g.pick([1, 5, 16])
    place = f"((({{1}}.to(tl.int64) % {bins}) + {bins}) % {bins})"
    if DTYPES[g.values[operands[1]].dtype].kind == "uint":
        place = f"({{1}} % {bins}).to(tl.int64)"
    code = f"tl.atomic_add({{memory}} + {place}, {{0}}, mask=({{0}} & 3) != 1)\ntl.debug_barrier()\n"
    code += f"{{out}} = tl.load({{memory}} + tl.arange(0, {bins}))"

    def compute(_, x, y):
        sums, chosen = np.zeros(bins, x.values.dtype), x.values & x.values.dtype.type(3) != 1
        rows = np.array([int(v) % bins for v in y.values[chosen].tolist()], np.int64)
        np.add.at(sums, rows, x.values[chosen])
        return Reference(sums, dtype)

    g.add(code, operands, compute, (dtype, bins))


def chosen_elements(g):
    """One of three, element by element, after each has been moved."""
    operands = several(g, is_exact_int, 3, alike=True)
    if operands is None:
        return

    def compute(_, x, y, z):
        return Reference(np.where(x.values > y.values, z.values, x.values ^ y.values), x.dtype)

    g.add("tl.where({0} > {1}, {2}, {0} ^ {1})", operands, compute)


OPERATIONS = 2 * [scan_several, scan_several, reduce_several, small_product, stored_where]
OPERATIONS += [counted, added_atomically, chosen_elements]
