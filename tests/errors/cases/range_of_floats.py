"""A loop whose bound was computed with /."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def add_up(x, n, N: tl.constexpr):
    total = tl.zeros((N,), tl.float64)
    for k in range(0, n / N):
        total += tl.load(x + k * N + tl.arange(0, N))
    tl.store(x + tl.arange(0, N), total)


add_up[(1,)](np.zeros(64), 64, 8)
