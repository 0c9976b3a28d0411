"""What type checkers make of kernels: nothing of the language is `Any` to them. Skipped where there is no mypy."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import triton
import triton.language as tl

@triton.jit
def scaled(x: tl.tensor, factor: tl.constexpr) -> tl.tensor:
    return x * factor

@triton.jit
def kernel(x_ptr: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    for _ in range(n):
        x = tl.where(x > 0, scaled(x, 2).to(tl.float32), 0.0)
    tl.store(x_ptr + i, tl.softmax(x) + tl.sum(x, axis=0) + tl.exp(x)[:, None].trans(), mask=i < n)
    reveal_type(x)
    reveal_type(tl.max(x, 0))

kernel[(1,)](1, 2, BLOCK=16)
reveal_type(kernel)
reveal_type(scaled)
reveal_type(triton.cdiv(3, 2))
"""
WRONG = "import triton.language as tl\ntl.arange(0)\ntl.load(3, masks=4)\nx: int = tl.exp('no')\n"


def check(program, tmp_path):
    pytest.importorskip("mypy")
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--check-untyped-defs",
        "--no-incremental",
        "--follow-imports=silent",
        path,
    ]
    environment = {"MYPYPATH": str(Path(__file__).parents[2] / "python"), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)


def test_a_kernel_is_typed(tmp_path):
    done = check(PROGRAM, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed" in line]
    assert revealed[:2] == ["triton.language.tensors.tensor"] * 2
    assert revealed[2].startswith("triton.runtime.jit.JITFunction[[x_ptr: triton.language.tensors.tensor")
    assert revealed[3].endswith("], triton.language.tensors.tensor]") and revealed[4].endswith("int")


def test_mistakes_are_seen(tmp_path):
    done = check(WRONG, tmp_path)
    assert {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line} == {"2", "3", "4"}
