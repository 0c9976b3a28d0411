"""The fold expressions of ops.def against NumPy (and torch for the formats that NumPy lacks)."""

import itertools
import math
import random

import numpy as np
import pytest
import torch

from triton import _C

ROWS = {row[0]: row for row in _C._operations()}
INTS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
TORCH = {"bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
UNSPECIFIED = None


def wrap(value, bits):
    value &= (1 << bits) - 1
    return value if bits == 1 or value < 1 << (bits - 1) else value - (1 << bits)


def truncating(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def division(a, b, bits, remainder=False):
    if b == 0 or (b == -1 and a == -(1 << (bits - 1))):
        return UNSPECIFIED
    quotient = truncating(a, b)
    return a - quotient * b if remainder else quotient


def unsigned_division(a, b, remainder=False):
    return UNSPECIFIED if b == 0 else a % b if remainder else a // b


# Python's integers are exact: (signed a, signed b, unsigned a, unsigned b, bits) -> result before it is wrapped.
INT_REFERENCE = {
    "add": lambda a, b, ua, ub, n: a + b,
    "sub": lambda a, b, ua, ub, n: a - b,
    "mul": lambda a, b, ua, ub, n: a * b,
    "mulhi_s": lambda a, b, ua, ub, n: a * b >> n,
    "mulhi_u": lambda a, b, ua, ub, n: ua * ub >> n,
    "div_s": lambda a, b, ua, ub, n: division(a, b, n),
    "div_u": lambda a, b, ua, ub, n: unsigned_division(ua, ub),
    "rem_s": lambda a, b, ua, ub, n: division(a, b, n, remainder=True),
    "rem_u": lambda a, b, ua, ub, n: unsigned_division(ua, ub, remainder=True),
    "and": lambda a, b, ua, ub, n: a & b,
    "or": lambda a, b, ua, ub, n: a | b,
    "xor": lambda a, b, ua, ub, n: a ^ b,
    "shl": lambda a, b, ua, ub, n: ua << ub if ub < n else 0,
    "shr_s": lambda a, b, ua, ub, n: a >> min(ub, n),
    "shr_u": lambda a, b, ua, ub, n: ua >> min(ub, n),
    "min_s": lambda a, b, ua, ub, n: min(a, b),
    "min_u": lambda a, b, ua, ub, n: min(ua, ub),
    "max_s": lambda a, b, ua, ub, n: max(a, b),
    "max_u": lambda a, b, ua, ub, n: max(ua, ub),
    "abs_s": lambda a, b, ua, ub, n: abs(a),
    "popcount": lambda a, b, ua, ub, n: ua.bit_count(),
    "clz": lambda a, b, ua, ub, n: n - ua.bit_length(),
    "eq": lambda a, b, ua, ub, n: a == b,
    "ne": lambda a, b, ua, ub, n: a != b,
    "lt_s": lambda a, b, ua, ub, n: a < b,
    "le_s": lambda a, b, ua, ub, n: a <= b,
    "gt_s": lambda a, b, ua, ub, n: a > b,
    "ge_s": lambda a, b, ua, ub, n: a >= b,
    "lt_u": lambda a, b, ua, ub, n: ua < ub,
    "le_u": lambda a, b, ua, ub, n: ua <= ub,
    "gt_u": lambda a, b, ua, ub, n: ua > ub,
    "ge_u": lambda a, b, ua, ub, n: ua >= ub,
}


def number_minimum(a, b):
    return np.fmin(a, b) if a != b else a if np.signbit(a) else b


def number_maximum(a, b):
    return np.fmax(a, b) if a != b else b if np.signbit(a) else a


def nan_wins(function):
    return lambda a, b: a + b if np.isnan(a) or np.isnan(b) else function(a, b)


FLOAT_REFERENCE = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "fdiv_rn": np.divide,
    "frem": np.fmod, "fneg": np.negative, "fabs": np.abs,
    "fmin": number_minimum, "fmax": number_maximum,
    "fmin_nan": nan_wins(number_minimum), "fmax_nan": nan_wins(number_maximum),
    "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "sqrt_rn": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "erf": lambda a: type(a)(math.erf(a)),
    "feq": np.equal, "fne": np.not_equal, "flt": np.less, "fle": np.less_equal, "fgt": np.greater,
    "fge": np.greater_equal,
}  # fmt: skip
INEXACT = {"rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf"}


def int_values(bits):
    top = 1 << (bits - 1)
    if bits == 1:
        return [0, 1]
    return [0, 1, 2, 3, 7, -1, -2, -7, bits, bits - 1, top - 1, -top, *(random.randrange(-top, top) for _ in range(8))]


def float_values(type):
    tiny = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}[type]
    values = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, tiny, 5 * tiny, 1e-3, 1e4, math.inf]
    values += [*(random.uniform(0, 5) for _ in range(5)), *(2 ** random.uniform(-14, 15) for _ in range(5))]
    return [cast(x, type) for x in [*values, *(-x for x in values), math.nan]]


def cast(value, type):
    if type in NUMPY:
        with np.errstate(over="ignore"):
            return float(NUMPY[type](value))
    return float(torch.tensor(value, dtype=torch.float64).to(TORCH[type]).to(torch.float64))


def agree(ours, reference, type=None, ulps=0):
    if math.isnan(reference):
        return math.isnan(ours)
    if ours == reference:
        return math.copysign(1, ours) == math.copysign(1, reference)
    if not ulps or math.isinf(ours) or math.isinf(reference):
        return False
    digits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[type]
    smallest = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}[type]
    return abs(ours - reference) <= ulps * max(2.0 ** (math.frexp(reference)[1] - 1 - digits), smallest)


def test_every_row_has_a_reference():
    named = INT_REFERENCE.keys() | FLOAT_REFERENCE.keys() | {"fma"}
    assert named == {name for name, row in ROWS.items() if row[6] & {"on ints", "on floats"}}


@pytest.mark.parametrize("type", INTS)
@pytest.mark.parametrize("op", INT_REFERENCE)
def test_integers(op, type):
    random.seed(0)
    bits, operands = INTS[type], ROWS[op][2]
    compares = ROWS[op][5] == "compare"
    for values in itertools.product(int_values(bits), repeat=operands):
        signed = [-x if bits == 1 else x for x in values]
        unsigned = [x & ((1 << bits) - 1) for x in values]
        a, b = [*signed, 0][:2]
        ua, ub = [*unsigned, 0][:2]
        expected = INT_REFERENCE[op](a, b, ua, ub, bits)
        if expected is not UNSPECIFIED:
            expected = int(expected) if compares else wrap(expected, bits)
        assert _C._eval_scalar(op, type, "i1" if compares else type, *values) == expected, values


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", FLOAT_REFERENCE)
def test_floats(op, type):
    random.seed(0)
    compute = np.float64 if type == "f64" else np.float32
    compares = ROWS[op][5] == "compare"
    for values in itertools.product(float_values(type), repeat=ROWS[op][2]):
        expected = FLOAT_REFERENCE[op](*map(compute, values))
        ours = _C._eval_scalar(op, type, "i1" if compares else type, *values)
        if compares:
            assert ours == int(expected), values
        else:
            assert agree(ours, cast(float(expected), type), type, ulps=2 if op in INEXACT else 0), (
                values,
                ours,
                expected,
            )


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_fma_rounds_once(type):
    step = 2.0 ** -(23 if type == "f32" else 52)
    assert _C._eval_scalar("fma", type, type, 1 + step, 1 + step, -(1 + 2 * step)) == step * step
    assert _C._eval_scalar("fma", "f16", "f16", 1.0, 1.0, 1.0) is None


def test_select():
    assert _C._eval_scalar("select", "f32", "f32", 1, 2.5, 3.5) == 2.5
    assert _C._eval_scalar("select", "i8", "i8", 0, 2, -3) == -3


# ---- casts


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", INTS)
def test_integer_casts(source, target):
    random.seed(0)
    n, m = INTS[source], INTS[target]
    for value in int_values(n):
        if m < n:
            assert _C._eval_scalar("trunc", source, target, value) == wrap(value, m)
        elif m > n:
            assert _C._eval_scalar("ext_s", source, target, value) == wrap(-value if n == 1 else value, m)
            assert _C._eval_scalar("ext_u", source, target, value) == wrap(value & ((1 << n) - 1), m)


def nearest(value, digits, top):
    """An integer as a float of so many significant bits: nearest, ties to even."""
    shift = max(abs(value).bit_length() - digits, 0)
    low, whole = abs(value) & ((1 << shift) - 1), abs(value) >> shift
    half = (1 << shift) >> 1
    whole += shift > 0 and (low > half or (low == half and whole & 1))
    result = whole << shift
    result = math.inf if result > top else float(result)
    return -result if value < 0 else result


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
def test_integers_to_floats(source, target):
    random.seed(0)
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[target]
    top = 65504 if target == "f16" else 2**128
    bits = INTS[source]
    high = max(bits - 2, 0)
    ties = [wrap((1 << high) + (1 << max(high - digits, 0)) + d, bits) for d in (-1, 0, 1)]
    for value in [*int_values(bits), *(ties if bits > 8 else [])]:
        signed, unsigned = -value if bits == 1 else value, value & ((1 << bits) - 1)
        assert _C._eval_scalar("int_to_float_s", source, target, value) == nearest(signed, digits, top), value
        assert _C._eval_scalar("int_to_float_u", source, target, value) == nearest(unsigned, digits, top), value


@pytest.mark.parametrize("target", INTS)
def test_floats_to_integers(target):
    bits = INTS[target]
    for value in [0.0, -0.0, 0.9, -0.9, 1.5, -1.0, 2.0, 127.5, -128.5, 2.0**31, -(2.0**31), 2.0**63, 2.0**64, math.nan]:
        whole = None if math.isnan(value) else math.trunc(value)
        low, high = -(1 << (bits - 1)), 1 << (bits - 1)
        signed = wrap(whole, bits) if whole is not None and low <= whole < high else None
        unsigned = wrap(whole, bits) if whole is not None and 0 <= whole < 1 << bits else None
        assert _C._eval_scalar("float_to_int_s", "f64", target, value) == signed, value
        assert _C._eval_scalar("float_to_int_u", "f64", target, value) == unsigned, value


@pytest.mark.parametrize("target", [*NUMPY, *TORCH])
def test_float_casts(target):
    random.seed(0)
    largest = {"f8e4m3": 448.0, "f8e5m2": 57344.0}.get(target)
    values = [0.0, 1.0, math.inf, math.nan, 1e-8, 3e-5, 65519.9, 65520.0, 500.0, 1e30]
    values += [random.uniform(-10, 10) for _ in range(100)] + [2 ** random.uniform(-20, 10) for _ in range(200)]
    for value in values:
        value = cast(value, "f32")  # torch goes from f64 to fp8 through f32
        if target == "bf16" or target in NUMPY:
            expected = cast(value, target)
        elif math.isnan(value):
            expected = value
        else:
            expected = (
                math.copysign(min(abs(cast(value, target)), largest), value) if abs(value) <= largest else largest
            )
        assert agree(_C._eval_scalar("float_cast", "f32", target, value), expected), value


def test_bitcasts():
    for value in [0.0, -0.0, 1.0, -2.5, math.inf, 1e-40]:
        bits = int(np.float32(value).view(np.int32))
        assert _C._eval_scalar("bitcast", "f32", "i32", value) == bits
        assert agree(_C._eval_scalar("bitcast", "i32", "f32", bits), float(np.float32(value)))
    assert _C._eval_scalar("bitcast", "f32", "i32", math.nan) is None
    assert _C._eval_scalar("bitcast", "i32", "f32", 0x7FC00001) is None
    assert _C._eval_scalar("bitcast", "i16", "f16", 0x3C00) == 1.0
    assert _C._eval_scalar("bitcast", "bf16", "i16", 1.0) == 0x3F80
    assert _C._eval_scalar("bitcast", "i8", "f8e5m2", 0x7C) == math.inf
    assert _C._eval_scalar("bitcast", "f8e5m2", "i8", -math.inf) == 0xFC - 256
    assert _C._eval_scalar("float_cast", "f32", "f8e5m2", math.inf) == 57344.0
