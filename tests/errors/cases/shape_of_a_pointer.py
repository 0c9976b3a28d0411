"""The shape of an array, asked of its pointer."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x):
    tl.store(x + tl.arange(0, 8), 0.0, mask=tl.arange(0, 8) < x.shape[0])


clear[(1,)](np.zeros(8))
