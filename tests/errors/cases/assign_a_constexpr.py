import numpy as np

import triton
import triton.language as tl

SIZE = tl.constexpr(8)


@triton.jit
def fill(out):
    tl.store(out + tl.arange(0, SIZE), 1)


fill[(1,)](np.zeros(16, np.float32))
SIZE.value = 16
fill[(1,)](np.zeros(16, np.float32))
