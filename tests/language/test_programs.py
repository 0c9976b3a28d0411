"""Kernels of the kinds that people write: several features of the language together, on real problems."""

import numpy as np
import pytest
from harness import Buffer, random

import triton
import triton.language as tl


def floats(*shape, seed=0):
    return random(shape, "float32", seed).values


@triton.jit
def mandelbrot(out, width, height, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = (i % width).to(tl.float32) / width * 3.0 - 2.0
    cy = (i // width).to(tl.float32) / height * 2.0 - 1.0
    x, y = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    steps = tl.zeros((BLOCK,), tl.int32)
    active = i < width * height
    round = 0
    while (tl.sum(active.to(tl.int32)) > 0) & (round < LIMIT):
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        active = active & (x * x + y * y < 4.0)
        steps += active.to(tl.int32)
        round += 1
    tl.store(out + i, steps, mask=i < width * height)


def test_mandelbrot():
    i = np.arange(40 * 30)
    cx = (i % 40).astype(np.float32) / np.float32(40) * np.float32(3) - np.float32(2)
    cy = (i // 40).astype(np.float32) / np.float32(30) * np.float32(2) - np.float32(1)
    x, y, steps, active = np.zeros_like(cx), np.zeros_like(cx), np.zeros(1200, np.int32), np.ones(1200, bool)
    with np.errstate(all="ignore"):
        for _ in range(20):
            x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
            active &= x * x + y * y < 4
            steps += active
    out = Buffer(np.full(1200, -1, np.int32))
    mandelbrot[(triton.cdiv(1200, 100),)](out.argument, 40, 30, LIMIT=20, BLOCK=100, enable_fp_fusion=False)
    assert (out.host().values == steps).all()


@triton.jit
def convolve(x, weight, out, n, K: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        place = i + k - K // 2
        acc += tl.load(x + place, mask=(place >= 0) & (place < n), other=0.0) * tl.load(weight + k)
    tl.store(out + i, acc, mask=i < n)


@pytest.mark.parametrize("taps", [1, 3, 8])
def test_convolution(taps):
    x, weight = floats(203), floats(taps, seed=5)
    padded = np.concatenate([np.zeros(taps // 2), x, np.zeros(taps)]).astype(np.float64)
    expected = sum(weight[k] * padded[k : k + 203] for k in range(taps))
    out = Buffer(np.zeros_like(x))
    convolve[(7,)](Buffer(x).argument, Buffer(weight).argument, out.argument, 203, K=taps, BLOCK=32)
    assert np.allclose(out.host().values, expected, atol=1e-5)


@triton.jit
def split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    row, column = tl.swizzle2d(pid // columns, pid % columns, tl.cdiv(M, BM), columns, 2)
    i = row * BM + tl.arange(0, BM)
    j = column * BN + tl.arange(0, BN)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(tl.cdiv(K, BK * PARTS)):
        x = tl.load(a + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + j[None, :], mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
        k += BK * PARTS
    tl.atomic_add(c + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


def test_split_k():
    a, b = np.round(floats(45, 130) * 2), np.round(floats(130, 37, seed=1) * 2)
    c = Buffer(np.zeros((45, 37), np.float32))
    split_k[(3 * 3, 4)](Buffer(a).argument, Buffer(b).argument, c.argument, 45, 37, 130, BM=16, BN=16, BK=16, PARTS=4)
    assert (c.host().values == a @ b).all()


@triton.jit
def segment_sum(values, segments, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    s = tl.load(segments + i, mask=mask, other=-1)
    v = tl.load(values + i, mask=mask, other=0)
    first = tl.min(tl.where(mask, s, 1 << 30))
    if first == tl.max(s):  # one segment only
        tl.atomic_add(out + first, tl.sum(v))
    else:
        tl.atomic_add(out + s, v, mask=mask)


def test_segmented_sums():
    segments = np.sort(random((500,), "int32", low=0, high=9).values)
    values = random((500,), "int32", low=-50, high=50, seed=2).values
    out = Buffer(np.zeros(9, np.int32))
    segment_sum[(16,)](Buffer(values).argument, Buffer(segments).argument, out.argument, 500, BLOCK=32)
    assert (out.host().values == np.bincount(segments, values, 9)).all()


@triton.jit
def persistent(x, out, counter, tiles, BLOCK: tl.constexpr):
    """Programs take tiles from a queue until there are none."""
    tile = tl.atomic_add(counter, 1)
    while tile < tiles:
        i = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) * 2)
        tile = tl.atomic_add(counter, 1)


def test_a_queue_of_tiles():
    x = floats(64 * 37)
    out, counter = Buffer(np.zeros_like(x)), Buffer(np.zeros(1, np.int32))
    persistent[(5,)](Buffer(x).argument, out.argument, counter.argument, 37, BLOCK=64)
    assert (out.host().values == x * 2).all() and counter.host().values[0] == 37 + 5


@triton.jit
def transpose(x, out, M, N, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    j = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    tile = tl.load(x + i * N + j, mask=(i < M) & (j < N))
    tl.store(out + j.T * M + i.T, tile.T, mask=(j.T < N) & (i.T < M))


@pytest.mark.parametrize("block", [1, 7, 16, 32])
def test_transposition(block):
    x = floats(45, 70)
    out = Buffer(np.zeros((70, 45), np.float32))
    transpose[(triton.cdiv(45, block), triton.cdiv(70, block))](Buffer(x).argument, out.argument, 45, 70, B=block)
    assert (out.host().values == x.T).all()


@triton.jit
def game_of_life(world, out, height, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = i // width, i % width
    neighbours = tl.zeros((BLOCK,), tl.int32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            if dx != 0 or dy != 0:
                y, x = (row + dy + height) % height, (column + dx + width) % width
                neighbours += tl.load(world + y * width + x, mask=i < height * width, other=0).to(tl.int32)
    alive = tl.load(world + i, mask=i < height * width, other=0) != 0
    tl.store(out + i, (neighbours == 3) | (alive & (neighbours == 2)), mask=i < height * width)


def test_game_of_life():
    world = random((17, 23), "int1").values
    around = sum(np.roll(world, (dy, dx), (0, 1)).astype(int) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - world
    out = Buffer(np.zeros_like(world))
    game_of_life[(13,)](Buffer(world).argument, out.argument, 17, 23, BLOCK=32)
    assert (out.host().values == ((around == 3) | (world & (around == 2)))).all()
