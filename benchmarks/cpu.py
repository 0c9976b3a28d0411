"""Kernels on the CPU, beside torch, NumPy and (where it is installed) numba: the same arrays, the same number of
threads, the same instructions, in the same run.

Where a tutorial has the kernel, it is the tutorial's.
"""

import os
import sys

import report

AVX2 = {
    "TRITON_CPU_ARCH": "x86-64-v3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
}
results = report.Report(
    "CPU kernels (ms; ratio to torch)",
    arguments=[
        ("--threads", {"type": int, "default": min(2, os.cpu_count()), "help": "for everybody (2)"}),
        ("--isa", {"choices": ["native", "avx2"], "default": "native", "help": "instructions, for everybody (native)"}),
    ],
)
report.use_threads(results.options.threads)
os.environ["NUMBA_NUM_THREADS"] = str(results.options.threads)
if results.options.isa == "avx2":
    os.environ |= AVX2

import numpy as np  # noqa: E402
import torch  # noqa: E402

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

try:
    import numba
except ImportError:
    numba = None

torch.set_num_threads(results.options.threads)
torch.manual_seed(0)
results.machine["instructions"] = {
    "ours": os.environ.get("TRITON_CPU_ARCH", "native"),
    "torch": torch.backends.cpu.get_cpu_capability(),
}


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=mask)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_columns + columns, mask=columns < n_columns, other=0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_rows, n_columns, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    rows = tl.arange(0, BLOCK_ROWS)
    total = tl.zeros((BLOCK_COLUMNS,), tl.float32)
    for first in range(0, n_rows, BLOCK_ROWS):
        mask = (first + rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        x = tl.load(x_ptr + (first + rows)[:, None] * n_columns + columns[None, :], mask=mask, other=0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + columns, total, mask=columns < n_columns)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_columns, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_columns + columns[None, :], mask=mask)
    tl.store(out_ptr + columns[:, None] * n_rows + rows[None, :], tl.trans(x), mask=tl.trans(mask))


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, n_columns, epsilon, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_columns + epsilon)
    w = tl.load(w_ptr + columns, mask=mask)
    tl.store(out_ptr + row * n_columns + columns, x * scale * w, mask=mask)


def rms_norm_loops(x, w, out, epsilon):
    for row in numba.prange(x.shape[0]):
        total = np.float32(0)
        for column in range(x.shape[1]):
            total += x[row, column] * x[row, column]
        scale = np.float32(1) / np.sqrt(total / np.float32(x.shape[1]) + np.float32(epsilon))
        for column in range(x.shape[1]):
            out[row, column] = x[row, column] * scale * w[column]


@triton.jit
def bincount_kernel(x_ptr, counts_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    bins = tl.load(x_ptr + offsets, mask=mask)
    tl.atomic_add(counts_ptr + bins, 1, mask=mask, sem="relaxed")


@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, c_ptr, starts_ptr, tiles_ptr, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Rows starts[g] .. starts[g + 1] of A times B[g]; tiles[i] = (g, its i-th tile of rows)."""
    group = tl.load(tiles_ptr + 2 * tl.program_id(1))
    first = tl.load(starts_ptr + group) + tl.load(tiles_ptr + 2 * tl.program_id(1) + 1) * BLOCK_M
    end = tl.load(starts_ptr + group + 1)
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    b_ptr += group * N * K
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < end, other=0)
        b = tl.load(b_ptr + ks[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=rows[:, None] < end)


def run(case, ours, peers, expected, tolerance, goal=None):
    """Checks that ours() returns what is expected, then times it beside its peers."""
    error = (ours().double() - expected.double()).abs().max().item()
    if not error <= tolerance:
        sys.exit(f"{case}: wrong result, off by {error:.2e} where {tolerance:.0e} is allowed")
    results.compare(case, "ms", {"ours": ours, **peers}, goal, error=error)


def vector_add():
    lesson = report.tutorial("01_vector_add")
    x, y = torch.rand(2**24), torch.rand(2**24)
    out, other = torch.empty_like(x), torch.empty_like(x)
    peers = {
        "torch": lambda: torch.add(x, y, out=other),
        "numpy": lambda: np.add(x.numpy(), y.numpy(), out=other.numpy()),
    }
    run("vector add 2^24 fp32", lambda: lesson.add(x, y, out), peers, x + y, 0, goal=1.0)


def softmax():
    lesson = report.tutorial("02_fused_softmax")
    x = torch.randn(4096, 1024)
    out, other = torch.empty_like(x), torch.empty_like(x)
    peers = {
        "torch": lambda: torch.softmax(x, 1, out=other),
        "numpy": lambda: lesson.softmax_by_steps(x.numpy()),
    }
    expected = torch.softmax(x.double(), 1)
    run("softmax 4096x1024 fp32", lambda: lesson.softmax_by_rows(x, out), peers, expected, 1e-6, goal=1.0)
    run("softmax 4096x1024 fp32, persistent", lambda: lesson.softmax(x, out), peers, expected, 1e-6)


def layer_norm():
    lesson = report.tutorial("05_layer_norm")
    x, dy, w, b = torch.randn(4096, 1024), torch.randn(4096, 1024), torch.rand(1024), torch.rand(1024)
    columns, everything = (1024,), (True, True, True)
    backward = torch.ops.aten.native_layer_norm_backward
    expected, mean, rstd = torch.native_layer_norm(x.double(), columns, w.double(), b.double(), 1e-5)
    right = backward(dy.double(), x.double(), columns, mean, rstd, w.double(), b.double(), everything)

    peers = {
        "torch": lambda: torch.layer_norm(x, columns, w, b),
        "numpy": lambda: lesson.layer_norm_numpy(x.numpy(), w.numpy(), b.numpy()),
    }
    ours = lambda: lesson.layer_norm_forward(x, w, b)[0]  # noqa: E731
    run("layer norm 4096x1024 fp32", ours, peers, expected, 1e-5, goal=1.0)

    mean, rstd = mean.float(), rstd.float()
    peers = {"torch": lambda: backward(dy, x, columns, mean, rstd, w, b, everything)}
    ours = lambda: lesson.layer_norm_backward(dy, x, w, mean, rstd)[0]  # noqa: E731
    run("layer norm backward 4096x1024 fp32", ours, peers, right[0], 1e-4)


def matmul():
    lesson = report.tutorial("03_matrix_multiplication")
    matmul_of(lesson, "fp32", torch.float32, 1e-3, goal=0.9)
    matmul_of(lesson, "bf16", torch.bfloat16, 1.0, goal=0.6)


def matmul_of(lesson, name, dtype, tolerance, goal):
    a, b = torch.randn(1024, 1024).to(dtype), torch.randn(1024, 1024).to(dtype)
    out, other = torch.empty_like(a), torch.empty_like(a)
    peers = {"torch": lambda: torch.mm(a, b, out=other)}
    if dtype == torch.float32:
        peers["numpy"] = lambda: np.matmul(a.numpy(), b.numpy(), out=other.numpy())
    expected = a.double() @ b.double()
    run(f"matmul 1024^3 {name}", lambda: lesson.matmul(a, b, out), peers, expected, tolerance, goal)


def gelu():
    x = torch.randn(2**22)

    def ours():
        out = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 8192),)](x, out, x.numel(), BLOCK_SIZE=8192)
        return out

    peers = {"torch": lambda: torch.nn.functional.gelu(x)}
    run("gelu 2^22 fp32", ours, peers, torch.nn.functional.gelu(x.double()), 1e-6, goal=1.0)


def sums():
    x = torch.randn(4096, 1024)

    def row_sums():
        out = torch.empty(4096)
        row_sum_kernel[(4096,)](x, out, 1024, BLOCK_SIZE=1024)
        return out

    def column_sums():
        out = torch.empty(1024)
        column_sum_kernel[(8,)](x, out, 4096, 1024, BLOCK_ROWS=32, BLOCK_COLUMNS=128)
        return out

    for case, ours, axis in (("row", row_sums, 1), ("column", column_sums, 0)):
        peers = {
            "torch": lambda axis=axis: torch.sum(x, axis),
            "numpy": lambda axis=axis: x.numpy().sum(axis),
        }
        run(f"{case} sums 4096x1024 fp32", ours, peers, x.double().sum(axis), 1e-3, goal=1.0)


def rms_norm():
    x, w = torch.randn(4096, 1024), torch.rand(1024)
    out, other = torch.empty_like(x), torch.empty_like(x)

    def ours():
        rms_norm_kernel[(4096,)](x, w, out, 1024, 1e-6, BLOCK_SIZE=1024)
        return out

    peers = {"torch": lambda: torch.nn.functional.rms_norm(x, (1024,), w, 1e-6)}
    if numba:
        loops = numba.njit(rms_norm_loops, fastmath=True, parallel=True)
        peers["numba"] = lambda: loops(x.numpy(), w.numpy(), other.numpy(), 1e-6)
    expected = torch.nn.functional.rms_norm(x.double(), (1024,), w.double(), 1e-6)
    run("RMS norm 4096x1024 fp32", ours, peers, expected, 1e-5, goal=1.0)


def bincount():
    for bins in (256, 4096):
        x = torch.randint(0, bins, (2**22,))
        counts = torch.empty(bins, dtype=torch.int64)

        def ours(x=x, counts=counts):
            counts.zero_()
            bincount_kernel[(64,)](x, counts, x.numel(), BLOCK_SIZE=65536)
            return counts

        peers = {"torch": lambda x=x, bins=bins: torch.bincount(x, minlength=bins)}
        run(f"bincount 2^22 into {bins}", ours, peers, torch.bincount(x, minlength=bins), 0, goal=0.8)


def grouped_matmul():
    sizes, n, k, block_m, block_n = [300, 17, 512, 128, 64, 450, 333, 244], 512, 512, 64, 128
    starts = torch.tensor([0, *sizes]).cumsum(0)
    tiles = torch.tensor([(g, i) for g, size in enumerate(sizes) for i in range(triton.cdiv(size, block_m))])
    a, b = torch.randn(sum(sizes), k), torch.randn(len(sizes), n, k)
    b = b.transpose(1, 2).contiguous()
    out, other = torch.empty(sum(sizes), n), torch.empty(sum(sizes), n)

    def ours():
        grid = (n // block_n, len(tiles))
        grouped_matmul_kernel[grid](a, b, out, starts, tiles, n, k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=256)
        return out

    parts = list(zip(starts.tolist(), starts.tolist()[1:], b, strict=False))

    def one_by_one(x, y):
        for first, end, weight in parts:
            torch.mm(x[first:end], weight.to(x.dtype), out=y[first:end])
        return y

    expected = one_by_one(a.double(), other.double())
    run("grouped matmul 8 x 512x512 fp32", ours, {"torch": lambda: one_by_one(a, other)}, expected, 1e-3, goal=1.0)


def attention():
    lesson = report.tutorial("06_fused_attention")
    attend = torch.nn.functional.scaled_dot_product_attention
    for causal in (False, True):
        q, k, v = (torch.randn(1, 8, 1024, 64) for _ in range(3))
        peers = {"torch": lambda q=q, k=k, v=v, causal=causal: attend(q, k, v, is_causal=causal)}
        ours = lambda q=q, k=k, v=v, causal=causal: lesson.attention_forward(q, k, v, 0.125, causal)[0]  # noqa: E731
        expected = attend(q.double(), k.double(), v.double(), is_causal=causal)
        name = f"attention 8x1024x64 fp32{', causal' if causal else ''}"
        run(name, ours, peers, expected, 1e-4, goal=1.0)


def transpose():
    x = torch.randn(2048, 2048)
    out, other = torch.empty(2048, 2048), torch.empty(2048, 2048)

    def ours():
        transpose_kernel[(64, 64)](x, out, 2048, 2048, BLOCK=32)
        return out

    peers = {
        "torch": lambda: other.copy_(x.T),
        "numpy": lambda: np.copyto(other.numpy(), x.numpy().T),
    }
    run("transpose 2048x2048 fp32", ours, peers, x.T, 0)


def dropout():
    lesson = report.tutorial("04_low_memory_dropout")
    x = torch.randn(2**22)
    kept = lesson.dropout(x, 0.3, 7) != 0
    peers = {"torch": lambda: torch.dropout(x, 0.3, train=True)}
    expected = torch.where(kept, x / (1 - 0.3), 0)
    run("dropout 2^22 fp32", lambda: lesson.dropout(x, 0.3, 7), peers, expected, 1e-5)


CASES = (vector_add, softmax, layer_norm, rms_norm, matmul, grouped_matmul, attention, gelu, sums, bincount)
for case in (*CASES, transpose, dropout):
    if results.wants(case.__name__):
        case()
results.finish()
