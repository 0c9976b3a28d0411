"""triton.profiler: scopes, a trace, and a table."""

import json
from pathlib import Path

import numpy as np
import pytest

import triton
import triton.language as tl
from triton import profiler

pytestmark = pytest.mark.host


@triton.jit(launch_metadata=lambda grid, info, arguments: {"bytes": arguments["x"].nbytes, "flops": 10})
def first(x):
    tl.store(x, 1)


@triton.jit
def second(x):
    tl.store(x, 2)


def test_a_session(tmp_path, capsys):
    x = np.zeros(1, np.float32)
    session = profiler.start(str(tmp_path / "run"))
    with profiler.scope("outer", {"size": 3}):
        first[(1,)](x)

        @profiler.scope("inner")
        def work():
            first[(1,)](x)
            second[(1,)](x)

        work()
        work()
    profiler.deactivate(session)
    second[(1,)](x)
    profiler.activate()
    profiler.enter_scope("by hand")
    second[(1,)](x)
    profiler.exit_scope("by hand")
    path = Path(profiler.finalize()[0])
    second[(1,)](x)
    events = json.loads(path.read_text())["traceEvents"]
    kernels = [(each["name"], each["args"]["scopes"]) for each in events if each["cat"] == "kernel"]
    inner = [("first", "outer/inner"), ("second", "outer/inner")]
    assert kernels == [("first", "outer"), *inner, *inner, ("second", "by hand")]
    scopes = [each for each in events if each["cat"] == "scope"]
    assert [each["name"] for each in scopes] == ["inner", "inner", "outer", "by hand"] and scopes[2]["args"][
        "size"
    ] == 3
    outer = scopes[2]
    assert all(outer["ts"] <= each["ts"] <= outer["ts"] + outer["dur"] for each in events if each["name"] == "first")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["kernel", "runs", "ms", "share", "TFLOP/s", "GB/s"] and len(lines) == 5
    runs = {line[: line.index("  ")]: int(line[line.index("  ") :].split()[0]) for line in lines[1:]}
    assert runs == {"outer/first": 1, "outer/inner/first": 2, "outer/inner/second": 2, "by hand/second": 1}
    assert not triton.knobs.runtime.launch_enter_hook.calls


def test_a_profiled_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @profiler.profile(name="once")
    def program(x):
        second[(1,)](x)
        return x[0]

    assert program(np.zeros(1, np.float32)) == 2 and (tmp_path / "once.json").exists()
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")
    (tmp_path / "once.json").unlink()
    assert program(np.zeros(1, np.float32)) == 2 and not (tmp_path / "once.json").exists()


def test_what_there_is_not():
    with pytest.raises(NotImplementedError, match="not instrumented"):
        profiler.start(backend="instrumentation")
    with pytest.raises(ValueError, match="shadow"):
        profiler.start(context="python")
    with pytest.raises(ValueError, match="entered last"):
        profiler.exit_scope("nothing")
