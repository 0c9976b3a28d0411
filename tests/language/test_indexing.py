"""Subscripts of tiles and tuples."""

import numpy as np
import pytest
from harness import NUMBERS, Array, check, random

import triton.language as tl

X = np.arange(12, dtype=np.int32) * 3
M = np.arange(24, dtype=np.int32).reshape(4, 6)
T = np.arange(60, dtype=np.int32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    "subscript",
    [
        "None",
        "None, :",
        ":, None",
        ":, None, None",
        "None, :, None",
        "None, None, :",
        "...",
        "None, ...",
        "..., None",
        ":",
    ],
)
def test_new_axes_of_rank_1(subscript):
    check(f"x[{subscript}]", {"x": X}, eval(f"X[{subscript}]"))


@pytest.mark.parametrize(
    "subscript", ["None", ":, None", ":, :, None", ":, None, :", "None, :, :", ":, None, :, None", "..., None"]
)
def test_new_axes_of_rank_2(subscript):
    check(f"x[{subscript}]", {"x": M}, eval(f"M[{subscript}]"))


@pytest.mark.parametrize("index", [
    "(None, slice(None))", "slice(2, 6)", "(slice(3), None)", "slice(None, None, None)", "(..., None)", "INDEX",
])  # fmt: skip
def test_indices_that_are_objects(index):
    """As functions that make them for any number of dimensions have it."""
    names = {"INDEX": tl.constexpr((slice(1, 4), None))}
    expected = X[eval(index, {"INDEX": (slice(1, 4), None)})]
    check(f"index = {index}\nout = x[index]", {"x": X}, expected, names=names)
    if index[0] == "(":
        check(f"index = {index}\nout = x[*index]", {"x": X}, expected)


def test_newaxis_of_a_scalar():
    check("n[None]", {"n": 5}, np.array([5], np.int32))
    check("n[None, None]", {"n": 5}, np.array([[5]], np.int32))


def test_a_colon_says_nothing_about_a_scalar():
    """As in functions that take tiles and scalars alike."""
    check("n[:]", {"n": 5}, np.array(5, np.int32))
    check("n[:, None]", {"n": 5}, np.array([5], np.int32))
    check("n[None, :]", {"n": 5}, np.array([5], np.int32))
    check("n[None, :, None]", {"n": 5}, np.array([[5]], np.int32))
    check("tl.sum(x)[:, None] + x", {"x": X}, X.sum(dtype=np.int32) + X)
    check("tl.load((x_ptr + 2)[:])", {"x": X}, np.asarray(X[2]))
    check("tl.load((x_ptr + 2)[:, None] + tl.arange(0, 3))", {"x": X}, X[2:5])


@pytest.mark.parametrize("subscript", ["0", "5", "11", "-1", "-12"])
def test_one_element(subscript):
    check(f"x[{subscript}]", {"x": X}, eval(f"X[{subscript}]"))


@pytest.mark.parametrize(
    "subscript", ["2", "-1", "0, :", ":, 3", "1, 4", "-2, -3", "2, None", ":, 2, None", "..., 1", "3, ...", "1:3, 2"]
)
def test_rows_columns_and_elements(subscript):
    check(f"x[{subscript}]", {"x": M}, np.asarray(eval(f"M[{subscript}]")))


@pytest.mark.parametrize(
    "subscript", ["1", ":, 2", ":, :, 3", "1, 2", "1, :, 3", "2, 3, 4", "..., 0", "1, ..., 2", "0, 1:3, 4"]
)
def test_rank_3(subscript):
    check(f"x[{subscript}]", {"x": T}, np.asarray(eval(f"T[{subscript}]")))


@pytest.mark.parametrize(
    "subscript",
    ["1:5", ":7", "3:", "-4:", ":-2", "::2", "1::3", "2:11:4", "0:1", "5:6", "-5:-1", "::1", "3:100", "0:12"],
)
def test_slices(subscript):
    check(f"x[{subscript}]", {"x": X}, eval(f"X[{subscript}]"))


@pytest.mark.parametrize(
    "subscript", ["1:3", ":, 2:5", "1:3, 2:5", "::2, ::3", "-1:, :2", "1:, None, :3", "1:2, 1:2", "None, 1:, 2:"]
)
def test_slices_of_rank_2(subscript):
    check(f"x[{subscript}]", {"x": M}, eval(f"M[{subscript}]"))


def test_run_time_index():
    for i in [0, 3, 11]:
        check("x[i]", {"x": X, "i": i}, np.asarray(X[i]))
    for i in [0, 2, 3]:
        check("x[i]", {"x": M, "i": i}, M[i])
        check("x[:, i]", {"x": M, "i": i}, M[:, i])
        check("x[i, i + 1]", {"x": M, "i": i}, np.asarray(M[i, i + 1]))


def test_index_in_a_loop():
    code = """
        out = tl.zeros((6,), tl.int32)
        for i in range(4):
            out += x[i] * (i + 1)
    """
    check(code, {"x": M}, (M * np.arange(1, 5)[:, None]).sum(0, dtype=np.int32))
    code = """
        out = tl.zeros((6,), tl.int32)
        for i in tl.static_range(4):
            out += x[i] * (i + 1)
    """
    check(code, {"x": M}, (M * np.arange(1, 5)[:, None]).sum(0, dtype=np.int32))


def test_index_of_an_expression():
    check("(x * 2 + 1)[3]", {"x": X}, np.asarray(X[3] * 2 + 1))
    check("(x[:, None] + x[None, :])[2, 4]", {"x": X}, np.asarray(X[2] + X[4]))
    check("(x + 1)[2:8][1:3]", {"x": X}, (X + 1)[2:8][1:3])
    check("tl.sum(x[1:3, :], axis=1)[0]", {"x": M}, np.asarray(M[1].sum(dtype=np.int32)))


@pytest.mark.parametrize("dtype", ["int1", *NUMBERS])
def test_every_dtype(dtype):
    x = random((6, 5), dtype)
    check("x[2]", {"x": x}, Array(x.values[2], dtype))
    check("x[1:4, 3]", {"x": x}, Array(x.values[1:4, 3], dtype))
    check("x[i, 4]", {"x": x, "i": 3}, Array(x.values[3, 4], dtype))


def test_bounds_from_constants():
    check("HALF = x.shape[0] // 2\nout = x[HALF:]", {"x": X}, X[6:])
    check("a = x[:6]\nb = x[6:]\nout = a * b", {"x": X}, X[:6] * X[6:])


def test_slices_join_again():
    check("tl.cat(x[:6], x[6:])", {"x": X}, X)


TUPLE = "t = (1, 2.5, x, (4, 5))\n"


@pytest.mark.parametrize(
    "code, expected",
    [
        ("x + t[0]", X + 1),
        ("t[2]", X),
        ("t[-2]", X),
        ("x + t[3][1]", X + 5),
        ("x + len(t)", X + 4),
        ("x + len(t[1:])", X + 3),
        ("x + t[-1][0]", X + 4),
        ("x + t[::3][1][0]", X + 4),
        ("x + (t[0:1] + (9, 8))[2]", X + 8),
    ],
)
def test_tuples(code, expected):
    check(TUPLE + "out = " + code, {"x": X}, expected)


def test_swap():
    check("a, b = x, x * 2\na, b = b, a\nout = a - b", {"x": X}, X)
    check("(a, b), c = (x, 2), 3\nout = a * b + c", {"x": X}, X * 2 + 3)


def test_tuple_index_in_a_static_loop():
    code = """
        terms = (x, x * 10, x * 100)
        out = tl.zeros((12,), tl.int32)
        for i in tl.static_range(len(terms)):
            out += terms[i]
    """
    check(code, {"x": X}, X * 111)
