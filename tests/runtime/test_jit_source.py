"""Kernels whose text is replaced: templates of tests."""

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def template(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, EXPRESSION, mask=offsets < n)  # noqa: F821


def filled(expression):
    kernel = triton.JITFunction(template.fn)
    kernel._unsafe_update_src(kernel.src.replace("EXPRESSION", expression))
    return kernel


def test_another_text():
    for expression, expected in (("offsets * 2", [0, 2, 4]), ("offsets - n", [-3, -2, -1])):
        x = np.zeros(3, np.int32)
        filled(expression)[(1,)](x, 3, BLOCK=4)
        assert x.tolist() == expected


def test_errors_show_the_new_text():
    with pytest.raises(triton.CompilationError, match=r"3:\d+: error(.|\n)*offsets \+ missing(.|\n)*\^"):
        filled("offsets + missing")[(1,)](np.zeros(3, np.int32), 3, BLOCK=4)


def test_what_is_no_such_definition():
    kernel = triton.JITFunction(template.fn)
    for text in ("x = 1", "def template(a):\n    pass\n", "def other(x_ptr, n, BLOCK):\n    pass\n"):
        with pytest.raises(ValueError, match="not one definition of 'template'"):
            kernel._unsafe_update_src(text)


def test_too_late():
    kernel = filled("offsets")
    kernel[(1,)](np.zeros(3, np.int32), 3, BLOCK=4)
    with pytest.raises(RuntimeError, match="compiled already"):
        kernel._unsafe_update_src(kernel.src)
