"""Gluon, which is not supported: programs that import it run, and its kernels say so."""

import importlib.util

import pytest

import triton
import triton.language as tl


def test_import():
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    assert gl.constexpr is tl.constexpr
    assert gluon.constexpr_function is triton.constexpr_function
    with pytest.raises(AttributeError, match="'BlockedLayout': Gluon is not supported"):
        gl.BlockedLayout  # noqa: B018


def test_what_programs_ask_for_first():
    assert importlib.util.find_spec("triton.experimental.gluon.language.nvidia") is None


@pytest.mark.parametrize("decorate", ["plain", "options", "autotuned"])
def test_a_kernel_is_decorated_and_refused(decorate, device):
    from triton.experimental import gluon

    def kernel(pointer, N: tl.constexpr):
        pass

    fn = gluon.jit(do_not_specialize=["pointer"])(kernel) if decorate == "options" else gluon.jit(kernel)
    if decorate == "autotuned":
        fn = triton.autotune([triton.Config({})], key=[])(fn)
    with pytest.raises(triton.UnsupportedError, match="'kernel' is a kernel in Gluon, which is not supported"):
        fn[(1,)](1, N=4)


def test_a_function_that_a_kernel_calls():
    from triton.experimental import gluon

    @gluon.jit
    def inner():
        pass

    @triton.jit
    def kernel():
        inner()

    with pytest.raises(triton.CompilationError, match="'inner' is a kernel in Gluon"):
        kernel.warmup(grid=(1,))
