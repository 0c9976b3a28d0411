"""What type checkers make of kernels: nothing of the language is `Any` to them. Skipped where there is no mypy."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
reveal_type(kernel[1](1, 2, BLOCK=16, num_warps=2))
tuned = triton.autotune([triton.Config({"BLOCK": 16}, num_warps=2)], key=["n"])(kernel)
reveal_type(tuned)
reveal_type(tuned[1](1, 2))
reveal_type(triton.heuristics({"BLOCK": lambda arguments: arguments["n"]})(kernel))
reveal_type(triton.testing.get_dram_gbps())
reveal_type(tl.float32.primitive_bitwidth)

@triton.jit
def typed(factor: tl.float32, x: tl.tensor):
    reveal_type(factor.to(tl.int32) + min(factor, 2.0))
    return x.to(tl.float16 if x.dtype == tl.float32 else x.dtype.element_ty)
"""
WRONG = """import triton, triton.language as tl
tl.arange(0)
tl.load(3, masks=4)
x: int = tl.exp('no')
tl.arrange(0, 4)
triton.jitt
triton.Config({}, num_warps="4")
triton.autotune([], key=[], restore="x")
triton.testing.do_bench(3)
"""


# Reading the types of torch takes mypy most of a minute, and nothing of these is about them. The package's own files
# are what programs see of them, be it installed here or not.
SETTINGS = """[mypy]
[mypy-torch.*,matplotlib.*]
follow_imports = skip
[mypy-triton.*]
ignore_errors = True
"""


def run(*arguments, cwd):
    """`mypy` as a module of this Python; a cache of its own is shared by the tests of a run."""
    pytest.importorskip("mypy")
    environment = os.environ | {"MYPYPATH": str(ROOT / "python"), "MYPY_CACHE_DIR": str(cwd.parent / "mypy")}
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, env=environment, cwd=cwd)


def settings(tmp_path):
    path = tmp_path / "mypy.ini"
    path.write_text(SETTINGS)
    return path


def check(program, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(program)
    options = "--config-file", settings(tmp_path), "--check-untyped-defs", "--follow-imports=silent"
    return run("mypy", *options, path, cwd=tmp_path)


def test_a_kernel_is_typed(tmp_path):
    done = check(PROGRAM, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed" in line]
    assert revealed[:2] == ["triton.language.tensors.tensor"] * 2
    assert revealed[2].startswith("triton.runtime.jit.JITFunction[[x_ptr: triton.language.tensors.tensor")
    assert revealed[3].endswith("], triton.language.tensors.tensor]") and revealed[4].endswith("int")
    tuner, compiled = "triton.runtime.autotuner.Autotuner", "triton.compiler.compiled.CompiledKernel"
    assert revealed[5:9] == [compiled, tuner, compiled, "triton.runtime.launchable.Heuristics"]
    assert revealed[9:11] == ["float", "int"] and "tensor" in revealed[11]


def test_mistakes_are_seen(tmp_path):
    done = check(WRONG, tmp_path)
    assert {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line} == set("23456789")


@pytest.mark.slow
@pytest.mark.host
def test_the_tutorials_have_no_errors(tmp_path):
    pytest.importorskip("torch")
    lessons = sorted((ROOT / "tutorials").glob("[0-9]*.py"))
    done = run("mypy", "--check-untyped-defs", "--follow-imports=silent", *lessons, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.host
def test_pyright_finds_no_errors_in_the_tutorials(tmp_path):
    pyright = shutil.which("pyright") or shutil.which("basedpyright")
    if not pyright:
        pytest.skip("there is no pyright")
    packages = tmp_path / "installed/lib/python3.11/site-packages"  # as users have it: what is not exported is private
    packages.mkdir(parents=True)
    for name in ("torch", "numpy", "matplotlib"):
        (packages / name).symlink_to(Path(pytest.importorskip(name).__file__).parent)
    (packages / "triton").symlink_to(ROOT / "python/triton")
    lessons = sorted((ROOT / "tutorials").glob("[0-9]*.py"))
    for lesson in lessons:
        shutil.copy(lesson, tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG)
    settings = {"typeCheckingMode": "standard", "include": ["*.py"], "venvPath": ".", "venv": "installed"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings | {"pythonVersion": "3.11"}))
    done = subprocess.run([pyright, "-p", ".", "--outputjson"], capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    errors = [(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found["generalDiagnostics"]]
    assert found["summary"]["filesAnalyzed"] == len(lessons) + 1, done.stdout
    assert set(errors) == {("wrong.py", line) for line in range(2, 10)}, done.stdout


@pytest.mark.host
def test_stubs_say_what_is_there(tmp_path):
    """Each .pyi names only what its module has, with the same parameters."""
    stubs = sorted((ROOT / "python/triton").rglob("*.pyi"))
    modules = [".".join(stub.relative_to(ROOT / "python").with_suffix("").parts) for stub in stubs]
    options = "--mypy-config-file", settings(tmp_path), "--concise", "--ignore-missing-stub"
    done = run("mypy.stubtest", *options, *modules, cwd=tmp_path)
    assert modules and done.returncode == 0, done.stdout + done.stderr
