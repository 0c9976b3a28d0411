"""A run-time value formatted into a string."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def show(x, n):
    print(f"n is {n}")
    tl.store(x, n)


show[(1,)](np.zeros(8), 8)
