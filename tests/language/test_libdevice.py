"""tl.extra.libdevice against the C library's functions in float64."""

import math

import numpy as np
import pytest
from harness import INTS, Array, check, random, round_to

import triton


def lifted(function):
    return np.vectorize(function, otypes=[np.float64])


def _cyl(values):
    return lifted(values)


# name: reference, range of arguments, units in the last place in float32
UNARY = {
    "acos": (np.arccos, (-1, 1), 3), "acosh": (np.arccosh, (1, 1e6), 4), "asin": (np.arcsin, (-1, 1), 3),
    "asinh": (np.arcsinh, (-1e6, 1e6), 4), "atan": (np.arctan, (-100, 100), 3),
    "atanh": (np.arctanh, (-0.999, 0.999), 4),
    "cbrt": (np.cbrt, (-1e6, 1e6), 4), "ceil": (np.ceil, (-1e5, 1e5), 0), "cos": (np.cos, (-10, 10), 3),
    "cosh": (np.cosh, (-80, 80), 3), "erf": (lifted(math.erf), (-4, 4), 3), "erfc": (lifted(math.erfc), (-4, 9), 6),
    "exp": (np.exp, (-80, 80), 3), "exp10": (lambda x: 10.0**x, (-30, 30), 3), "exp2": (np.exp2, (-100, 100), 3),
    "expm1": (np.expm1, (-10, 10), 3), "fabs": (np.abs, (-1e5, 1e5), 0), "floor": (np.floor, (-1e5, 1e5), 0),
    "lgamma": (lifted(math.lgamma), (0.1, 50), 6), "log": (np.log, (1e-6, 1e6), 3), "log10": (np.log10, (1e-6, 1e6), 3),
    "log1p": (np.log1p, (-0.9, 100), 3), "log2": (np.log2, (1e-6, 1e6), 3),
    "logb": (lambda x: np.floor(np.log2(np.abs(x))), (0.01, 1e5), 0),
    "nearbyint": (np.rint, (-100, 100), 0), "rint": (np.rint, (-100, 100), 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), (-100, 100), 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-3, 1e6), 3),
    "sin": (np.sin, (-10, 10), 3), "sinh": (np.sinh, (-80, 80), 4), "sqrt": (np.sqrt, (0, 1e6), 1),
    "tan": (np.tan, (-1.5, 1.5), 4),
    "tanh": (np.tanh, (-10, 10), 3), "tgamma": (lifted(math.gamma), (0.1, 30), 8), "trunc": (np.trunc, (-1e5, 1e5), 0),
}  # fmt: skip
BINARY = {
    "atan2": (np.arctan2, 3), "copysign": (np.copysign, 0), "fdim": (lambda x, y: np.maximum(x - y, 0), 1),
    "fmod": (np.fmod, 0),
    "hypot": (np.hypot, 2), "nextafter": (None, 0), "pow": (None, 3), "remainder": (lifted(math.remainder), 0),
    "max": (np.maximum, 0), "min": (np.minimum, 0), "fmax": (np.maximum, 0), "fmin": (np.minimum, 0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype, target):
    function, (low, high), ulps = UNARY[name]
    if name == "exp" and target != "cpu":
        ulps = 6  # one correction of ex2.approx
    x = round_to(np.linspace(low, high, 777), dtype)
    expected = round_to(function(x.values.astype(np.float64)), dtype)
    ulps = 4 * ulps if dtype == "float64" else ulps
    atol = 1e-15 if name in ("lgamma", "tgamma") else 0  # NumPy's and C's references differ near the zeros
    check(f"tl.extra.libdevice.{name}(x)", {"x": x}, expected, ulps=ulps, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    x, y = random((400,), dtype, seed=1, low=-5, high=5), random((400,), dtype, seed=2, low=-5, high=5)
    if name in ("max", "min", "fmax", "fmin") and not has(name):
        pytest.skip(f"libdevice has no {name}")
    a, b = x.values.astype(np.float64), y.values.astype(np.float64)
    function, ulps = BINARY[name]
    if name == "nextafter":
        expected = Array(np.nextafter(x.values, y.values), dtype)
    elif name == "pow":
        x = Array(np.abs(x.values), dtype)
        expected = round_to(np.abs(a) ** b, dtype)
    else:
        expected = round_to(function(a, b), dtype)
    check(f"tl.extra.libdevice.{name}(x, y)", {"x": x, "y": y}, expected, ulps=4 * ulps if dtype == "float64" else ulps)


def has(name):
    import triton.language as tl

    return hasattr(tl.extra.libdevice, name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_classification(dtype):
    x = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], dtype)
    for name, function in [("isinf", np.isinf), ("isnan", np.isnan), ("signbit", np.signbit)]:
        check(f"(tl.extra.libdevice.{name}(x) != 0)", {"x": x}, function(x))
    finite = "finitef" if dtype == "float32" else "isfinited"
    check(f"(tl.extra.libdevice.{finite}(x) != 0)", {"x": x}, np.isfinite(x))


@pytest.mark.parametrize("bits", [32, 64])
def test_integer_functions(bits):
    dtype = f"int{bits}"
    x = random((200,), dtype)
    unsigned = [int(v) & ((1 << bits) - 1) for v in x.values.tolist()]
    suffix = {32: "", 64: ""}[bits]
    counts = np.array([bin(v).count("1") for v in unsigned], np.int32)
    leading = np.array([bits - v.bit_length() for v in unsigned], np.int32)
    check(f"tl.extra.libdevice.popc{suffix}(x).to(tl.int32)", {"x": x}, counts)
    check(f"tl.extra.libdevice.clz{suffix}(x).to(tl.int32)", {"x": x}, leading)


def test_fma_and_scaling():
    x, y, z = (random((50,), "float32", seed) for seed in (1, 2, 3))
    exact = x.values.astype(np.float64) * y.values + z.values
    check("tl.extra.libdevice.fma(x, y, z)", {"x": x, "y": y, "z": z}, round_to(exact, "float32"))
    n = random((50,), "int32", low=-10, high=10)
    check("tl.extra.libdevice.ldexp(x, n)", {"x": x, "n": n}, np.ldexp(x.values, n.values))


@pytest.mark.parametrize(
    "spelling", ["tl.extra.libdevice", "tl.libdevice", "tl.extra.cuda.libdevice", "libdevice", "tl.math"]
)
def test_spellings(spelling):
    import triton.language as tl

    x = np.linspace(-0.9, 0.9, 50).astype(np.float32)
    names = {"libdevice": tl.extra.libdevice}
    check(f"{spelling}.asin(x)", {"x": x}, np.arcsin(x.astype(np.float64)).astype(np.float32), ulps=3, names=names)


def test_importing_libdevice():
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as older

    assert libdevice.tanh is older.tanh


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 7), (2, 3, 5), (1000,)])
def test_shapes(shape):
    x = np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    check("tl.extra.libdevice.tanh(x)", {"x": x}, np.tanh(x.astype(np.float64)).astype(np.float32), ulps=3)
    check("tl.extra.libdevice.atan2(x, 2.0)", {"x": x}, np.arctan2(x.astype(np.float64), 2).astype(np.float32), ulps=3)


def test_functions_of_two_broadcast():
    x, y = np.linspace(0.1, 2, 4).astype(np.float32)[:, None], np.linspace(0.5, 3, 6).astype(np.float32)[None, :]
    check("tl.extra.libdevice.pow(x, y)", {"x": x, "y": y}, (x.astype(np.float64) ** y).astype(np.float32), ulps=2)
    assert INTS


def test_parameters_by_number():
    """As the public API calls them, of builtins and of what is written in the language."""
    x, y = np.array([2.0, 9.0], np.float32), np.array([3.0, 0.5], np.float32)
    calls = {
        "pow(arg1=y, arg0=x)": x**y, "sqrt(arg0=x)": np.sqrt(x), "add_rd(arg0=x, arg1=y)": x + y,
        "fma(x, arg2=y, arg1=y)": x * y + y,
    }  # fmt: skip
    for code, expected in calls.items():
        check(f"tl.extra.libdevice.{code}", {"x": x, "y": y}, expected, ulps=4)
    for code in ("tl.extra.libdevice.pow(x, arg2=x)", "tl.sum(arg0=x)"):
        with pytest.raises(triton.CompilationError, match="has no parameter `arg[02]`"):
            check(code, {"x": x}, x)
