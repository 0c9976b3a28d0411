"""Every elementwise operation on every type, over ranks and odd extents."""

import numpy as np
import pytest

from .build import Kernel

SHAPES = [(), (1,), (3,), (16,), (96,), (781,), (5, 7), (16, 1), (1, 33), (2, 3, 5), (3, 1, 2, 4)]
INTS = ["int8", "int16", "int32", "int64"]


def numbers(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 10).astype(dtype)
    info = np.iinfo(dtype)
    small = rng.integers(-5, 6, shape)
    large = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, small, large).astype(dtype)


def unsigned(x):
    return x.view(x.dtype.name.replace("int", "uint")) if x.dtype.kind == "i" else x


def high_product(a, b):
    return np.asarray(np.asarray(a.astype(object) * b.astype(object)) >> (8 * a.itemsize))


def truncating_divide(a, b):
    safe = np.where(b == 0, 1, b)
    lowest = np.iinfo(a.dtype).min
    safe = np.where((a == lowest) & (safe == -1), 1, safe)
    quotient = np.sign(a.astype(object)) * np.sign(safe.astype(object))
    quotient = quotient * (abs(a.astype(object)) // abs(safe.astype(object)))
    return np.asarray(quotient).astype(a.dtype), (b != 0) & ~((a == lowest) & (b == -1))


BINARY_INTS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min_s": np.minimum,
    "max_s": np.maximum,
    "min_u": lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype),
    "max_u": lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype),
    "mulhi_s": lambda a, b: high_product(a, b).astype(a.dtype),
    "mulhi_u": lambda a, b: high_product(unsigned(a), unsigned(b)).astype(unsigned(a).dtype).view(a.dtype),
}


@pytest.mark.parametrize("name", BINARY_INTS)
@pytest.mark.parametrize("dtype", INTS)
def test_int_arithmetic(name, dtype):
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        a, b = numbers(rng, dtype, shape), numbers(rng, dtype, shape)
        k = Kernel()
        out = k.run(k.op(name, k.load(a), k.load(b)))
        np.testing.assert_array_equal(out, BINARY_INTS[name](a, b))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", ["div_s", "rem_s", "div_u", "rem_u"])
def test_division_never_traps(name, dtype):
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        a, b = numbers(rng, dtype, shape), numbers(rng, dtype, shape)
        k = Kernel()
        out = k.run(k.op(name, k.load(a), k.load(b)))
        if name.endswith("u"):
            x, y = unsigned(a), unsigned(b)
            valid, safe = y != 0, np.where(y == 0, 1, y).astype(y.dtype)
            expected = (x // safe if name == "div_u" else x % safe).astype(y.dtype).view(a.dtype)
        else:
            quotient, valid = truncating_divide(a, b)
            expected = quotient if name == "div_s" else a - quotient * b
        np.testing.assert_array_equal(out[valid], expected[valid])


@pytest.mark.parametrize("dtype", INTS)
def test_shifts(dtype):
    rng = np.random.default_rng(3)
    bits = 8 * np.dtype(dtype).itemsize
    for shape in SHAPES:
        a = numbers(rng, dtype, shape)
        b = rng.integers(0, bits + 4, shape).astype(dtype)
        k = Kernel()
        x, y = k.load(a), k.load(b)
        left, signed, logical = k.run(k.op("shl", x, y), k.op("shr_s", x, y), k.op("shr_u", x, y))
        over = b >= bits
        count = np.minimum(b, bits - 1)
        np.testing.assert_array_equal(left, np.where(over, 0, a << count))
        np.testing.assert_array_equal(signed, a >> count)
        np.testing.assert_array_equal(logical, np.where(over, 0, (unsigned(a) >> unsigned(count)).view(a.dtype)))


@pytest.mark.parametrize("dtype", INTS)
def test_int_unary(dtype):
    rng = np.random.default_rng(4)
    bits = 8 * np.dtype(dtype).itemsize
    for shape in SHAPES:
        a = numbers(rng, dtype, shape)
        k = Kernel()
        x = k.load(a)
        absolute, ones, zeros = k.run(k.op("abs_s", x), k.op("popcount", x), k.op("clz", x))
        strings = [np.binary_repr(v, bits) for v in np.ravel(a)]
        np.testing.assert_array_equal(absolute, np.abs(a))
        np.testing.assert_array_equal(np.ravel(ones), [s.count("1") for s in strings])
        np.testing.assert_array_equal(np.ravel(zeros), [len(s) - len(s.lstrip("0")) for s in strings])


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("dtype", INTS)
def test_int_compare(dtype):
    rng = np.random.default_rng(5)
    for shape in SHAPES:
        a, b = numbers(rng, dtype, shape), numbers(rng, dtype, shape)
        for name, function in COMPARISONS.items():
            for suffix in [""] if name in ("eq", "ne") else ["_s", "_u"]:
                k = Kernel()
                out = k.run(k.op(name + suffix, k.load(a), k.load(b), element="i1"))
                x, y = (unsigned(a), unsigned(b)) if suffix == "_u" else (a, b)
                np.testing.assert_array_equal(out, function(x, y))


@pytest.mark.parametrize("name", ["and", "or", "xor", "eq", "ne"])
def test_booleans(name):
    rng = np.random.default_rng(6)
    functions = {"and": np.logical_and, "or": np.logical_or, "eq": np.equal}
    for shape in SHAPES:
        a, b = numbers(rng, "bool", shape), numbers(rng, "bool", shape)
        k = Kernel()
        out = k.run(k.op(name, k.load(a), k.load(b), element="i1"))
        np.testing.assert_array_equal(out, functions.get(name, np.logical_xor)(a, b))


BINARY_FLOATS = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "fdiv_rn": np.divide,
    "frem": np.fmod,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "fmin_nan": np.minimum,
    "fmax_nan": np.maximum,
}


@pytest.mark.parametrize("name", BINARY_FLOATS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_arithmetic(name, dtype):
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        a, b = numbers(rng, dtype, shape), numbers(rng, dtype, shape)
        special = rng.choice(np.array([0, -0.0, np.inf, -np.inf, np.nan]), shape)
        a = np.where(rng.random(shape) < 0.2, special, a).astype(dtype)
        b = np.where(rng.random(shape) < 0.2, rng.permutation(np.ravel(special)).reshape(shape), b)
        b = b.astype(dtype)
        k = Kernel()
        out = k.run(k.op(name, k.load(a), k.load(b)))
        wide = (a.astype("f"), b.astype("f")) if dtype == "float16" else (a, b)
        np.testing.assert_array_equal(out, BINARY_FLOATS[name](*wide).astype(dtype))


UNARY_FLOATS = {
    "fneg": np.negative,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", UNARY_FLOATS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_functions(name, dtype):
    rng = np.random.default_rng(8)
    for shape in SHAPES:
        a = numbers(rng, dtype, shape)
        special = rng.choice(np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1]), shape)
        a = np.where(rng.random(shape) < 0.2, special, a).astype(dtype)
        k = Kernel()
        out = k.run(k.op(name, k.load(a)))
        expected = UNARY_FLOATS[name](a.astype("float64")).astype(dtype)
        tolerance = {"float16": 1e-3, "float32": 5e-7, "float64": 1e-15}[dtype]
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance / 4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_compare(dtype):
    rng = np.random.default_rng(9)
    for shape in SHAPES:
        a = numbers(rng, dtype, shape)
        b = np.where(rng.random(shape) < 0.3, a, numbers(rng, dtype, shape)).astype(dtype)
        b = np.where(rng.random(shape) < 0.2, np.nan, b).astype(dtype)
        for name, function in COMPARISONS.items():
            k = Kernel()
            out = k.run(k.op("f" + name, k.load(a), k.load(b), element="i1"))
            np.testing.assert_array_equal(out, function(a, b))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fma_rounds_once(dtype):
    rng = np.random.default_rng(10)
    a, b, c = (numbers(rng, dtype, (781,)) for _ in range(3))
    k = Kernel()
    out = k.run(k.op("fma", k.load(a), k.load(b), k.load(c)))
    if dtype == "float64":
        np.testing.assert_allclose(out, a * b + c, rtol=1e-12)
    else:
        exact = a.astype("float64") * b.astype("float64") + c.astype("float64")
        np.testing.assert_array_equal(out, exact.astype("f").astype(dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32"])
def test_select(dtype):
    rng = np.random.default_rng(11)
    for shape in SHAPES:
        c, a, b = numbers(rng, "bool", shape), numbers(rng, dtype, shape), numbers(rng, dtype, shape)
        k = Kernel()
        out = k.run(k.op("select", k.load(c), k.load(a), k.load(b)))
        np.testing.assert_array_equal(out, np.where(c, a, b))


@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_exponentials_are_accurate(name):
    """Within 1 ulp over the whole range, denormal results included."""
    x = np.linspace(-160, 140, 1 << 18, dtype="float32")
    x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30])])
    k = Kernel()
    out = k.run(k.op(name, k.load(x)))
    with np.errstate(over="ignore", under="ignore"):
        exact = getattr(np, name)(x.astype("float64"))
        nearest = exact.astype("float32")
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(out[~finite], nearest[~finite])
    unit = np.spacing(nearest[finite]).astype("float64")
    assert (np.abs(out[finite].astype("float64") - exact[finite]) / unit).max() < 1


@pytest.mark.parametrize("name, low, high", [("exp10", -46, 38.5), ("erf", -5, 5)])
def test_derived_exponentials_are_accurate(name, low, high):
    torch = pytest.importorskip("torch")
    x = np.concatenate([np.linspace(low, high, 1 << 18), [0, -0.0, 1e-30, -1e-39, np.nan]]).astype("float32")
    k = Kernel()
    attrs = '{symbol = "exp10"}' if name == "exp10" else ""
    out = k.run(k.op("extern_call" if attrs else name, k.load(x), attrs=attrs))
    exact = 10 ** x.astype("float64") if attrs else torch.erf(torch.from_numpy(x).double()).numpy()
    unit = np.spacing(np.abs(exact).astype("float32")).astype("float64")
    error = np.abs(out[:-1].astype("float64") - exact[:-1]) / unit[:-1]
    assert error.max() < 2 and np.isnan(out[-1])


SYMBOLS = {  # name: what it is, by torch in float64
    **{name: name for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "expm1")},
    **{name: name for name in ("lgamma", "log10", "log1p", "round", "sinh", "tan", "trunc")},
    "cbrt": lambda x: x ** (1 / 3),
    "exp10": lambda x: 10**x,
    "rint": "round",
    "tgamma": lambda x: x.lgamma().exp(),
}


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_library_functions(symbol, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(12)
    function = SYMBOLS[symbol]
    for extent in (1, 5, 100):
        x = rng.uniform(0.1, 0.9, extent)
        x = (x + 1 if symbol == "acosh" else x * 3 if symbol in ("round", "rint", "trunc") else x).astype(dtype)
        k = Kernel()
        out = k.run(k.op("extern_call", k.load(x), attrs=f'{{symbol = "{symbol}"}}'))
        wide = torch.from_numpy(x.astype("float64"))
        expected = (function(wide) if callable(function) else getattr(torch, function)(wide)).numpy()
        np.testing.assert_allclose(out, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_library_functions_of_two_arguments():
    rng = np.random.default_rng(13)
    a, b = rng.uniform(0.1, 3, 100).astype("f"), rng.uniform(0.1, 3, 100).astype("f")
    functions = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign}
    for symbol, function in functions.items():
        k = Kernel()
        out = k.run(k.op("extern_call", k.load(a), k.load(b), attrs=f'{{symbol = "{symbol}"}}'))
        np.testing.assert_allclose(out, function(a.astype("d"), b.astype("d")), rtol=1e-6)
