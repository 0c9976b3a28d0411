"""A function that returns nothing, in an expression."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def double(x):
    y = x * 2  # noqa: F841


@triton.jit
def kernel(x):
    tl.store(x, double(tl.load(x)) + 1)


kernel[(1,)](np.zeros(8))
