"""A dict of options."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def fill(x, options, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), options["value"])


fill[(1,)](np.zeros(4), {"value": 3}, 4)
