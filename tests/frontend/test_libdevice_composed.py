"""What libdevice has and libm has not: integers, directed rounding, special functions, against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from harness import Array, check, random

FLOATS = {"float32": (np.float32, 24, -149), "float64": (np.float64, 53, -1074)}
ROUND = {"rn": round, "rz": int, "rd": math.floor, "ru": math.ceil}


def rounded(value, dtype, mode):
    """A Fraction as a float of `dtype`, rounded in one direction."""
    numpy, digits, least = FLOATS[dtype]
    if not value:
        return numpy(0)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent
    step = Fraction(2) ** max(exponent - digits + 1, least)
    result = ROUND[mode](value / step) * step
    largest = Fraction(float(np.finfo(numpy).max))
    if abs(result) > largest:
        away = mode == "rn" or (mode == "ru") == (result > 0) and mode != "rz"
        return numpy(math.copysign(math.inf if away else float(largest), result))
    return numpy(float(result))


def operands(dtype, count, seed):
    """Numbers of very different size, among them the smallest and the largest."""
    numpy, digits, least = FLOATS[dtype]
    generator = np.random.default_rng(seed)
    mantissa = generator.standard_normal(count)
    exponent = generator.integers(-20, 20, count)
    values = np.ldexp(mantissa, exponent).astype(numpy)
    special = np.array([1, -1, 3, 0.1, -1e-3, 1e10, 7, np.finfo(numpy).max, -np.finfo(numpy).max, 0.75], numpy)
    return np.concatenate([values, special[: 10 - seed % 3]])[:count]


ARITHMETIC = {
    "add": (2, lambda x, y: x + y), "sub": (2, lambda x, y: x - y), "mul": (2, lambda x, y: x * y),
    "div": (2, lambda x, y: x / y), "rcp": (1, lambda x: 1 / x), "fma": (3, lambda x, y, z: x * y + z),
}  # fmt: skip


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", FLOATS)
def test_directed_arithmetic(name, mode, dtype):
    count, function = ARITHMETIC[name]
    inputs = {letter: operands(dtype, 60, seed) for seed, letter in enumerate("xyz"[:count])}
    exact = [function(*map(Fraction, map(float, row))) for row in zip(*inputs.values(), strict=True)]
    expected = np.array([rounded(value, dtype, mode) for value in exact])
    check(f"tl.extra.libdevice.{name}_{mode}({', '.join(inputs)})", inputs, expected)


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("dtype", FLOATS)
def test_directed_square_root(mode, dtype):
    x = np.abs(operands(dtype, 60, 0))
    scale = 1 << 600
    exact = []
    for value in map(Fraction, map(float, x)):
        root = Fraction(math.isqrt(value.numerator * value.denominator * scale * scale), value.denominator * scale)
        exact.append(root if root * root == value else root + Fraction(1, value.denominator * scale * 4))
    expected = np.array([rounded(value, dtype, mode) for value in exact])
    check(f"tl.extra.libdevice.sqrt_{mode}(x)", {"x": x}, expected)


@pytest.mark.parametrize("mode", ROUND)
def test_double_to_float(mode):
    x = operands("float64", 60, 3) * 1e-3
    x[:3] = 1e-45, 1e39, -1e-60
    expected = np.array([np.copysign(rounded(Fraction(v), "float32", mode), np.float32(v)) for v in x.tolist()])
    check(f"tl.extra.libdevice.double2float_{mode}(x)", {"x": x}, expected)


INTS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("target", INTS)
@pytest.mark.parametrize("source", ["float", "double"])
def test_float_to_integer(source, target, mode):
    """Rounded, and clamped to the range of the integer; NaN gives 0."""
    limits = np.iinfo(INTS[target])
    dtype = np.float32 if source == "float" else np.float64
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 1e6 + 0.75, 3e9, -3e9, 1e20, -1e20, 2.0**31, 2.0**63, -(2.0**63)]
    x = np.array([*values, np.inf, -np.inf, np.nan], dtype)
    clamped = [min(max(ROUND[mode](Fraction(v)), limits.min), limits.max) for v in x[: len(values)].tolist()]
    expected = np.array([*clamped, limits.max, limits.min, 0], INTS[target])
    check(f"tl.extra.libdevice.{source}2{target}_{mode}(x)", {"x": x}, expected)


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", ["float", "double"])
def test_integer_to_float(source, target, mode):
    if target == "double" and source in ("int", "uint") and mode != "rn":
        return  # exact: libdevice has one version only
    limits = np.iinfo(INTS[source])
    x = random((40,), INTS[source]).values
    x[:5] = 0, 1, limits.min, limits.max, limits.max // 2 + 1
    dtype = "float32" if target == "float" else "float64"
    expected = np.array([rounded(Fraction(v), dtype, mode) for v in x.tolist()])
    check(f"tl.extra.libdevice.{source}2{target}_{mode}(x)", {"x": x}, expected)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_bits(bits, kind):
    x, y = random((50,), f"{kind}{bits}", 1).values, random((50,), f"{kind}{bits}", 2).values
    x[:3] = 0, 1, 8
    unsigned = [int(v) % 2**bits for v in x.tolist()]
    reversed_bits = np.array([int(f"{v:0{bits}b}"[::-1], 2) for v in unsigned], f"uint{bits}").view(x.dtype)
    high = np.array([(int(a) * int(b)) >> bits for a, b in zip(x.tolist(), y.tolist(), strict=True)], x.dtype)
    code = """
        a = tl.extra.libdevice.brev(x)
        b = tl.extra.libdevice.ffs(x)
        c = tl.extra.libdevice.mulhi(x, y)
        d = tl.extra.libdevice.clz(x)
        e = tl.extra.libdevice.popc(x)
    """
    expected = {
        "a": reversed_bits, "b": np.array([(v & -v).bit_length() for v in unsigned], np.int32), "c": high,
        "d": np.array([bits - v.bit_length() for v in unsigned], np.int32),
        "e": np.array([v.bit_count() for v in unsigned], np.int32),
    }  # fmt: skip
    check(code, {"x": x, "y": y}, expected)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_short_integer_functions(dtype):
    x, y = random((50,), dtype, 1).values, random((50,), dtype, 2).values
    z = random((50,), "uint32", 3).values
    wide_x, wide_y = x.astype(np.int64), y.astype(np.int64)
    code = """
        a = tl.extra.libdevice.hadd(x, y)
        b = tl.extra.libdevice.rhadd(x, y)
        c = tl.extra.libdevice.sad(x // 4, y // 4, x // 8)
        d = tl.extra.libdevice.mul24(x, y)
        e = tl.extra.libdevice.byte_perm(x, y, s)
    """
    quarter = lambda v, n: (np.abs(v) // n * np.sign(v)).astype(np.int64)  # noqa: E731
    low24 = [(v << 40 >> 40) if dtype == "int32" else v & 0xFFFFFF for v in (wide_x, wide_y)]
    both = [(int(a) % 2**32) | (int(b) % 2**32) << 32 for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    picked = [
        sum((word >> 8 * ((int(s) >> 4 * i) & 7) & 255) << 8 * i for i in range(4))
        for word, s in zip(both, z.tolist(), strict=True)
    ]
    expected = {
        "a": ((wide_x + wide_y) >> 1).astype(dtype), "b": ((wide_x + wide_y + 1) >> 1).astype(dtype),
        "c": (np.abs(quarter(wide_x, 4) - quarter(wide_y, 4)) + quarter(wide_x, 8)).astype(dtype),
        "d": (low24[0] * low24[1]).astype(dtype), "e": np.array(picked, np.uint32).view(dtype),
    }  # fmt: skip
    check(code, {"x": x, "y": y, "s": z}, expected)


def test_bits_as_other_types():
    x, y = random((30,), "float32", 1).values, random((30,), "float64", 2).values
    code = """
        a = tl.extra.libdevice.float_as_int(x)
        b = tl.extra.libdevice.uint_as_float(tl.extra.libdevice.float_as_uint(x))
        c = tl.extra.libdevice.double_as_longlong(y)
        d = tl.extra.libdevice.longlong_as_double(c)
        e = tl.extra.libdevice.double2hiint(y)
        f = tl.extra.libdevice.hiloint2double(e, tl.extra.libdevice.double2loint(y))
        g = tl.extra.libdevice.int_as_float(a)
    """
    words = y.view(np.int64)
    expected = {"a": x.view(np.int32), "b": x, "c": words, "d": y, "e": (words >> 32).astype(np.int32), "f": y, "g": x}
    check(code, {"x": x, "y": y}, expected)


def test_classes_and_exponents():
    x = np.array([0.0, -0.0, 1.0, -3.5, 1e-40, 2e38, np.inf, -np.inf, np.nan], np.float32)
    code = """
        a = tl.extra.libdevice.ilogb(x)
        b = tl.extra.libdevice.llrint(tl.where(x == x, x, 0.0).to(tl.float64) / 1e30)
        c = tl.extra.libdevice.saturatef(x)
        d = tl.extra.libdevice.signbit(x)
    """
    least, most = -(2**31), 2**31 - 1
    expected = {
        "a": np.array([least, least, 0, 1, -133, 127, most, most, least], np.int32),
        "c": np.array([0, 0, 1, 0, 1e-40, 1, 1, 0, 0], np.float32), "d": np.signbit(x),
    }  # fmt: skip
    check("\n".join(line for line in code.splitlines() if " b =" not in line), {"x": x}, expected)
    y = np.array([0.5, 1.5, -2.5, 7.49, -0.5, 1e15], np.float64)
    code = "a = tl.extra.libdevice.llrint(y)\nb = tl.extra.libdevice.llround(y)"
    expected = {"a": np.rint(y).astype(np.int64), "b": np.array([1, 2, -3, 7, -1, 10**15])}
    check(code, {"y": y}, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_neighbours(dtype):
    values = [0.0, -0.0, 1.0, -1.0, 6e-8, 65504.0, np.inf, -np.inf, np.nan, 0.1]
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(values, values))
    # Of two zeros either may come out.
    check("tl.extra.libdevice.nextafter(x, y) + 0.0", {"x": x, "y": y}, np.nextafter(x, y) + np.zeros(1, dtype))


def test_multiples_of_pi():
    x = np.array([0, 0.25, 0.5, 1, 1.5, 2, -0.5, -1, 1e6, 0.1, 7.3, -3.2], np.float64)
    expected = {
        "a": np.array([0, 0.5**0.5, 1, 0, -1, 0, -1, 0, 0, math.sin(0.1 * math.pi), 0, 0]),
        "b": np.array([1, 0.5**0.5, 0, -1, 0, 1, 0, -1, 1, math.cos(0.1 * math.pi), 0, 0]),
    }
    expected["a"][-2:] = math.sin(-0.7 * math.pi), math.sin(0.8 * math.pi)
    expected["b"][-2:] = math.cos(-0.7 * math.pi), math.cos(0.8 * math.pi)
    code = "a = tl.extra.libdevice.sinpi(x)\nb = tl.extra.libdevice.cospi(x)"
    check(code, {"x": x}, expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_multiples_of_pi(dtype):
    """Whole numbers, all of which are even from some on: zeros have signs, and infinity has no sine."""
    largest = np.finfo(dtype).max
    x = np.array([largest, -largest, largest / 2, 3.0, -3.0, -4.0, 0.0, -0.0, 2.5, -3.5, np.inf, -np.inf], dtype)
    signs = np.array([1, -1, 1, 1, -1, -1, 1, -1, 1, 1, np.nan, np.nan], dtype)
    halves = np.isin(x, [2.5, -3.5])
    a, b = signs * np.where(halves, 1, 0), np.where(halves, 0, np.where(np.abs(x) == 3, -1, np.abs(signs)))
    with np.errstate(divide="ignore"):
        expected = {"a": a, "b": b, "c": 1 / a, "d": np.where(halves, np.inf, b)}
    code = "a = tl.extra.libdevice.sinpi(x)\nb = tl.extra.libdevice.cospi(x)\nc = 1 / a\nd = 1 / b"
    check(code, {"x": x}, {name: values.astype(dtype) for name, values in expected.items()})


def test_norms():
    x, y, z, w = (random((20,), "float64", seed).values for seed in range(4))
    inputs = {"x": x, "y": y, "z": z, "w": w}
    three, four = np.sqrt(x * x + y * y + z * z), np.sqrt(x * x + y * y + z * z + w * w)
    expected = {"a": three, "b": 1 / three, "c": four, "d": 1 / four, "e": 1 / np.hypot(x, y), "f": 1 / np.cbrt(x)}
    code = """
        a = tl.extra.libdevice.norm3d(x, y, z)
        b = tl.extra.libdevice.rnorm3d(x, y, z)
        c = tl.extra.libdevice.norm4d(x, y, z, w)
        d = tl.extra.libdevice.rnorm4d(x, y, z, w)
        e = tl.extra.libdevice.rhypot(x, y)
        f = tl.extra.libdevice.rcbrt(x)
    """
    check(code, inputs, expected, rtol=1e-14)
    big = np.full(2, 3e300)
    check("tl.extra.libdevice.norm4d(x, x, x, x)", {"x": big}, 2 * big, rtol=1e-15)


def bisect(function, value, low, high):
    """Where a rising function has a value."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return (low + high) / 2


def series(x, order):
    """The power series of the modified Bessel function, in exact arithmetic."""
    half, total = Fraction(x) / 2, Fraction(0)
    term = half**order / math.factorial(order)
    for k in range(1, 400):
        total += term
        term *= half * half / (k * (k + order))
        if abs(term) < abs(total) * Fraction(1, 10**25):
            break
    return float(total)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_modified_bessel_functions(order, dtype):
    x = np.array([0, 0.1, 1, 5, 20, 29.5, 30.5, 50, 80, -2], dtype)
    expected = np.array([series(float(v), order) if v else 1.0 - order for v in x]).astype(dtype)
    check(f"tl.extra.libdevice.cyl_bessel_i{order}(x)", {"x": x}, expected, ulps=1 if dtype == "float32" else 20)


def test_error_function_relatives():
    x = np.array([-3, -1, -0.1, 0, 0.5, 1.9, 2.1, 5], np.float64)
    scaled = np.array([math.exp(v * v) * math.erfc(v) for v in x.tolist()])
    check("tl.extra.libdevice.erfcx(x)", {"x": x}, scaled, rtol=2e-15)
    far = np.array([50.0, 1e4, 1e100])
    check("tl.extra.libdevice.erfcx(x)", {"x": far}, (1 - 0.5 / far**2) / far / math.sqrt(math.pi), rtol=1e-6)
    check("tl.extra.libdevice.normcdf(x)", {"x": x}, [0.5 * math.erfc(-v / 2**0.5) for v in x] @ np.eye(8), rtol=1e-15)


def test_inverse_error_functions():
    x = np.array([-0.999, -0.5, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9], np.float64)
    check("tl.extra.libdevice.erfinv(x)", {"x": x}, np.array([bisect(math.erf, v, -10, 10) for v in x]), rtol=1e-8)
    y = np.array([1e-300, 1e-20, 0.01, 0.5, 1.0, 1.5, 1.99], np.float64)
    inverse = np.array([-bisect(lambda v: math.erfc(-v), v, -30, 30) for v in y.tolist()])
    check("tl.extra.libdevice.erfcinv(x)", {"x": y}, inverse, rtol=1e-12, atol=1e-15)
    p = np.array([1e-300, 1e-10, 0.025, 0.5, 0.975], np.float64)
    normal = np.array([bisect(lambda v: 0.5 * math.erfc(-v / 2**0.5), v, -40, 40) for v in p.tolist()])
    check("tl.extra.libdevice.normcdfinv(x)", {"x": p}, normal, rtol=1e-12, atol=1e-15)
    edges = Array(np.array([1.0, -1.0, 0.0, 2.0]), "float64")
    check("tl.extra.libdevice.erfinv(x)", {"x": edges}, np.array([np.inf, -np.inf, 0, np.nan]))


@pytest.mark.parametrize("name, plain", [("sinf", "sin"), ("expf", "exp"), ("logf", "log"), ("tanf", "tan")])
def test_fast_versions(name, plain):
    x = np.linspace(0.1, 1.5, 20).astype(np.float32)
    expected = getattr(np, plain)(x.astype(np.float64)).astype(np.float32)
    check(f"tl.extra.libdevice.fast_{name}(x)", {"x": x}, expected, ulps=4)
