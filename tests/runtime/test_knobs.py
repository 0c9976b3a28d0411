"""triton.knobs: settings that are environment variables, and hooks around launches."""

import os

import numpy as np
import pytest

import triton
import triton.language as tl
from triton import knobs

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def restored():
    with knobs.runtime.scope(), knobs.autotuning.scope():
        yield


def metadata(grid, info, arguments):
    return {"name": f"fill<{info.num_warps}>", "bytes": arguments["x"].nbytes, "grid": grid}


@triton.jit(launch_metadata=metadata)
def fill(x, value, SIZE: tl.constexpr):
    tl.store(x + tl.arange(0, SIZE), value)


@triton.jit
def other(x):
    tl.store(x, 1)


def test_hooks_around_launches():
    x, told = np.zeros(4, np.float32), []
    knobs.runtime.launch_enter_hook.add(lambda launch: told.append(("enter", launch.get(), x[0])))
    knobs.runtime.launch_exit_hook.add(lambda launch: told.append(("exit", launch.get(), x[0])))
    compiled = fill[(1, 1)](x, 5, SIZE=4)
    expected = {"name": "fill<4>", "function": compiled, "stream": 0, "bytes": 16, "grid": (1, 1, 1)}
    assert [(when, value) for when, _, value in told] == [("enter", 0), ("exit", 5)]
    assert told[0][1] == expected and told[0][1] is told[1][1]
    other[(1,)](x)
    assert told[2][1]["name"] == "other"
    fill.warmup(x, 5, SIZE=4, grid=(1,))
    assert len(told) == 4
    knobs.runtime.reset()
    fill[(1,)](x, 5, SIZE=4)
    assert len(told) == 4


def test_order_and_removal():
    x, told = np.zeros(1, np.float32), []
    hooks = [lambda launch, name=name: told.append(name) for name in "ab"]
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        for hook in (*hooks, hooks[0]):
            chain.add(hook)
    other[(1,)](x)
    assert told == ["a", "b", "b", "a"]
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        chain.remove(hooks[1])
        chain.remove(print)
    other[(1,)](x)
    assert told[4:] == ["a", "a"]
    knobs.runtime.launch_enter_hook = hooks[1]
    knobs.runtime.launch_exit_hook = None
    other[(1,)](x)
    assert told[6:] == ["b"]
    with pytest.raises(TypeError, match="a hook must be callable, not 3"):
        knobs.runtime.launch_enter_hook = 3


def test_a_hook_that_fails():
    x = np.zeros(1, np.float32)
    knobs.runtime.launch_enter_hook.add(lambda launch: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        other[(1,)](x)
    assert x[0] == 0
    knobs.runtime.reset()
    hook = knobs.runtime.launch_enter_hook
    hook.add(lambda launch: hook.calls.clear() or knobs.runtime.reset())  # takes itself off
    other[(1,)](x)
    assert x[0] == 1


def test_scopes_take_back_what_was_set(monkeypatch):
    monkeypatch.setenv("TRITON_DEBUG", "0")
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        knobs.runtime.launch_enter_hook = print
        assert knobs.runtime.debug and os.environ["TRITON_DEBUG"] == "1"
        with pytest.raises(triton.MemoryAccessError):
            triton.jit(fill.fn)[(1,)](np.zeros(3, np.float32), 5, SIZE=4)
    assert not knobs.runtime.debug and os.environ["TRITON_DEBUG"] == "0"
    assert not knobs.runtime.launch_enter_hook.calls


def test_debug_holds_for_kernels_that_ran_before():
    kernel, x = triton.jit(fill.fn), np.zeros(3, np.float32)
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,)).metadata.debug
    knobs.runtime.debug = True
    with pytest.raises(triton.MemoryAccessError):
        kernel[(1,)](x, 5, SIZE=4)
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,), debug=False).metadata.debug
    knobs.runtime.debug = False
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,)).metadata.debug
    del knobs.runtime.debug
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,)).metadata.debug


def test_variables(monkeypatch):
    monkeypatch.delenv("TRITON_TARGET", raising=False)
    assert knobs.runtime.target is None
    knobs.runtime.target = "sim:80"
    x = np.zeros(4, np.float32)
    assert triton.jit(fill.fn)[(1,)](x, 2, SIZE=4).info["target"] == "sim:80"
    del knobs.runtime.target
    assert "TRITON_TARGET" not in os.environ
    knobs.autotuning.print = True
    assert os.environ["TRITON_PRINT_AUTOTUNING"] == "1"
    knobs.autotuning.reset()
    assert not knobs.autotuning.print
    with pytest.raises(AttributeError):
        knobs.runtime.no_such_setting = 1
