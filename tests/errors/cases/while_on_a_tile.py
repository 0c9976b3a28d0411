"""A loop that would end at another time for each element."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def halve(x, N: tl.constexpr):
    i = tl.arange(0, N)
    y = tl.load(x + i)
    while y > 1:
        y = y / 2
    tl.store(x + i, y)


halve[(1,)](np.zeros(8), 8)
