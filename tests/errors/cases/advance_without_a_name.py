import numpy as np

import triton
import triton.language as tl


@triton.jit
def kernel(x):
    tl.advance(tl.make_block_ptr(x, (1,), (1,), (0,), (1,), (0,)), (1,))


kernel[(1,)](np.zeros(1, np.float32))
