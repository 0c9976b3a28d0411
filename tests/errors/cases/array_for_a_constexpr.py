"""An array for a compile-time parameter."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x: tl.constexpr, n):
    tl.store(x + tl.arange(0, 8), 0, mask=tl.arange(0, 8) < n)


clear[(1,)](np.zeros(8), 8)
