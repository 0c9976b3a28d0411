"""A function whose source Python cannot find."""

import numpy as np

import triton
import triton.language as tl

space = {"tl": tl}
exec("def clear(x):\n    tl.store(x, 0)\n", space)
triton.jit(space["clear"])[(1,)](np.zeros(8))
