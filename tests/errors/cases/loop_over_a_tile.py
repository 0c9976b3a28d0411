"""A loop over the elements of a tile."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def add_up(x, N: tl.constexpr):
    total = 0.0
    for y in tl.load(x + tl.arange(0, N)):
        total += y
    tl.store(x, total)


add_up[(1,)](np.zeros(8), 8)
