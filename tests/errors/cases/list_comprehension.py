"""A comprehension over run-time values."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def collect(x, n):
    tl.store(x, sum([tl.load(x + k) for k in range(n)]))


collect[(1,)](np.zeros(32), 8)
