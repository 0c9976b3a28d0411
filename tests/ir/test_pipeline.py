"""The pass manager: its switches, and how long it takes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triton import _C

TEXT = """
func @f(%x: i32) -> (i32) {
  %zero = constant {value = 0} : i32
  %y = add %x, %zero : i32
  return %y
}
"""


def run(switch):
    """What the pipeline writes to standard error with TRITON_DUMP set."""
    program = f"from triton import _C; _C._run_pass({TEXT!r}, 'pipeline')"
    env = {**os.environ, "TRITON_DUMP": switch}
    return subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True).stderr


def test_dump_after_one_pass():
    dump = run("after:dce")
    assert dump.startswith("// after dce\nfunc @f(%x: i32)") and dump.count("// after") == 1
    assert "add" not in dump


def test_dump_after_all_passes_that_changed_something():
    dump = run("after:all")
    assert [line for line in dump.splitlines() if line.startswith("//")] == ["// after canonicalize", "// after dce"]


def test_dump_of_the_result():
    assert run("after:pipeline").count("// after pipeline") == 1
    assert run("after:nothing") == run("before:dce") == ""


def test_unknown_pass():
    with pytest.raises(ValueError, match="there is no pass 'vectorize'"):
        _C._run_pass(TEXT, "vectorize")


def test_malformed_input_is_refused():
    with pytest.raises(ValueError, match=r"\^ takes 2 operands, not 1"):
        _C._run_pass("func @f(%x: i32) -> (i32) {\n  %y = add %x : i32\n  return %y\n}\n", "dce")


def test_a_matrix_product_takes_less_than_two_milliseconds(monkeypatch):
    monkeypatch.setenv("TRITON_VERIFY", "0")
    text = (Path(__file__).parent / "pipeline" / "matmul.tt").read_text().partition("// expected")[0]
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        _C._run_pass(text, "pipeline")  # parsing, verifying and printing besides
        best = min(best, time.perf_counter() - start)
    assert best < 0.002
