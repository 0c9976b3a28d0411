"""Corners of the language's rules, on results."""

import numpy as np
import pytest
from harness import Array, check, evaluate, random, round_to


def small(shape, dtype, seed=0, low=-3):
    return round_to(random(shape, "int32", seed, low=low, high=4).values, dtype)


@pytest.mark.parametrize("dtype", ["float8e4nv", "float8e5", "float8e4b15", "float8e4b8", "float8e5b16"])
def test_fp8_is_computed_in_fp32_and_rounded(dtype):
    limit = 1.5 if dtype == "float8e4b15" else 200.0
    x, y = (random((200,), dtype, seed, low=-limit, high=limit) for seed in (1, 2))
    a, b = x.values.astype(np.float64), y.values.astype(np.float64)
    expected = {"p": a + b, "q": a * b, "r": -a, "s": np.abs(a), "t": np.maximum(a, b), "u": np.minimum(a, b)}
    code = "p = x + y\nq = x * y\nr = -x\ns = tl.abs(x)\nt = tl.maximum(x, y)\nu = tl.minimum(x, y)"
    check(code, {"x": x, "y": y}, {name: round_to(value, dtype) for name, value in expected.items()})
    check("(x < y) & (x != 0)", {"x": x, "y": y}, (a < b) & (a != 0))


def test_two_fp8_types_meet_in_fp16():
    x, y = small((64,), "float8e4nv", 1), small((64,), "float8e5", 2)
    check("x + y", {"x": x, "y": y}, round_to(x.values + y.values, "float16"))


@pytest.mark.parametrize("left, right", [("float8e4nv", "float8e5"), ("uint8", "uint8")])
def test_dot_of_types_without_an_instruction(left, right):
    x, y = small((8, 16), left, 1, low=0), small((16, 4), right, 2, low=0)
    if left == "uint8":
        x = Array(x.values + np.uint8(250), "uint8")
    result = "int32" if left == "uint8" else "float32"
    check("tl.dot(x, y)", {"x": x, "y": y}, round_to(x.values.astype(np.float64) @ y.values, result))


def test_matrix_product_by_operator():
    x, y = small((8, 16), "float32", 1), small((16, 4), "float32", 2)
    check("x @ y", {"x": x, "y": y}, x.values @ y.values)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 16])
def test_integer_powers(exponent):
    x = random((20,), "int32", low=-3, high=4).values
    check(f"x ** {exponent}", {"x": x}, x**exponent)
    y = small((20,), "float32").values
    check(f"y ** {exponent}", {"y": y}, y**exponent)


def test_other_powers():
    x = random((50,), "float32", low=0.1, high=3).values
    check("x ** 0.5", {"x": x}, np.sqrt(x.astype(np.float64)).astype(np.float32), ulps=3)
    check("2.0 ** x", {"x": x}, np.exp2(x.astype(np.float64)).astype(np.float32), ulps=3)
    check("x ** -1", {"x": x}, (1 / x.astype(np.float64)).astype(np.float32), ulps=3)


def test_numbers_by_their_bits():
    x = random((20,), "int32").values
    check("x & 0xFFFF0000", {"x": x}, x & np.int32(-65536))
    check("x ^ 0xFFFFFFFF", {"x": x}, ~x)
    y = random((20,), "int64").values
    check("y | 0x8000000000000000", {"y": y}, y | np.int64(-(2**63)))


def test_types_of_block_pointers():
    code = """
        b = tl.make_block_ptr(x_ptr, (8, 8), (8, 1), (0, 0), (8, 8), (1, 0))
        tl.static_assert(b.type.element_ty.element_ty == tl.float16)
        tl.static_assert(b.type.element_ty.shape[1] == 8)
        tl.store(b, (x.to(tl.float32) * 2).to(b.dtype.element_ty.element_ty))
        out = tl.load(b)
    """
    x = small((8, 8), "float16")
    check(code, {"x": x}, Array(x.values * np.float16(2), "float16"))


def test_attributes():
    code = """
        tl.static_assert(x.dtype == tl.float32 and x.numel == 6 and len(x.shape) == 2 and x.type.scalar == tl.float32)
        tl.static_assert(x.type.shape[0] == 2 and x.type.is_block() and not n.type.is_block())
        tl.static_assert(x_ptr.dtype.element_ty == tl.float32 and x_ptr.type.is_ptr() and n.shape == ())
        tl.static_assert(x.T.shape[0] == 3 and x.dtype.primitive_bitwidth == 32 and not x.dtype.is_int())
        out = x.T
    """
    x = small((2, 3), "float32").values
    check(code, {"x": x, "n": 3}, x.T)


def test_masks_broadcast_with_pointers():
    """A load takes the shape that pointer, mask and other have together."""
    x = np.arange(4, dtype=np.float32)
    code = """
        m = (tl.arange(0, 4)[:, None] + tl.arange(0, 3)[None, :]) % 2 == 0
        out = tl.load(x_ptr + tl.arange(0, 4)[:, None], mask=m, other=-1)
    """
    expected = np.where((np.arange(4)[:, None] + np.arange(3)) % 2 == 0, x[:, None], np.float32(-1))
    check(code, {"x": x}, expected.astype(np.float32))


def test_boolean_memory():
    x = np.array([True, False, True, True])
    check("out = tl.load(x_ptr + tl.arange(0, 4)) & (tl.arange(0, 4) < 3)", {"x": x}, np.array([1, 0, 1, 0], bool))
    code = "tl.store(out_ptr + tl.arange(0, 4), tl.arange(0, 4) - 2)\nout = tl.load(out_ptr + tl.arange(0, 4))"
    result = evaluate(code, {}, {"out": Array(np.zeros(4, bool), "int1")})["out"].values
    assert result.tolist() == [True, True, False, True]


def test_indices_count_from_the_end():
    x = np.arange(8, dtype=np.int32)
    for i in [-1, -8, 7, 0]:
        check("x[n]", {"x": x, "n": i}, np.asarray(x[i]))
    check("x[n]", {"x": x, "n": np.asarray(5, np.uint8)}, np.asarray(x[5]))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_overflow_is_reported_in_debug_builds(dtype, operator):
    largest = np.full(4, np.iinfo(dtype).max, dtype)
    y = np.full(4, -2 if operator == "-" else 2, dtype)
    with pytest.raises(Exception, match=f"{dtype} overflow in `\\{operator}`"):
        check(f"x {operator} y", {"x": largest, "y": y}, largest, debug=True)
    check(f"tl.sum(x {operator} y)", {"x": y, "y": y}, np.asarray(eval(f"y {operator} y").sum(), np.int32), debug=True)


def test_where_of_pointers():
    x, y = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) + 100
    code = "i = tl.arange(0, 8)\nout = tl.load(tl.where(i < 3, x_ptr + i, y_ptr + i))"
    check(code, {"x": x, "y": y}, np.where(np.arange(8) < 3, x, y))


def test_reduce_over_all_dimensions_keeps_them():
    x = small((3, 4), "float32").values
    check("tl.sum(x, keep_dims=True)", {"x": x}, x.sum(keepdims=True))
    check("tl.argmax(x, None)", {"x": x}, np.asarray(x.argmax(), np.int32))
    code = "a, b = tl.max(x, None, return_indices=True, keep_dims=True)"
    check(code, {"x": x}, {"a": x.max(keepdims=True), "b": np.array([[x.argmax()]], np.int32)})


def test_indices_of_nothing_but_nan():
    """NaN loses; where there is nothing else an index is still one of the tile."""
    x = np.array([[np.nan, 1, np.nan], [2, np.nan, 5]], np.float32)
    check("tl.argmax(x, 1)", {"x": x}, np.array([1, 2], np.int32))
    check("tl.argmin(x, 1)", {"x": x}, np.array([1, 0], np.int32))
    check(
        "(tl.argmax(x, 1) >= 0) & (tl.argmax(x, 1) < 3)", {"x": np.full((2, 3), np.nan, np.float32)}, np.ones(2, bool)
    )


def test_narrow_sums():
    """Sums of halves are added up in float32; those of booleans count."""
    x = np.full(4096, 0.1, np.float16)
    check("tl.sum(x)", {"x": x}, np.float16(x.astype(np.float64).sum()))
    check("tl.sum(x > 0)", {"x": x}, np.asarray(4096, np.uint32))
    check("tl.cumsum(x, 0)", {"x": x[:100]}, np.cumsum(x[:100].astype(np.float64)).astype(np.float16), ulps=1)


@pytest.mark.parametrize("shape", [(8,), (3, 16), (4, 2, 8)])
def test_bitonic_merge(shape):
    x = np.sort(random(shape, "int32").values)
    half = shape[-1] // 2
    rising_then_falling = np.concatenate([x[..., :half], x[..., half:][..., ::-1]], -1)
    check("tl.bitonic_merge(x)", {"x": rising_then_falling}, np.sort(x))
    check("tl.bitonic_merge(x, descending=True)", {"x": rising_then_falling}, np.sort(x)[..., ::-1])


@pytest.mark.parametrize("dim", [0, 1, -2])
def test_sort_along_any_dimension(dim):
    x = random((6, 5, 3), "float32").values
    check(f"tl.sort(x, {dim})", {"x": x}, np.sort(x, dim))
    expected = np.flip(np.sort(x, dim), dim).take(range(2), dim)
    check(f"tl.topk(x, 2, {dim})", {"x": x}, expected)


def test_sort_puts_nan_last():
    x = np.array([2, np.nan, -np.inf, 0.0, -np.nan, 5, -1], np.float32)
    check("tl.sort(x)", {"x": x}, np.sort(x))
    check("tl.sort(x)", {"x": np.array([True, False, True])}, np.array([False, True, True]))


def test_squeeze_and_unsqueeze():
    x = small((3, 4), "float32").values
    check("x.unsqueeze(1)", {"x": x}, x[:, None])
    check("tl.squeeze(x[:, None, :], 1)", {"x": x}, x)
