"""More kernels for gpu.py: patterns that programs are full of beside those of gpu_kernels.py.

Reductions of several kinds, sorting, tables, chains of narrow types, strides, windows, loops that stay, and atomics.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case

import triton
import triton.language as tl

HALF, BFLOAT = torch.float16, torch.bfloat16


def by_warps(launch, *counts):
    return {f"num_warps={warps}": partial(launch, warps) for warps in counts or (4, 8)}


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(dtype)


# ---- reductions of odd extents, with places, and of several operands


@triton.jit
def odd_rows_kernel(x_ptr, out_ptr, n_rows, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_columns + columns[None, :], mask=mask, other=-float("inf"))
    tl.store(out_ptr + rows, tl.max(x, axis=1), mask=rows < n_rows)


def odd_rows(rows, columns):
    x, out = normal(rows, columns), torch.empty(rows, device=DEVICE)
    block = triton.next_power_of_2(columns)

    def launch(warps):
        odd_rows_kernel[(triton.cdiv(rows, 4),)](x, out, rows, columns, ROWS=4, BLOCK=block, num_warps=warps)

    return Case(by_warps(launch), out, lambda: x.amax(1), lambda: x.amax(1), 4 * x.numel())


@triton.jit
def odd_columns_kernel(x_ptr, out_ptr, n_rows, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_columns + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + tl.program_id(1) * n_columns + columns, tl.sum(x, axis=0), mask=columns < n_columns)


def odd_columns(rows, columns):
    x, out = normal(rows, columns), torch.empty(triton.cdiv(rows, 128), columns, device=DEVICE)

    def launch(warps):
        grid = triton.cdiv(columns, 64), triton.cdiv(rows, 128)
        odd_columns_kernel[grid](x, out, rows, columns, ROWS=128, BLOCK=64, num_warps=warps)

    def expected():
        return torch.stack([part.double().sum(0) for part in x.split(128)])

    return Case(by_warps(launch), out, expected, lambda: x.sum(0), 4 * x.numel(), 1e-3)


@triton.jit
def argmax_kernel(x_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n_columns + columns, mask=columns < n_columns, other=-float("inf"))
    tl.store(out_ptr + tl.program_id(0), tl.argmax(x, axis=0))


def argmax(rows, columns):
    x, out = normal(rows, columns), torch.empty(rows, device=DEVICE, dtype=torch.int32)

    def launch(warps):
        argmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns), num_warps=warps)

    return Case(by_warps(launch), out, lambda: x.argmax(1), lambda: x.argmax(1), 4 * x.numel())


@triton.jit
def welford_combine(mean, m2, count, other_mean, other_m2, other_count):
    delta = other_mean - mean
    total = count + other_count
    share = tl.where(total == 0.0, 0.0, other_count / total)
    return mean + delta * share, m2 + other_m2 + delta * delta * count * share, total


@triton.jit
def welford_kernel(x_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + tl.program_id(0) * n_columns + columns, mask=mask, other=0.0)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), mask.to(tl.float32)), 0, welford_combine)
    tl.store(out_ptr + tl.program_id(0), m2 / count)


def welford(rows, columns):
    x, out = normal(rows, columns), torch.empty(rows, device=DEVICE)

    def launch(warps):
        welford_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns), num_warps=warps)

    reference = partial(torch.var, x, 1, correction=0)
    return Case(by_warps(launch), out, lambda: x.double().var(1, correction=0), reference, 4 * x.numel(), 1e-4)


# ---- sorting, searching, counting


@triton.jit
def sort_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


def sort(rows, columns):
    x = normal(rows, columns)
    out = torch.empty_like(x)

    def launch(warps):
        sort_kernel[(rows,)](x, out, BLOCK=columns, num_warps=warps)

    return Case(by_warps(launch, 1, 4), out, lambda: x.sort(1)[0], lambda: x.sort(1), 8 * x.numel())


@triton.jit
def topk_kernel(x_ptr, out_ptr, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


def topk(rows, columns):
    x, out = normal(rows, columns), torch.empty(rows, 16, device=DEVICE)

    def launch(warps):
        topk_kernel[(rows,)](x, out, K=16, BLOCK=columns, num_warps=warps)

    return Case(by_warps(launch, 1, 4), out, lambda: x.topk(16)[0], lambda: x.topk(16), 4 * x.numel())


@triton.jit
def histogram_kernel(x_ptr, out_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(x, BINS))


def histogram(log2):
    x = torch.randint(0, 256, (1 << log2,), device=DEVICE, dtype=torch.int32)
    out = torch.empty(x.numel() // 4096, 256, device=DEVICE, dtype=torch.int32)

    def launch(warps):
        histogram_kernel[(out.shape[0],)](x, out, BINS=256, BLOCK=4096, num_warps=warps)

    def check(result):
        return torch.equal(result.sum(0), torch.bincount(x, minlength=256))

    return Case(by_warps(launch), out, None, partial(torch.bincount, x), 4 * x.numel(), check=check)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.gather(tl.load(x_ptr + offsets), tl.load(index_ptr + offsets), 0))


def gather(rows, columns):
    x = normal(rows, columns)
    index, out = torch.randint(0, columns, x.shape, device=DEVICE, dtype=torch.int32), torch.empty_like(x)

    def launch(warps):
        gather_kernel[(rows,)](x, index, out, BLOCK=columns, num_warps=warps)

    wide = index.long()
    return Case(by_warps(launch, 2, 4), out, lambda: x.gather(1, wide), lambda: x.gather(1, wide), 12 * x.numel())


@triton.jit
def embedding_kernel(table_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    from_rows = tl.load(index_ptr + rows)
    x = tl.load(table_ptr + from_rows[:, None] * COLUMNS + columns[None, :])
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], x)


def embedding(rows, columns):
    table = normal(50000, columns, dtype=HALF)
    index = torch.randint(0, 50000, (rows,), device=DEVICE, dtype=torch.int32)
    out = torch.empty(rows, columns, device=DEVICE, dtype=HALF)

    def launch(block, warps):
        embedding_kernel[(rows // block,)](table, index, out, ROWS=block, COLUMNS=columns, num_warps=warps)

    configs = {
        f"ROWS={block} num_warps={warps}": partial(launch, block, warps) for block, warps in ((1, 1), (4, 4), (16, 4))
    }
    reference = partial(torch.nn.functional.embedding, index, table)
    return Case(configs, out, lambda: table[index], reference, 4 * out.numel())


# ---- scans


@triton.jit
def scan_kernel(x_ptr, out_ptr, n_columns, AXIS: tl.constexpr, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    offsets = rows[:, None] * n_columns + columns[None, :]
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), axis=AXIS, reverse=REVERSE))


def scan(extent, axis, reverse):
    x = normal(extent, extent)
    out = torch.empty_like(x)

    def launch(warps):
        grid = extent // 64, extent // 64
        scan_kernel[grid](x, out, extent, AXIS=axis, REVERSE=reverse, BLOCK=64, num_warps=warps)

    tiles = x.view(extent // 64, 64, extent // 64, 64)

    def expected():
        sums = tiles.double()
        sums = sums.flip(2 * axis + 1).cumsum(2 * axis + 1).flip(2 * axis + 1) if reverse else sums.cumsum(2 * axis + 1)
        return sums.view(extent, extent)

    return Case(by_warps(launch), out, expected, partial(torch.cumsum, x, axis), 8 * x.numel(), 1e-3)


# ---- elementwise chains of narrow types


@triton.jit
def gelu_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, (x * y).to(out_ptr.dtype.element_ty), mask=mask)


def gelu(log2, dtype):
    x, y = normal(1 << log2, dtype=dtype), normal(1 << log2, dtype=dtype)
    out = torch.empty_like(x)

    def launch(block):
        gelu_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), BLOCK=block)

    def reference():
        return torch.nn.functional.gelu(x) * y

    configs = {f"BLOCK={block}": partial(launch, block) for block in (1024, 2048)}
    expected = lambda: torch.nn.functional.gelu(x.float()) * y.float()  # noqa: E731
    return Case(configs, out, expected, reference, 6 * x.numel(), 0.1)


@triton.jit
def convert_kernel(x_ptr, out_ptr, n_elements, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x * scale).to(out_ptr.dtype.element_ty), mask=mask)


def convert(log2, source, target):
    x = torch.randint(-8, 8, (1 << log2,), device=DEVICE, dtype=torch.float32).to(source)
    out = torch.empty(x.shape, device=DEVICE, dtype=target)

    def launch(block):
        convert_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), 0.5, BLOCK=block)

    def check(result):
        return torch.equal(result.float(), (x.float() * 0.5).to(target).float())

    configs = {f"BLOCK={block}": partial(launch, block) for block in (1024, 2048, 4096)}
    moved = x.numel() * (x.element_size() + out.element_size())
    return Case(configs, out, None, lambda: x.to(target), moved, check=check)


# ---- strides, windows


@triton.jit
def window_kernel(x_ptr, out_ptr, n_rows, n_columns, x_stride, out_stride, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * 32 + tl.arange(0, 32)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=mask)
    tl.store(out_ptr + rows[:, None] * out_stride + columns[None, :], x, mask=mask)


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, n_rows, n_columns, x_stride, out_stride, BLOCK: tl.constexpr):
    place = (tl.program_id(0) * 32, tl.program_id(1) * BLOCK)
    x = tl.make_block_ptr(x_ptr, (n_rows, n_columns), (x_stride, 1), place, (32, BLOCK), (1, 0))
    out = tl.make_block_ptr(out_ptr, (n_rows, n_columns), (out_stride, 1), place, (32, BLOCK), (1, 0))
    tl.store(out, tl.load(x, boundary_check=(0, 1)), boundary_check=(0, 1))


def window(kernel, rows, columns, stride, dtype):
    x, out = normal(rows, stride, dtype=dtype), torch.empty(rows, columns, device=DEVICE, dtype=dtype)

    def launch(warps):
        grid = triton.cdiv(rows, 32), triton.cdiv(columns, 128)
        kernel[grid](x, out, rows, columns, stride, columns, BLOCK=128, num_warps=warps)

    reference = lambda: out.copy_(x[:, :columns])  # noqa: E731
    return Case(by_warps(launch), out, lambda: x[:, :columns], reference, 2 * out.numel() * out.element_size())


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, n_heads, HEADS: tl.constexpr, HALF_SIZE: tl.constexpr):
    token = tl.program_id(0)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    columns = tl.arange(0, HALF_SIZE)
    cos = tl.load(cos_ptr + token * HALF_SIZE + columns)[None, :]
    sin = tl.load(sin_ptr + token * HALF_SIZE + columns)[None, :]
    offsets = (token * n_heads + heads)[:, None] * (2 * HALF_SIZE) + columns[None, :]
    mask = (heads < n_heads)[:, None]
    a = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + offsets + HALF_SIZE, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (a * cos - b * sin).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + offsets + HALF_SIZE, (b * cos + a * sin).to(out_ptr.dtype.element_ty), mask=mask)


def rotary(tokens, heads):
    x = normal(tokens, heads, 128, dtype=BFLOAT)
    angles = torch.rand(tokens, 64, device=DEVICE) * 6
    cos, sin, out = angles.cos(), angles.sin(), torch.empty_like(x)

    def launch(warps):
        grid = tokens, triton.cdiv(heads, 16)
        rotary_kernel[grid](x, cos, sin, out, heads, HEADS=16, HALF_SIZE=64, num_warps=warps)

    def reference():
        a, b = x[..., :64], x[..., 64:]
        c, s = cos[:, None], sin[:, None]
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    return Case(by_warps(launch, 2, 4), out, reference, reference, 4 * x.numel(), 5e-2)


# ---- rows: in one piece, in a loop, in programs that stay


@triton.jit
def rms_norm_kernel(x_ptr, out_ptr, weight_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_columns + eps)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_columns + columns, (x * scale * weight).to(out_ptr.dtype.element_ty), mask=mask)


def rms_norm(rows, columns):
    x, weight = normal(rows, columns, dtype=BFLOAT), normal(columns, dtype=BFLOAT)
    out = torch.empty_like(x)

    def launch(warps):
        block = triton.next_power_of_2(columns)
        rms_norm_kernel[(rows,)](x, out, weight, columns, 1e-6, BLOCK=block, num_warps=warps)

    def reference():
        return torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6)

    return Case(by_warps(launch, 2, 4, 8), out, reference, reference, 4 * x.numel(), 0.2)


@triton.jit
def cross_entropy_kernel(x_ptr, label_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top, total = -float("inf"), 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_columns + columns, mask=columns < n_columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    own = tl.load(x_ptr + row * n_columns + tl.load(label_ptr + row)).to(tl.float32)
    tl.store(out_ptr + row, top + tl.log(total) - own)


def cross_entropy(rows, columns):
    x, out = normal(rows, columns, dtype=BFLOAT), torch.empty(rows, device=DEVICE)
    labels = torch.randint(0, columns, (rows,), device=DEVICE)

    def launch(block, warps):
        cross_entropy_kernel[(rows,)](x, labels, out, columns, BLOCK=block, num_warps=warps)

    configs = {
        f"BLOCK={block} num_warps={warps}": partial(launch, block, warps) for block, warps in ((4096, 4), (8192, 8))
    }
    expected = lambda: torch.nn.functional.cross_entropy(x.double(), labels, reduction="none")  # noqa: E731
    reference = partial(torch.nn.functional.cross_entropy, x, labels, reduction="none")
    return Case(configs, out, expected, reference, 2 * x.numel(), 1e-2)


@triton.jit
def staying_softmax_kernel(out_ptr, x_ptr, n_rows, n_columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=-float("inf"))
        powers = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * n_columns + columns, powers / tl.sum(powers, axis=0), mask=mask)


def staying_softmax(rows, columns):
    x, block = normal(rows, columns), triton.next_power_of_2(columns)
    out = torch.empty_like(x)

    def launch(programs, stages):
        staying_softmax_kernel[(132 * programs,)](out, x, rows, columns, BLOCK=block, STAGES=stages, num_warps=8)

    counts = (2, 4) if block > 4096 else (4, 8)
    configs = {f"programs={n} stages={k}": partial(launch, n, k) for n in counts for k in (1, 2, 4)}
    reference = partial(torch.softmax, x, 1)
    return Case(configs, out, reference, reference, 8 * x.numel(), 1e-5)


@triton.jit
def staying_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(tl.program_id(0) * BLOCK, n_elements, step, num_stages=STAGES):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


def staying_add(log2):
    x, y = normal(1 << log2), normal(1 << log2)
    out = torch.empty_like(x)

    def launch(programs, stages):
        staying_add_kernel[(132 * programs,)](x, y, out, x.numel(), BLOCK=1024, STAGES=stages)

    configs = {f"programs={n} stages={k}": partial(launch, n, k) for n in (8, 16) for k in (1, 3)}
    return Case(configs, out, lambda: x + y, partial(torch.add, x, y), 12 * x.numel())


# ---- atomics and locks


def all_alike(each, result):
    """Has every element got `each` from every launch, however many those were?"""
    first = result.flatten()[0].item()
    right = bool((result == first).all()) and first > 0 and first % each == 0
    result.zero_()
    return right


@triton.jit
def scatter_add_kernel(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + tl.load(index_ptr + offsets), tl.load(x_ptr + offsets))


def scatter_add(log2):
    x = torch.randint(-4, 4, (1 << log2,), device=DEVICE).float()
    index = torch.randint(0, 1 << 20, x.shape, device=DEVICE, dtype=torch.int32)
    out, wide = torch.zeros(1 << 20, device=DEVICE), index.long()
    sums = torch.zeros_like(out).index_add_(0, wide, x)

    def launch(block):
        scatter_add_kernel[(x.numel() // block,)](x, index, out, BLOCK=block)

    def check(result):  # launched so often that only whole multiples of the sums are right
        right = torch.equal(result * sums.abs().max(), sums * result.abs().max())
        result.zero_()
        return right

    configs = {f"BLOCK={block}": partial(launch, block) for block in (512, 1024)}
    other = torch.zeros_like(out)
    return Case(configs, out, None, lambda: other.index_add_(0, wide, x), 12 * x.numel(), check=check)


@triton.jit
def row_add_kernel(x_ptr, out_ptr, n_rows, n_columns, BLOCK: tl.constexpr):
    """Adds every row to one of n_rows."""
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * n_columns + columns)
    tl.atomic_add(out_ptr + (row % n_rows) * n_columns + columns, x, sem="relaxed")


def row_add(rows, columns, dtype):
    x = torch.ones(rows, columns, device=DEVICE, dtype=dtype)
    out = torch.zeros(rows // 4, columns, device=DEVICE, dtype=dtype)

    def launch(warps):
        row_add_kernel[(rows, columns // 1024)](x, out, rows // 4, columns, BLOCK=1024, num_warps=warps)

    sizes = x.element_size() * (x.numel() + 2 * out.numel())
    other, parts = torch.zeros_like(out), x.view(4, rows // 4, columns)
    return Case(by_warps(launch), out, None, lambda: other.add_(parts.sum(0)), sizes, check=partial(all_alike, 4))


@triton.jit
def locked_kernel(x_ptr, out_ptr, lock_ptr, n_columns, LOCKS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    row, group = tl.program_id(0), tl.program_id(0) % LOCKS
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0.0)
    out = out_ptr + group * n_columns + columns
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out, mask=mask) + x, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


def locked(rows, columns, locks):
    x, out = torch.ones(rows, columns, device=DEVICE), torch.zeros(locks, columns, device=DEVICE)
    lock = torch.zeros(locks, device=DEVICE, dtype=torch.int32)

    def launch(warps):
        block = triton.next_power_of_2(columns)
        locked_kernel[(rows,)](x, out, lock, columns, LOCKS=locks, BLOCK=block, num_warps=warps)

    check = partial(all_alike, rows // locks)
    return Case(by_warps(launch), out, None, partial(torch.sum, x, 0), 4 * x.numel(), check=check)


def _cases():
    fp8 = torch.float8_e4m3fn
    yield "odd row maxima 8191x1023 fp32", partial(odd_rows, 8191, 1023)
    yield "odd column sums 8191x1023 fp32", partial(odd_columns, 8191, 1023)
    yield "argmax 8192x4096 fp32", partial(argmax, 8192, 4096)
    yield "welford 8192x4096 fp32", partial(welford, 8192, 4096)
    yield "sort 8192x1024 fp32", partial(sort, 8192, 1024)
    yield "topk 8192x1024 fp32", partial(topk, 8192, 1024)
    yield "histogram 2^24 int32", partial(histogram, 24)
    yield "gather 8192x1024 fp32", partial(gather, 8192, 1024)
    yield "embedding 65536x512 fp16", partial(embedding, 65536, 512)
    yield "scan of columns 4096x4096 fp32", partial(scan, 4096, 0, False)
    yield "reverse scan of rows 4096x4096 fp32", partial(scan, 4096, 1, True)
    yield "gelu and product 2^25 fp16", partial(gelu, 25, HALF)
    yield "gelu and product 2^25 bf16", partial(gelu, 25, BFLOAT)
    for source, target, names in (
        (torch.float32, BFLOAT, "fp32-bf16"),
        (HALF, fp8, "fp16-fp8"),
        (fp8, BFLOAT, "fp8-bf16"),
        (torch.int8, HALF, "int8-fp16"),
    ):
        yield f"conversion 2^26 {names}", partial(convert, 26, source, target)
    yield "window 8192x4000 fp16", partial(window, window_kernel, 8192, 4000, 4104, HALF)
    yield "odd window 8192x4001 fp32", partial(window, window_kernel, 8192, 4001, 4103, torch.float32)
    yield "block pointer 8192x4000 fp16", partial(window, block_pointer_kernel, 8192, 4000, 4104, HALF)
    yield "rotary 8192x32x128 bf16", partial(rotary, 8192, 32)
    yield "rms norm 8192x4096 bf16", partial(rms_norm, 8192, 4096)
    yield "cross entropy 4096x32000 bf16", partial(cross_entropy, 4096, 32000)
    yield "staying softmax 8192x1024 fp32", partial(staying_softmax, 8192, 1024)
    yield "staying softmax 4096x12672 fp32", partial(staying_softmax, 4096, 12672)
    yield "staying vector add 2^26 fp32", partial(staying_add, 26)
    yield "scatter add 2^22 fp32", partial(scatter_add, 22)
    yield "row add 8192x4096 fp32", partial(row_add, 8192, 4096, torch.float32)
    yield "row add 8192x4096 fp16", partial(row_add, 8192, 4096, HALF)
    yield "locked row sums 4096x1024 fp32", partial(locked, 4096, 1024, 64)


CASES = dict(_cases())
