"""An array parameter used like an array: it is a pointer."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def double(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, x[i] * 2)


double[(1,)](np.zeros(8), 8)
