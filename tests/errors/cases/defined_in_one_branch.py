"""A variable that exists only if a branch was taken."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def choose(x, n):
    if n > 3:
        y = 1.0
    tl.store(x, y)


choose[(1,)](np.zeros(8), 8)
