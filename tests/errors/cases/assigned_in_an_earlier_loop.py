"""A name that only an earlier loop assigned, read and assigned by another one."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def add_up(x, n):
    for i in range(n):
        total = tl.load(x + i)
    for i in range(n):
        total = total + tl.load(x + i)
    tl.store(x, total)


add_up[(1,)](np.zeros(8), 8)
