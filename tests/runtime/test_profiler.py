"""triton.profiler: scopes, a trace, and a table."""

import io
import json
import subprocess
import sys
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
    profiler.profile(lambda: None)()
    assert (tmp_path / f"{profiler.DEFAULT_PROFILE_NAME}.hatchet").exists()
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
    with pytest.raises(AttributeError, match="kernels are not instrumented"):
        profiler.language  # noqa: B018
    with pytest.raises(ValueError, match="Session has not been initialized: 1000000"):
        profiler.activate(1_000_000)


def children(node):
    return {child["frame"]["name"]: child for child in node["children"]}


def test_a_tree(tmp_path, target):
    x = np.zeros(1, np.float32)
    session = profiler.start(str(tmp_path / "run"))
    with profiler.scope("outer", {"size": 3, "kind (pty)": "a"}):
        for _ in range(3):
            first[(1,)](x)
        with profiler.state("late"), profiler.scope("inner", {"size": 1.0}):
            second[(1,)](x)
    for _ in range(2):
        profiler.enter_scope("twice", metrics={"size": 2, "kind (pty)": 5})
        profiler.exit_scope(metrics={"more": 1.0})
    with profiler.cpu_timed_scope("timed"):
        assert profiler.context.depth(session) == 1
    profiler.deactivate(session)
    profiler.scope("unseen")(lambda: None)()
    (path,) = profiler.finalize(session, output_format="hatchet")
    root, devices = json.loads(Path(path).read_text())
    kind, _, number = target.partition(":")
    assert devices == {kind.upper(): {"0": {"arch": number} if number else {}}}
    top = children(root)
    assert list(top) == ["outer", "twice", "timed"] and not root["metrics"]
    assert top["twice"]["metrics"] == {"size": 4, "kind": 5, "more": 2.0}
    assert top["timed"]["metrics"]["cpu_time (ns)"] > 0 and top["outer"]["metrics"] == {"size": 3, "kind": "a"}
    kernel = children(top["outer"])["first"]["metrics"]
    assert (kernel["count"], kernel["flops"], kernel["bytes"]) == (3, 30, 12) and kernel["time (ns)"] > 0
    inner = children(top["outer"])["inner"]
    assert list(children(inner)) == ["late"] and children(inner)["late"]["metrics"] == {"size": 1.0}
    assert list(children(children(inner)["late"])) == ["second"]


def test_the_viewer(tmp_path):
    def node(name, metrics, *below):
        return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": list(below)}

    fast = node("fast", {"count": 10, "time (ns)": 204800, "flops8": 1e11, "bytes": 1e8})
    slow = node("slow", {"count": 1, "time (ns)": 819200, "flops8": 1e10, "bytes": 1e7})
    path = tmp_path / "run.hatchet"
    path.write_text(json.dumps([node("ROOT", {}, node("both", {}, fast, slow)), {"CPU": {"0": {}}}]))
    asked = ["time/ms", "avg_time/us", "tflop8/s", "gbyte/s", "count"]
    tree, metrics = profiler.viewer.parse(asked, path)
    values = {each.name: [each.values[name] for name in metrics] for each in tree.nodes()}
    assert metrics == asked
    np.testing.assert_allclose(values["fast"], [0.2048, 20.48, 1e11 / 204800e-9 / 1e12, 1e8 / 204800e-9 / 1e9, 10])
    np.testing.assert_allclose(values["ROOT"], [1.024, 1024 / 11, 1.1e11 / 1.024e-3 / 1e12, 1.1e8 / 1.024e-3 / 1e9, 11])
    out = io.StringIO()
    profiler.viewer.print_tree(*profiler.viewer.parse(["time/ms"], path), print_sorted=True, file=out)
    assert out.getvalue().split("\n")[:5] == [
        "time/ms",
        "1.024 ROOT",
        "  1.024 both",
        "    0.819 slow",
        "    0.205 fast",
    ]

    def names(**options):
        return [each.name for each in profiler.viewer.parse(["time/ms"], path, **options)[0].nodes()]

    assert names(include="fas") == ["ROOT", "both", "fast"] and names(exclude="fas") == ["ROOT", "both", "slow"]
    assert names(threshold=0.5) == ["ROOT", "both", "slow"]
    with pytest.raises(ValueError, match="no metric 'tim'; there are: bytes, count, flops8, time"):
        profiler.viewer.parse(["tim"], path)
    command = [sys.executable, "-m", "triton.profiler.viewer", "-m", "time/ms,count", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "0.819 1.000 slow" in done.stdout


def test_kernels_that_only_compute_what_is_said(tmp_path):
    session = profiler.start(str(tmp_path / "run"))
    with profiler.metadata_state():
        second[(1,)](np.zeros(1, np.float32))
    profiler.finalize(session)
    tree, _ = profiler.viewer.parse(["count"], tmp_path / "run.hatchet")
    assert [each.name for each in tree.nodes()] == ["ROOT", "__proton_launch_metadata", "second"]


PROGRAM = """
import sys
import numpy as np, triton, triton.language as tl
from beside import SIZE

@triton.jit
def fill(x):
    tl.store(x + tl.program_id(0), 1)

if __name__ == "__main__":
    x = np.zeros(SIZE, np.float32)
    fill[(SIZE,)](x)
    print("sum", x.sum(), *sys.argv[1:])
    sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("module", ["triton.profiler", "triton.profiler.proton"])
def test_a_program_as_it_is(tmp_path, module):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("SIZE = 3")
    command = [sys.executable, "-m", module, "-n", str(tmp_path / "run"), str(tmp_path / "program.py"), "4", "-n"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path.parent)
    assert done.returncode == 4 and "sum 3.0 4 -n" in done.stdout and "fill" in done.stdout, done.stderr
    assert "fill" in (tmp_path / "run.hatchet").read_text() and (tmp_path / "run.json").exists()


TEST = """
def test():
    x = np.zeros(1)
    fill[(1,)](x)
    assert x[0] == 2
"""


def test_a_test_run_as_it_is(tmp_path):
    (tmp_path / "test_it.py").write_text(PROGRAM.partition("if __name__")[0].replace("from beside", "#") + TEST)
    command = [sys.executable, "-m", "triton.profiler", "-n", "run", "pytest", "-q", "test_it.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "1 failed" in done.stdout and (tmp_path / "run.hatchet").exists(), done.stdout
