"""A name that is misspelt."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def scale(x, factor, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * factr)


scale[(1,)](np.zeros(8), 2, 8)
