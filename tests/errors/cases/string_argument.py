"""A string for a parameter that is no tl.constexpr."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def fill(x, mode, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 1 if mode == "one" else 0)


fill[(1,)](np.zeros(4), "one", 4)
