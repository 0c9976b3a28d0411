"""Functions built on `tl.core.extern_elementwise`, as libraries write them for symbols of libdevice."""

import numpy as np
import pytest
from harness import Buffer

import triton
import triton.language as tl
from triton.language import core


@core.extern
def tanh(arg0, _semantic=None):
    return core.extern_elementwise(
        "",
        "",
        [arg0],
        {
            (core.dtype("fp32"),): ("__nv_tanhf", core.dtype("fp32")),
            (core.dtype("fp64"),): ("__nv_tanh", core.dtype("fp64")),
        },
        is_pure=True,
        _semantic=_semantic,
    )


@core.extern
def pow(arg0, arg1, _builder=None):
    return core.extern_elementwise(
        "libdevice",
        "",
        [arg0, arg1],
        {
            (core.dtype("fp32"), core.dtype("fp32")): ("__nv_powf", core.dtype("fp32")),
            (core.dtype("fp32"), core.dtype("int32")): ("__nv_powif", core.dtype("fp32")),
        },
        is_pure=True,
        _builder=_builder,
    )


@core.extern
def isnan(arg0, _semantic=None):
    symbols = {(core.dtype("fp32"),): ("__nv_isnanf", core.dtype("int32"))}
    return core.extern_elementwise("", "", [arg0], symbols, is_pure=True, _semantic=_semantic)


@core.extern
def unknown(arg0, _semantic=None):
    symbols = {(core.dtype("fp32"),): ("__nv_no_such_function", core.dtype("fp32"))}
    return core.extern_elementwise("", "", [arg0], symbols, is_pure=True, _semantic=_semantic)


@triton.jit
def apply(out, x, FUNCTION: tl.constexpr, N: tl.constexpr):
    index = tl.arange(0, N)
    tl.store(out + index, FUNCTION(tl.load(x + index)))


@triton.jit
def apply_pow(out, x, y, N: tl.constexpr):
    index = tl.arange(0, N)
    value = tl.load(x + index)
    tl.store(out + index, pow(value, tl.load(y + index)) + pow(value[:, None], 2.0)[:, 0])


def run(function, x, result=np.float32):
    out, x = Buffer(np.zeros(len(x), result)), Buffer(x)
    apply[(1,)](out.argument, x.argument, function, len(x.host().values))
    return out.host().values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_operand(dtype):
    x = np.linspace(-3, 3, 16).astype(dtype)
    np.testing.assert_allclose(run(tanh, x, dtype), np.tanh(x), rtol=1e-6)


@triton.jit
def root(x):
    symbols: tl.constexpr = {(core.dtype("fp32"),): ("__nv_sqrtf", core.dtype("fp32"))}
    return core.dispatch(None, "libdevice", "", [x], symbols)


def test_its_other_name():
    x = np.linspace(0, 9, 16).astype(np.float32)
    np.testing.assert_allclose(run(root, x), np.sqrt(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_two_operands(dtype):
    x, y = np.linspace(0.5, 2, 8).astype(np.float32), np.arange(8).astype(dtype)
    out, arrays = Buffer(np.zeros(8, np.float32)), (Buffer(x), Buffer(y))
    apply_pow[(1,)](out.argument, *(each.argument for each in arrays), 8)
    np.testing.assert_allclose(out.host().values, x**y + x**2, rtol=1e-5)


def test_the_type_of_the_result():
    assert run(isnan, np.array([1, np.nan, np.inf, -np.nan], np.float32), np.int32).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "function, dtype, message",
    [
        (unknown, np.float32, "the language has no function for '__nv_no_such_function'"),
        (isnan, np.float64, r"arguments of types \['fp64'\]; there are symbols for \['fp32'\]"),
    ],
)
def test_what_there_is_not(function, dtype, message):
    with pytest.raises(triton.CompilationError, match=message):
        run(function, np.zeros(4, dtype))


def test_builtins_are_told_apart():
    assert core.is_builtin(tl.load) and core.is_builtin(core.arange) and core.is_builtin(tl.math.exp)
    assert not core.is_builtin(tl.sum) and not core.is_builtin(tanh) and not core.is_builtin(len)


# ---- functions that libraries mark as the language's own: Python, which tells compile-time values by their class


def marked(function):
    function.__triton_builtin__ = True
    return function


@marked
def next_power_of_2(n, *, _builder=None):
    assert isinstance(n, tl.constexpr)
    return tl.constexpr(triton.next_power_of_2(n.value))


@marked
def unless_none(mask, value, *, _builder=None):
    return tl.constexpr(None) if isinstance(mask, tl.constexpr) and mask.value is None else value


@triton.jit
def marked_kernel(x, out, N: tl.constexpr, MASKED: tl.constexpr):
    POWER: tl.constexpr = next_power_of_2(N)
    index = tl.arange(0, POWER)
    mask = index < N
    if not MASKED:
        mask = None
    tl.store(out + index, tl.load(x + index, mask, other=unless_none(mask, 7.0)))


@pytest.mark.parametrize("masked", [False, True])
def test_marked_functions(masked):
    x, out = Buffer(np.arange(16, dtype=np.float32)), Buffer(np.zeros(16, np.float32))
    marked_kernel[(1,)](x.argument, out.argument, 11, masked)
    assert (out.host().values == np.where((np.arange(16) < 11) | (not masked), np.arange(16), 7.0)).all()
