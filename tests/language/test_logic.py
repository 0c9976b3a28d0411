"""Comparisons, logical operators, selection, minimum and maximum, clamp: NaN and signed zero included."""

import itertools

import numpy as np
import pytest
from harness import DTYPES, FLOATS, NUMBERS, Array, check, random, round_to

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1e-7])
COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def pairs(dtype):
    if DTYPES[dtype].kind == "float":
        values = round_to(SPECIAL, dtype).values
    else:
        info = np.iinfo(dtype)
        values = np.unique(np.array([info.min, info.max, 0, 1, 2, info.max // 2, info.max // 2 + 1], dtype))
    left, right = (grid.ravel() for grid in np.meshgrid(values, values))
    return Array(left, dtype), Array(right, dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_comparisons(dtype):
    x, y = pairs(dtype)
    code = "\n".join(f"r{i} = x {operator} y" for i, operator in enumerate(COMPARE))
    expected = {f"r{i}": function(x.values, y.values) for i, function in enumerate(COMPARE.values())}
    check(code, {"x": x, "y": y}, expected)


@pytest.mark.parametrize("operator", COMPARE)
def test_comparisons_with_numbers(operator):
    x = np.array([-1, 0, 1, 2, 3], np.int32)
    check(f"x {operator} 1", {"x": x}, COMPARE[operator](x, 1))
    check(f"1.5 {operator} x", {"x": x}, COMPARE[operator](1.5, x))
    check(f"n {operator} x", {"x": x, "n": 2}, COMPARE[operator](2, x))
    check(f"x {operator} True", {"x": x}, COMPARE[operator](x, 1))


def test_comparisons_between_signs():
    """Signed and unsigned meet in the unsigned dtype, as documented."""
    x, y = np.array([-1, 1], np.int32), np.array([1, 1], np.uint32)
    check("x > y", {"x": x, "y": y}, np.array([True, False]))


def test_comparisons_of_booleans_and_pointers():
    x, y = random((16,), "int1", seed=1).values, random((16,), "int1", seed=2).values
    check("a = x == y\nb = x != y", {"x": x, "y": y}, {"a": x == y, "b": x != y})
    check("(x_ptr + i) == (x_ptr + 2)", {"x": x, "i": np.arange(4, dtype=np.int32)}, np.arange(4) == 2)
    check("(x_ptr + i) < (x_ptr + 2)", {"x": x, "i": np.arange(4, dtype=np.int32)}, np.arange(4) < 2)


def test_chained_comparisons():
    x = np.arange(10, dtype=np.int32)
    check("2 <= x < 7", {"x": x}, (x >= 2) & (x < 7))
    check("(0 < n < 10) & (x < 3)", {"x": x, "n": 5}, x < 3)


def test_masks_combine():
    x = np.arange(10, dtype=np.int32)
    check("((x > 2) & (x < 7)) | (x == 9)", {"x": x}, ((x > 2) & (x < 7)) | (x == 9))
    check("~(x > 2) ^ (x > 5)", {"x": x}, ~(x > 2) ^ (x > 5))
    check("not (n > 2)", {"n": 1}, np.asarray(True))


@pytest.mark.parametrize("a, b", itertools.product([0, 1, 5], repeat=2))
def test_logical_operators_on_scalars(a, b):
    """Nothing but truth comes out, and both sides are evaluated."""
    check("(a > 0) and (b > 0)", {"a": a, "b": b}, np.asarray(a > 0 and b > 0))
    check("(a > 0) or (b > 0)", {"a": a, "b": b}, np.asarray(a > 0 or b > 0))
    check("not (a > 0 and b > 1)", {"a": a, "b": b}, np.asarray(not (a > 0 and b > 1)))


def test_logical_functions():
    x, y = random((32,), "int1", seed=1).values, random((32,), "int1", seed=2).values
    check("x.logical_and(y)", {"x": x, "y": y}, x & y)
    check("x.logical_or(y)", {"x": x, "y": y}, x | y)


def test_compile_time_logic_short_circuits():
    x = np.zeros(4, np.int32)
    check("x + (1 if C is None or C > 3 else 2)", {"x": x}, x + 1, names={"C": None})
    check("x + (C and 5)", {"x": x}, x, names=_constexpr(C=0))
    check("x + (C or 5)", {"x": x}, x + 5, names=_constexpr(C=0))
    check("x + (2 if not C else 3)", {"x": x}, x + 2, names=_constexpr(C=0))
    check("x + (2 if C in (1, 2) else 3)", {"x": x}, x + 3, names=_constexpr(C=0))
    check("x + (2 if C not in (1, 2) else 3)", {"x": x}, x + 2, names=_constexpr(C=0))


def _constexpr(**values):
    import triton.language as tl

    return {name: tl.constexpr(value) for name, value in values.items()}


@pytest.mark.parametrize("dtype", ["int1", *NUMBERS, "float8e4nv", "float8e5"])
def test_where(dtype):
    c, x, y = random((96,), "int1", seed=3), random((96,), dtype, seed=1), random((96,), dtype, seed=2)
    check("tl.where(c, x, y)", {"c": c, "x": x, "y": y}, Array(np.where(c.values, x.values, y.values), dtype))


@pytest.mark.compiled
def test_where_with_a_condition_that_is_no_bool():
    c, x, y = np.arange(4, dtype=np.uint32), np.ones(4, np.float32), np.zeros(4, np.float32)
    with pytest.warns(UserWarning, match=r"tl.where takes a condition of bools, not uint32\[4\]: write condition != 0"):
        check("tl.where(c, x, y)", {"c": c, "x": x, "y": y}, np.where(c, x, y))


def test_where_broadcasts_and_takes_numbers():
    c, x = random((3, 1), "int1").values, random((1, 5), "float32").values
    check("tl.where(c, x, 0)", {"c": c, "x": x}, np.where(c, x, np.float32(0)))
    check("tl.where(c, 1.5, x)", {"c": c, "x": x}, np.where(c, np.float32(1.5), x))
    check("tl.where(x > 0, x, -x)", {"x": x}, np.abs(x))
    check("tl.where(n > 3, x, 2 * x)", {"x": x, "n": 5}, x)
    check(
        "x.where(c, 1.0)" if False else "tl.where(c, x, -float('inf'))",
        {"c": c, "x": x},
        np.where(c, x, np.float32(-np.inf)),
    )
    check("tl.where(c, 1, 0)", {"c": c}, np.where(c, 1, 0).astype(np.int32))


def test_where_keeps_nan_out():
    x = np.array([4.0, -4.0, 9.0], np.float32)
    check("tl.where(x > 0, tl.sqrt(x), 0)", {"x": x}, np.array([2, 0, 3], np.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_minimum_and_maximum_of_floats(dtype):
    """A NaN loses, unless it is asked to win."""
    x, y = pairs(dtype)
    zeros = (x.values == 0) & (y.values == 0)  # which zero is the smaller one is not said
    x, y = Array(x.values[~zeros], dtype), Array(y.values[~zeros], dtype)
    for name, drop, keep in [("minimum", np.fmin, np.minimum), ("maximum", np.fmax, np.maximum)]:
        inputs = {"x": x, "y": y}
        check(f"tl.{name}(x, y)", inputs, Array(drop(x.values, y.values), dtype))
        check(f"tl.{name}(x, y, propagate_nan=tl.PropagateNan.ALL)", inputs, Array(keep(x.values, y.values), dtype))
        check(f"tl.{name}(x, y, tl.PropagateNan.NONE)", inputs, Array(drop(x.values, y.values), dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp(dtype):
    x = round_to(np.array([-5.0, -1.0, -0.5, 0.25, 1.0, 7.0, np.inf, -np.inf]), dtype)
    expected = Array(np.clip(x.values, -1, 1), dtype)
    check("tl.clamp(x, -1.0, 1.0)", {"x": x}, expected)
    check("tl.clamp(x, low, high)", {"x": x, "low": expected_like(x, -1), "high": expected_like(x, 1)}, expected)
    nan = round_to(np.array([np.nan, 0.5]), dtype)
    check("tl.clamp(x, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL)", {"x": nan}, nan)
    check("tl.clamp(x, 0.0, 1.0)", {"x": nan}, round_to(np.array([0.0, 0.5]), dtype))


def expected_like(x, value):
    return Array(np.full(x.shape, value, x.values.dtype), x.dtype)
