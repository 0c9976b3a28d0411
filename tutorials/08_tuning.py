"""08: tuning. Configurations by hand and from the compiler, what is timed and what is not, results that stay."""

# %% [markdown]
# # 8. Tuning
#
# Lesson 3 listed a few tile sizes and had `triton.autotune` time them. This lesson looks closer:
#
# - what the autotuner does with a list, and how to see it,
# - leaving out configurations that cannot be good,
# - **a space instead of a list**: parameters that say which values they may have, and a compiler that knows what else
#   it could do,
# - results that outlive the process.

# %%
import json
import os
from typing import Annotated

import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = DEVICE.type == "cpu"
SIZE = 256 if ON_CPU else 4096
DTYPE = torch.float32 if ON_CPU else torch.float16

# %% [markdown]
# ## A kernel whose parameters say what they may be
#
# `triton.tunable(16, 256)` are the powers of two from 16 to 256, `triton.tunable([1, 4, 8])` just these values. To the
# kernel such a parameter is a `tl.constexpr`: without an autotuner above it, a launch gives its value as usual. It may
# be the annotation itself; in `Annotated` type checkers understand it, too.


# %%
Tile = Annotated[tl.constexpr, triton.tunable(16, 256)]


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: Tile, BLOCK_N: Tile, BLOCK_K: Annotated[tl.constexpr, triton.tunable(16, 128)],
    GROUP_M: Annotated[tl.constexpr, triton.tunable([1, 8])] = 8,
):  # fmt: skip
    program = tl.program_id(0)
    tile_columns = tl.cdiv(N, BLOCK_N)
    first_row = program // (GROUP_M * tile_columns) * GROUP_M
    height = min(tl.cdiv(M, BLOCK_M) - first_row, GROUP_M)
    inside = program % (GROUP_M * tile_columns)
    rows = (first_row + inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = inside // height * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a = a_ptr + (rows % M)[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_b + (columns % N)[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(a, mask=ks[None, :] < K - k, other=0.0)
        y = tl.load(b, mask=ks[:, None] < K - k, other=0.0)
        sums = tl.dot(x, y, sums)
        a += BLOCK_K
        b += BLOCK_K * stride_b
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, sums.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(kernel, a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty(M, N, device=a.device, dtype=a.dtype)

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    kernel[grid](a, b, out, M, N, K, a.stride(0), b.stride(0), out.stride(0))
    return out


# %% [markdown]
# ## A list
#
# When a launch meets a new key, the configurations are compiled, all at the same time on all cores, and then timed one
# after the other, each for some 50 ms. One whose fastest run is clearly slower than the best so far is given up after a
# few runs. Configurations that become the same code (warps make no difference on a CPU) are timed once, those that need
# more shared memory than there is are left out. `TRITON_PRINT_AUTOTUNING=1` shows a table:
#
# ```text
#     ms       20-80 %  slower  runs  configuration
# 0.2541  0.2513-0.272    1.00   178  BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_warps=4, ...
# 0.3125  0.311-0.3307    1.23    16  BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, num_warps=4, ...  (given up)
#  1.032    1.02-1.052    4.06     2  BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, num_warps=4, ...  (given up)
# ```
#
# and `kernel.timings` has the same as data. `prune_configs_by` leaves out beforehand what cannot be good: here tiles
# that are larger than the matrix.


# %%
def fitting(configs, arguments, **options):
    sides = (("BLOCK_M", "M"), ("BLOCK_N", "N"), ("BLOCK_K", "K"))
    return [each for each in configs if all(each.kwargs[block] <= arguments[side] for block, side in sides)]


TILES = [(16, 16, 16), (32, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64)]
listed = triton.autotune(
    configs=[triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=4) for m, n, k in TILES],
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": fitting},
    cache_results=True,
)(matmul_kernel)

# %% [markdown]
# With `cache_results=True` (or `TRITON_CACHE_AUTOTUNING=1` for all kernels) the times stay on disk, beside the compiled
# kernels, for this kernel's text, key, device and compiler. Change one configuration, and only that one is timed again.
# Of several processes that want the same, one tunes.
#
# ## A space
#
# The list above leaves most combinations out. `configs="auto"` has none: the space is every combination of the tunable
# parameters, times what the compiler could do differently. On a GPU that is `num_warps`, `num_stages`, and points where
# its passes choose: which instruction multiplies, how the warps share a product, how many programs ptxas saves
# registers for.
#
# Nobody times a thousand points. The compiler walks a program and runs its passes without making code, in a few
# milliseconds: that says how much shared memory and how many registers a point takes, so impossible ones are out, and
# how many products and bytes a program has, so a rough model can put the rest in order. The most promising are compiled
# and timed, the better half of them for longer, and so on; then neighbours of the best, as long as that gets better.

# %%
searched = triton.autotune(configs="auto", key=["M", "N", "K"], seed=0)(matmul_kernel)


def check():
    """Both find configurations that are right."""
    a, b = (torch.randn(SIZE, SIZE, device=DEVICE).to(DTYPE) for _ in range(2))
    expected = a.float() @ b.float()
    for kernel in (listed, searched):
        error = (matmul(kernel, a, b).float() - expected).abs().max().item()
        print(f"{type(kernel).__name__}: {kernel.best_config}, error {error:.2g}")
        if error > 1e-2 * SIZE**0.5:
            return False
    print(f"{len(searched.configs_timings or ())} of {searched.considered} points were timed")
    return True


if __name__ == "__main__":
    os.environ["TRITON_PRINT_AUTOTUNING"] = "1"
    assert check()
    best = [kernel.timings[-1]["configurations"][0] for kernel in (listed, searched) if kernel.timings]
    print(json.dumps(best, indent=2))

# %% [markdown]
# ## Try it
#
# - Run it twice: the list is not timed again. Then change one of `TILES`.
# - Give the search another `seed`, or `cache_results=True`.
# - Ask for one of the compiler's other ways by hand: the launch option `choices="rows=2"` on a GPU. Of a wrong name the
#   error says which there are.
# - Add a tunable parameter that changes the algorithm: split K among `SPLIT` programs that add to the result atomically
#   (with `reset_to_zero=["c_ptr"]`). For which shapes does the search choose more than 1?
