"""Kernels on the CPU, beside torch and NumPy: the same arrays, the same number of threads, in the same run.

Where a tutorial has the kernel, it is the tutorial's.
"""

import os
import sys

import report

results = report.Report(
    "CPU kernels (ms; ratio to torch)",
    arguments=[("--threads", {"type": int, "default": min(2, os.cpu_count()), "help": "for everybody (2)"})],
)
report.use_threads(results.options.threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

torch.set_num_threads(results.options.threads)
torch.manual_seed(0)


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
    run("softmax 4096x1024 fp32", lambda: lesson.softmax_by_rows(x, out), peers, expected, 1e-6, goal=1.3)
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
    run("layer norm 4096x1024 fp32", ours, peers, expected, 1e-5, goal=1.2)

    mean, rstd = mean.float(), rstd.float()
    peers = {"torch": lambda: backward(dy, x, columns, mean, rstd, w, b, everything)}
    ours = lambda: lesson.layer_norm_backward(dy, x, w, mean, rstd)[0]  # noqa: E731
    run("layer norm backward 4096x1024 fp32", ours, peers, right[0], 1e-4)


def matmul():
    lesson = report.tutorial("03_matrix_multiplication")
    matmul_of(lesson, "fp32", torch.float32, 1e-3, goal=0.8)
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
    run("gelu 2^22 fp32", ours, peers, torch.nn.functional.gelu(x.double()), 1e-6)


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
        run(f"{case} sums 4096x1024 fp32", ours, peers, x.double().sum(axis), 1e-3)


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


for case in (vector_add, softmax, layer_norm, matmul, gelu, sums, transpose, dropout):
    if results.wants(case.__name__):
        case()
results.finish()
