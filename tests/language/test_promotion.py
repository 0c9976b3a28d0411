"""The dtype of a result: the documented rules (`harness.promoted`), tried on every pair of dtypes.

A Python number or constexpr is weak: it takes the other's dtype unless it is of a higher kind.
"""

import itertools

import numpy as np
import pytest
from harness import DTYPES, FP8, INTS, NUMBERS, Array, check, converted, define, promoted, random, round_to

EVERY = ["int1", *NUMBERS, *FP8]


def divided(a, b):
    """The dtype of a true division: integers are divided in float32, and so are the 16-bit floats."""
    both = promoted(a, b)
    return "float32" if DTYPES[both].kind != "float" or DTYPES[both].bits == 16 else both


def assert_dtypes(lines):
    """Compiles one kernel that proves, for each (expression, dtype), what dtype the expression has."""
    text = "import triton\n\n@triton.jit\ndef kernel():\n"
    for name in EVERY:
        text += f"    {name} = tl.full((2,), 1, tl.{name})\n    s_{name} = tl.full((), 1, tl.{name})\n"
    for expression, dtype in lines:
        text += f"    got = {expression}\n"
        text += f'    tl.static_assert(got.dtype == tl.{dtype}, f"{expression} is {{got.dtype}}, not {dtype}")\n'
    define(text)["kernel"][(1,)]()


def pairs(names):
    return list(itertools.product(names, names))


ARITHMETIC = [(a, b) for a, b in pairs(EVERY) if promoted(a, b) not in FP8]


@pytest.mark.parametrize("left", EVERY)
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_arithmetic(left, operator):
    # booleans among themselves are no numbers; fp8 is computed in float16
    rows = [(b, promoted(left, b)) for b in EVERY if (left, b) != ("int1", "int1")]
    assert_dtypes([(f"{left} {operator} {b}", dtype) for b, dtype in rows if dtype not in FP8])


@pytest.mark.parametrize("left", EVERY)
def test_true_division(left):
    rows = [b for b in EVERY if (left, b) in ARITHMETIC and same_sign(left, b)]
    assert_dtypes([(f"{left} / {b}", divided(left, b)) for b in rows])


def same_sign(a, b):
    kinds = {DTYPES[a].kind, DTYPES[b].kind} - {"bool"}
    return "float" in kinds or len(kinds) == 1


@pytest.mark.parametrize("operator", ["//", "%", "&", "|", "^"])
def test_integer_operators(operator):
    division = operator in ("//", "%")
    rows = [(a, b) for a, b in pairs(INTS) if same_sign(a, b) or not division]
    assert_dtypes([(f"{a} {operator} {b}", promoted(a, b)) for a, b in rows])


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_give_booleans(operator):
    assert_dtypes([(f"{a} {operator} {b}", "int1") for a, b in ARITHMETIC])


@pytest.mark.parametrize("call", ["tl.where(int1, {}, {})", "tl.maximum({}, {})", "tl.minimum({}, {})"])
def test_functions_promote_their_operands(call):
    names = [name for name in EVERY if name not in FP8]
    rows = [(a, b) for a, b in pairs(names) if "where" in call or "int1" not in (a, b)]
    assert_dtypes([(call.format(a, b), promoted(a, b)) for a, b in rows])


def test_scalar_values_of_the_kernel_are_no_weak_numbers():
    """A run-time scalar has a dtype and promotes as a tile does."""
    assert_dtypes([(f"{a} + s_{b}", promoted(a, b)) for a, b in pairs(NUMBERS)])
    assert_dtypes([(f"s_{a} + s_{b}", promoted(a, b)) for a, b in pairs(NUMBERS)])


def test_weak_numbers():
    rows = []
    for name in EVERY:
        dtype = DTYPES[name]
        if name in FP8:
            continue
        weak = {"bool": "int32", "float": name}.get(dtype.kind, name)
        rows += [(f"{name} + 1", weak), (f"1 + {name}", weak), (f"{name} * 2", weak), (f"3 - {name}", weak)]
        real = name if dtype.kind == "float" else "float32"
        rows += [(f"{name} + 1.0", real), (f"2.5 * {name}", real)]
        if dtype.kind != "bool":
            rows += [(f"{name} + True", name)]
            rows += [(f"tl.where(int1, {name}, 0)", name), (f"tl.where(int1, 1, {name})", name)]
            rows += [(f"tl.maximum({name}, 0)", name)]
        if dtype.kind in ("int", "uint"):
            rows += [(f"{name} // 2", name), (f"{name} % 2", name), (f"{name} & 1", name), (f"{name} << 1", name)]
        rows += [(f"{name} < 1", "int1"), (f"1.5 > {name}", "int1")]
    assert_dtypes(rows)


def test_weak_numbers_of_a_higher_kind():
    rows = [("int8 + 0.5", "float32"), ("int64 + 0.5", "float32"), ("int1 + 2147483648", "uint32")]
    rows += [("float16 + 65504", "float16"), ("float16 / 2", "float32"), ("2 / float16", "float32")]
    rows += [("bfloat16 / 2", "float32"), ("float32 / 2", "float32"), ("float64 / 2", "float64")]
    rows += [("int32 / 2", "float32"), ("int1 + 4294967296", "int64"), ("bfloat16 + 1.5", "bfloat16")]
    assert_dtypes(rows)


def test_constexprs_are_weak_too():
    space = {"C": 3, "F": 1.5}
    check("x + C", {"x": np.ones(4, np.int8)}, np.full(4, 4, np.int8), names=_constexprs(space))
    check("x * F", {"x": np.ones(4, np.float16)}, np.full(4, 1.5, np.float16), names=_constexprs(space))


def _constexprs(values):
    import triton.language as tl

    return {name: tl.constexpr(value) for name, value in values.items()}


COMPUTED = ["int8", "int32", "int64", "uint8", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("a, b", list(itertools.product(COMPUTED, COMPUTED)))
def test_values_are_converted_before_they_are_added(a, b):
    x, y = random((64,), a, seed=1), random((64,), b, seed=2)
    both = promoted(a, b)
    left, right = (converted(value, both).values for value in (x, y))
    with np.errstate(all="ignore"):
        if DTYPES[both].kind == "float":
            expected = round_to(left.astype(np.float64) + right.astype(np.float64), both)
        else:
            expected = Array(left + right, both)
    check("x + y", {"x": x, "y": y}, expected)


def integers(dtype):
    return range(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("number", [-1, 300, -(2**31) - 1, 2**31, 2**32, 2**40, 2**63])
def test_comparisons_with_numbers_beyond_the_type(dtype, number):
    """They have a type of their own, and promote as tiles do; only order among unsigned and negative is refused."""
    x = np.array([0, 1, -1, 100, 127], "int64").astype(dtype)
    common = dtype
    if number not in integers(dtype):
        own = next(name for name in ("int32", "uint32", "int64", "uint64") if number in integers(name))
        common = max(dtype, own, key=lambda name: (np.iinfo(name).bits, name.startswith("u")))
    y, other = x.astype(common), np.array(number % 2**64, "uint64").astype(common)
    check(f"x == {number}", {"x": x}, y == other)
    check(f"{number} != x", {"x": x}, y != other)
    if number >= 0 or not dtype.startswith("u"):
        check(f"x < {number}", {"x": x}, y < other)
        check(f"{number} <= x", {"x": x}, y >= other)
