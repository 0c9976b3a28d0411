"""Kernels compiled ahead of time with their grid: the C that the public API's tools document."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from triton.tools import ahead_grid, compile, link
from triton.tools.compile import CompileArgs, compile_kernel

HERE = Path(__file__).parent
KERNELS = HERE / "ahead" / "kernels.py"
COMPILER = shutil.which("cc") or shutil.which("gcc")
WARNINGS = "-Wall", "-Wextra", "-Werror"
GRID = "(m + M - 1) / M, (n + N - 1) / N, 1"

pytestmark = [pytest.mark.host, pytest.mark.skipif(not COMPILER, reason="there is no C compiler")]


def compile_products(folder):
    """Two algorithms, each in a variant for any n and one for multiples of 16; the names of the functions."""
    names = []
    for rows, warps in ((32, 1), (64, 2)):
        for hint in ("", ":16"):
            signature = f"*fp32:16, *fp32:16, *fp32:16, i32, i32{hint}, i32, i32:1, {rows}, 32, 32"
            args = CompileArgs(str(KERNELS), "matmul", signature, GRID, "cuda:80:32", warps, out_path=folder / "mm")
            name, files = compile_kernel(args, "ptx")
            assert [Path(file).name for file in files] == [f"mm.{name.removeprefix('matmul_')}.{end}" for end in "hc"]
            names.append(name)
    return names


def driver(folder):
    """The fake one, built as the library of that name."""
    library = folder / "libcuda.so.1"
    source = HERE / "fake_cuda" / "fake_cuda.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)
    (folder / "libcuda.so").symlink_to(library)
    return folder


def run(program, *arguments):
    environment = os.environ | {"LD_LIBRARY_PATH": str(program.parent)}
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def build(folder, *sources):
    program = driver(folder) / "program"
    include = [f"-I{folder}", f"-I{HERE / 'fake_cuda'}"]
    subprocess.run([COMPILER, *WARNINGS, *include, *sources, "-o", program, f"-L{folder}", "-lcuda"], check=True)
    return program


def program_that(folder, header, *statements):
    """A source which does this in a context of the driver, and shows what that was asked."""
    lines = [
        f'#include "{Path(header).name}"\n#include <stdio.h>',
        "const char *fake_log(void);\nvoid fake_set_watched_parameter(int number);\nint main(void)\n{",
        "CUcontext context;\ncuInit(0);\ncuDevicePrimaryCtxRetain(&context, 0);\ncuCtxSetCurrent(context);",
        *statements,
        'printf("%s", fake_log());\nreturn 0;\n}\n',
    ]
    source = folder / "main.c"
    source.write_text("\n".join(lines))
    return source


def test_program(tmp_path):
    names = compile_products(tmp_path)
    places = ["0d1d2d3456c789", "0d1d2d34d56c789"] * 2
    assert [re.fullmatch("matmul_[0-9a-f]{8}_(.*)", name)[1] for name in names] == places
    assert len(set(names)) == 4
    headers = [str(tmp_path / f"mm.{name.removeprefix('matmul_')}.h") for name in names]
    assert link.main([*headers, "-o", str(tmp_path / "product")]) == 0
    program = build(tmp_path, HERE / "ahead" / "grid_program.c", *tmp_path.glob("*.c"))
    launches = [
        "launch (2, 3, 1) of 32 on 0, stream 0",
        "parameter 4 is 0x60",
        "launch (2, 2, 1) of 32 on 0, stream 0",
        "parameter 4 is 0x40",
        "launch (2, 2, 1) of 32 on 0, stream 0x1",
        "parameter 4 is 0x32",
        "launch (1, 2, 1) of 64 on 0, stream 0",
        "parameter 4 is 0x32",
    ]
    loaded = "load on 0"
    when_needed = [loaded, *launches[:4], loaded, *launches[4:6], loaded, *launches[6:]]
    # Nothing is launched where there are no programs, a stride is not 1, an address no multiple, and no algorithm.
    results = ["2 algorithms", "0", "0", "0", "0", "0", "1", "1", "1"]
    said = [line for line in run(program).stdout.splitlines() if not line.startswith("allocate")]
    assert said == [*results, *when_needed, *["unload from 0"] * 3]
    said = [line for line in run(program, "load").stdout.splitlines() if not line.startswith("allocate")]
    assert said == [*results, *[loaded] * 4, *launches, *["unload from 0"] * 4]


def test_tools_run_by_their_paths(tmp_path):
    """As programs run them that look for the files."""
    tools = Path(compile.__file__).parent
    environment = os.environ | {"PYTHONPATH": str(tools.parents[1])}
    options = ["--num-warps=4", "--num-stages=2", "--target=cuda:90:32", "--format=ptx"]
    names = ["--kernel-name", "softmax", "--out-name", "rows", "--out-path", "rows"]
    signature = ["--signature", "*fp32, *fp32, i32, 512", "--grid", "columns / 2"]
    command = [sys.executable, tools / "compile.py", KERNELS, *names, *options, *signature]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    [header] = [path.name for path in tmp_path.glob("rows.*_0123.h")]
    command = [sys.executable, tools / "link.py", header, "-o", "all.h"]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    assert "CUresult rows_512_warps4xstages2(CUstream stream, CUdeviceptr out, CUdeviceptr x, int32_t columns);" in (
        (tmp_path / "all.h").read_text()
    )
    assert (tmp_path / "all.c").exists()


def test_a_kernel_that_is_not_loaded(tmp_path):
    """The reason is told on stderr, and returned by the launch."""
    args = CompileArgs(str(KERNELS), "prints", "*fp32", "1, 1, 1", "cuda:80", out_path=tmp_path / "p")
    name, [header, source] = compile_kernel(args, "ptx")
    text = Path(source).read_text()
    Path(source).write_text(text.replace(f'{name}_module, "prints"', f'{name}_module, "missing"'))
    main = program_that(tmp_path, header, f"load_{name}();", f'printf("%d\\n", {name}(NULL, 0));')
    done = run(build(tmp_path, main, source))
    assert done.stdout.splitlines()[0] == "500"
    assert done.stderr == f"{name} is not loaded: some error\n" * 2


def test_large_shared_memory_and_arguments_of_all_kinds(tmp_path):
    """The driver is asked for more than 48 KiB; numbers get to the kernel by their bits."""
    kernel = tmp_path / "all_kinds.py"
    kernel.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def all_kinds(out, stream, x, y, z, B: tl.constexpr):\n"
        "    a = tl.load(out + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :])\n"
        "    p = tl.dot(a, a, input_precision='ieee')\n"
        "    p = tl.dot(p, tl.trans(p), input_precision='ieee') * stream + x + y + z\n"
        "    tl.store(out + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], p)\n"
    )
    args = CompileArgs(str(kernel), "all_kinds", "*fp32, fp32, fp64, i8, i1, 128", "stream, B", "cuda:80", 8)
    args.out_path = tmp_path / "k"
    name, [header, source] = compile_kernel(args, "ptx")
    assert f"{name}(CUstream stream, CUdeviceptr out, float stream_, double x, int8_t y, bool z);" in (
        Path(header).read_text()
    )
    launch = f"{name}(NULL, 0, 2.5f, -2.5, -7, 1);"
    main = program_that(
        tmp_path, header, *(f"fake_set_watched_parameter({number});\n{launch}" for number in range(1, 5))
    )
    said = run(build(tmp_path, main, source)).stdout.splitlines()
    assert [line for line in said if "parameter" in line] == [
        f"parameter {number} is {bits}"
        for number, bits in enumerate(["0x40200000", "0xc004000000000000", "0xfffffffffffffff9", "0x1"], 1)
    ]
    assert re.fullmatch(r"attribute 8 is \d{5,6}", said[1]) and "launch (2, 128, 1) of 256 on 0, stream 0" in said


def test_folders_for_a_c_compiler(tmp_path, monkeypatch):
    from triton.backends.nvidia import driver as nvidia

    header = tmp_path / "toolkit" / "include" / "cuda.h"
    header.parent.mkdir(parents=True)
    header.touch()
    script = "from triton.backends.nvidia.driver import include_dirs; print(*include_dirs, sep='\\n')"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        environment = os.environ | {variable: str(tmp_path / "toolkit")}
        said = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True).stdout
        assert said.splitlines()[0] == str(header.parent)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path / 'none'}:{driver(tmp_path)}")
    assert nvidia.library_dirs()[0] == str(tmp_path) and nvidia.libcuda_dirs() == nvidia.library_dirs()
    (tmp_path / "libcuda.so.1").unlink()
    assert str(tmp_path) not in _folders_or_none(nvidia)


def _folders_or_none(nvidia):
    try:
        return nvidia.libcuda_dirs()
    except RuntimeError as error:
        assert "libcuda.so.1 was not found" in str(error)
        return []


def test_in_a_class_of_cpp(tmp_path):
    """Programs put what follows the first comment by // into one, to have an object for each context."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if not compiler:
        pytest.skip("there is no C++ compiler")
    args = CompileArgs(str(KERNELS), "softmax", "*fp32, *fp32, i32, 512", "1, 1, 1", "cuda:80", out_path=tmp_path / "s")
    name, [_, source] = compile_kernel(args, "ptx")
    before, comment, code = Path(source).read_text().partition("//")
    wrapped = tmp_path / "wrapped.cpp"
    launch = f"CUresult launch() {{ return kernels[0].{name}(nullptr, 0, 0, 3); }}"
    wrapped.write_text(f"{before}struct Kernel {{\n{comment}{code}}};\nstatic Kernel kernels[2];\n{launch}\n")
    subprocess.run([compiler, "-c", *WARNINGS, f"-I{HERE / 'fake_cuda'}", wrapped, "-o", tmp_path / "o"], check=True)


@pytest.mark.parametrize(
    "signature, grid, target, message",
    [
        (
            "*fp32, *fp32, i32, 512",
            "rows, 1",
            "cuda:80",
            "rows is no parameter of kernel 'softmax' (out, x, columns, BLOCK)",
        ),
        ("*fp32, *fp32, i32, 512", "1, 2, 3, 4", "cuda:80", "up to three expressions of C"),
        ("*fp32, *fp32, i32, 512", "", "cuda:80", "up to three expressions of C"),
        ("*fp32, *fp32, i32, 512", "columns // 2", "cuda:80", "it is C, where / of integers rounds down"),
        ("*fp32, *fp32, i32, None", "BLOCK", "cuda:80", "BLOCK is None, which is no number"),
        ("*fp32, *fp32, fp16, 512", "1", "cuda:80", "fp16, a number: C has no such type; pass an fp32"),
        ("*fp32, *fp32, i32", "1", "cuda:80", "and the signature has 3 items"),
        ("*fp32, *fp32, i32, 512", "1", "cpu", "for the target 'cpu': it is for GPUs (cuda:90)"),
        ("*fp32, *fp32, i32, 512", "1", "hip:gfx942:64", "for the target 'hip:gfx942:64': it is for GPUs (cuda:90)"),
    ],
)
def test_mistakes(signature, grid, target, message, capsys):
    with pytest.raises(SystemExit) as end:
        compile.main([str(KERNELS), "-n", "softmax", "-s", signature, "-g", grid, "-t", target])
    assert end.value.code == 1 and message in capsys.readouterr().err


def test_what_is_joined_has_to_be_alike(tmp_path):
    headers = []
    for name, kind in (("a", "*fp32"), ("b", "*fp32"), ("a", "*fp16")):
        args = CompileArgs(str(KERNELS), "softmax", f"{kind}, *fp32, i32, 512", "1", "cuda:80", out_name=name)
        args.out_path = tmp_path / f"{name}{kind[1:]}"
        headers.append(compile_kernel(args, "ptx")[1][0])
    for pair, message in ((headers[:2], "variants of one kernel"), (headers[::2], "'out' is \\*fp16 and \\*fp32")):
        with pytest.raises(ValueError, match=message):
            ahead_grid.write_algorithms(pair, tmp_path / "all")
