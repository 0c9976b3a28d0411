"""What belongs to Triton-C beside the compiler: its benchmark, and colours for documents."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from triton.tools.ahead import build_shared

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.host
@pytest.mark.slow
@pytest.mark.parametrize("only", ["transformer", "conv 7x7", "shift 7x7"])
def test_the_benchmark_of_the_papers_experiments_runs(only, tmp_path):
    """At sizes that say nothing about speed; results are checked."""
    pytest.importorskip("torch")
    file = tmp_path / "paper.json"
    command = [sys.executable, ROOT / "benchmarks" / "paper.py", "--reduce", "64", "--only", only, "--json", file]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_TARGET"}
    subprocess.run(command, check=True, env=environment)
    rows = json.loads(file.read_text())["rows"]
    assert rows and all(row["tflops"]["ours"] > 0 and row["peers"] for row in rows)


SCALE = """
const tunable int TM = {16, 32};
kernel void scale(const float *x, float *y, float factor, int n) {
  int i[TM] = get_global_range(0);
  @(i < n) *(y + i) = factor * (i < n ? *(x + i) : 0);
}
kernel void clear(float *x) { *x = 0; }
"""


def aligned(values):
    """As float32, at a multiple of 16 bytes."""
    memory = np.zeros(len(values) + 4, np.float32)
    start = -memory.ctypes.data % 16 // 4
    memory[start : start + len(values)] = values
    return memory[start : start + len(values)]


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def emit(folder, *arguments):
    (folder / "scale.tc").write_text(SCALE)
    command = [sys.executable, "-m", "triton.c", folder / "scale.tc", "--emit", "c", "-o", folder, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


@pytest.mark.host
def test_functions_in_c(tmp_path):
    """The command writes them, a C compiler takes them, and they need no Python."""
    files = emit(tmp_path, "--target", "cpu", "-D", "TM=32")
    assert sorted(file.name for file in files) == [f"{name}.{end}" for name in ("clear", "scale") for end in "cho"]
    assert "const float *x, float *y, float factor, int32_t n" in (tmp_path / "scale.h").read_text()
    sources = [file for file in files if file.suffix != ".h"]
    library = ctypes.CDLL(build_shared(list(map(str, sources)), str(tmp_path / "libscale.so")))
    x, y = aligned(np.arange(100)), aligned(np.zeros(128))
    status = library.scale(4, 1, 1, address(x), address(y), ctypes.c_float(2), 100)
    assert status == 0 and (y[:100] == x[:100] * 2).all() and not y[100:].any()
    assert library.clear(1, 1, 1, address(y[4:])) == 0 and y[4] == 0 == y[0] and y[5] == 10
    assert library.clear(1, 1, 1, address(y[5:])) == -1  # TRITON_NO_VARIANT: not a multiple of 16


@pytest.mark.host
def test_functions_in_c_for_a_gpu(tmp_path):
    files = emit(tmp_path, "--target", "cuda:90", "--kernel", "scale")
    assert [file.name for file in files] == ["scale.h", "scale.c"]
    assert "uint64_t x, uint64_t y, float factor, int32_t n" in (tmp_path / "scale.h").read_text()


def test_colours():
    pygments = pytest.importorskip("pygments")
    from pygments.formatters import RawTokenFormatter

    from triton.c.highlight import TritonCLexer

    text = "kernel void f(half *p) { @(i < n) *(p + i[:, newaxis]) = 0 ... 8; }"
    tokens = pygments.highlight(text, TritonCLexer(), RawTokenFormatter()).decode()
    assert "Token.Error" not in tokens and "Token.Keyword\t'newaxis'" in tokens
    assert "Token.Keyword.Type\t'half'" in tokens and "Token.Operator\t'...'" in tokens
