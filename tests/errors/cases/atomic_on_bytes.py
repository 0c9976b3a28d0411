"""An atomic operation on a dtype that has none."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def count(x, N: tl.constexpr):
    tl.atomic_add(x + tl.arange(0, N), 1)


count[(1,)](np.zeros(8, np.int8), 8)
