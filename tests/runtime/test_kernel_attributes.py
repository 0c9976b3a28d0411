"""What a kernel says about itself."""

import importlib
import inspect
import subprocess
import sys
import types

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime import JITFunction

pytestmark = pytest.mark.host

SCALE: tl.constexpr = 3
SHIFT = tl.constexpr(4)
UNUSED = 5


@triton.jit
def helper(x):
    return x * SCALE


@triton.autotune([triton.Config({})], key=[])
@triton.jit
def tuned_helper(x):
    return x + SHIFT


@triton.constexpr_function
def half(n):
    return n // 2


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[0])
def kernel(out, n: tl.int32, /, BLOCK: tl.constexpr = 16, *, last=None):
    """Doc."""
    index = tl.arange(0, BLOCK)
    tl.store(out + index, tl.math.abs(helper(index)) + half(BLOCK), mask=index < n)


def test_the_module_of_decorators_is_a_module():
    import triton.runtime.jit as module

    assert isinstance(module, types.ModuleType) and module.jit is triton.jit
    assert importlib.import_module("triton.runtime.jit") is module is sys.modules["triton.runtime.jit"]
    from triton.runtime.jit import (
        JITFunction,
        KernelInterface,
        MockTensor,
        TensorWrapper,
        constexpr_function,
        reinterpret,
    )

    assert MockTensor is triton.MockTensor and TensorWrapper is triton.TensorWrapper
    assert reinterpret is triton.reinterpret and constexpr_function is triton.constexpr_function
    assert JITFunction is triton.JITFunction and issubclass(JITFunction, KernelInterface)


def test_signature():
    assert isinstance(kernel.signature, inspect.Signature)
    assert str(kernel.signature) == str(inspect.signature(kernel.fn))
    assert list(kernel.signature.parameters) == kernel.arg_names == ["out", "n", "BLOCK", "last"]
    assert kernel.signature.parameters["BLOCK"].default == 16


def test_source():
    assert kernel.raw_src == inspect.getsourcelines(kernel.fn)[0]
    assert kernel.starting_line_number == inspect.getsourcelines(kernel.fn)[1]
    assert kernel.module == __name__ == kernel.__module__
    assert kernel.do_not_specialize == ["n"] and kernel.do_not_specialize_on_alignment == [0]
    assert helper.do_not_specialize == [] == helper.do_not_specialize_on_alignment


def test_parameters_of_the_constructor_by_position():
    made = JITFunction(kernel.fn, 7, ["n"], ["out"], True, True, None, None)
    assert (made.version, made.do_not_specialize, made.debug, made.noinline) == (7, ["n"], True, True)


def test_hooks_before_launches():
    seen = []

    @triton.jit
    def nothing(x):
        pass

    assert nothing.pre_run_hooks == []
    nothing.add_pre_run_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    nothing.pre_run_hooks.append(lambda *args, **kwargs: seen.append(1))
    nothing[(1,)](5, num_warps=2)
    assert seen == [((5,), {"num_warps": 2}), 1]
    nothing.pre_run_hooks.clear()
    nothing[(1,)](5)
    assert len(seen) == 2


# ---- keys


def kernel_of(text, **names):
    """A kernel made from a text, with these globals."""
    space = {"triton": triton, "tl": tl, **names}
    exec(text.splitlines()[0] + " pass", space)
    made = triton.jit(space["kernel"])
    made._unsafe_update_src(text)
    return made


def test_the_key_follows_the_source():
    one, other = "def kernel(x):\n    tl.store(x, 1)\n", "def kernel(x):\n    tl.store(x, 2)\n"
    key = kernel_of(one).cache_key
    assert isinstance(key, str) and len(key) == 64 and int(key, 16)
    assert key == kernel_of(one).cache_key == kernel_of(one).hash
    assert key != kernel_of(other).cache_key
    assert key != kernel_of("def kernel(x):\n    tl.store(x, 1)  # a remark\n").cache_key


def test_the_key_follows_functions_and_values():
    text = "def kernel(x):\n    tl.store(x, f(N) + module.f(module.N))\n"
    adds = [kernel_of(f"def kernel(x):\n    return x + {n}\n") for n in (1, 2)]

    def key(f=adds[0], n=1, inner_f=adds[0], inner_n=1, **others):
        module = types.ModuleType("some_module")
        module.f, module.N = inner_f, tl.constexpr(inner_n)
        return kernel_of(text, f=f, N=tl.constexpr(n), module=module, **others).cache_key

    assert key() == key() == key(unused=5)
    assert len({key(), key(f=adds[1]), key(n=2), key(inner_f=adds[1]), key(inner_n=2)}) == 5
    types_of_values = [kernel_of("def kernel(x):\n    tl.store(x, D)\n", D=D) for D in (tl.float32, tl.float16)]
    assert len({each.cache_key for each in types_of_values}) == 2


def test_the_key_follows_what_is_called_in_turn():
    inner = [kernel_of(f"def kernel(x):\n    return x + {n}\n") for n in (1, 2)]
    keys = set()
    for each in inner:
        middle = kernel_of("def kernel(x):\n    return f(x)\n", f=each)
        keys.add(kernel_of("def kernel(x):\n    tl.store(x, f(1))\n", f=middle).cache_key)
    assert len(keys) == 2


def test_functions_that_call_each_other_have_a_key():
    space = {}
    ping = kernel_of("def kernel(x):\n    return pong(x)\n", **space)
    ping.fn.__globals__["pong"] = kernel_of("def kernel(x):\n    return ping(x)\n", ping=ping)
    assert ping.cache_key != ping.fn.__globals__["pong"].cache_key


def test_a_parameter_is_no_global():
    text = "def kernel(N):\n    tl.store(N, 1)\n"
    assert kernel_of(text, N=1).cache_key == kernel_of(text, N=2).cache_key


def closure(scale, function):
    scale = tl.constexpr(scale)

    @triton.jit
    def inner(x):
        tl.store(x, function(scale))

    return inner


def test_the_key_follows_closures():
    assert closure(1, helper).cache_key == closure(1, helper).cache_key
    assert len({closure(1, helper).cache_key, closure(2, helper).cache_key, closure(1, tuned_helper).cache_key}) == 3


def test_values_used():
    values = {name: value for (name, _), (value, _) in kernel.used_global_vals.items()}
    assert values == {"SCALE": 3, "half": half}
    for (_, number), (_, place) in kernel.used_global_vals.items():
        assert place is globals() and number == id(place)
    assert {name for name, _ in closure(1, tuned_helper).used_global_vals} == {"scale", "SHIFT"}


def test_the_key_is_the_same_in_every_process():
    code = f"import sys; sys.path[:0] = {sys.path!r}; import {__name__} as m; print(m.kernel.cache_key)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == kernel.cache_key


def test_a_zero_of_the_language():
    assert isinstance(tl.core.CONSTEXPR_0, tl.constexpr) and tl.core.CONSTEXPR_0.value == 0

    @triton.jit
    def add(x, n=tl.core.CONSTEXPR_0):
        tl.store(x, n + 5)

    x = np.zeros(1, np.int32)
    add[(1,)](x)
    assert x[0] == 5
