"""01: vector addition. The smallest complete kernel: programs, tiles and masks, and how to measure."""

# %% [markdown]
# # 1. Vector addition
#
# We add two vectors. There is nothing simpler to compute, so everything you see here is about *how* one
# writes a kernel:
#
# - a **kernel** is a Python function under `@triton.jit`; it is compiled the first time it is launched,
# - a launch starts many **programs** that all run the same kernel, each with its own number,
# - a program works on **tiles**, whole blocks of elements, not on single ones,
# - a **mask** keeps the last program inside the arrays.
#
# The same file runs on a GPU and on a CPU. `DEVICE` is the torch device that kernels run on here.

# %%
import numpy as np
import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = DEVICE.type == "cpu"

# %% [markdown]
# ## The kernel
#
# The kernel gets *pointers* to the first elements of its arrays. `tl.program_id(0)` tells a program
# which one it is; from that it works out which elements are its own. `offsets` is a tile of
# `BLOCK_SIZE` integers, `x_ptr + offsets` a tile of as many pointers, and `tl.load` turns those into a
# tile of values. The arithmetic in between is written as in NumPy.
#
# A vector's length is rarely a multiple of the block size. `mask` says which lanes are real: a load
# skips the others, and a store leaves them alone.
#
# `BLOCK_SIZE: tl.constexpr` is a compile-time constant. Shapes of tiles have to be known while
# compiling, so each block size gives a kernel of its own.


# %%
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    first = tl.program_id(0) * BLOCK_SIZE
    offsets = first + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# %% [markdown]
# ## The wrapper
#
# Users want `add(x, y)`, not pointers and programs. `kernel[grid](arguments)` launches: `grid` says how
# many programs there are, here as many as cover the vector. Arrays are passed as they are and arrive as
# pointers; nothing is copied.
#
# How large should a block be? On a GPU a program is spread over a few hundred threads, and 1024
# elements keep them busy. On a CPU one core walks through the tile with vector instructions; a larger
# tile means that fewer programs have to be handed out.

# %%
BLOCK_SIZE = 16384 if ON_CPU else 1024


def add(x, y, out=None):
    out = torch.empty_like(x) if out is None else out
    n = out.numel()
    add_kernel[(triton.cdiv(n, BLOCK_SIZE),)](x, y, out, n, BLOCK_SIZE=BLOCK_SIZE)
    return out


# %% [markdown]
# ## Does it work?
#
# 98,432 is no multiple of any sensible block size, so the mask is put to the test too. Both sides do
# the same single rounding per element, so we ask for equality, not for closeness.


# %%
def check():
    torch.manual_seed(0)
    x = torch.rand(98_432, device=DEVICE)
    y = torch.rand(98_432, device=DEVICE)
    error = (add(x, y) - (x + y)).abs().max().item()
    print(f"vector add, 98,432 elements: largest difference to torch {error}")
    assert error == 0
    return {"vector add": error}


if __name__ == "__main__":
    check()

# %% [markdown]
# On the CPU, kernels take NumPy arrays just as well.


# %%
def add_numpy(x, y):
    out = np.empty_like(x)
    add_kernel[(triton.cdiv(x.size, BLOCK_SIZE),)](x, y, out, x.size, BLOCK_SIZE=BLOCK_SIZE)
    return out


if __name__ == "__main__" and ON_CPU:
    print(add_numpy(np.arange(5, dtype=np.float32), np.ones(5, dtype=np.float32)))

# %% [markdown]
# ## How fast is it?
#
# Addition does next to no computing: it moves three numbers for each sum, so the honest unit is bytes
# moved per second, and the limit is the memory's bandwidth (or a cache's, while the vectors fit into
# one).
#
# `triton.testing.perf_report` runs the function below for each size on the x axis and for each line of
# the plot. `do_bench` warms up, repeats, and returns milliseconds. All contenders write into the same
# output array, so that none pays for fresh memory.

# %%
PROVIDERS = {"triton": "this kernel", "torch": "torch.add"} | ({"numpy": "numpy.add"} if ON_CPU else {})


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"],
        x_vals=[2**i for i in range(12, 25, 2)] if ON_CPU else [2**i for i in range(12, 28)],
        x_log=True,
        line_arg="provider",
        line_vals=list(PROVIDERS),
        line_names=list(PROVIDERS.values()),
        xlabel="elements",
        ylabel="GB/s",
        plot_name="01-vector-add",
        args={},
    )
)
def benchmark(size, provider):
    x = torch.rand(size, device=DEVICE)
    y = torch.rand(size, device=DEVICE)
    out = torch.empty_like(x)
    call = {
        "triton": lambda: add(x, y, out),
        "torch": lambda: torch.add(x, y, out=out),
        "numpy": lambda: np.add(x.numpy(), y.numpy(), out=out.numpy()),
    }[provider]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    gigabytes = 3 * x.nbytes * 1e-9
    return tuple(gigabytes / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Change `+` to `*`, or compute `x + 2 * y`: the kernel still makes a single trip through memory,
#   torch makes two.
# - Pass `BLOCK_SIZE=96`. Extents need not be powers of two here.
# - Leave the mask out of the store and make the vector's length odd. Then run again with
#   `TRITON_DEBUG=1`.
# - Look at what the compiler made: `add_kernel.warmup(x, y, x, 5, BLOCK_SIZE=1024,
#   grid=(1,)).asm["asm"]`.
