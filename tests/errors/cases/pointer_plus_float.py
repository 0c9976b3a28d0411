"""An offset that is a float."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, n, N: tl.constexpr):
    tl.store(x + n / 2 + tl.arange(0, N), 0)


clear[(1,)](np.zeros(8), 4, 4)
