"""How errors look: place, excerpt, both sides, the chain of calls, and what to do."""

import linecache
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

import triton
import triton.compiler.errors
import triton.language as tl
import triton.runtime.errors
from triton.errors import CompilationError, UnsupportedError, compilation_error, internal_error, launch_error

pytestmark = pytest.mark.host

TEXT = "def f(x):\n    y = añb + x\n\treturn y\n    long(\n        x)\n"


@pytest.fixture
def file():
    name = "<made up>"
    linecache.cache[name] = (len(TEXT), None, TEXT.splitlines(True), name)
    yield name
    del linecache.cache[name]


def place(file, line, column, end_line=0, end_column=0, function="f", caller=None):
    return {
        "file": file,
        "function": function,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "caller": caller,
    }


def test_excerpt(file):
    # Columns count bytes: ñ has two.
    error = compilation_error("error", "a and x differ", place(file, 2, 8, 2, 16), "make them equal", [])
    assert str(error) == (
        "<made up>:2:9: error: a and x differ\n"
        "  in f at 2:8:\n"
        "  2 |     y = añb + x\n    |         ^^^^^^^\n"
        "help: make them equal"
    )
    assert (error.file, error.line, error.column) == (file, 2, 9)
    assert error.message == "a and x differ"
    assert error.remedy == "make them equal"


def test_columns_after_wide_characters(file):
    error = compilation_error("error", "m", place(file, 2, 15, 2, 16), None, [])
    assert str(error).splitlines()[1:] == [
        "  in f at 2:14:",
        "  2 |     y = añb + x",
        "    |               ^",
    ]
    assert error.column == 15


def test_tabs_and_several_lines(file):
    assert str(compilation_error("error", "m", place(file, 3, 1, 3, 7), None, [])) == (
        "<made up>:3:2: error: m\n  in f at 3:1:\n  3 | \treturn y\n    | \t^^^^^^"
    )
    assert str(compilation_error("error", "m", place(file, 4, 4, 5, 10), None, [])) == (
        "<made up>:4:5: error: m\n  in f at 4:4:\n  4 |     long(\n    |     ^^^^^"
    )


def test_notes_and_calls(file):
    calls = place(file, 4, 4, 4, 8, "outer", place(file, 1, 4, 1, 5, "outermost"))
    location = place(file, 2, 4, 2, 5, "inner", calls)
    error = compilation_error("unsupported", "m", location, None, [(place(file, 3, 8, 3, 9), "the other is here")])
    assert isinstance(error, UnsupportedError)
    assert str(error) == (
        "<made up>:2:5: unsupported: m\n"
        "  2 |     y = añb + x\n"
        "    |     ^\n"
        "<made up>:4:5: note: in call to 'inner' here\n"
        "  4 |     long(\n"
        "    |     ^^^^\n"
        "<made up>:1:5: note: in call to 'outer' here\n"
        "  1 | def f(x):\n"
        "    |     ^\n"
        "<made up>:3:9: note: the other is here\n"
        "  3 | \treturn y\n"
        "    | \t       ^"
    )
    assert error.notes == [(file, 3, 9, "the other is here")]
    assert error.call_chain == [(file, 4, 5, "outer"), (file, 1, 5, "outermost")]


def test_places_without_source():
    assert str(compilation_error("error", "m", place("/not/there.py", 7, 3), None, [])) == "/not/there.py:7:4: error: m"
    assert str(compilation_error("error", "m", None, None, [])) == "error: m"
    assert str(compilation_error("error", "m", place(None, 0, 0), None, [])) == "error: m"


def test_errors_can_be_pickled(file):
    error = compilation_error("error", "m", place(file, 2, 8, 2, 16), "r", [(place(file, 1, 0), "n")])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.line, again.notes) == (error.line, error.notes)
    for error in (triton.OutOfResources(5, 3, "memory"), triton.InternalError("m", "file")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_hierarchy():
    for kind in (CompilationError, triton.OutOfResources, triton.InternalError, triton.MemoryAccessError):
        assert issubclass(kind, triton.TritonError)
    assert triton.compiler.CompilationError is triton.compiler.errors.CompilationError is CompilationError
    assert triton.runtime.errors.OutOfResources is triton.runtime.OutOfResources is triton.OutOfResources
    assert issubclass(triton.compiler.errors.CompileTimeAssertionFailure, CompilationError)


def test_internal_errors_leave_the_code_in_a_file():
    error = internal_error("broken", "func @f()")
    with open(error.dump) as dump:
        assert dump.read() == "func @f()"
    assert str(error) == f"bug in the compiler: broken; the intermediate representation is in {error.dump}"
    assert str(internal_error("broken", None)) == "bug in the compiler: broken"


def test_failures_of_launches():
    kinds = {
        "assertion": triton.DeviceAssertionError,
        "access": triton.MemoryAccessError,
        "overflow": triton.IntegerOverflowError,
        "division": triton.DivisionByZeroError,
        "race": triton.RaceError,
        "other": triton.KernelError,
    }
    for kind, error in kinds.items():
        raised = launch_error("k", kind, "what happened")
        what = " (device-side assert)" if kind in ("assertion", "overflow", "division") else ""
        assert type(raised) is error and str(raised) == f"kernel 'k': what happened{what}"


@triton.jit
def inner(x):
    return undefined_name + x  # noqa: F821


@triton.jit
def outer(out):
    tl.store(out, inner(3))


def test_a_real_error():
    with pytest.raises(triton.CompilationError) as raised:
        outer[(1,)](np.zeros(1))
    error = raised.value
    assert error.file == __file__
    lines = Path(__file__).read_text().splitlines()
    assert lines[error.line - 1][error.column - 1 :].startswith("undefined_name")
    file, line, column, function = error.call_chain[0]
    assert file == __file__
    assert lines[line - 1][column - 1 :].startswith("inner(3)")
    assert function == "outer"
    assert "    |            ^^^^^^^^^^^^^^" in str(error) or "^^^^^^^^^^^^^^" in str(error)
    assert "in call to 'inner' here" in str(error)


@triton.jit
def divides(out, n: tl.constexpr):
    tl.store(out, 1 // n)


def test_exceptions_of_compile_time_expressions_are_the_cause():
    with pytest.raises(triton.CompilationError) as raised:
        divides[(1,)](np.zeros(1), 0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


@triton.jit
def asserts(x):
    tl.device_assert(tl.load(x) > 0, "x must be positive")


def test_a_failed_assertion():
    x = np.zeros(1, np.float32)
    asserts[(1,)](x)
    with pytest.raises(triton.DeviceAssertionError, match="x must be positive"):
        asserts[(1,)](x, debug=True)


@pytest.mark.parametrize(
    "target, message",
    [
        ("cuda:", "there is no target 'cuda:'; targets are cpu, cuda, cuda:NN and sim:NN, NN a compute capability"),
        ("abacus", "there is no target 'abacus'; targets are cpu, cuda, cuda:NN and sim:NN, NN a compute capability"),
    ],
)
def test_targets(monkeypatch, target, message):
    monkeypatch.setenv("TRITON_TARGET", target)
    with pytest.raises(triton.errors.TargetError) as error:
        triton.jit(asserts.fn)[(1,)](np.ones(1, np.float32))
    assert str(error.value) == message


# ---- accesses out of bounds


@triton.jit
def copy(source, target, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + index, tl.load(source + index, mask=index < n), mask=index < n)


@triton.jit(noinline=True)
def store_at(target, n):
    tl.store(target + n, 1.0)


@triton.jit
def calls_store(target, n):
    store_at(target, n)


@pytest.mark.parametrize("wrap", [lambda array: array, torch.from_numpy], ids=["numpy", "torch"])
def test_bounds(wrap):
    source, target = wrap(np.ones(100, np.float32)), wrap(np.zeros(90, np.float32))
    copy[(2,)](source, target, 90, BLOCK=64, debug=True)
    assert target.sum() == 90
    with pytest.raises(triton.MemoryAccessError, match="store out of bounds of the array 'target'"):
        copy[(2,)](source, target, 91, BLOCK=64, debug=True)
    with pytest.raises(triton.MemoryAccessError, match="load out of bounds of the array 'source'"):
        copy[(2,)](source[:50], target, 51, BLOCK=64, debug=True)


def test_bounds_of_strided_and_reversed_arrays():
    array = np.arange(64, dtype=np.float32)
    target = np.zeros(64, np.float32)
    copy[(1,)](array[::2], target, 63, BLOCK=64, debug=True)
    with pytest.raises(triton.MemoryAccessError):
        copy[(1,)](array[::2], target, 64, BLOCK=64, debug=True)
    copy[(1,)](array[::-1], target, 1, BLOCK=64, debug=True)
    with pytest.raises(triton.MemoryAccessError):
        copy[(1,)](array[:40:-1], target, 2, BLOCK=64, debug=True)
    with pytest.raises(triton.MemoryAccessError):
        copy[(1,)](array[:0], target, 1, BLOCK=64, debug=True)


def test_bounds_in_functions_that_are_called():
    target = np.zeros(4, np.float32)
    calls_store[(1,)](target, 3, debug=True)
    assert target[3] == 1
    with pytest.raises(triton.MemoryAccessError, match="out of bounds of the array 'target'"):
        calls_store[(1,)](target, 4, debug=True)


def test_debugging_by_environment(monkeypatch):
    monkeypatch.setenv("TRITON_DEBUG", "1")
    with pytest.raises(triton.MemoryAccessError):
        triton.jit(copy.fn)[(1,)](np.ones(4, np.float32), np.ones(4, np.float32), 5, BLOCK=8)
    monkeypatch.setenv("TRITON_DEBUG", "0")
    assert not triton.jit(copy.fn).warmup(np.ones(4), np.ones(4), 4, BLOCK=8, grid=(1,)).metadata.debug
