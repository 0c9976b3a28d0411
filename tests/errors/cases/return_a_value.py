"""A kernel that returns its result."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def total(x, N: tl.constexpr):
    return tl.sum(tl.load(x + tl.arange(0, N)))


total[(1,)](np.zeros(8), 8)
