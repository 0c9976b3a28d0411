"""A debugger steps through an interpreted kernel as through any function, and shows tiles."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("softmax.py")


def session(*commands):
    """What pdb writes, a list for each command, of a program that stops at a `breakpoint()` in its kernel."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONBREAKPOINT", None)
    done = subprocess.run(
        [sys.executable, PROGRAM], input="\n".join([*commands, ""]), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return [part.strip().splitlines() for part in done.stdout.split("(Pdb) ")]


def test_stepping_through_softmax():
    start, row, name, next_line, step, inner, back, where, rest = session(
        "p row", "p columns.dtype, row.shape, n, BLOCK", "next", "p shifted", "next", "next", "p part", "c"
    )
    assert start[-1] == "-> shifted = row - largest(row)" and "softmax.py(21)softmax()" in start[-2]
    assert row == ["tile([  0.,   1.,   2., -inf], fp32)"]
    assert name == ["(triton.language.int32, (4,), tile(3, int32), 4)"]
    assert next_line[-1] == "-> powers = tl.exp(shifted)"
    assert step == ["tile([ -2.,  -1.,   0., -inf], fp32)"]
    assert inner[-1] == "-> for part in range(2):" and back[-1].startswith("-> share = powers")
    assert where == ["tile(0, int32)"]
    assert rest == ["result True"]


def test_stepping_into_a_function_of_the_kernel():
    start, into, first, second, inside, up, rest = session("step", "step", "step", "p row, top", "return", "c")
    assert into[0] == "--Call--" and into[1].endswith("largest()") and into[2] == "-> def largest(row):"
    assert first[-1] == "-> top = tl.max(row, axis=0)" and second[-1] == "-> return top"
    assert inside == ["(tile([  0.,   1.,   2., -inf], fp32), tile(2., fp32))"]
    assert "--Return--" in up and rest == ["result True"]


def test_where_shows_the_kernel_and_its_launch():
    start, frames, rest = session("where", "c")
    functions = [line for line in frames if "softmax.py" in line]
    assert len(functions) == 2 and functions[0].endswith("<module>()") and functions[1].endswith("softmax()")
