"""The kernels of gpu.py, in words that ours and the peer both know, with arguments, checks, and what torch does.

CASES is {name: function that makes the `Case`}. Whoever imports this module decides whose `triton` it is.
"""

from functools import partial

import gpu_attention
import gpu_libraries
import gpu_models
import gpu_patterns
import gpu_products
import torch
from gpu_case import DEVICE, Case, warps_for

import triton
import triton.language as tl

# ---- vector add


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(log2):
    n = 1 << log2
    x, y = torch.randn(n, device=DEVICE), torch.randn(n, device=DEVICE)
    out, other = torch.empty_like(x), torch.empty_like(x)

    def launch(block):
        add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)

    configs = {f"BLOCK={block}": partial(launch, block) for block in (1024, 2048, 4096)}
    return Case(configs, out, lambda: x + y, lambda: torch.add(x, y, out=other), 12 * n)


# ---- softmax and layer norm: one row a program


@triton.jit
def softmax_kernel(out_ptr, x_ptr, x_stride, out_stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + columns, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(rows, columns, dtype):
    x = torch.randn(rows, columns, device=DEVICE).to(dtype)
    out, block = torch.empty_like(x), triton.next_power_of_2(columns)

    def launch(warps):
        softmax_kernel[(rows,)](out, x, columns, columns, columns, BLOCK=block, num_warps=warps)

    configs = {f"num_warps={warps}": partial(launch, warps) for warps in warps_for(block)}
    tolerance = 1e-5 if dtype == torch.float32 else 1e-3
    moved = 2 * x.numel() * x.element_size()
    return Case(configs, out, lambda: torch.softmax(x.double(), 1), lambda: torch.softmax(x, 1), moved, tolerance)


@triton.jit
def layer_norm_kernel(x_ptr, out_ptr, weight_ptr, bias_ptr, stride, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_columns
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / n_columns
    scale = 1 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    y = centered * scale * weight + bias
    tl.store(out_ptr + row * stride + columns, y.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(rows, columns):
    x = torch.randn(rows, columns, device=DEVICE, dtype=torch.float16)
    weight, bias = (torch.randn(columns, device=DEVICE, dtype=torch.float16) for _ in range(2))
    out, block = torch.empty_like(x), triton.next_power_of_2(columns)

    def launch(warps):
        layer_norm_kernel[(rows,)](x, out, weight, bias, columns, columns, 1e-5, BLOCK=block, num_warps=warps)

    def expected():
        return torch.nn.functional.layer_norm(x.float(), (columns,), weight.float(), bias.float())

    configs = {f"num_warps={warps}": partial(launch, warps) for warps in warps_for(block)}
    reference = partial(torch.nn.functional.layer_norm, x, (columns,), weight, bias)
    return Case(configs, out, expected, reference, 4 * x.numel(), 3e-2)


# ---- dropout


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(log2):
    n, p = 1 << log2, 0.3
    x = torch.rand(n, device=DEVICE) + 1
    out = torch.empty_like(x)

    def launch(block):
        dropout_kernel[(triton.cdiv(n, block),)](x, out, n, p, 123, BLOCK=block)

    def check(result):
        kept = result != 0
        close = torch.allclose(result[kept], x[kept] / (1 - p), rtol=1e-6)
        return close and abs(kept.double().mean().item() - (1 - p)) < 0.01

    configs = {f"BLOCK={block}": partial(launch, block) for block in (512, 1024, 2048)}
    return Case(configs, out, None, lambda: torch.dropout(x, p, True), 8 * n, check=check)


# ---- reductions over each axis


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.arange(0, COLUMNS)
    mask = rows < n_rows
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :], mask=mask[:, None], other=0.0)
    tl.store(out_ptr + rows, tl.sum(x.to(tl.float32), axis=1), mask=mask)


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_columns, TRIPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of TRIPS * ROWS rows."""
    first = tl.program_id(0) * TRIPS * ROWS
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for trip in range(TRIPS):
        rows = first + trip * ROWS + tl.arange(0, ROWS)
        x = tl.load(x_ptr + rows[:, None] * n_columns + columns[None, :], mask=mask[None, :], other=0.0)
        total += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + tl.program_id(0) * n_columns + columns, total, mask=mask)


def row_sums(rows, columns, dtype):
    x = torch.randn(rows, columns, device=DEVICE).to(dtype)
    out = torch.empty(rows, device=DEVICE)

    def launch(block, warps):
        row_sum_kernel[(triton.cdiv(rows, block),)](x, out, rows, COLUMNS=columns, BLOCK=block, num_warps=warps)

    configs = {
        f"BLOCK={block} num_warps={warps}": partial(launch, block, warps) for block in (1, 4) for warps in (2, 4, 8)
    }
    reference = partial(torch.sum, x, 1, dtype=torch.float32)
    moved = x.numel() * x.element_size() + 4 * rows
    return Case(configs, out, lambda: x.double().sum(1), reference, moved, 1e-2)


def column_sums(rows, columns, dtype):
    chunk, tile = 256, 32
    x = torch.randn(rows, columns, device=DEVICE).to(dtype)
    out = torch.empty(rows // chunk, columns, device=DEVICE)

    def launch(block, warps):
        grid = rows // chunk, triton.cdiv(columns, block)
        sizes = {"TRIPS": chunk // tile, "ROWS": tile, "BLOCK": block}
        column_sum_kernel[grid](x, out, columns, **sizes, num_warps=warps)

    configs = {
        f"BLOCK={block} num_warps={warps}": partial(launch, block, warps) for block in (64, 128) for warps in (4, 8)
    }
    chunks = x.view(-1, chunk, columns)
    reference = partial(torch.sum, chunks, 1, dtype=torch.float32)
    moved = x.numel() * x.element_size() + 4 * out.numel()
    return Case(configs, out, lambda: chunks.double().sum(1), reference, moved, 1e-3)


# ---- transposes


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_columns, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_columns + columns[None, :], mask=mask)
    tl.store(out_ptr + columns[:, None] * n_rows + rows[None, :], tl.trans(x), mask=tl.trans(mask))


def transpose(rows, columns, dtype):
    x = torch.randn(rows, columns, device=DEVICE).to(dtype)
    out, other = (torch.empty(columns, rows, device=DEVICE, dtype=dtype) for _ in range(2))

    def launch(block, warps):
        grid = triton.cdiv(rows, block), triton.cdiv(columns, block)
        transpose_kernel[grid](x, out, rows, columns, BLOCK=block, num_warps=warps)

    configs = {
        f"BLOCK={block} num_warps={warps}": partial(launch, block, warps)
        for block, warps in ((32, 1), (32, 4), (64, 4), (64, 8), (128, 8))
    }
    moved = 2 * x.numel() * x.element_size()
    return Case(configs, out, lambda: x.T, lambda: other.copy_(x.T), moved)


# ---- cumulative sums


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_columns + columns, tl.cumsum(x, axis=0), mask=mask)


def cumsum(rows, columns):
    x = torch.randn(rows, columns, device=DEVICE)
    out, other, block = torch.empty_like(x), torch.empty_like(x), triton.next_power_of_2(columns)

    def launch(warps):
        cumsum_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=warps)

    configs = {f"num_warps={warps}": partial(launch, warps) for warps in warps_for(block)}
    expected, reference = (lambda: torch.cumsum(x.double(), 1)), partial(torch.cumsum, x, 1, out=other)
    return Case(configs, out, expected, reference, 8 * x.numel(), 1e-2)


# ---- launches


@triton.jit
def five(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr))


@triton.jit
def sixteen(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tl.store(c_ptr, tl.load(a_ptr) + tl.load(b_ptr))


def launches():
    """Calls that do next to nothing, by name, torch's among them."""
    a, b, c = (torch.full((16,), float(i), device=DEVICE) for i in (1, 2, 0))
    sizes = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP_M": 8}
    return {
        "5 arguments": lambda: five[(1,)](a, b, c, 16, BLOCK=16),
        "16 arguments": lambda: sixteen[(1,)](a, b, c, 16, 16, 16, 16, 1, 16, 1, 16, 1, **sizes),
        "torch": lambda: torch.add(a, b, out=c),
    }


def _dtype_name(dtype):
    return {torch.float32: "fp32", torch.float16: "fp16"}[dtype]


def _cases():
    both = torch.float32, torch.float16
    for log2 in (16, 18, 20, 22, 24, 26, 28):
        yield f"vector add 2^{log2} fp32", partial(vector_add, log2)
    for columns in (256, 781, 1000, 1024, 2048, 4096, 8192, 12672, 32768):
        yield f"softmax 4096x{columns} fp32", partial(softmax, 4096, columns, torch.float32)
    for columns in (1000, 1024):
        yield f"softmax 4096x{columns} fp16", partial(softmax, 4096, columns, torch.float16)
    for columns in (1024, 4096, 8192, 16384):
        yield f"layer norm 4096x{columns} fp16", partial(layer_norm, 4096, columns)
    for log2 in (24, 27):
        yield f"dropout 2^{log2} fp32", partial(dropout, log2)
    for dtype in both:
        yield f"row sums 16384x4096 {_dtype_name(dtype)}", partial(row_sums, 16384, 4096, dtype)
        yield f"column sums 16384x4096 {_dtype_name(dtype)}", partial(column_sums, 16384, 4096, dtype)
    for dtype in both:
        yield f"transpose 8192x8192 {_dtype_name(dtype)}", partial(transpose, 8192, 8192, dtype)
    for columns in (1024, 8192):
        yield f"cumsum 4096x{columns} fp32", partial(cumsum, 4096, columns)


CASES = (
    dict(_cases())
    | gpu_patterns.CASES
    | gpu_products.CASES
    | gpu_attention.CASES
    | gpu_models.CASES
    | gpu_libraries.CASES
)

# For times of compilation: the kernel's name and a case that runs it.
COMPILED = {
    "vector add": "vector add 2^16 fp32",
    "softmax": "softmax 4096x1000 fp32",
    "layer norm": "layer norm 4096x1024 fp16",
    "dropout": "dropout 2^24 fp32",
    "row sums": "row sums 16384x4096 fp16",
    "column sums": "column sums 16384x4096 fp16",
    "transpose": "transpose 8192x8192 fp16",
    "cumsum": "cumsum 4096x1024 fp32",
    "matmul": "matmul 1024x1024x1024 fp16",
    "attention": "attention 1024x128 fp16",
}
