"""A keyword that is misspelt."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def scale(x, n, BLOCK_SIZE: tl.constexpr):
    i = tl.arange(0, BLOCK_SIZE)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


scale[(1,)](np.zeros(8), 8, BLOCKSIZE=8)
