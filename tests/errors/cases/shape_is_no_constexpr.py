"""A shape from a run-time value."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, n):
    tl.store(x + tl.arange(0, 8), tl.zeros((n,), tl.float32))


clear[(1,)](np.zeros(8), 8)
