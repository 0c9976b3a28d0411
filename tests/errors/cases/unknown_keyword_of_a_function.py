"""A keyword that a language function does not have."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i, masked=i < n))


copy[(1,)](np.zeros(8), np.zeros(8), 8, 8)
