"""Masks that are true up to some element of a tile, which machines without masked instructions access in two parts:
every length, every comparison, numbers that wrap around, tiles of two dimensions, and sums in one order."""

import numpy as np
import pytest
from harness import Array, Buffer, jit, random

CONDITIONS = ["i < n", "n > i", "i <= n", "n >= i", "i > n", "i >= n", "n < i", "(i >= 5) & (i < n)", "n - 7 > i - 3"]
LENGTHS = [-3, 0, 1, 31, 32, 33, 64, 99, 127, 128, 500]


def expected_mask(condition, i, n):
    with np.errstate(over="ignore"):
        return eval(condition, {"i": i.astype(np.int32), "n": np.int32(n)})


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(condition):
    kernel = jit(f"""
        def kernel(x, out, total, n, SIZE: tl.constexpr):
            i = tl.arange(0, SIZE)
            m = {condition}
            v = tl.load(x + i, mask=m, other=-1)
            tl.store(out + i, tl.where(m, v + v, 7), mask=m)
            tl.store(total, tl.sum(tl.load(x + i, mask=m, other=2)))
    """)
    x = random((128,), "float32")
    for n in LENGTHS:
        out, total = Buffer(random((128,), "float32", seed=9)), Buffer(random((1,), "float32"))
        before = out.host().values.copy()
        kernel[(1,)](Buffer(x).argument, out.argument, total.argument, n, 128)
        m = expected_mask(condition, np.arange(128), n)
        np.testing.assert_array_equal(out.host().values, np.where(m, x.values + x.values, before))
        np.testing.assert_allclose(total.host().values, np.where(m, x.values, 2).sum(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("condition", ["i + base < n", "i + base <= n", "i + base > n", "i + base >= n"])
def test_numbers_that_wrap_around(condition):
    kernel = jit(f"""
        def kernel(out, base, n, SIZE: tl.constexpr):
            i = tl.arange(0, SIZE)
            tl.store(out + i, 1, mask={condition})
    """)
    top = 2**31 - 1
    for base in [top - 127, top - 126, top - 40, top, -top - 1]:
        for n in [base, top, top - 64, -top - 1, -top + 30]:
            out = Buffer(Array(np.zeros(128, np.int32), "int32"))
            kernel[(1,)](out.argument, base, n, 128)
            i = (np.arange(128, dtype=np.int64) + base).astype(np.int32)
            m = eval(condition.replace("i + base", "i"), {"i": i, "n": np.int32(n)})
            np.testing.assert_array_equal(out.host().values, m.astype(np.int32))


ROWS = jit("""
    def kernel(x, w, out, sums, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
        i = tl.arange(0, ROWS)
        j = tl.arange(0, COLUMNS)
        m = (i < rows)[:, None] & (j < columns)[None, :]
        at = i[:, None] * COLUMNS + j[None, :]
        v = tl.load(x + at, mask=m, other=0) * tl.load(w + j, mask=j < columns, other=1)[None, :]
        tl.store(out + at, v, mask=m)
        k = j if AXIS == 0 else i
        tl.store(sums + k, tl.sum(v, axis=AXIS))
""")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(8, 128), (32, 32), (5, 40), (64, 8)])
def test_two_dimensions(shape, axis):
    x, w = random(shape, "float32"), random(shape[1:], "float32", seed=3)
    for rows in [0, 1, shape[0] - 1, shape[0]]:
        for columns in [0, 1, 7, shape[1] - 1, shape[1]]:
            out, sums = Buffer(random(shape, "float32", seed=9)), Buffer(random((shape[1 - axis],), "float32"))
            wanted = out.host().values.copy()
            ROWS[(1,)](Buffer(x).argument, Buffer(w).argument, out.argument, sums.argument, rows, columns, *shape, axis)
            product = np.zeros(shape, np.float32)
            product[:rows, :columns] = (x.values * w.values)[:rows, :columns]
            wanted[:rows, :columns] = product[:rows, :columns]
            np.testing.assert_array_equal(out.host().values, wanted)
            np.testing.assert_allclose(sums.host().values, product.sum(axis), rtol=1e-5, atol=1e-5)


SUM = jit("""
    def kernel(x, out, n, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        tl.store(out, tl.sum(tl.load(x + i, mask=i < n, other=0)))
""")
WHOLE = jit("""
    def kernel(x, out, n, SIZE: tl.constexpr):
        tl.store(out, tl.sum(tl.load(x + tl.arange(0, SIZE))))
""")


@pytest.mark.parametrize("size", [32, 256, 1000])
def test_a_sum_has_the_same_bits_with_and_without_masks(size):
    x = random((size,), "float32")
    for n in [1, size // 2, size - 1, size]:
        zeros = np.where(np.arange(size) < n, x.values, 0).astype(np.float32)
        results = []
        for kernel, values in ((SUM, x.values), (WHOLE, zeros)):
            out = Buffer(Array(np.zeros(1, np.float32), "float32"))
            kernel[(1,)](Buffer(Array(values, "float32")).argument, out.argument, n, size)
            results.append(out.host().values.tobytes())
        assert results[0] == results[1]


@pytest.mark.parametrize("n", [0, 33, 100, 128])
def test_masked_softmax(n):
    """Elements far below the others, as masked ones are, give exactly 0."""
    kernel = jit("""
        def kernel(x, out, n, SIZE: tl.constexpr):
            i = tl.arange(0, SIZE)
            v = tl.load(x + i, mask=i < n, other=-float("inf"))
            p = tl.exp(v - tl.maximum(tl.max(v, axis=0), -1e30))
            tl.store(out + i, p / tl.maximum(tl.sum(p, axis=0), 1e-30))
    """)
    x, out = random((128,), "float32"), Buffer(random((128,), "float32"))
    kernel[(1,)](Buffer(x).argument, out.argument, n, 128)
    powers = np.exp(x.values[:n].astype(np.float64))
    np.testing.assert_allclose(out.host().values[:n], powers / powers.sum(), rtol=1e-5)
    assert (out.host().values[n:] == 0).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("function, of", [("minimum", np.minimum), ("maximum", np.maximum)])
def test_rows_behind_the_mask_are_known(function, of, dtype):
    """What the smaller or larger one of their zero and a number is, is compared with zero."""
    kernel = jit(f"""
        def kernel(x, y, out):
            at = tl.arange(0, 16)[:, None] * 7 + tl.arange(0, 7)[None, :]
            found = tl.{function}(tl.load(x + at, mask=at < 24, other=0), tl.load(y + at))
            tl.store(out + at, tl.where(found == 0, 3, found))
    """)
    x, y = (random((112,), dtype, seed, -50, 51) for seed in range(2))
    y.values[::5] = 0
    out = Buffer(Array(np.zeros_like(x.values), dtype))
    kernel[(1,)](Buffer(x).argument, Buffer(y).argument, out.argument, num_warps=1)
    found = of(np.where(np.arange(112) < 24, x.values, 0), y.values)
    np.testing.assert_array_equal(out.host().values, np.where(found == 0, 3, found))


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_scans_of_what_is_known(dtype, warps):
    """Of three quarters of the elements: the compositions of x -> a x + a are counts, and counts of those."""
    kernel = jit(
        """
        def kernel(x, out, SIZE: tl.constexpr):
            i = tl.arange(0, SIZE)
            first = tl.load(x + i, mask=i < 381, other=1)
            _, second = tl.associative_scan((first, first), 0, affine)
            _, third = tl.associative_scan((second, second), 0, affine)
            tl.store(out + i, second)
            tl.store(out + SIZE + i, third)
        """,
        affine=jit("""
            def affine(a, b, c, d):
                return a * c, b * c + d
        """),
    )
    x = random((1000,), dtype, 3, -3, 4)
    out = Buffer(Array(np.zeros(2000, x.values.dtype), dtype))
    kernel[(1,)](Buffer(x).argument, out.argument, 1000, num_warps=warps)
    values, expected = np.where(np.arange(1000) < 381, x.values, 1).astype(x.values.dtype), []
    with np.errstate(over="ignore"):
        for _ in range(2):
            last, sums = values.dtype.type(0), []
            for value in values:
                last = last * value + value
                sums.append(last)
            values = np.array(sums, values.dtype)
            expected.append(values)
    np.testing.assert_array_equal(out.host().values, np.concatenate(expected))
