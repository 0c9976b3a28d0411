"""What a launch costs beyond the work: microseconds a call of a kernel that does next to nothing.

Beside it the smallest calls of torch and NumPy, which have to look at their arguments as well; on a GPU a loop in C
over the driver's own call, with everything ready. Then what parts of a launch cost, in nanoseconds a call, and how long
launches wait for variants: the slowest of 4096 launches with different sizes, after one with another size, compared
with the same launch once all variants are there. Each result is waited for, as a program does that serves requests;
kernels are new ones in each of several rounds, of which the median counts, and beside it stands the same comparison for
launches that had all variants: what the machine does by itself.
"""

import ctypes
import functools
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import report

os.environ.setdefault("TRITON_BACKGROUND", "1")
results = report.Report("Launch (µs a call; ratio to the first peer)")
report.use_threads(1)
for name in ("OMP_PROC_BIND", "OMP_PLACES"):  # else the background is bound to the core of what launches
    del os.environ[name]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import background  # noqa: E402

torch.set_num_threads(1)
CONSTANTS = {f"C{i}": i for i in range(18)}


@triton.jit
def five(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr))


@triton.jit
def sixteen(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tl.store(c_ptr, tl.load(a_ptr) + tl.load(b_ptr))


@triton.jit
def many(
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24,
    a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, C0: tl.constexpr, C1: tl.constexpr,
    C2: tl.constexpr, C3: tl.constexpr, C4: tl.constexpr, C5: tl.constexpr, C6: tl.constexpr, C7: tl.constexpr,
    C8: tl.constexpr, C9: tl.constexpr, C10: tl.constexpr, C11: tl.constexpr, C12: tl.constexpr, C13: tl.constexpr,
    C14: tl.constexpr, C15: tl.constexpr, C16: tl.constexpr, C17: tl.constexpr,
):  # fmt: skip
    tl.store(a2, tl.load(a0) + tl.load(a1))


def cases(x, y, out):
    one, sizes = 1, [16 * i for i in range(1, 38)]
    return {
        "5 arguments": (lambda: five[(1,)](x, y, out, 16, BLOCK_SIZE=16), 4),
        "5 arguments, grid by a function": (
            lambda: five[lambda meta: (meta["n"] // meta["BLOCK_SIZE"],)](x, y, out, 16, BLOCK_SIZE=16), 4
        ),
        "16 arguments": (
            lambda: sixteen[(1,)](
                x, y, out, 16, 16, 16, 16, one, 16, one, 16, one, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=8
            ), 9
        ),
        "40 arguments and 18 constants": (lambda: many[(1,)](x, y, out, *sizes, **CONSTANTS), 40),
    }  # fmt: skip


def rows(kind, x, y, out, peers):
    for case, (call, _) in cases(x, y, out).items():
        name = f"{case}, {kind}"
        if results.wants(name):
            call()
            assert float(out[0]) == float(x[0]) + float(y[0]), name
            results.compare(name, "µs", {"ours": call, **peers})


# ---- on a GPU, beside the driver

BARE = """
#include <time.h>
typedef unsigned U;
typedef int Launch(void *, U, U, U, U, U, U, U, void *, void **, void **);
double bare(Launch *launch, void *function, U threads, void **parameters, int count)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < count; i++)
        if (launch(function, 1, 1, 1, threads, 1, 1, 0, (void *)0, parameters, (void **)0))
            return -1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / count;
}
"""
BATCH, BATCHES = 200, 50  # fewer than the driver's queue holds


def driver_loop():
    folder = tempfile.mkdtemp()
    source, library = Path(folder) / "bare.c", Path(folder) / "bare.so"
    source.write_text(BARE)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    bare = ctypes.CDLL(str(library)).bare
    bare.restype = ctypes.c_double
    bare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_int]
    return bare, ctypes.cast(ctypes.CDLL("libcuda.so.1").cuLaunchKernel, ctypes.c_void_p)


def medians(contenders):
    """Of {name: function that times a batch}, taken in turns: the clock of the processor changes."""
    samples = {name: [] for name in contenders}
    for _ in range(BATCHES):
        for name, function in contenders.items():
            torch.cuda.synchronize()
            samples[name].append(function())
    torch.cuda.synchronize()
    return {name: statistics.median(values) for name, values in samples.items()}


def batch(call):
    start = time.perf_counter()
    for _ in range(BATCH):
        call()
    return (time.perf_counter() - start) / BATCH * 1e6


def cuda_rows():
    x, y, out = (torch.full((16,), float(i), device="cuda") for i in (1, 2, 0))
    bare, launch = driver_loop()
    for case, (call, count) in cases(x, y, out).items():
        if not results.wants(case):
            continue
        compiled = call()
        slots = (ctypes.c_uint64 * count)(*[t.data_ptr() for t in (x, y, out)], *[16] * (count - 3))
        parameters = (ctypes.c_void_p * count)(*[ctypes.addressof(slots) + 8 * i for i in range(count)])
        threads = 32 * compiled.num_warps
        driver = functools.partial(bare, launch, compiled.function, threads, parameters, BATCH)
        found = medians(
            {
                "ours": functools.partial(batch, call),
                "driver": lambda driver=driver: driver() / 1e3,
                "torch.add": functools.partial(batch, lambda: torch.add(x, y, out=out)),
            }
        )
        results.add(f"{case}, CUDA", "µs", found.pop("ours"), found, goal=1 / 1.3)


# ---- parts


@triton.jit
def none():
    pass


@triton.jit
def ten(a, b, c, d, e, f, g, h, i, j):
    pass


def fastest(calls, repeats=2_000, rounds=50):
    """Nanoseconds of {name: function}, the best of many short rounds in turns: their differences mean something,
    whatever else the machine does.
    """
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats * 1e9)
    return best


def parts(tensor):
    """All on the CPU, where nothing but the launch itself takes time."""
    if not results.wants("parts"):
        return
    array, grid, numbers = tensor.numpy(), (1,), [1000 + i for i in range(10)]
    fresh = iter(range(1 << 40))
    asked = os.environ.get("TRITON_TARGET")
    os.environ["TRITON_TARGET"] = "cpu"
    found = fastest(
        {
            "loop": lambda: None,
            "no arguments": lambda: none[grid](),
            "a number, as before": lambda: ten[grid](*numbers),
            "a number, another each time": lambda: ten[grid](*[next(fresh) + 2001] * 10),
            "a torch tensor": lambda: ten[grid](*[tensor] * 10),
            "a NumPy array": lambda: ten[grid](*[array] * 10),
        }
    )
    os.environ.pop("TRITON_TARGET") if asked is None else os.environ.update(TRITON_TARGET=asked)
    loop, empty = found.pop("loop"), found.pop("no arguments")
    results.add("parts: no arguments", "ns", empty - loop)
    for name, value in found.items():
        results.add(f"parts: {name}", "ns", (value - empty) / 10)


# ---- variants


def new_softmax():
    @triton.jit
    def softmax(out_ptr, x_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
        for row in range(tl.program_id(0), rows, tl.num_programs(0)):
            at = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * in_stride + at, mask=at < columns, other=-float("inf"))
            e = tl.exp(x - tl.max(x, axis=0))
            tl.store(out_ptr + row * out_stride + at, e / tl.sum(e, axis=0), mask=at < columns)

    return softmax


def new_product():
    @triton.jit
    def product(
        a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):  # fmt: skip
        m = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
        n = tl.program_id(1) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        sums = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * stride_am + (at + k)[None, :] * stride_ak)
            b = tl.load(b_ptr + (at + k)[:, None] * stride_bk + n[None, :] * stride_bn)
            sums += tl.dot(a, b)
        tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, sums)

    return product


SIZES, ROUNDS = range(1, 4097), 5


def seconds(launch, synchronize):
    taken = []
    for size in SIZES:
        start = time.perf_counter()
        launch(size)
        taken.append(time.perf_counter() - start)
        synchronize()
    return taken


def slowest(first, later):
    """By how much the slowest launch exceeds the same one later."""
    return max(a - min(b) for a, *b in zip(first, *later, strict=True)) * 1e6


def sweeps(device):
    x = torch.rand(4096, 64, device=device)
    b, out = torch.rand(64, 64, device=device), torch.empty(4096, 64, device=device)
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    kinds = {
        "softmax": (new_softmax, lambda kernel, m: kernel[(64,)](out, x, 64, 64, m, 64, BLOCK=64)),
        "product": (
            new_product,
            lambda kernel, m: kernel[(1, 1)](x, b, out, m, 64, 64, 64, 1, 64, 1, 64, 1, BM=16, BN=64, BK=64),
        ),
    }
    for name, (new, call) in kinds.items():
        case = f"sweep of {name}, slowest launch beyond its kernel, {device}"
        if not results.wants(case):
            continue
        found, still, variants = [], [], set()
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"
        for _ in range(ROUNDS):
            kernel = new()
            launch = functools.partial(call, kernel)
            launch(512)
            background.wait()
            launch(512)  # the program runs: its thread does not wake up for the first launch that counts
            first = seconds(launch, synchronize)
            background.wait()
            second, *others = (seconds(launch, synchronize) for _ in range(4))
            found.append(slowest(first, [second, *others]))
            still.append(slowest(second, others))
            variants.add(len(kernel.variants()))
        del os.environ["TRITON_ALWAYS_COMPILE"]
        beside = {"all variants there": statistics.median(still)}
        results.add(case, "µs", statistics.median(found), goal=100, beside=beside, variants=sorted(variants))


a, b, c = (torch.full((16,), float(i)) for i in (1, 2, 0))
u, v, w = (array.numpy().copy() for array in (a, b, c))
peers = {
    "torch.add": lambda: torch.add(a, b, out=c),
    "numpy.add": lambda: np.add(u, v, out=w),
}
if torch.cuda.is_available():
    cuda_rows()
    sweeps("cuda")
rows("torch tensors", a, b, c, peers)
rows("NumPy arrays", u, v, w, peers)
parts(a)
sweeps("cpu")
results.finish()
