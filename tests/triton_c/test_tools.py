"""What belongs to Triton-C beside the compiler: its benchmark, and colours for documents."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_colours():
    pygments = pytest.importorskip("pygments")
    from pygments.formatters import RawTokenFormatter

    from triton.c.highlight import TritonCLexer

    text = "kernel void f(half *p) { @(i < n) *(p + i[:, newaxis]) = 0 ... 8; }"
    tokens = pygments.highlight(text, TritonCLexer(), RawTokenFormatter()).decode()
    assert "Token.Error" not in tokens and "Token.Keyword\t'newaxis'" in tokens
    assert "Token.Keyword.Type\t'half'" in tokens and "Token.Operator\t'...'" in tokens
