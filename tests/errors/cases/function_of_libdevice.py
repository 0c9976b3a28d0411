import numpy as np

import triton
import triton.language as tl


@triton.jit
def kernel(x):
    tl.store(x, tl.tanh(tl.load(x)))


kernel[(1,)](np.zeros(1, np.float32))
