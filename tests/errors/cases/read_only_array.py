"""A store to an array that must not be written."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)


x = np.zeros(8)
x.flags.writeable = False
clear[(1,)](x, 8)
