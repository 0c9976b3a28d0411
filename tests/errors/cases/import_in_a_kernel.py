"""An import inside of a kernel."""

import numpy as np

import triton
import triton.language as tl


@triton.jit
def clear(x):
    import math

    tl.store(x, math.pi)


clear[(1,)](np.zeros(8))
