"""benchmarks/gpu.py runs, beside a copy of this package in the peer's place; on the CPU where there is no GPU."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import triton

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"


def run(*arguments):
    command = [sys.executable, BENCHMARK, "--rounds", "1", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_two_processes_are_compared(tmp_path):
    package = Path(triton.__file__).parent
    binary = next(package.glob("_C*.so"))
    shutil.copytree(package, tmp_path / "peer" / "triton", ignore=shutil.ignore_patterns("_C*.so", "__pycache__"))
    os.symlink(binary, tmp_path / "peer" / "triton" / binary.name)
    rows, plots = tmp_path / "rows.json", tmp_path / "plots"
    result = run("--peer-path", tmp_path / "peer", "--only", "2^16", "--json", rows, "--plots", plots)
    assert result.returncode == 0, result.stdout
    (row,) = json.loads(rows.read_text())["rows"]
    assert row["case"] == "vector add 2^16 fp32"
    assert list(row["peers"]) == ["peer", "torch"]
    assert row["ratio"] == row["peers"]["peer"] / row["ours"]
    assert set(row["rates"]) == {"ours", "peer", "torch"}
    assert (plots / "ratios.png").exists()


@pytest.mark.slow
def test_there_may_be_no_peer(tmp_path):
    result = run("--peer-path", Path(triton.__file__).parents[1], "--only", "launch")
    assert result.returncode == 0, result.stdout
    assert "no peer: `import triton` is this repository everywhere" in result.stdout
    assert "launch, 16 arguments" in result.stdout
