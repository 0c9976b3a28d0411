"""A remainder of signed and unsigned integers."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def kernel(x, y):
    tl.store(x, tl.load(x) % tl.load(y))


kernel[(1,)](np.zeros(8, np.int32), np.zeros(8, np.uint32))
