"""A language function called outside of a kernel."""

import numpy as np

import triton.language as tl

x = np.zeros(8)
tl.load(x)
