"""A run-time value for a function's compile-time parameter."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)


@triton.jit
def compute(x, n):
    clear(x, n)


compute[(1,)](np.zeros(8), 8)
