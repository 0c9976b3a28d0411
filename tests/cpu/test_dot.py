"""Products of matrices: types, extents, batches, accumulators."""

import numpy as np
import pytest

from .build import STORAGE, Kernel
from .test_casts import decode_all, encode

SIZES = [(1, 1, 1), (16, 16, 16), (32, 64, 16), (3, 5, 7), (17, 33, 20), (64, 48, 96), (5, 1, 64), (1, 40, 8)]


def matrix(rng, element, shape):
    """A matrix as stored, and its values as float64 or int64."""
    if element.startswith("i"):
        x = rng.integers(-100, 100, shape).astype(STORAGE[element])
        return x, x.astype("int64")
    x = rng.standard_normal(shape)
    if element in ("f32", "f64"):
        x = x.astype(STORAGE[element])
        return x, x.astype("float64")
    codes = encode(element, x)
    return codes, decode_all(element)[codes.view(f"uint{8 * codes.itemsize}")]


def check(element, accumulator, sizes, batch=(), start=None, transpose=()):
    rng = np.random.default_rng(1)
    m, n, k = sizes
    a, av = matrix(rng, element, (*batch, m, k))
    b, bv = matrix(rng, element, (*batch, k, n))
    c, cv = matrix(rng, accumulator, (*batch, m, n))
    kernel = Kernel()
    x, y = kernel.load(a, element), kernel.load(b, element)
    if "b" in transpose:
        y = kernel.load(np.ascontiguousarray(b.T), element)
        y = kernel.op("permute", y, shape=(k, n), attrs="{order = [1, 0]}")
    if "a" in transpose:
        x = kernel.load(np.ascontiguousarray(a.T), element)
        x = kernel.op("permute", x, shape=(m, k), attrs="{order = [1, 0]}")
    if start is None:
        z = kernel.load(c, accumulator)
    else:
        z, cv = kernel.constant(start, accumulator, (*batch, m, n)), start
    out = kernel.run(kernel.op("dot", x, y, z, element=accumulator, shape=(*batch, m, n)))
    expected = av @ bv + cv
    if accumulator.startswith("i"):
        np.testing.assert_array_equal(out, expected.astype(out.dtype))
    elif accumulator in ("f16", "bf16"):
        values = decode_all(accumulator)[out.view(np.uint16)]
        np.testing.assert_allclose(values, expected, rtol=0.01, atol=0.01 * np.sqrt(k))
    else:
        tolerance = 1e-5 if accumulator == "f32" else 1e-13
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "f8e4m3", "f8e5m2"])
def test_floats(element, sizes):
    check(element, "f32", sizes)


@pytest.mark.parametrize("sizes", SIZES)
def test_doubles(sizes):
    check("f64", "f64", sizes)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("element", ["i8", "i16", "i32"])
def test_ints(element, sizes):
    check(element, "i32", sizes)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_narrow_accumulators(element):
    check(element, element, (17, 33, 20))


@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
def test_batches(element):
    check(element, "i32" if element == "i8" else "f32", (16, 24, 10), batch=(3,))


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("start", [0.0, 2.5])
def test_constant_accumulators(element, start):
    check(element, "f64" if element == "f64" else "f32", (32, 40, 16), start=start)


@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i8"])
@pytest.mark.parametrize("transpose", ["a", "b", "ab"])
def test_transposed_operands(element, transpose):
    for sizes in ((32, 64, 16), (17, 33, 20)):
        check(element, "i32" if element == "i8" else "f32", sizes, transpose=transpose)


def test_operands_that_are_computed_and_used_again():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((24, 16)).astype("f"), rng.standard_normal((16, 24)).astype("f")
    k = Kernel()
    x, y = k.load(a), k.load(b)
    x = k.op("fadd", x, x)
    zero = k.constant(0.0, "f32", (24, 24))
    first = k.op("dot", x, y, zero, shape=(24, 24))
    second = k.op("dot", k.op("fneg", x), y, first, shape=(24, 24))
    third = k.op("dot", first, first, first)
    out = k.run(first, second, third, x)
    product = 2 * a @ b
    np.testing.assert_allclose(out[0], product, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[1], 0 * product, atol=1e-4)
    np.testing.assert_allclose(out[2], product @ product + product, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(out[3], a + a)
