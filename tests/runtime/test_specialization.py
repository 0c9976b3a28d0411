"""What a variant of a kernel is compiled for, and when two launches share one."""

import enum
import gc
from collections import namedtuple

import numpy as np
import pytest
import torch

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def nothing(x):
    pass


@triton.jit(do_not_specialize=["x"])
def any_value(x):
    pass


@triton.jit(do_not_specialize_on_alignment=["x"])
def any_alignment(x):
    pass


@triton.jit
def constant(x: tl.constexpr):
    pass


def signature(kernel, value, **options):
    """Type and divisibility of the parameter `x`, or the constant it became."""
    metadata = kernel.warmup(value, grid=(1,), **options).metadata
    if metadata.signature["x"] == "constexpr":
        return metadata.constants["x"]
    return metadata.signature["x"], metadata.divisibility["x"]


@pytest.mark.parametrize(
    "value, expected",
    [
        (2, ("i32", 1)),
        (0, ("i32", 16)),
        (4, ("i32", 4)),
        (12, ("i32", 4)),
        (24, ("i32", 8)),
        (1000, ("i32", 8)),
        (1024, ("i32", 16)),
        (-16, ("i32", -16)),
        (-1, ("i32", -1)),
        (2**31 - 1, ("i32", 1)),
        (2**31, ("i64", 16)),
        (-(2**31) - 1, ("i64", -1)),
        (2**63 - 1, ("i64", 1)),
        (2**63, ("u64", -16)),  # as a signed number
        (2**64 - 1, ("u64", -1)),
        (1.5, ("fp32", 1)),
        (True, ("i1", 1)),
        (np.int8(3), ("i32", 1)),
        (np.int64(16), ("i32", 16)),
        (np.float64(2), ("fp32", 1)),
        (np.float16(2), ("fp32", 1)),
        (np.bool_(True), ("i1", 1)),
        (enum.IntEnum("E", {"a": 8}).a, ("i32", 8)),
    ],
    ids=repr,
)
def test_numbers(value, expected):
    assert signature(nothing, value) == expected


def test_one_is_a_constant():
    assert signature(nothing, 1) == 1
    assert signature(nothing, np.int32(1)) == 1
    assert signature(any_value, 1) == ("i32", 1)
    assert signature(any_alignment, 1) == 1


def test_do_not_specialize():
    assert signature(any_value, 16) == ("i32", 1)
    assert signature(any_alignment, 16) == ("i32", 1)
    assert signature(any_value, np.zeros(4)) == ("*fp64", 1)
    assert signature(any_alignment, np.zeros(4)) == ("*fp64", 1)


def test_a_constant_is_always_specialized():
    @triton.jit(do_not_specialize=["N"])
    def kernel(N: tl.constexpr):
        pass

    with pytest.raises(triton.CompilationError, match="N marked as constexpr and listed in do_not_specialize") as error:
        kernel[(1,)](5)
    assert error.value.line == kernel.source.tree.lineno


def test_do_not_specialize_takes_numbers_and_warns_of_unknown_names():
    kernel = triton.jit(do_not_specialize=[0])(nothing.fn)
    assert signature(kernel, 16) == ("i32", 1)
    with pytest.warns(
        UserWarning, match=r"@triton.jit\(do_not_specialize=\['y', 'x'\]\): 'nothing' has no parameter 'y'"
    ):
        kernel = triton.jit(do_not_specialize=["y", "x"])(nothing.fn)
    assert signature(kernel, 16) == ("i32", 1)


def test_too_large_an_integer():
    with pytest.raises(OverflowError, match=r"nothing\(\) argument 'x': 18446744073709551616 does not fit in 64 bits"):
        nothing[(1,)](2**64)
    with pytest.raises(OverflowError):
        nothing[(1,)](-(2**63) - 1)


@pytest.mark.parametrize(
    "value",
    [None, "text", tl.float32, nothing, triton.cdiv, torch.float32, len],
    ids=lambda value: getattr(value, "__name__", str(value)),  # without addresses: all workers find the same tests
)
def test_constants_by_nature(value):
    compiled = nothing[(0,)](value)
    assert compiled.metadata.constants["x"] is value


def test_wrapped_values_are_constants():
    assert signature(nothing, tl.constexpr(64)) == 64
    assert signature(constant, tl.constexpr(64)) == 64


@pytest.mark.parametrize("value", [0, 1, 2**70, -5, 1.5, float("inf"), True, None, "a", (1, (2.0, "b")), tl.int8])
def test_compile_time_values(value):
    found = signature(constant, value)
    assert found == value
    assert type(found) is type(value)


def test_numpy_scalars_become_pythons_own():
    assert type(signature(constant, np.int64(4))) is int
    assert type(signature(constant, np.float32(4))) is float
    assert type(signature(constant, np.bool_(True))) is bool


def test_equal_values_of_different_types_are_different_variants():
    kernel = triton.jit(constant.fn)
    values = [1, 1.0, True, 0, 0.0, -0.0, False, "1", (1,), (1.0,), ((1,),), None]
    compiled = [kernel.warmup(value, grid=(1,)) for value in values]
    assert len(set(map(id, compiled))) == len(values) == len(kernel.variants())
    assert [kernel.warmup(value, grid=(1,)) for value in values] == compiled


def test_equal_values_share_a_variant():
    kernel = triton.jit(constant.fn)
    long_name = "".join(["some", "thing"])
    assert kernel.warmup("something", grid=(1,)) is kernel.warmup(long_name, grid=(1,))
    assert kernel.warmup(2**80, grid=(1,)) is kernel.warmup(2**79 * 2, grid=(1,))
    assert kernel.warmup(float("nan"), grid=(1,)) is kernel.warmup(float("nan"), grid=(1,))


def test_variants_by_alignment_value_and_options():
    kernel = triton.jit(nothing.fn)
    base = np.zeros(64, np.float32)
    offset = -(base.ctypes.data // 4) % 4
    aligned = base[offset:]
    first = kernel[(1,)](aligned)
    assert first.metadata.divisibility["x"] == 16
    assert kernel[(1,)](aligned[4:]) is first
    second = kernel[(1,)](aligned[1:])
    assert second is not first
    assert second.metadata.divisibility["x"] == 1
    assert kernel[(1,)](aligned, num_warps=8) is not first
    assert kernel[(1,)](aligned, debug=True) is not first
    assert kernel[(1,)](aligned) is first


Pair = namedtuple("Pair", "left right")


def test_tuples_are_specialized_item_by_item():
    x = np.zeros(64, np.float16)
    compiled = nothing.warmup((x, 16, (1, 2.5)), grid=(1,))
    assert compiled.metadata.signature["x"] == ("*fp16", "i32", ("constexpr", "fp32"))
    compiled = nothing.warmup((), grid=(1,))
    assert compiled.metadata.signature["x"] == ()


@triton.jit
def tuple_sum(out, x):
    tl.store(out, x[0] + x[1][0] * x[1][1])


@triton.jit
def pair_difference(out, x):
    tl.store(out, x.left - x.right)


def test_tuples_reach_the_kernel():
    out = np.zeros(1, np.int32)
    tuple_sum[(1,)](out, (1, (2, 3)))
    assert out[0] == 7
    tuple_sum[(1,)](out, (10, (1, 30)))
    assert out[0] == 40
    pair_difference[(1,)](out, Pair(50, 8))
    assert out[0] == 42


def test_a_tuple_that_holds_itself_is_an_error():
    inner = []
    deep = (inner,)
    for _ in range(100000):
        deep = (deep,)
    with pytest.raises(RecursionError):
        nothing[(1,)](deep)


@triton.jit
def annotated(out, a: tl.int64, b: tl.float64, c: "tl.int8", d: tl.uint32, e: tl.float16):
    tl.store(out, a)


def test_annotations_give_the_type():
    out = np.zeros(1, np.int64)
    metadata = annotated[(1,)](out, 1, 2, 3, 4, 0.5).metadata
    assert list(metadata.signature.values()) == ["*i64", "i64", "fp64", "i8", "u32", "fp16"]
    assert out[0] == 1


@triton.jit
def annotated_as_bool(out, a: "tl.int1", b: "tl.uint1"):
    tl.store(out, a.to(tl.int64) + b)


def test_bools_by_either_name():
    out = np.zeros(1, np.int64)
    assert list(annotated_as_bool[(1,)](out, True, 3).metadata.signature.values()) == ["*i64", "i1", "i1"]
    assert out[0] == 2


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((2**63, 0, 0, 0, 0), OverflowError, "argument 'a': 9223372036854775808 does not fit in int64"),
        ((0, 0, 128, 0, 0), OverflowError, "argument 'c': 128 does not fit in int8"),
        ((0, 0, 0, -1, 0), OverflowError, "argument 'd': -1 does not fit in uint32"),
        ((0.5, 0, 0, 0, 0), TypeError, "argument 'a': it is annotated as int64 and cannot take the float 0.5"),
        ((np.zeros(1), 0, 0, 0, 0), TypeError, "argument 'a': it is annotated as int64 and cannot take an array"),
    ],
)
def test_annotations_are_checked(arguments, error, message):
    with pytest.raises(error) as raised:
        annotated[(1,)](np.zeros(1, np.int64), *arguments)
    assert str(raised.value) == f"annotated() {message}"


@triton.jit
def read(x: tl.const, y: tl.pointer_type(tl.int32)):
    pass


def test_pointer_annotations():
    x, y = np.zeros(4, np.float32), np.zeros(4, np.int32)
    assert read[(1,)](x, y).metadata.signature == {"x": "*kfp32", "y": "*i32"}
    with pytest.raises(TypeError, match="annotated as a pointer to int32, but the array holds float32"):
        read[(1,)](x, x)


@pytest.mark.parametrize(
    "value, message",
    [
        ([1], "a kernel cannot take a list (pass an array or a tuple); it takes "),
        ({}, "a kernel cannot take a dict; it takes "),
        (1j, "a kernel cannot take a complex; it takes "),
        (object(), "a kernel cannot take a object; it takes "),
    ],
)
def test_unknown_arguments(value, message):
    with pytest.raises(TypeError) as error:
        nothing[(1,)](value)
    assert str(error.value).startswith(f"nothing() argument 'x': {message}")
    with pytest.raises(TypeError) as error:
        nothing[(1,)]((1, (2, value)))
    assert str(error.value).startswith(f"nothing() argument 'x[1][1]': {message}")


def test_unhashable_compile_time_values():
    for value in (np.zeros(4), [1, np.zeros(4)]):
        with pytest.raises(TypeError, match=r"constant\(\) argument .*must be hashable, and a ndarray is not"):
            constant[(1,)](value)
    with pytest.raises(TypeError, match="must be hashable, and a dict is not"):
        constant[(1,)]({})


def test_a_list_is_a_compile_time_tuple():
    before = len(constant.variants())
    values = [1, [2, "three"], (4, [5])]
    assert signature(constant, values) == signature(constant, (1, (2, "three"), (4, (5,))))
    assert len(constant.variants()) == before + 1
    values[1].append(6)
    assert signature(constant, values) == signature(constant, (1, (2, "three", 6), (4, (5,))))
    assert len(constant.variants()) == before + 2
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        constant[(1,)](endless)


class Odd:
    """Comparing or hashing it does something unexpected."""

    def __init__(self, action):
        self.action = action

    def __hash__(self):
        return 7

    def __eq__(self, other):
        return self.action()


def test_errors_of_comparisons_propagate():
    kernel = triton.jit(constant.fn)
    kernel.warmup(Odd(lambda: 1 / 0), grid=(1,))
    with pytest.raises(ZeroDivisionError):
        kernel.warmup(Odd(lambda: 1 / 0), grid=(1,))


def test_comparisons_that_launch_the_kernel():
    kernel = triton.jit(constant.fn)

    def grow():
        for i in range(100):
            kernel.warmup(i, grid=(1,))
        gc.collect()
        return False

    kernel.warmup(Odd(grow), grid=(1,))
    kernel.warmup(Odd(grow), grid=(1,))
    assert len(kernel.variants()) == 102


def test_many_variants_are_all_found():
    kernel = triton.jit(constant.fn)
    compiled = [kernel.warmup(i, grid=(1,)) for i in range(500)]
    assert all(kernel.warmup(i, grid=(1,)) is compiled[i] for i in range(500))


def test_arguments_that_are_the_same_objects_as_before():
    """What an argument became is remembered for values that do not change, and for no others."""

    @triton.jit
    def kernel(x, scale, offset, WIDTH: tl.constexpr, NAME: tl.constexpr, FLAG: tl.constexpr):
        value = tl.load(x) * scale + offset
        if FLAG:
            value += WIDTH
        tl.static_assert(NAME == "a" or NAME == "bc")
        tl.store(x, value)

    x, y = np.zeros(1, np.float32), np.zeros(1, np.float64)
    large, name = 10**6, "".join(["b", "c"])
    rounds = [
        (x, 1, 2, 4, "a", True, 6),
        (x, 1, 2, 4, "a", False, 2),
        (y, 1, 2, 4, name, True, 6),
        (x, 0.5, 2, 4, "a", True, 6),
        (x, 0.5, large, 4, "a", True, 10**6 + 4),
        (x, True, large, 4.5, "bc", True, 10**6 + 4.5),
        (x, 0.5, 2**40, 4, "a", True, 2.0**40),
        (x, 0.5, -(2**40), 4, "a", False, -(2.0**40)),
    ]
    for _ in range(3):
        for array, scale, offset, width, text, flag, expected in rounds:
            array[0] = 0
            kernel[(1,)](array, scale, offset, WIDTH=width, NAME=text, FLAG=flag)
            assert array[0] == expected


def test_keywords_in_any_order_and_not_interned():
    @triton.jit
    def kernel(out, a, b, c, num_warps, D: tl.constexpr):
        tl.store(out, a * 1000 + b * 100 + c * 10 + num_warps + D)

    out = np.zeros(1, np.int32)
    given = {"c": 3, "a": 1, "D": 0, "b": 2, "".join(["num_", "warps"]): 4, "out": out}
    kernel[(1,)](**given)
    assert out[0] == 1234
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        kernel[(1,)](**given, **{"".join(["num", "warp"]): 1})
