"""Reductions: every operation, dtype and axis, tiles of rank 1 to 4, sizes 1 to 4096, combinations of one's own."""

import numpy as np
import pytest
from harness import DTYPES, FLOATS, NUMBERS, SIGNED, check, define, random, round_to

SIZES = [1, 2, 3, 5, 8, 16, 17, 31, 64, 96, 100, 127, 128, 1000, 1024, 4095, 4096]


def small(shape, dtype, seed=0):
    """Values whose sums are exact in every order: integers of a few bits."""
    x = random(shape, "int32", seed, low=0 if DTYPES[dtype].kind == "uint" else -3, high=4)
    return round_to(x.values, dtype)


def sum_dtype(dtype):
    """Integers narrower than 32 bits are summed in 32 bits, bfloat16 in float32."""
    if dtype == "bfloat16":
        return "float32"
    kind, bits = DTYPES[dtype].kind, DTYPES[dtype].bits
    return {"int": "int32", "uint": "uint32"}[kind] if kind in ("int", "uint") and bits < 32 else dtype


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sum(dtype):
    x = small((48,), dtype)
    check("tl.sum(x)", {"x": x}, round_to(x.values.astype(np.float64).sum(), sum_dtype(dtype)))
    x = small((6, 48), dtype)
    for axis in [0, 1]:
        check(f"tl.sum(x, axis={axis})", {"x": x}, round_to(x.values.astype(np.float64).sum(axis), sum_dtype(dtype)))


def test_sum_of_booleans_counts():
    x = random((100,), "int1")
    check("tl.sum(x.to(tl.int32))", {"x": x}, np.asarray(x.values.sum(), np.int32))
    check(
        "tl.sum((x > 0.5).to(tl.float32), axis=0)",
        {"x": random((100,))},
        np.float32((random((100,)).values > 0.5).sum()),
    )


def test_sum_in_another_dtype():
    x = round_to(np.full(1000, 200.0), "float16")
    check("tl.sum(x, dtype=tl.float32)", {"x": x}, np.asarray(200000, np.float32))
    y = np.full(100, 100, np.int8)
    check("tl.sum(y, dtype=tl.int64)", {"y": y}, np.asarray(10000, np.int64))
    check("tl.sum(y)", {"y": y}, np.asarray(10000, np.int32))


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    x = small((size,), "float32")
    check("tl.sum(x)", {"x": x}, np.asarray(x.values.sum(), np.float32))
    check("tl.max(x)", {"x": x}, np.asarray(x.values.max(), np.float32))
    y = random((size,), "int32", seed=1)
    code = "a = tl.min(y, axis=0)\nb = tl.argmax(y, axis=0)\nc = tl.xor_sum(y, axis=0)"
    expected = {"a": y.values.min(), "b": np.int32(y.values.argmax()), "c": np.bitwise_xor.reduce(y.values)}
    check(code, {"y": y}, {name: np.asarray(value) for name, value in expected.items()})


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 64), (64, 1), (3, 5), (2, 3, 5), (5, 1, 7), (2, 3, 4, 5), (33, 17), (4, 4, 4, 4)]
)
def test_every_axis(shape):
    x, y = small(shape, "float32"), random(shape, "int32", seed=1)
    for axis in [*range(len(shape)), -1]:
        code = f"a = tl.sum(x, axis={axis})\nb = tl.max(y, axis={axis})\nc = tl.argmin(y, axis={axis})"
        expected = {"a": x.values.sum(axis), "b": y.values.max(axis), "c": y.values.argmin(axis).astype(np.int32)}
        check(code, {"x": x, "y": y}, expected)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 5), (2, 3, 4, 5)])
def test_no_axis_reduces_all(shape):
    x = small(shape, "float32")
    check("tl.sum(x)", {"x": x}, np.asarray(x.values.sum(), np.float32))
    check("tl.max(x, axis=None)", {"x": x}, np.asarray(x.values.max(), np.float32))


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 5)])
def test_keep_dims(shape):
    x = small(shape, "float32")
    for axis in range(len(shape)):
        check(f"tl.sum(x, axis={axis}, keep_dims=True)", {"x": x}, x.values.sum(axis, keepdims=True))
        check(f"x - tl.max(x, axis={axis}, keep_dims=True)", {"x": x}, x.values - x.values.max(axis, keepdims=True))
    check("tl.sum(x, keep_dims=True)", {"x": x}, x.values.sum(keepdims=True))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name, dtype):
    for shape in [(33,), (5, 96)]:
        x = random(
            shape,
            dtype,
            low=-100 if DTYPES[dtype].kind == "float" else None,
            high=100 if DTYPES[dtype].kind == "float" else None,
        )
        bits = DTYPES[dtype].bits
        wide = dtype if bits >= 32 else {"int": "int32", "uint": "uint32", "float": "float32"}[DTYPES[dtype].kind]
        expected = getattr(x.values, name)(axis=-1)
        check(f"tl.{name}(x, axis={len(shape) - 1}).to(tl.{wide})", {"x": x}, round_to(expected, wide))


@pytest.mark.parametrize("dtype", FLOATS)
def test_extremes_leave_nan_out(dtype):
    rows = [[1.0, np.nan, 3.0], [np.nan, -np.inf, -1.0], [np.inf, np.nan, 2.0], [np.nan, np.nan, np.nan]]
    x = round_to(np.array(rows), dtype)  # beside padding, which must not win over NaN either
    wide = "float64" if dtype == "float64" else "float32"
    check(f"tl.max(x, axis=1).to(tl.{wide})", {"x": x}, round_to(np.fmax.reduce(x.values, 1), wide))
    check(f"tl.min(x, axis=1).to(tl.{wide})", {"x": x}, round_to(np.fmin.reduce(x.values, 1), wide))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_takes_the_first_of_equals(name, dtype):
    x = small((4, 50), dtype)
    expected = getattr(x.values, name)(axis=1).astype(np.int32)
    check(f"tl.{name}(x, axis=1)", {"x": x}, expected)
    check(f"tl.{name}(x, axis=1, tie_break_left=True)", {"x": x}, expected)
    check(f"tl.{name}(x, 0)", {"x": x}, getattr(x.values, name)(axis=0).astype(np.int32))


@pytest.mark.parametrize("name", ["max", "min"])
def test_value_and_index(name):
    x = random((4, 60), "float32")
    code = f"a, b = tl.{name}(x, axis=1, return_indices=True)"
    expected = {"a": getattr(x.values, name)(1), "b": getattr(x.values, "arg" + name)(1).astype(np.int32)}
    check(code, {"x": x}, expected)
    check(code.replace(", return", ", return_indices_tie_break_left=True, return"), {"x": x}, expected)


@pytest.mark.parametrize("rows, columns, inner", [(64, 64, 16), (128, 128, 32), (100, 40, 16)])
def test_columns_of_a_product(rows, columns, inner):
    """Of many columns a thread has elements, and so have lanes and warps: lanes share out which ones they pass on."""
    x, y = small((rows, inner), "float16"), small((inner, columns), "float16", seed=1)
    code = """
product = tl.dot(x, y)
total = tl.sum(product, axis=0)
count = tl.sum((product > 0).to(tl.int32), axis=0)
top, place = tl.max(product, axis=0, return_indices=True)
back = product + total[None, :]
"""
    product = x.values.astype(np.float32) @ y.values.astype(np.float32)
    total = product.sum(0)
    expected = {
        "total": total,
        "count": (product > 0).sum(0).astype(np.int32),
        "top": product.max(0),
        "place": product.argmax(0).astype(np.int32),
        "back": product + total,
    }
    check(code, {"x": x, "y": y}, expected)


def test_argmax_keep_dims():
    x = random((4, 6), "float32")
    check("tl.argmax(x, axis=1, keep_dims=True)", {"x": x}, x.values.argmax(1, keepdims=True).astype(np.int32))


@pytest.mark.parametrize("dtype", SIGNED + ["uint32", "uint64"])
def test_xor_sum(dtype):
    x = random((5, 33), dtype)
    wide = sum_dtype(dtype)
    check(f"tl.xor_sum(x, axis=1).to(tl.{wide})", {"x": x}, round_to(np.bitwise_xor.reduce(x.values, 1), wide))


def test_methods():
    x = small((4, 6), "float32")
    for name in ["sum", "max", "min"]:
        check(f"x.{name}(axis=1)", {"x": x}, getattr(x.values, name)(1))
        check(f"x.{name}(0)", {"x": x}, getattr(x.values, name)(0))
    check("x.argmax(axis=1)", {"x": x}, x.values.argmax(1).astype(np.int32))


COMBINE = """
    @triton.jit
    def product(a, b):
        return a * b

    @triton.jit
    def both(a, b, c, d):
        return a + c, tl.maximum(b, d)

    @triton.jit
    def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
        delta = mean_b - mean_a
        count = count_a + count_b
        share = tl.where(count == 0.0, 0.0, count_b / count)
        return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count

    @triton.jit
    def first_max(a, i, b, j):
        keep = (a > b) | ((a == b) & (i < j))
        return tl.where(keep, a, b), tl.where(keep, i, j)
"""


def combined(code, inputs, expected, **options):
    functions = define(COMBINE)
    names = {name: functions[name] for name in ["product", "both", "welford", "first_max"]}
    check(code, inputs, expected, names=names, **options)


@pytest.mark.parametrize("shape", [(1,), (5,), (16,), (3, 7), (2, 3, 5)])
def test_reduce_by_a_function(shape):
    x = round_to(np.where(random(shape).values > 0, 2.0, 0.5), "float32")
    for axis in range(len(shape)):
        combined(f"tl.reduce(x, {axis}, product)", {"x": x}, x.values.prod(axis))
    combined("tl.reduce(x, axis=None, combine_fn=product)", {"x": x}, np.asarray(x.values.prod()))
    combined("tl.reduce(x, 0, product, keep_dims=True)", {"x": x}, x.values.prod(0, keepdims=True))


@pytest.mark.parametrize("shape, axis", [((96,), 0), ((5, 33), 0), ((5, 33), 1), ((3, 4, 5), 1)])
def test_reduce_several_at_once(shape, axis):
    x, y = small(shape, "float32"), random(shape, "int32", seed=1)
    expected = {"a": x.values.sum(axis), "b": y.values.max(axis)}
    combined(f"a, b = tl.reduce((x, y), {axis}, both)", {"x": x, "y": y}, expected)


@pytest.mark.parametrize("name", ["reduce", "associative_scan"])
def test_results_that_nobody_uses(name):
    """ptxas makes x & y of x | y where it finds out late that nobody uses what was computed of x & y."""
    x, y = small((32,), "int32"), small((32,), "int32", seed=1)
    code = f"""
        _, largest = tl.{name}((((x > 0) & (y > 0)).to(tl.float32), x), 0, both)
        either = (x > 0) | (y > 0)
    """
    largest = x.values.max() if name == "reduce" else np.maximum.accumulate(x.values)
    combined(code, {"x": x, "y": y}, {"largest": largest, "either": (x.values > 0) | (y.values > 0)})


ONE_ELEMENT = """
    @triton.jit
    def promoted(x):
        return x + tl.zeros((1,), tl.int1)

    @triton.jit
    def is_floating(x):
        return promoted(x).dtype.is_floating()

    @triton.jit
    def maximum_with_nan(a, b):
        mask = a > b
        if is_floating(a):
            mask |= a != a
        return tl.where(mask, a, b)

    @triton.jit
    def added(a, b):
        return a + b + tl.zeros((1,), tl.int1)

    @triton.jit
    def added_and_reduced(a, b):
        return tl.sum(tl.sum((a + tl.full((1, 1), 0, a.dtype)).reshape((1,))[None, :], 1), 0) + b

    @triton.jit
    def smaller(a, b):
        x = tl.broadcast_to(tl.where(tl.arange(0, 1) == 0, a, b), (1,))
        if b < a:
            x = b + tl.zeros((1,), tl.int1)
        return x.item()
"""


@pytest.mark.parametrize("name", ["added", "added_and_reduced", "smaller", "maximum_with_nan"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_tiles_of_one_element_in_a_combination_are_scalars(name, dtype):
    names = {name: define(ONE_ELEMENT)[name]}
    function = {"smaller": np.minimum, "maximum_with_nan": np.maximum}.get(name, np.add)
    for shape, axis in [((33,), 0), ((4, 96), 1), ((5, 3), 0)]:
        x = small(shape, dtype)
        check(f"tl.reduce(x, {axis}, {name})", {"x": x}, function.reduce(x.values, axis, dtype), names=names)
        expected = function.accumulate(x.values, axis, dtype)
        check(f"tl.associative_scan(x, {axis}, {name})", {"x": x}, expected, names=names)


@pytest.mark.parametrize("shape", [(8, 100), (2, 512), (1, 1000)])  # counts are known, or masked, or of several warps
def test_welford(shape):
    x = random(shape, "float32")
    code = f"""
        mean, m2, count = tl.reduce((x, tl.zeros_like(x), tl.full({shape}, 1.0, tl.float32)), 1, welford)
        variance = m2 / count
    """
    expected = {"mean": x.values.mean(1, dtype=np.float32), "variance": x.values.var(1, dtype=np.float32)}
    combined(code, {"x": x}, expected, rtol=1e-5, atol=1e-6)


def test_arg_by_a_function():
    x = small((4, 65), "int32")
    code = "a, b = tl.reduce((x, tl.broadcast_to(tl.arange(0, 65)[None, :], (4, 65))), 1, first_max)"
    combined(code, {"x": x}, {"a": x.values.max(1), "b": x.values.argmax(1).astype(np.int32)})


def test_reduction_of_a_reduction():
    x = small((4, 5, 6), "float32")
    check("tl.sum(tl.max(x, axis=2), axis=0)", {"x": x}, x.values.max(2).sum(0))
    check("tl.sum(tl.sum(tl.sum(x, 0), 0), 0)", {"x": x}, np.asarray(x.values.sum()))


def test_sums_in_a_loop():
    x = small((4, 96), "float32")
    code = """
        total = 0.0
        for k in range(4):
            total += tl.sum(tl.load(x_ptr + k * 96 + tl.arange(0, 96)))
        out = total
    """
    check(code, {"x": x}, np.asarray(x.values.sum(), np.float32))


def test_float_sums_are_accurate():
    x = random((4096,), "float32")
    check("tl.sum(x)", {"x": x}, np.asarray(x.values.astype(np.float64).sum(), np.float32), atol=1e-4)
    check("tl.sum(x * x)", {"x": x}, np.asarray((x.values.astype(np.float64) ** 2).sum(), np.float32), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape, axis", [((2048,), 0), ((1000,), 0), ((8, 512), 1), ((3, 1023), 1), ((256, 8), 0)])
def test_extrema_of_widened_halves(shape, axis, dtype):
    """The largest of them is found before they are widened."""
    x = random(shape, dtype)
    values = x.values.astype(np.float32)
    values.flat[::7] = np.nan
    values.flat[5::11] = -np.inf
    x = round_to(values, dtype)
    wide = x.values.astype(np.float32)
    code = f"""
wide = x.to(tl.float32)
top = tl.max(wide, axis={axis})
low = tl.min(wide, axis={axis})
both = tl.max(wide, axis={axis}) + tl.sum(tl.where(wide > 0, wide, 0.0), axis={axis}) * 0
"""
    expected = {"top": np.nanmax(wide, axis), "low": np.nanmin(wide, axis), "both": np.nanmax(wide, axis)}
    check(code, {"x": x}, {name: np.asarray(value) for name, value in expected.items()})


@pytest.mark.parametrize("shape, dim", [((96,), 0), ((5, 33), 1), ((5, 33), 0), ((1, 1000), 1)])
def test_softmax(shape, dim):
    x = random(shape, "float32")
    e = np.exp(x.values.astype(np.float64) - x.values.max(dim, keepdims=True))
    expected = (e / e.sum(dim, keepdims=True)).astype(np.float32)
    check(f"tl.softmax(x, dim={dim})", {"x": x}, expected, rtol=1e-5, atol=1e-8)
