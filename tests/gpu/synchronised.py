"""Kernels that run on the simulator with one of their synchronisations left out."""

import contextlib

import numpy as np
from gpu_kernels import ir

from triton import _C

DTYPES = {"float32": "fp32", "float16": "fp16", "int32": "i32", "int64": "i64", "int8": "i8"}


def floats(*shape, dtype=np.float32):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def integers(*shape, low=0, high=100):
    return np.random.default_rng(shape).integers(low, high, shape, np.int32)


def entry(argument):
    """How a kernel is specialised for an argument."""
    if isinstance(argument, np.ndarray):
        return (f"*{DTYPES[str(argument.dtype)]}", 16)
    return ("i32", 16 if argument % 16 == 0 else 1) if isinstance(argument, int) else ("fp32", 1)


class Case:
    """A kernel with arguments, and what its arrays have to hold afterwards: `expected` by the argument's number."""

    def __init__(self, kernel, arguments, expected, grid=(1, 1, 1), within=1e-4, **constants):
        self.arguments, self.expected, self.grid, self.within = arguments, expected, grid, within
        self.text = ir(kernel, *map(entry, arguments), locations=True, **constants)

    @classmethod
    def of_text(cls, text, arguments, expected, grid, within=1e-4):
        """The same of tile IR that has been optimised."""
        case = cls.__new__(cls)
        case.text, case.arguments, case.expected, case.grid, case.within = text, arguments, expected, grid, within
        return case

    def run(self, warps, sm=90, left_out=0):
        """How many synchronisations there are; raises what the simulator reports, or AssertionError."""
        arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments]
        count = _C._simulate(self.text, arguments, self.grid, sm, warps, left_out)
        for i, wanted in self.expected.items():
            np.testing.assert_allclose(arguments[i], wanted, rtol=self.within, atol=self.within)
        return count

    def check_each(self, warps, sm, of_registers=0):
        """Leaves one after the other out, each of which somebody has to notice, but for so many waits for products that
        read registers which are written next: there the simulator has values."""
        count = self.run(warps, sm)
        unnoticed = []
        for left_out in range(1, count + 1):
            with contextlib.suppress(RuntimeError, AssertionError):
                self.run(warps, sm, left_out)
                unnoticed.append(left_out)
        assert len(unnoticed) == of_registers, (
            f"of {count} synchronisations nobody notices that these are missing: {unnoticed}"
        )
