"""An integer of more than 64 bits."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def fill(x, value):
    tl.store(x, value)


fill[(1,)](np.zeros(1), 1 << 70)
