"""Which parameters a function may store through."""

import pytest

from triton import _C

CASES = {
    "a store, and a load": (
        "kernel @f(%a: ptr<f32>, %b: ptr<f32>) { %x = load %b : f32  store %a, %x  return }",
        "10",
    ),
    "a pointer that is stored": (
        "kernel @f(%a: ptr<i64>, %b: ptr<f32>) { %x = ptr_to_int %b : i64  store %a, %x  return }",
        "10",
    ),
    "through arithmetic": (
        "kernel @f(%a: ptr<f32>, %n: i32, %b: ptr<f32>) {"
        "  %p = addptr %b, %n : ptr<f32>  %x = load %a : f32  store %p, %x  return }",
        "001",
    ),
    "through an integer": (
        "kernel @f(%a: ptr<f32>, %b: ptr<f32>) {"
        "  %i = ptr_to_int %a : i64  %p = int_to_ptr %i : ptr<f32>  %x = load %b : f32  store %p, %x  return }",
        "10",
    ),
    "atomically": (
        'kernel @f(%a: ptr<f32>, %x: f32) { %o = atomic_rmw %a, %x {kind = "fadd"} : f32  return }',
        "10",
    ),
    "only that of the values a loop carries": (
        "kernel @f(%a: ptr<f32>, %b: ptr<f32>, %n: i32) {"
        "  %0 = constant {value = 0} : i32  %1 = constant {value = 1} : i32"
        "  %p, %q = for %0, %n, %1, %a, %b : ptr<f32>, ptr<f32> { ^(%i: i32, %p1: ptr<f32>, %q1: ptr<f32>):"
        "    %x = load %p1 : f32  store %q1, %x"
        "    %p2 = addptr %p1, %1 : ptr<f32>  %q2 = addptr %q1, %1 : ptr<f32>  yield %p2, %q2 }"
        "  return }",
        "010",
    ),
    "after a loop that exchanges them": (
        "kernel @f(%a: ptr<f32>, %b: ptr<f32>, %n: i32) {"
        "  %0 = constant {value = 0} : i32  %1 = constant {value = 1} : i32"
        "  %p, %q = for %0, %n, %1, %a, %b : ptr<f32>, ptr<f32> { ^(%i: i32, %p1: ptr<f32>, %q1: ptr<f32>):"
        "    yield %q1, %p1 }"
        "  %x = load %q : f32  store %p, %x  return }",
        "110",
    ),
    "in a function that is called": (
        'kernel @f(%a: ptr<f32>, %b: ptr<f32>) { call %b, %a {callee = "g"}  return }\n'
        "func @g(%s: ptr<f32>, %t: ptr<f32>) { %x = load %s : f32  store %t, %x  return }",
        "10",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_stored_params(name):
    text, expected = CASES[name]
    assert _C._stored_params(text) == expected
