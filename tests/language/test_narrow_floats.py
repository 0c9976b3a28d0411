"""float16, bfloat16 and the fp8 formats: every code, and every way to round."""

import numpy as np
import pytest
from harness import FP8, NARROW, Array, check, code_values, encode, round_to

HALVES = ["float16", "bfloat16"]


def all_values(name):
    """Every value of the format; NaNs once."""
    values = code_values(name)
    return np.append(values[~np.isnan(values)], np.nan if NARROW[name][5] else 0.0)


def between(name):
    """Midpoints of neighbouring values, what lies next to them on both sides, and what lies past the end."""
    values = all_values(name)
    values = np.unique(values[np.isfinite(values)])
    middle = (values[1:] + values[:-1]) / 2
    if len(middle) > 4000:
        middle = np.concatenate([middle[:64], middle[-64:], middle[:: len(middle) // 3000]])
    top = values[-1] + (values[-1] - values[-2]) / 2
    past = np.array([top, np.nextafter(top, 0), np.nextafter(top, np.inf), 2 * top, 1e30, np.inf])
    tiny = values[values > 0][0] * np.array([0.5, 0.25, 0.500001, 0.75, 1e-3])
    return np.concatenate(
        [middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), past, -past, tiny, -tiny]
    )


@pytest.mark.parametrize("wide", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", FP8 + HALVES)
def test_every_code_widens(name, wide):
    codes = np.flatnonzero(~np.isnan(code_values(name)))
    values = code_values(name)[codes]
    codes = codes.astype(np.uint8 if name in FP8 else np.uint16)
    check(f"x.to(tl.{name}, bitcast=True).to(tl.{wide})", {"x": codes}, round_to(values, wide))


@pytest.mark.parametrize("name", FP8 + HALVES)
def test_nan_stays_nan(name):
    codes = np.array(sorted(NARROW[name][5]), np.uint8 if name in FP8 else np.uint16)
    if not len(codes):  # the format has none: it gives its largest value
        x = np.array([np.nan], np.float32)
        check(f"tl.abs(x.to(tl.{name}).to(tl.float32))", {"x": x}, np.array([np.nanmax(code_values(name))], np.float32))
        return
    codes = codes[:: max(1, len(codes) // 500)]
    check(f"x.to(tl.{name}, bitcast=True).to(tl.float32)", {"x": codes}, np.full(len(codes), np.nan, np.float32))
    check(
        f"x.to(tl.{name})",
        {"x": np.array([np.nan, -np.nan], np.float32)},
        Array(np.full(2, np.nan, np.float32), name) if name != "float16" else np.full(2, np.nan, np.float16),
    )


@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("name", FP8 + HALVES)
def test_rounds_to_nearest_even(name, wide):
    with np.errstate(over="ignore"):
        x = between(name).astype(wide)
    check(f"x.to(tl.{name})", {"x": x}, round_to(x.astype(np.float64), name))


@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("name", FP8 + HALVES)
def test_rounds_toward_zero_on_request(name, wide):
    with np.errstate(over="ignore"):
        x = between(name).astype(wide)
    x = x[np.isfinite(x)]
    limit = np.nanmax(code_values(name)[np.isfinite(code_values(name))])
    inside = x[np.abs(x) <= limit].astype(np.float64)
    check(
        f'x.to(tl.{name}, fp_downcast_rounding="rtz")',
        {"x": inside.astype(wide)},
        round_to(inside, name, toward_zero=True),
    )


@pytest.mark.parametrize("rounding", ["rtz", "rtne"])
@pytest.mark.parametrize("name", FP8 + HALVES + ["float32"])
def test_no_conversion_rounds_nothing(name, rounding):
    values = round_to(np.linspace(-3, 3, 16), name)
    check(f'x.to(tl.{name}, fp_downcast_rounding="{rounding}")', {"x": values}, values)


@pytest.mark.parametrize("name", FP8)
@pytest.mark.parametrize("half", HALVES)
def test_halves_narrow_to_fp8(half, name):
    values = all_values(half)
    check(
        f"x.to(tl.{name})",
        {"x": Array(values.astype(np.float32 if half == "bfloat16" else np.float16), half)},
        round_to(values, name),
    )


@pytest.mark.parametrize("source", HALVES)
@pytest.mark.parametrize("target", HALVES)
def test_halves_to_each_other(source, target):
    x = round_to(all_values(source), source)
    check(f"x.to(tl.{target})", {"x": x}, round_to(x.values.astype(np.float64), target))


def test_double_to_half_rounds_once():
    """1 + 2^-11 + 2^-40 is above the midpoint, but rounding to float32 first would put it on the midpoint."""
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40])
    check("x.to(tl.float16)", {"x": x}, np.array([1 + 2.0**-10, 1 + 2.0**-10], np.float16))
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40])
    check("x.to(tl.bfloat16)", {"x": x}, round_to(np.array([1 + 2.0**-7, 1 + 2.0**-7]), "bfloat16"))


@pytest.mark.parametrize("name", FP8)
def test_fp8_loads_and_stores_every_code(name):
    values = code_values(name)
    x = Array(values.astype(np.float32), name)
    check("x", {"x": x}, x)
    codes = encode(values, name)
    check(
        f"x.to(tl.{name}).to(tl.uint8, bitcast=True)",
        {"x": values[~np.isnan(values)].astype(np.float32)},
        codes[~np.isnan(values)],
    )


def test_the_name_of_other_gpus_conversions():
    x = np.linspace(-1.8, 1.8, 97).astype(np.float32)
    for generation in "70", "80":
        converted = f"tl.extra.cuda.convert_custom_float8_sm{generation}"
        check(f"{converted}(x, tl.float8e4b15)", {"x": x}, round_to(x, "float8e4b15"))
        check(f"{converted}(x, tl.float32)", {"x": round_to(x, "float8e4b15")}, round_to(x, "float8e4b15").values)


@pytest.mark.parametrize("name", ["float8e4nv", "float8e5"])
def test_fp8_is_computed_after_a_cast(name):
    x = round_to(np.linspace(-3, 3, 97), name)
    check("x.to(tl.float32) * 2 + 1", {"x": x}, x.values * 2 + 1)
    check(f"(x.to(tl.float32) * 1.5).to(tl.{name})", {"x": x}, round_to(x.values.astype(np.float64) * 1.5, name))


@pytest.mark.parametrize("name", HALVES)
def test_arithmetic_rounds_after_every_operation(name):
    x, y = round_to(np.linspace(0.1, 4, 200), name), round_to(np.linspace(3, 0.7, 200), name)
    a, b = x.values.astype(np.float64), y.values.astype(np.float64)
    product = round_to(a * b, name).values.astype(np.float64)
    check("x * y + x", {"x": x, "y": y}, round_to(product + a, name))


def test_the_formats_documented_limits():
    rows = [("float8e4nv", 448.0, 2.0**-9), ("float8e5", 57344.0, 2.0**-16), ("float8e4b15", 1.875, 2.0**-17)]
    rows += [("float8e4b8", 240.0, 2.0**-10), ("float8e5b16", 57344.0, 2.0**-17)]
    for name, largest, smallest in rows:
        x = np.array([largest, -largest, smallest], np.float32)
        check(f"x.to(tl.{name}).to(tl.float32)", {"x": x}, x)
        check(
            f"x.to(tl.{name}).to(tl.float32)", {"x": x * 64}, np.array([largest, -largest, smallest * 64], np.float32)
        )
