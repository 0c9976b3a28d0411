"""A list that grows in a loop."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def collect(x, N: tl.constexpr):
    parts = []
    for k in range(4):
        parts.append(tl.load(x + k * N + tl.arange(0, N)))
    tl.store(x + tl.arange(0, N), parts[0])


collect[(1,)](np.zeros(32), 8)
