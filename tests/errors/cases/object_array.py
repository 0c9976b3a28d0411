"""An array of Python objects, which NumPy makes of ragged lists and the like."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)


clear[(1,)](np.array([1, None, "a"]), 3)
