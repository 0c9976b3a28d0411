"""Kernels' texts run as programs in Python, on NumPy: what tests/fuzz/loops.py and flow.py compare with.

There is what those two write. Integers wrap as in a kernel; floats have to be whole and small, so that rounding has
nothing to do.
"""

from functools import partialmethod
from types import SimpleNamespace

import numpy as np
from harness import DTYPES


class Pointer:
    """Into an array of one axis: at one element, or at a tile of them."""

    def __init__(self, values, place=0):
        self.values, self.place = values, place

    def __add__(self, offsets):
        return Pointer(self.values, self.place + offsets)


class Window:
    """A block pointer, and a descriptor, which is one at the first element."""

    def __init__(self, base, shape, strides, offsets, block, order=None):
        self.base, self.shape, self.strides, self.offsets, self.block = base, shape, strides, offsets, block

    def moved(self, offsets):
        there = [old + new for old, new in zip(self.offsets, offsets, strict=True)]
        return Window(self.base, self.shape, self.strides, there, self.block)

    def elements(self):
        """A pointer to them, and which are in the array."""
        place, inside = self.base.place, True
        for axis, extent in enumerate(self.block):
            index = self.offsets[axis] + np.arange(extent).reshape(
                [-1 if k == axis else 1 for k in range(len(self.block))]
            )
            place, inside = place + index * self.strides[axis], inside & (index >= 0) & (index < self.shape[axis])
        return Pointer(self.base.values, place), inside

    def load(self, offsets=None):
        pointer, inside = (self.moved(offsets) if offsets else self).elements()
        values = pointer.values[np.where(inside, pointer.place, 0)]
        return np.where(inside, values, values.dtype.type(0))

    def store(self, offsets, value):
        pointer, inside = (self.moved(offsets) if offsets else self).elements()
        pointer.values[pointer.place[inside]] = np.broadcast_to(value, inside.shape)[inside]


class Language:
    """`tl` for one program of the grid."""

    constexpr = int
    arange, zeros, full = map(staticmethod, (np.arange, np.zeros, np.full))
    minimum, maximum, where, exp2, floor = map(staticmethod, (np.minimum, np.maximum, np.where, np.exp2, np.floor))
    trans, flip, reshape, max, min = map(staticmethod, (np.transpose, np.flip, np.reshape, np.max, np.min))
    permute = staticmethod(np.transpose)

    def __init__(self, program):
        self.program = program

    def __getattr__(self, name):
        return DTYPES[name].values

    def range(self, *bounds, num_stages=None):
        return range(*bounds)

    def program_id(self, axis):
        return np.int32(self.program)

    def cast(self, x, dtype):
        return np.asarray(x).astype(dtype)[()]

    def make_block_ptr(self, base, shape, strides, offsets, block_shape, order):
        return Window(base, shape, strides, offsets, block_shape)

    def make_tensor_descriptor(self, base, shape, strides, block_shape):
        return Window(base, shape, strides, [0] * len(shape), block_shape)

    def advance(self, window, offsets):
        return window.moved(offsets)

    def load(self, pointer, mask=True, other=0, boundary_check=None, padding_option=None):
        if isinstance(pointer, Window):
            return pointer.load()
        values = pointer.values[np.where(mask, pointer.place, 0)]
        return np.where(mask, values, values.dtype.type(other))[()]

    def store(self, pointer, value, mask=True, boundary_check=None):
        if isinstance(pointer, Window):
            return pointer.store(None, value)
        place, value, mask = np.broadcast_arrays(pointer.place, value, mask)
        pointer.values[place[mask]] = value[mask]

    def _atomic(self, function, pointer, value, mask=True):
        """What it gives is right where each element has a place of its own."""
        place, value, mask = np.broadcast_arrays(pointer.place, value, mask)
        old = pointer.values[place]
        function.at(pointer.values, place[mask], value[mask])
        return old

    atomic_add = partialmethod(_atomic, np.add)
    atomic_max = partialmethod(_atomic, np.maximum)
    atomic_min = partialmethod(_atomic, np.minimum)

    def gather(self, x, index, axis):
        return np.take_along_axis(x, index, axis)

    def sort(self, x, dim=None, descending=False):
        x = np.sort(x, -1)
        return x[..., ::-1] if descending else x

    def argmax(self, x, axis):
        return x.argmax(axis).astype(np.int32)

    def argmin(self, x, axis):
        return x.argmin(axis).astype(np.int32)

    def join(self, x, y):
        return np.stack([x, y], -1)

    def split(self, x):
        return x[..., 0], x[..., 1]

    def interleave(self, x, y):
        return np.stack([x, y], -1).reshape(*x.shape[:-1], 2 * x.shape[-1])

    def associative_scan(self, tiles, axis, combine, reverse=False):
        """One element after the other."""
        tiles = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in tiles]
        found = [tuple(x[0] for x in tiles)]
        for k in range(1, len(tiles[0])):
            found.append(combine(*found[-1], *(x[k] for x in tiles)))
        results = [np.moveaxis(np.stack(x), 0, axis) for x in zip(*found, strict=True)]
        return tuple(np.flip(x, axis) if reverse else x for x in results)

    def reduce(self, tiles, axis, combine):
        return tuple(np.take(x, -1, axis) for x in self.associative_scan(tiles, axis, combine))

    def debug_barrier(self):
        pass

    def histogram(self, x, bins):
        return np.bincount(x.ravel(), minlength=bins).astype(np.int32)

    def sum(self, x, axis=None):
        return x.sum(axis, dtype=x.dtype)

    def cumsum(self, x, axis):
        return np.cumsum(x, axis, dtype=x.dtype)

    def dot(self, x, y, acc=0, input_precision=None, out_dtype=None):
        dtype = np.int32 if x.dtype == np.int8 else np.float32
        return x.astype(dtype) @ y.astype(dtype) + acc


def jit(function=None, noinline=False):
    return function or jit


def run(source, arrays, arguments, programs):
    """Name -> values of each array after a launch of the source's `kernel`, whose first parameters the arrays are."""
    values = {name: array.values.copy() for name, array in arrays.items()}
    code = compile(source, "<kernel>", "exec")
    for program in range(programs):
        space = {"tl": Language(program), "triton": SimpleNamespace(jit=jit)}
        exec(code, space)
        with np.errstate(over="ignore"):
            space["kernel"](*map(Pointer, values.values()), *arguments)
    return values


def outcomes(launch, targets, begin):
    """Yields whether each target gives what NumPy does, or what differs."""
    expected = run(launch.source, launch.arrays, launch.arguments, launch.grid)
    yield from launch.outcomes(expected, targets, begin)
