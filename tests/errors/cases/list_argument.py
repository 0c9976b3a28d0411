"""A list where an array is meant."""

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)


clear[(1,)]([1.0, 2.0, 3.0, 4.0], 4)
