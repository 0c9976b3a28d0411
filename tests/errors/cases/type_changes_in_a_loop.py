"""A sum that starts as an integer and becomes a float."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def add_up(x, n):
    total = 0
    for k in range(n):
        total += tl.load(x + k)
    tl.store(x, total)


add_up[(1,)](np.zeros(8, np.float32), 8)
