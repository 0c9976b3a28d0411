"""A reinterpretation between dtypes of different size."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def bits(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(tl.int32, bitcast=True))


bits[(1,)](np.zeros(8, np.float16), np.zeros(8, np.int32), 8)
