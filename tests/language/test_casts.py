"""Casts between every pair of dtypes, and bitcasts."""

import itertools

import numpy as np
import pytest
from harness import DTYPES, FLOATS, FP8, INTS, NUMBERS, Array, check, converted, random, round_to

EVERY = ["int1", *NUMBERS, *FP8]


def values_of(dtype):
    """Values that every other dtype tells apart: small ones, limits, fractions."""
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return Array(np.array([True, False, True]), dtype)
    if kind == "float":
        values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -1.75, 2.5, 100.0, -100.0, 0.1, 3.999, 57.3, 126.99, 1 / 3, 1e-3])
        return round_to(np.concatenate([values, random((64,), "float64", low=-120, high=120).values]), dtype)
    info = np.iinfo(DTYPES[dtype].numpy)
    corners = [info.min, info.max, 0, 1, 2, 100, info.max // 2, info.max // 3]
    return Array(np.concatenate([np.array(corners, info.dtype), random((64,), dtype).values]), dtype)


@pytest.mark.parametrize("source, target", [pair for pair in itertools.product(EVERY, EVERY)])
def test_every_pair(source, target):
    x = values_of(source)
    if DTYPES[target].kind == "uint" and DTYPES[source].kind == "float":
        x = Array(np.abs(x.values), source)  # a negative float has no unsigned value
    check(f"x.to(tl.{target})", {"x": x}, converted(x, target))


@pytest.mark.parametrize("source", ["int8", "uint8"])
@pytest.mark.parametrize("target", FLOATS)
def test_every_byte(source, target):
    """As loaded, several in a word, and as computed."""
    x = np.tile(np.arange(256).astype(np.uint8).view(source), 8)
    codes = [("x", x), ("x & 15", x & 15), ("(x >> 4) - 8", (x >> 4).astype(np.int64) - 8), ("~x", ~x)]
    codes += [("x >> 4", x >> 4), ("(x << 4) >> 4", (x << x.dtype.type(4)) >> 4), ("x << 7 >> 1", x << 7 >> 1)]
    for code, values in codes:
        if source == "int8" or code != "(x >> 4) - 8":
            check(f"({code}).to(tl.{target})", {"x": x}, converted(Array(values.astype(source), source), target))
    halves = np.stack([x & 15, x >> 4], axis=-1).ravel()
    check(f"tl.interleave(x & 15, x >> 4).to(tl.{target})", {"x": x}, converted(Array(halves, source), target))


def test_bytes_become_the_bits_of_floats():
    """As loaded, several in a word: sign, exponent and mantissa come to their places two at once."""
    x = np.tile(np.arange(256).astype(np.uint8), 8)
    wide = x.astype(np.uint16)
    code = "wide = x.to(tl.uint16)\nout = (((wide & 128) << 8) | ((wide & 127) << 7)).to(tl.float16, bitcast=True)"
    check(code, {"x": x}, ((wide & 128) << 8 | (wide & 127) << 7).view(np.float16))


def test_spellings():
    x = random((8,), "float32")
    for code in ["x.to(tl.float16)", "tl.cast(x, tl.float16)", "x.cast(tl.float16)", "tl.cast(x, dtype=tl.float16)"]:
        check(code, {"x": x}, round_to(x.values, "float16"))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_to_the_limits_of_integers(source, dtype):
    """Values inside the target's range convert exactly, up to its very ends."""
    info = np.iinfo(dtype)
    step = np.spacing(np.float64(info.max) if source == "float64" else np.float32(info.max))
    top = (
        float(info.max)
        if float(info.max) == info.max and float(np.dtype(source).type(info.max)) == info.max
        else 2.0**info.bits / (2 if info.min else 1) - float(step) / 2
    )
    values = np.array([info.min, top, 0.99, -0.99 if info.min else 0.5, 1.5, 41.999], source)
    values = np.array([v for v in values if info.min <= int(v) <= info.max], source)
    check(f"x.to(tl.{dtype})", {"x": values}, np.array([int(v) for v in values.tolist()], dtype))


def test_float_to_bool_is_not_equal_zero():
    for dtype in FLOATS:
        x = round_to(np.array([0.0, -0.0, 0.25, -1.0, np.inf, np.nan, 6e-8]), dtype)
        check("x.to(tl.int1)", {"x": x}, x.values != 0)


def test_int_to_bool_is_not_the_low_bit():
    check("x.to(tl.int1)", {"x": np.array([0, 1, 2, 256, -1], np.int32)}, np.array([0, 1, 1, 1, 1], bool))


@pytest.mark.parametrize("source", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("target", FLOATS)
def test_integers_round_to_nearest_even(source, target):
    limit = np.iinfo(source).max
    bits = DTYPES[target].mantissa + 1
    values = []
    for shift in range(1, np.iinfo(source).bits - bits):
        base = 1 << (bits - 1)
        for low in [(1 << shift) // 2 - 1, (1 << shift) // 2, (1 << shift) // 2 + 1]:
            values += [(base << shift) + low, ((base + 1) << shift) + low]
    values = [v for v in values if 0 <= v <= limit] + [limit]
    x = Array(np.array(values, source), source)
    check(f"x.to(tl.{target})", {"x": x}, converted(x, target))


PAIRS_OF_WIDTH = [
    (a, b)
    for a, b in itertools.product(EVERY, EVERY)
    if DTYPES[a].bits == DTYPES[b].bits and a != "int1" and a != b
]  # fmt: skip


@pytest.mark.parametrize("source, target", PAIRS_OF_WIDTH)
def test_bitcast(source, target):
    bits = DTYPES[source].bits
    codes = random((300,), f"uint{bits}").values if bits > 8 else np.arange(256, dtype=np.uint8)
    if DTYPES[source].kind == "float" or DTYPES[target].kind == "float":
        codes = codes[~is_nan(codes, source) & ~is_nan(codes, target)]
    code = f"x.to(tl.{source}, bitcast=True).to(tl.{target}, bitcast=True).to(tl.uint{bits}, bitcast=True)"
    check(code, {"x": codes}, codes)


def is_nan(codes, dtype):
    from harness import NARROW, code_values

    if dtype in NARROW:
        return np.isnan(code_values(dtype)[codes])
    return np.isnan(codes.view(dtype)) if DTYPES[dtype].kind == "float" else np.zeros(codes.shape, bool)


def test_bitcast_of_known_values():
    check(
        "x.to(tl.int32, bitcast=True)",
        {"x": np.array([1.0, -0.0], np.float32)},
        np.array([0x3F800000, -(2**31)], np.int32),
    )
    check("tl.cast(x, tl.float32, bitcast=True)", {"x": np.array([0x3F800000], np.int32)}, np.ones(1, np.float32))
    check("x.to(tl.uint8, bitcast=True)", {"x": np.array([-1, 5], np.int8)}, np.array([255, 5], np.uint8))


def test_pointers_cast_to_integers_and_back():
    x = np.arange(8, dtype=np.int32)
    code = """
        place = x_ptr.to(tl.int64)
        out = tl.load((place + 8).to(tl.pointer_type(tl.int32)) + tl.arange(0, 4))
    """
    check(code, {"x": x}, x[2:6])


def test_pointers_bitcast_to_another_pointee():
    x = np.arange(8, dtype=np.int32)
    code = "out = tl.load(x_ptr.to(tl.pointer_type(tl.int64), bitcast=True) + tl.arange(0, 4))"
    check(code, {"x": x}, x.view(np.int64))
    code = "out = tl.load(x_ptr.to(tl.pointer_type(tl.uint8)) + tl.arange(0, 32))"
    check(code, {"x": x}, x.view(np.uint8))


def test_stores_and_loads_convert_to_the_pointee():
    x = np.array([1.75, -2.5, 3.0, 300.0], np.float32)
    for dtype in ["float16", "bfloat16", "int32", "int16", "float64", "float8e5"]:
        check("x", {"x": x}, converted(Array(x, "float32"), dtype), proofs=False)


def test_scalars_cast():
    check("n.to(tl.float32)", {"n": 7}, np.asarray(7, np.float32))
    check("n.to(tl.int32)", {"n": -7.9}, np.asarray(-7, np.int32))
    check("tl.cast(3, tl.float16)", {}, np.asarray(3, np.float16))
    check("tl.cast(2.75, tl.int8)", {}, np.asarray(2, np.int8))
