"""A condition with a value for each element."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def relu(x, N: tl.constexpr):
    i = tl.arange(0, N)
    y = tl.load(x + i)
    if y < 0:
        y = 0.0
    tl.store(x + i, y)


relu[(1,)](np.zeros(8), 8)
