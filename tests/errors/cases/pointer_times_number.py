"""Arithmetic on a pointer instead of what it points to."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def double(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, x * 2)


double[(1,)](np.zeros(8), 8)
