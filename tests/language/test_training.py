"""Kernels of training whose results differ between implementations for good reasons: each against its definition in
fp64, within what its own number formats explain."""

import numpy as np
import pytest
from harness import Array, Buffer, random, round_to, ulp

import triton
import triton.language as tl


def zeros(dtype, *shape):
    return Buffer(round_to(np.zeros(shape), dtype))


def wide(x):
    return x.values.astype(np.float64)


@triton.jit
def layer_norm_backward(
    x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, rows, n, PER: tl.constexpr, N: tl.constexpr
):
    program = tl.program_id(0)
    i = tl.arange(0, N)
    inside = i < n
    w = tl.load(w_ptr + i, mask=inside, other=0).to(tl.float32)
    dw = tl.zeros((N,), tl.float32)
    db = tl.zeros((N,), tl.float32)
    for row in range(program * PER, min(rows, (program + 1) * PER)):
        x = tl.load(x_ptr + row * n + i, mask=inside, other=0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n + i, mask=inside, other=0).to(tl.float32)
        mean, rstd = tl.load(mean_ptr + row).to(tl.float32), tl.load(rstd_ptr + row).to(tl.float32)
        h = tl.where(inside, (x - mean) * rstd, 0.0)
        wdy = w * dy
        along, shift = tl.sum(h * wdy, 0) / n, tl.sum(wdy, 0) / n
        tl.store(dx_ptr + row * n + i, (wdy - (h * along + shift)) * rstd, mask=inside)
        dw += dy * h
        db += dy
    tl.store(dw_ptr + program * n + i, dw, mask=inside)
    tl.store(db_ptr + program * n + i, db, mask=inside)


@pytest.mark.parametrize("statistics", ["float32", "bfloat16"])
def test_layer_norm_backward_in_bf16(statistics):
    """Statistics that were kept in bf16 move the gradients by a percent: given those, every sum is right in fp32."""
    rows, n, per = 24, 500, 6
    x = round_to(random((rows, n), "float32", 1).values + 5, "bfloat16")
    dy, w = random((rows, n), "bfloat16", 2), random((n,), "bfloat16", 3)
    mean = round_to(wide(x).mean(1), statistics)
    rstd = round_to(1 / np.sqrt(wide(x).var(1) + 1e-6), statistics)
    dx, dw, db = zeros("bfloat16", rows, n), zeros("float32", rows // per, n), zeros("float32", rows // per, n)
    inputs = [Buffer(a).argument for a in (x, dy, w, mean, rstd)]
    outputs = [b.argument for b in (dx, dw, db)]
    layer_norm_backward[(rows // per,)](*inputs, *outputs, rows, n, PER=per, N=512)
    h = (wide(x) - wide(mean)[:, None]) * wide(rstd)[:, None]
    wdy = wide(w) * wide(dy)
    along, shift = (h * wdy).mean(1, keepdims=True), wdy.mean(1, keepdims=True)
    expected = (wdy - (h * along + shift)) * wide(rstd)[:, None]
    assert (np.abs(wide(dx.host()) - expected) <= 0.51 * ulp(expected, "bfloat16") + 1e-5).all()
    for sums, terms in ((dw, wide(dy) * h), (db, wide(dy))):
        off = np.abs(wide(sums.host()).sum(0) - terms.sum(0))
        assert (off <= rows * 2.0**-24 * np.abs(terms).sum(0)).all()


@triton.jit
def bias_gradient(dy_ptr, db_ptr, channels, size, BLOCK: tl.constexpr):
    channel = tl.program_id(1)
    first = (tl.program_id(0) * channels + channel) * size
    total = 0.0
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(dy_ptr + first + i, mask=i < size, other=0.0), 0)
    tl.atomic_add(db_ptr + channel, total)


def test_a_bias_gradient_that_cancels():
    """The sum is far smaller than its terms, so a relative error says nothing: the terms' roundings bound it."""
    dy = random((4, 6, 3000), "float32").values
    dy -= dy.mean((0, 2), keepdims=True)
    db = zeros("float32", 6)
    bias_gradient[(4, 6)](Buffer(dy).argument, db.argument, 6, 3000, BLOCK=512)
    off = np.abs(wide(db.host()) - dy.astype(np.float64).sum((0, 2)))
    assert (off <= 2.0**-24 * np.abs(dy.astype(np.float64)).sum((0, 2))).all()


@triton.jit
def gated_delta_rule(
    q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, o_ptr, n, scale, C: tl.constexpr, D: tl.constexpr, V: tl.constexpr
):
    """In chunks of C: what the chunk's own keys do to one another is a triangular matrix, inverted row by row."""
    head, part = tl.program_id(0), tl.program_id(1)
    i, d, e = tl.arange(0, C), tl.arange(0, D), part * V + tl.arange(0, V)
    low = q_ptr.dtype.element_ty
    state = tl.zeros((D, V), tl.float32)
    for start in range(0, n, C):
        row = (head * n + start + i) * D
        q, k = tl.load(q_ptr + row[:, None] + d), tl.load(k_ptr + row[:, None] + d)
        v = tl.load(v_ptr + row[:, None] + e)
        beta = tl.load(beta_ptr + head * n + start + i).to(tl.float32)
        g = tl.cumsum(tl.load(g_ptr + head * n + start + i), 0)
        causal = i[:, None] >= i[None, :]
        decay = tl.exp(tl.where(causal, g[:, None] - g[None, :], 0.0))
        met = tl.dot(k, tl.trans(k), input_precision="ieee") * decay * beta[:, None]
        inverse = -tl.where(i[:, None] > i[None, :], met, 0.0)
        for r in range(1, C):
            line = tl.sum(tl.where(i[:, None] == r, inverse, 0.0), 0)
            line += tl.sum(line[:, None] * inverse, 0) * (i < r)
            inverse = tl.where(i[:, None] == r, line[None, :], inverse)
        inverse = (inverse + (i[:, None] == i[None, :])).to(low)
        u = tl.dot(inverse, (v * beta[:, None]).to(low), input_precision="ieee")
        w = tl.dot(inverse, (k * (beta * tl.exp(g))[:, None]).to(low), input_precision="ieee")
        new = (u - tl.dot(w.to(low), state.to(low), input_precision="ieee")).to(low)
        inner = tl.where(causal, tl.dot(q, tl.trans(k), input_precision="ieee") * decay, 0.0).to(low)
        before = tl.dot((q * tl.exp(g)[:, None]).to(low), state.to(low), input_precision="ieee")
        tl.store(o_ptr + row[:, None] + e, (before + tl.dot(inner, new, input_precision="ieee")) * scale)
        last = tl.sum(tl.where(i == C - 1, g, 0.0), 0)
        kept = (k * tl.exp(last - g)[:, None]).to(low)
        state = state * tl.exp(last) + tl.dot(tl.trans(kept), new, input_precision="ieee")


def recurrence(q, k, v, g, beta, scale):
    """The definition, one step after the other: the state forgets, and learns what it got wrong about each key."""
    heads, n, d = q.shape
    state, rows = np.zeros((heads, d, d)), []
    for t in range(n):
        state = state * np.exp(g[:, t])[:, None, None]
        wrong = (v[:, t] - np.einsum("hd,hde->he", k[:, t], state)) * beta[:, t, None]
        state = state + np.einsum("hd,he->hde", k[:, t], wrong)
        rows.append(np.einsum("hd,hde->he", q[:, t], state) * scale)
    return np.stack(rows, 1)


@pytest.mark.parametrize("dtype, error", [("float16", 1e-3), ("float32", 3e-6)])
def test_gated_delta_rule(dtype, error):
    heads, n, d = 2, 128, 64
    q, v = random((heads, n, d), dtype, 1), random((heads, n, d), dtype, 2)
    k = random((heads, n, d), "float32", 3).values
    k = round_to(k / np.linalg.norm(k, axis=-1, keepdims=True), dtype)
    beta = round_to(random((heads, n), "float32", 4, low=0.0, high=1.0).values, dtype)
    g = Array(-np.log1p(np.exp(random((heads, n), "float32", 5).values)), "float32")
    o = zeros(dtype, heads, n, d)
    inputs = [Buffer(a).argument for a in (q, k, v, g, beta)]
    gated_delta_rule[(heads, 2)](*inputs, o.argument, n, d**-0.5, C=32, D=d, V=32)
    expected = recurrence(*map(wide, (q, k, v, g, beta)), d**-0.5)
    off = wide(o.host()) - expected
    assert np.sqrt((off**2).mean() / (expected**2).mean()) < error
