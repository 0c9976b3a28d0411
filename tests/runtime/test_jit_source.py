"""Kernels whose text is replaced: templates of tests."""

import inspect
import types

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


# ---- kernels made of a text, as libraries do that write variants of theirs


def made(text, **names):
    """A kernel made of nothing but a text: a function with a stated signature stands in for the definition."""

    def nothing():
        pass

    space = {**nothing.__globals__, **names}
    stands_for = types.FunctionType(nothing.__code__, space)
    exec(text, space)
    name = text[len("def ") : text.index("(")]
    stands_for.__signature__ = inspect.signature(space[name])
    stands_for.__name__ = name
    kernel = triton.JITFunction(stands_for, do_not_specialize=["n"])
    kernel._unsafe_update_src(text)
    return kernel


SCALED = """def scaled(x_ptr, n, factor, shift=1, *, BLOCK: tl.constexpr = 4):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, function(offsets * factor + shift), mask=offsets < n)
"""


@triton.jit
def negative(x):
    return -x


def test_a_signature_that_is_stated():
    kernel = made(SCALED, function=negative)
    assert kernel.__name__ == "scaled" and kernel.arg_names == ["x_ptr", "n", "factor", "shift", "BLOCK"]
    assert [param.is_constexpr for param in kernel.params] == [False] * 4 + [True]
    assert [param.default for param in kernel.params if param.has_default] == [1, 4]
    assert kernel.params[1].do_not_specialize
    for arguments, expected in (((3, 10), [-1, -11, -21, 0]), ((4, 2, 5), [-5, -7, -9, -11])):
        x = np.zeros(4, np.int32)
        kernel[(1,)](x, *arguments)
        assert x.tolist() == expected
    with pytest.raises(TypeError, match="scaled"):
        kernel[(1,)](x, 3, 10, other=1)


def test_a_text_that_is_not_as_stated():
    with pytest.raises(ValueError, match="not one definition of 'scaled' with the same parameters"):
        made(SCALED, function=negative)._unsafe_update_src(SCALED.replace("shift=1", "offset=1"))


def test_where_a_text_is_said_to_stand():
    kernel = made(SCALED, function=negative)
    of_file = "@triton.jit", "def template(x_ptr, n, BLOCK: tl.constexpr):"
    kernel.raw_src = [*of_file, *SCALED.splitlines()[1:]]
    kernel.starting_line_number = template.starting_line_number
    kernel.fn.__code__ = kernel.fn.__code__.replace(co_filename=__file__, co_firstlineno=template.starting_line_number)
    assert kernel.raw_src[0] == "@triton.jit" and kernel.starting_line_number == template.starting_line_number
    assert (kernel.source_file, kernel.parse().lineno) == (template.source_file, template.parse().lineno)
    x = np.zeros(4, np.int32)
    kernel[(1,)](x, 3, 10)
    assert x.tolist() == [-1, -11, -21, 0]
    line = template.parse().lineno + 2
    wrong = made(SCALED, function=5)
    wrong.starting_line_number = line - 2
    wrong.fn.__code__ = wrong.fn.__code__.replace(co_filename=__file__)
    with pytest.raises(triton.CompilationError, match=rf"test_jit_source.py:{line}:"):
        wrong[(1,)](x, 3, 10)
    with pytest.raises(AttributeError, match="'template' is compiled from its file"):
        template.starting_line_number = 5


def test_what_names_stand_for():
    factor = tl.constexpr(5)

    @triton.jit
    def inner(x):
        return negative(x) * factor

    scope = inner.get_capture_scope()
    assert scope["factor"] is factor and scope["negative"] is negative and scope["SCALED"] is SCALED
    text = "def of(x_ptr, n):\n    tl.store(x_ptr, negative(n) * factor)\n"
    x = np.zeros(1, np.int32)
    made(text, **scope)[(1,)](x, 3)
    assert x.tolist() == [-15] and "factor" not in inner.fn.__globals__


def test_the_gpu_that_a_launch_is_meant_for(monkeypatch):
    kernel, x = filled("offsets + 1"), np.zeros(3, np.int32)
    kernel[(1,)](x, 3, BLOCK=4, arch=None)
    for target, arch in (("cpu", "sm80"), ("sim:80", "sm80"), ("sim:90", "sm_90a"), ("sim:90", None)):
        monkeypatch.setenv("TRITON_TARGET", target)
        kernel[(1,)](x, 3, BLOCK=4, arch=arch)
    with pytest.raises(triton.errors.OptionError, match="arch='sm80': this launch is for compute capability 90"):
        kernel[(1,)](x, 3, BLOCK=4, arch="sm80")


def test_a_kernel_that_takes_the_name_of_a_function(monkeypatch):
    """Hooks tell the name by which another process finds it again, and preloads it."""
    kernel, told = made(SCALED, function=negative), []
    kernel.starting_line_number = 100
    for each in (kernel, kernel.fn):
        each.__name__ = each.__qualname__ = "scaled_variant"
        each.__module__ = "kernels.variants"
    monkeypatch.setattr(triton.knobs.runtime, "jit_cache_hook", lambda **more: told.append(more))
    x = np.zeros(4, np.int32)
    compiled = kernel[(1,)](x, 3, 10)
    assert (told[0]["fn"].name, told[0]["fn"].module) == ("scaled_variant", "kernels.variants")
    kernel.device_caches.clear()
    assert kernel.preload(told[0]["compile"]["specialization_data"]).hash == compiled.hash
    assert len(told) == 2
    kernel[(1,)](x, 3, 10)
    assert len(told) == 2 and x.tolist() == [-1, -11, -21, 0]


@triton.jit
def of_many(x_ptr, *values, BLOCK: tl.constexpr, **META):
    total = META["first"]
    for i in tl.static_range(len(values)):
        total += values[i]
    tl.store(x_ptr + tl.arange(0, BLOCK), total)


def test_preloading_parameters_of_every_kind(monkeypatch):
    told, x = [], np.zeros(2, np.int32)
    monkeypatch.setattr(triton.knobs.runtime, "jit_cache_hook", lambda **more: told.append(more))
    compiled = of_many[(1,)](x, 3, 5, BLOCK=2, first=7)
    assert x.tolist() == [15, 15]
    of_many.device_caches.clear()
    assert of_many.preload(told[0]["compile"]["specialization_data"]).hash == compiled.hash
    of_many[(1,)](x, 3, 6, BLOCK=2, first=7)
    assert len(told) == 2 and x.tolist() == [16, 16]
