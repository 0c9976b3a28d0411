"""Kernels for gpu.py as inference and training libraries write them, of sequences: attention in its many forms over
paged caches, state-space models in chunks and step by step, delta rules, convolutions along time.

Tiles, warps and stages are those that the libraries start with for such extents, or find by tuning.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case, by_tile
from gpu_library_rows import BFLOAT, FLOAT, LOG2E, close_to, random

import triton
import triton.language as tl

INT32 = torch.int32


def empty(*shape, dtype=BFLOAT):
    return torch.empty(*shape, device=DEVICE, dtype=dtype)


# ---- attention over paged caches


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sum_ptr, start_ptr, page_ptr, scale, parts,
    HEADS: tl.constexpr, SHARED: tl.constexpr, VALID: tl.constexpr, D: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One query for each sequence, SHARED heads to a key's head, a part of the keys; pages are single tokens."""
    sequence, group, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = group * SHARED + tl.arange(0, VALID)
    mine = tl.arange(0, VALID) < SHARED
    features = tl.arange(0, D)
    first = tl.load(start_ptr + sequence)
    length = tl.load(start_ptr + sequence + 1) - first
    share = tl.cdiv(tl.cdiv(length, parts), 32) * 32
    begin = share * part
    end = tl.minimum(begin + share, length)
    top = tl.zeros([VALID], dtype=tl.float32) - float("inf")
    total = tl.zeros([VALID], dtype=tl.float32)
    out = tl.zeros([VALID, D], dtype=tl.float32)
    if end > begin:
        q = tl.load(q_ptr + (sequence * HEADS + heads[:, None]) * D + features[None, :], mask=mine[:, None], other=0.0)
        for start in range(begin, end, COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            page = tl.load(page_ptr + first + columns, mask=columns < end, other=0).to(tl.int64)
            base = page * (HEADS // SHARED) + group
            k = tl.load(k_ptr + base[None, :] * D + features[:, None], mask=(columns < end)[None, :], other=0.0)
            scores = tl.dot(q, k.to(q.dtype)) * scale
            scores = tl.where(mine[:, None] & (columns < end)[None, :], scores, float("-inf"))
            v = tl.load(v_ptr + base[:, None] * D + features[None, :], mask=(columns < end)[:, None], other=0.0)
            now = tl.maximum(tl.max(scores, 1), top)
            fade = tl.exp(top - now)
            powers = tl.exp(scores - now[:, None])
            out *= fade[:, None]
            out += tl.dot(powers.to(v.dtype), v)
            total = total * fade + tl.sum(powers, 1)
            top = now
        place = (sequence * HEADS + heads) * parts + part
        tl.store(out_ptr + place[:, None] * D + features[None, :], out / total[:, None], mask=mine[:, None])
        tl.store(sum_ptr + place, top + tl.log(total), mask=mine)


@triton.jit
def single_decode_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sum_ptr, start_ptr, page_ptr, scale, parts,
    HEADS: tl.constexpr, D: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The same for heads with keys of their own: products element by element."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    features = tl.arange(0, D)
    first = tl.load(start_ptr + sequence)
    length = tl.load(start_ptr + sequence + 1) - first
    share = tl.cdiv(tl.cdiv(length, parts), 32) * 32
    begin = share * part
    end = tl.minimum(begin + share, length)
    top, total = -float("inf"), 0.0
    out = tl.zeros([D], dtype=tl.float32)
    if end > begin:
        q = tl.load(q_ptr + (sequence * HEADS + head) * D + features)
        for start in range(begin, end, COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            page = tl.load(page_ptr + first + columns, mask=columns < end, other=0).to(tl.int64)
            places = (page[:, None] * HEADS + head) * D + features[None, :]
            k = tl.load(k_ptr + places, mask=(columns < end)[:, None], other=0.0)
            scores = tl.sum(q[None, :] * k, 1) * scale
            scores = tl.where(columns < end, scores, float("-inf"))
            v = tl.load(v_ptr + places, mask=(columns < end)[:, None], other=0.0)
            now = tl.maximum(tl.max(scores, 0), top)
            fade = tl.exp(top - now)
            powers = tl.exp(scores - now)
            out *= fade
            out += tl.sum(powers[:, None] * v, 0)
            total = total * fade + tl.sum(powers, 0)
            top = now
        place = (sequence * HEADS + head) * parts + part
        tl.store(out_ptr + place * D + features, out / total)
        tl.store(sum_ptr + place, top + tl.log(total))


@triton.jit
def merge_kernel(part_ptr, sum_ptr, out_ptr, parts, D: tl.constexpr):
    """What the parts of a head's keys gave, weighted by their sums."""
    row = tl.program_id(0)
    features = tl.arange(0, D)
    top, total = -float("inf"), 0.0
    out = tl.zeros([D], dtype=tl.float32)
    for part in range(0, parts):
        logsum = tl.load(sum_ptr + row * parts + part)
        x = tl.load(part_ptr + (row * parts + part) * D + features)
        now = tl.maximum(logsum, top)
        fade = tl.exp(top - now)
        power = tl.exp(logsum - now)
        out = out * fade + power * x
        total = total * fade + power
        top = now
    tl.store(out_ptr + row * D + features, (out / total).to(out_ptr.dtype.element_ty))


def decode(batch, heads, key_heads, length, d, parts):
    shared, tokens = heads // key_heads, batch * length
    q, k, v = random(batch, heads, d), random(tokens, key_heads, d), random(tokens, key_heads, d)
    pages = torch.randperm(tokens, device=DEVICE).to(INT32)
    starts = torch.arange(0, tokens + 1, length, device=DEVICE, dtype=INT32)
    partial_out, sums = (empty(batch, heads, parts, *more, dtype=FLOAT) for more in ((d,), ()))
    out = empty(batch, heads, d)
    own = [
        x[pages.long()].view(batch, length, key_heads, d).repeat_interleave(shared, 2).transpose(1, 2) for x in (k, v)
    ]
    reference = partial(torch.nn.functional.scaled_dot_product_attention, q[:, :, None], *own)
    wide = [x.float() for x in (q[:, :, None], *own)]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide)[:, :, 0]
    arguments = q, k, v, partial_out, sums, starts, pages, d**-0.5, parts

    def launch(columns, warps, stages):
        sizes = {"HEADS": heads, "D": d, "COLUMNS": columns, "num_warps": warps, "num_stages": stages}
        if shared > 1:
            decode_kernel[batch, key_heads, parts](*arguments, SHARED=shared, VALID=16, **sizes)
        else:
            single_decode_kernel[batch, heads, parts](*arguments, **sizes)
        merge_kernel[(batch * heads,)](partial_out, sums, out, parts, D=d, num_warps=4, num_stages=2)

    tiles = [(32, 4, 2), (64, 4, 2), (32, 2, 2)] if shared > 1 else [(64, 4, 2), (32, 2, 2)]
    return Case(by_tile(launch, tiles), out, None, reference, 4 * k.numel(), check=close_to(expected, 1e-2))


@triton.jit
def mixed_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, table_ptr, start_ptr, length_ptr, scale, table_stride,
    HEADS: tl.constexpr, SHARED: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Prompts and decoding in one: ROWS are SHARED heads of neighbouring queries, keys lie in pages of PAGE tokens."""
    block, group, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(start_ptr + sequence)
    queries = tl.load(start_ptr + sequence + 1) - first
    EACH: tl.constexpr = ROWS // SHARED
    if block * EACH >= queries:
        return
    length = tl.load(length_ptr + sequence)
    before = length - queries
    rows, features = tl.arange(0, ROWS), tl.arange(0, D)
    position = block * EACH + rows // SHARED
    head = group * SHARED + rows % SHARED
    real = (position < queries)[:, None]
    places = ((first + position) * HEADS + head)[:, None] * D + features[None, :]
    q = tl.load(q_ptr + places, mask=real, other=0.0)
    top = tl.full([ROWS], float("-inf"), dtype=tl.float32)
    total = tl.full([ROWS], 1.0, dtype=tl.float32)
    out = tl.zeros([ROWS, D], dtype=tl.float32)
    last = tl.minimum(before + block * EACH + (ROWS - 1) // SHARED + 1, length)
    for step in range(0, tl.cdiv(last, COLUMNS)):
        columns = step * COLUMNS + tl.arange(0, COLUMNS)
        page = tl.load(table_ptr + sequence * table_stride + columns // PAGE).to(tl.int64)
        base = (page * PAGE + columns % PAGE) * (HEADS // SHARED) + group
        inside = columns < last
        k = tl.load(k_ptr + base[None, :] * D + features[:, None], mask=inside[None, :], other=0.0)
        v = tl.load(v_ptr + base[:, None] * D + features[None, :], mask=inside[:, None], other=0.0)
        seen = columns[None, :] < before + position[:, None] + 1
        scores = scale * tl.dot(q, k)
        scores = tl.where(real & seen, scores, float("-inf"))
        now = tl.maximum(top, tl.max(scores, axis=1))
        now = tl.where(now > float("-inf"), now, 0.0)
        powers = tl.exp2((scores - now[:, None]) * LOG2E)
        fade = tl.exp2((top - now) * LOG2E)
        out = out * fade[:, None]
        total = total * fade + tl.sum(powers, axis=1)
        top = now
        out += tl.dot(powers.to(v.dtype), v)
    out = out / total[:, None]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=real)


def mixed(batch, heads, key_heads, before, queries, d, page=16):
    shared, length = heads // key_heads, before + queries
    pages = triton.cdiv(length, page)
    q = random(batch * queries, heads, d)
    k, v = (random(batch * pages, page, key_heads, d) for _ in "kv")
    table = torch.randperm(batch * pages, device=DEVICE).to(INT32).view(batch, pages)
    table = torch.nn.functional.pad(table, (0, 16))
    starts = torch.arange(0, batch * queries + 1, queries, device=DEVICE, dtype=INT32)
    lengths = torch.full((batch,), length, device=DEVICE, dtype=INT32)
    own = [x[table[:, :pages].long()].view(batch, -1, key_heads, d)[:, :length].transpose(1, 2) for x in (k, v)]
    own = [x.repeat_interleave(shared, 1) for x in own]
    seen = torch.ones(queries, length, device=DEVICE, dtype=torch.bool).tril(before)
    parts = q.view(batch, queries, heads, d).transpose(1, 2)
    reference = partial(torch.nn.functional.scaled_dot_product_attention, parts, *own, attn_mask=seen)
    wide = [x.float() for x in (parts, *own)]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide, attn_mask=seen).transpose(1, 2).flatten(0, 1)
    out = empty(*q.shape)

    def launch(rows, columns, warps, stages):
        sizes = {"HEADS": heads, "SHARED": shared, "D": d, "PAGE": page, "ROWS": rows, "COLUMNS": columns}
        grid = triton.cdiv(queries, rows // shared), key_heads, batch
        mixed_kernel[grid](
            q, k, v, out, table, starts, lengths, d**-0.5, table.stride(0), **sizes, num_warps=warps, num_stages=stages
        )

    tiles = (
        [(16, 32, 4, 3), (16, 64, 4, 3), (64, 32, 4, 3), (128, 64, 8, 3)]
        if queries > 1
        else [(16, 16, 4, 3), (16, 32, 4, 3)]
    )
    moved = 4 * q.numel() + 4 * k.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(expected, 1e-2))


@triton.jit
def merge_two_kernel(out_ptr, sum_ptr, first_ptr, first_sum_ptr, second_ptr, second_sum_ptr, tokens, D: tl.constexpr):
    """Attention to a shared beginning and to the rest, joined. Sums are (heads, tokens)."""
    token, head = tl.program_id(0), tl.program_id(1)
    heads = tl.num_programs(1)
    a, b = tl.load(first_sum_ptr + head * tokens + token), tl.load(second_sum_ptr + head * tokens + token)
    a = float("-inf") if a == float("inf") else a
    b = float("-inf") if b == float("inf") else b
    top = tl.maximum(a, b)
    a, b = tl.exp(a - top), tl.exp(b - top)
    tl.store(sum_ptr + head * tokens + token, tl.log(a + b) + top)
    place = (token * heads + head) * D + tl.arange(0, D)
    x, y = tl.load(first_ptr + place), tl.load(second_ptr + place)
    tl.store(out_ptr + place, x * (a / (a + b)) + y * (b / (a + b)))


def merge_two(tokens, heads, d):
    x, y, out = random(tokens, heads, d), random(tokens, heads, d), empty(tokens, heads, d)
    a, b, sums = (random(heads, tokens, dtype=FLOAT) for _ in range(3))

    def launch(warps):
        merge_two_kernel[tokens, heads](out, sums, x, a, y, b, tokens, D=d, num_warps=warps)

    def reference():
        weight = torch.sigmoid(a - b).T[..., None]
        return x * weight + y * (1 - weight)

    configs = {f"num_warps={warps}": partial(launch, warps) for warps in (4, 1)}
    return Case(configs, out, None, reference, 6 * out.numel(), check=close_to(reference(), 1e-2))


@triton.jit
def sparse_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sum_ptr, count_ptr, index_ptr, full_count_ptr, full_index_ptr,
    n, heads, shared, scale, window,
    D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attention to the blocks of keys that a table names: some need the mask (here a causal window), some do not."""
    start = tl.program_id(0)
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    q_base = (batch * heads + head).to(tl.int64) * n * D
    k_base = (batch * (heads // shared) + head // shared).to(tl.int64) * n * D
    EACH: tl.constexpr = BLOCK // COLUMNS
    row = start // (BLOCK // ROWS)
    stride = tl.cdiv(n, BLOCK)
    rows, features = start * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    q = tl.load(q_ptr + q_base + rows[:, None] * D + features[None, :], mask=rows[:, None] < n, other=0.0)
    top = tl.zeros([ROWS], dtype=tl.float32) - float("inf")
    total = tl.zeros([ROWS], dtype=tl.float32)
    out = tl.zeros([ROWS, D], dtype=tl.float32)
    for full in tl.static_range(2):
        indices = (full_index_ptr if full else index_ptr) + row * stride
        count = tl.load((full_count_ptr if full else count_ptr) + row)
        columns = tl.load(indices) * BLOCK + tl.arange(0, COLUMNS)
        for step in range(0, tl.minimum(count * EACH, tl.maximum(tl.cdiv(n, COLUMNS), 1))):
            k = tl.load(k_ptr + k_base + columns[None, :] * D + features[:, None], mask=columns[None, :] < n, other=0.0)
            scores = tl.dot(q, k, input_precision="tf32") * scale
            if not full:
                away = rows[:, None] - columns[None, :]
                scores = tl.where((away >= 0) & (away < window), scores, float("-inf"))
            scores *= LOG2E
            now = tl.maximum(top, tl.max(scores, 1))
            safe = tl.where(now == float("-inf"), 0, now)
            fade = tl.math.exp2(top - safe)
            powers = tl.math.exp2(scores - safe[:, None])
            total = total * fade + tl.sum(powers, 1)
            out = out * fade[:, None]
            v = tl.load(v_ptr + k_base + columns[:, None] * D + features[None, :], mask=columns[:, None] < n, other=0.0)
            out = tl.dot(powers.to(v.dtype), v, acc=out, input_precision="tf32")
            top = now
            place = step // EACH
            own = tl.load(indices + place, eviction_policy="evict_last")
            following = tl.load(indices + place + 1, eviction_policy="evict_last", mask=place + 1 < count, other=0)
            jump = (step + 1) % EACH == 0
            columns += tl.where(jump, (following - own) * BLOCK - BLOCK + COLUMNS, COLUMNS)
    total = tl.where(total == 0.0, 1, total)
    tl.store(
        out_ptr + q_base + rows[:, None] * D + features[None, :],
        (out / total[:, None]).to(q.dtype),
        mask=rows[:, None] < n,
    )
    tl.store(sum_ptr + tl.program_id(1) * n + rows, top + tl.math.log2(total), mask=rows < n)


def sparse(batch, heads, key_heads, n, d, window, block=128):
    q, k, v = random(batch, heads, n, d), *(random(batch, key_heads, n, d) for _ in "kv")
    out, sums = torch.empty_like(q), empty(batch, heads, n, dtype=FLOAT)
    places = torch.arange(n)
    away = places[:, None] - places
    seen = (away >= 0) & (away < window)
    blocks = seen.view(n // block, block, n // block, block).transpose(1, 2).flatten(2)
    full, some = blocks.all(2), blocks.any(2)
    lists = []
    for chosen in (some & ~full, full):
        lists += [
            chosen.sum(1).to(INT32).to(DEVICE),
            (~chosen).to(torch.int8).argsort(dim=1, stable=True).to(INT32).to(DEVICE),
        ]
    seen = seen.to(DEVICE)

    def launch(rows, columns, warps, stages):
        sizes = {"D": d, "ROWS": rows, "COLUMNS": columns, "BLOCK": block}
        arguments = q, k, v, out, sums, *lists, n, heads, heads // key_heads, d**-0.5, window
        grid = triton.cdiv(n, rows), batch * heads
        sparse_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    shared = [x.repeat_interleave(heads // key_heads, 1) for x in (k, v)]
    reference = partial(torch.nn.functional.scaled_dot_product_attention, q, *shared, attn_mask=seen)
    tiles = [(128, 64, 4, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 64, 8, 3)]
    moved = 4 * (q.numel() + k.numel())
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=lambda r: close_to(reference(), 1e-2)(r))


# ---- state-space models


@triton.jit
def steps_kernel(dt_ptr, a_ptr, bias_ptr, out_ptr, sum_ptr, n, heads, CHUNK: tl.constexpr, HEADS: tl.constexpr):
    """softplus(dt + bias) and the sums of its products with a within chunks. dt is (n, heads), results (heads, n)."""
    chunk = tl.program_id(0)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    time = chunk * CHUNK + tl.arange(0, CHUNK)
    mask = (head < heads)[:, None] & (time < n)[None, :]
    dt = tl.load(dt_ptr + time[None, :] * heads + head[:, None], mask=mask, other=0.0).to(tl.float32)
    dt += tl.load(bias_ptr + head, mask=head < heads, other=0.0).to(tl.float32)[:, None]
    dt = tl.where(dt <= 20.0, tl.math.log(tl.math.exp(dt) + 1), dt)
    dt = tl.where(mask, tl.maximum(dt, 0.0), 0.0)
    tl.store(out_ptr + head[:, None] * n + time[None, :], dt, mask=mask)
    a = tl.load(a_ptr + head, mask=head < heads, other=0.0).to(tl.float32)
    tl.store(sum_ptr + head[:, None] * n + time[None, :], tl.cumsum(dt * a[:, None], axis=1), mask=mask)


def steps(n, heads, chunk):
    dt, a, bias = random(n, heads), -torch.rand(heads, device=DEVICE), torch.rand(heads, device=DEVICE)
    out, sums = empty(heads, n, dtype=FLOAT), empty(heads, n, dtype=FLOAT)

    def launch(block, warps):
        steps_kernel[n // chunk, triton.cdiv(heads, block)](
            dt, a, bias, out, sums, n, heads, CHUNK=chunk, HEADS=block, num_warps=warps
        )

    def reference():
        x = torch.nn.functional.softplus(dt.float() + bias).T
        return (x * a[:, None]).view(heads, -1, chunk).cumsum(2).view(heads, n)

    tiles = ((1, 4), (4, 4), (16, 4))
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in tiles}
    return Case(configs, sums, None, reference, 10 * dt.numel(), check=close_to(reference(), 1e-4))


@triton.jit
def chunk_states_kernel(
    x_ptr, b_ptr, dt_ptr, sum_ptr, out_ptr, n, heads, groups,
    P: tl.constexpr, N: tl.constexpr, CHUNK: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """States (P, N) that chunks add: x' (b * exp(last - sum) * dt)."""
    chunk, head = tl.program_id(1), tl.program_id(2)
    rows = tl.program_id(0) // (N // COLUMNS) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % (N // COLUMNS) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    group = head // (heads // groups)
    first = chunk * CHUNK
    x_ptrs = x_ptr + ((first + depth[None, :]) * heads + head) * P + rows[:, None]
    b_ptrs = b_ptr + ((first + depth[:, None]) * groups + group) * N + columns[None, :]
    dt_ptrs = dt_ptr + head * n + first + depth
    sum_ptrs = sum_ptr + head * n + first + depth
    last = tl.load(sum_ptr + head * n + first + CHUNK - 1)
    state = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    limit = min(CHUNK, n - first)
    for start in range(0, limit, DEPTH):
        x = tl.load(x_ptrs, mask=(rows < P)[:, None] & (depth < limit - start)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(depth < limit - start)[:, None] & (columns < N)[None, :], other=0.0).to(tl.float32)
        sums = tl.load(sum_ptrs, mask=depth < limit - start, other=0.0)
        dt = tl.load(dt_ptrs, mask=depth < limit - start, other=0.0)
        b *= (tl.exp(last - sums) * dt)[:, None]
        state += tl.dot(x, b.to(x_ptr.dtype.element_ty))
        x_ptrs += DEPTH * heads * P
        b_ptrs += DEPTH * groups * N
        dt_ptrs += DEPTH
        sum_ptrs += DEPTH
    place = (chunk * heads + head) * P * N
    tl.store(out_ptr + place + rows[:, None] * N + columns[None, :], state.to(out_ptr.dtype.element_ty))


def models_inputs(n, heads, groups, p, size, chunk):
    x, b, c = random(n, heads, p), random(n, groups, size) * 0.3, random(n, groups, size) * 0.3
    dt = torch.rand(heads, n, device=DEVICE)
    sums = (-dt * 0.1).view(heads, -1, chunk).cumsum(2).view(heads, n).contiguous()
    return x, b, c, dt, sums


def chunk_states(n, heads, groups, p, size, chunk):
    x, b, _, dt, sums = models_inputs(n, heads, groups, p, size, chunk)
    out = empty(n // chunk, heads, p, size, dtype=FLOAT)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"P": p, "N": size, "CHUNK": chunk, "ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        grid = triton.cdiv(p, rows) * triton.cdiv(size, columns), n // chunk, heads
        chunk_states_kernel[grid](x, b, dt, sums, out, n, heads, groups, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        weight = torch.exp(sums.view(heads, -1, chunk)[..., -1:] - sums.view(heads, -1, chunk)) * dt.view(
            heads, -1, chunk
        )
        b_heads = b.float().view(-1, chunk, groups, size).repeat_interleave(heads // groups, 2)
        return torch.einsum("clhp,clhn,hcl->chpn", x.float().view(-1, chunk, heads, p), b_heads, weight)

    tiles = [(64, 128, 32, 4, 4), (64, 64, 32, 4, 3), (64, 128, 64, 8, 3), (64, 32, 32, 4, 4)]
    moved = 2 * x.numel() + 4 * out.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(reference(), 1e-2))


@triton.jit
def pass_states_kernel(state_ptr, out_ptr, sum_ptr, chunks, n, size, heads, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """What each chunk begins with: a loop over chunks, each state faded by its chunk."""
    head = tl.program_id(1)
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), dtype=tl.float32)
    ptrs = state_ptr + head * size + places
    outs = out_ptr + head * size + places
    sums = sum_ptr + head * n + CHUNK - 1
    for _ in range(chunks):
        tl.store(outs, state, mask=places < size)
        new = tl.load(ptrs, mask=places < size, other=0.0).to(tl.float32)
        state = tl.exp(tl.load(sums)) * state + new
        ptrs += heads * size
        outs += heads * size
        sums += CHUNK


def pass_states(n, heads, p, size, chunk):
    states, sums = random(n // chunk, heads, p * size, dtype=FLOAT), -torch.rand(heads, n, device=DEVICE)
    out = torch.empty_like(states)

    def launch(block, warps):
        arguments = states, out, sums, n // chunk, n, p * size, heads
        pass_states_kernel[triton.cdiv(p * size, block), heads](*arguments, CHUNK=chunk, BLOCK=block, num_warps=warps)

    def reference():
        state, all_states = torch.zeros_like(states[0]), []
        fade = sums.view(heads, -1, chunk)[..., -1].exp()
        for i in range(n // chunk):
            all_states.append(state)
            state = state * fade[:, i, None] + states[i]
        return torch.stack(all_states)

    tiles = ((64, 4), (256, 4), (1024, 4))
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in tiles}
    return Case(configs, out, None, reference, 8 * states.numel(), check=close_to(reference(), 1e-5))


@triton.jit
def chunk_scan_kernel(
    cb_ptr, x_ptr, dt_ptr, sum_ptr, c_ptr, state_ptr, d_ptr, out_ptr, n, heads, groups,
    P: tl.constexpr, N: tl.constexpr, CHUNK: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Results of a chunk: its first state's part, then (cb * decay * dt) x below the diagonal, and d x."""
    chunk, head = tl.program_id(1), tl.program_id(2)
    block = tl.program_id(0) // (P // COLUMNS)
    rows = block * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % (P // COLUMNS) * COLUMNS + tl.arange(0, COLUMNS)
    group = head // (heads // groups)
    first = chunk * CHUNK
    sums_here = tl.load(sum_ptr + head * n + first + rows, mask=rows < CHUNK, other=0.0)
    states = tl.arange(0, N)
    c = tl.load(
        c_ptr + ((first + rows[:, None]) * groups + group) * N + states[None, :], mask=rows[:, None] < CHUNK, other=0.0
    )
    place = (chunk * heads + head) * P * N
    state = tl.load(state_ptr + place + columns[None, :] * N + states[:, None]).to(c_ptr.dtype.element_ty)
    sums = tl.dot(c, state) * tl.exp(sums_here)[:, None]
    depth = tl.arange(0, DEPTH)
    cb_ptrs = cb_ptr + (chunk * groups + group) * CHUNK * CHUNK + rows[:, None] * CHUNK + depth[None, :]
    x_ptrs = x_ptr + ((first + depth[:, None]) * heads + head) * P + columns[None, :]
    dt_ptrs = dt_ptr + head * n + first + depth
    sum_ptrs = sum_ptr + head * n + first + depth
    limit = min((block + 1) * ROWS, CHUNK)
    for start in range(0, limit, DEPTH):
        cb = tl.load(cb_ptrs, mask=(rows < CHUNK)[:, None] & (depth < CHUNK - start)[None, :], other=0.0).to(tl.float32)
        sums_there = tl.load(sum_ptrs, mask=depth < CHUNK - start, other=0.0)
        cb *= tl.exp(tl.minimum(sums_here[:, None] - sums_there[None, :], 0.0))
        cb *= tl.load(dt_ptrs, mask=depth < CHUNK - start, other=0.0)
        cb = tl.where(rows[:, None] >= start + depth[None, :], cb, 0.0).to(x_ptr.dtype.element_ty)
        x = tl.load(x_ptrs, mask=(depth < CHUNK - start)[:, None] & (columns < P)[None, :], other=0.0)
        sums += tl.dot(cb, x)
        cb_ptrs += DEPTH
        x_ptrs += DEPTH * heads * P
        dt_ptrs += DEPTH
        sum_ptrs += DEPTH
    places = ((first + rows[:, None]) * heads + head) * P + columns[None, :]
    x = tl.load(x_ptr + places, mask=rows[:, None] < CHUNK, other=0.0).to(tl.float32)
    sums += x * tl.load(d_ptr + head)
    tl.store(out_ptr + places, sums.to(out_ptr.dtype.element_ty), mask=rows[:, None] < CHUNK)


def chunk_scan(n, heads, groups, p, size, chunk):
    x, b, c, dt, sums = models_inputs(n, heads, groups, p, size, chunk)
    states, d = random(n // chunk, heads, p, size, dtype=FLOAT), random(heads, dtype=FLOAT)
    parts = [t.float().view(-1, chunk, groups, size) for t in (c, b)]
    cb = torch.einsum("clgn,csgn->cgls", *parts).contiguous().to(BFLOAT)
    out = torch.empty_like(x)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"P": p, "N": size, "CHUNK": chunk, "ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        grid = triton.cdiv(chunk, rows) * triton.cdiv(p, columns), n // chunk, heads
        arguments = cb, x, dt, sums, c, states, d, out, n, heads, groups
        chunk_scan_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        times, steps = sums.view(heads, -1, chunk), dt.view(heads, -1, chunk)
        decay = torch.exp((times[..., :, None] - times[..., None, :]).clamp(max=0)).tril() * steps[..., None, :]
        weights = cb.float().repeat_interleave(heads // groups, 1) * decay.transpose(0, 1)
        xs = x.float().view(-1, chunk, heads, p)
        own = torch.einsum("chls,cshp->clhp", weights, xs)
        c_heads = parts[0].repeat_interleave(heads // groups, 2)
        before = torch.einsum("clhn,chpn,hcl->clhp", c_heads, states, times.exp())
        return (own + before + xs * d[:, None]).reshape(n, heads, p)

    tiles = [(64, 64, 32, 4, 4), (128, 64, 64, 4, 3), (128, 64, 32, 4, 4), (64, 32, 32, 4, 4)]
    moved = 4 * x.numel() + 4 * states.numel() + 2 * cb.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(reference(), 1e-2))


@triton.jit
def update_kernel(
    state_ptr, x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, z_ptr, out_ptr, next_ptr, heads, groups,
    P: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One step of a state-space model with a gate, for decoding."""
    block, batch, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows, columns = block * ROWS + tl.arange(0, ROWS), tl.arange(0, N)
    place = (batch * heads + head) * P + rows
    mask = rows < P
    group = batch * groups + head // (heads // groups)
    states = place[:, None] * N + columns[None, :]
    state = tl.load(state_ptr + states, mask=mask[:, None], other=0.0)
    x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + batch * heads + head).to(tl.float32)
    dt = tl.where(dt <= 20.0, tl.math.log(1 + tl.math.exp(dt)), dt)
    a = tl.load(a_ptr + head).to(tl.float32)
    b = tl.load(b_ptr + group * N + columns).to(tl.float32)
    c = tl.load(c_ptr + group * N + columns).to(tl.float32)
    z = tl.load(z_ptr + place, mask=mask, other=0.0).to(tl.float32)
    state = state * tl.exp(a * dt) + (b * dt)[None, :] * x[:, None]
    tl.store(next_ptr + states, state, mask=mask[:, None])
    out = tl.sum(state * c[None, :], axis=1) + x * tl.load(d_ptr + head).to(tl.float32)
    out *= z * tl.sigmoid(z)
    tl.store(out_ptr + place, out, mask=mask)


def update(batch, heads, groups, p, size):
    state, x, z = random(batch, heads, p, size, dtype=FLOAT), random(batch, heads, p), random(batch, heads, p)
    dt, a, d = random(batch, heads), -torch.rand(heads, device=DEVICE), random(heads, dtype=FLOAT)
    b, c = random(batch, groups, size), random(batch, groups, size)
    out, following = torch.empty_like(x), torch.empty_like(state)

    def launch(rows, warps):
        update_kernel[triton.cdiv(p, rows), batch, heads](
            state, x, dt, a, b, c, d, z, out, following, heads, groups, P=p, N=size, ROWS=rows, num_warps=warps
        )

    def reference():
        step = torch.nn.functional.softplus(dt.float())
        shared = [t.float().repeat_interleave(heads // groups, 1) for t in (b, c)]
        new = state * (a * step).exp()[..., None, None] + (shared[0] * step[..., None])[:, :, None] * x[..., None]
        y = (new * shared[1][:, :, None]).sum(3) + x * d[:, None]
        return y * torch.nn.functional.silu(z.float())

    tiles = ((4, 8), (8, 4), (16, 4), (32, 4))
    configs = {f"{rows}x{warps}": partial(launch, rows, warps) for rows, warps in tiles}
    return Case(configs, out, None, reference, 8 * state.numel(), check=close_to(reference(), 1e-2))


@triton.jit
def causal_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, n, channels, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """A short convolution along time of each channel, and silu. x is (batch, n, channels), w (channels, WIDTH)."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    base = tl.program_id(2).to(tl.int64) * n * channels
    mask = columns < channels
    taps = tl.arange(0, WIDTH)
    w = tl.load(w_ptr + columns[:, None] * WIDTH + taps, mask=mask[:, None], other=0).to(tl.float32)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for tap in tl.static_range(WIDTH):
        time = rows + tap - WIDTH + 1
        inside = (time >= 0)[:, None] & (time < n)[:, None] & mask[None, :]
        x = tl.load(x_ptr + base + time[:, None] * channels + columns[None, :], mask=inside, other=0).to(tl.float32)
        sums += x * tl.sum(w * (taps == tap), 1)
    sums += tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    sums = sums * tl.sigmoid(sums)
    tl.store(
        out_ptr + base + rows[:, None] * channels + columns[None, :], sums, mask=(rows < n)[:, None] & mask[None, :]
    )


def causal(batch, n, channels, width=4):
    x, w, bias = random(batch, n, channels), random(channels, width), random(channels)
    out = torch.empty_like(x)

    def launch(rows, columns, warps):
        grid = triton.cdiv(channels, columns), triton.cdiv(n, rows), batch
        causal_kernel[grid](x, w, bias, out, n, channels, WIDTH=width, ROWS=rows, COLUMNS=columns, num_warps=warps)

    def reference():
        padded = torch.nn.functional.pad(x.float().transpose(1, 2), (width - 1, 0))
        y = torch.nn.functional.conv1d(padded, w.float()[:, None], bias.float(), groups=channels)
        return torch.nn.functional.silu(y).transpose(1, 2)

    tiles = ((16, 64, 4), (64, 64, 4), (8, 256, 4), (32, 128, 8))
    configs = {"x".join(map(str, tile)): partial(launch, *tile) for tile in tiles}
    return Case(configs, out, None, reference, 4 * x.numel(), check=close_to(reference(), 1e-2))


# ---- delta rules in chunks of 64 tokens; q, k, v are (n, heads, d), gates and factors (n, heads)


@triton.jit
def products_kernel(
    k_ptr,
    beta_ptr,
    gate_ptr,
    out_ptr,
    n,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """beta * (k k') * decay below the diagonal of each chunk."""
    chunk, head = tl.program_id(0), tl.program_id(1)
    times = chunk * CHUNK + tl.arange(0, CHUNK)
    beta = tl.make_block_ptr(beta_ptr + head, (n,), (HEADS,), (chunk * CHUNK,), (CHUNK,), (0,))
    gates = tl.make_block_ptr(gate_ptr + head, (n,), (HEADS,), (chunk * CHUNK,), (CHUNK,), (0,))
    betas = tl.load(beta, boundary_check=(0,))
    sums = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
    for i in range(D // DEPTH):
        k = tl.make_block_ptr(
            k_ptr + head * D, (n, D), (HEADS * D, 1), (chunk * CHUNK, i * DEPTH), (CHUNK, DEPTH), (1, 0)
        )
        k = tl.load(k, boundary_check=(0, 1))
        sums += tl.dot((k * betas[:, None]).to(k.dtype), tl.trans(k))
    gate = tl.load(gates, boundary_check=(0,))
    sums *= tl.exp(gate[:, None] - gate[None, :])
    below = (times[:, None] > times[None, :]) & (times < n)[:, None]
    out = tl.make_block_ptr(
        out_ptr + head * CHUNK, (n, CHUNK), (HEADS * CHUNK, 1), (chunk * CHUNK, 0), (CHUNK, CHUNK), (1, 0)
    )
    tl.store(out, tl.where(below, sums, 0).to(out.dtype.element_ty), boundary_check=(0, 1))


def delta_inputs(n, heads, d, chunk=64):
    q, k = (torch.nn.functional.normalize(random(n, heads, d, dtype=FLOAT), dim=2).to(BFLOAT) for _ in "qk")
    beta = torch.rand(n, heads, device=DEVICE)
    gates = (-torch.rand(n, heads, device=DEVICE) * 0.1).view(-1, chunk, heads).cumsum(1).view(n, heads).contiguous()
    return q, k, random(n, heads, d), beta, gates


def chunked(x, chunk=64):
    """(n, heads, ...) as (chunks, heads, chunk, ...)."""
    return x.view(-1, chunk, *x.shape[1:]).transpose(1, 2)


def products(n, heads, d, chunk=64):
    _, k, _, beta, gates = delta_inputs(n, heads, d)
    out = empty(n, heads, chunk, dtype=FLOAT)

    def launch(depth, warps, stages):
        sizes = {"HEADS": heads, "D": d, "CHUNK": chunk, "DEPTH": depth}
        grid = n // chunk, heads
        products_kernel[grid](k, beta, gates, out, n, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        keys, betas, decay = (chunked(x.float()) for x in (k, beta, gates))
        sums = (keys * betas[..., None]) @ keys.mT * torch.exp(decay[..., :, None] - decay[..., None, :])
        return sums.tril(-1).transpose(1, 2).reshape(n, heads, chunk)

    tiles = [(64, 4, 3), (64, 2, 3), (128, 4, 2), (32, 8, 3)]
    moved = 2 * k.numel() + 4 * out.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(reference(), 1e-2))


@triton.jit
def inverse_kernel(a_ptr, out_ptr, n, HEADS: tl.constexpr):
    """(1 + a)^-1 of strictly lower 64 x 64 blocks: four of 16 x 16 row by row, then merged by products."""
    chunk, head = tl.program_id(0), tl.program_id(1)
    base = (chunk * 64 * HEADS + head) * 64
    a_ptr += base
    out_ptr += base
    i = tl.arange(0, 16)
    below, diagonal = i[:, None] > i[None, :], i[:, None] == i[None, :]
    places = i[:, None] * HEADS * 64 + i[None, :]
    b11 = -tl.where(below, tl.load(a_ptr + places).to(tl.float32), 0)
    b22 = -tl.where(below, tl.load(a_ptr + 16 * (HEADS * 64 + 1) + places).to(tl.float32), 0)
    b33 = -tl.where(below, tl.load(a_ptr + 32 * (HEADS * 64 + 1) + places).to(tl.float32), 0)
    b44 = -tl.where(below, tl.load(a_ptr + 48 * (HEADS * 64 + 1) + places).to(tl.float32), 0)
    for row in range(2, 16):
        x = -tl.load(a_ptr + row * HEADS * 64 + i)
        x += tl.sum(x[:, None] * b11, 0)
        b11 = tl.where((i == row)[:, None], x, b11)
    for row in range(2, 16):
        x = -tl.load(a_ptr + (16 + row) * HEADS * 64 + 16 + i)
        x += tl.sum(x[:, None] * b22, 0)
        b22 = tl.where((i == row)[:, None], x, b22)
    for row in range(2, 16):
        x = -tl.load(a_ptr + (32 + row) * HEADS * 64 + 32 + i)
        x += tl.sum(x[:, None] * b33, 0)
        b33 = tl.where((i == row)[:, None], x, b33)
    for row in range(2, 16):
        x = -tl.load(a_ptr + (48 + row) * HEADS * 64 + 48 + i)
        x += tl.sum(x[:, None] * b44, 0)
        b44 = tl.where((i == row)[:, None], x, b44)
    b11 += diagonal
    b22 += diagonal
    b33 += diagonal
    b44 += diagonal
    a21 = tl.load(a_ptr + 16 * HEADS * 64 + places)
    a31 = tl.load(a_ptr + 32 * HEADS * 64 + places)
    a32 = tl.load(a_ptr + 32 * HEADS * 64 + 16 + places)
    a41 = tl.load(a_ptr + 48 * HEADS * 64 + places)
    a42 = tl.load(a_ptr + 48 * HEADS * 64 + 16 + places)
    a43 = tl.load(a_ptr + 48 * HEADS * 64 + 32 + places)
    P: tl.constexpr = "ieee"
    b21 = -tl.dot(tl.dot(b22, a21, input_precision=P), b11, input_precision=P)
    b32 = -tl.dot(tl.dot(b33, a32, input_precision=P), b22, input_precision=P)
    b43 = -tl.dot(tl.dot(b44, a43, input_precision=P), b33, input_precision=P)
    b31 = -tl.dot(b33, tl.dot(a31, b11, input_precision=P) + tl.dot(a32, b21, input_precision=P), input_precision=P)
    b42 = -tl.dot(b44, tl.dot(a42, b22, input_precision=P) + tl.dot(a43, b32, input_precision=P), input_precision=P)
    lower = tl.dot(a41, b11, input_precision=P)
    lower += tl.dot(a42, b21, input_precision=P)
    lower += tl.dot(a43, b31, input_precision=P)
    b41 = -tl.dot(b44, lower, input_precision=P)
    out = out_ptr + places
    kind = out_ptr.dtype.element_ty
    tl.store(out, b11.to(kind))
    tl.store(out + 16 * HEADS * 64 + 16, b22.to(kind))
    tl.store(out + 32 * HEADS * 64 + 32, b33.to(kind))
    tl.store(out + 48 * HEADS * 64 + 48, b44.to(kind))
    tl.store(out + 16 * HEADS * 64, b21.to(kind))
    tl.store(out + 32 * HEADS * 64, b31.to(kind))
    tl.store(out + 32 * HEADS * 64 + 16, b32.to(kind))
    tl.store(out + 48 * HEADS * 64, b41.to(kind))
    tl.store(out + 48 * HEADS * 64 + 16, b42.to(kind))
    tl.store(out + 48 * HEADS * 64 + 32, b43.to(kind))


def inverse(n, heads):
    a = (torch.randn(n // 64, heads, 64, 64, device=DEVICE) * 0.2).tril(-1)
    flat = a.transpose(1, 2).reshape(n, heads, 64).contiguous()
    out = torch.zeros(n, heads, 64, device=DEVICE)

    def launch(warps, stages):
        inverse_kernel[n // 64, heads](flat, out, n, HEADS=heads, num_warps=warps, num_stages=stages)

    def reference():
        return torch.linalg.solve_triangular(one + a, one.expand_as(a), upper=False, unitriangular=True)

    one = torch.eye(64, device=DEVICE)

    def check(result):
        return close_to(reference(), 1e-3)(result.nan_to_num().view(-1, 64, heads, 64).transpose(1, 2))

    tiles = [(4, 3), (2, 3), (8, 4), (1, 2)]
    return Case(by_tile(launch, tiles), out, None, reference, 8 * a.numel(), check=check)


@triton.jit
def states_kernel(
    k_ptr, v_ptr, w_ptr, gate_ptr, state_ptr, new_ptr, n,
    HEADS: tl.constexpr, D: tl.constexpr, E: tl.constexpr, CHUNK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The states of a gated delta rule before each chunk, 128 features in two tiles, and the chunk's new values."""
    block, head = tl.program_id(0), tl.program_id(1)
    h1 = tl.zeros([64, COLUMNS], dtype=tl.float32)
    h2 = tl.zeros([64, COLUMNS], dtype=tl.float32)
    k_ptr += head * D
    w_ptr += head * D
    v_ptr += head * E
    new_ptr += head * E
    state_ptr += head * D * E
    for chunk in range(tl.cdiv(n, CHUNK)):
        first = chunk * CHUNK
        place = state_ptr + chunk * HEADS * D * E
        s1 = tl.make_block_ptr(place, (D, E), (E, 1), (0, block * COLUMNS), (64, COLUMNS), (1, 0))
        s2 = tl.make_block_ptr(place, (D, E), (E, 1), (64, block * COLUMNS), (64, COLUMNS), (1, 0))
        tl.store(s1, h1.to(s1.dtype.element_ty), boundary_check=(0, 1))
        tl.store(s2, h2.to(s2.dtype.element_ty), boundary_check=(0, 1))
        w1 = tl.make_block_ptr(w_ptr, (n, D), (HEADS * D, 1), (first, 0), (CHUNK, 64), (1, 0))
        w2 = tl.make_block_ptr(w_ptr, (n, D), (HEADS * D, 1), (first, 64), (CHUNK, 64), (1, 0))
        old = tl.dot(tl.load(w1, boundary_check=(0, 1)), h1.to(w_ptr.dtype.element_ty))
        old += tl.dot(tl.load(w2, boundary_check=(0, 1)), h2.to(w_ptr.dtype.element_ty))
        v = tl.make_block_ptr(v_ptr, (n, E), (HEADS * E, 1), (first, block * COLUMNS), (CHUNK, COLUMNS), (1, 0))
        new = tl.make_block_ptr(new_ptr, (n, E), (HEADS * E, 1), (first, block * COLUMNS), (CHUNK, COLUMNS), (1, 0))
        x = tl.load(v, boundary_check=(0, 1)) - old
        tl.store(new, x.to(new.dtype.element_ty), boundary_check=(0, 1))
        end = tl.load(gate_ptr + (min(first + CHUNK, n) - 1) * HEADS + head)
        gates = tl.make_block_ptr(gate_ptr + head, (n,), (HEADS,), (first,), (CHUNK,), (0,))
        gate = tl.load(gates, boundary_check=(0,))
        inside = first + tl.arange(0, CHUNK) < n
        x = x * tl.where(inside, tl.exp(end - gate), 0)[:, None]
        h1 *= tl.exp(end)
        h2 *= tl.exp(end)
        x = x.to(k_ptr.dtype.element_ty)
        k1 = tl.make_block_ptr(k_ptr, (D, n), (1, HEADS * D), (0, first), (64, CHUNK), (0, 1))
        k2 = tl.make_block_ptr(k_ptr, (D, n), (1, HEADS * D), (64, first), (64, CHUNK), (0, 1))
        h1 += tl.dot(tl.load(k1, boundary_check=(0, 1)), x)
        h2 += tl.dot(tl.load(k2, boundary_check=(0, 1)), x)


def states(n, heads, d, chunk=64):
    _, k, v, _, gates = delta_inputs(n, heads, d)
    w = (random(n, heads, d, dtype=FLOAT) * 0.02).to(BFLOAT)
    out, new = empty(n // chunk, heads, d, d), torch.empty_like(v)

    def launch(columns, warps, stages):
        sizes = {"HEADS": heads, "D": d, "E": d, "CHUNK": chunk, "COLUMNS": columns}
        states_kernel[d // columns, heads](k, v, w, gates, out, new, n, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        keys, values, old, decay = (chunked(x.float()) for x in (k, v, w, gates))
        state, found = torch.zeros(heads, d, d, device=DEVICE), []
        for i in range(n // chunk):
            found.append(state)
            x = values[i] - old[i] @ state.to(BFLOAT).float()
            end = decay[i, :, -1:]
            state = (
                state * end.exp()[..., None]
                + keys[i].mT @ (x * torch.exp(end - decay[i])[..., None]).to(BFLOAT).float()
            )
        return torch.stack(found)

    tiles = [(32, 2, 2), (32, 4, 2), (64, 4, 2), (32, 4, 3), (64, 2, 3)]
    moved = 8 * v.numel() + 2 * out.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(reference(), 2e-2))


@triton.jit
def outputs_kernel(
    q_ptr, k_ptr, v_ptr, state_ptr, gate_ptr, out_ptr, scale, n,
    HEADS: tl.constexpr, D: tl.constexpr, E: tl.constexpr, CHUNK: tl.constexpr,
    DEPTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Results of linear attention in chunks: q times the state before the chunk, and (q k') * decay times v."""
    block, chunk, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = chunk * CHUNK
    out = tl.zeros([CHUNK, COLUMNS], dtype=tl.float32)
    weights = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
    state_ptr += (chunk * HEADS + head).to(tl.int64) * D * E
    for i in range(tl.cdiv(D, DEPTH)):
        q = tl.make_block_ptr(q_ptr + head * D, (n, D), (HEADS * D, 1), (first, i * DEPTH), (CHUNK, DEPTH), (1, 0))
        k = tl.make_block_ptr(k_ptr + head * D, (D, n), (1, HEADS * D), (i * DEPTH, first), (DEPTH, CHUNK), (0, 1))
        h = tl.make_block_ptr(state_ptr, (D, E), (E, 1), (i * DEPTH, block * COLUMNS), (DEPTH, COLUMNS), (1, 0))
        q = tl.load(q, boundary_check=(0, 1))
        k = tl.load(k, boundary_check=(0, 1))
        h = tl.load(h, boundary_check=(0, 1))
        out += tl.dot(q, h)
        weights += tl.dot(q, k)
    gates = tl.make_block_ptr(gate_ptr + head, (n,), (HEADS,), (first,), (CHUNK,), (0,))
    gate = tl.load(gates, boundary_check=(0,))
    out = out * tl.exp(gate)[:, None]
    weights = weights * tl.exp(gate[:, None] - gate[None, :])
    times = first + tl.arange(0, CHUNK)
    seen = (times[:, None] >= times[None, :]) & ((times < n)[:, None] & (times < n)[None, :])
    weights = tl.where(seen, weights, 0)
    v = tl.make_block_ptr(v_ptr + head * E, (n, E), (HEADS * E, 1), (first, block * COLUMNS), (CHUNK, COLUMNS), (1, 0))
    o = tl.make_block_ptr(
        out_ptr + head * E, (n, E), (HEADS * E, 1), (first, block * COLUMNS), (CHUNK, COLUMNS), (1, 0)
    )
    v = tl.load(v, boundary_check=(0, 1))
    out = out * scale + tl.dot(weights.to(v.dtype), v) * scale
    tl.store(o, out.to(o.dtype.element_ty), boundary_check=(0, 1))


def outputs(n, heads, d, chunk=64):
    q, k, v, _, gates = delta_inputs(n, heads, d)
    state, out = random(n // chunk, heads, d, d), torch.empty_like(v)

    def launch(depth, columns, warps, stages):
        sizes = {"HEADS": heads, "D": d, "E": d, "CHUNK": chunk, "DEPTH": depth, "COLUMNS": columns}
        arguments = q, k, v, state, gates, out, d**-0.5, n
        outputs_kernel[d // columns, n // chunk, heads](*arguments, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        queries, keys, values, decay = (chunked(x.float()) for x in (q, k, v, gates))
        weights = queries @ keys.mT * torch.exp(decay[..., :, None] - decay[..., None, :]).tril()
        found = queries @ state.float() * decay.exp()[..., None] + weights.tril() @ values
        return (found * d**-0.5).transpose(1, 2).reshape(n, heads, d)

    tiles = [(64, 64, 4, 3), (64, 128, 4, 2), (128, 64, 4, 2), (32, 64, 2, 3), (64, 128, 8, 3)]
    moved = 8 * v.numel() + 2 * state.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(reference(), 1e-2))


@triton.jit
def recurrent_kernel(
    q_ptr, k_ptr, v_ptr, gate_ptr, beta_ptr, state_ptr, next_ptr, out_ptr, scale, n,
    HEADS: tl.constexpr, D: tl.constexpr, E: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The gated delta rule token by token, for decoding; q and k are made of length 1 here."""
    block, sequence, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    features, columns = tl.arange(0, D), block * COLUMNS + tl.arange(0, COLUMNS)
    row = (sequence * n) * HEADS + head
    q_ptrs, k_ptrs = q_ptr + row * D + features, k_ptr + row * D + features
    v_ptrs, out_ptrs = v_ptr + row * E + columns, out_ptr + row * E + columns
    gate_ptrs, beta_ptrs = gate_ptr + row, beta_ptr + row
    place = (sequence * HEADS + head).to(tl.int64) * D * E + features[:, None] * E + columns[None, :]
    state = tl.load(state_ptr + place).to(tl.float32)
    for _ in range(0, n):
        q = tl.load(q_ptrs).to(tl.float32)
        k = tl.load(k_ptrs).to(tl.float32)
        v = tl.load(v_ptrs).to(tl.float32)
        q = q / tl.sqrt(tl.sum(q * q) + 1e-6) * scale
        k = k / tl.sqrt(tl.sum(k * k) + 1e-6)
        state *= tl.exp(tl.load(gate_ptrs).to(tl.float32))
        v -= tl.sum(state * k[:, None], 0)
        v *= tl.load(beta_ptrs).to(tl.float32)
        state += k[:, None] * v[None, :]
        tl.store(out_ptrs, tl.sum(state * q[:, None], 0).to(out_ptr.dtype.element_ty))
        q_ptrs += HEADS * D
        k_ptrs += HEADS * D
        v_ptrs += HEADS * E
        out_ptrs += HEADS * E
        gate_ptrs += HEADS
        beta_ptrs += HEADS
    tl.store(next_ptr + place, state)


def recurrent(batch, n, heads, d):
    q, k, v = (random(batch, n, heads, d) for _ in range(3))
    gates, beta = -torch.rand(batch, n, heads, device=DEVICE), torch.rand(batch, n, heads, device=DEVICE)
    state, out = random(batch, heads, d, d, dtype=FLOAT) * 0.1, torch.empty_like(v)
    following = torch.empty_like(state)

    def launch(columns, warps, stages):
        sizes = {"HEADS": heads, "D": d, "E": d, "COLUMNS": columns}
        arguments = q, k, v, gates, beta, state, following, out, d**-0.5, n
        recurrent_kernel[d // columns, batch, heads](*arguments, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        now, found = state, []
        for t in range(n):
            x, y = (torch.nn.functional.normalize(p[:, t].float(), dim=2) for p in (q, k))
            now = now * gates[:, t].exp()[..., None, None]
            z = (v[:, t].float() - torch.einsum("bhde,bhd->bhe", now, y)) * beta[:, t, :, None]
            now = now + y[..., None] * z[:, :, None]
            found.append(torch.einsum("bhde,bhd->bhe", now, x) * d**-0.5)
        return torch.stack(found, 1)

    tiles = [(8, 1, 3), (32, 1, 3), (32, 4, 1), (64, 4, 1)]
    moved = 8 * v.numel() + 8 * state.numel()
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(reference(), 1e-2))


KERNELS = {  # name: what makes the case, its sizes, and sizes for tests
    "decode 128x32/8x4096x128 bf16": (decode, (128, 32, 8, 4096, 128, 8), (2, 8, 2, 208, 128, 2)),
    "decode 64x32x2048x128 bf16": (decode, (64, 32, 32, 2048, 128, 8), (2, 4, 4, 208, 128, 2)),
    "mixed prompts 8x32/8x(1024+1024)x128": (mixed, (8, 32, 8, 1024, 1024, 128), (2, 8, 2, 80, 48, 128)),
    "mixed decode 128x32/8x2048x128": (mixed, (128, 32, 8, 2047, 1, 128), (2, 8, 2, 79, 1, 128)),
    "merging 8192x32x128 bf16": (merge_two, (8192, 32, 128), (3, 4, 128)),
    "window of 1024 in 8192, 4x32/8x128": (sparse, (1, 32, 8, 8192, 128, 1024), (1, 2, 1, 512, 128, 200)),
    "causal blocks 2x16x4096x64": (sparse, (2, 16, 16, 4096, 64, 4096), (1, 2, 2, 512, 64, 512)),
    "steps of chunks 65536x80": (steps, (65536, 80, 256), (512, 20, 256)),
    "states of chunks 8192x80x64x128": (chunk_states, (8192, 80, 8, 64, 128, 256), (512, 4, 2, 64, 128, 256)),
    "passing states 16384x80x64x128": (pass_states, (16384, 80, 64, 128, 256), (768, 2, 64, 16, 256)),
    "scan of chunks 8192x80x64x128": (chunk_scan, (8192, 80, 8, 64, 128, 256), (256, 4, 2, 64, 128, 256)),
    "step of states 128x80x64x128": (update, (128, 80, 8, 64, 128), (2, 4, 2, 64, 128)),
    "causal convolution 4x4096x4096 bf16": (causal, (4, 4096, 4096), (2, 80, 80)),
    "delta products 32768x16x128": (products, (32768, 16, 128), (128, 2, 128)),
    "delta inverse 32768x16": (inverse, (32768, 16), (128, 2)),
    "delta states 8192x32x128": (states, (8192, 32, 128), (192, 2, 128)),
    "delta outputs 32768x16x128": (outputs, (32768, 16, 128), (128, 2, 128)),
    "delta steps 128x4x32x128": (recurrent, (128, 4, 32, 128), (2, 3, 2, 128)),
}
