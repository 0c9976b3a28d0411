"""Operands of a product that do not match."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def product(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + i, tl.dot(tl.load(x + i), tl.load(y + i)))


product[(1,)](np.zeros((16, 16), np.int8), np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32), 16)
