"""Kernels for gpu.py as libraries write them, of lists and pictures: sampling, caches, segments, gathers, windows.

And loops as graph compilers generate them: a tile of rows past pieces of the reduced dimension, everything masked.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case
from gpu_library_rows import BFLOAT, FLOAT, HALF, close_to, random

import triton
import triton.language as tl

INT32 = torch.int32


def by_block(launch, *tiles):
    return {"x".join(map(str, tile)): partial(launch, *tile) for tile in tiles}


def integers(high, *shape, dtype=INT32):
    return torch.randint(0, high, shape, device=DEVICE, dtype=dtype)


def same(expected):
    return lambda result: torch.equal(result, expected)


# ---- sampling


@triton.jit
def sample_kernel(x_ptr, out_ptr, best_ptr, n_columns, seed, parts, BLOCK: tl.constexpr):
    """The maximum, and its place, of a part of a row with Gumbel's noise."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = part * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=float("-inf")).to(tl.float32)
    chance = tl.maximum(tl.rand(seed + row.to(tl.int32), columns), 1e-7)
    x = tl.where(mask, x - tl.log(-tl.log(chance)), float("-inf"))
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr + row * parts + part, part * BLOCK + place)
    tl.store(best_ptr + row * parts + part, value)


def sample(rows, columns, block):
    x, parts = random(rows, columns) * 8, triton.cdiv(columns, block)
    out, best = torch.empty(rows, parts, device=DEVICE, dtype=INT32), torch.empty(rows, parts, device=DEVICE)

    def launch(warps):
        sample_kernel[rows, parts](x, out, best, columns, 1234, parts, BLOCK=block, num_warps=warps)

    def check(result):
        """Noise is below 17, and hardly anywhere below -3: the maximum is not far below that without noise."""
        pieces = torch.nn.functional.pad(x.float(), (0, parts * block - columns), value=-1e30).view(rows, parts, block)
        places = (result - torch.arange(parts, device=DEVICE) * block).long()
        own = pieces.gather(2, places[..., None])[..., 0]
        return bool(((best - own).abs() < 17).all()) and bool((best > pieces.amax(2) - 4).all())

    configs = {f"num_warps={warps}": partial(launch, warps) for warps in (4, 8)}
    return Case(configs, out, None, lambda: torch.multinomial(x.float().exp(), 1), 2 * x.numel(), check=check)


@triton.jit
def penalties_kernel(
    x_ptr, out_ptr, seen_ptr, count_ptr, repetition_ptr, frequency_ptr, presence_ptr, heat_ptr, n_columns, words,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Logits less what tokens that came before cost; those of the prompt are bits of words."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask).to(tl.float32)
    counts = tl.load(count_ptr + row * n_columns + columns, mask=mask, other=0)
    packed = block * BLOCK // 32 + tl.arange(0, BLOCK // 32)
    bits = tl.load(seen_ptr + row * words + packed, mask=packed < words, other=0)
    seen = ((bits[:, None] >> tl.arange(0, 32)[None, :]) & 1).reshape(BLOCK)
    came = counts > 0
    scale = tl.where(seen.to(tl.int1) | came, tl.load(repetition_ptr + row), 1.0)
    x *= tl.where(x > 0, 1.0 / scale, scale)
    x -= tl.load(frequency_ptr + row) * counts
    x -= tl.load(presence_ptr + row) * came
    tl.store(out_ptr + row * n_columns + columns, x / tl.load(heat_ptr + row), mask=mask)


def penalties(rows, columns):
    x, counts = random(rows, columns), integers(20, rows, columns) // 18
    words = triton.cdiv(columns, 32)
    seen = torch.randint(-(1 << 31), 1 << 31, (rows, words), device=DEVICE, dtype=torch.int64).to(INT32)
    numbers = [torch.rand(rows, device=DEVICE) + 0.5 for _ in range(4)]
    out = torch.empty(rows, columns, device=DEVICE)

    def launch(block, warps):
        penalties_kernel[rows, triton.cdiv(columns, block)](
            x, out, seen, counts, *numbers, columns, words, BLOCK=block, num_warps=warps
        )

    def reference():
        bits = (seen[..., None] >> torch.arange(32, device=DEVICE) & 1).flatten(1)[:, :columns].bool()
        scale = torch.where(bits | (counts > 0), numbers[0][:, None], 1.0)
        y = torch.where(x > 0, x / scale, x * scale)
        return (y - numbers[1][:, None] * counts - numbers[2][:, None] * (counts > 0)) / numbers[3][:, None]

    check = close_to(reference())
    return Case(by_block(launch, (8192, 4), (1024, 4)), out, None, reference, 10 * x.numel(), check=check)


@triton.jit
def threshold_kernel(x_ptr, out_ptr, k_ptr, n_columns, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """The K largest of a row stay, the others become -inf: the boundary is searched for between minimum and maximum."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_columns
    out_ptr += row * n_columns
    k = tl.load(k_ptr + row)
    low, high = float("inf"), -float("inf")
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n_columns, other=-float("inf"))
        high = tl.maximum(high, tl.max(x))
        low = tl.minimum(low, tl.min(tl.where(columns < n_columns, x, float("inf"))))
    step = 0
    while step < STEPS:
        middle = (low + high) / 2
        above = 0
        for start in range(0, n_columns, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + columns, mask=columns < n_columns, other=-float("inf"))
            above += tl.sum((x >= middle).to(tl.int32))
        if above >= k:
            low = middle
        else:
            high = middle
        step = STEPS if above == k else step + 1
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n_columns, other=-float("inf"))
        tl.store(out_ptr + columns, tl.where(x >= low, x, -float("inf")), mask=columns < n_columns)


def threshold(rows, columns, k):
    x = torch.stack([torch.randperm(columns, device=DEVICE) for _ in range(rows)]).float() / columns
    ks, out = torch.full((rows,), k, device=DEVICE, dtype=INT32), torch.empty_like(x)

    def launch(block, warps):
        threshold_kernel[(rows,)](x, out, ks, columns, BLOCK=block, STEPS=32, num_warps=warps)

    def reference():
        return torch.where(x >= x.topk(k)[0][:, -1:], x, -float("inf"))

    return Case(
        by_block(launch, (8192, 8), (16384, 16), (4096, 4)),
        out,
        reference,
        reference,
        8 * x.numel(),
        check=same(reference()),
    )


@triton.jit
def sorted_places_kernel(x_ptr, out_ptr, place_ptr, n_columns, BLOCK: tl.constexpr):
    """Rows sorted downwards with their places: both in one number of 64 bits."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_columns + columns, mask=columns < n_columns, other=-float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = (bits.to(tl.int64) << 32) | columns.to(tl.int64)
    key = tl.sort(key, descending=True)
    place = (key & 0xFFFFFFFF).to(tl.int32)
    bits = (key >> 32).to(tl.int32)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(out_ptr + row * n_columns + columns, bits.to(tl.float32, bitcast=True), mask=columns < n_columns)
    tl.store(place_ptr + row * n_columns + columns, place, mask=columns < n_columns)


def sorted_places(rows, columns):
    x = random(rows, columns, dtype=FLOAT)
    out, places = torch.empty_like(x), torch.empty_like(x, dtype=INT32)

    def launch(warps):
        block = triton.next_power_of_2(columns)
        sorted_places_kernel[(rows,)](x, out, places, columns, BLOCK=block, num_warps=warps)

    def check(result):
        return torch.equal(result, x.sort(1, descending=True)[0]) and torch.equal(x.gather(1, places.long()), result)

    return Case(
        by_block(launch, (4,), (8,)), out, None, partial(torch.sort, x, 1, descending=True), 12 * x.numel(), check=check
    )


@triton.jit
def quantile_kernel(x_ptr, out_ptr, n_rows, n_columns, share, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A quantile of each row, between two of its sorted elements, which are picked out by sums."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_columns + columns[None, :], mask=mask, other=float("inf"))
    x = tl.sort(x, dim=1)
    place = share * (n_columns - 1)
    below = tl.floor(place)
    weight = place - below
    lower = tl.sum(tl.where(columns[None, :] == below.to(tl.int32), x, 0), axis=1)
    upper = tl.sum(tl.where(columns[None, :] == tl.ceil(place).to(tl.int32), x, 0), axis=1)
    tl.store(out_ptr + rows, lower * (1 - weight) + upper * weight, mask=rows < n_rows)


def quantile(rows, columns):
    x, out = random(rows, columns, dtype=FLOAT), torch.empty(rows, device=DEVICE)

    def launch(block, warps):
        grid = (triton.cdiv(rows, block),)
        block_columns = triton.next_power_of_2(columns)
        quantile_kernel[grid](x, out, rows, columns, 0.3, ROWS=block, BLOCK=block_columns, num_warps=warps)

    reference = partial(torch.quantile, x, 0.3, dim=1)
    tiles = (1, 1), (4, 4), (2, 4)
    return Case(by_block(launch, *tiles), out, None, reference, 4 * x.numel(), check=close_to(reference(), 1e-5))


# ---- caches, tables, segments


@triton.jit
def cache_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slot_ptr, heads, block_size,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Keys and values of new tokens to their slots in pages (page, block_size, heads, D)."""
    token, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot = tl.load(slot_ptr + token)
    if slot < 0:
        return
    page, inside = slot // block_size, slot % block_size
    places = part * BLOCK + tl.arange(0, BLOCK)
    mask = places < heads * D
    target = (page * block_size + inside) * heads * D + places
    tl.store(k_cache_ptr + target, tl.load(k_ptr + token * heads * D + places, mask=mask), mask=mask)
    tl.store(v_cache_ptr + target, tl.load(v_ptr + token * heads * D + places, mask=mask), mask=mask)


def cache(tokens, heads, d, page=16):
    k, v = random(tokens, heads, d), random(tokens, heads, d)
    slots = torch.randperm(2 * tokens, device=DEVICE)[:tokens]
    caches = torch.zeros(2, 2 * tokens // page, page, heads, d, device=DEVICE, dtype=BFLOAT)

    def launch(block, warps):
        grid = tokens, triton.cdiv(heads * d, block)
        cache_kernel[grid](k, v, caches[0], caches[1], slots, heads, page, D=d, BLOCK=block, num_warps=warps)

    def reference():
        caches[0].view(-1, heads, d)[slots], caches[1].view(-1, heads, d)[slots] = k, v

    def check(result):
        flat = result.view(2, -1, heads, d)
        return torch.equal(flat[0, slots], k) and torch.equal(flat[1, slots], v)

    return Case(by_block(launch, (1024, 4), (1024, 16), (512, 2)), caches, None, reference, 8 * k.numel(), check=check)


@triton.jit
def rows_kernel(x_ptr, index_ptr, out_ptr, weight_ptr, count, n_columns, SCATTER: tl.constexpr, BLOCK: tl.constexpr):
    """Rows picked by an index, or put where it says, with a weight each."""
    row = tl.program_id(0)
    other = tl.load(index_ptr + row).to(tl.int64)
    weight = tl.load(weight_ptr + row)
    source = row.to(tl.int64) if SCATTER else other
    target = other if SCATTER else row.to(tl.int64)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_columns
        x = tl.load(x_ptr + source * n_columns + columns, mask=mask)
        tl.store(out_ptr + target * n_columns + columns, (x * weight).to(x.dtype), mask=mask)


def rows_by_index(rows, columns, scatter):
    x, weights = random(rows, columns), torch.rand(rows, device=DEVICE)
    index = torch.randperm(rows, device=DEVICE)
    out, expected = torch.empty_like(x), torch.empty_like(x)
    if scatter:
        expected[index] = (x * weights[:, None]).to(BFLOAT)
    else:
        expected = (x[index] * weights[:, None]).to(BFLOAT)

    def launch(block, warps):
        rows_kernel[(rows,)](x, index, out, weights, rows, columns, SCATTER=scatter, BLOCK=block, num_warps=warps)

    tiles = (1024, 4), (512, 4), (4096, 8)
    return Case(by_block(launch, *tiles), out, None, lambda: x[index], 4 * x.numel(), check=close_to(expected))


@triton.jit
def weighted_rows_kernel(
    x_ptr, weight_ptr, out_ptr, tokens, n_columns, TOP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """What a token's TOP experts gave, (tokens, TOP, n_columns), summed up."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = columns < n_columns
    first = tl.program_id(0) * ROWS
    for token in range(first, min(first + ROWS, tokens)):
        sums = tl.zeros((COLUMNS,), dtype=tl.float32)
        for i in tl.range(0, TOP, num_stages=2):
            x = tl.load(x_ptr + (token.to(tl.int64) * TOP + i) * n_columns + columns, mask=mask, other=0.0)
            sums += x * tl.load(weight_ptr + token * TOP + i)
        tl.store(out_ptr + token.to(tl.int64) * n_columns + columns, sums.to(out_ptr.dtype.element_ty), mask=mask)


def weighted_rows(tokens, top, columns):
    x, weights = random(tokens, top, columns), torch.rand(tokens, top, device=DEVICE)
    out = torch.empty(tokens, columns, device=DEVICE, dtype=BFLOAT)

    def launch(rows, block, warps):
        grid = triton.cdiv(tokens, rows), triton.cdiv(columns, block)
        weighted_rows_kernel[grid](x, weights, out, tokens, columns, TOP=top, ROWS=rows, COLUMNS=block, num_warps=warps)

    def reference():
        return (x * weights[..., None]).sum(1)

    tiles = (1, 2048, 16), (1, 2048, 8), (4, 512, 4)
    return Case(by_block(launch, *tiles), out, None, reference, 2 * x.numel(), check=close_to(reference(), 1e-2))


@triton.jit
def embedding_gradient_kernel(dout_ptr, index_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(index_ptr + row)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(dout_ptr + row * n_columns + columns, mask=mask).to(tl.float32)
    tl.atomic_add(out_ptr + target * n_columns + columns, x, mask=mask, sem="relaxed")


def embedding_gradient(rows, columns, words):
    dout, index = random(rows, columns), torch.randint(0, words, (rows,), device=DEVICE)
    out, other = torch.zeros(words, columns, device=DEVICE), torch.zeros(words, columns, device=DEVICE)
    expected = torch.zeros(words, columns, device=DEVICE, dtype=torch.float64).index_add_(0, index, dout.double())

    def launch(block, warps):
        grid = rows, triton.cdiv(columns, block)
        embedding_gradient_kernel[grid](dout, index, out, columns, BLOCK=block, num_warps=warps)

    def check(result):  # a launch more each time: a multiple of the sums
        times = (result.double() * expected).sum() / expected.square().sum()
        right = abs(times.item() - round(times.item())) < 1e-3 and close_to(expected * times, 1e-3)(result)
        result.zero_()
        return right and times > 0.5

    moved = 2 * dout.numel() + 8 * rows * columns
    wide = dout.float()
    reference = lambda: other.index_add_(0, index, wide)  # noqa: E731
    return Case(by_block(launch, (1024, 4), (4096, 8)), out, None, reference, moved, check=check)


@triton.jit
def segments_kernel(x_ptr, start_ptr, out_ptr, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Means of the rows of each segment, whose borders a list says."""
    segment = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first, last = tl.load(start_ptr + segment), tl.load(start_ptr + segment + 1)
    sums = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < last)[:, None] & (columns < n_columns)[None, :]
        x = tl.load(x_ptr + rows[:, None].to(tl.int64) * n_columns + columns[None, :], mask=mask, other=0.0)
        sums += tl.sum(x.to(tl.float32), axis=0)
    mean = sums / tl.maximum(last - first, 1)
    tl.store(out_ptr + segment * n_columns + columns, mean.to(out_ptr.dtype.element_ty), mask=columns < n_columns)


def borders(rows, segments):
    cuts = torch.randint(0, rows + 1, (segments - 1,)).sort()[0]
    return torch.cat((torch.tensor([0]), cuts, torch.tensor([rows]))).to(INT32).to(DEVICE)


def segments(rows, columns, count):
    x, starts = random(rows, columns), borders(rows, count)
    out = torch.empty(count, columns, device=DEVICE, dtype=BFLOAT)

    def launch(block, across, warps):
        grid = count, triton.cdiv(columns, across)
        segments_kernel[grid](x, starts, out, columns, ROWS=block, COLUMNS=across, num_warps=warps)

    def reference():
        lengths = starts.diff()
        sums = torch.zeros(count, columns, device=DEVICE)
        owner = torch.arange(count, device=DEVICE).repeat_interleave(lengths.long())
        return sums.index_add_(0, owner, x.float()) / lengths.clamp(min=1)[:, None]

    tiles = (32, 128, 4), (64, 64, 4), (16, 256, 4)
    return Case(by_block(launch, *tiles), out, None, reference, 2 * x.numel(), check=close_to(reference(), 1e-2))


@triton.jit
def padded_kernel(x_ptr, start_ptr, out_ptr, longest, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sequences of different lengths, one behind the other, to (sequences, longest, n_columns) with zeros."""
    sequence, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first = tl.load(start_ptr + sequence)
    length = tl.load(start_ptr + sequence + 1) - first
    rows = block * ROWS + tl.arange(0, ROWS)
    for start in range(0, n_columns, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        inside = (rows < length)[:, None] & (columns < n_columns)[None, :]
        x = tl.load(x_ptr + (first + rows)[:, None] * n_columns + columns[None, :], mask=inside, other=0.0)
        mask = (rows < longest)[:, None] & (columns < n_columns)[None, :]
        tl.store(out_ptr + (sequence * longest + rows)[:, None] * n_columns + columns[None, :], x, mask=mask)


def padded(rows, columns, count):
    x, starts = random(rows, columns, dtype=HALF), borders(rows, count)
    longest = max(starts.diff().tolist())
    out = torch.empty(count, longest, columns, device=DEVICE, dtype=HALF)
    expected = torch.nn.utils.rnn.pad_sequence([part.cpu() for part in x.split(starts.diff().tolist())], True).to(
        DEVICE
    )

    def launch(block, across, warps):
        grid = count, triton.cdiv(longest, block)
        padded_kernel[grid](x, starts, out, longest, columns, ROWS=block, COLUMNS=across, num_warps=warps)

    tiles = (32, 32, 4), (32, 128, 4), (16, 64, 2)
    moved = 2 * (x.numel() + out.numel())
    return Case(by_block(launch, *tiles), out, None, lambda: out.zero_(), moved, check=same(expected))


@triton.jit
def count_kernel(x_ptr, count_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements, other=0)
    tl.store(count_ptr + tl.program_id(0), tl.sum((x != 0).to(tl.int32)))


@triton.jit
def compact_kernel(x_ptr, before_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """Places of elements that are not zero, one behind the other; before_ptr says how many are in earlier blocks."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements, other=0)
    found = x != 0
    place = tl.cumsum(found.to(tl.int32), axis=0) - 1 + tl.load(before_ptr + tl.program_id(0))
    tl.store(out_ptr + place, offsets.to(tl.int64), mask=found)


def compact(log2):
    x = integers(3, 1 << log2) * integers(2, 1 << log2)
    expected = x.nonzero().flatten()
    out = torch.zeros(len(expected), device=DEVICE, dtype=torch.int64)

    def launch(block, warps):
        blocks = x.numel() // block
        counts = torch.empty(blocks, device=DEVICE, dtype=INT32)
        count_kernel[(blocks,)](x, counts, x.numel(), BLOCK=block, num_warps=warps)
        before = (counts.cumsum(0) - counts).to(INT32)
        compact_kernel[(blocks,)](x, before, out, x.numel(), BLOCK=block, num_warps=warps)

    tiles = (1024, 4), (4096, 8), (2048, 4)
    moved = 8 * x.numel() + 8 * out.numel()
    return Case(by_block(launch, *tiles), out, None, lambda: x.nonzero(), moved, check=same(expected))


@triton.jit
def bins_kernel(x_ptr, out_ptr, n_elements, low, width, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """A histogram in global memory: one atomic addition an element."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    place = tl.minimum(((x - low) / width * BINS).to(tl.int32), BINS - 1)
    tl.atomic_add(out_ptr + place, 1, mask=mask & (x >= low) & (x <= low + width), sem="relaxed")


def bins(log2, count):
    x = torch.rand(1 << log2, device=DEVICE)
    out = torch.zeros(count, device=DEVICE, dtype=INT32)
    places = (x * count).long().clamp(max=count - 1)
    expected = torch.bincount(places, minlength=count)

    def launch(block):
        out.zero_()
        bins_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), 0.0, 1.0, BINS=count, BLOCK=block)

    def check(result):
        return bool(((result - expected).abs() <= 2 + expected // 1000).all()) and result.sum().item() == x.numel()

    reference = partial(torch.histc, x, count, 0, 1)
    return Case(by_block(launch, (512,), (1024,)), out, None, reference, 4 * x.numel(), check=check)


@triton.jit
def long_sum_kernel(x_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    """A cumulative sum along a row, piece by piece."""
    row = tl.program_id(0).to(tl.int64) * n_columns
    carried = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_columns
        x = tl.load(x_ptr + row + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row + columns, tl.cumsum(x, 0) + carried, mask=mask)
        carried += tl.sum(x, 0)


def long_sum(rows, columns):
    x, out = torch.rand(rows, columns, device=DEVICE), torch.empty(rows, columns, device=DEVICE)

    def launch(block, warps):
        long_sum_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=warps)

    tiles = (1024, 4), (4096, 8), (2048, 4)
    check = close_to(x.double().cumsum(1), 1e-5)
    return Case(by_block(launch, *tiles), out, None, partial(torch.cumsum, x, 1), 8 * x.numel(), check=check)


# ---- pictures


@triton.jit
def pool_kernel(x_ptr, out_ptr, place_ptr, n_elements, height, width, channels, BLOCK: tl.constexpr):
    """Maxima of 3 x 3 at every second place, NHWC, and where they are, as a graph compiler writes it."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:]
    mask = offsets < n_elements
    channel = offsets % channels
    x1 = (offsets // channels) % (width // 2)
    x2 = (offsets // (channels * (width // 2))) % (height // 2)
    image = offsets // (channels * (width // 2) * (height // 2))
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    place = tl.full([BLOCK], 0, tl.int32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            y, x = 2 * x2 - 1 + i, 2 * x1 - 1 + j
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            source = ((image * height + y) * width + x) * channels + channel
            value = tl.load(x_ptr + source, inside & mask, other=float("-inf")).to(tl.float32)
            place = tl.where(value > top, i * 3 + j, place)
            top = tl.maximum(top, value)
    tl.store(out_ptr + offsets, top, mask)
    tl.store(place_ptr + offsets, place.to(tl.int8), mask)


def pool(batch, side, channels):
    x = random(batch, side, side, channels, dtype=HALF)
    out = torch.empty(batch, side // 2, side // 2, channels, device=DEVICE, dtype=HALF)
    places = torch.empty_like(out, dtype=torch.int8)

    def launch(block, warps):
        grid = (triton.cdiv(out.numel(), block),)
        pool_kernel[grid](x, out, places, out.numel(), side, side, channels, BLOCK=block, num_warps=warps)

    pictures = x.permute(0, 3, 1, 2)

    def reference():
        return torch.nn.functional.max_pool2d(pictures, 3, 2, 1).permute(0, 2, 3, 1)

    tiles = (512, 8), (1024, 4), (512, 4)
    return Case(
        by_block(launch, *tiles), out, None, reference, 2 * x.numel() + 3 * out.numel(), check=same(reference())
    )


@triton.jit
def enlarge_kernel(x_ptr, out_ptr, n_elements, height, width, y_scale, x_scale, BLOCK: tl.constexpr):
    """Pictures, planes of (height, width), twice as large by bilinear interpolation between centres."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x, y = offsets % (2 * width), offsets // (2 * width) % (2 * height)
    plane = offsets // (4 * width * height)
    v = tl.maximum((y.to(tl.float32) + 0.5) * y_scale - 0.5, 0.0)
    u = tl.maximum((x.to(tl.float32) + 0.5) * x_scale - 0.5, 0.0)
    y0, x0 = v.to(tl.int32), u.to(tl.int32)
    y1, x1 = tl.minimum(y0 + 1, height - 1), tl.minimum(x0 + 1, width - 1)
    base = plane * height * width
    a = tl.load(x_ptr + base + y0 * width + x0, mask, eviction_policy="evict_last").to(tl.float32)
    b = tl.load(x_ptr + base + y0 * width + x1, mask, eviction_policy="evict_last").to(tl.float32)
    c = tl.load(x_ptr + base + y1 * width + x0, mask, eviction_policy="evict_last").to(tl.float32)
    d = tl.load(x_ptr + base + y1 * width + x1, mask, eviction_policy="evict_last").to(tl.float32)
    dx = tl.minimum(tl.maximum(u - x0.to(tl.float32), 0.0), 1.0)
    dy = tl.minimum(tl.maximum(v - y0.to(tl.float32), 0.0), 1.0)
    above, below = a + (b - a) * dx, c + (d - c) * dx
    tl.store(out_ptr + offsets, above + (below - above) * dy, mask)


def enlarge(planes, side):
    x, out = random(planes, side, side, dtype=HALF), torch.empty(planes, 2 * side, 2 * side, device=DEVICE, dtype=HALF)

    def launch(block, warps):
        grid = (triton.cdiv(out.numel(), block),)
        enlarge_kernel[grid](x, out, out.numel(), side, side, 0.5, 0.5, BLOCK=block, num_warps=warps)

    def reference():
        return torch.nn.functional.interpolate(x[None], scale_factor=2.0, mode="bilinear")[0]

    tiles = (512, 8), (1024, 4), (512, 4)
    return Case(
        by_block(launch, *tiles), out, None, reference, 2 * x.numel() + 2 * out.numel(), check=close_to(reference())
    )


@triton.jit
def swap_kernel(x_ptr, out_ptr, heads, tokens, D: tl.constexpr, y_extent, x_extent, Y: tl.constexpr, X: tl.constexpr):
    """(heads, tokens, D) to (tokens, heads, D) plus one, tiles in both orders, as a graph compiler writes it."""
    y = (tl.program_id(1) * Y + tl.arange(0, Y))[None, :]
    x = (tl.program_id(0) * X + tl.arange(0, X))[:, None]
    mask = (x < x_extent) & (y < y_extent)
    feature, token = x % D, x // D
    value = tl.load(x_ptr + feature + D * token + D * tokens * y, mask, eviction_policy="evict_last").to(tl.float32)
    tl.store(out_ptr + feature + D * y + D * heads * token, value + 1.0, mask)


def swap(heads, tokens, d):
    x, out = random(heads, tokens, d, dtype=HALF), torch.empty(tokens, heads, d, device=DEVICE, dtype=HALF)

    def launch(down, across, warps):
        grid = triton.cdiv(tokens * d, across), triton.cdiv(heads, down)
        swap_kernel[grid](x, out, heads, tokens, d, heads, tokens * d, Y=down, X=across, num_warps=warps)

    def reference():
        return (x + 1).transpose(0, 1).contiguous()

    tiles = (32, 32, 4), (16, 64, 4), (8, 128, 4), (1, 1024, 4)
    return Case(by_block(launch, *tiles), out, None, reference, 4 * x.numel(), check=close_to(reference()))


@triton.jit
def planes_kernel(x_ptr, out_ptr, channels, places, Y: tl.constexpr, X: tl.constexpr):
    """NCHW to NHWC with an activation: a batch's (channels, places) turned over."""
    y = tl.program_id(1) * Y + tl.arange(0, Y)[:, None]
    x = tl.program_id(0) * X + tl.arange(0, X)[None, :]
    base = tl.program_id(2).to(tl.int64) * channels * places
    mask = (y < channels) & (x < places)
    value = tl.load(x_ptr + base + x + places * y, mask, eviction_policy="evict_last").to(tl.float32)
    value = value * tl.sigmoid(value)
    tl.store(out_ptr + base + y + channels * x, value, mask)


def planes(batch, channels, side):
    x = random(batch, channels, side, side, dtype=HALF)
    out = torch.empty(batch, side, side, channels, device=DEVICE, dtype=HALF)

    def launch(down, across, warps):
        grid = triton.cdiv(side * side, across), triton.cdiv(channels, down), batch
        planes_kernel[grid](x, out, channels, side * side, Y=down, X=across, num_warps=warps)

    def reference():
        return torch.nn.functional.silu(x.permute(0, 2, 3, 1))

    tiles = (64, 64, 8), (32, 32, 4), (16, 128, 4), (64, 64, 4)
    return Case(by_block(launch, *tiles), out, None, reference, 4 * x.numel(), check=close_to(reference(), 1e-2))


# ---- reductions as graph compilers generate them


@triton.jit
def join(mean, m2, weight, other_mean, other_m2, other_weight):
    delta = other_mean - mean
    total = weight + other_weight
    share = tl.where(total == 0.0, 0.0, other_weight / total)
    return mean + delta * share, m2 + other_m2 + delta * delta * weight * share, total


@triton.jit
def batch_norm_kernel(
    x_ptr, mean_ptr, scale_ptr, out_ptr, x_extent, r_extent, places, eps, X: tl.constexpr, R: tl.constexpr
):
    """Means and variances of NCHW channels by Welford's recurrence in a loop, x a row of channels, and normalised."""
    x_index = (tl.program_id(0) * X + tl.arange(0, X))[:, None]
    x_mask = x_index < x_extent
    r_base = tl.arange(0, R)[None, :]
    mean = tl.zeros([X, R], tl.float32)
    m2 = tl.zeros([X, R], tl.float32)
    weight = tl.zeros([X, R], tl.float32)
    for start in tl.range(0, r_extent, R):
        r_index = start + r_base
        mask = (r_index < r_extent) & x_mask
        place, image = r_index % places, r_index // places
        x = tl.load(
            x_ptr + place + places * x_index + places * x_extent * image, mask, eviction_policy="evict_first", other=0.0
        )
        x = x.to(tl.float32)
        delta = x - mean
        count = weight + 1
        next_mean = mean + delta / count
        next_m2 = m2 + delta * (x - next_mean)
        mean = tl.where(mask, next_mean, mean)
        m2 = tl.where(mask, next_m2, m2)
        weight = tl.where(mask, count, weight)
    mean, m2, weight = tl.reduce((mean, m2, weight), 1, join)
    mean, variance = mean[:, None], (m2 / weight)[:, None]
    scale = tl.rsqrt(variance + eps)
    tl.store(mean_ptr + x_index, mean, x_mask)
    tl.store(scale_ptr + x_index, scale, x_mask)
    for start in tl.range(0, r_extent, R):
        r_index = start + r_base
        mask = (r_index < r_extent) & x_mask
        place, image = r_index % places, r_index // places
        source = place + places * x_index + places * x_extent * image
        x = tl.load(x_ptr + source, mask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        tl.store(out_ptr + source, (x - mean) * scale, mask)


def batch_norm(batch, channels, side):
    x = random(batch, channels, side, side, dtype=HALF)
    means, scales = torch.empty(channels, device=DEVICE), torch.empty(channels, device=DEVICE)
    out = torch.empty_like(x)

    def launch(down, across, warps):
        places = side * side
        batch_norm_kernel[(triton.cdiv(channels, down),)](
            x, means, scales, out, channels, batch * places, places, 1e-5, X=down, R=across, num_warps=warps
        )

    reference = partial(torch.nn.functional.batch_norm, x, None, None, training=True)
    tiles = (1, 2048, 16), (1, 2048, 8), (1, 1024, 8)
    expected = torch.nn.functional.batch_norm(x.float(), None, None, training=True)
    return Case(by_block(launch, *tiles), out, None, reference, 6 * x.numel(), check=close_to(expected))


@triton.jit
def persistent_norm_kernel(
    x_ptr, y_ptr, weight_ptr, bias_ptr, out_ptr, x_extent, r_extent, X: tl.constexpr, R: tl.constexpr
):
    """Layer norm of a sum, whole rows in a tile, sums by masked selects."""
    x_index = (tl.program_id(0) * X + tl.arange(0, X))[:, None]
    x_mask = x_index < x_extent
    r_index = tl.arange(0, R)[None, :]
    r_mask = r_index < r_extent
    a = tl.load(x_ptr + r_index + r_extent * x_index, r_mask & x_mask, other=0.0).to(tl.float32)
    b = tl.load(y_ptr + r_index + r_extent * x_index, r_mask & x_mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + r_index, r_mask, eviction_policy="evict_last", other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + r_index, r_mask, eviction_policy="evict_last", other=0.0).to(tl.float32)
    total = a + b
    spread = tl.broadcast_to(total, [X, R])
    kept = tl.where(r_mask & x_mask, spread, 0)
    mean = tl.sum(kept, 1)[:, None] / r_extent
    centred = total - mean
    squares = tl.where(r_mask & x_mask, tl.broadcast_to(centred * centred, [X, R]), 0)
    scale = tl.rsqrt(tl.sum(squares, 1)[:, None] / r_extent + 1e-5)
    tl.store(out_ptr + r_index + r_extent * x_index, centred * scale * weight + bias, r_mask & x_mask)


def persistent_norm(rows, columns):
    x, y, weight, bias = (random(*shape) for shape in ((rows, columns), (rows, columns), (columns,), (columns,)))
    out = torch.empty_like(x)

    def launch(down, warps):
        persistent_norm_kernel[(triton.cdiv(rows, down),)](
            x, y, weight, bias, out, rows, columns, X=down, R=triton.next_power_of_2(columns), num_warps=warps
        )

    reference = lambda: torch.nn.functional.layer_norm(x + y, (columns,), weight, bias)  # noqa: E731
    expected = torch.nn.functional.layer_norm(x.float() + y.float(), (columns,), weight.float(), bias.float())
    tiles = (1, 4), (4, 4), (8, 8), (1, 2)
    return Case(by_block(launch, *tiles), out, None, reference, 6 * x.numel(), check=close_to(expected, 1e-2))


@triton.jit
def generated_softmax_kernel(x_ptr, bias_ptr, out_ptr, x_extent, r_extent, X: tl.constexpr, R: tl.constexpr):
    """Softmax in pieces: running maxima and sums of every lane, joined behind the loop; then once more to write."""
    x_index = (tl.program_id(0) * X + tl.arange(0, X))[:, None]
    x_mask = x_index < x_extent
    r_base = tl.arange(0, R)[None, :]
    top = tl.full([X, R], float("-inf"), tl.float32)
    for start in tl.range(0, r_extent, R):
        r_index = start + r_base
        mask = (r_index < r_extent) & x_mask
        x = tl.load(x_ptr + r_index + r_extent * x_index, mask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        x += tl.load(bias_ptr + r_index, mask=r_index < r_extent, eviction_policy="evict_last", other=0.0)
        top = tl.where(mask, tl.maximum(top, x), top)
    highest = tl.max(top, 1)[:, None]
    sums = tl.full([X, R], 0, tl.float32)
    for start in tl.range(0, r_extent, R):
        r_index = start + r_base
        mask = (r_index < r_extent) & x_mask
        x = tl.load(x_ptr + r_index + r_extent * x_index, mask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        x += tl.load(bias_ptr + r_index, mask=r_index < r_extent, eviction_policy="evict_last", other=0.0)
        sums = tl.where(mask, sums + tl.exp(x - highest), sums)
    total = tl.sum(sums, 1)[:, None]
    for start in tl.range(0, r_extent, R):
        r_index = start + r_base
        mask = (r_index < r_extent) & x_mask
        x = tl.load(x_ptr + r_index + r_extent * x_index, mask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        x += tl.load(bias_ptr + r_index, mask=r_index < r_extent, eviction_policy="evict_last", other=0.0)
        tl.store(out_ptr + r_index + r_extent * x_index, tl.exp(x - highest) / total, mask)


def generated_softmax(rows, columns):
    x, bias, out = (
        random(rows, columns),
        torch.randn(columns, device=DEVICE),
        torch.empty(rows, columns, device=DEVICE, dtype=BFLOAT),
    )

    def launch(down, across, warps):
        generated_softmax_kernel[(triton.cdiv(rows, down),)](
            x, bias, out, rows, columns, X=down, R=across, num_warps=warps
        )

    reference = lambda: torch.softmax(x + bias, 1)  # noqa: E731
    expected = torch.softmax(x.float() + bias, 1)
    tiles = (1, 2048, 16), (1, 2048, 8), (2, 2048, 16), (8, 256, 8)
    return Case(by_block(launch, *tiles), out, None, reference, 4 * x.numel(), check=close_to(expected, 1e-2))


@triton.jit
def outer_sum_kernel(x_ptr, y_ptr, out_ptr, other_ptr, x_extent, r_extent, X: tl.constexpr, R: tl.constexpr):
    """Two sums of columns of one part of the rows, as for gradients of a norm's weight and bias."""
    x_index = (tl.program_id(0) * X + tl.arange(0, X))[:, None]
    x_mask = x_index < x_extent
    part = tl.program_id(1) * r_extent
    r_base = tl.arange(0, R)[None, :]
    sums = tl.full([X, R], 0, tl.float32)
    products = tl.full([X, R], 0, tl.float32)
    for start in tl.range(0, r_extent, R):
        r_index = start + r_base
        mask = (r_index < r_extent) & x_mask
        places = x_index + x_extent * (part + r_index)
        x = tl.load(x_ptr + places, mask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        y = tl.load(y_ptr + places, mask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        sums = tl.where(mask, sums + x, sums)
        products = tl.where(mask, products + x * y, products)
    place = x_index + x_extent * tl.program_id(1)
    tl.store(out_ptr + place, tl.sum(sums, 1)[:, None], x_mask)
    tl.store(other_ptr + place, tl.sum(products, 1)[:, None], x_mask)


def outer_sum(rows, columns, parts):
    x, y, out = random(rows, columns), random(rows, columns), torch.empty(2, parts, columns, device=DEVICE)

    def launch(down, across, warps):
        grid = triton.cdiv(columns, down), parts
        outer_sum_kernel[grid](x, y, out[0], out[1], columns, rows // parts, X=down, R=across, num_warps=warps)

    def reference():
        pieces = [t.float().view(parts, -1, columns) for t in (x, y)]
        return torch.stack((pieces[0].sum(1), (pieces[0] * pieces[1]).sum(1)))

    tiles = (64, 8, 4), (64, 64, 16), (128, 16, 8), (32, 64, 8)
    return Case(by_block(launch, *tiles), out, None, reference, 4 * x.numel(), check=close_to(reference()))


KERNELS = {  # name: what makes the case, its sizes, and sizes for tests
    "sampling 1024x128256 bf16": (sample, (1024, 128256, 8192), (2, 12000, 8192)),
    "penalties 512x128256": (penalties, (512, 128256), (2, 10256)),
    "largest 50 of 512x32000": (threshold, (512, 32000, 50), (3, 9000, 50)),
    "sorted places 8192x2000": (sorted_places, (8192, 2000), (2, 1000)),
    "quantile 16384x500": (quantile, (16384, 500), (5, 100)),
    "cache 16384x8x128 bf16": (cache, (16384, 8, 128), (24, 8, 128)),
    "picked rows 16384x4096 bf16": (rows_by_index, (16384, 4096, False), (7, 4096, False)),
    "put rows 16384x4096 bf16": (rows_by_index, (16384, 4096, True), (7, 4096, True)),
    "weighted rows 8192x8x4096 bf16": (weighted_rows, (8192, 8, 4096), (7, 3, 4096)),
    "embedding gradient 16384x2048": (embedding_gradient, (16384, 2048, 32000), (9, 2048, 5)),
    "means of segments 65536x1024, 256": (segments, (65536, 1024, 256), (200, 256, 4)),
    "padded sequences 65536x512, 256": (padded, (65536, 512, 256), (200, 256, 4)),
    "compaction 2^24": (compact, (24,), (13,)),
    "bins 2^24, 4096 of them": (bins, (24, 4096), (13, 64)),
    "cumulative sum 512x65536": (long_sum, (512, 65536), (2, 9000)),
    "pool 64x112x112x64 fp16": (pool, (64, 112, 64), (2, 8, 64)),
    "enlarging 1024x128x128 fp16": (enlarge, (1024, 128), (3, 16)),
    "swap 32x4096x128 fp16": (swap, (32, 4096, 128), (12, 20, 128)),
    "planes 32x256x56x56 fp16": (planes, (32, 256, 56), (2, 72, 12)),
    "batch norm 64x512x28x28 fp16": (batch_norm, (64, 512, 28), (3, 4, 12)),
    "generated norm 16384x1536 bf16": (persistent_norm, (16384, 1536), (5, 1536)),
    "generated softmax 4096x32000 bf16": (generated_softmax, (4096, 32000), (3, 4096)),
    "generated column sums 16384x4096": (outer_sum, (16384, 4096, 128), (256, 144, 2)),
}
