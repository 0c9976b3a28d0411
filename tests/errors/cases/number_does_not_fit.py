"""A literal that the tile's dtype cannot hold."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def add(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) + 1000)


add[(1,)](np.zeros(8, np.int8), 8)
