"""An assignment to elements of a tile."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    i = tl.arange(0, N)
    y = tl.load(x + i)
    y[0] = 0
    tl.store(x + i, y)


clear[(1,)](np.zeros(8), 8)
