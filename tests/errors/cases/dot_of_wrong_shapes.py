"""A product that needs a transposition."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def product(x, y, z, M: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(z + i, tl.dot(tl.load(x + i), tl.load(y + i)))


product[(1,)](np.zeros((16, 32), np.float32), np.zeros((16, 32), np.float32), np.zeros((16, 32), np.float32), 16, 32)
