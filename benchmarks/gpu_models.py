"""Kernels for gpu.py as models have them: products with something around them, in the ways that libraries write them.

Reference results are computed by torch in higher precision; what is timed beside the kernels is torch's nearest
equivalent, which often has more to do.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case, by_tile, is_close

import triton
import triton.language as tl

HALF, FP8 = torch.float16, torch.float8_e4m3fn
GROUP = 128  # elements along K with one scale


def random(*shape, dtype=HALF):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def close_to(expected):
    return lambda result: is_close(result, expected, 5e-3)


@triton.jit
def int8_weights_kernel(
    a_ptr, b_ptr, scale_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + columns[None, :]
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(0, k, DEPTH):
        a = tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0)
        sums = tl.dot(a, tl.load(b_ptrs).to(tl.float16), sums)
        a_ptrs += DEPTH
        b_ptrs += DEPTH * n
    sums *= tl.load(scale_ptr + columns)[None, :]
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16), mask=rows[:, None] < m)


def int8_weights(m, n, k):
    a, scale = random(m, k), torch.rand(n, device=DEVICE)
    b = torch.randint(-128, 128, (k, n), device=DEVICE, dtype=torch.int8)
    out, wide = torch.empty(m, n, device=DEVICE, dtype=HALF), (b.float() * scale).to(HALF)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": warps, "num_stages": stages}
        int8_weights_kernel[triton.cdiv(m, rows), n // columns](a, b, scale, out, m, n, k, **sizes)

    tiles = (
        [(16, 64, 128, 4, 4), (16, 32, 128, 4, 4)]
        if m <= 16
        else [(128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (128, 128, 64, 4, 3)]
    )
    check = close_to(a.double() @ (b.double() * scale.double()))
    return Case(by_tile(launch, tiles), out, None, lambda: a @ wide, 2 * m * k + k * n + 2 * m * n, check=check)


@triton.jit
def scaled_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """8-bit floats with a scale for each row of a and 128 columns of b, in groups of 128 along K. b is (n, k)."""
    tiles_down = m // ROWS
    rows = tl.program_id(0) % tiles_down * ROWS + tl.arange(0, ROWS)
    first_column = tl.program_id(0) // tiles_down * COLUMNS
    columns = first_column + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + columns[None, :] * k + depth[:, None]
    a_scale_ptrs = a_scale_ptr + rows * (k // DEPTH)
    b_scale_ptrs = b_scale_ptr + columns // DEPTH * (k // DEPTH)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, tl.cdiv(k, DEPTH)):
        a_scale = tl.load(a_scale_ptrs + start)
        b_scale = tl.load(b_scale_ptrs + start)
        sums += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs)) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += DEPTH
        b_ptrs += DEPTH
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def scaled(m, n, k):
    a, b = random(m, k, dtype=FP8), random(n, k, dtype=FP8)
    a_scale = torch.rand(m, k // GROUP, device=DEVICE) + 0.5
    b_scale = torch.rand(n // GROUP, k // GROUP, device=DEVICE) + 0.5
    out = torch.empty(m, n, device=DEVICE, dtype=HALF)
    wide = [
        (a.float() * a_scale.repeat_interleave(GROUP, 1)).to(HALF),
        (b.float() * b_scale.repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1)).to(HALF),
    ]

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": warps, "num_stages": stages}
        scaled_kernel[(m // rows * (n // columns),)](a, b, a_scale, b_scale, out, m, n, k, **sizes)

    tiles = [(128, 128, 128, 8, 3), (128, 128, 128, 8, 4), (64, 128, 128, 4, 3), (64, 128, 128, 4, 4)]
    check = close_to(wide[0].float() @ wide[1].float().T)
    return Case(by_tile(launch, tiles), out, None, lambda: wide[0] @ wide[1].T, m * k + n * k + 2 * m * n, check=check)


@triton.jit
def experts_kernel(
    a_ptr, b_ptr, out_ptr, token_ptr, expert_ptr, n, k, tokens,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """Rows gathered by token, each block of them for one expert's weights (n, k)."""
    program = tl.program_id(0)
    tiles_down, tiles_across = tl.cdiv(tokens, ROWS), tl.cdiv(n, COLUMNS)
    band = program // (BAND * tiles_across)
    height = min(tiles_down - band * BAND, BAND)
    inside = program % (BAND * tiles_across)
    block = band * BAND + inside % height
    columns = (inside // height * COLUMNS + tl.arange(0, COLUMNS)) % n
    token = tl.load(token_ptr + block * ROWS + tl.arange(0, ROWS))
    real = token < tokens
    depth = tl.arange(0, DEPTH)
    expert = tl.load(expert_ptr + block).to(tl.int64)
    a_ptrs = a_ptr + token[:, None] // 2 * k + depth[None, :]
    b_ptrs = b_ptr + expert * n * k + columns[None, :] * k + depth[:, None]
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, tl.cdiv(k, DEPTH)):
        a = tl.load(a_ptrs, mask=real[:, None] & (depth[None, :] < k - start * DEPTH), other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < k - start * DEPTH, other=0.0)
        sums += tl.dot(a, b)
        a_ptrs += DEPTH
        b_ptrs += DEPTH
    tl.store(out_ptr + token[:, None] * n + columns[None, :], sums.to(tl.float16), mask=real[:, None])


def experts(tokens, n, k, count):
    """Every row of a goes to two experts; blocks of 64 rows per expert."""
    block = 64
    a, b = random(tokens // 2, k), random(count, n, k)
    order = torch.randperm(tokens, device=DEVICE).to(torch.int32)
    expert = torch.arange(tokens // block, device=DEVICE, dtype=torch.int32) % count
    out = torch.empty(tokens, n, device=DEVICE, dtype=HALF)
    expected = torch.empty(tokens, n, device=DEVICE)
    for i in range(tokens // block):
        rows = order[i * block : (i + 1) * block].long()
        expected[rows] = a[rows // 2].float() @ b[expert[i].item()].float().T

    def launch(rows, columns, depth, warps, stages):
        grid = (tokens // rows * triton.cdiv(n, columns),)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8, "num_warps": warps, "num_stages": stages}
        experts_kernel[grid](a, b, out, order, expert, n, k, tokens, **sizes)

    tiles = [(64, 128, 64, 4, 4), (64, 128, 64, 4, 3), (64, 256, 64, 8, 3), (64, 64, 64, 4, 4)]
    moved = a.numel() * 2 + b.numel() * 2 + 2 * out.numel()
    return Case(by_tile(launch, tiles), out, None, lambda: a @ b[0].T, moved, check=close_to(expected))


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sum_ptr, scale, n, share,
    D: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One query for each of HEADS heads that share keys, past one share of these."""
    group, part = tl.program_id(0), tl.program_id(1)
    heads, features, columns = tl.arange(0, HEADS), tl.arange(0, D), tl.arange(0, COLUMNS)
    q = tl.load(q_ptr + (group * HEADS + heads[:, None]) * D + features[None, :])
    highest = tl.full([HEADS], float("-inf"), tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    out = tl.zeros([HEADS, D], tl.float32)
    base = group.to(tl.int64) * n * D
    first = part * share
    for start in range(first, min(first + share, n), COLUMNS):
        inside = start + columns < n
        k = tl.load(k_ptr + base + (start + columns[None, :]) * D + features[:, None], mask=inside[None, :], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(q, k) * scale, float("-inf"))
        now = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - now[:, None])
        fade = tl.exp2(highest - now)
        total = total * fade + tl.sum(powers, axis=1)
        v = tl.load(v_ptr + base + (start + columns[:, None]) * D + features[None, :], mask=inside[:, None], other=0.0)
        out = tl.dot(powers.to(v.dtype), v, out * fade[:, None])
        highest = now
    place = (group * tl.num_programs(1) + part) * HEADS + heads
    tl.store(out_ptr + place[:, None] * D + features[None, :], out / total[:, None])
    tl.store(sum_ptr + place, highest + tl.log2(total))


def decode(batch, n, d, parts):
    heads = 16
    q, k, v = random(batch, heads, d), random(batch, n, d), random(batch, n, d)
    out = torch.empty(batch, parts, heads, d, device=DEVICE)
    sums = torch.empty(batch, parts, heads, device=DEVICE)
    share, scale = n // parts, d**-0.5 * 1.4426950408889634
    scores = torch.einsum("bhd,bpnd->bphn", q.float(), k.float().view(batch, parts, share, d)) * d**-0.5
    expected = torch.einsum("bphn,bpnd->bphd", scores.softmax(-1), v.float().view(batch, parts, share, d))

    def launch(columns, warps, stages):
        sizes = {"D": d, "HEADS": heads, "COLUMNS": columns, "num_warps": warps, "num_stages": stages}
        decode_kernel[batch, parts](q, k, v, out, sums, scale, n, share, **sizes)

    def reference():
        shared = [x[:, None].expand(batch, heads, n, d) for x in (k, v)]
        return torch.nn.functional.scaled_dot_product_attention(q[:, :, None], *shared)

    tiles = [(64, 4, 3), (64, 4, 2), (128, 4, 2), (32, 4, 3), (32, 2, 3), (128, 8, 2)]
    return Case(by_tile(launch, tiles), out, None, reference, 4 * k.numel(), check=close_to(expected))


@triton.jit
def states_kernel(
    k_ptr, v_ptr, decay_ptr, out_ptr, n, D: tl.constexpr, E: tl.constexpr, CHUNK: tl.constexpr, COLUMNS: tl.constexpr
):
    """The states of linear attention before each chunk of tokens: h = h * decay + k' v."""
    head = tl.program_id(1).to(tl.int64)
    features, rows = tl.arange(0, D), tl.arange(0, CHUNK)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    state = tl.zeros((D, COLUMNS), tl.float32)
    for chunk in range(0, n // CHUNK):
        place = (head * (n // CHUNK) + chunk) * D * E
        tl.store(out_ptr + place + features[:, None] * E + columns[None, :], state.to(tl.float16))
        tokens = head * n + chunk * CHUNK + rows
        k = tl.load(k_ptr + tokens[None, :] * D + features[:, None])
        v = tl.load(v_ptr + tokens[:, None] * E + columns[None, :])
        decay = tl.load(decay_ptr + tokens)
        last = tl.load(decay_ptr + head * n + chunk * CHUNK + CHUNK - 1)
        state *= tl.exp(last)
        state = tl.dot(k, (v * tl.exp(last - decay)[:, None]).to(k.dtype), state)


def states(heads, n, d, chunk):
    k, v = random(heads, n, d), random(heads, n, d)
    decay = -torch.rand(heads, n // chunk, chunk, device=DEVICE).cumsum(-1) * 0.05
    out = torch.empty(heads, n // chunk, d, d, device=DEVICE, dtype=HALF)
    parts = [x.view(heads, n // chunk, chunk, d) for x in (k, v)]
    expected, state = torch.empty_like(out, dtype=torch.float32), torch.zeros(heads, d, d, device=DEVICE)
    for i in range(n // chunk):
        expected[:, i] = state
        last = decay[:, i, -1:, None]
        weighted = (parts[1][:, i] * torch.exp(last - decay[:, i, :, None])).to(HALF).float()
        state = state * torch.exp(last) + parts[0][:, i].float().mT @ weighted

    def launch(columns, warps, stages):
        sizes = {"D": d, "E": d, "CHUNK": chunk, "COLUMNS": columns, "num_warps": warps, "num_stages": stages}
        states_kernel[d // columns, heads](k, v, decay, out, n, **sizes)

    def reference():
        return parts[0].mT @ parts[1]

    tiles = [(64, 4, 2), (64, 4, 3), (128, 4, 2), (32, 4, 3), (32, 2, 2), (64, 8, 2)]
    return Case(by_tile(launch, tiles), out, None, reference, 4 * k.numel() + 2 * out.numel(), check=close_to(expected))


@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, out_ptr, height, width, channels, filters, count,
    SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Implicit product: x is (batch, height, width, channels), w (SIDE, SIDE, channels, filters), same padding."""
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    across, down = places % width, places // width % height
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    per_place = channels // DEPTH
    for step in range(0, SIDE * SIDE * per_place):
        tap = step // per_place
        y, x = tap // SIDE - SIDE // 2, tap % SIDE - SIDE // 2
        first = step % per_place * DEPTH
        inside = (down + y >= 0) & (down + y < height) & (across + x >= 0) & (across + x < width) & (places < count)
        a_ptrs = x_ptr + (places + y * width + x)[:, None] * channels + first + depth[None, :]
        a = tl.load(a_ptrs, mask=inside[:, None], other=0.0)
        b = tl.load(w_ptr + (tap * channels + first + depth[:, None]) * filters + columns[None, :])
        sums = tl.dot(a, b, sums)
    tl.store(
        out_ptr + places[:, None] * filters + columns[None, :], sums.to(tl.float16), mask=(places < count)[:, None]
    )


def convolution(batch, side, channels, filters):
    x = random(batch, channels, side, side).to(memory_format=torch.channels_last)
    w = random(filters, channels, 3, 3).to(memory_format=torch.channels_last)
    weights, count = w.permute(2, 3, 1, 0).contiguous(), batch * side * side
    out = torch.empty(batch, side, side, filters, device=DEVICE, dtype=HALF)
    expected = torch.nn.functional.conv2d(x.float(), w.float(), padding=1).permute(0, 2, 3, 1)

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": warps, "num_stages": stages}
        grid = triton.cdiv(count, rows), filters // columns
        convolution_kernel[grid](x, weights, out, side, side, channels, filters, count, SIDE=3, **sizes)

    tiles = [(128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (64, 128, 64, 4, 4), (128, 256, 64, 8, 3)]
    tiles = [tile for tile in tiles if tile[1] <= filters]
    moved = 2 * (x.numel() + w.numel() + out.numel())
    reference = partial(torch.nn.functional.conv2d, x, w, padding=1)
    return Case(by_tile(launch, tiles), out, None, reference, moved, check=close_to(expected))


@triton.jit
def layer_kernel(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Persistent programs: gelu(a b' + bias), where a is stored (k, m) and b (n, k)."""
    tiles_down, tiles = tl.cdiv(m, ROWS), tl.cdiv(m, ROWS) * tl.cdiv(n, COLUMNS)
    depth = tl.arange(0, DEPTH)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        rows = tile % tiles_down * ROWS + tl.arange(0, ROWS)
        columns = tile // tiles_down * COLUMNS + tl.arange(0, COLUMNS)
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, tl.cdiv(k, DEPTH)):
            inner = start * DEPTH + depth
            a = tl.load(a_ptr + inner[None, :] * m + rows[:, None])
            b = tl.load(b_ptr + columns[None, :] * k + inner[:, None])
            sums = tl.dot(a, b, sums)
        sums += tl.load(bias_ptr + columns)[None, :]
        sums = 0.5 * sums * (1 + tl.erf(sums * 0.7071067811865476))
        tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def layer(m, n, k):
    a, b, bias = random(k, m), random(n, k) * 0.05, random(n)
    out = torch.empty(m, n, device=DEVICE, dtype=HALF)

    def launch(rows, columns, depth, warps, stages, programs):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": warps, "num_stages": stages}
        layer_kernel[(132 * programs,)](a, b, bias, out, m, n, k, **sizes)

    def reference():
        return torch.nn.functional.gelu(torch.nn.functional.linear(a.T, b, bias))

    tiles = [(128, 256, 64, 8, 3, 1), (128, 128, 64, 8, 3, 1), (128, 128, 64, 4, 3, 2), (64, 128, 64, 4, 4, 2)]
    check = close_to(torch.nn.functional.gelu(a.float().T @ b.float().T + bias.float()))
    return Case(by_tile(launch, tiles), out, None, reference, 2 * (m * k + n * k + m * n), check=check)


@triton.jit
def split_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """K is shared by PARTS programs, which add to the result."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.program_id(2) * DEPTH + tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + columns[None, :]
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(0, tl.cdiv(k, DEPTH * PARTS)):
        a = tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0)
        sums += tl.dot(a, tl.load(b_ptrs))
        a_ptrs += DEPTH * PARTS
        b_ptrs += DEPTH * PARTS * n
    tl.atomic_add(out_ptr + rows[:, None] * n + columns[None, :], sums, mask=rows[:, None] < m, sem="relaxed")


def split(m, n, k):
    a, b = random(m, k), random(k, n)
    out = torch.empty(m, n, device=DEVICE)

    def launch(rows, columns, depth, warps, stages, parts):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "PARTS": parts}
        out.zero_()
        grid = triton.cdiv(m, rows), n // columns, parts
        split_kernel[grid](a, b, out, m, n, k, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(16, 64, 128, 4, 4, 4), (16, 128, 64, 4, 4, 8), (64, 128, 64, 4, 4, 4), (64, 64, 64, 4, 4, 4)]
    tiles = [tile for tile in tiles if (tile[0] > 16) == (m > 16)]
    check = close_to(a.double() @ b.double())
    return Case(by_tile(launch, tiles), out, None, lambda: a @ b, 2 * (m * k + n * k) + 4 * m * n, check=check)


CASES = {
    "16x4096x4096 with int8 weights": partial(int8_weights, 16, 4096, 4096),
    "4096x4096x4096 with int8 weights": partial(int8_weights, 4096, 4096, 4096),
    "4096x4096x4096 of scaled fp8": partial(scaled, 4096, 4096, 4096),
    "experts 8 of 4096x4096, 4096 tokens": partial(experts, 4096, 4096, 4096, 8),
    "decode 64 of 8192x128": partial(decode, 64, 8192, 128, 8),
    "states 32 of 8192x128": partial(states, 32, 8192, 128, 64),
    "convolution 32 of 56x56x128": partial(convolution, 32, 56, 128, 128),
    "convolution 32 of 14x14x512": partial(convolution, 32, 14, 512, 512),
    "layer 4096x4096x4096": partial(layer, 4096, 4096, 4096),
    "split 16x4096x14336": partial(split, 16, 4096, 14336),
    "split 64x4096x14336": partial(split, 64, 4096, 14336),
}
