"""Mathematical functions: accuracy over their whole range, and the special values of IEEE 754 and C."""

import math

import numpy as np
import pytest
from harness import Array, array, check, random, round_to

ERF = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name: reference in float64, range of arguments, units in the last place allowed in float32
FUNCTIONS = {
    "exp": (np.exp, (-87, 88), 2), "exp2": (np.exp2, (-126, 127), 2), "log": (np.log, (1e-37, 1e37), 2),
    "log2": (np.log2, (1e-37, 1e37), 2), "sin": (np.sin, (-100, 100), 2), "cos": (np.cos, (-100, 100), 2),
    "sqrt": (np.sqrt, (0, 1e38), 1), "sqrt_rn": (np.sqrt, (0, 1e38), 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-37, 1e37), 2),
    "erf": (ERF, (-4, 4), 3), "floor": (np.floor, (-1e6, 1e6), 0), "ceil": (np.ceil, (-1e6, 1e6), 0),
    "abs": (np.abs, (-1e30, 1e30), 0),
}  # fmt: skip
# where exactly these come out
SPECIAL = {
    "exp": [
        (-np.inf, 0),
        (np.inf, np.inf),
        (0.0, 1),
        (1000.0, np.inf),
        (-1000.0, 0),
        (np.nan, np.nan),
        (-3.4e38, 0),
        (3.4e38, np.inf),
        (-2e38, 0),
    ],
    "exp2": [(-np.inf, 0), (np.inf, np.inf), (0.0, 1), (10.0, 1024), (2000.0, np.inf), (-2000.0, 0), (np.nan, np.nan)],
    "log": [
        (0.0, -np.inf),
        (-0.0, -np.inf),
        (np.inf, np.inf),
        (1.0, 0),
        (-1.0, np.nan),
        (-1e-40, np.nan),
        (-np.inf, np.nan),
        (np.nan, np.nan),
        (-np.nan, np.nan),
    ],
    "log2": [
        (0.0, -np.inf),
        (-0.0, -np.inf),
        (np.inf, np.inf),
        (1.0, 0),
        (1024.0, 10),
        (2.0**-149, -149),
        (-1.0, np.nan),
        (-1e-40, np.nan),
        (-np.inf, np.nan),
        (np.nan, np.nan),
        (-np.nan, np.nan),
    ],
    "sin": [(0.0, 0), (-0.0, -0.0), (np.inf, np.nan), (np.nan, np.nan)],
    "cos": [(0.0, 1), (np.inf, np.nan), (np.nan, np.nan)],
    "sqrt": [(0.0, 0), (-0.0, -0.0), (4.0, 2), (np.inf, np.inf), (-1.0, np.nan), (np.nan, np.nan)],
    "sqrt_rn": [(0.0, 0), (-0.0, -0.0), (4.0, 2), (np.inf, np.inf), (-1.0, np.nan), (np.nan, np.nan)],
    "rsqrt": [(0.0, np.inf), (4.0, 0.5), (np.inf, 0), (-1.0, np.nan), (np.nan, np.nan)],
    "erf": [(0.0, 0), (np.inf, 1), (-np.inf, -1), (10.0, 1), (np.nan, np.nan)],
    "floor": [(-0.5, -1), (0.5, 0), (np.inf, np.inf), (np.nan, np.nan)],
    "ceil": [(-1.5, -1), (0.5, 1), (np.inf, np.inf), (np.nan, np.nan)],
    "abs": [(-0.0, 0), (-np.inf, np.inf), (np.nan, np.nan)],
}


def arguments(low, high, count=1500):
    """Dense around zero and spread over every magnitude of a range."""
    linear = np.linspace(low, high, count)
    smallest = max(low, 1e-30) if low >= 0 else 1e-30
    magnitudes = np.geomspace(max(smallest, 1e-37), high, count // 2)
    return np.concatenate([linear, magnitudes, -magnitudes[magnitudes < -low] if low < 0 else []])


GPU_EXP_ULPS = 6  # one correction of ex2.approx: worst where |x| is near 88


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name, dtype, target):
    function, (low, high), ulps = FUNCTIONS[name]
    if name == "exp" and target != "cpu":
        ulps = GPU_EXP_ULPS
    x = round_to(arguments(low, high), dtype)
    expected = round_to(function(x.values.astype(np.float64)), dtype)
    if dtype == "float64":
        ulps = 0 if ulps == 0 else 4  # the reference itself is off by one
    check(f"tl.{name}(x)", {"x": x}, expected, ulps=ulps)


@pytest.mark.parametrize("name", ["log", "log2"])
def test_logarithms_near_one_and_of_the_smallest(name):
    near = [np.linspace(0.5, 2, 6000), 1 + np.geomspace(2.0**-23, 0.5, 500), 1 - np.geomspace(2.0**-24, 0.5, 500)]
    x = np.concatenate([*near, np.arange(1, 400) * 2.0**-149, np.geomspace(2.0**-140, 2.0**-120, 300)])
    x = x.astype(np.float32)
    check(f"tl.{name}(x)", {"x": x}, getattr(np, name)(x.astype(np.float64)).astype(np.float32), ulps=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    values, results = (np.array(column, dtype) for column in zip(*SPECIAL[name], strict=True))
    check(f"tl.{name}(x)", {"x": values}, results)
    for value, result in SPECIAL[name]:  # a scalar goes another way through the compiler
        check(f"tl.{name}(x)", {"x": np.array(value, dtype)}, np.array(result, dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_halves_are_computed_in_float32(name, dtype):
    function, (low, high), _ = FUNCTIONS[name]
    limit = 11 if name == "exp" else 15 if name == "exp2" else 60000 if dtype == "float16" else high
    x = round_to(arguments(max(low, -limit) if low < 0 else max(low, 1e-4), min(high, limit), 400), dtype)
    check(f"tl.{name}(x)", {"x": x}, round_to(function(x.values.astype(np.float64)), dtype), ulps=1)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "erf"])
def test_spellings(name):
    x = round_to(np.linspace(0.1, 2, 33), "float32")
    expected = round_to(FUNCTIONS[name][0](x.values.astype(np.float64)), "float32")
    for code in [f"tl.math.{name}(x)", f"x.{name}()", f"tl.{name}(x)"]:
        check(code, {"x": x}, expected, ulps=3)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (33,), (4096,), (7, 9), (2, 3, 5), (2, 3, 4, 5)])
def test_shapes(shape):
    x = np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    check(
        "tl.exp(x) + tl.sin(x)",
        {"x": x},
        (np.exp(x.astype(np.float64)) + np.sin(x.astype(np.float64))).astype(np.float32),
        ulps=8,
        atol=1e-6,
    )


def test_large_arguments_of_sine():
    x = np.array([1e4, 1e6, 1e9, 1e15, 1e30], np.float32)
    check("tl.sin(x)", {"x": x}, np.sin(x.astype(np.float64)).astype(np.float32), ulps=2)
    check("tl.cos(x)", {"x": x}, np.cos(x.astype(np.float64)).astype(np.float32), ulps=2)


def test_results_below_the_normal_range(target):
    x = np.array([-88.0, -95.0, -100.0, -103.0], np.float32)
    flushed = 0 if target == "cpu" else 1.2e-38  # a GPU's exp gives 0 there
    check("tl.exp(x)", {"x": x}, np.exp(x.astype(np.float64)).astype(np.float32), ulps=2, atol=flushed)
    tiny = np.array([1e-40, 1e-45, 3e-39], np.float32)
    check("tl.log(x)", {"x": tiny}, np.log(tiny.astype(np.float64)).astype(np.float32), ulps=2)
    check("tl.sqrt(x)", {"x": tiny}, np.sqrt(tiny), ulps=1)


def test_sigmoid():
    x = np.linspace(-20, 20, 501).astype(np.float32)
    check("tl.sigmoid(x)", {"x": x}, sigmoid(x.astype(np.float64)).astype(np.float32), ulps=4)
    check("x.sigmoid()", {"x": x}, sigmoid(x.astype(np.float64)).astype(np.float32), ulps=4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "code, axis",
    [
        ("tl.exp(x - tl.max(x, 1)[:, None])", 1),
        ("tl.exp(x - tl.max(x, 0)[None, :])", 0),
        ("tl.exp(x - tl.max(x, 1, keep_dims=True))", 1),
        ("tl.exp(x - tl.max(tl.max(x, 1), 0))", None),
        ("tl.exp(x - tl.max(x))", None),
        ("tl.exp(x - tl.maximum(tl.max(x, 1), -200.0)[:, None])", 1),
        ("tl.exp(tl.minimum(x, 90.0) - tl.maximum(tl.max(x, 1)[:, None], x))", 1),
    ],
)
def test_exponentials_of_what_is_less_than_the_largest(code, axis, dtype):
    x = random((16, 32), dtype, low=-87, high=87)
    values = x.values.astype(np.float32)
    values[3, 5], values[:, 7], values[4] = -3e38, -np.inf, values[4] / 100
    x = round_to(values, dtype)
    wide = x.values.astype(np.float32)
    expected = np.exp((wide - wide.max(axis, keepdims=True)).astype(np.float64)).astype(np.float32)
    check(f"x = x.to(tl.float32)\nout = {code}", {"x": x}, expected, ulps=GPU_EXP_ULPS, atol=1.2e-38)


def test_exponentials_less_another_row_s_largest():
    """What is subtracted lies along the other dimension of a square: results may be large."""
    x = random((16, 16), "float32", low=-40, high=40)
    rows, columns = x.values.max(1)[None, :], x.values.max(0)[:, None]
    for code, largest in [("tl.max(x, 1)[None, :]", rows), ("tl.max(x, 0)[:, None]", columns)]:
        expected = np.exp((x.values - largest).astype(np.float64)).astype(np.float32)
        check(f"tl.exp(x - {code})", {"x": x}, expected, ulps=GPU_EXP_ULPS, atol=1.2e-38)


@pytest.mark.parametrize(
    "row", [[np.nan, 1.0, 2.0, -np.inf], [np.inf, 1.0, -np.inf, 0.0], [-np.inf] * 4, [3e38, -3e38, 0.0, 1.0]]
)
def test_exponentials_less_a_largest_that_is_no_usual_number(row):
    x = round_to(np.float32(row), "float32")
    with np.errstate(invalid="ignore", over="ignore"):
        expected = np.exp(x.values - np.fmax.reduce(x.values))
    check("tl.exp(x - tl.max(x))", {"x": x}, expected, ulps=GPU_EXP_ULPS)


def test_functions_of_expressions_and_scalars():
    x = np.linspace(0.5, 3, 40).astype(np.float32)
    check(
        "tl.log(tl.exp(x) + 1) * n",
        {"x": x, "n": 2.0},
        (np.log(np.exp(x.astype(np.float64)) + 1) * 2).astype(np.float32),
        ulps=4,
    )
    check("tl.exp(n)", {"n": 1.5}, np.asarray(np.exp(1.5), np.float32), ulps=2)
    check("x * tl.exp(0.5)", {"x": x}, (x * np.float32(np.exp(0.5))).astype(np.float32), ulps=2)


def test_integers_are_refused():
    import triton

    for name in ["exp", "sqrt", "sin"]:
        with pytest.raises(triton.CompilationError, match=name):
            check(f"tl.{name}(x)", {"x": np.arange(4, dtype=np.int32)}, np.zeros(4, np.float32))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5])
def test_powers(exponent):
    x = np.linspace(0.25, 5, 60).astype(np.float32)
    check(f"x ** {exponent}", {"x": x}, (x.astype(np.float64) ** exponent).astype(np.float32), ulps=3)
    check(
        "tl.extra.libdevice.pow(x, y)",
        {"x": x, "y": np.full_like(x, exponent)},
        (x.astype(np.float64) ** exponent).astype(np.float32),
        ulps=2,
    )


def test_softmax_layernorm_gelu():
    """What kernels are mostly made of, in one piece."""
    x = np.random.default_rng(0).standard_normal((4, 96)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    expected = 0.5 * normal * (1 + ERF(normal / math.sqrt(2)))
    code = """
        mean = tl.sum(x, axis=1) / 96
        centred = x - mean[:, None]
        variance = tl.sum(centred * centred, axis=1) / 96
        y = centred * tl.rsqrt(variance + 1e-5)[:, None]
        out = 0.5 * y * (1 + tl.erf(y * 0.7071067811865476))
    """
    check(code, {"x": x}, Array(expected.astype(np.float32), "float32"), rtol=1e-5, atol=1e-5)
    assert array(x).dtype == "float32"
