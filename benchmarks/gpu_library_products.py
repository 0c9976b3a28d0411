"""Kernels for gpu.py as inference and training libraries write them, of products: quantised weights, experts, adapters.

Tiles, warps and stages are those that the libraries start with for such extents, or find by tuning.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case, by_tile
from gpu_library_rows import BFLOAT, FLOAT, FP8, HALF, close_to, random

import triton
import triton.language as tl

INT8, INT32 = torch.int8, torch.int32


def empty(*shape, dtype=HALF):
    return torch.empty(*shape, device=DEVICE, dtype=dtype)


def integers(low, high, *shape, dtype=INT32):
    return torch.randint(low, high, shape, device=DEVICE, dtype=dtype)


@triton.jit
def tile_of(program, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BAND: tl.constexpr):
    """Row and column of a program's tile, BAND tiles down before the next one across."""
    tiles_down, tiles_across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    first = program // (BAND * tiles_across) * BAND
    height = min(tiles_down - first, BAND)
    inside = program % (BAND * tiles_across)
    return first + inside % height, inside // height


# ---- weights of few bits


@triton.jit
def packed_columns_kernel(
    a_ptr, weight_ptr, zero_ptr, scale_ptr, out_ptr, m, n, k, group,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Eight columns' weights of 4 bits in a word, ordered 0 2 4 6 1 3 5 7, zeros likewise; K is shared by PARTS."""
    program, part = tl.program_id(0), tl.program_id(1)
    tiles_across = tl.cdiv(n, COLUMNS)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (DEPTH * (COLUMNS // 8), 8)).reshape(DEPTH, COLUMNS)
    rows = program // tiles_across * ROWS + tl.arange(0, ROWS)
    words = program % tiles_across * (COLUMNS // 8) + tl.arange(0, COLUMNS // 8)
    columns = program % tiles_across * COLUMNS + tl.arange(0, COLUMNS)
    depth = part * DEPTH + tl.arange(0, DEPTH)
    a_ptrs = a_ptr + k * rows[:, None] + depth[None, :]
    b_ptrs = weight_ptr + depth[:, None] * (n // 8) + words[None, :]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH * PARTS)):
        inside = depth < k
        a = tl.load(a_ptrs, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=inside[:, None] & (words < n // 8)[None, :], other=0)
        b = tl.interleave(b, b)
        b = tl.interleave(b, b)
        b = tl.interleave(b, b)
        in_group = (DEPTH * PARTS * step + part * DEPTH) // group + tl.arange(0, 1)
        zeros = tl.load(
            zero_ptr + in_group[:, None] * (n // 8) + words[None, :], mask=(words < n // 8)[None, :], other=0
        )
        zeros = tl.interleave(zeros, zeros)
        zeros = tl.interleave(zeros, zeros)
        zeros = tl.interleave(zeros, zeros)
        zeros = tl.broadcast_to(zeros, (DEPTH, COLUMNS))
        scales = tl.load(scale_ptr + in_group[:, None] * n + columns[None, :], mask=(columns < n)[None, :], other=0.0)
        scales = tl.broadcast_to(scales, (DEPTH, COLUMNS))
        b = ((b >> shifts) & 0xF) - ((zeros >> shifts) & 0xF)
        sums = tl.dot(a, (b * scales).to(out_ptr.dtype.element_ty), sums, out_dtype=tl.float32)
        depth += DEPTH * PARTS
        a_ptrs += DEPTH * PARTS
        b_ptrs += DEPTH * PARTS * (n // 8)
    out = out_ptr + part * m * n + rows[:, None] * n + columns[None, :]
    tl.store(out, sums.to(out_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def packed_columns(m, n, k, parts=8, group=128):
    a, scales = random(m, k, dtype=HALF), torch.rand(k // group, n, device=DEVICE).to(HALF)
    weights, zeros = integers(0, 16, k, n), integers(0, 16, k // group, n)
    order = (0, 2, 4, 6, 1, 3, 5, 7)

    def pack(values):
        packed = torch.zeros(values.shape[0], n // 8, device=DEVICE, dtype=INT32)
        for place, column in enumerate(order):
            packed |= values[:, column::8] << 4 * place
        return packed

    packed = pack(weights), pack(zeros)
    wide = (weights - zeros.repeat_interleave(group, 0)).to(HALF) * scales.repeat_interleave(group, 0)
    out = empty(parts, m, n)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "PARTS": parts}
        grid = triton.cdiv(m, rows) * triton.cdiv(n, columns), parts
        arguments = a, *packed, scales, out, m, n, k, group
        packed_columns_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    expected = a.float() @ wide.float()

    def check(result):
        return close_to(expected)(result.float().sum(0))

    tiles = [(16, 32, 32, 4, 3), (32, 32, 32, 4, 3), (16, 64, 64, 4, 3), (16, 128, 64, 4, 3)]
    moved = 2 * m * k + n * k // 2 + 2 * out.numel()
    return Case(by_tile(launch, tiles), out, None, lambda: a @ wide, moved, check=check)


@triton.jit
def packed_depth_kernel(
    a_ptr, weight_ptr, scale_ptr, zero_ptr, group_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """Eight weights of 4 bits along K in a word, zeros packed along N, and a table that says each k's group."""
    down, across = tile_of(tl.program_id(0), m, n, ROWS, COLUMNS, BAND)
    rows, columns = down * ROWS + tl.arange(0, ROWS), across * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = weight_ptr + (depth[:, None] // 8) * n + columns[None, :]
    group_ptrs = group_ptr + depth
    shifts = depth % 8 * 4
    zero_shifts = columns % 8 * 4
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for _ in range(0, tl.cdiv(k, DEPTH)):
        group = tl.load(group_ptrs)
        scales = tl.load(scale_ptr + group[:, None] * n + columns[None, :])
        zeros = tl.load(zero_ptr + group[:, None] * (n // 8) + (columns // 8)[None, :])
        zeros = (zeros >> zero_shifts[None, :]) & 15
        a = tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0)
        b = (tl.load(b_ptrs) >> shifts[:, None]) & 15
        sums += tl.dot(a, ((b - zeros) * scales).to(a.dtype))
        a_ptrs += DEPTH
        b_ptrs += DEPTH // 8 * n
        group_ptrs += DEPTH
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16), mask=rows[:, None] < m)


def packed_depth(m, n, k, size=128):
    a, scales = random(m, k, dtype=HALF), torch.rand(k // size, n, device=DEVICE).to(HALF)
    weights, zeros = integers(0, 16, k, n), integers(0, 16, k // size, n)
    packed, packed_zeros = (
        torch.zeros(*shape, device=DEVICE, dtype=INT32) for shape in ((k // 8, n), (k // size, n // 8))
    )
    for i in range(8):
        packed |= weights[i::8] << 4 * i
        packed_zeros |= zeros[:, i::8] << 4 * i
    group = torch.arange(k, device=DEVICE, dtype=INT32) // size
    wide = (weights - zeros.repeat_interleave(size, 0)).to(HALF) * scales.repeat_interleave(size, 0)
    out = empty(m, n)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8}
        grid = (triton.cdiv(m, rows) * (n // columns),)
        arguments = a, packed, scales, packed_zeros, group, out, m, n, k
        packed_depth_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    tiles = (
        [(16, 64, 64, 4, 4), (16, 32, 64, 2, 4)]
        if m <= 16
        else [(64, 128, 32, 4, 4), (128, 64, 32, 8, 3), (64, 64, 32, 4, 4)]
    )
    check = close_to(a.float() @ wide.float())
    return Case(by_tile(launch, tiles), out, None, lambda: a @ wide, 2 * m * k + n * k // 2 + 2 * m * n, check=check)


@triton.jit
def scaled_rows_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, bias_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Bytes or 8-bit floats, a scale for each row of a and each column of b, which lies along K, and a bias."""
    down, across = tile_of(tl.program_id(0), m, n, ROWS, COLUMNS, BAND)
    rows = (down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = (across * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    depth = tl.arange(0, DEPTH).to(tl.int64)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + columns[None, :] * k + depth[:, None]
    sums = tl.zeros((ROWS, COLUMNS), dtype=SUM)
    for _ in range(0, tl.cdiv(k, DEPTH)):
        a = tl.load(a_ptrs, mask=(rows < m)[:, None] & (depth < k)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(depth < k)[:, None] & (columns < n)[None, :], other=0.0)
        sums = tl.dot(a, b, sums, out_dtype=SUM)
        depth += DEPTH
        a_ptrs += DEPTH
        b_ptrs += DEPTH
    a_scale = tl.load(a_scale_ptr + rows[:, None], mask=rows[:, None] < m, other=0.0)
    b_scale = tl.load(b_scale_ptr + columns[:, None], mask=columns[:, None] < n, other=0.0)
    out = a_scale * sums.to(tl.float32)
    out = (b_scale.T * out).to(out_ptr.dtype.element_ty)
    out += tl.load(bias_ptr + columns, mask=columns < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], out, mask=(rows < m)[:, None] & (columns < n)[None, :])


def scaled_rows(m, n, k, dtype):
    a = integers(-128, 128, m, k, dtype=INT8) if dtype == INT8 else random(m, k, dtype=dtype)
    b = integers(-128, 128, n, k, dtype=INT8) if dtype == INT8 else random(n, k, dtype=dtype)
    a_scale, b_scale = torch.rand(m, device=DEVICE) + 0.1, torch.rand(n, device=DEVICE) + 0.1
    bias, out = random(n), empty(m, n, dtype=BFLOAT)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8}
        sizes["SUM"] = tl.int32 if dtype == INT8 else tl.float32
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        arguments = a, b, a_scale, b_scale, bias, out, m, n, k
        scaled_rows_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        if dtype == INT8:
            return torch._int_mm(a, b.T) * a_scale[:, None] * b_scale + bias
        return (a.to(BFLOAT) @ b.T.to(BFLOAT)) * a_scale[:, None] * b_scale + bias

    tiles = [(128, 128, 128, 8, 4), (128, 256, 128, 8, 3), (128, 128, 128, 4, 3), (64, 128, 128, 4, 4)]
    wide = torch.float64 if dtype == INT8 else FLOAT
    expected = (a.to(wide) @ b.to(wide).T) * a_scale[:, None] * b_scale + bias
    return Case(by_tile(launch, tiles), out, None, reference, m * k + n * k + 2 * m * n, check=close_to(expected, 1e-2))


@triton.jit
def block_scaled_kernel(
    a_ptr, b_ptr, out_ptr, a_scale_ptr, b_scale_ptr, m, n, k, group_n, group_k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """8-bit floats with scales for groups of a's rows and for blocks of b, whose extents are known at run time."""
    down, across = tile_of(tl.program_id(0), m, n, ROWS, COLUMNS, BAND)
    rows = (down * ROWS + tl.arange(0, ROWS)) % m
    columns = (across * COLUMNS + tl.arange(0, COLUMNS)) % n
    depth = tl.arange(0, DEPTH)
    groups = tl.cdiv(k, group_k)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] + columns[None, :] * k
    a_scale_ptrs = a_scale_ptr + rows * groups
    b_scale_ptrs = b_scale_ptr + columns // group_n * groups
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH)):
        a = tl.load(a_ptrs, mask=depth[None, :] < k - step * DEPTH, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < k - step * DEPTH, other=0.0)
        group = step * DEPTH // group_k
        a_scale = tl.load(a_scale_ptrs + group)
        b_scale = tl.load(b_scale_ptrs + group)
        sums += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += DEPTH
        b_ptrs += DEPTH
    rows = down * ROWS + tl.arange(0, ROWS)
    columns = across * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(out_ptr.dtype.element_ty), mask=mask)


def block_scaled(m, n, k):
    a, b = random(m, k, dtype=FP8), random(n, k, dtype=FP8)
    a_scale = torch.rand(m, k // 128, device=DEVICE) + 0.5
    b_scale = torch.rand(n // 128, k // 128, device=DEVICE) + 0.5
    out = empty(m, n, dtype=BFLOAT)
    wide = [
        (a.float() * a_scale.repeat_interleave(128, 1)).to(BFLOAT),
        (b.float() * b_scale.repeat_interleave(128, 0).repeat_interleave(128, 1)).to(BFLOAT),
    ]

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 32}
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        arguments = a, b, out, a_scale, b_scale, m, n, k, 128, 128
        block_scaled_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(64, 128, 128, 4, 3), (64, 64, 128, 4, 3), (16, 64, 128, 4, 4), (64, 128, 128, 4, 4)]
    check = close_to(wide[0].float() @ wide[1].float().T, 1e-2)
    return Case(by_tile(launch, tiles), out, None, lambda: wide[0] @ wide[1].T, m * k + n * k + 2 * m * n, check=check)


# ---- experts and groups


@triton.jit
def routed_kernel(
    a_ptr, b_ptr, out_ptr, scale_ptr, zero_ptr, weight_ptr, token_ptr, expert_ptr, end_ptr, n, k, tokens,
    TOP: tl.constexpr, GROUP: tl.constexpr, WEIGHTED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """Sorted rows, each block for one expert. b is (experts, n, k); with GROUP, 4-bit weights two along K to a byte."""
    end = tl.load(end_ptr)
    down, across = tile_of(tl.program_id(0), end, n, ROWS, COLUMNS, BAND)
    if down * ROWS >= end:
        return
    places = down * ROWS + tl.arange(0, ROWS).to(tl.int64)
    token = tl.load(token_ptr + places).to(tl.int64)
    real = token < tokens
    expert = tl.load(expert_ptr + down).to(tl.int64)
    columns = (across * COLUMNS + tl.arange(0, COLUMNS).to(tl.int64)) % n
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + token[:, None] // TOP * k + depth[None, :]
    if GROUP:
        b_ptrs = b_ptr + expert * n * (k // 2) + (depth[:, None] // 2) + columns[None, :] * (k // 2)
        shifts = (depth[:, None] % 2) * 4
    else:
        b_ptrs = b_ptr + expert * n * k + depth[:, None] + columns[None, :] * k
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH)):
        a = tl.load(a_ptrs, mask=real[:, None] & (depth[None, :] < k - step * DEPTH), other=0.0)
        if GROUP:
            b = (tl.load(b_ptrs) >> shifts) & 0xF
            group = (depth[:, None] + DEPTH * step) // GROUP
            scale = tl.load(scale_ptr + expert * n * (k // GROUP) + columns[None, :] * (k // GROUP) + group).to(
                tl.float32
            )
            b = ((b.to(tl.float32) - 8) * scale).to(a.dtype)
            sums = tl.dot(a, b, acc=sums)
            b_ptrs += DEPTH // 2
        else:
            b = tl.load(b_ptrs, mask=depth[:, None] < k - step * DEPTH, other=0.0)
            sums += tl.dot(a, b)
            b_ptrs += DEPTH
        a_ptrs += DEPTH
    if WEIGHTED:
        sums *= tl.load(weight_ptr + token, mask=real, other=0)[:, None]
    columns = across * COLUMNS + tl.arange(0, COLUMNS)
    out = out_ptr + token[:, None] * n + columns[None, :]
    tl.store(out, sums.to(out_ptr.dtype.element_ty), mask=real[:, None] & (columns[None, :] < n))


def routed(tokens, n, k, experts, group, top=2, rows=64):
    """Tokens with `top` random experts each, whose rows are sorted and padded to blocks."""
    a, weights = random(tokens, k), torch.rand(tokens * top, device=DEVICE)
    chosen = torch.rand(tokens, experts, device=DEVICE).topk(top, 1)[1].flatten()
    blocks, owners = [], []
    for expert in range(experts):
        own = (chosen == expert).nonzero().flatten().to(INT32)
        count = triton.cdiv(len(own), rows)
        padded = torch.full((count * rows,), tokens * top, device=DEVICE, dtype=INT32)
        padded[: len(own)] = own
        blocks, owners = [*blocks, padded], [*owners, *[expert] * count]
    order, owner = torch.cat(blocks), torch.tensor(owners, device=DEVICE, dtype=INT32)
    end = torch.tensor([len(order)], device=DEVICE, dtype=INT32)
    scales = torch.rand(experts, n, k // max(group, 1), device=DEVICE).to(BFLOAT) if group else None
    if group:
        codes = integers(0, 16, experts, n, k, dtype=torch.uint8)
        b = codes[..., ::2] | codes[..., 1::2] << 4
        wide = ((codes.float() - 8) * scales.float().repeat_interleave(group, 2)).to(BFLOAT)
    else:
        b = wide = random(experts, n, k)
    out = empty(tokens * top, n, dtype=BFLOAT)
    expected = empty(tokens * top, n, dtype=FLOAT)
    for expert in range(experts):
        own = (chosen == expert).nonzero().flatten()
        expected[own] = a[own // top].float() @ wide[expert].float().T * weights[own, None]

    def launch(columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 1 if rows < 64 else 8}
        grid = (len(order) // rows * triton.cdiv(n, columns),)
        arguments = a, b, out, scales, None, weights, order, owner, end, n, k, tokens * top
        routed_kernel[grid](
            *arguments, TOP=top, GROUP=group, WEIGHTED=True, **sizes, num_warps=warps, num_stages=stages
        )

    tiles = [(64, 64, 4, 4), (128, 64, 4, 3), (64, 32, 4, 4), (128, 64, 8, 3)]
    moved = 2 * a.numel() + b.numel() * b.itemsize + 2 * out.numel()
    return Case(by_tile(launch, tiles), out, None, lambda: a @ wide[0].T, moved, check=close_to(expected, 1e-2))


@triton.jit
def grouped_kernel(
    a_ptr, b_ptr, out_ptr, end_ptr, n, k, groups,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Programs that stay and go through the tiles of all groups: rows up to end_ptr[i] times b[i], which is (n, k)."""
    tile, done, first = tl.program_id(0), 0, 0
    across = tl.cdiv(n, COLUMNS)
    for group in range(groups):
        end = tl.load(end_ptr + group)
        count = tl.cdiv(end - first, ROWS) * across
        while tile >= done and tile < done + count:
            inside = tile - done
            rows = first + inside // across * ROWS + tl.arange(0, ROWS)
            columns = inside % across * COLUMNS + tl.arange(0, COLUMNS)
            depth = tl.arange(0, DEPTH)
            a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
            b_ptrs = b_ptr + group.to(tl.int64) * n * k + columns[None, :] * k + depth[:, None]
            sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
            for _ in range(0, k, DEPTH):
                a = tl.load(a_ptrs, mask=rows[:, None] < end, other=0.0)
                b = tl.load(b_ptrs, mask=columns[None, :] < n, other=0.0)
                sums = tl.dot(a, b, sums)
                a_ptrs += DEPTH
                b_ptrs += DEPTH
            mask = (rows < end)[:, None] & (columns < n)[None, :]
            tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(out_ptr.dtype.element_ty), mask=mask)
            tile += tl.num_programs(0)
        done += count
        first = end


def grouped(rows, n, k, groups):
    a, b, out = random(rows, k), random(groups, n, k), empty(rows, n, dtype=BFLOAT)
    cuts = torch.randperm(rows - 1)[: groups - 1].sort()[0] + 1
    ends = torch.cat((cuts, torch.tensor([rows]))).to(INT32).to(DEVICE)
    places = [0, *ends.tolist()]
    expected = torch.cat(
        [a[i:j].float() @ b[g].float().T for g, (i, j) in enumerate(zip(places, places[1:], strict=False))]
    )

    def launch(down, across, depth, warps, stages, programs):
        sizes = {"ROWS": down, "COLUMNS": across, "DEPTH": depth}
        grouped_kernel[(132 * programs,)](a, b, out, ends, n, k, groups, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(128, 128, 64, 8, 3, 1), (64, 128, 64, 4, 4, 1), (128, 256, 64, 8, 3, 1), (128, 128, 64, 4, 3, 2)]
    moved = 2 * (a.numel() + b.numel() + out.numel())
    return Case(by_tile(launch, tiles), out, None, lambda: a @ b[0].T, moved, check=close_to(expected, 1e-2))


# ---- adapters of low rank


@triton.jit
def shrink_kernel(
    x_ptr, a_ptr, out_ptr, token_ptr, adapter_ptr, start_ptr, count_ptr, n, k, scale,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """x times each token's adapter (n, k), where n is the rank; K is shared by PARTS programs that add."""
    slot = tl.program_id(1)
    adapter = tl.load(adapter_ptr + slot)
    if adapter == -1:
        return
    part, down = tl.program_id(0) % PARTS, tl.program_id(0) // PARTS
    count = tl.load(count_ptr + slot)
    if down * ROWS >= count:
        return
    start = tl.load(start_ptr + slot) + down * ROWS
    length = min(ROWS, count - down * ROWS)
    inside = tl.arange(0, ROWS) % length
    token = tl.load(token_ptr + start + inside)
    columns = tl.max_contiguous(tl.multiple_of(tl.arange(0, COLUMNS) % n, COLUMNS), COLUMNS)
    depth = part * DEPTH + tl.arange(0, DEPTH)
    x_ptrs = x_ptr + token[:, None] * k + depth[None, :]
    a_ptrs = a_ptr + adapter * n * k + columns[None, :] * k + depth[:, None]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH * PARTS)):
        left = k - step * DEPTH * PARTS
        x = tl.load(x_ptrs, mask=depth[None, :] < left, other=0.0)
        a = tl.load(a_ptrs, mask=depth[:, None] < left, other=0.0)
        sums += tl.dot(x, a)
        x_ptrs += DEPTH * PARTS
        a_ptrs += DEPTH * PARTS
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    out = out_ptr + token[:, None] * n + columns[None, :]
    tl.atomic_add(out, sums * scale, mask=(rows < length)[:, None] & (columns < n)[None, :], sem="relaxed")


@triton.jit
def expand_kernel(
    x_ptr, b_ptr, out_ptr, token_ptr, adapter_ptr, start_ptr, count_ptr, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Products of that with the other factor (n, k), where k is the rank, all in one step."""
    slot = tl.program_id(1)
    adapter = tl.load(adapter_ptr + slot)
    if adapter == -1:
        return
    across = tl.cdiv(n, COLUMNS)
    tile, down = tl.program_id(0) % across, tl.program_id(0) // across
    count = tl.load(count_ptr + slot)
    if down * ROWS >= count:
        return
    start = tl.load(start_ptr + slot) + down * ROWS
    length = min(ROWS, count - down * ROWS)
    inside = tl.arange(0, ROWS) % length
    token = tl.load(token_ptr + start + inside)
    columns = tile * COLUMNS + tl.arange(0, COLUMNS)
    near = tl.max_contiguous(tl.multiple_of(columns % n, COLUMNS), COLUMNS)
    depth = tl.arange(0, DEPTH)
    x = tl.load(x_ptr + token[:, None] * k + depth[None, :], mask=depth[None, :] < k, other=0.0)
    b = tl.load(b_ptr + adapter * n * k + near[None, :] * k + depth[:, None], mask=depth[:, None] < k, other=0.0)
    out = tl.dot(x.to(b.dtype), b).to(out_ptr.dtype.element_ty)
    rows = tl.arange(0, ROWS)
    mask = (rows < length)[:, None] & (columns < n)[None, :]
    tl.store(out_ptr + token[:, None] * n + columns[None, :], out, mask=mask)


def adapters(expanding, tokens, n, k, count):
    x = random(tokens, k, dtype=FLOAT if expanding else BFLOAT)
    factor = random(count, n, k)
    owner = integers(0, count, tokens)
    order = owner.argsort(stable=True).to(INT32)
    counts = torch.bincount(owner, minlength=count).to(INT32)
    starts = (counts.cumsum(0) - counts).to(INT32)
    slots = torch.arange(count, device=DEVICE, dtype=INT32)
    expected = torch.einsum("tk,tnk->tn", x.to(BFLOAT).float(), factor.float()[owner.long()])
    out = torch.zeros(tokens, n, device=DEVICE, dtype=BFLOAT if expanding else FLOAT)
    arguments = x, factor, out, order, slots, starts, counts, n, k

    def shrink(rows, columns, depth, warps, stages, parts):
        out.zero_()
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "PARTS": parts}
        grid = parts * triton.cdiv(tokens, rows), count
        shrink_kernel[grid](*arguments, 1.0, **sizes, num_warps=warps, num_stages=stages)

    def expand(rows, columns, warps, stages):
        grid = triton.cdiv(n, columns) * triton.cdiv(tokens, rows), count
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": triton.next_power_of_2(k)}
        expand_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    small = tokens <= 128
    shrinking = (
        [(32, 16, 256, 4, 2, 64), (16, 16, 128, 4, 3, 32)] if small else [(32, 16, 64, 4, 2, 8), (64, 16, 128, 4, 3, 8)]
    )
    configs = by_tile(expand, [(64, 128, 4, 2), (16, 128, 4, 2)]) if expanding else by_tile(shrink, shrinking)
    moved = x.numel() * x.itemsize + 2 * factor.numel() + out.numel() * out.itemsize
    return Case(configs, out, None, lambda: x.to(BFLOAT) @ factor[0].T, moved, check=close_to(expected, 1e-2))


# ---- templates of compilers, and other ways to share the work


@triton.jit
def template_kernel(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, a_row, b_row,
    EVEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """relu(a b + bias) as a graph compiler writes it: indices taken modulo the extents, K counted in steps."""
    down, across = tile_of(tl.program_id(0), m, n, ROWS, COLUMNS, BAND)
    rows = down * ROWS + tl.arange(0, ROWS)
    columns = across * COLUMNS + tl.arange(0, COLUMNS)
    near_rows = tl.max_contiguous(tl.multiple_of(rows % m, ROWS), ROWS)
    near_columns = tl.max_contiguous(tl.multiple_of(columns % n, COLUMNS), COLUMNS)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH)):
        inner = step * DEPTH + depth
        if EVEN:
            a = tl.load(a_ptr + near_rows[:, None] * a_row + inner[None, :])
            b = tl.load(b_ptr + inner[:, None] * b_row + near_columns[None, :])
        else:
            a = tl.load(a_ptr + near_rows[:, None] * a_row + inner[None, :], mask=inner[None, :] < k, other=0.0)
            b = tl.load(b_ptr + inner[:, None] * b_row + near_columns[None, :], mask=inner[:, None] < k, other=0.0)
        sums += tl.dot(a, b, allow_tf32=True, out_dtype=tl.float32)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    places = columns[None, :] + n * rows[:, None]
    bias = tl.load(bias_ptr + tl.broadcast_to(columns[None, :], [ROWS, COLUMNS]), mask, eviction_policy="evict_last")
    out = tl.maximum(sums + bias.to(tl.float32), 0)
    tl.store(out_ptr + tl.broadcast_to(places, [ROWS, COLUMNS]), out.to(out_ptr.dtype.element_ty), mask)


def template(m, n, k):
    a, b, bias, out = random(m, k), random(k, n), random(n), empty(m, n, dtype=BFLOAT)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8, "EVEN": k % depth == 0}
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        template_kernel[grid](a, b, bias, out, m, n, k, k, n, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(128, 128, 64, 4, 3), (128, 128, 32, 8, 2), (64, 128, 64, 4, 5), (128, 256, 64, 8, 3), (64, 64, 128, 4, 3)]
    check = close_to(torch.relu(a.float() @ b.float() + bias.float()))
    reference = lambda: torch.relu(torch.addmm(bias, a, b))  # noqa: E731
    return Case(by_tile(launch, tiles), out, None, reference, 2 * (m * k + n * k + m * n), check=check)


@triton.jit
def convolution_template_kernel(
    x_ptr, w_ptr, out_ptr, batch, height, width, channels, filters, out_height, out_width,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """x (batch, height, width, channels), w (filters, SIDE, SIDE, channels); loops over the places of the filter."""
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    across, image = places % out_width, places // out_width
    down, image = image % out_height, image // out_height
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    steps = (channels + DEPTH - 1) // DEPTH
    for step in range(SIDE * SIDE * steps):
        depth = step % steps * DEPTH + tl.arange(0, DEPTH)
        tap = step // steps
        y, x = down * STRIDE - PADDING + tap // SIDE, across * STRIDE - PADDING + tap % SIDE
        inside = (image < batch) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        a_ptrs = x_ptr + ((image * height + y) * width + x)[:, None] * channels + depth[None, :]
        a = tl.load(a_ptrs, mask=inside[:, None] & (depth < channels)[None, :], other=0.0)
        b_ptrs = w_ptr + depth[:, None] + tap * channels + columns[None, :] * (SIDE * SIDE * channels)
        b = tl.load(b_ptrs, mask=(depth < channels)[:, None] & (columns < filters)[None, :], other=0.0)
        sums += tl.dot(a, b)
    mask = (image < batch)[:, None] & (columns < filters)[None, :]
    tl.store(out_ptr + places[:, None] * filters + columns[None, :], sums.to(out_ptr.dtype.element_ty), mask=mask)


def convolution(batch, side, channels, filters, kernel, stride):
    padding = kernel // 2
    x = random(batch, channels, side, side, dtype=HALF).to(memory_format=torch.channels_last)
    w = random(filters, channels, kernel, kernel, dtype=HALF).to(memory_format=torch.channels_last)
    reference = partial(torch.nn.functional.conv2d, x, w, padding=padding, stride=stride)
    expected = torch.nn.functional.conv2d(x.float(), w.float(), padding=padding, stride=stride).permute(0, 2, 3, 1)
    out = empty(*expected.shape)
    across = expected.shape[2]

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        grid = triton.cdiv(batch * across * across, rows), triton.cdiv(filters, columns)
        convolution_template_kernel[grid](
            x, w, out, batch, side, side, channels, filters, across, across,
            SIDE=kernel, STRIDE=stride, PADDING=padding, **sizes, num_warps=warps, num_stages=stages,
        )  # fmt: skip

    tiles = [(64, 256, 16, 4, 2), (256, 64, 32, 8, 2), (128, 128, 32, 8, 2), (64, 64, 32, 4, 2), (128, 64, 64, 4, 3)]
    moved = 2 * (x.numel() + w.numel() + out.numel())
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(expected))


@triton.jit
def stream_kernel(
    a_ptr, b_ptr, out_ptr, lock_ptr, m, n, k, full, one_more, begin,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Stream-K: every program the same number of steps, across tiles' borders; who ends a tile part adds to it."""
    program = tl.program_id(0)
    start = program * full + min(program, one_more)
    last = (program + 1) * full + min(program + 1, one_more)
    steps = tl.cdiv(k, DEPTH)
    across = tl.cdiv(n, COLUMNS)
    while start < last:
        end = min(start + steps - start % steps, last)
        tile = start // steps
        rows = tile // across * ROWS + tl.arange(0, ROWS)
        columns = tile % across * COLUMNS + tl.arange(0, COLUMNS)
        depth = tl.arange(0, DEPTH)
        a_ptrs = a_ptr + rows[:, None] * k + depth[None, :] + DEPTH * (start % steps)
        b_ptrs = b_ptr + depth[:, None] * n + columns[None, :] + DEPTH * n * (start % steps)
        sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for _ in range(start, end):
            sums += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
            a_ptrs += DEPTH
            b_ptrs += DEPTH * n
        out_ptrs = out_ptr + rows[:, None] * n + columns[None, :]
        if start % steps == 0 and end % steps == 0:
            tl.store(out_ptrs, sums)
        else:
            tl.atomic_add(out_ptrs, sums, sem="relaxed")
        start = end


def stream(m, n, k, programs=132):
    a, b, out = random(m, k, dtype=HALF), random(k, n, dtype=HALF), torch.zeros(m, n, device=DEVICE)

    def launch(rows, columns, depth, warps, stages):
        out.zero_()
        steps = triton.cdiv(m, rows) * triton.cdiv(n, columns) * triton.cdiv(k, depth)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        arguments = a, b, out, out, m, n, k, steps // programs, steps % programs, 0
        stream_kernel[(programs,)](*arguments, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(128, 128, 64, 8, 3), (128, 128, 32, 4, 4), (128, 256, 64, 8, 3)]
    check = close_to(a.float() @ b.float())
    return Case(by_tile(launch, tiles), out, None, lambda: a @ b, 2 * (m * k + n * k) + 4 * m * n, check=check)


@triton.jit
def batched_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_batch, b_batch, out_batch,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Small products, one batch a program; b is (batch, k, n)."""
    batch = tl.program_id(2)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + batch * a_batch + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + batch * b_batch + depth[:, None] * n + columns[None, :]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH)):
        left = k - step * DEPTH
        a = tl.load(a_ptrs, mask=(rows < m)[:, None] & (depth < left)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(depth < left)[:, None] & (columns < n)[None, :], other=0.0)
        sums += tl.dot(a, b, allow_tf32=False)
        a_ptrs += DEPTH
        b_ptrs += DEPTH * n
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    out = out_ptr + batch * out_batch + rows[:, None] * n + columns[None, :]
    tl.store(out, sums.to(out_ptr.dtype.element_ty), mask=mask)


def batched(batch, m, n, k):
    a, b, out = random(batch, m, k, dtype=HALF), random(batch, k, n, dtype=HALF), empty(batch, m, n)

    def launch(rows, columns, depth, warps, stages):
        grid = triton.cdiv(m, rows), triton.cdiv(n, columns), batch
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        batched_kernel[grid](a, b, out, m, n, k, m * k, k * n, m * n, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(64, 64, 32, 4, 2), (32, 32, 32, 2, 3), (64, 64, 64, 4, 3), (128, 64, 32, 4, 3)]
    check = close_to(torch.matmul(a.float(), b.float()))
    moved = 2 * (a.numel() + b.numel() + out.numel())
    return Case(by_tile(launch, tiles), out, None, partial(torch.matmul, a, b), moved, check=check)


@triton.jit
def gate_kernel(
    x_ptr, gate_ptr, up_ptr, out_ptr, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr
):
    """silu(x gate') * (x up'): two products of one left operand. Weights are (n, k)."""
    down, across = tile_of(tl.program_id(0), m, n, ROWS, COLUMNS, 8)
    rows, columns = down * ROWS + tl.arange(0, ROWS), across * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    x_ptrs = x_ptr + rows[:, None] * k + depth[None, :]
    weights = columns[None, :] * k + depth[:, None]
    gates = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    ups = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        x = tl.load(x_ptrs + start)
        gates += tl.dot(x, tl.load(gate_ptr + weights + start))
        ups += tl.dot(x, tl.load(up_ptr + weights + start))
    out = gates * tl.sigmoid(gates) * ups
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], out.to(out_ptr.dtype.element_ty))


def gate(m, n, k):
    x, gates, ups = random(m, k), random(n, k) * 0.05, random(n, k)
    out = empty(m, n, dtype=BFLOAT)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        grid = (m // rows * (n // columns),)
        gate_kernel[grid](x, gates, ups, out, m, n, k, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        return torch.nn.functional.silu(x @ gates.T) * (x @ ups.T)

    expected = torch.nn.functional.silu(x.float() @ gates.float().T) * (x.float() @ ups.float().T)
    tiles = [(128, 128, 64, 8, 3), (128, 64, 64, 4, 3), (64, 128, 64, 4, 3), (128, 128, 32, 8, 4)]
    moved = 2 * (m * k + 2 * n * k + m * n)
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(expected, 1e-2))


@triton.jit
def vector_kernel(a_ptr, x_ptr, out_ptr, n, k, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """A matrix times a vector: multiplied element by element, added up at the end."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    depth = tl.arange(0, DEPTH)[None, :]
    a_ptrs, x_ptrs = a_ptr + rows * k + depth, x_ptr + depth
    sums = tl.zeros((ROWS, DEPTH), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptrs, mask=(rows < n) & (depth < k - start), other=0.0).to(tl.float32)
        x = tl.load(x_ptrs, mask=depth < k - start, other=0.0).to(tl.float32)
        sums += a * x
        a_ptrs += DEPTH
        x_ptrs += DEPTH
    tl.store(out_ptr + rows, tl.sum(sums, axis=1)[:, None], mask=rows < n)


def vector(n, k):
    a, x, out = random(n, k), random(k), empty(n, dtype=BFLOAT)

    def launch(rows, depth, warps, stages):
        vector_kernel[(triton.cdiv(n, rows),)](
            a, x, out, n, k, ROWS=rows, DEPTH=depth, num_warps=warps, num_stages=stages
        )

    tiles = [(4, 1024, 4, 3), (16, 256, 4, 3), (32, 128, 4, 3), (8, 512, 8, 2), (1, 4096, 4, 1)]
    check = close_to(a.double() @ x.double(), 1e-2)
    return Case(by_tile(launch, tiles), out, None, lambda: a @ x, 2 * a.numel(), check=check)


@triton.jit
def precise_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """fp32 in several products of narrower parts."""
    down, across = tile_of(tl.program_id(0), m, n, ROWS, COLUMNS, 8)
    rows, columns = down * ROWS + tl.arange(0, ROWS), across * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + columns[None, :]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for _ in range(0, k, DEPTH):
        sums = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), sums, input_precision=PRECISION)
        a_ptrs += DEPTH
        b_ptrs += DEPTH * n
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums)


def precise(m, n, k, precision):
    a, b, out = random(m, k, dtype=FLOAT), random(k, n, dtype=FLOAT), empty(m, n, dtype=FLOAT)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "PRECISION": precision}
        grid = (m // rows * (n // columns),)
        precise_kernel[grid](a, b, out, m, n, k, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        torch.backends.cuda.matmul.allow_tf32 = False
        return a @ b

    tiles = [(128, 128, 32, 8, 3), (64, 64, 32, 4, 3), (128, 64, 32, 4, 3), (64, 128, 64, 8, 2)]
    check = close_to(a.double() @ b.double(), 2e-5)
    return Case(by_tile(launch, tiles), out, None, reference, 4 * (m * k + n * k + m * n), check=check)


KERNELS = {  # name: what makes the case, its sizes, and sizes for tests
    "awq 16x4096x4096": (packed_columns, (16, 4096, 4096), (16, 128, 256, 2)),
    "awq 128x4096x4096": (packed_columns, (128, 4096, 4096, 1), (32, 128, 256, 1)),
    "gptq 16x4096x4096": (packed_depth, (16, 4096, 4096), (16, 128, 256)),
    "gptq 512x4096x4096": (packed_depth, (512, 4096, 4096), (128, 128, 256)),
    "rows of int8 4096x4096x4096": (scaled_rows, (4096, 4096, 4096, INT8), (144, 256, 272, INT8)),
    "rows of fp8 4096x4096x4096": (scaled_rows, (4096, 4096, 4096, FP8), (144, 256, 272, FP8)),
    "blocks of fp8 2048x4096x7168": (block_scaled, (2048, 4096, 7168), (80, 128, 256)),
    "blocks of fp8 64x4096x7168": (block_scaled, (64, 4096, 7168), (64, 128, 256)),
    "routed 4096x2048x2048 bf16, 8 experts": (routed, (4096, 2048, 2048, 8, 0), (96, 128, 144, 3, 0)),
    "routed 64x2048x2048 bf16, 64 experts": (routed, (64, 2048, 2048, 64, 0, 8, 16), (32, 128, 144, 4, 0, 2, 16)),
    "routed 4096x2048x2048 int4, 8 experts": (routed, (4096, 2048, 2048, 8, 128), (96, 128, 256, 3, 128)),
    "routed 64x2048x2048 int4, 64 experts": (routed, (64, 2048, 2048, 64, 128, 8, 16), (32, 128, 256, 4, 128, 2, 16)),
    "groups 8192x2048x2048 bf16, 16 of them": (grouped, (8192, 2048, 2048, 16), (256, 256, 128, 3)),
    "shrink 4096x16x4096, 4 adapters": (adapters, (False, 4096, 16, 4096, 4), (False, 144, 16, 256, 2)),
    "shrink 64x16x4096, 4 adapters": (adapters, (False, 64, 16, 4096, 4), (False, 64, 16, 512, 2)),
    "expand 4096x4096x16, 4 adapters": (adapters, (True, 4096, 4096, 16, 4), (True, 144, 256, 16, 2)),
    "template 4096x4096x4096 bf16": (template, (4096, 4096, 4096), (144, 256, 128)),
    "template 1024x3072x768 bf16": (template, (1024, 3072, 768), (128, 256, 192)),
    "template 8192x1000x2048 bf16": (template, (8192, 1000, 2048), (128, 248, 128)),
    "convolution 1x1 32x28x28x256 to 512 fp16": (convolution, (32, 28, 256, 512, 1, 1), (2, 8, 32, 64, 1, 1)),
    "convolution 3x3/2 32x56x56x64 to 128 fp16": (convolution, (32, 56, 64, 128, 3, 2), (1, 10, 32, 64, 3, 2)),
    "stream-k 2048x2560x4096 fp16": (stream, (2048, 2560, 4096), (256, 256, 192, 3)),
    "batched 1024x64x64x128 fp16": (batched, (1024, 64, 64, 128), (3, 64, 64, 128)),
    "batched 2048x100x100x64 fp16": (batched, (2048, 100, 100, 64), (3, 100, 100, 64)),
    "gate and up 4096x5632x2048 bf16": (gate, (4096, 5632, 2048), (128, 128, 128)),
    "vector 16384x4096 bf16": (vector, (16384, 4096), (40, 4096)),
    "product 2048 bf16x3": (precise, (2048, 2048, 2048, "bf16x3"), (128, 128, 64, "bf16x3")),
    "product 2048 tf32x3": (precise, (2048, 2048, 2048, "tf32x3"), (128, 128, 64, "tf32x3")),
}
