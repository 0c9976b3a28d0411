"""Expressions of Triton-C: types, C's conversions, broadcasting, operators, memory, builtins."""

import math

import numpy as np
import pytest
from programs import launch

C_NAMES = {
    "int8": np.int8,
    "int16": np.int16,
    "int": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
    "bool": np.bool_,
}


def compute(expression, kind="int", *, a=None, b=None, count=1, a_kind="int", b_kind="int"):
    """The elements of an expression of `a` and `b`, which are loaded as tiles of `count` elements."""
    out = np.zeros(count, C_NAMES[kind])
    given, parameters, loads = [], "", ""
    for name, value, its in (("a", a, a_kind), ("b", b, b_kind)):
        if value is not None:
            given.append(np.array(value, C_NAMES[its]).reshape(-1))
            parameters += f", {its} *{name}_"
            loads += f"{its} {name}[{count}] = *({name}_ + i);"
    source = f"kernel void f({kind} *out{parameters}) {{ int i[{count}] = 0 ... {count}; {loads}" + (
        f"*(out + i) = {expression}; }}"
    )
    launch(source, out, *given)
    return out.tolist() if count > 1 else out[0].item()


# ---- constants


@pytest.mark.parametrize(
    "text, value",
    [("10", 10), ("0x1F", 31), ("017", 15), ("1u << 31 >> 31", 1), ("5000000000 / 1000000000", 5), ("1e1", 10),
     (".5 * 4", 2), ("1.5e+1", 15), ("2.f", 2), ("0x7fffffff", 2**31 - 1), ("true + true", 2), ("3h", 3)],
)  # fmt: skip
def test_constants(text, value):
    assert compute(text) == value


def test_the_type_of_an_integer_constant_holds_it():
    assert compute("2147483648 * 2", "int64") == 2**32
    assert compute("-2147483648", "int64") == -(2**31)
    assert compute("4294967295u + 1u", "int64") == 0
    assert compute("0xFFFFFFFF + 1", "int64") == 0
    assert compute("0xFFFFFFFFFF + 1", "int64") == 2**40


def test_a_float_constant_takes_the_type_of_what_it_meets():
    assert compute("a + 0.1", "double", a=1, a_kind="double") == 1.1
    assert compute("0.1", "double") == 0.1
    assert compute("0.1f", "double") == float(np.float32(0.1))
    assert compute("a * 0.1", "double", a=1, a_kind="float") == float(np.float32(0.1))
    assert compute("a * 0.1", "double", a=3, a_kind="half") == float(np.float16(3) * np.float16(0.1))
    assert compute("a * 0.1", "double", a=1, a_kind="int") == float(np.float32(0.1))
    assert compute("1.0 / 3.0", "double") == 1 / 3


# ---- integers as in C


@pytest.mark.parametrize("x, y", [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-1, 2)])
def test_division_truncates(x, y):
    quotient = int(x / y)
    assert compute("a / b", a=x, b=y) == quotient
    assert compute("a % b", a=x, b=y) == x - quotient * y
    assert compute(f"{x} / {y}") == quotient
    assert compute(f"{x} % {y}") == x - quotient * y


def test_unsigned_division():
    assert compute("a / b", "uint32", a=4294967290, b=10, a_kind="uint32", b_kind="uint32") == 429496729
    assert compute("a % b", "uint32", a=4294967290, b=16, a_kind="uint32", b_kind="uint32") == 10


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "bool"])
def test_narrow_integers_become_int(kind):
    high = 1 if kind == "bool" else int(np.iinfo(C_NAMES[kind]).max)
    assert compute("a + b", a=high, b=high, a_kind=kind, b_kind=kind) == 2 * high
    assert compute("-a", a=high, a_kind=kind) == -high
    if kind != "bool":
        assert compute("~a", a=high, a_kind=kind) == ~high
        assert compute("a << 8", a=high, a_kind=kind) == high << 8


def test_signed_and_unsigned_meet_in_unsigned():
    assert compute("a < b", a=-1, b=1, a_kind="int", b_kind="uint32") == 0
    assert compute("a < b", a=-1, b=1, a_kind="int", b_kind="uint16") == 1
    assert compute("a < b", a=-1, b=1, a_kind="int64", b_kind="uint32") == 1
    assert compute("a / b", "int64", a=-7, b=2, a_kind="int", b_kind="uint32") == (2**32 - 7) // 2


def test_shifts_have_the_type_of_their_left_side():
    assert compute("a >> b", a=-8, b=1) == -4
    assert compute("a >> b", "int64", a=2**31, b=4, a_kind="uint32", b_kind="int64") == 2**27
    assert compute("a << b", "int64", a=1, b=40, a_kind="int64", b_kind="int8") == 2**40


def test_bitwise_operators():
    assert compute("a & b", a=12, b=10) == 8
    assert compute("a | b", a=12, b=10) == 14
    assert compute("a ^ b", a=12, b=10) == 6
    assert compute("a & b ^ a | b", a=12, b=10) == ((12 & 10) ^ 12) | 10


def test_assignment_converts():
    assert compute("300", "int8") == 44
    assert compute("a", "int", a=-2.9, a_kind="float") == -2
    assert compute("a", "uint8", a=258) == 2
    assert compute("a", "bool", a=256) is True
    assert compute("(int8)a * 2", a=200) == (200 - 256) * 2


# ---- floats


def test_floats_meet_in_the_wider_one():
    assert compute("a + b", "double", a=2**-20, b=1, a_kind="double", b_kind="float") == 1 + 2**-20
    assert compute("a + b", "float", a=2**-20, b=1, a_kind="float", b_kind="half") == 1 + 2**-20
    assert compute("a + b", "float", a=1, b=2049, a_kind="half", b_kind="int") == 2048  # in half, as in C's complex way


def test_bfloat16_and_half_meet_in_float():
    assert compute("(bfloat16)a * (half)b", "float", a=257, b=3, a_kind="float", b_kind="float") == 256 * 3


def test_fp8_is_computed_in_float():
    assert compute("(fp8e4m3)a * (fp8e4m3)b", "float", a=15, b=15, a_kind="float", b_kind="float") == 225
    assert compute("(fp8e5m2)a + 1", "float", a=3, a_kind="float") == 4


def test_quotients_of_floats():
    assert compute("a / b", "float", a=1, b=4, a_kind="float", b_kind="int") == 0.25
    assert compute("a / 2", "float", a=5) == 2
    assert compute("a / 2.0", "float", a=5) == 2.5


# ---- logic


def test_comparisons_are_bools():
    assert compute("(a < 3) + (a == 1)", a=[0, 1, 2, 3], count=4) == [1, 2, 1, 0]
    assert compute("a != 2", "int", a=[1, 2], count=2) == [1, 0]


def test_logic_on_tiles():
    assert compute("a && b", a=[0, 0, 2, 3], b=[0, 5, 0, 6], count=4) == [0, 0, 0, 1]
    assert compute("a || b", a=[0, 0, 2, 3], b=[0, 5, 0, 6], count=4) == [0, 1, 1, 1]
    assert compute("!a", a=[0, 1, 2, 0], count=4) == [1, 0, 0, 1]


def test_the_right_side_of_a_scalar_and_runs_if_it_must():
    out, p = np.zeros(1, np.int32), np.array([5], np.int32)
    source = "kernel void f(int *out, int *p, int n) { if (n < 1 && p[n] == 5) *out = 1; else *out = 2; }"
    for n, expected in ((0, 1), (1000000000, 2)):
        launch(source, out, p, n)
        assert out[0] == expected
    launch("kernel void f(int *out, int *p, int n) { *out = n > 0 || p[n] == 5; }", out, p, 1000000000)
    assert out[0] == 1


def test_the_right_side_on_tiles_reads_only_what_counts():
    out, p = np.zeros(8, np.int32), np.arange(4, dtype=np.int32)
    launch("kernel void f(int *out, int *p) { int i[8] = 0 ... 8; *(out + i) = i < 4 && *(p + i) > 1; }", out, p)
    assert list(out) == [0, 0, 1, 1, 0, 0, 0, 0]


def test_increments():
    assert compute("(i[newaxis, :], 7)", count=1) == 7
    out = np.zeros(4, np.int32)
    launch(
        "kernel void f(int *p, int n) { int a = n; *p = a++; *(p + 1) = a; *(p + 2) = --a; *(p + 3) = a-- - a; }",
        out,
        5,
    )
    assert list(out) == [5, 6, 5, 1]


def test_assignments_have_values():
    out = np.zeros(2, np.int32)
    launch("kernel void f(int *p, int n) { int a, b; a = b = n + 1; *p = a; *(p + 1) = (a += b) * 2; }", out, 5)
    assert list(out) == [6, 24]


def test_compound_assignments_to_memory():
    p = np.array([1, 2, 3, 4], np.int32)
    launch("kernel void f(int *p) { int i[4] = 0 ... 4; *(p + i) *= 10; p[2] += 7; p[0] <<= 3; p[3]++; }", p)
    assert list(p) == [80, 20, 37, 41]


# ---- `? :`


def test_choosing_elements():
    assert compute("a > b ? a : b", a=[1, 5, 3], b=[4, 2, 3], count=3) == [4, 5, 3]
    assert compute("a > 1 ? 1 : 0.5", "float", a=[1, 2], count=2) == [0.5, 1]


def test_the_type_is_that_of_both_sides_whatever_the_condition():
    assert compute("(1 ? a : 1u) / 2", "int64", a=-2) == 2**31 - 1
    assert compute("(a > 0 ? -1 : 1u) / 2", "int64", a=1) == 2**31 - 1
    assert compute("1 ? 3 : 0.5", "double") == 3
    assert compute("sum((int[2 > 1 ? 4 : 8])1, 0)") == 4


def test_a_masked_load_reads_only_where_it_may():
    out, p = np.zeros(16, np.float32), np.arange(5, dtype=np.float32)
    launch("kernel void f(float *q, float *p) { int i[16] = 0 ... 16; *(q + i) = i < 5 ? *(p + i) : -1; }", out, p)
    assert list(out[:6]) == [0, 1, 2, 3, 4, -1]


def test_loads_on_both_sides():
    out, p, q = np.zeros(8, np.int32), np.arange(4, dtype=np.int32), np.arange(8, dtype=np.int32) * 10
    body = "int i[8] = 0 ... 8; *(out + i) = i < 4 ? *(p + i) + 1 : *(q + i) * 2;"
    launch(f"kernel void f(int *out, int *p, int *q) {{ {body} }}", out, p, q)
    assert list(out) == [1, 2, 3, 4, 80, 100, 120, 140]


def test_a_scalar_condition_runs_one_side():
    out, p = np.zeros(1, np.float32), np.array([3], np.float32)
    for n, expected in ((0, 3), (1000000000, -1)):
        launch("kernel void f(float *out, float *p, int n) { *out = n < 1 ? p[n] : -1; }", out, p, n)
        assert out[0] == expected


def test_a_scalar_condition_between_tiles():
    out = np.zeros(4, np.float32)
    source = "kernel void f(float *out, int n) { int i[4] = 0 ... 4; *(out + i) = n ? exp((float)i) : 2; }"
    launch(source, out, 0)
    assert (out == 2).all()
    launch(source, out, 1)
    assert np.allclose(out, np.exp(np.arange(4)))


# ---- tiles


def test_broadcasting_pads_on_the_left():
    out = np.zeros((2, 3, 4), np.int32)
    launch("""kernel void f(int *p) {
        int i[2] = 0 ... 2, j[3] = 0 ... 3, k[4] = 0 ... 4;
        int x[2, 3, 4] = i[:, newaxis, newaxis] * 12 + j[:, newaxis] * 4 + k;
        *(p + x) = x;
    }""", out)  # fmt: skip
    assert (out.ravel() == np.arange(24)).all()


def test_newaxis_anywhere():
    out = np.zeros((3, 2), np.int32)
    launch(
        """kernel void f(int *p) {
        int i[3] = 0 ... 3, j[2] = 0 ... 2, k[1, 3, 2] = i[newaxis, :, newaxis] * 10 + j[newaxis, :];
        *(p + i[:, newaxis] * 2 + j) = sum(k, 0);
    }""",
        out,
    )
    assert (out == np.arange(3)[:, None] * 10 + np.arange(2)).all()


def test_ranges():
    assert compute("3 ... 7", count=4) == [3, 4, 5, 6]
    assert compute("(-2 ... 2) * 3", count=4) == [-6, -3, 0, 3]


def test_pointers():
    out, x = np.zeros(4, np.float32), np.arange(10, dtype=np.float32)
    launch("""kernel void f(float *out, const float *x, int n) {
        int i[4] = 0 ... 4;
        const float *p[4] = x + n + i;
        p = p - 1;
        p += 2;
        float *q = out;
        q++;
        *(q - 1 + i) = *p;
    }""", out, x, 3)  # fmt: skip
    assert list(out) == [4, 5, 6, 7]


def test_indexing_a_pointer():
    out, x = np.zeros(4, np.int32), np.arange(10, dtype=np.int32) * 2
    launch("kernel void f(int *out, int *x) { int i[4] = 0 ... 4; out[i] = x[i + 1]; out[2] = x[9] + 1; }", out, x)
    assert list(out) == [2, 4, 19, 8]


def test_comparing_pointers():
    out = np.zeros(3, np.int32)
    launch("kernel void f(int *p, int *q) { p[0] = p == q; p[1] = p + 1 > p; p[2] = q == 0; }", out, None)
    assert list(out) == [0, 1, 1]


def test_casts_of_tiles():
    assert compute("(float[4])2 / 4", "float", count=4) == [0.5] * 4
    assert compute("(int)(a * 0.5)", a=[1, 2, 3, 5], count=4) == [0, 1, 1, 2]


# ---- builtins


def matrices(m, n, k, dtype):
    rng = np.random.default_rng(0)
    return rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (k, n)).astype(dtype)


@pytest.mark.parametrize("kind, sums", [("half", "float"), ("float", "float"), ("double", "double"), ("int8", "int")])
def test_dot(kind, sums):
    a, b = matrices(16, 32, 16, C_NAMES[kind])
    out = np.zeros((16, 32), C_NAMES[sums])
    launch(f"""kernel void f({kind} *a, {kind} *b, {sums} *c) {{
        int m[16] = 0 ... 16, n[32] = 0 ... 32, k[16] = 0 ... 16;
        {kind} A[16, 16] = *(a + m[:, newaxis] * 16 + k), B[16, 32] = *(b + k[:, newaxis] * 32 + n);
        {sums} C[16, 32] = dot(A, B, 1) + dot(A, B);
        *(c + m[:, newaxis] * 32 + n) = C;
    }}""", a, b, out)  # fmt: skip
    product = a.astype(np.float64) @ b.astype(np.float64)
    assert (out == 2 * product + 1).all()


def test_dot_of_transposed_tiles_and_its_precision():
    a, b = matrices(16, 16, 16, np.float32)
    out = np.zeros((16, 16), np.float32)
    launch("""kernel void f(float *a, float *b, float *c) {
        int i[16] = 0 ... 16, at[16, 16] = i[:, newaxis] * 16 + i;
        float A[16, 16] = *(a + at), B[16, 16] = *(b + at);
        *(c + at) = dot(trans(A), trans(B), A, "ieee");
    }""", a, b, out)  # fmt: skip
    assert (out == a.T @ b.T + a).all()


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int", "half", "float", "double"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions(name, kind, axis):
    x = np.random.default_rng(1).integers(0, 100, (8, 16)).astype(C_NAMES[kind])
    result = "double" if kind == "double" else "int" if "int" in kind else "float"
    count = 16 if axis == 0 else 8
    out = np.zeros(count, C_NAMES[result])
    launch(f"""kernel void f({kind} *x, {result} *out) {{
        int i[8] = 0 ... 8, j[16] = 0 ... 16, k[{count}] = 0 ... {count};
        {kind} X[8, 16] = *(x + i[:, newaxis] * 16 + j);
        *(out + k) = {name}(X, {axis});
    }}""", x, out)  # fmt: skip
    assert (out == getattr(x.astype(np.float64), name)(axis=axis)).all()


def test_a_reduction_to_a_scalar():
    assert compute("sum(a, 0) + max(a, 0) * 100", a=[1, 2, 3, 4], count=4) == [410] * 4


def test_extrema_of_two():
    assert compute("max(a, b)", a=[1, 5], b=[4, 2], count=2) == [4, 5]
    assert compute("fmin(a, 2)", a=[1, 5], count=2) == [1, 2]
    out = np.zeros(1, np.int32)
    launch("kernel void f(int *p, int n) { *p = min(n, 3) * 10 + max(n, 3); }", out, 7)
    assert out[0] == 37


@pytest.mark.parametrize(
    "name", ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor", "ceil", "abs"]
)
def test_functions_of_elements(name):
    x = np.array([0.25, 1.5, 2.0, 3.75], np.float32)
    others = {"rsqrt": lambda x: 1 / np.sqrt(x), "erf": np.vectorize(math.erf)}
    expected = others.get(name, getattr(np, name, None))(x)
    assert np.allclose(compute(f"{name}(a)", "float", a=x, a_kind="float", count=4), expected, rtol=1e-5)


def test_fma_cdiv_and_reshape():
    assert compute("fma(a, b, 1.0)", "float", a=2, b=3, a_kind="float", b_kind="float") == 7
    assert compute("cdiv(a, 8)", a=[1, 8, 9, 16], count=4) == [1, 1, 2, 2]
    assert compute("reshape(trans(reshape(a, 2, 3)), 6)", a=range(6), count=6) == [0, 3, 1, 4, 2, 5]


def test_atomics():
    total, best = np.zeros(4, np.int32), np.full(1, -5, np.int32)
    launch("""kernel void f(int *total, int *best) {
        int i[16] = 0 ... 16;
        @(i < 10) atomic_add(total + i % 4, 1);
        atomic_max(best, get_program_id(0));
    }""", total, best, grid=(7,))  # fmt: skip
    assert list(total) == [21, 21, 14, 14] and best[0] == 6
    old = np.zeros(2, np.int32)
    launch("kernel void f(int *p) { p[1] = atomic_cas(p, 0, 9) + 1; }", old)
    assert list(old) == [9, 1]


@pytest.mark.parametrize("name, expected", [
    ("min", 3), ("max", 12), ("and", 8), ("or", 15), ("xor", 15 ^ 0), ("xchg", 3), ("add", 15),
])  # fmt: skip
def test_an_atomic_gives_what_was_there(name, expected):
    """12, and then 3 or, for `and`, 10."""
    out, operand = np.array([12, 0], np.int32), 10 if name == "and" else 3
    launch(f"kernel void f(int *p, int n) {{ p[1] = atomic_{name}(p, n); }}", out, operand)
    assert list(out) == [expected, 12]


@pytest.mark.parametrize("name", ["max", "min", "fmax", "fmin"])
def test_a_nan_loses(name):
    x, y = [np.nan, 1.0, np.nan], [2.0, np.nan, np.nan]
    found = compute(f"{name}(a, b)", "float", a=x, b=y, a_kind="float", b_kind="float", count=3)
    assert found[:2] == [2, 1] and np.isnan(found[2])


def test_products_of_batches():
    a, b = (np.random.default_rng(seed).integers(-3, 4, (2, 16, 16)).astype(np.float16) for seed in (3, 4))
    out = np.zeros((2, 16, 16), np.float32)
    launch("""kernel void f(half *a, half *b, float *c) {
        int n[2] = 0 ... 2, i[16] = 0 ... 16;
        int at[2, 16, 16] = n[:, newaxis, newaxis] * 256 + i[:, newaxis] * 16 + i;
        half A[2, 16, 16] = *(a + at), B[2, 16, 16] = *(b + at);
        *(c + at) = dot(A, B);
    }""", a, b, out)  # fmt: skip
    assert (out == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize(
    "how, error", [("tf32", 1e-2), ("tf32x3", 1e-5), ("bf16x3", 1e-3), ("bf16x6", 1e-5), ("ieee", 1e-5)]
)
def test_how_floats_are_multiplied(how, error):
    a = np.random.default_rng(5).standard_normal((16, 16)).astype(np.float32)
    out = np.zeros((16, 16), np.float32)
    launch(f"""kernel void f(float *a, float *c) {{
        int i[16] = 0 ... 16, at[16, 16] = i[:, newaxis] * 16 + i;
        float A[16, 16] = *(a + at);
        *(c + at) = dot(A, A, "{how}");
    }}""", a, out)  # fmt: skip
    assert np.abs(out - a.astype(np.float64) @ a).max() < error


def test_sums_of_narrow_floats():
    """Of `bfloat16` they are float, of `half` added in float."""
    x = np.full(64, 257, np.float32)
    assert compute("sum((bfloat16)a, 0)", "float", a=x, a_kind="float", count=64)[0] == 64 * 256
    assert compute("sum((half)a, 0)", "float", a=[2048, 1, 1, 1], a_kind="float", count=4)[0] == 2052


def test_hints_and_barriers_change_nothing():
    assert compute("multiple_of(a, 4) + 1", a=[4, 5, 6, 7], count=4) == [5, 6, 7, 8]
    out = np.zeros(1, np.int32)
    launch("kernel void f(int *p, int n) { assume(n > 0); barrier(); *p = n; }", out, 3)
    assert out[0] == 3


def test_print(capfd):
    out = np.zeros(1, np.int32)
    launch('kernel void f(int *p, int n) { print("n is", n, 25); print("done"); *p = 1; }', out, 3)
    lines = capfd.readouterr().out.splitlines()
    said = ["idx () n is: (operand 0) 3", "idx () n is: (operand 1) 25", "done"]
    assert [line.partition("pid (0, 0, 0) ")[2] for line in lines] == said
