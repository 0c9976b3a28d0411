"""07: two devices. Sharding a matrix product, adding the parts up while others are computed, one tuning for all."""

# %% [markdown]
# # 7. Two devices
#
# A model that is too large or too slow for one GPU is spread over several. This lesson multiplies C = A · B on two of
# them, each with half of K, and is about
#
# - **sharding**: what each device holds, and what has to be added up,
# - **overlap**: while one part of the result travels between the devices, our kernel computes the next,
# - **streams**: a kernel is launched on the stream that torch says is current,
# - **tuning once** for all processes.
#
# There is a process for each device, as usual with torch: the *ranks* 0 and 1. They talk through `torch.distributed`,
# over NCCL between GPUs. Where there are not two GPUs the lesson says so, and two processes on the CPU do the same over
# gloo.

# %%
import os
import tempfile
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.multiprocessing.spawn import start_processes

import triton
import triton.language as tl

RANKS = 2
ON_GPUS = torch.cuda.is_available() and torch.cuda.device_count() >= RANKS

# %% [markdown]
# ## What each device holds
#
# The columns of A and the rows of B are cut in half, so each rank has everything that one half of the sum over K needs:
#
# ```text
#            K                   N
#      ┌─────┬─────┐         ┌────────┐
#      │     │     │         │ rank 0 │            C = A₀·B₀ + A₁·B₁
#    M │  0  │  1  │       K ├────────┤
#      │     │     │         │ rank 1 │
#      └─────┴─────┘         └────────┘
# ```
#
# Each computes an M × N matrix, and the two are added up: an *all-reduce*, after which both have C. (Cutting B by
# columns instead needs no sum, but leaves half of C on each; real models alternate the two.)
#
# For 8192 × 8192 × 8192 in fp16 a rank computes for some 0.8 ms, if it manages 700 TFLOP/s, and then C's 128 MB have to
# go to the other one and come back, some 0.4 ms at 300 GB/s: a third of the time nothing is computed. So C is cut into
# chunks of rows: as soon as a chunk is computed its all-reduce begins, on a stream of NCCL's own, while our kernel goes
# on with the next chunk.
#
# ```text
#   compute   chunk 0 │ chunk 1 │ chunk 2 │ chunk 3 │
#   reduce              chunk 0 │ chunk 1 │ chunk 2 │ chunk 3 │
# ```
#
# ## The kernel
#
# It is that of lesson 3, without the activation. `cache_results=True` keeps on disk what the autotuner found: one of
# the ranks tunes, the other waits for it and takes the result, and tomorrow nobody has to. (They need a common
# `TRITON_CACHE_DIR` for that; the default is in the home folder.) Compiled kernels are kept there too.


# %%
def configurations():
    if not ON_GPUS:
        return [
            triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 4}, num_warps=1)
            for m, n, k in [(64, 64, 128), (64, 256, 128), (128, 128, 256)]
        ]
    tiles = [(128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (64, 128, 64, 4, 4)]
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_warps=w, num_stages=s)
        for m, n, k, w, s in tiles
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"], cache_results=True)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
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


def matmul(a, b, out):
    (M, K), N = a.shape, b.shape[1]

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, out, M, N, K, a.stride(0), b.stride(0), out.stride(0))


# %% [markdown]
# ## Adding up while computing
#
# Our kernel runs on a stream of its own: within `torch.cuda.stream(compute)` that is torch's current one, and launches
# follow it. An all-reduce with `async_op=True` waits for what is on the current stream so far, which is the chunk that
# was just launched, runs on NCCL's stream, and returns a handle at once. The handles' `wait()` in the end makes the
# current stream wait, not the host.
#
# On the CPU a launch returns when it is done, and gloo adds up in a thread of its own meanwhile.


# %%
def sharded_matmul(a, b, out, chunks=1, compute=None):
    """out = sum over all ranks of a @ b; `a` and `b` are this rank's halves."""
    if compute is not None:
        compute.wait_stream(torch.cuda.current_stream())  # for what made a, b and out
    with nullcontext() if compute is None else torch.cuda.stream(compute):
        handles = []
        for rows, part in zip(a.chunk(chunks), out.chunk(chunks), strict=True):
            matmul(rows, b, part)
            handles.append(dist.all_reduce(part, async_op=True))
        for handle in handles:
            handle.wait()
    if compute is not None:
        torch.cuda.current_stream().wait_stream(compute)
    return out


# %% [markdown]
# ## What a rank does
#
# `wait_for_all` is there for fair times: a rank that comes first would otherwise count its waiting.


# %%
def wait_for_all(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


def time_of(call, device, repeat=10):
    """Median milliseconds, the slowest rank's."""
    times = []
    for _ in range(repeat):
        wait_for_all(device)
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append((time.perf_counter() - start) * 1e3)
    slowest = torch.tensor(sorted(times)[repeat // 2], device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def work(rank, folder, size, results):
    """Checks the product, and puts into `results` how long it takes in how many chunks."""
    device = torch.device("cuda", rank) if ON_GPUS else torch.device("cpu")
    if ON_GPUS:
        torch.cuda.set_device(device)
    else:  # two processes share the machine
        os.environ.setdefault("TRITON_CPU_THREADS", str(max(1, (os.cpu_count() or 2) // RANKS)))
    meeting = f"file://{folder}/ranks"  # of processes on one machine
    dist.init_process_group("nccl" if ON_GPUS else "gloo", init_method=meeting, rank=rank, world_size=RANKS)
    try:
        M, N, K = size
        dtype = torch.float16 if ON_GPUS else torch.float32
        torch.manual_seed(0)  # the same matrices everywhere
        whole_a = (torch.randn(M, K, device=device) / K**0.5).to(dtype)
        whole_b = torch.randn(K, N, device=device).to(dtype)
        a = whole_a.chunk(RANKS, dim=1)[rank].contiguous()
        b = whole_b.chunk(RANKS, dim=0)[rank].contiguous()
        out = torch.empty(M, N, device=device, dtype=dtype)
        compute = torch.cuda.Stream() if ON_GPUS else None
        expected = whole_a.float() @ whole_b.float()
        for chunks in (1, 4):
            sharded_matmul(a, b, out.zero_(), chunks, compute)
            error = (out.float() - expected).abs().max().item()
            assert error < 2e-2, f"rank {rank} is off by {error}"
            if results is not None:
                results[rank, chunks] = time_of(lambda c=chunks: sharded_matmul(a, b, out, c, compute), device)
    finally:
        dist.destroy_process_group()


# %% [markdown]
# ## Starting the ranks
#
# A process that uses CUDA must not be forked, so the ranks are started afresh (`spawn`), which imports this file again.
# There is no file in a notebook: on the CPU its processes are forked, and for GPUs run the script.


# %%
def run_ranks(size, timed=False):
    """Runs `work` in a process for each rank; milliseconds by (rank, chunks) if `timed`."""
    method = "spawn" if "__file__" in globals() else "fork"
    with (
        tempfile.TemporaryDirectory() as folder,
        torch.multiprocessing.Manager() if timed else nullcontext() as manager,
    ):
        results = manager.dict() if manager else None
        start_processes(work, (folder, size, results), nprocs=RANKS, start_method=method)
        return dict(results) if results is not None else {}


def say_where():
    if ON_GPUS:
        print(f"two of {torch.cuda.device_count()} GPUs ({torch.cuda.get_device_name()}), over NCCL")
    else:
        print("there are not two GPUs here: two processes on the CPU do the same, over gloo")


def check():
    say_where()
    run_ranks((96, 80, 256))
    return True


# %% [markdown]
# ## Does it pay?
#
# Times are those of the slower rank. `torch.distributed` needs no kernel to be changed for this: the launch follows the
# current stream and the device of its arguments, and each process compiles for its own device.

# %%
if __name__ == "__main__":
    assert check()
    size = (8192, 8192, 8192) if ON_GPUS else (1024, 1024, 1024)
    times = run_ranks(size, timed=True)
    whole, chunked = (max(times[rank, chunks] for rank in range(RANKS)) for chunks in (1, 4))
    print(f"{size[0]} x {size[1]} x {size[2]}: {whole:.2f} ms, in 4 chunks {chunked:.2f} ms ({whole / chunked:.2f} x)")

# %% [markdown]
# ## Try it
#
# - Take 2 or 16 chunks. More overlap better, until a chunk has too few tiles to fill a GPU.
# - Leave out the stream of its own: what changes? (The all-reduce still runs on NCCL's.)
# - Cut B by columns instead of K. What has to be exchanged now, and what can overlap with it?
# - Run `torchrun --nproc-per-node 2` with a script that calls `work` with its own rank.
