"""An array in the memory of a GPU, on a target that reads the host's memory."""

import triton
import triton.language as tl


@triton.jit
def clear(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)


class OnGpu:
    __cuda_array_interface__ = {"shape": (8,), "typestr": "<f4", "data": (1 << 40, False), "version": 3}


clear[(1,)](OnGpu(), 8)
