"""A compile-time keyword that the launch did not give."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x, **META):
    tl.store(x + tl.arange(0, META["BLOCK"]), 0)


clear[(1,)](np.zeros(8), BLOCK_SIZE=8)
