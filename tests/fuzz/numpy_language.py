"""Kernels' texts run as programs in Python, on NumPy: what tests/fuzz/loops.py and flow.py compare with.

There is what those two write. Integers wrap as in a kernel; floats have to be whole and small, so that rounding has
nothing to do.
"""

from types import SimpleNamespace

import numpy as np
from harness import DTYPES


class Pointer:
    """Into an array of one axis: at one element, or at a tile of them."""

    def __init__(self, values, place=0):
        self.values, self.place = values, place

    def __add__(self, offsets):
        return Pointer(self.values, self.place + offsets)


class Language:
    """`tl` for one program of the grid."""

    constexpr = int
    arange, zeros, full = map(staticmethod, (np.arange, np.zeros, np.full))
    minimum, maximum, where, exp2, floor = map(staticmethod, (np.minimum, np.maximum, np.where, np.exp2, np.floor))
    trans, flip, reshape, max, min = map(staticmethod, (np.transpose, np.flip, np.reshape, np.max, np.min))

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

    def load(self, pointer, mask=True, other=0):
        values = pointer.values[np.where(mask, pointer.place, 0)]
        return np.where(mask, values, values.dtype.type(other))[()]

    def store(self, pointer, value):
        pointer.values[pointer.place] = value

    def sum(self, x, axis=None):
        return x.sum(axis, dtype=x.dtype)

    def cumsum(self, x, axis):
        return np.cumsum(x, axis, dtype=x.dtype)

    def dot(self, x, y, acc=0, input_precision=None, out_dtype=None):
        dtype = np.int32 if x.dtype == np.int8 else np.float32
        return x.astype(dtype) @ y.astype(dtype) + acc


def run(source, arrays, arguments, programs):
    """Name -> values of each array after a launch of the source's `kernel`, whose first parameters the arrays are."""
    values = {name: array.values.copy() for name, array in arrays.items()}
    code = compile(source, "<kernel>", "exec")
    for program in range(programs):
        space = {"tl": Language(program), "triton": SimpleNamespace(jit=lambda function: function)}
        exec(code, space)
        with np.errstate(over="ignore"):
            space["kernel"](*map(Pointer, values.values()), *arguments)
    return values


def outcomes(launch, targets, begin):
    """Yields whether each target gives what NumPy does, or what differs."""
    expected = run(launch.source, launch.arrays, launch.arguments, launch.grid)
    yield from launch.outcomes(expected, targets, begin)
