"""Statements of Triton-C: declarations, control flow, predicates, functions."""

import numpy as np
import pytest
from programs import launch


def ints(*values):
    return np.array(values, dtype=np.int32)


def run_scalar(body, *, inputs=(0,), functions=""):
    """What `out[0] = ...` of a kernel with the int `n` gives for each input."""
    source = functions + "kernel void f(int *out, int n) {" + body + "}"
    results = []
    for n in inputs:
        out = np.zeros(1, np.int32)
        launch(source, out, n)
        results.append(int(out[0]))
    return results


def test_a_scalar_initialises_all_of_a_tile():
    out = np.zeros((4, 8), np.float32)
    launch(
        "kernel void f(float *p) { int i[4] = 0 ... 4; int j[8] = 0 ... 8;"
        "float x[4, 8] = 1.5; *(p + i[:, newaxis] * 8 + j) = x; }",
        out,
    )
    assert (out == 1.5).all()


def test_several_variables_in_one_declaration():
    assert run_scalar("int a = 2, b = a * 3, c; c = a + b; *out = c;") == [8]


def test_inner_variables_hide_outer_ones():
    assert run_scalar("int x = 1; { int x = 10; x += 5; } *out = x;") == [1]
    assert run_scalar("int x = 1; for (int i = 0; i < 3; i++) { int x = 7; x++; } *out = x;") == [1]


def test_if_and_else():
    body = "if (n > 10) *out = 1; else if (n > 5) { *out = 2; } else *out = 3;"
    assert run_scalar(body, inputs=(20, 7, 1)) == [1, 2, 3]


def test_variables_assigned_on_one_side():
    assert run_scalar("int x = 5; if (n) x = 6; *out = x;", inputs=(0, 1)) == [5, 6]
    assert run_scalar("int x; if (n) x = 6; else x = 8; *out = x;", inputs=(0, 1)) == [8, 6]


@pytest.mark.parametrize(
    "header",
    [
        "int i = 0; i < n; i++",
        "int i = 0; i < n; ++i",
        "int i = 0; i <= n - 1; i += 1",
        "int i = 0; n > i; i = i + 1",
        "int i = n - 1; i >= 0; i--",
        "int i = n - 1; i > -1; i -= 1",
        "int i = 0; i != n; i++",
        "long i = 0; i < n; i++",
        "unsigned i = 0; i < (unsigned)n; i++",
        "int8 i = 0; i < n; i++",
        "int i = 0; i < n; i += 1, *out += 0",
    ],
)
def test_loops_that_count(header):
    body = f"int sum = 0; for ({header}) sum += (int)i * 2 + 1; *out = sum;"
    assert run_scalar(body, inputs=(0, 1, 7)) == [0, 1, 49]


def test_a_step_that_is_not_one():
    body = "int s = 0; for (int i = 3; i < n; i += 4) s = s * 10 + i; *out = s;"
    assert run_scalar(body, inputs=(3, 4, 12)) == [0, 3, 3 * 100 + 7 * 10 + 11]
    assert run_scalar("int s = 0; for (int i = n; i > 0; i -= 3) s = s * 10 + i; *out = s;", inputs=(7,)) == [741]


def test_the_variable_after_a_loop():
    assert run_scalar("int i; for (i = 2; i < n; i += 3); *out = i;", inputs=(0, 2, 3, 9)) == [2, 2, 5, 11]
    assert run_scalar("int i; for (i = n; i >= 0; i -= 4) {} *out = i;", inputs=(-3, 0, 9)) == [-3, -4, -3]


def test_a_variable_that_the_body_changes_too():
    assert run_scalar("int c = 0; for (int i = 0; i < n; i++) { c++; if (i % 2) i++; } *out = c;", inputs=(7,)) == [4]


def test_a_bound_that_the_body_changes():
    assert run_scalar("int m = n, c = 0; for (int i = 0; i < m; i++) { c++; m--; } *out = c;", inputs=(9,)) == [5]


def test_while():
    assert run_scalar("int x = n, c = 0; while (x != 1) { x = x % 2 ? 3 * x + 1 : x / 2; c++; } *out = c;",
                      inputs=(1, 6, 27)) == [0, 8, 111]  # fmt: skip


def test_a_condition_that_assigns():
    assert run_scalar("int x = n, c = 0; while ((x -= 2) > 0) c += x; *out = c;", inputs=(7,)) == [5 + 3 + 1]


def test_break():
    assert run_scalar("int s = 0; for (int i = 0; i < 100; i++) { if (i == n) break; s += i; } *out = s;",
                      inputs=(0, 5, 200)) == [0, 10, 4950]  # fmt: skip
    assert run_scalar("int i = 0; while (1) { if (i * i > n) break; i++; } *out = i;", inputs=(10,)) == [4]
    assert run_scalar("int i = 0; for (;;) { if (i++ == n) break; } *out = i;", inputs=(3,)) == [4]


def test_continue():
    body = "int s = 0; for (int i = 0; i < n; i++) { if (i % 3 == 0) continue; s += i; } *out = s;"
    assert run_scalar(body, inputs=(10,)) == [1 + 2 + 4 + 5 + 7 + 8]
    body = "int s = 0, i = 0; while (i < n) { i++; if (i == 2) continue; s += i; } *out = s;"
    assert run_scalar(body, inputs=(4,)) == [1 + 3 + 4]


def test_break_and_continue_belong_to_the_inner_loop():
    body = """int s = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) { if (j > i) break; if (j == 1) continue; s += 10 * i + j; }
            if (i == 2) continue;
            s += 1000;
        }
        *out = s;"""
    expected = 0
    for i in range(4):
        for j in range(4):
            if j > i:
                break
            if j != 1:
                expected += 10 * i + j
        expected += 1000 * (i != 2)
    assert run_scalar(body, inputs=(4,)) == [expected]


def test_return_from_a_kernel():
    body = "if (n < 0) return; *out = 1; if (n > 5) { *out = 2; return; } *out = 3;"
    assert run_scalar(body, inputs=(-1, 9, 2)) == [0, 2, 3]


def test_return_in_a_loop():
    functions = "int find(int n) { for (int i = 0; i < 50; i++) { if (i * i >= n) return i; } return -1; }"
    assert run_scalar("*out = find(n);", inputs=(0, 10, 49, 9999), functions=functions) == [0, 4, 7, -1]
    functions = """int g(int n) {
        int i = 0;
        while (1) { for (int j = 0; j < 3; j++) if (i + j == n) return i * 10 + j; i += 5; }
    }"""
    assert run_scalar("*out = g(n);", inputs=(0, 7, 11), functions=functions) == [0, 52, 101]


def test_a_test_that_must_not_run_after_break():
    out = np.zeros(1, np.int32)
    source = "kernel void f(int *q, int *p, int n) { int i = 0; while (p[i] > 0) { i++; if (i == n) break; } *q = i; }"
    launch(source, out, ints(1, 1, 1), 3)
    assert out[0] == 3


def test_stores_under_a_predicate():
    out, i = np.zeros(16, np.int32), np.arange(16)
    launch("kernel void f(int *p) { int i[16] = 0 ... 16; @(i % 3 == 1) *(p + i) = i; }", out)
    assert (out == np.where(i % 3 == 1, i, 0)).all()


def test_predicates_of_names_and_negations():
    out = np.zeros(16, np.int32)
    launch(
        "kernel void f(int *p) { int i[16] = 0 ... 16; bool low[16] = i < 4; @low *(p + i) = 1; @!low *(p + i) = 2; }",
        out,
    )
    assert (out == np.where(np.arange(16) < 4, 1, 2)).all()


def test_a_block_under_a_predicate():
    out, x = np.zeros(16, np.int32), np.arange(16, dtype=np.int32) * 3
    launch("""kernel void f(int *out, int *in) {
        int i[16] = 0 ... 16, y[16] = -1;
        @(i < 9) {
            int v[16] = *(in + i);
            y = v + 1;
            y += 1;
            @(v > 6) { y = y * 2; }
        }
        *(out + i) = y;
    }""", out, x[:9].copy())  # fmt: skip
    i = np.arange(16)
    expected = np.where(i < 9, np.where(x > 6, (x + 2) * 2, x + 2), -1)
    assert (out == expected).all()


def test_a_scalar_predicate_is_an_if():
    assert run_scalar("@(n > 2) { *out = 5; }", inputs=(1, 3)) == [0, 5]
    assert run_scalar("int x = 1; @(n > 2) x = 7; *out = x;", inputs=(1, 3)) == [1, 7]


def test_a_loop_under_a_predicate():
    out = np.zeros(8, np.int32)
    body = "int i[8] = 0 ... 8, x[8] = 0; @(i < 5) for (int k = 0; k < 4; k++) x += k; *(p + i) = x;"
    launch(f"kernel void f(int *p) {{ {body} }}", out)
    assert (out == np.where(np.arange(8) < 5, 6, 0)).all()


def test_a_loop_under_a_predicate_may_be_left():
    out = np.zeros(8, np.int32)
    body = """int i[8] = 0 ... 8, x[8] = 0;
        @(i < 5) for (int k = 0; k < 9; k++) { if (k == 1) continue; if (k == 4) break; x += k; }
        *(p + i) = x;"""
    launch(f"kernel void f(int *p) {{ {body} }}", out)
    assert (out == np.where(np.arange(8) < 5, 5, 0)).all()


def test_functions():
    functions = "int square(int x) { return x * x; } int both(int a, int b) { return square(a) + square(b); }"
    assert run_scalar("*out = both(n, 3);", inputs=(4,), functions=functions) == [25]


def test_functions_may_come_after_their_use():
    out = np.zeros(1, np.int32)
    launch("kernel void f(int *p) { *p = later(5); } int later(int x) { return x + 1; }", out)
    assert out[0] == 6


def test_a_function_takes_tiles_of_any_shape():
    out = np.zeros((4, 8), np.float32)
    launch("""float relu(float x) { return x > 0 ? x : 0; }
        kernel void f(float *p) {
            int i[4] = 0 ... 4, j[8] = 0 ... 8;
            float x[4, 8] = i[:, newaxis] - j;
            *(p + i[:, newaxis] * 8 + j) = relu(x);
        }""", out)  # fmt: skip
    assert (out == np.maximum(np.arange(4)[:, None] - np.arange(8), 0)).all()


def test_a_function_that_declares_its_shape_broadcasts_to_it():
    out = np.zeros(8, np.float32)
    launch(
        "float f8(float x[8]) { return x + 1; } kernel void f(float *p) { int i[8] = 0 ... 8; *(p + i) = f8(2); }", out
    )
    assert (out == 3).all()


def test_functions_store_through_pointers():
    out = np.zeros(4, np.int32)
    launch(
        "void put(int *p, int i, int x) { *(p + i) = x; } kernel void f(int *p) { put(p, 1, 7); put(p, 3, 9); }", out
    )
    assert list(out) == [0, 7, 0, 9]


def test_parameters_are_variables_of_the_function():
    functions = "int g(int x) { x += 1; while (x < 10) x *= 2; return x; }"
    assert run_scalar("int x = n; int y = g(x); *out = x * 100 + y;", inputs=(2,), functions=functions) == [212]


def test_early_returns_of_functions():
    functions = "int sign(int x) { if (x < 0) return -1; if (x > 0) return 1; return 0; }"
    assert run_scalar("*out = sign(n) * 10 + sign(-n);", inputs=(5, 0, -5), functions=functions) == [9, 0, -9]


def test_known_conditions_choose_what_is_compiled():
    source = """const tunable int MODE = {0, 1};
        kernel void f(int *p) { int x[4] = 1; if (MODE == 1) { x = x + 1; *p = 2; } else *p = 1; }"""
    for mode in (0, 1):
        out = np.zeros(1, np.int32)
        launch(source, out, MODE=mode)
        assert out[0] == mode + 1


def test_constants():
    source = """const int A = 4, B = A * 2; const float HALF = 0.5;
        kernel void f(float *p) { const int C = B + 1; int i[B] = 0 ... B; float x[B] = HALF * C; *(p + i) = x; }"""
    out = np.zeros(8, np.float32)
    launch(source, out)
    assert (out == 4.5).all()


def test_constants_may_be_anything_that_is_known():
    source = """int twice(int x) { return x * 2; } const int A = 3 > 2 ? twice(4) : 1, B = A && 5;
        kernel void f(int *p) { *p = A * 10 + B; }"""
    out = np.zeros(1, np.int32)
    launch(source, out)
    assert out[0] == 81


def test_tunables_have_their_first_value_or_that_of_the_launch():
    source = "const tunable int N = {8, 16}; kernel void f(int *p) { int i[N] = 0 ... N; *(p + i) = N; }"
    for given, n in (({}, 8), ({"N": 16}, 16), ({"N": 32}, 32)):
        out = np.zeros(64, np.int32)
        launch(source, out, **given)
        assert (out == np.where(np.arange(64) < n, n, 0)).all()


def test_global_ranges():
    source = """const tunable int T = {16, 32};
        kernel void f(int *p, int n) { int i[T] = get_global_range(0); @(i < n) *(p + i) = i; }"""
    for t in (16, 32):
        out = np.zeros(100, np.int32)
        launch(source, out, 100, size=("n",), T=t)
        assert (out == np.arange(100)).all()


def test_global_ranges_with_their_extent_in_brackets():
    source = """kernel void f(int *p, int w) {
            int x[8, 4] = get_global_range[8](0)[:, newaxis] * w + get_global_range[4](1);
            *(p + x) = x;
        }"""
    out = np.zeros((16, 12), np.int32)
    launch(source, out, 12, size=(16, 12))
    assert (out == np.arange(16 * 12).reshape(16, 12)).all()


def test_a_range_of_programs():
    out = np.zeros(5, np.int32)
    launch("kernel void f(int *p) { int i = get_global_range(0); p[i] = i * 10 + get_num_programs(0); }", out, size=5)
    assert list(out) == [5, 15, 25, 35, 45]
