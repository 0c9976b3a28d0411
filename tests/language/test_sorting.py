"""sort, topk, flip, histogram and gather."""

import numpy as np
import pytest
from harness import DTYPES, Array, check, random

DTYPES_SORTED = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("dtype", DTYPES_SORTED)
def test_sort_dtypes(dtype):
    x = random((5, 64), dtype)
    check("tl.sort(x)", {"x": x}, Array(np.sort(x.values), dtype))
    check("tl.sort(x, descending=True)", {"x": x}, Array(np.sort(x.values)[:, ::-1], dtype))


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (8,), (3,), (17,), (96,), (128,), (1000,), (4, 1), (1, 16), (2, 3, 8), (2, 2, 2, 4), (3, 100)]
)
def test_sort_shapes(shape):
    x = random(shape, "int32", low=-20, high=20)
    check("tl.sort(x)", {"x": x}, np.sort(x.values))
    check("x.sort(descending=True)", {"x": x}, np.sort(x.values)[..., ::-1])


def test_sort_along_the_last_dimension():
    x = random((4, 8), "float32")
    check("tl.sort(x, dim=1)", {"x": x}, np.sort(x.values, 1))
    check("tl.trans(tl.sort(tl.trans(x)))", {"x": x}, np.sort(x.values, 0))


def test_sort_keeps_infinities_and_duplicates():
    x = np.array([3, np.inf, -np.inf, 3, 0.5, -3, 3, 1e-40], np.float32)
    check("tl.sort(x)", {"x": x}, np.sort(x))


@pytest.mark.parametrize("k", [1, 2, 4, 16, 64])
def test_topk(k):
    for dtype in ["int32", "float32", "float16"]:
        x = random((3, 64), dtype)
        check(f"tl.topk(x, {k})", {"x": x}, Array(np.sort(x.values)[:, ::-1][:, :k], dtype))
    x = random((64,), "int32")
    check(f"tl.topk(x, {k})", {"x": x}, np.sort(x.values)[::-1][:k])


def test_topk_of_any_extent():
    x = random((3, 50), "float32")
    check("tl.topk(x, 5)", {"x": x}, np.sort(x.values)[:, ::-1][:, :5])


@pytest.mark.parametrize("shape", [(1,), (8,), (5,), (100,), (3, 7), (2, 3, 5)])
def test_flip(shape):
    x = random(shape, "int32")
    check("tl.flip(x)", {"x": x}, np.flip(x.values, -1))
    for dim in range(len(shape)):
        check(f"tl.flip(x, {dim})", {"x": x}, np.flip(x.values, dim))
    check("tl.flip(tl.flip(x, 0), 0)", {"x": x}, x)


@pytest.mark.parametrize("count, bins", [(1, 1), (10, 2), (64, 16), (1000, 10), (4096, 256), (96, 7), (500, 1024)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_histogram(dtype, count, bins):
    x = random((count,), dtype, low=0, high=min(bins, 256))
    check(f"tl.histogram(x, {bins})", {"x": x}, np.bincount(x.values.astype(np.int64), minlength=bins).astype(np.int32))


def test_histogram_ignores_what_is_outside():
    x = random((200,), "int32", low=-5, high=20)
    inside = x.values[(x.values >= 0) & (x.values < 12)]
    check("tl.histogram(x, 12)", {"x": x}, np.bincount(inside, minlength=12).astype(np.int32))


def test_histogram_under_a_mask():
    x, m = random((200,), "int32", low=0, high=8), random((200,), "int1")
    expected = np.bincount(x.values[m.values], minlength=8).astype(np.int32)
    check("tl.histogram(x, 8, mask=m)", {"x": x, "m": m}, expected)


def test_histogram_method():
    check("x.histogram(4)", {"x": np.array([0, 1, 1, 3, 3, 3], np.int32)}, np.array([1, 2, 0, 3], np.int32))


@pytest.mark.parametrize(
    "source, index, axis",
    [
        ((8,), (8,), 0), ((8,), (20,), 0), ((100,), (3,), 0), ((5, 7), (5, 3), 1), ((5, 7), (9, 7), 0),
        ((4, 4), (4, 4), 1),
        ((2, 3, 5), (2, 3, 4), 2), ((2, 3, 5), (2, 8, 5), 1), ((1,), (64,), 0), ((33, 2), (1, 2), 0),
    ],
)  # fmt: skip
def test_gather(source, index, axis):
    for dtype in ["float32", "int8"]:
        x, i = random(source, dtype), random(index, "int32", low=0, high=source[axis])
        check(f"tl.gather(x, i, {axis})", {"x": x, "i": i}, Array(np.take_along_axis(x.values, i.values, axis), dtype))
    check(
        f"x.gather(i, axis={axis - len(source)})",
        {"x": x, "i": i},
        Array(np.take_along_axis(x.values, i.values, axis), "int8"),
    )


@pytest.mark.parametrize("dtype", ["int1", "int64", "uint8", "float16", "bfloat16", "float64"])
def test_gather_dtypes(dtype):
    x, i = random((16,), dtype), random((40,), "int32", low=0, high=16)
    check("tl.gather(x, i, 0)", {"x": x, "i": i}, Array(x.values[i.values], dtype))
    assert DTYPES[dtype].name == dtype


@pytest.mark.parametrize("distance", [1, 2, 8, 32, 64, 101, 127])
@pytest.mark.parametrize(
    "index",
    [
        "tl.broadcast_to((tl.arange(0, 128) ^ D)[None, :], (8, 128))",
        "tl.broadcast_to(tl.arange(0, 128)[None, :], (8, 128)) ^ D",
        "tl.trans(tl.broadcast_to(D ^ tl.arange(0, 128)[:, None], (128, 8)))",
        "tl.broadcast_to(tl.reshape(127 - (tl.arange(0, 128) ^ (127 - D)), (1, 128)), (8, 128))",
    ],
)
def test_gather_at_a_distance(index, distance):
    x = random((8, 128), "float32")
    wanted = x.values[:, np.arange(128) ^ distance]
    check(f"tl.gather(x, {index.replace('D', str(distance))}, 1)", {"x": x}, wanted)


def test_gather_from_outside_of_the_axis():
    """Elements are unspecified where the index is; the others are what they are."""
    x = random((4, 16), "int32")
    index = "tl.broadcast_to((tl.arange(0, 16) ^ 16)[None, :], (4, 16))"
    check(f"tl.where(tl.gather(x, {index}, 1) == x, x, x)", {"x": x}, x.values)


def test_gather_reverses():
    x = random((4, 6), "float32")
    code = "tl.gather(x, tl.broadcast_to((5 - tl.arange(0, 6))[None, :], (4, 6)), 1)"
    check(code, {"x": x}, x.values[:, ::-1])


def test_an_argsort():
    """Keys and positions packed into one integer."""
    x = random((64,), "int32", low=0, high=1000)
    code = """
        packed = tl.sort(x.to(tl.int64) * 64 + tl.arange(0, 64))
        out = (packed % 64).to(tl.int32)
    """
    check(code, {"x": x}, np.argsort(x.values, kind="stable").astype(np.int32))
