"""Kernels as people write them, and their compilation to PTX without a GPU."""

import re
import shutil
from dataclasses import dataclass

import pytest
from assembling import run_ptxas

import triton
import triton.language as tl
from triton import _C


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + cols, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def softmax_rows(out_ptr, in_ptr, row_stride, n_rows, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    offsets = rows[:, None] * row_stride + cols[None, :]
    x = tl.load(in_ptr + offsets, mask=rows[:, None] < n_rows)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + offsets, e / tl.sum(e, axis=1)[:, None], mask=rows[:, None] < n_rows)


@triton.jit
def layer_norm(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
        x = tl.where(cols < n, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def transpose(x_ptr, y_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * n + cols[None, :])
    tl.store(y_ptr + cols[:, None] * m + rows[None, :], x.T)


@triton.jit
def transpose_twice(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)[:, None] * n + tl.arange(0, BLOCK)[None, :]
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets).T)
    tl.store(z_ptr + offsets, tl.load(y_ptr + offsets).to(tl.float16).T)


@triton.jit
def cumsum(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), axis=0))


@triton.jit
def column_sums(x_ptr, y_ptr, n, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    tl.store(y_ptr + cols, tl.sum(tl.load(x_ptr + rows[:, None] * n + cols[None, :]), axis=0))


@triton.jit
def scatter_add(x_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets)
    tl.atomic_add(y_ptr + index, tl.load(x_ptr + offsets), sem="relaxed")


@triton.jit
def sort(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def add_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(y_ptr + offsets, tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets, mask=mask), mask=mask)


@triton.jit
def scans_of_columns(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)[:, None] * n + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(y_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), axis=0))


@triton.jit
def cast(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, x.to(y_ptr.dtype.element_ty))


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PRECISION: tl.constexpr = "ieee", IMPRECISE: tl.constexpr = None, SUM: tl.constexpr = tl.float32,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * k + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * n + cols[None, :]
    acc = tl.zeros([BM, BN], dtype=SUM)
    for _ in range(0, k, BK):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE)
        a_ptrs += BK
        b_ptrs += BK * n
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc)


@triton.jit
def batched_matmul(a_ptr, b_ptr, c_ptr, k, B: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    batch = tl.arange(0, B)[:, None, None]
    rows, cols = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    acc = tl.zeros([B, N, N], dtype=tl.float32)
    for first in range(0, k, BK):
        ks = first + tl.arange(0, BK)
        a = tl.load(a_ptr + (batch * N + rows) * k + ks[None, None, :])
        acc = tl.dot(a, tl.load(b_ptr + (batch * k + ks[None, :, None]) * N + cols), acc)
    tl.store(c_ptr + (batch * N + rows) * N + cols, acc)


@triton.jit
def weighted_sums(x_ptr, y_ptr, n, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """All of `COUNT` tiles are alive at once."""
    offsets = tl.arange(0, BLOCK)
    x = ()
    for i in tl.static_range(COUNT):
        x += (tl.load(x_ptr + i * n + offsets, mask=offsets < n),)
    for i in tl.static_range(COUNT):
        y = tl.zeros([BLOCK], dtype=tl.float32)
        for j in tl.static_range(COUNT):
            y += x[j] * (i * COUNT + j)
        tl.store(y_ptr + i * n + offsets, y, mask=offsets < n)


@dataclass
class Compiled:
    ptx: str
    ttgir: str
    llir: str
    shared: int
    name: str
    effort: int

    def count(self, pattern):
        """How often a regular expression occurs in the PTX."""
        return len(re.findall(pattern, self.ptx))


def ir(kernel, *entries, locations=False, **constants):
    """Tile IR of a kernel: `entries` for its parameters in order, `constants` for those that are constexpr."""
    given = iter(entries)
    constants = {p.name: p.default for p in kernel.params if p.has_default} | constants
    signature = tuple(tl.constexpr(constants[p.name]) if p.name in constants else next(given) for p in kernel.params)
    return _C._frontend(kernel, signature, locations=locations)


def compile_ir(text, sm, num_warps=4, **options):
    return Compiled(**{k: v for k, v in _C._compile_gpu(text, sm, num_warps, **options).items() if k != "num_warps"})


def compile_kernel(kernel, *entries, sm=90, num_warps=4, **constants):
    return compile_ir(ir(kernel, *entries, **constants), sm, num_warps, pipeline=True)


@dataclass
class Resources:
    registers: int
    stack: int
    spills: int
    barriers: int


def assemble(compiled, sm):
    """Machine code by ptxas, which must take the PTX; what it says of the kernel's resources."""
    if not shutil.which("ptxas"):
        pytest.skip("no ptxas on the PATH (it comes with a CUDA toolkit)")
    said, taken = run_ptxas(compiled.ptx, sm, "-v", f"-O{min(getattr(compiled, 'effort', 4), 3)}")
    assert taken, said + compiled.ptx
    stack, spills = map(int, re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", said).groups())
    barriers = re.search(r"used (\d+) barriers", said)
    return Resources(
        int(re.search(r"Used (\d+) registers", said)[1]), stack, spills, int(barriers[1]) if barriers else 0
    )
