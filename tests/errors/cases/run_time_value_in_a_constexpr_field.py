import numpy as np

import triton
import triton.language as tl


@triton.aggregate
class Block:
    start: tl.tensor
    size: tl.constexpr


@triton.jit
def fill(out, n):
    block = Block(tl.program_id(0), n)
    tl.store(out + block.start + tl.arange(0, block.size), 1)


fill[(1,)](np.zeros(16, np.float32), 16)
