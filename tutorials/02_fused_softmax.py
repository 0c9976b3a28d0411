"""02: softmax, fused. Why one kernel beats five, how to reduce a tile, and programs that stay."""

# %% [markdown]
# # 2. Fused softmax
#
# The softmax of a row is $e^{x_i - m} / \sum_j e^{x_j - m}$ with $m = \max_j x_j$ (subtracting the
# maximum changes nothing mathematically and keeps the exponential from overflowing). This lesson is
# about
#
# - **fusion**: keeping a row close to the processor for all steps instead of writing it out after each,
# - **reductions**: `tl.max` and `tl.sum` over a tile,
# - **persistent programs** that walk over many rows, and how to choose their number.

# %%
import numpy as np
import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = DEVICE.type == "cpu"

# %% [markdown]
# ## What fusion saves
#
# In NumPy one writes it step by step. How often does that go over the whole matrix?


# %%
def softmax_by_steps(x):
    shifted = x - x.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=1, keepdims=True)


# %% [markdown]
# The maximum and the sum read it once each; the difference, the exponential and the quotient read it once
# and write it once. That makes eight trips, and a matrix which does not fit into a cache goes all the way to
# memory on each of them. Two would do: read it, write the result. As with the addition the arithmetic is
# cheap compared with the trips, so we may hope for four times the speed.
#
# ## One row for each program
#
# A program loads a whole row into a tile and does everything there. The tile gets the next power of two
# as its extent, and the mask covers the rest. What the masked lanes *contain* matters this time,
# because the reductions see them: `other=-inf` is neutral for the maximum, and $e^{-\infty} = 0$ is
# neutral for the sum.


# %%
@triton.jit
def softmax_row_kernel(out_ptr, x_ptr, out_stride, x_stride, n_columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + columns, powers / tl.sum(powers, axis=0), mask=mask)


def softmax_by_rows(x, out=None):
    out = torch.empty_like(x) if out is None else out
    n_rows, n_columns = x.shape
    block = triton.next_power_of_2(n_columns)
    softmax_row_kernel[(n_rows,)](out, x, out.stride(0), x.stride(0), n_columns, BLOCK_SIZE=block)
    return out


# %% [markdown]
# ## Programs that stay
#
# The other way is to start only as many programs as the device can run at the same time, and to let
# each go through its share of the rows: neighbours, because memory is faster where one reads on.
# `tl.range(first, end, num_stages=...)` is `range` with advice to the compiler: with more than one stage,
# a GPU starts to fetch the next rows while it still computes this one. (A CPU does that by itself; there
# the argument is accepted and changes nothing.)


# %%
@triton.jit
def softmax_kernel(
    out_ptr, x_ptr, out_stride, x_stride, n_rows, n_columns, BLOCK_SIZE: tl.constexpr, STAGES: tl.constexpr
):
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_columns
    share = tl.cdiv(n_rows, tl.num_programs(0))
    first = tl.program_id(0) * share
    for row in tl.range(first, min(first + share, n_rows), num_stages=STAGES):
        x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
        powers = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_stride + columns, powers / tl.sum(powers, axis=0), mask=mask)


# %% [markdown]
# How many programs fit? On a CPU the answer is simple: a few for each core, so that a core which was
# held up does not keep all others waiting. On a GPU it depends on what the compiled kernel needs.
# `kernel.warmup(...)` takes the same arguments as a launch, compiles, and launches nothing; the object
# it returns knows its registers and its shared memory, and the device's properties say how much of
# either a multiprocessor has.

# %%
PROPERTIES = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index or 0)


def programs_at_once(kernel, num_warps):
    processors = PROPERTIES["multiprocessor_count"]
    if ON_CPU:
        return 4 * processors
    kernel._init_handles()  # puts the kernel on the device, which fills n_regs in
    threads = num_warps * PROPERTIES["warpSize"]
    by_registers = PROPERTIES["max_num_regs"] // (max(kernel.n_regs, 1) * threads)
    by_memory = PROPERTIES["max_shared_mem"] // max(kernel.metadata.shared, 1)
    return processors * max(1, min(by_registers, by_memory))


def softmax(x, out=None):
    out = torch.empty_like(x) if out is None else out
    n_rows, n_columns = x.shape
    num_warps = 8
    arguments = (out, x, out.stride(0), x.stride(0), n_rows, n_columns)
    options = dict(BLOCK_SIZE=triton.next_power_of_2(n_columns), STAGES=4, num_warps=num_warps)
    key = (n_columns, x.dtype)
    if key not in PROGRAMS:
        PROGRAMS[key] = programs_at_once(softmax_kernel.warmup(*arguments, **options, grid=(1,)), num_warps)
    softmax_kernel[(min(PROGRAMS[key], n_rows),)](*arguments, **options)
    return out


PROGRAMS: dict[tuple, int] = {}  # how many programs fit, by what decides it

# %% [markdown]
# ## Does it work?
#
# An odd shape again: 781 columns leave a good part of a 1024-wide tile masked. Exponentials and the
# order of a sum differ between implementations in the last digit, so this time the results are close
# and not equal.


# %%
def check():
    torch.manual_seed(0)
    x = torch.randn(1823, 781, device=DEVICE)
    expected = torch.softmax(x, dim=1)
    errors = {}
    for name, function in (("softmax, a row a program", softmax_by_rows), ("softmax, persistent", softmax)):
        errors[name] = (function(x) - expected).abs().max().item()
        print(f"{name}, 1823 x 781: largest difference to torch {errors[name]:.1e}")
        assert errors[name] < 1e-6
    if ON_CPU:
        steps = np.abs(softmax_by_steps(x.numpy()) - expected.numpy()).max()
        print(f"softmax by steps in NumPy: largest difference to torch {steps:.1e}")
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?
#
# The unit is again bytes moved per second, counting what *has* to be moved (one read, one write), so an
# implementation that makes extra trips shows as slower.

# %%
PROVIDERS = {"triton": "persistent programs", "rows": "a program for each row", "torch": "torch.softmax"}
PROVIDERS |= {"numpy": "NumPy, by steps"} if ON_CPU else {}


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["columns"],
        x_vals=[256, 512, 781, 1024, 2048, 4096] if ON_CPU else [128 * i for i in range(2, 100, 4)],
        line_arg="provider",
        line_vals=list(PROVIDERS),
        line_names=list(PROVIDERS.values()),
        ylabel="GB/s",
        plot_name="02-fused-softmax",
        args={"rows": 4096},
    )
)
def benchmark(rows, columns, provider):
    x = torch.randn(rows, columns, device=DEVICE)
    out = torch.empty_like(x)
    call = {
        "triton": lambda: softmax(x, out),
        "rows": lambda: softmax_by_rows(x, out),
        "torch": lambda: torch.softmax(x, 1, out=out),
        "numpy": lambda: softmax_by_steps(x.numpy()),
    }[provider]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    gigabytes = 2 * x.nbytes * 1e-9
    return tuple(gigabytes / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - `tl.softmax` exists too. Put it into `softmax_row_kernel`: does the speed change?
# - What happens for rows of 100,000 columns? When does a row stop fitting near the processor, and how
#   would you compute the maximum and the sum in one pass over pieces of a row?
# - Compute log-softmax instead, without taking the logarithm of a quotient.
