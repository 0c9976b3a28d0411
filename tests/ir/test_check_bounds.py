"""The checks that debugging adds to accesses."""

import re

from triton import _C


def checked(text):
    return re.sub(r" +", " ", _C._check_bounds(text))


def test_scalar_access():
    text = checked("kernel @f(%x: ptr<f32>) { %v = load %x : f32  store %x, %v  return }")
    assert "kernel @f(%x: ptr<f32>, %0: i64, %1: i64)" in text
    for access in ("load", "store"):
        assert f"message = \"{access} out of bounds of the array 'x': index {{0}}, and it has {{1}} elements\"" in text
    assert "constant {value = 4} : i64" in text


def test_masks_limit_the_checks():
    text = checked(
        "kernel @f(%x: ptr<f16>, %m: tile<8xi1>) {"
        "  %0 = range {start = 0, end = 8} : tile<8xi32>  %1 = splat %x : tile<8xptr<f16>>"
        "  %p = addptr %1, %0 : tile<8xptr<f16>>"
        "  %v = load %p, %m : tile<8xf16>  store %p, %v, %m  return }"
    )
    assert len(re.findall(r"assert %\d+, %m, %\d+, %\d+ {", text)) == 2


def test_loaded_pointers_are_not_checked():
    text = checked(
        "kernel @f(%x: ptr<i64>) { %a = load %x : i64  %p = int_to_ptr %a : ptr<f32>  %v = load %p : f32  return }"
    )
    assert text.count("assert") == 1


def test_pointers_from_two_arrays_are_not_checked():
    text = checked(
        "kernel @f(%x: ptr<f32>, %y: ptr<f32>, %c: i1) {"
        "  %p = select %c, %x, %y : ptr<f32>  %v = load %p : f32  return }"
    )
    assert "assert" not in text


def test_ranges_go_with_pointers_into_functions():
    text = checked(
        'kernel @f(%x: ptr<f32>, %n: i32, %y: ptr<i8>) { call %y, %n, %x {callee = "g"}  return }\n'
        "func @g(%s: ptr<i8>, %n: i32, %t: ptr<f32>) { %v = load %t : f32  return }"
    )
    assert "kernel @f(%x: ptr<f32>, %n: i32, %y: ptr<i8>, %0: i64, %1: i64, %2: i64, %3: i64)" in text
    assert 'call %y, %n, %x, %2, %3, %0, %1 {callee = "g"}' in text
    assert text.count("assert") == 1
