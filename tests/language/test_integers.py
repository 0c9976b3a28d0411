"""Integer division, remainder, shifts and bits: C's rules at run time, Python's at compile time."""

import numpy as np
import pytest
from harness import INTS, SIGNED, UNSIGNED, Array, check, promoted, random


def corners(dtype):
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.min // 2, info.max // 3]
    if info.min < 0:
        values += [-1, -2, -3, -7]
    return np.array(values, dtype)


def all_pairs(dtype):
    x = np.concatenate([corners(dtype), random((40,), dtype, seed=5).values])
    left, right = (grid.ravel() for grid in np.meshgrid(x, x))
    overflows = (right == 0) | (
        (left == np.iinfo(dtype).min) & (right.astype(object) == -1) & (np.iinfo(dtype).min < 0)
    )
    return left[~overflows.astype(bool)], right[~overflows.astype(bool)]


def quotient(x, y):
    """Toward zero, exactly, through Python's integers."""
    values = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return np.array(values, x.dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_division_truncates(dtype):
    x, y = all_pairs(dtype)
    check("x // y", {"x": x, "y": y}, quotient(x, y))


@pytest.mark.parametrize("dtype", INTS)
def test_remainder_has_the_sign_of_the_dividend(dtype):
    x, y = all_pairs(dtype)
    with np.errstate(over="ignore"):
        check("x % y", {"x": x, "y": y}, x - quotient(x, y) * y)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 10, 127, -1, -2, -3, -8, -127])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_division_by_a_constant(dtype, divisor):
    x = np.concatenate([corners(dtype), random((60,), dtype).values])
    x = x[x != np.iinfo(dtype).min]
    y = np.full_like(x, divisor)
    check(f"a = x // {divisor}\nb = x % {divisor}", {"x": x}, {"a": quotient(x, y), "b": x - quotient(x, y) * y})


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 10, 255])
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_division_by_a_constant(dtype, divisor):
    x = np.concatenate([corners(dtype), random((60,), dtype).values])
    check(
        f"a = x // {divisor}\nb = x % {divisor}",
        {"x": x},
        {"a": x // x.dtype.type(divisor), "b": x % x.dtype.type(divisor)},
    )


def test_compile_time_division_is_pythons():
    check("x + (-7) // 2", {"x": np.zeros(2, np.int32)}, np.full(2, -4, np.int32))
    check("x + (-7) % 3", {"x": np.zeros(2, np.int32)}, np.full(2, 2, np.int32))
    check("x + 7 / 2", {"x": np.zeros(2, np.float32)}, np.full(2, 3.5, np.float32))


def test_run_time_scalars_divide_as_tiles_do():
    check("n // m", {"n": -7, "m": 2}, np.asarray(-3, np.int32))
    check("n % m", {"n": -7, "m": 3}, np.asarray(-1, np.int32))
    check("n // 2", {"n": -7}, np.asarray(-3, np.int32))
    check("tl.cdiv(n, m)", {"n": 9, "m": 4}, np.asarray(3, np.int32))


@pytest.mark.parametrize("dtype", INTS)
def test_division_by_zero_does_not_kill(dtype):
    """The value is unspecified, the process goes on."""
    x = corners(dtype)
    zeros = np.zeros_like(x)
    check("(x // y) * 0 + (x % y) * 0", {"x": x, "y": zeros}, zeros)
    if dtype in SIGNED:
        least = np.full(8, np.iinfo(dtype).min, dtype)
        check("(x // y) * 0 + (x % y) * 0", {"x": least, "y": np.full(8, -1, dtype)}, np.zeros(8, dtype))
        check("(n // m) * 0", {"n": least[0], "m": np.array(-1, dtype)}, np.asarray(0, dtype))


@pytest.mark.parametrize("dtype", INTS)
def test_shifts(dtype):
    bits = np.iinfo(dtype).bits
    values = np.concatenate([corners(dtype), random((9,), dtype).values])
    x, y = (grid.ravel() for grid in np.meshgrid(values, np.arange(bits).astype(dtype)))
    inputs = {"x": x, "y": y}
    check("a = x << y\nb = x >> y", inputs, {"a": np.left_shift(x, y), "b": np.right_shift(x, y)})


@pytest.mark.parametrize("left", SIGNED)
@pytest.mark.parametrize("right", ["uint8", "uint32", "uint64"])
def test_the_sign_of_what_is_shifted_stays(left, right):
    """Also where the count makes the result unsigned: its bits are those of the signed shift."""
    bits, result = max(np.iinfo(left).bits, np.iinfo(right).bits), promoted(left, right)
    x = corners(left)
    y = (np.arange(x.size) % bits).astype(right)
    wide = x.astype(f"int{bits}")
    expected = {"a": (wide >> y.astype(wide.dtype)).astype(result), "b": (wide << y.astype(wide.dtype)).astype(result)}
    check("a = x >> y\nb = x << y", {"x": x, "y": y}, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_shift_by_a_constant(dtype):
    x = random((100,), dtype).values
    check("(x << 3) + (x >> 2)", {"x": x}, (x << x.dtype.type(3)) + (x >> x.dtype.type(2)))
    check("1 << (x & 3)", {"x": x}, np.left_shift(x.dtype.type(1), x & x.dtype.type(3)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("constant", [1, 2, 4, 5, 7, 8, 15, 100, 127])
def test_words_of_integers_by_a_constant(dtype, constant):
    """Several that are loaded in a word; each byte, and each short whose bytes are alike or not."""
    low, high = np.meshgrid(np.arange(256), [0, 1, 0x55, 0x7F, 0x80, 0xFF])
    shorts = (low | high << 8).astype(np.uint16).ravel()
    x = (shorts if dtype.endswith("16") else shorts.astype(np.uint8)).view(dtype)
    c = x.dtype.type(constant)
    codes = {
        "x & C": x & c,
        "x | C": x | c,
        "x ^ C": x ^ c,
        "x + C": x + c,
        "x - C": x - c,
        "(x & C) ^ (x | 3)": (x & c) ^ (x | 3),
    }
    if constant < np.iinfo(dtype).bits:
        codes |= {"x << C": x << c, "x >> C": x >> c}
    names = dict(zip("abcdefgh", codes, strict=False))
    code = "\n".join(f"{name} = {code.replace('C', str(constant))}" for name, code in names.items())
    check(code, {"x": x}, {name: codes[code].astype(dtype) for name, code in names.items()})


@pytest.mark.parametrize("dtype", INTS)
def test_bits(dtype):
    x, y = random((300,), dtype, seed=1).values, random((300,), dtype, seed=2).values
    expected = {"a": x & y, "b": x | y, "c": x ^ y, "d": ~x}
    check("a = x & y\nb = x | y\nc = x ^ y\nd = ~x", {"x": x, "y": y}, expected)
    check("x & 12 | 3 ^ x", {"x": x}, x & x.dtype.type(12) | x.dtype.type(3) ^ x)


def test_bits_of_booleans():
    x, y = random((64,), "int1", seed=1).values, random((64,), "int1", seed=2).values
    check("a = x & y\nb = x | y\nc = x ^ y\nd = ~x", {"x": x, "y": y}, {"a": x & y, "b": x | y, "c": x ^ y, "d": ~x})


@pytest.mark.parametrize("dtype", INTS)
def test_minimum_and_maximum(dtype):
    x, y = all_pairs(dtype)
    expected = {"a": np.minimum(x, y), "b": np.maximum(x, y)}
    check("a = tl.minimum(x, y)\nb = tl.maximum(x, y)", {"x": x, "y": y}, expected)
    check("a = min(x, y)\nb = max(x, y)", {"x": x, "y": y}, expected)


def test_cdiv():
    x = np.arange(0, 100, dtype=np.int32)
    for divisor in [1, 3, 8, 100]:
        check(f"tl.cdiv(x, {divisor})", {"x": x}, -(-x // divisor).astype(np.int32))
    check("x.cdiv(7)", {"x": x}, -(-x // 7).astype(np.int32))


@pytest.mark.parametrize("group", [1, 2, 3, 8])
def test_swizzle2d(group):
    """Numbers a grid of rows by columns so that `group` rows are walked column by column."""
    rows, columns = 7, 5
    i, j = (x.astype(np.int32) for x in np.indices((rows, columns)))
    place = i * columns + j
    start = place // (group * columns) * group
    height = np.minimum(rows - start, group)
    inside = place % (group * columns)
    code = f"a, b = tl.swizzle2d(i, j, {rows}, {columns}, {group})"
    check(code, {"i": i, "j": j}, {"a": start + inside % height, "b": inside // height})


def test_constants_fold_as_the_run_time_computes():
    """The same expression of arguments and of constants."""
    for a, b in [(7, 3), (-7, 3), (7, -3), (-(2**31), 7), (2**31 - 1, 10)]:
        tiles = "x = tl.full((2,), {}, tl.int32)\ny = tl.full((2,), {}, tl.int32)\n"
        formula = "(x // y) * 1000 + x % y + (x >> 1) + (x ^ y)"
        x, y = np.full(2, a, np.int32), np.full(2, b, np.int32)
        with np.errstate(over="ignore"):
            q = quotient(x, y)
            expected = q * np.int32(1000) + (x - q * y) + (x >> 1) + (x ^ y)
        check(tiles.format(a, b) + "out = " + formula, {}, expected)
        check(formula, {"x": x, "y": y}, expected)


@pytest.mark.parametrize("divisor", [16, 48, -32, 24, 7, 1])
def test_neighbours_share_a_division(divisor):
    """Where they lie between two multiples of what the divisor is a multiple of; also on the other side of zero."""
    for start in (0, 64, -64, -16, 8, -2048, 2**31 - 64, -(2**31)):
        x = np.arange(start, start + 64).astype(np.int64).astype(np.int32)
        divisors = np.full(64, divisor, np.int32)
        expected = {"q": quotient(x, divisors), "r": x - quotient(x, divisors) * divisors}
        for by in ("n", divisor):
            code = f"x = tl.arange(0, 64) + s\nq, r = x // {by}, x % {by}"
            check(code, {"s": start, "n": divisor} if by == "n" else {"s": start}, expected)


def test_wide_products_of_program_ids():
    """Casting to int64 before multiplying keeps what int32 would lose."""
    check("tl.full((1,), n, tl.int64) * n", {"n": 100_000}, Array(np.array([10**10]), "int64"))
    check("n.to(tl.int64) * n", {"n": 100_000}, Array(np.asarray(10**10), "int64"))


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("code", ["-x", "tl.abs(x)", "0 - x", "x * -1"])
def test_the_lowest_number_is_its_own_opposite(code, dtype):
    """Also where it is used as a wider number, is compared or is shifted: ptxas forgets that of int16."""
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).min + 1, -1, 0, 5, np.iinfo(dtype).max], dtype)
    low = np.full(6, -5, dtype)
    expected = np.abs(x) if "abs" in code else -x
    check(f"({code}).to(tl.int64)", {"x": x}, expected.astype(np.int64))
    check(f"({code}).to(tl.float32)", {"x": x}, expected.astype(np.float32))
    check(f"({code}) < low", {"x": x, "low": low}, expected < low)
    check(f"({code}) >> 2", {"x": x}, expected >> 2)
