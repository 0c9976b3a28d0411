"""Two tiles that do not fit."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def add(x, N: tl.constexpr, M: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    b = tl.load(x + tl.arange(0, M))
    tl.store(x + tl.arange(0, N), a + b)


add[(1,)](np.zeros(16), 8, 16)
