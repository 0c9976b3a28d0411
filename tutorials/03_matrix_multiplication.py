"""03: matrix multiplication. Tiles in two dimensions, `tl.dot`, an order for caches, autotuning, fusion."""

# %% [markdown]
# # 3. Matrix multiplication
#
# Multiplying matrices is where tiles pay most: of M·N·K multiplications, each element of A takes part
# in N and each element of B in M, so the art lies in fetching an element once and using it often. This
# lesson is about
#
# - tiles with two dimensions and the pointers for them,
# - `tl.dot`, which becomes the machine's matrix instructions: those of the tensor cores on a GPU,
# - the **order** in which programs take the tiles of the result,
# - `triton.autotune`, which measures instead of guessing,
# - a **fused** activation: a function passed to the kernel at compile time.

# %%
import numpy as np
import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = DEVICE.type == "cpu"

# %% [markdown]
# ## By tiles
#
# The result is cut into tiles of BLOCK_M × BLOCK_N, one for each program. A program needs BLOCK_M rows
# of A and BLOCK_N columns of B; it walks along K in steps of BLOCK_K and adds up products of tiles:
#
# ```text
#          K                  N
#     ┌──────────┐       ┌────┬──┬──┐
#     │          │       │    │  │  │
#   M ├──────────┤     K │    │▒▒│  │
#     │▒▒▒▒      │       │    │  │  │
#     ├──────────┤       │    │  │  │
#     └──────────┘       └────┴──┴──┘
# ```
#
# **Pointers.** Row i of A begins `i * stride_am` elements after A itself, and inside a row the columns
# are `stride_ak` apart. So `rows[:, None] * stride_am + ks[None, :] * stride_ak` is a BLOCK_M × BLOCK_K
# tile of offsets; the indexing with `None` and the broadcast are NumPy's. Strides make transposed
# matrices work without copying them. To go one step along K, add `BLOCK_K * stride_ak` to all pointers.
#
# **Order.** Programs that run at the same time share caches, and they run in about the order of their
# numbers. If the numbers go along whole rows of the result, the programs in flight want all of B. If
# they fill a band of GROUP_M tile rows column by column, they want a few tile rows of A and few tile
# columns of B, and find most of that in a cache:
#
# ```text
#   row by row           bands of 2
#   0  1  2  3           0  2  4  6
#   4  5  6  7           1  3  5  7
#   8  9 10 11           8 10 12 14
#  12 13 14 15           9 11 13 15
# ```
#
# Take a GPU that runs 132 programs at once, and a result of 64 tiles in each row. Row by row, the programs in flight
# want 3 tile rows of A and all 64 tile columns of B; in bands of 8, they want 8 and 17.
#
# ## Which sizes are good?
#
# That depends on the machine: how large its caches and registers are, how its matrix instructions look.
# We list reasonable candidates for each kind of device. The first time that the kernel meets a new
# `key` (shapes and types), `autotune` times each of them; from then on it uses the fastest.
#
# On a GPU four things count:
#
# - **Tensor cores** multiply whole tiles: `tl.dot` of fp16, bf16, fp8, int8 and fp64, and of fp32 in tf32, with 10 bits
#   behind the point instead of 23 (`input_precision="ieee"` asks for all of them, and gets the threads' own
#   multiply-adds). On compute capability 9.0 a group of four warps multiplies 64 rows at a time, so BLOCK_M is a
#   multiple of 64, and num_warps one of 4.
# - **Arithmetic for each byte.** A program multiplies every element of A that it fetches BLOCK_N times, and every one
#   of B BLOCK_M times. So tiles should be large, as long as there are enough of them for all multiprocessors:
#   128 × 256 for large matrices, 64 × 64 for small ones.
# - **Registers.** They hold the sums: 128 × 256 in fp32 are 128 registers for each thread of 8 warps, of the 255 that
#   it can have.
# - **Stages.** Memory takes long to answer, so the loop asks early: with `num_stages=3` the tiles of the next two steps
#   are copied to shared memory while the present ones are multiplied. A step takes (BLOCK_M + BLOCK_N) · BLOCK_K
#   elements, 48 KB for 128 × 256 × 64 in fp16. Four of them, the two to come, the one in use and the one whose product
#   may still be under way, fill most of an H200's 227 KB. Small tiles take less, are done sooner, and want more stages.
#   When there is no memory for all, the compiler makes do with fewer.


# %%
def configurations():
    if ON_CPU:
        tiles = [(64, 64, 128), (64, 256, 128), (128, 128, 256), (128, 256, 256), (256, 128, 256)]
        return [
            triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 4}, num_warps=1, num_stages=1)
            for m, n, k in tiles
        ]
    sizes = [
        # m, n, k, warps, stages
        (128, 256, 64, 8, 3),
        (128, 128, 64, 8, 3),
        (128, 128, 64, 4, 3),
        (128, 128, 32, 4, 4),
        (64, 128, 64, 4, 3),
        (64, 64, 64, 4, 5),
        (64, 32, 64, 4, 5),
    ]
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_warps=w, num_stages=s)
        for m, n, k, w, s in sizes
    ]


# %% [markdown]
# ## The kernel
#
# Whatever the type of A and B, sums are kept in fp32. The activation is applied while the tile is still
# at hand, so it costs no trip through memory; `ACTIVATION` is a compile-time argument that holds
# another jit function, which gets inlined, or `None`, and then not a trace of it is left.


# %%
@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr = None,
):  # fmt: skip
    # Which tile is ours? Bands of GROUP_M tile rows; the last band may be lower.
    program = tl.program_id(0)
    tile_columns = tl.cdiv(N, BLOCK_N)
    programs_in_band = GROUP_M * tile_columns
    first_row = program // programs_in_band * GROUP_M
    band_height = min(tl.cdiv(M, BLOCK_M) - first_row, GROUP_M)
    tile_m = first_row + program % programs_in_band % band_height
    tile_n = program % programs_in_band // band_height

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K):
        # Zeros beyond the edges add nothing to the products.
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K - done), other=0.0)
        b = tl.load(b_ptrs, mask=(ks[:, None] < K - done) & (columns[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    if ACTIVATION is not None:
        total = ACTIVATION(total)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


# %% [markdown]
# ## The wrapper
#
# The grid depends on the configuration, so it is a function of it: `autotune` calls it with the values
# it tries.


# %%
def matmul(a, b, out=None, activation=None):
    assert a.shape[1] == b.shape[0], f"{tuple(a.shape)} @ {tuple(b.shape)}: inner extents differ"
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty(M, N, device=a.device, dtype=a.dtype) if out is None else out

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    strides = (*a.stride(), *b.stride(), *out.stride())
    matmul_kernel[grid](a, b, out, M, N, K, *strides, ACTIVATION=activation)
    return out


# %% [markdown]
# ## Does it work?
#
# We compare with the product in fp64. The yardstick is what torch itself is off by: both round the
# result to the type of the operands. Shapes that no tile divides, a transposed operand and the fused
# activation get their turn as well.


# %%
def largest_error(result, a, b, activation=lambda x: x):
    return (result.double() - activation(a.double() @ b.double())).abs().max().item()


def check():
    torch.manual_seed(0)
    errors = {}
    for dtype in (torch.float32 if ON_CPU else torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        a = torch.randn(512, 512, device=DEVICE).to(dtype)
        b = torch.randn(512, 512, device=DEVICE).to(dtype)
        ours, torchs = largest_error(matmul(a, b), a, b), largest_error(a @ b, a, b)
        print(f"matmul 512³ {name}: largest error {ours:.1e}, torch's {torchs:.1e}")
        assert ours <= 4 * torchs + 1e-5
        errors[f"matmul {name}"] = ours

    a = torch.randn(203, 129, device=DEVICE)
    b = torch.randn(77, 129, device=DEVICE).T
    dtype = torch.float32 if ON_CPU else torch.float16
    a, b = a.to(dtype), b.to(dtype)
    relu = torch.nn.LeakyReLU(0.01)
    ours = largest_error(matmul(a, b, activation=leaky_relu), a, b, relu)
    torchs = largest_error(relu(a @ b), a, b, relu)
    print(f"leaky relu of 203 x 129 x 77, B transposed: largest error {ours:.1e}, torch's {torchs:.1e}")
    assert ours <= 4 * torchs + 1e-5
    errors["matmul + leaky relu"] = ours
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?
#
# Now arithmetic is the limit, and the unit is 10⁹ floating-point operations a second; there are 2·M·N·K. On a GPU the
# tensor cores want to be busy all the time, which takes matrices of some thousands of rows; where fewer tiles than
# multiprocessors make up the result, most of the GPU has nothing to do.

# %%
PROVIDERS = {"triton": "this kernel", "torch": "torch.matmul"} | ({"numpy": "NumPy"} if ON_CPU else {})
DTYPES = {"fp32": torch.float32} if ON_CPU else {"fp16": torch.float16}
DTYPES["bf16"] = torch.bfloat16


@triton.testing.perf_report(
    [
        triton.testing.Benchmark(
            x_names=["M", "N", "K"],
            x_vals=[256, 512, 768, 1024] if ON_CPU else [256 * i for i in range(1, 17)],
            line_arg="provider",
            line_vals=list(providers),
            line_names=list(providers.values()),
            xlabel="M = N = K",
            ylabel="GFLOP/s",
            plot_name=f"03-matmul-{dtype}",
            args={"dtype": dtype},
        )
        for dtype in DTYPES
        for providers in [{key: PROVIDERS[key] for key in PROVIDERS if key != "numpy" or dtype == "fp32"}]
    ]
)
def benchmark(M, N, K, dtype, provider):
    a = torch.randn(M, K, device=DEVICE).to(DTYPES[dtype])
    b = torch.randn(K, N, device=DEVICE).to(DTYPES[dtype])
    out = torch.empty(M, N, device=DEVICE, dtype=a.dtype)
    call = {
        "triton": lambda: matmul(a, b, out),
        "torch": lambda: torch.matmul(a, b, out=out),
        "numpy": lambda: np.matmul(a.numpy(), b.numpy(), out=out.numpy()),
    }[provider]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    gigaflop = 2 * M * N * K * 1e-9
    return tuple(gigaflop / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Print `matmul_kernel.best_config` after a run. Is it what you expected? `TRITON_PRINT_AUTOTUNING=1`
#   shows when it measures.
# - Set GROUP_M to 1 everywhere. From which size on does it matter? And `num_stages` to 1?
# - `tl.swizzle2d` computes such an order too. Replace the five lines that find the tile.
# - Write an activation of your own, with an argument of its own, and pass it in.
