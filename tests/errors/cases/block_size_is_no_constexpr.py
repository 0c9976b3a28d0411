"""The block size without its annotation."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def scale(x, n, BLOCK):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


scale[(1,)](np.zeros(8), 8, 8)
