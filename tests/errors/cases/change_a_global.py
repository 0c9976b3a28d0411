"""A kernel that counts in a global variable."""

import numpy as np

import triton
import triton.language as tl

count = 0


@triton.jit
def clear(x):
    global count
    count += 1
    tl.store(x, 0)


clear[(1,)](np.zeros(8))
