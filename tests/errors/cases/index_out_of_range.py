"""An element behind the end."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def last(x, N: tl.constexpr):
    y = tl.load(x + tl.arange(0, N))
    tl.store(x, y[N])


last[(1,)](np.zeros(8), 8)
