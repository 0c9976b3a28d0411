"""Kernels in Triton-C as Python sees them: launches, tunables, sizes, options, debug checks, the command line."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from programs import launch

import triton
import triton.c
import triton.language as tl
from triton.compiler import ASTSource

pytestmark = pytest.mark.host

ADD = """
const tunable int N = {64, 128};
kernel void add(const float *x, const float *y, float *out, int size) {
    int i[N] = get_global_range(0);
    @(i < size) *(out + i) = *(x + i) + *(y + i);
}
"""


def vectors(size=1000):
    x = np.arange(size, dtype=np.float32)
    return x, x * 2, np.zeros(size, np.float32)


def test_launches_on_a_grid():
    x, y, out = vectors()
    kernel = triton.c.compile(ADD)
    kernel[(triton.cdiv(1000, 64),)](x, y, out, 1000)
    assert (out == x * 3).all()
    kernel[lambda meta: (triton.cdiv(meta["size"], meta["N"]),)](x, x, out, 1000, N=128)
    assert (out == x * 2).all()


@pytest.mark.parametrize("size", ["size", ("size",), 1000, [1000]])
def test_launches_over_a_size(size):
    x, y, out = vectors()
    triton.c.compile(ADD)(x, y, out, 1000, size=size, N=32)
    assert (out == x * 3).all()


def test_the_size_of_all_launches():
    x, y, out = vectors()
    kernel = triton.c.compile(ADD)
    kernel.size = ("size",)
    kernel(x, y, out, 1000)
    assert (out == x * 3).all()
    kernel[kernel.grid("size")](x, x, out, 500)
    assert (out == np.where(x < 500, x * 2, x * 3)).all()


def test_a_launch_without_a_size_says_what_is_missing():
    with pytest.raises(TypeError, match=r"add\(\) has global ranges along 1 axis: say how many indices each covers"):
        triton.c.compile(ADD)(*vectors(), 1000)
    with pytest.raises(TypeError, match="global ranges along 1 axis, and size=.* is of 2"):
        triton.c.compile(ADD)(*vectors(), 1000, size=(1, 2))
    with pytest.raises(TypeError, match="size='length' names no parameter; it has: x, y, out, size, N"):
        triton.c.compile(ADD)(*vectors(), 1000, size="length")


def test_arguments_are_checked():
    kernel, (x, y, out) = triton.c.compile(ADD), vectors()
    with pytest.raises(TypeError, match="annotated as a pointer to float32, but the array holds float64"):
        kernel(x.astype(np.float64), y, out, 1000, size="size")
    with pytest.raises(TypeError, match="annotated as int32 and cannot take the float 1.5"):
        kernel(x, y, out, 1.5, size=1000)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
        kernel(x, y, out, size=1000)
    with pytest.raises(TypeError, match="unexpected keyword argument 'seize'; did you mean 'size'"):
        kernel[(1,)](x, y, out, seize=4)


def test_read_only_arrays():
    x, y, out = vectors()
    x.flags.writeable = out.flags.writeable = False
    kernel = triton.c.compile(ADD)
    with pytest.raises(ValueError, match="argument 'out'.* read-only"):
        kernel(x, y, out, 1000, size="size")


def test_tunables_as_a_list_and_as_configurations():
    kernel = triton.c.compile("const tunable int A = {1, 2}, B = {8, 16}; kernel void f(int *p) { *p = A * B; }")
    assert kernel.tunables == [("A", [1, 2]), ("B", [8, 16])]
    configs = [config.kwargs for config in kernel.configs(num_warps=2)]
    assert configs == [{"A": a, "B": b} for a in (1, 2) for b in (8, 16)]


def test_an_autotuned_kernel():
    kernel = triton.c.compile(ADD)
    tuned = triton.autotune(kernel.configs(), key=["size"], do_bench=lambda launch, quantiles: launch() and [1, 1, 1])(
        kernel
    )
    x, y, out = vectors()
    tuned[kernel.grid("size")](x, y, out, 1000)
    assert (out == x * 3).all() and tuned.best_config.kwargs["N"] in (64, 128)


def test_a_search_among_the_values_of_tunables():
    kernel = triton.c.compile(ADD)
    tuned = triton.autotune("auto", key=["size"])(kernel)
    x, y, out = vectors()
    tuned[kernel.grid("size")](x, y, out, 1000)
    assert (out == x * 3).all() and tuned.best_config.kwargs["N"] in (64, 128)


def test_programs_of_several_kernels():
    program = triton.c.Program("kernel void a(int *p) { *p = 1; } kernel void b(int *p) { *p = 2; }")
    assert list(program) == ["a", "b"] and len(program) == 2
    p = np.zeros(1, np.int32)
    program["b"][(1,)](p)
    assert p[0] == 2
    program["a"](p)
    assert p[0] == 1
    with pytest.raises(ValueError, match="has 2 kernels; name the one you want: a, b"):
        triton.c.compile(program.text)
    with pytest.raises(ValueError, match="has no kernel 'c'; it has: a, b"):
        triton.c.compile(program.text, "c")
    with pytest.raises(ValueError, match="has 0 kernels"):
        triton.c.compile("const int N = 3;")


def test_files(tmp_path):
    file = tmp_path / "add.tc"
    file.write_text(ADD)
    kernel = triton.c.load(file)
    assert kernel.__name__ == "add" and kernel.source_file == str(file)
    x, y, out = vectors()
    kernel(x, y, out, 1000, size="size")
    assert (out == x * 3).all()


def test_constant_arrays_are_parameters():
    out, table = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)[::-1].copy()
    launch("""__constant__ int *table = alloc_const int[8];
        kernel void f(int *out) { int i[8] = 0 ... 8; *(out + i) = *(table + i); }""", out, table=table)  # fmt: skip
    assert (out == table).all()


def test_none_is_a_null_pointer():
    out = np.zeros(1, np.int32)
    source = "kernel void f(int *out, int *p) { if (p == 0) *out = 1; else *out = *p; }"
    launch(source, out, None)
    assert out[0] == 1
    launch(source, out, np.array([7], np.int32))
    assert out[0] == 7


@pytest.mark.parametrize("kind, value", [("int8", -3), ("uint8", 200), ("int64", 2**40), ("uint64", 2**63),
                                         ("half", 0.5), ("float", 1.25), ("double", 0.1), ("bool", True)])  # fmt: skip
def test_scalar_parameters(kind, value):
    array = {"half": "float16", "float": "float32", "double": "float64"}.get(kind, kind)
    out = np.zeros(1, array)
    launch(f"kernel void f({kind} *out, {kind} x) {{ *out = x; }}", out, value)
    assert out[0] == np.array(value, array)


def test_stages_of_a_compiled_kernel():
    types = {"x": "*kfp32", "y": "*kfp32", "out": "*fp32", "size": "i32"}
    compiled = triton.compile(ASTSource(triton.c.compile(ADD), types), "cuda:90", {"num_warps": 2})
    assert ".visible .entry add(" in compiled.asm["ptx"] and "kernel @add" in compiled.asm["ttir"]
    assert compiled.metadata.num_warps == 2 and compiled.signature["out"] == "*fp32"


SCALED = """
kernel void f(const float *x, float *y, int n, float scale, bool negate) {
    *(y + n) = *x * (negate ? -scale : scale);
}
"""


def test_parameters_that_are_known_when_compiling():
    kernel, known = triton.c.compile(SCALED), {"n": 3, "scale": 0.5, "negate": True}
    types = {"x": "*kfp32", "y": "*fp32"} | dict.fromkeys(known, "constexpr")
    compiled = triton.compile(ASTSource(kernel, types, known), "cpu")
    assert "%n" not in compiled.asm["ttir"] and "-0.5" in compiled.asm["ttir"]
    x, y = np.full(1, 8, np.float32), np.zeros(4, np.float32)
    constants = (tl.constexpr(value) for value in known.values())
    kernel[(1,)](x, y, *constants)
    assert (y == [0, 0, 0, -4]).all()


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("n", 1 << 32, "the parameter `n` is of type int, which does not hold 4294967296"),
        ("n", 0.5, "the parameter `n` is of type int, and cannot be a constant float"),
        ("x", 1, "the parameter `x` is of type .*, and cannot be a constant integer"),
    ],
)
def test_known_values_that_do_not_fit(name, value, message):
    types = {"x": "*kfp32", "y": "*fp32", "n": "i32", "scale": "fp32", "negate": "i1"} | {name: "constexpr"}
    with pytest.raises(triton.CompilationError, match=message):
        triton.compile(ASTSource(triton.c.compile(SCALED), types, {name: value}), "cpu")


def test_compiled_kernels_and_kernels_are_pickled():
    kernel = triton.c.compile(ADD)
    again = pickle.loads(pickle.dumps(kernel))
    assert again.cache_key == kernel.cache_key and again.source_file == kernel.source_file
    x, y, out = vectors()
    again(x, y, out, 1000, size="size")
    assert (out == x * 3).all()


def test_debug_checks_name_the_line():
    x, y, out = vectors(100)
    kernel = triton.c.compile(ADD)
    with pytest.raises(triton.MemoryAccessError, match=r"<triton-c \w+>:5"):
        kernel(x, y, out, 101, size="size", debug=True)
    with pytest.raises(triton.IntegerOverflowError, match=r"int32 overflow in `\+` of 2147483647 and 1"):
        launch("kernel void f(int *p, int n) { *p = n + 1; }", np.zeros(1, np.int32), 2**31 - 1, debug=True)
    with pytest.raises(triton.DivisionByZeroError, match="division by zero in `/` of 4 and 0"):
        launch("kernel void f(int *p, int n) { *p = 4 / n; }", np.zeros(1, np.int32), 0, debug=True)
    with pytest.raises(triton.DeviceAssertionError, match="n is small"):
        launch('kernel void f(int *p, int n) { assert(n > 5, "n is small"); }', np.zeros(1, np.int32), 3, debug=True)
    launch('kernel void f(int *p, int n) { assert(n > 5, "n is small"); }', np.zeros(1, np.int32), 3)


def test_errors_of_kernels_show_the_line():
    with pytest.raises(
        triton.CompilationError, match=r"<triton-c \w+>:2:5: error: `x` is not declared\n  2 \|     x = 1;"
    ):
        launch("kernel void f(int *p) {\n    x = 1;\n}", np.zeros(1, np.int32))


def test_the_interpreter_is_for_kernels_in_python():
    program = "import triton.c; triton.c.compile('kernel void f(int n) {}')[(1,)](1)"
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "kernel 'f' is in Triton-C, and only kernels in Python can be interpreted" in done.stderr


# ---- the command line


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "triton.c", *map(str, arguments)], capture_output=True, text=True)


def test_the_command_line(tmp_path):
    file, result = tmp_path / "add.tc", tmp_path / "add.ptx"
    file.write_text(ADD)
    done = command(file, "--emit", "ttir", "-D", "N=32")
    assert done.returncode == 0 and "tile<32xf32>" in done.stdout
    done = command(file, "--target", "cuda:80", "-o", result)
    assert done.returncode == 0 and ".target sm_80" in result.read_text()


def test_errors_of_the_command_line(tmp_path):
    file = tmp_path / "wrong.tc"
    file.write_text("kernel void f(int *p) { *p = q; }")
    done = command(file)
    assert done.returncode == 1 and f"{file}:1:30: error: `q` is not declared" in done.stderr
    assert "has no kernel 'g'" in command(file, "--kernel", "g").stderr
    assert "f has no tunable 'T'" in command(file, "-D", "T=3").stderr
    assert "No such file" in command(tmp_path / "none.tc").stderr


@pytest.mark.parametrize("name", ["f", "g"])
def test_programs_that_differ_in_a_body_alone_are_not_taken_for_each_other(name, tmp_path, monkeypatch):
    """What one of them was compiled to lies on disk when the other one is."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for setting in ("TRITON_CACHE_SIZE", "TRITON_VERIFY"):
        monkeypatch.delenv(setting, raising=False)
    found = []
    for body in ("c", "7", "c * c", "c"):
        out = np.zeros(16, np.int32)
        launch(f"kernel void {name}(int *o) {{ int c[16] = 0 ... 16; *(o + c) = {body}; }}", out)
        found.append(out.tolist())
    numbers = np.arange(16)
    assert found == [numbers.tolist(), [7] * 16, (numbers**2).tolist(), numbers.tolist()]
