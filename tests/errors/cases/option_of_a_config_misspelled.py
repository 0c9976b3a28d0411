"""num_warp instead of num_warps."""

import triton

triton.Config({"BLOCK": 64}, num_warp=8)
