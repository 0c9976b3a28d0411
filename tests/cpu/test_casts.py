"""Casts between all types; the narrow float formats code by code, against the compiler's own reference."""

import numpy as np
import pytest

from .build import STORAGE, Kernel

INTS = ["i8", "i16", "i32", "i64"]
NARROW = {  # bits, exponent bits, mantissa bits, bias, infinity, saturates
    "f8e4m3": (8, 4, 3, 7, False, True),
    "f8e5m2": (8, 5, 2, 15, True, True),
    "f8e4m3b15": (8, 4, 3, 15, False, True),
    "f8e4m3b8": (8, 4, 3, 8, False, True),
    "f8e5m2b16": (8, 5, 2, 16, False, True),
    "f16": (16, 5, 10, 15, True, False),
    "bf16": (16, 8, 7, 127, True, False),
}

FNUZ = ["f8e4m3b8", "f8e5m2b16"]  # the code of -0 is the NaN


def decode_all(name):
    """The value of every code of a format, as float64."""
    bits, exponent_bits, mantissa_bits, bias, infinity, _ = NARROW[name]
    codes = np.arange(1 << bits)
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    normal = np.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)
    value = np.where(exponent == 0, np.ldexp(mantissa, 1 - bias - mantissa_bits), normal)
    top = exponent == (1 << exponent_bits) - 1
    if infinity:
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    elif name == "f8e4m3":
        value = np.where(top & (mantissa == 7), np.nan, value)
    value = np.where(codes >> (bits - 1), -value, value)
    return np.where(codes == 0x80, np.nan, value) if name in FNUZ else value


def encode(name, values, toward_zero=False):
    """Nearest even (or toward zero) in the format, by looking the neighbours up."""
    bits, _, _, _, infinity, saturates = NARROW[name]
    table = decode_all(name)[: 1 << (bits - 1)]
    finite = table[np.isfinite(table)]
    magnitude = np.abs(values)
    low = np.clip(np.searchsorted(finite, magnitude, side="right") - 1, 0, len(finite) - 1)
    high = np.minimum(low + 1, len(finite) - 1)
    down, up = magnitude - finite[low], finite[high] - magnitude
    with np.errstate(invalid="ignore"):
        code = np.where((up < down) | ((up == down) & (low % 2 == 1)), high, low)
    if toward_zero:
        code = low
    limit = len(finite) - 1
    step = finite[limit] - finite[limit - 1]
    if infinity and not saturates:
        past = np.isinf(magnitude) if toward_zero else magnitude >= finite[limit] + step / 2
        code = np.where(past, limit + 1, code)
    nan = np.flatnonzero(np.isnan(table))
    quiet = limit if not len(nan) else nan[0] if len(nan) == 1 else limit + 1 + (1 << (NARROW[name][2] - 1))
    code = np.where(np.isnan(values), quiet, code)
    code = code | np.where(np.signbit(values), 1 << (bits - 1), 0)
    if name in FNUZ:
        code = np.where(np.isnan(values), 0x80, np.where(code == 0x80, 0, code))
    return code.astype(f"uint{bits}").view(STORAGE[name])


def run_cast(array, source, target, rounding=None, op="float_cast"):
    k = Kernel()
    attrs = f'{{rounding = "{rounding}"}}' if rounding else ""
    return k.run(k.op(op, k.load(array, source), element=target, attrs=attrs))


def codes_of(name):
    bits = NARROW[name][0]
    return np.arange(1 << bits).astype(f"uint{bits}").view(STORAGE[name])


@pytest.mark.parametrize("source", NARROW)
@pytest.mark.parametrize("target", ["f32", "f64"])
def test_decode_every_code(source, target):
    out = run_cast(codes_of(source), source, target)
    np.testing.assert_array_equal(out, decode_all(source))
    np.testing.assert_array_equal(np.signbit(out), np.signbit(decode_all(source)))


def interesting(target, dtype):
    """Values, the midpoints between neighbours, both sides of them, and special ones."""
    table = decode_all(target)
    table = np.unique(table[np.isfinite(table)])
    middle = (table[:-1] + table[1:]) / 2
    points = np.concatenate([table, middle]).astype(dtype)
    wide = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1e30, -1e30, 3e38, 1e-40, -1e-45])
    around = [points, np.nextafter(points, dtype(np.inf)), np.nextafter(points, dtype(-np.inf)), wide.astype(dtype)]
    return np.concatenate(around).astype(dtype)


def same_codes(target, out, expected, values):
    bits = NARROW[target][0]
    a, b = out.view(f"uint{bits}").copy(), expected.view(f"uint{bits}").copy()
    mask, table = (1 << (bits - 1)) - 1, decode_all(target)
    for codes in (a, b):  # the sign and the payload of a NaN are nobody's
        codes[np.isnan(values) & np.isnan(table[codes])] = mask
        codes[np.isnan(values) & ~np.isnan(table[codes])] &= mask
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", NARROW)
@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_encode_around_every_code(target, source, rounding):
    values = interesting(target, STORAGE[source])
    with np.errstate(all="ignore"):
        expected = encode(target, values.astype("float64"), rounding == "rtz")
    same_codes(target, run_cast(values, source, target, rounding), expected, values)


@pytest.mark.parametrize("source", NARROW)
@pytest.mark.parametrize("target", NARROW)
def test_between_narrow_formats(source, target):
    if source == target:
        return
    values = decode_all(source)
    out = run_cast(codes_of(source), source, target)
    same_codes(target, out, encode(target, values), values)


def test_float64_to_float32():
    values = interesting("bf16", np.float64)
    with np.errstate(all="ignore"):
        nearest = values.astype("f")
        np.testing.assert_array_equal(run_cast(values, "f64", "f32"), nearest)
        toward = np.where(np.abs(nearest.astype("d")) > np.abs(values), np.nextafter(nearest, np.float32(0)), nearest)
    np.testing.assert_array_equal(run_cast(values, "f64", "f32", "rtz"), toward)


@pytest.mark.parametrize("source", ["i1", *INTS])
@pytest.mark.parametrize("target", INTS)
def test_between_ints(source, target):
    rng = np.random.default_rng(1)
    x = rng.integers(-(1 << 62), 1 << 62, 781).astype(STORAGE[source])
    narrow, wide = np.dtype(STORAGE[source]).itemsize, np.dtype(STORAGE[target]).itemsize
    if source != "i1" and narrow > wide:
        np.testing.assert_array_equal(run_cast(x, source, target, op="trunc"), x.astype(STORAGE[target]))
    if source == "i1" or narrow < wide:
        kind = x.view(np.uint8) if source == "i1" else x.view(x.dtype.name.replace("int", "uint"))
        np.testing.assert_array_equal(run_cast(x, source, target, op="ext_u"), kind.astype(STORAGE[target]))
    if source != "i1" and narrow < wide:
        np.testing.assert_array_equal(run_cast(x, source, target, op="ext_s"), x.astype(STORAGE[target]))


def test_int_to_bool_takes_the_low_bit():
    x = np.arange(-50, 50, dtype=np.int32)
    np.testing.assert_array_equal(run_cast(x, "i32", "i1", op="trunc"), (x & 1).astype(bool))


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("sign", ["s", "u"])
def test_int_to_float(source, target, sign):
    rng = np.random.default_rng(2)
    info = np.iinfo(STORAGE[source])
    x = rng.integers(info.min, info.max, 781, dtype=STORAGE[source], endpoint=True)
    x[::3] >>= min(8, info.bits - 2)
    values = x if sign == "s" else x.view(f"uint{info.bits}")
    out = run_cast(x, source, target, op=f"int_to_float_{sign}")
    if target in NARROW:
        exact = values.astype(np.longdouble)
        expected = encode(target, values.astype("float64"))
        if info.bits == 64:  # the reference itself rounds twice
            assert (np.abs(out.view(np.uint16).astype(int) - expected.view(np.uint16).astype(int)) <= 1).all()
            return
        same_codes(target, out, expected, exact.astype("d"))
    else:
        np.testing.assert_array_equal(out, values.astype(STORAGE[target]))


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("target", INTS)
def test_float_to_int(source, target):
    rng = np.random.default_rng(3)
    limit = min(2.0 ** (8 * np.dtype(STORAGE[target]).itemsize - 1) - 1, 60000)
    x = rng.uniform(-limit, limit, 781).astype(STORAGE[source])
    x = np.clip(x, -limit, np.nextafter(STORAGE[source](limit), STORAGE[source](0)))
    np.testing.assert_array_equal(run_cast(x, source, target, op="float_to_int_s"), x.astype(STORAGE[target]))
    x = np.abs(x)
    np.testing.assert_array_equal(run_cast(x, source, target, op="float_to_int_u"), x.astype(STORAGE[target]))


def test_bitcasts():
    x = np.random.default_rng(4).standard_normal(100).astype("f")
    np.testing.assert_array_equal(run_cast(x, "f32", "i32", op="bitcast"), x.view(np.int32))
    np.testing.assert_array_equal(run_cast(x.view(np.int32), "i32", "f32", op="bitcast"), x)
    half = x.astype(np.float16)
    np.testing.assert_array_equal(run_cast(half, "f16", "bf16", op="bitcast"), half.view(np.uint16))
    np.testing.assert_array_equal(run_cast(half, "f16", "i16", op="bitcast"), half.view(np.int16))


@pytest.mark.parametrize("name", ["fadd", "fmul", "fsub", "fdiv"])
def test_bfloat16_arithmetic_rounds_each_result(name):
    rng = np.random.default_rng(5)
    a, b = (encode("bf16", rng.standard_normal(781) * 100) for _ in range(2))
    k = Kernel()
    out = k.run(k.op(name, k.load(a, "bf16"), k.load(b, "bf16")))
    table = decode_all("bf16")
    x, y = table[a.view(np.uint16)].astype("f"), table[b.view(np.uint16)].astype("f")
    functions = {"fadd": np.add, "fmul": np.multiply, "fsub": np.subtract, "fdiv": np.divide}
    np.testing.assert_array_equal(out.view(np.uint16), encode("bf16", functions[name](x, y).astype("d")))
