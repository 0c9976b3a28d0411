"""A requirement that the kernel states."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    tl.static_assert(N % 16 == 0, "N must be a multiple of 16")
    tl.store(x + tl.arange(0, N), 0)


clear[(1,)](np.zeros(8), 8)
