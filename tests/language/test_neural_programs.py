"""Kernels of neural networks: several features of the language together, on what people use it for."""

import math

import numpy as np
import pytest
from harness import Buffer, random

import triton
import triton.language as tl


def run(kernel, grid, *arguments, out, **keywords):
    """Launches with arrays in buffers, `out` the last of them, and returns it."""
    result = Buffer(out)
    arrays = [Buffer(a).argument if isinstance(a, np.ndarray) else a for a in arguments]
    kernel[grid](*arrays, result.argument, **keywords)
    return result.host().values


def floats(*shape, seed=0):
    return random(shape, "float32", seed).values


@triton.jit
def attention(q, k, v, out, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * BM
    head = tl.program_id(1)
    q_block = tl.make_block_ptr(q + head * n * D, (n, D), (D, 1), (start, 0), (BM, D), (1, 0))
    k_block = tl.make_block_ptr(k + head * n * D, (D, n), (1, D), (0, 0), (D, BN), (0, 1))
    v_block = tl.make_block_ptr(v + head * n * D, (n, D), (D, 1), (0, 0), (BN, D), (1, 0))
    rows = start + tl.arange(0, BM)
    largest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    queries = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    end = min(start + BM, n) if CAUSAL else n
    for first in range(0, end, BN):
        keys = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        scores = tl.dot(queries, keys, input_precision="ieee") * scale
        columns = first + tl.arange(0, BN)
        mask = columns[None, :] < n
        if CAUSAL:
            mask = mask & (columns[None, :] <= rows[:, None])
        scores = tl.where(mask, scores, -1e30)
        new = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        correction = tl.exp(largest - new)
        total = total * correction + tl.sum(p, 1)
        values = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = acc * correction[:, None] + tl.dot(p, values, input_precision="ieee")
        largest = new
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    acc /= total[:, None]
    o_block = tl.make_block_ptr(out + head * n * D, (n, D), (D, 1), (start, 0), (BM, D), (1, 0))
    tl.store(o_block, acc, boundary_check=(0,))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, d, bm, bn", [(64, 16, 16, 16), (50, 24, 16, 32), (33, 8, 64, 16)])
def test_attention(n, d, bm, bn, causal):
    q, k, v = (floats(2, n, d, seed=s) for s in range(3))
    scores = (q @ k.transpose(0, 2, 1)).astype(np.float64) / math.sqrt(d)
    if causal:
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (p / p.sum(-1, keepdims=True)) @ v
    grid = (triton.cdiv(n, bm), 2)
    result = run(
        attention, grid, q, k, v, out=np.zeros_like(q), scale=1 / math.sqrt(d), n=n, D=d, BM=bm, BN=bn, CAUSAL=causal
    )
    assert np.abs(result - expected).max() < 1e-4


@triton.jit
def cross_entropy(logits, labels, losses, n, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    logits += row.to(tl.int64) * classes
    label = tl.load(labels + row)
    if label == -100:
        tl.store(losses + row, 0.0)
        return
    largest = -float("inf")
    total = 0.0
    for first in range(0, classes, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(logits + i, mask=i < classes, other=-float("inf"))
        new = tl.maximum(largest, tl.max(x))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new))
        largest = new
    tl.store(losses + row, tl.log(total) + largest - tl.load(logits + label))


def test_cross_entropy():
    x, labels = floats(20, 130), random((20,), "int64", low=0, high=130).values
    labels[[3, 7]] = -100
    losses = Buffer(np.full(20, 9, np.float32))
    cross_entropy[(20,)](Buffer(x).argument, Buffer(labels).argument, losses.argument, 20, 130, BLOCK=32)
    wide = x.astype(np.float64)
    expected = np.log(np.exp(wide).sum(1)) - wide[np.arange(20), np.maximum(labels, 0)]
    assert np.allclose(losses.host().values, np.where(labels == -100, 0, expected), atol=1e-5)


@triton.jit
def rotary(x, cosines, sines, out, rows, HALF: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, HALF)
    a = tl.load(x + row * 2 * HALF + i)
    b = tl.load(x + row * 2 * HALF + HALF + i)
    c, s = tl.load(cosines + row * HALF + i), tl.load(sines + row * HALF + i)
    tl.store(out + row * 2 * HALF + i, a * c - b * s)
    tl.store(out + row * 2 * HALF + HALF + i, b * c + a * s)


def test_rotary_embedding():
    x, angle = floats(9, 24), floats(9, 12, seed=3)
    a, b, c, s = x[:, :12], x[:, 12:], np.cos(angle), np.sin(angle)
    result = run(rotary, (9,), x, c, s, out=np.zeros_like(x), rows=9, HALF=12)
    assert np.allclose(result, np.concatenate([a * c - b * s, b * c + a * s], 1), atol=1e-6)


@triton.jit
def quantize(x, codes, scales, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, other=0.0)
    scale = tl.max(tl.abs(values)) / 127.0
    q = tl.extra.libdevice.rint(values / tl.where(scale == 0.0, 1.0, scale))
    tl.store(codes + i, q.to(tl.int8), mask=i < n)
    tl.store(scales + pid, scale)


def test_quantization():
    x = floats(100)
    codes, scales = Buffer(np.zeros(100, np.int8)), Buffer(np.zeros(4, np.float32))
    quantize[(4,)](Buffer(x).argument, codes.argument, scales.argument, 100, BLOCK=32)
    restored = codes.host().values * np.repeat(scales.host().values, 32)[:100]
    assert np.abs(restored - x).max() <= scales.host().values.max() * 0.51


@triton.jit
def unpack_nibbles(packed, out, N: tl.constexpr):
    p = tl.load(packed + tl.arange(0, N)).to(tl.uint8, bitcast=True)
    low = (p & 0xF).to(tl.int8)
    high = (p >> 4).to(tl.int8)
    both = tl.interleave(low, high)
    tl.store(out + tl.arange(0, 2 * N), tl.where(both > 7, both - 16, both))


def test_four_bit_integers():
    values = random((66,), "int8", low=-8, high=8).values
    packed = ((values[::2] & 15) | ((values[1::2] & 15) << 4)).astype(np.int8)
    assert (run(unpack_nibbles, (1,), packed, out=np.zeros(66, np.int8), N=33) == values).all()


@triton.jit
def rms_norm(x, weight, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(values * values, axis=0) / n + eps)
    w = tl.load(weight + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + row * n + i, (values * inverse * w).to(out.dtype.element_ty), mask=i < n)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rms_norm(dtype):
    x, weight = floats(6, 100).astype(dtype), floats(100, seed=1).astype(dtype)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * weight
    result = run(rms_norm, (6,), x, weight, out=np.zeros_like(x), n=100, eps=1e-6, BLOCK=128)
    assert np.allclose(result, expected, atol=3e-3 if dtype == np.float16 else 1e-5)


@triton.jit
def moments(a_mean, a_m2, a_n, b_mean, b_m2, b_n):
    n = a_n + b_n
    delta = b_mean - a_mean
    share = tl.where(n == 0, 0.0, b_n / n)
    return a_mean + delta * share, a_m2 + b_m2 + delta * delta * a_n * share, n


@triton.jit
def group_norm(x, out, n, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(x + base + i, mask=i < n, other=0.0)
        zero = tl.zeros_like(v)
        mean, m2, count = moments(mean, m2, count, v, zero, (i < n).to(tl.float32))
    mu, square, number = tl.reduce((mean, m2, count), 0, moments)
    scale = tl.rsqrt(square / number + eps)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        tl.store(out + base + i, (tl.load(x + base + i, mask=i < n) - mu) * scale, mask=i < n)


def test_group_norm():
    x = floats(5, 333) * 3 + 7
    expected = (x - x.mean(1, keepdims=True, dtype=np.float64)) / np.sqrt(
        x.var(1, keepdims=True, dtype=np.float64) + 1e-5
    )
    out = Buffer(np.zeros_like(x))
    group_norm[(5,)](Buffer(x).argument, out.argument, 333, 1e-5, BLOCK=64)
    assert np.allclose(out.host().values, expected, atol=1e-4)


@triton.jit
def delta_rule(q, k, v, gates, start, steps, out, K: tl.constexpr, V: tl.constexpr, STARTS: tl.constexpr):
    keys, values = tl.arange(0, K), tl.arange(0, V)
    state = tl.zeros([K, V], tl.float32)
    if STARTS:
        state += tl.load(start + keys[:, None] * V + values[None, :])
    for step in range(steps):
        key = tl.load(k + step * K + keys)
        state *= tl.exp(tl.load(gates + step * K + keys))[:, None]
        value = tl.load(v + step * V + values)
        value -= tl.sum(state * key[:, None], 0)
        state += key[:, None] * value[None, :]
        tl.store(out + step * V + values, tl.sum(state * tl.load(q + step * K + keys)[:, None], 0))


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("k, v, warps", [(64, 64, 4), (128, 8, 4), (8, 128, 2), (16, 16, 1), (16, 4, 4), (24, 40, 2)])
def test_recurrence_of_a_state(k, v, warps, starts):
    """The state of a recurrence is made and read by rows and columns, and no access says how it lies in threads."""
    steps = 3
    q, keys, values = floats(steps, k), floats(steps, k, seed=1) / k, floats(steps, v, seed=2)
    gates, start = -np.abs(floats(steps, k, seed=3)), floats(k, v, seed=4)
    state, expected = (start if starts else np.zeros((k, v))).astype(np.float64), np.empty((steps, v))
    for i in range(steps):
        state *= np.exp(gates[i])[:, None]
        state += keys[i][:, None] * (values[i] - keys[i] @ state)
        expected[i] = q[i] @ state
    out = np.empty((steps, v), np.float32)
    out = run(delta_rule, (1,), q, keys, values, gates, start, steps, out=out, K=k, V=v, STARTS=starts, num_warps=warps)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
