"""A number that the array's elements do not hold."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def mark(flags_ptr, n):
    i = tl.arange(0, 16)
    everything = 1 << 40
    tl.store(flags_ptr + i, everything, mask=i < n)


mark[(1,)](np.zeros(16, np.int32), 16)
