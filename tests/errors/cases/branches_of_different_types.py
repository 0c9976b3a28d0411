"""A variable with another type in each branch."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def choose(x, n, N: tl.constexpr):
    if n > 3:
        y = tl.zeros((N,), tl.float32)
    else:
        y = 0
    tl.store(x + tl.arange(0, N), y)


choose[(1,)](np.zeros(8), 8, 8)
