"""Kernels compiled ahead of time, called by programs in C."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import triton
from triton.compiler import ASTSource
from triton.tools import ahead, compile, link

HERE = Path(__file__).parent
KERNELS = HERE / "ahead" / "kernels.py"
COMPILER = shutil.which("cc") or shutil.which("gcc")
SOFTMAX = "*fp32:16, *fp32:16, i32:16, 512", "*fp32, *fp32, i32, 512"
MATMUL = (
    "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, 1, 32, 32, 32",
    "*fp32, *fp32, *fp32, i32, i32, i32, 1, 32, 32, 32",
)

pytestmark = [pytest.mark.host, pytest.mark.skipif(not COMPILER, reason="there is no C compiler")]


@pytest.fixture(scope="module")
def kernels():
    spec = importlib.util.spec_from_file_location("ahead_kernels", KERNELS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_both(folder, target, *more):
    for name, signatures in (("softmax", SOFTMAX), ("matmul", MATMUL)):
        asked = [word for signature in signatures for word in ("-s", signature)]
        assert compile.main([str(KERNELS), "-n", name, "-t", target, "-o", str(folder), *asked, *more]) == 0


def build(folder, *flags):
    program = folder / "program"
    sources = [HERE / "ahead" / "program.c", *sorted(folder.glob("*.c")), *sorted(folder.glob("*.o"))]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-format-truncation"]
    command = [COMPILER, "-O1", *warnings, *flags, f"-I{folder}", *sources, "-o", program, "-lm", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def test_program_on_the_cpu(tmp_path):
    compile_both(tmp_path, "cpu")
    done = subprocess.run([build(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_program_on_the_fake_driver(tmp_path, target):
    compile_both(tmp_path, target, "--format", "ptx", "--ptx-version", "83" if target == "cuda:90" else "78")
    assert ".version 8.3" in bytes(eval(_image((tmp_path / "softmax_0.c").read_text()))).decode() or target == "cuda:80"
    library = tmp_path / "driver" / "libcuda.so.1"
    library.parent.mkdir()
    source = HERE / "fake_cuda" / "fake_cuda.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(library.parent)}
    command = [build(tmp_path, "-DON_GPU"), "fake"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    calls = [line for line in done.stdout.splitlines() if not line.startswith("allocate")]
    assert calls == [
        "load on 0",
        "launch (7, 1, 1) of 128 on 0, stream 0",
        "load on 0",  # of the other variant
        "launch (5, 1, 1) of 128 on 0, stream 0",
        "load on 0",
        "launch (2, 3, 1) of 128 on 0, stream 0",
        "load on 0",
        "launch (2, 2, 1) of 128 on 0, stream 0",
    ]


def _image(source):
    start = source.index("= {\n") + 4
    return "[" + source[start : source.index("};", start)] + "]"


def test_shared_object(tmp_path, kernels, capfd):
    """All kinds of arguments, and a failed assertion."""
    signature = ["*fp32", "fp32", "i64", "i8", "i1", "fp64"]
    variant = ahead.Variant(kernels.checked, signature, "checked", "cpu", {"debug": True})
    files = ahead.write(variant, tmp_path)
    library = ctypes.CDLL(ahead.build_shared([files["c"], files["o"]], tmp_path / "checked.so"))
    library.checked.argtypes = [
        *[ctypes.c_uint32] * 3,
        ctypes.c_void_p,
        ctypes.c_float,
        ctypes.c_int64,
        ctypes.c_int8,
        ctypes.c_bool,
        ctypes.c_double,
    ]
    x = (ctypes.c_float * 5)()
    assert library.checked(1, 1, 1, x, 2.5, -(1 << 40), -7, True, 0.125) == 0
    assert list(x) == [5, -(2.0**40), -7, 1, 0.125]
    assert library.checked(1, 1, 1, x, 12.0, 0, 0, False, 0.0) == -4
    assert "kernels.py" in (error := capfd.readouterr().err) and "scale is too large" in error
    assert library.checked(0, 1, 1, x, 12.0, 0, 0, False, 0.0) == 0


def test_arguments_that_do_not_fit(tmp_path, kernels):
    variant = ahead.Variant(kernels.softmax, ["*fp32:16", "*fp32:16", "i32:16", "512"], "one", "cpu")
    files = ahead.write(variant, tmp_path)
    library = ctypes.CDLL(ahead.build_shared([files["c"], files["o"]], tmp_path / "one.so"))
    x = (ctypes.c_float * 64)()
    place = (ctypes.addressof(x) + 15) // 16 * 16
    assert library.one(1, 1, 1, ctypes.c_void_p(place), ctypes.c_void_p(place), 16) == 0
    assert library.one(1, 1, 1, ctypes.c_void_p(place), ctypes.c_void_p(place), 15) == -1
    assert library.one(1, 1, 1, ctypes.c_void_p(place), ctypes.c_void_p(place + 4), 16) == -1


def test_offsets_are_wide_where_they_must(kernels):
    """Nobody is there to choose at a launch."""
    variant = ahead.Variant(kernels.softmax, ["*fp32", "*fp32", "i32", "512"], "wide", "cpu")
    assert variant.compiled.info["wide_offsets"]


def test_link(tmp_path, kernels, capsys):
    headers = []
    for number, signature in enumerate(SOFTMAX):
        variant = ahead.Variant(kernels.softmax, ahead.parse_signature(signature), f"s{number}", "cpu")
        headers.append(ahead.write(variant, tmp_path)["h"])
    assert link.main([*headers, "-o", str(tmp_path / "both")]) == 0
    text = (tmp_path / "both.c").read_text()
    assert text.index("return s0(") < text.index("return s1(")
    other = ahead.write(ahead.Variant(kernels.matmul, ahead.parse_signature(MATMUL[1]), "m", "cpu"), tmp_path)
    with pytest.raises(ValueError, match="variants of one kernel"):
        ahead.write_dispatcher([headers[0], other["h"]], "mixed", tmp_path)


def test_what_cannot_be_compiled_so(kernels, tmp_path):
    with pytest.raises(triton.UnsupportedError, match="'prints': printing"):
        ahead.Variant(kernels.prints, ["*fp32"], "prints", "cpu")
    with pytest.raises(triton.UnsupportedError, match="target 'sim:90'"):
        ahead.Variant(kernels.softmax, ["*fp32", "*fp32", "i32", "512"], "s", "sim:90")
    with pytest.raises(
        ValueError, match=r"'softmax' has 4 parameters \(out, x, columns, BLOCK\), and the signature has 2"
    ):
        ahead.Variant(kernels.softmax, ["*fp32", "*fp32"], "s", "cpu")
    mistakes = {
        "*fp33, *fp32, i32, 512": r"'out': '\*fp33' is neither a value nor a type",
        "*fp32, *fp32, i32, i32": "'BLOCK': 'i32' is no value, as a compile-time parameter has one",
        "*fp32, *fp32, i32:3, 512": "'columns': 'i32:3': integers and pointers may be multiples of 4, 8 or 16",
        "*fp32, *fp32, fp32:16, 512": "'columns': 'fp32:16': integers and pointers may be",
    }
    for signature, message in mistakes.items():
        with pytest.raises(ValueError, match=message):
            ahead.Variant(kernels.softmax, ahead.parse_signature(signature), "s", "cpu")
    with pytest.raises(SystemExit, match="no kernel 'nothing'"):
        compile.main([str(KERNELS), "-n", "nothing", "-s", "i32"])


def test_mistakes_are_told_on_stderr(tmp_path, capsys):
    """Without a traceback: they are those of a command line."""
    with pytest.raises(SystemExit) as end:
        compile.main([str(KERNELS), "-n", "softmax", "-s", "*fp32", "-t", "cpu"])
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith("kernel 'softmax' has 4 parameters (out, x, columns, BLOCK)")
    (tmp_path / "other.h").write_text("int other;\n")
    with pytest.raises(SystemExit) as end:
        link.main([str(tmp_path / "other.h"), "-o", "all"])
    assert end.value.code == 1 and "other.h is no header of a kernel" in capsys.readouterr().err


def test_compile_for_a_gpu_that_is_not_there(kernels):
    signature = {"out": "*fp32", "x": "*fp32", "columns": "i32"}
    source = ASTSource(kernels.softmax, signature, {"BLOCK": 512})
    texts = []
    for version in (None, 80, 84):
        compiled = triton.compile(source, "cuda:90", {"ptx_version": version})
        texts.append(next(line for line in compiled.asm["ptx"].splitlines() if line.startswith(".version")))
    assert texts[1:] == [".version 8.1", ".version 8.4"]  # the code for 9.0 takes 8.1
    same = triton.compile(kernels.softmax, "cuda:90", signature=signature, constants={"BLOCK": 512})
    assert same.asm["ptx"] == triton.compile(source, "cuda:90").asm["ptx"]
    with pytest.raises(TypeError, match="an ASTSource, or a kernel with its signature"):
        triton.compile(kernels.softmax, "cuda:90")
