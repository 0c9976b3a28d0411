"""Extents that are no power of two, everywhere: padding must never show."""

import numpy as np
import pytest
from harness import Array, Buffer, check, jit, random

EXTENTS = [1, 2, 3, 5, 7, 12, 17, 33, 96, 100, 127, 129, 1000, 4095]
SHAPES = [(3, 5), (5, 3), (7, 33), (1, 100), (100, 1), (12, 96), (3, 5, 7), (2, 9, 3), (3, 2, 5, 3), (1, 3, 1, 5)]


@pytest.mark.parametrize("n", EXTENTS)
def test_what_mixes_elements(n):
    """Sums, extremes, products, prefixes and sorts see only what is there, whatever fills the rest."""
    x = random((n,), "int32", low=-1000, high=-5)  # negative: a padding of zero would win
    v = x.values
    code = """
        a = tl.sum(x)
        b = tl.max(x)
        c = tl.argmax(x, 0)
        d = tl.cumsum(x, 0)
        e = tl.sort(x)
        f = tl.xor_sum(x)
        g = tl.flip(x)
        h = tl.cumsum(x, 0, reverse=True)
        k = tl.min(-x)
    """
    expected = {
        "a": v.sum(dtype=np.int32), "b": v.max(), "c": np.int32(v.argmax()), "d": np.cumsum(v, dtype=np.int32),
        "e": np.sort(v),
        "f": np.bitwise_xor.reduce(v), "g": v[::-1], "h": np.cumsum(v[::-1], dtype=np.int32)[::-1], "k": (-v).min(),
    }  # fmt: skip
    check(code, {"x": x}, {name: np.asarray(value) for name, value in expected.items()})


@pytest.mark.parametrize("n", EXTENTS)
def test_what_publishes_elements(n):
    """Stores, atomics and histograms touch nothing behind the end: the harness puts guards there."""
    x = random((n,), "int32", low=0, high=8)
    code = """
        tl.store(y_ptr + tl.arange(0, {n}), x + 1)
        tl.atomic_add(z_ptr + x, 1)
        a = tl.load(y_ptr + tl.arange(0, {n}))
        b = tl.load(z_ptr + tl.arange(0, 8))
        c = tl.histogram(x, 8)
    """
    counts = np.bincount(x.values, minlength=8).astype(np.int32)
    inputs = {"x": x, "y": np.zeros(n, np.int32), "z": np.zeros(8, np.int32)}
    check(code.replace("{n}", str(n)), inputs, {"a": x.values + 1, "b": counts, "c": counts})


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    x = random(shape, "int32", low=1, high=50)
    v = x.values
    for axis in range(len(shape)):
        code = f"a = tl.sum(x, {axis})\nb = tl.min(x, {axis})\nc = tl.cumsum(x, {axis})\nd = tl.argmin(x, {axis})"
        expected = {
            "a": v.sum(axis, dtype=np.int32),
            "b": v.min(axis),
            "c": np.cumsum(v, axis, dtype=np.int32),
            "d": v.argmin(axis).astype(np.int32),
        }
        check(code, {"x": x}, expected)
    check("tl.reshape(x, (x.numel,))", {"x": x}, v.ravel())
    order = tuple(reversed(range(len(shape))))
    check(f"tl.permute(x, {order})", {"x": x}, np.transpose(v, order))
    check("tl.join(x, x + 1)", {"x": x}, np.stack([v, v + 1], -1))
    check(f"tl.sort(tl.reshape(x, ({v.size},)))", {"x": x}, np.sort(v.ravel()))


@pytest.mark.parametrize("n", [1, 3, 5, 12, 33, 100])
def test_reshapes_between_extents(n):
    x = np.arange(6 * n, dtype=np.int32)
    for shape in [(6, n), (n, 6), (2, 3, n), (3, 2 * n), (n, 2, 3)]:
        check(f"tl.reshape(x + 1, {shape})", {"x": x}, (x + 1).reshape(shape))
        check(f"tl.reshape(x, (6 * {n},)) * 2", {"x": x.reshape(shape)}, x * 2)
        check(f"tl.sum(tl.reshape(x, {shape}), 0)", {"x": x}, x.reshape(shape).sum(0, dtype=np.int32))


@pytest.mark.parametrize("n", [1, 3, 7, 20, 96])
def test_slices_joins_and_gathers(n):
    x = random((n, 2 * n), "float32")
    v = x.values
    check(f"tl.cat(x[:, :{n}], x[:, {n}:], dim=1)", {"x": x}, v)
    check(
        "a, b = tl.split(tl.reshape(x, ({n}, {n}, 2)))".replace("{n}", str(n)),
        {"x": x},
        {"a": v[:, ::2], "b": v[:, 1::2]},
    )
    check("tl.interleave(x, -x)", {"x": x}, np.stack([v, -v], -1).reshape(n, -1))
    check(f"tl.gather(x, tl.broadcast_to(tl.arange(0, {n})[:, None], ({n}, {2 * n})), 0)", {"x": x}, v[np.arange(n)])
    check(f"x[{n // 2}, :]", {"x": x}, v[n // 2])


@pytest.mark.parametrize("rows, columns", [(1, 1), (3, 100), (5, 129), (100, 7), (33, 1000)])
def test_a_row_softmax_and_a_column_mean(rows, columns):
    x = random((rows, columns), "float32")
    v = x.values.astype(np.float64)
    e = np.exp(v - v.max(1, keepdims=True))
    code = "e = tl.exp(x - tl.max(x, axis=1)[:, None])\nout = e / tl.sum(e, axis=1)[:, None]"
    check(code, {"x": x}, Array((e / e.sum(1, keepdims=True)).astype(np.float32), "float32"), rtol=1e-5, atol=1e-7)
    check(f"tl.sum(x, axis=0) / {rows}", {"x": x}, v.mean(0).astype(np.float32), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 12, 33, 96, 100, 1000])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_one_block_is_the_whole_array(dtype, n):
    """No mask at all: the block is exactly as long as the array."""
    kernel = jit("""
        def kernel(x, out, N: tl.constexpr):
            i = tl.program_id(0) * N + tl.arange(0, N)
            tl.store(out + i, tl.load(x + i) * 2)
    """)
    x, out = random((3 * n,), dtype), Buffer(random((3 * n,), dtype, seed=3))
    kernel[(3,)](Buffer(x).argument, out.argument, n)
    assert (out.host().values == x.values * x.values.dtype.type(2)).all()


@pytest.mark.parametrize("m, n, k", [(3, 5, 7), (1, 1, 3), (17, 33, 9), (96, 12, 100)])
def test_products_of_computed_operands(m, n, k):
    x, y = random((m, k), "float32", seed=1), random((k, n), "float32", seed=2)
    a, b = np.round(x.values), np.round(y.values)
    check(
        "tl.dot(x + 1, y * 2) + tl.sum(x, axis=1)[:, None]",
        {"x": a, "y": b},
        (a + 1) @ (b * 2) + a.sum(1, keepdims=True),
    )


def test_loops_carry_padded_tiles():
    code = """
        total = tl.zeros((33,), tl.int32)
        low = tl.full((33,), 1000, tl.int32)
        for i in range(5):
            total += x * i
            low = tl.minimum(low, x + i)
        out = tl.sum(total) + tl.sum(low)
    """
    x = np.arange(33, dtype=np.int32)
    check(code, {"x": x}, np.asarray((x * 10).sum() + x.sum(), np.int32))


def test_conditions_over_padded_tiles():
    x = np.full(5, 3, np.int32)
    check("tl.min((x == 3).to(tl.int32))", {"x": x}, np.asarray(1, np.int32))
    check("tl.max((x != 3).to(tl.int32))", {"x": x}, np.asarray(0, np.int32))
    check("tl.sum(tl.where(x == 0, 100, 1))", {"x": x}, np.asarray(5, np.int32))
