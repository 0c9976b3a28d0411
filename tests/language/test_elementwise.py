"""Arithmetic element by element, on every dtype, against NumPy; floats must be rounded as IEEE 754 says."""

import numpy as np
import pytest
from harness import DTYPES, FLOATS, INTS, NUMBERS, SIGNED, Array, check, random, round_to

import triton

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 6e-8, 1e-40, 3.4e38, 0.1, 1 / 3, 5e-324, 1e300]


def operands(dtype, count=257):
    """Two tiles of random values, for floats with every pair of special values in front."""
    x, y = random((count,), dtype, seed=1), random((count,), dtype, seed=2)
    if DTYPES[dtype].kind == "float":
        left, right = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
        with np.errstate(over="ignore"):
            x = round_to(np.concatenate([left, x.values * 3.0]), dtype)
            y = round_to(np.concatenate([right, y.values]), dtype)
    return x, y


def exactly(function, x, y):
    """The function in float64, rounded to the dtype: for + - * / of narrower floats that is exact."""
    with np.errstate(all="ignore"):
        if DTYPES[x.dtype].kind != "float":
            return Array(function(x.values, y.values), x.dtype)
        return round_to(function(x.values.astype(np.float64), y.values.astype(np.float64)), x.dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_arithmetic(operator, dtype):
    x, y = operands(dtype)
    function = {"+": np.add, "-": np.subtract, "*": np.multiply}[operator]
    check(f"x {operator} y", {"x": x, "y": y}, exactly(function, x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division(dtype):
    x, y = operands(dtype)
    check("x / y", {"x": x, "y": y}, exactly(np.divide, x, y), ulps=2)
    check("tl.div_rn(x, y)", {"x": x, "y": y}, exactly(np.divide, x, y))
    check("tl.fdiv(x, y)", {"x": x, "y": y}, exactly(np.divide, x, y), ulps=2)
    if dtype == "float32":
        check("tl.fdiv(x, y, approx=True)", {"x": x, "y": y}, exactly(np.divide, x, y), ulps=2)
    else:
        with pytest.raises(triton.CompilationError, match="with approx takes float32"):
            check("tl.fdiv(x, y, approx=True)", {"x": x, "y": y}, x)
    with pytest.raises(triton.CompilationError, match="ieee_rounding or approx, not both"):
        check("tl.fdiv(x, y, ieee_rounding=True, approx=True)", {"x": x, "y": y}, x)


def test_division_by_one_number():
    """Where a target divides by multiplying with an inverse, that must not become infinite or inexact."""
    x = operands("float32")[0]
    extreme = [3e-45, 1.2e-38, 1e-31, 7e-31, 9e-31, 1.1e30, 1.3e30, 2.9e38, -3.4e38, 3.0, 1.7e-5, -49.0]
    for number in [*SPECIAL, *extreme]:
        with np.errstate(over="ignore"):
            y = round_to(np.full(x.values.shape, number), "float32")
        divisor = Array(y.values[:1], "float32")
        check("x / y", {"x": x, "y": divisor}, exactly(np.divide, x, y), ulps=2, num_warps=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_division_of_halves_happens_in_float32(dtype):
    x, y = operands(dtype)
    with np.errstate(all="ignore"):
        expected = x.values.astype(np.float32) / y.values.astype(np.float32)
    check("x / y", {"x": x, "y": y}, expected, ulps=2)


@pytest.mark.parametrize("dtype", INTS)
def test_true_division_of_integers(dtype):
    x, y = random((256,), dtype, seed=3), random((256,), dtype, seed=4)
    y = Array(np.where(y.values == 0, 1, y.values).astype(y.values.dtype), dtype)
    expected = x.values.astype(np.float32) / y.values.astype(np.float32)
    check("x / y", {"x": x, "y": y}, expected, ulps=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_modulo_has_the_sign_of_the_dividend(dtype):
    x, y = operands(dtype)
    wide = "float32" if DTYPES[dtype].bits == 16 else dtype
    with np.errstate(all="ignore"):
        expected = round_to(np.fmod(x.values.astype(np.float64), y.values.astype(np.float64)), wide)
    check("x % y", {"x": x, "y": y}, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_negation(dtype):
    x, _ = operands(dtype)
    if dtype in INTS:
        check("-x", {"x": x}, Array((0 - x.values).astype(x.values.dtype), dtype))
    else:
        check("-x", {"x": x}, Array(-x.values, dtype))
    check("+x", {"x": x}, x)


@pytest.mark.parametrize("dtype", SIGNED + FLOATS)
def test_abs(dtype):
    x, _ = operands(dtype)
    with np.errstate(all="ignore"):
        check("tl.abs(x)", {"x": x}, Array(np.abs(x.values), dtype))
        check("abs(x)", {"x": x}, Array(np.abs(x.values), dtype))


@pytest.mark.parametrize("dtype", [name for name in INTS if name not in SIGNED])
def test_abs_of_unsigned(dtype):
    x = random((100,), dtype)
    check("tl.abs(x)", {"x": x}, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_fma_rounds_once(dtype):
    x, y = operands(dtype, 400)
    z = Array(-(round_to(x.values.astype(np.float64) * y.values.astype(np.float64), dtype).values), dtype)
    if dtype == "float64":
        x, y, z = (Array(np.array(v), dtype) for v in ([1 + 2.0**-30, 3.0], [1 + 2.0**-30, 5.0], [-1.0, 7.0]))
        check("tl.fma(x, y, z)", {"x": x, "y": y, "z": z}, np.array([2.0**-29 + 2.0**-60, 22.0]))
        return
    with np.errstate(all="ignore"):  # products of narrower floats are exact in float64, and so is what is left of them
        expected = round_to(
            x.values.astype(np.float64) * y.values.astype(np.float64) + z.values.astype(np.float64), dtype
        )
    check("tl.fma(x, y, z)", {"x": x, "y": y, "z": z}, expected)
    check("tl.math.fma(x, y, z)", {"x": x, "y": y, "z": z}, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fusion_is_an_option(dtype):
    """x * y - z rounds once or twice as the target likes, and always twice with enable_fp_fusion=False."""
    x, y = random((512,), dtype, seed=1), random((512,), dtype, seed=2)
    inputs = {"x": x, "y": y, "z": Array(x.values * y.values, dtype)}
    check("x * y - z", inputs, Array(np.zeros(512, x.values.dtype), dtype), enable_fp_fusion=False)
    check("x * y - z", inputs, Array(np.zeros(512, x.values.dtype), dtype), atol=1e-6, enable_fp_fusion=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_functions(dtype):
    x = round_to(
        np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 1e9, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30]), dtype
    )
    for name in ["floor", "ceil"]:
        check(f"tl.{name}(x)", {"x": x}, Array(getattr(np, name)(x.values), dtype))
        check(f"x.{name}()", {"x": x}, Array(getattr(np, name)(x.values), dtype))


LIMITS = {"uint32": 32, "int32": 32, "int64": 64, "uint64": 64}


@pytest.mark.parametrize("dtype", LIMITS)
def test_umulhi(dtype):
    x, y = random((300,), dtype, seed=1), random((300,), dtype, seed=2)
    bits = LIMITS[dtype]
    mask = (1 << bits) - 1
    high = [((int(a) & mask) * (int(b) & mask)) >> bits for a, b in zip(x.values, y.values, strict=True)]
    expected = Array(np.array(high, np.uint32 if bits == 32 else np.uint64).view(x.values.dtype), dtype)
    check("tl.umulhi(x, y)", {"x": x, "y": y}, expected)


def test_overflow_wraps():
    x = np.array([2**31 - 1, -(2**31), 2**30], np.int32)
    check("x + 1", {"x": x}, np.array([-(2**31), -(2**31) + 1, 2**30 + 1], np.int32))
    check("x * 2", {"x": x}, np.array([-2, 0, -(2**31)], np.int32))
    check("x - 1", {"x": np.zeros(3, np.uint8)}, np.full(3, 255, np.uint8))


def test_operators_mix_tiles_and_scalars():
    x = np.arange(1, 9, dtype=np.float32)
    check("2 + x * n - x / 4 + (1 - x)", {"x": x, "n": 3}, 2 + x * 3 - x / 4 + (1 - x))
    check("n - x", {"x": x, "n": 2.5}, np.float32(2.5) - x)
    check("3 - n * 2", {"n": 5}, np.asarray(-7, np.int32))


def test_augmented_assignment():
    x = np.arange(1, 9, dtype=np.int32)
    steps = "+= 3, *= x, -= 1, //= 2, %= 7, <<= 3, >>= 1, |= 1, &= 15, ^= x"
    code = "out = x\n" + "\n".join("out " + step for step in steps.split(", "))
    expected = (((((x + 3) * x - 1) // 2 % 7) << 3 >> 1) | 1) & 15 ^ x
    check(code, {"x": x}, expected.astype(np.int32))
    check(
        "out = y\nout /= 2\nout += x",
        {"x": x, "y": x.astype(np.float32)},
        (x.astype(np.float32) / 2 + x).astype(np.float32),
    )


@pytest.mark.parametrize("shape", [(), (1,), (3,), (33,), (4096,), (1, 7), (13, 11), (3, 4, 5), (2, 3, 4, 5), (64, 64)])
def test_shapes(shape):
    x, y = random(shape, "float32", seed=1), random(shape, "float32", seed=2)
    check("x * y + x", {"x": x, "y": y}, x.values * y.values + x.values)
    i = random(shape, "int32")
    check("(i * 3) ^ i", {"i": i}, i.values * np.int32(3) ^ i.values)
