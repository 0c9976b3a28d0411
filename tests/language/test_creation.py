"""Tiles out of nothing: arange, zeros, full, constants, and where a program stands in its grid."""

import numpy as np
import pytest
from harness import DTYPES, FP8, NUMBERS, Array, Buffer, array, check, jit, random

import triton
import triton.language as tl

SHAPES = [(1,), (3,), (16,), (4096,), (1, 1), (5, 7), (64, 64), (2, 3, 5), (1, 4096), (2, 3, 4, 5), (1, 1, 1, 1)]


@pytest.mark.parametrize(
    "start, end", [(0, 1), (0, 2), (0, 96), (0, 4096), (5, 6), (7, 20), (100, 228), (-8, 8), (-3, -1)]
)
def test_arange(start, end):
    check(f"tl.arange({start}, {end})", {}, np.arange(start, end, dtype=np.int32))


def test_arange_from_constexprs():
    kernel = jit("""
        def kernel(out, START: tl.constexpr, COUNT: tl.constexpr):
            i = tl.arange(START, START + COUNT)
            tl.store(out + i - START, i)
    """)
    out = Buffer(np.zeros(12, np.int32))
    kernel[(1,)](out.argument, 30, 12)
    assert (out.host().values == np.arange(30, 42)).all()


@pytest.mark.parametrize("dtype", ["int1", *NUMBERS, *FP8])
def test_zeros(dtype):
    for shape in [(1,), (96,), (3, 5)]:
        check(f"tl.zeros({shape}, tl.{dtype})", {}, array(np.zeros(shape), dtype))


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    check(f"tl.full({shape}, 7, tl.int32)", {}, np.full(shape, 7, np.int32))
    check(f"tl.zeros({list(shape)}, dtype=tl.float32)", {}, np.zeros(shape, np.float32))


VALUES = {
    "int1": [True, False],
    "int8": [-128, -1, 127],
    "int16": [-32768, 32767],
    "int32": [-(2**31), 2**31 - 1],
    "int64": [-(2**63), 2**63 - 1, 2**32],
    "uint8": [0, 255],
    "uint16": [65535],
    "uint32": [2**31, 2**32 - 1],
    "uint64": [2**63, 2**64 - 1],
    "float16": [0.1, -0.0, 65504.0, 6e-8, float("inf"), float("-inf"), float("nan")],
    "bfloat16": [0.1, 3.0e38, 1e-40, float("inf")],
    "float32": [0.1, 1e-45, 3.4e38, float("inf"), float("nan")],
    "float64": [0.1, 5e-324, 1.7e308, float("-inf")],
    "float8e4nv": [0.1, -448.0, 2.0**-9],
    "float8e5": [0.3, 57344.0, 2.0**-16],
    "float8e4b15": [0.3, 1.875, -(2.0**-17)],
}


@pytest.mark.parametrize("dtype, value", [(dtype, value) for dtype, values in VALUES.items() for value in values])
def test_full_value(dtype, value):
    names = {"VALUE": tl.constexpr(value)}
    exact = np.asarray(
        value, np.uint64 if dtype == "uint64" else np.int64 if DTYPES[dtype].kind != "float" else np.float64
    )
    expected = array(np.broadcast_to(exact, (5,)), dtype)
    check(f"tl.full((5,), VALUE, tl.{dtype})", {}, expected, names=names)


@pytest.mark.parametrize("dtype", ["int1", *NUMBERS])
def test_full_of_a_run_time_scalar(dtype):
    value = random((), dtype, low=0, high=100)
    check("tl.full((3, 4), x, x.dtype)", {"x": value}, Array(np.broadcast_to(value.values, (3, 4)), dtype))


def test_full_converts_a_run_time_scalar():
    check("tl.full((4,), n, tl.float16)", {"n": 7}, np.full(4, 7, np.float16))
    check("tl.full((4,), n, tl.int64)", {"n": 7}, np.full(4, 7, np.int64))


def test_full_of_rank_zero():
    check("tl.full((), 3, tl.int32)", {}, np.asarray(3, np.int32))
    check("tl.zeros((), tl.float32)", {}, np.asarray(0, np.float32))


def test_zeros_like():
    x = random((3, 5), "float16")
    check("tl.zeros_like(x)", {"x": x}, np.zeros((3, 5), np.float16))


@pytest.mark.parametrize(
    "value, dtype",
    [
        ("0", "int32"), ("2147483647", "int32"), ("-2147483648", "int32"), ("2147483648", "uint32"),
        ("4294967295", "uint32"), ("4294967296", "int64"), ("-2147483649", "int64"), ("9223372036854775808", "uint64"),
        ("0.5", "float32"), ("True", "int1"), ("1e-3", "float32"),
    ],
)  # fmt: skip
def test_literals_take_the_first_dtype_that_holds_them(value, dtype):
    """A scalar of a higher kind than the tile's decides the dtype."""
    expected = array(np.asarray([eval(value)], None if dtype != "uint64" else np.uint64), dtype)
    check(f"x + {value}", {"x": np.zeros(1, np.bool_)}, expected)


def test_float_literals_are_rounded_once():
    """0.1 in float16 is what rounding the decimal gives, not what rounding its float32 value gives twice."""
    x = np.zeros(4, np.float64)
    check("x + 0.1", {"x": x}, x + 0.1)
    check("x + 1e300", {"x": x}, x + 1e300)


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 4), (2, 3, 5), (1, 1, 6)])
def test_program_ids(grid):
    kernel = jit("""
        def kernel(out):
            x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(axis=2)
            place = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
            tl.store(out + place * 4, x)
            tl.store(out + place * 4 + 1, y)
            tl.store(out + place * 4 + 2, z)
            tl.store(out + place * 4 + 3, tl.num_programs(0))
    """)
    full = (*grid, 1, 1)[:3]
    out = Buffer(np.full((*full, 4), -1, np.int32))
    kernel[grid](out.argument)
    expected = np.stack([*np.indices(full), np.full(full, full[0])], axis=-1)
    assert (out.host().values == expected).all()


def test_program_id_is_an_int32_scalar():
    check("tl.program_id(0)", {}, np.asarray(0, np.int32))
    check("tl.num_programs(0)", {}, np.asarray(1, np.int32))


def test_large_grid():
    kernel = jit("""
        def kernel(out):
            tl.store(out + tl.program_id(0), tl.program_id(0) * 2)
    """)
    out = Buffer(np.zeros(100_003, np.int32))
    kernel[(100_003,)](out.argument)
    assert (out.host().values == 2 * np.arange(100_003)).all()


def test_empty_grid_runs_nothing():
    kernel = jit("""
        def kernel(out):
            tl.store(out, 1)
    """)
    out = Buffer(np.zeros(1, np.int32))
    kernel[(0,)](out.argument)
    assert out.host().values[0] == 0


def test_cdiv_and_next_power_of_2_inside():
    check("tl.cdiv(n, 8)", {"n": 17}, np.asarray(3, np.int32))
    check("tl.cdiv(x, 7)", {"x": np.arange(1, 50, dtype=np.int32)}, np.ceil(np.arange(1, 50) / 7).astype(np.int32))
    check("tl.arange(0, triton.next_power_of_2(C))", {}, np.arange(64, dtype=np.int32), names={"C": tl.constexpr(33)})
    check("tl.full((4,), triton.cdiv(C, 8), tl.int32)", {}, np.full(4, 5, np.int32), names={"C": tl.constexpr(33)})
    assert triton.cdiv(17, 8) == 3
