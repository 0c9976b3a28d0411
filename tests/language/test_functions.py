"""Functions called from kernels: arguments, results, closures, specialisation."""

import numpy as np
import pytest
from harness import Buffer, check, define, jit

import triton
import triton.language as tl

X = np.arange(1, 9, dtype=np.int32)

FUNCTIONS = define("""
    @triton.jit
    def double(x):
        return x * 2

    @triton.jit
    def twice_double(x):
        return double(double(x))

    @triton.jit
    def several(a, b):
        return a + b, a - b, (a, b)

    @triton.jit
    def nothing(p, value):
        tl.store(p, value)

    @triton.jit
    def defaults(x, factor=3, offset: tl.constexpr = 1):
        return x * factor + offset

    @triton.jit
    def constant(x, N: tl.constexpr):
        return x + tl.sum(tl.arange(0, N))

    @triton.jit
    def branches(x, n):
        if n > 2:
            return x * 10
        else:
            return x * 100

    @triton.jit
    def early(x, n):
        if n > 2:
            return x
        x += 1
        if n > 1:
            return x
        return x + 1

    @triton.jit
    def changes_its_parameter(x):
        x += 100
        return x

    @triton.jit
    def apply(f, x):
        return f(x)

    @triton.jit
    def either(x, FLAG: tl.constexpr):
        if FLAG:
            return x.to(tl.float32)
        else:
            return x

    @triton.jit
    def annotated(x: tl.tensor, n: "i32", *, scale: tl.constexpr = 2) -> tl.tensor:
        return x * n * scale

    @triton.jit(noinline=True)
    def apart(x, n):
        return x * n + 1

    @triton.jit(noinline=True)
    def apart_scalar(a, b):
        if a > b:
            return a
        return b * 2

    @triton.jit(noinline=True)
    def apart_stores(p, n):
        for i in range(n):
            tl.store(p + i, i * i)

    @triton.jit
    def unpack(t):
        a, b = t
        return a * b

    @triton.jit
    def variadic(first, *rest):
        total = first
        for i in tl.static_range(len(rest)):
            total += rest[i]
        return total

    @triton.constexpr_function
    def next_even(n):
        return n + n % 2

    @triton.constexpr_function
    def extents(n):
        return (n, 2 * n)
""")
NAMES = {name: value for name, value in FUNCTIONS.items() if not name.startswith("__") and name not in ("tl", "triton")}

CALLS = [
    ("double(x)", X * 2), ("twice_double(x) + double(1)", X * 4 + 2), ("several(x, 1)[0]", X + 1),
    ("several(x, y)[2][1]", X * 3),
    ("several(b=x, a=y)[1]", X * 2), ("defaults(x)", X * 3 + 1), ("defaults(x, 5)", X * 5 + 1),
    ("defaults(x, offset=4)", X * 3 + 4),
    ("defaults(x, factor=y)", X * X * 3 + 1), ("constant(x, 5)", X + 10), ("constant(x, N=3)", X + 3),
    ("branches(x, n)", X * 10),
    ("branches(x, n - 3)", X * 100), ("early(x, n)", X), ("early(x, n - 3)", X + 1), ("early(x, n - 5)", X + 2),
    ("changes_its_parameter(x) + x", X * 2 + 100), ("apply(double, x)", X * 2), ("apply(twice_double, x)", X * 4),
    ("either(x, False)", X), ("either(x, True)", X.astype(np.float32)), ("annotated(x, 3)", X * 6),
    ("annotated(x, 3, scale=5)", X * 15),
    ("apart(x, n)", X * 5 + 1), ("apart(apart(x, 2), 3)", (X * 2 + 1) * 3 + 1), ("x + apart_scalar(n, 2)", X + 5),
    ("x + apart_scalar(n, 9)", X + 18), ("unpack((x, 3))", X * 3), ("unpack((x, y))", X * X * 3), ("variadic(x)", X),
    ("variadic(x, y, 1)", X * 4 + 1), ("x + next_even(3)", X + 4),
    ("x + tl.sum(tl.zeros(extents(4), tl.int32) + 1)", X + 32),
    ("double(x=x)", X * 2), ("x + double(n)", X + 10), ("double(x[:, None])[:, 0]", X * 2),
    ("double.fn is None or x", None),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", [row for row in CALLS if row[1] is not None])
def test_calls(code, expected):
    check(code, {"x": X, "y": X * 3, "n": 5}, expected.astype(expected.dtype), names=NAMES)


def test_several_results_are_unpacked():
    check(
        "a, b, (c, d) = several(x, y)\nout = a + b * 2 + c * 4 + d * 8",
        {"x": X, "y": X * 3},
        X * 4 - X * 4 + X * 4 + X * 24,
        names=NAMES,
    )


@pytest.mark.compiled
def test_results_without_a_name_are_dropped():
    check(
        "a, b = several(x, y)\nc, d = a, n, b\nout = b + c * 0 + d",
        {"x": X, "y": X * 3, "n": 5},
        5 - X * 2,
        names=NAMES,
    )


def test_functions_with_effects():
    check(
        "nothing(x_ptr + 2, 77)\nout = tl.load(x_ptr + tl.arange(0, 8))",
        {"x": X},
        np.where(np.arange(8) == 2, 77, X),
        names=NAMES,
    )
    code = "apart_stores(x_ptr, n)\nout = tl.load(x_ptr + tl.arange(0, 8))"
    check(code, {"x": X, "n": 5}, np.where(np.arange(8) < 5, np.arange(8, dtype=np.int32) ** 2, X), names=NAMES)


def test_one_function_for_several_types():
    check(
        "double(x).to(tl.float32) + double(y)",
        {"x": X, "y": X.astype(np.float32)},
        (X * 4).astype(np.float32),
        names=NAMES,
    )
    code = "apart(x, 2).to(tl.float32) + apart(y, 3)"
    check(code, {"x": X, "y": X.astype(np.float32)}, (X * 5 + 2).astype(np.float32), names=NAMES)


def test_calls_in_loops():
    check(
        "out = x\nfor i in range(3):\n    out = defaults(out, i)", {"x": X}, ((X * 0 + 1) * 1 + 1) * 2 + 1, names=NAMES
    )
    check("out = x\nfor i in range(3):\n    out = apart(out, i)", {"x": X}, ((X * 0 + 1) * 1 + 1) * 2 + 1, names=NAMES)


SIZE = tl.constexpr(8)
PLAIN = 3


def test_globals():
    @triton.jit
    def kernel(out):
        tl.store(out + tl.arange(0, SIZE), tl.arange(0, SIZE) * SIZE)

    out = Buffer(np.zeros(8, np.int32))
    kernel[(1,)](out.argument)
    assert (out.host().values == np.arange(8) * 8).all()


def test_closures():
    def make(factor, function):
        @triton.jit
        def kernel(x, out):
            i = tl.arange(0, 8)
            tl.store(out + i, function(tl.load(x + i)) * factor)

        return kernel

    for factor, function, expected in [(3, "double", X * 6), (5, "twice_double", X * 20)]:
        out = Buffer(np.zeros(8, np.int32))
        make(tl.constexpr(factor), NAMES[function])[(1,)](Buffer(X).argument, out.argument)
        assert (out.host().values == expected).all()


def test_a_changed_global_compiles_anew():
    source = "def kernel(out):\n    tl.store(out, VALUE)\n"
    for value in [1, 2]:
        kernel = jit(source, VALUE=tl.constexpr(value))
        out = Buffer(np.zeros(1, np.int32))
        kernel[(1,)](out.argument)
        assert out.host().values[0] == value


def test_tuple_arguments():
    kernel = jit("""
        def kernel(t, out, strides, scale: tl.constexpr):
            i = tl.arange(0, 4)[:, None] * strides[0] + tl.arange(0, 2)[None, :] * strides[1]
            tl.store(out + i, (tl.load(t[0] + i) + tl.load(t[1][0] + i) * t[1][1]) * scale[0])
    """)
    out = Buffer(np.zeros(8, np.int32))
    kernel[(1,)]((Buffer(X).argument, (Buffer(X * 10).argument, 3)), out.argument, (2, 1), (7, None))
    assert (out.host().values == (X + X * 30) * 7).all()


def test_none_arguments():
    kernel = jit("""
        def kernel(x, bias, out, n):
            i = tl.arange(0, 8)
            y = tl.load(x + i)
            if bias is not None:
                y += tl.load(bias + i)
            if n is None:
                y *= 2
            tl.store(out + i, y)
    """)
    for bias, n, expected in [(None, None, X * 2), (X, 4, X * 2), (X, None, X * 4), (None, 1, X)]:
        out = Buffer(np.zeros(8, np.int32))
        kernel[(1,)](Buffer(X).argument, None if bias is None else Buffer(bias).argument, out.argument, n)
        assert (out.host().values == expected).all()


def test_keyword_and_default_arguments_of_kernels():
    kernel = jit("""
        def kernel(out, a, b=5, N: tl.constexpr = 4):
            tl.store(out + tl.arange(0, N), a * 10 + b)
    """)
    for arguments, keywords, expected in [
        ((1,), {}, 15),
        ((1, 2), {}, 12),
        ((), {"a": 3, "b": 4}, 34),
        ((1,), {"N": 2}, 15),
    ]:
        out = Buffer(np.full(4, -1, np.int32))
        kernel[(1,)](out.argument, *arguments, **keywords)
        size = keywords.get("N", 4)
        assert out.host().values.tolist() == [expected] * size + [-1] * (4 - size)


def test_recursion_is_an_error():
    space = define(
        "@triton.jit\ndef f(x):\n    return f(x) + 1\n\n@triton.jit\ndef kernel(out):\n    tl.store(out, f(1))\n"
    )
    with pytest.raises(triton.CompilationError, match="(?i)recurs"):
        space["kernel"][(1,)](Buffer(np.zeros(1, np.int32)).argument)


def test_recursion_that_ends_at_compile_time():
    space = define("""
        @triton.jit
        def power(x, N: tl.constexpr):
            if N == 0:
                return x * 0 + 1
            else:
                return x * power(x, N - 1)
    """)
    check("power(x, 3)", {"x": X}, X**3, names={"power": space["power"]})
