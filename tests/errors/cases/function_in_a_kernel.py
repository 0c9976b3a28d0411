"""A function defined inside of a kernel."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def squares(x, N: tl.constexpr):
    def square(a):
        return a * a

    i = tl.arange(0, N)
    tl.store(x + i, square(tl.load(x + i)))


squares[(1,)](np.zeros(8), 8)
