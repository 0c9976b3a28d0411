"""Compiled kernels in the hands of other programs: launched by themselves, pickled, looked into."""

import os
import pickle
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.backends import BaseBackend, DriverBase, backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel, make_backend
from triton.runtime.jit import JITFunction, mangle_type, native_specialize_impl
from triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.host


@triton.jit
def scale(out, x, factor, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.device_assert(n < 1000, "n is too large")
    tl.store(out + index, tl.load(x + index, mask=mask) * factor, mask=mask)


SIGNATURE = {"out": "*fp32", "x": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}


def compiled_scale(target=None, signature=SIGNATURE, attrs=None, **options):
    return triton.compile(ASTSource(scale, signature, {"BLOCK": 16}, attrs), target, options)


def run(compiled, grid, *args, hooks=(None, None)):
    metadata = compiled.launch_metadata(grid, 0, *args)
    compiled.run(*grid, 0, compiled.function, compiled.packed_metadata, metadata, *hooks, *args)


@triton.jit
def double_tiles(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([row, column], x.load([row, column]) * 2)


def compiled_double_tiles(target=None):
    kind = "tensordesc<fp32[2, 8]>"
    signature = {"x": kind, "out": kind, "ROWS": "constexpr", "COLUMNS": "constexpr"}
    return triton.compile(ASTSource(double_tiles, signature, {"ROWS": 2, "COLUMNS": 8}), target)


def arrays(n=40):
    x = np.arange(n, dtype=np.float32)
    return np.zeros_like(x), x


# ---- launching


def test_run(target):
    compiled = compiled_scale()
    out, x = arrays()
    run(compiled, (3, 1, 1), out, x, 2.5, 40, 16)
    assert (out == 2.5 * x).all()
    run(compiled, (3, 1, 1), out, x, 2, 1, None)  # nothing of an integer is special; what BLOCK is does not matter
    assert (out == [0, *(2.5 * x[1:])]).all()
    run(compiled, (0, 1, 1), out, x, 7.0, 40, 16)
    assert out[1] == 2.5
    assert compiled.function and compiled.module == 0


def test_run_for_every_type():
    @triton.jit
    def store(out, a, b, pair, nothing, c):
        tl.store(out, a + b + pair[0] + pair[1][0] + c)

    out = np.zeros(1)
    kernel = store.warmup(out, True, np.uint8(3), (0.5, (1 << 40, tl.constexpr(4))), None, 1.5, grid=(1,))
    run(kernel, (1, 1, 1), out, False, 255, (0.25, (-(1 << 10), 4)), None, 2)
    assert out[0] == 255 + 0.25 - (1 << 10) + 2
    with pytest.raises(TypeError, match=r"argument 'pair': the kernel was compiled for a tuple of 2"):
        run(kernel, (1, 1, 1), out, False, 255, (0.25,), None, 2)


def test_run_refuses_what_it_was_not_compiled_for():
    aligned = {(0,): [["tt.divisibility", 16]], (3,): [["tt.divisibility", 8]]}
    compiled = compiled_scale(attrs=aligned)
    out, x = arrays()

    def refused(error, message, *args, grid=(1, 1, 1)):
        with pytest.raises(error, match=message):
            run(compiled, grid, *args)

    refused(ValueError, r"argument 'out': its address is no multiple of 16 bytes, which", out[1:], x, 2.5, 40, 16)
    refused(ValueError, r"argument 'n': it is no multiple of 8, which", out, x, 2.5, 39, 16)
    refused(TypeError, "takes 5 arguments, compile-time ones included, and got 4", out, x, 2.5, 40)
    refused(
        TypeError, "annotated as a pointer to float32, but the array holds float64", out, x.astype("d"), 1.0, 40, 16
    )
    refused(TypeError, "argument 'x'", out, None, 1.0, 40, 16)
    refused(OverflowError, "argument 'n'", out, x, 1.0, 1 << 40, 16)
    refused(ValueError, "no extent of a grid", out, x, 1.0, 40, 16, grid=(1, -1, 1))
    refused(TypeError, "NoneType", out, x, 1.0, 40, 16, grid=(1, None, 1))
    x.flags.writeable = False
    run(compiled, (3, 1, 1), out, x, 2.0, 40, 16)
    refused(ValueError, "argument 'out': the array is read-only, and the kernel stores to it", x, x, 2.0, 40, 16)
    with pytest.raises(TypeError, match="run.. takes a grid of three"):
        compiled.run(1, 1, 1)


def test_run_calls_its_hooks():
    calls = []
    compiled = compiled_scale()
    out, x = arrays()
    hooks = lambda metadata: calls.append(("enter", metadata)), lambda metadata: calls.append(("exit", metadata))
    run(compiled, (3, 1, 1), out, x, 2.5, 40, 16, hooks=hooks)
    assert calls == [("enter", None), ("exit", None)]
    calls.clear()
    chains = triton.knobs.runtime.launch_enter_hook, triton.knobs.runtime.launch_exit_hook
    with triton.knobs.runtime.scope():
        chains[0].add(lambda metadata: calls.append(metadata.get()["name"]))
        run(compiled, (3, 1, 1), out, x, 2.5, 40, 16, hooks=chains)
        run(compiled, (3, 1, 1), out, x, 2.5, 40, 16)
    assert calls == ["scale"]

    def fails(metadata):
        raise KeyError("hook")

    with pytest.raises(KeyError):
        run(compiled, (3, 1, 1), out, x, 9.0, 40, 16, hooks=(fails, None))
    assert out[1] == 2.5


def test_assertions_of_the_program_are_checked():
    out, x = arrays()
    run(compiled_scale(), (1, 1, 1), out, x, 2.5, 2000, 16)
    compiled = compiled_scale(debug=True, sanitize_overflow=False)
    with pytest.raises(triton.DeviceAssertionError, match="n is too large"):
        run(compiled, (1, 1, 1), out, x, 2.5, 2000, 16)
    run(compiled, (3, 1, 1), out, x, 2.5, 40, 16)
    assert (out == 2.5 * x).all()


# ---- what is known of it


def test_what_others_ask_for(target):
    compiled = compiled_scale(num_warps=2)
    assert isinstance(compiled, CompiledKernel) and isinstance(
        scale.warmup(*arrays(), 1.0, 4, 16, grid=(1,)), CompiledKernel
    )
    metadata = compiled.metadata
    assert isinstance(metadata, tuple) and metadata._asdict()["num_warps"] == 2
    assert (metadata.cluster_dims, metadata.num_ctas, metadata.tmem_size) == ((1, 1, 1), 1, 0)
    assert metadata.target == triton.runtime.driver.active.get_current_target() and metadata.hash == compiled.hash
    assert compiled.packed_metadata == (2, 1, compiled.shared)
    assert (compiled.src.fn, compiled.src.signature) == (scale, SIGNATURE)
    assert compiled.src.constants == {"BLOCK": 16}
    assert compiled.kernel == compiled.asm["asm" if target == "cpu" else "llir"]
    assert compiled.metadata_group == {}
    assert compiled_scale(num_warps=2).hash == compiled.hash
    hashes = {compiled_scale(num_warps=4).hash, compiled_scale(attrs={(0,): [["tt.divisibility", 16]]}).hash}
    assert len(hashes | {compiled.hash}) == 3
    launched = scale.warmup(*arrays(), 1.0, 4, 16, grid=(1,))
    assert launched.src.signature == SIGNATURE and launched.src.attrs[0] == {"tt.divisibility": 16}


@pytest.mark.skipif(not shutil.which("ptxas"), reason="there is no ptxas")
def test_the_cubin_takes_the_arguments_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compiled = compiled_scale("cuda:90", debug=True, sanitize_overflow=False)
    path = tmp_path / compiled.hash / "scale.cubin"
    assert compiled.metadata_group == {"scale.cubin": str(path)}
    assert path.read_bytes()[:4] == b"\x7fELF" and path.read_bytes() == compiled.asm["cubin"]
    entry = re.search(r"\.entry scale\((.*?)\)", compiled.asm["ptx"], re.DOTALL)[1]
    kinds = re.findall(r"\.param (?:\.align \d+ )?\.(\w+)", entry)
    assert kinds == ["u64", "u64", "f32", "u32"]
    assert "__assertfail" in compiled.asm["ptx"]
    path.write_bytes(b"kept")  # the key says all that it depends on
    assert compiled_scale("cuda:90", debug=True, sanitize_overflow=False).metadata_group == compiled.metadata_group
    assert path.read_bytes() == b"kept" and os.listdir(path.parent) == ["scale.cubin"]
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/bin/false")
    assert compiled_scale("cuda:80").metadata_group == {}


# ---- pickling


@pytest.mark.parametrize("debug", [False, True])
def test_pickling(debug, target):
    compiled = compiled_scale(debug=debug, sanitize_overflow=False)
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy is not compiled and copy.fn is scale
    assert (copy.hash, copy.metadata, copy._ir) == (compiled.hash, compiled.metadata, compiled._ir)
    out, x = arrays()
    run(copy, (3, 1, 1), out, x, 2.5, 40, 16)
    assert (out == 2.5 * x).all()
    if debug:
        with pytest.raises(triton.DeviceAssertionError, match="test_standalone.py:.*n is too large"):
            run(copy, (1, 1, 1), out, x, 2.5, 2000, 16)
    launched = scale[(3,)](out, x, 3.0, 40, 16)
    out[:] = 0
    pickle.loads(pickle.dumps(launched))[(3,)](out, x, 3.0, 40)
    assert (out == 3 * x).all()


def test_restoring_from_the_dict_alone():
    """As programs do that make the object themselves and replace in it what they do not want to pickle."""
    compiled = compiled_scale()
    state = vars(compiled) | {"metadata": compiled.metadata._asdict(), "module": None, "function": None, "run": None}
    state = pickle.loads(pickle.dumps(state))
    copy = CompiledKernel.__new__(CompiledKernel)
    vars(copy).update(state, metadata=SimpleNamespace(**state["metadata"]))
    assert copy.hash == compiled.hash and copy.src.fn is scale
    copy._init_handles()
    out, x = arrays()
    run(copy, (3, 1, 1), out, x, 2.5, 40, 16)
    assert (out == 2.5 * x).all() and copy.shared == compiled.shared


def test_a_kernel_without_its_function():
    """As it is taken apart to be sent to a process that has no such module."""
    kernel = triton.jit(scale.fn)
    text = kernel.src
    kernel.fn = kernel.__globals__ = kernel.used_global_vals = None
    copy = pickle.loads(pickle.dumps(kernel))
    assert isinstance(copy, JITFunction) and copy.fn is None
    assert (copy.src, copy.arg_names, copy.__name__) == (text, scale.arg_names, "scale")
    assert [param.is_constexpr for param in copy.params] == [False] * 4 + [True]
    assert copy.repr(None) == "scale"
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).__name__)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(kernel), capture_output=True)
    assert done.stdout.strip() == b"scale", done.stderr


# ---- backends


def test_backends():
    assert set(backends) == {"cpu", "nvidia"}
    for name, backend in backends.items():
        assert issubclass(backend.compiler, BaseBackend) and issubclass(backend.driver, DriverBase)
        assert isinstance(backend.driver.is_active(), bool), name
    driver = triton.runtime.driver.active
    assert isinstance(driver, DriverBase)
    backend = make_backend(driver.get_current_target())
    options = backend.parse_options({"num_warps": 8, "no_such": 1})
    assert options.__dict__["num_warps"] == 8 and options.num_stages == 3 and not hasattr(options, "no_such")
    assert "fp8e5" in options.supported_fp8_dtypes and options.hash() != backend.parse_options({}).hash()
    hashes = {make_backend(GPUTarget("cuda", arch, 32)).hash() for arch in (80, 90)}
    assert len(hashes | {backend.hash()}) == 3
    with pytest.raises(triton.TargetError, match="no backend for GPUTarget.*hip.*are backends for: cpu, sim, cuda"):
        make_backend(GPUTarget("hip", "gfx942", 64))
    with pytest.raises(ValueError, match="CPUBackend does not compile for"):
        backends["cpu"].compiler(GPUTarget("cuda", 90, 32))
    with pytest.raises(NotImplementedError):
        DriverBase().get_current_target()


def test_the_key_of_the_compiler():
    from triton.runtime.cache import triton_key

    assert re.fullmatch("[0-9a-f]{64}", triton_key())
    assert triton.compiler.compiler.triton_key is triton_key


def test_types_and_keys_of_arguments():
    x = np.zeros(16, np.float32)
    assert [mangle_type(value) for value in (x, x[1:], 1, 1 << 40, 2.5, True)] == ["*fp32"] * 2 + [
        "i32",
        "i64",
        "fp32",
        "i1",
    ]
    assert mangle_type(1, specialize=True) == mangle_type(None) == "constexpr"
    assert mangle_type((x, (3, None))) == ("*fp32", ("i32", "constexpr"))

    def keys(value, **options):
        return native_specialize_impl(BaseBackend, value, **options)

    descriptor = TensorDescriptor.from_tensor(x.reshape(4, 4), [2, 4])
    assert mangle_type(descriptor) == keys(descriptor)[0] == "tensordesc<fp32[2, 4]>"
    assert mangle_type((1.5, descriptor)) == ("fp32", "tensordesc<fp32[2, 4]>")

    assert keys(x) == ("*fp32", "D") and keys(x[1:]) == ("*fp32", "")
    assert keys(x, is_const=True) == ("*kfp32", "D") and keys(x, align=False) == ("*fp32", "")
    assert keys(32) == ("i32", "D") and keys(24) == ("i32", "D8") and keys(7) == ("i32", "")
    assert keys(1) == ("constexpr", 1) and keys(1, specialize_value=False) == ("i32", None)
    assert keys((x, 7)) == keys((x, 7), is_const=True) == (("*fp32", "i32"), ("D", ""))
    assert keys(True) == ("u1", None) and keys(1.5) == ("fp32", None) and keys(descriptor)[1] is None
    sizes = namedtuple("sizes", "rows columns")
    assert keys(sizes(1, (16, True))) == (sizes("constexpr", ("i32", "u1")), sizes(1, ("D", None)))
    assert BaseBackend.parse_attr("D") == [["tt.divisibility", 16]] and BaseBackend.parse_attr("D8")[0][1] == 8
    assert BaseBackend.parse_attr("relu") == []


def test_descriptors_in_a_signature(target):
    """As programs that compile kernels ahead of their launches spell them."""
    x = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
    out = np.zeros_like(x)
    compiled = compiled_double_tiles()
    assert compiled.src.signature["x"] == "tensordesc<fp32[2, 8]>"
    arguments = [TensorDescriptor.from_tensor(each, [2, 8]) for each in (x, out)]
    run(compiled, (3, 2, 1), *arguments, 2, 8)
    assert (out == 2 * x).all()
    with pytest.raises(ValueError, match="its address is no multiple of 16 bytes"):
        run(compiled, (3, 2, 1), TensorDescriptor(x.ravel()[1:], [4, 12], [12, 1], [2, 8]), arguments[1], 2, 8)
    with pytest.raises(ValueError, match="it is no multiple of 4"):
        run(compiled, (3, 2, 1), TensorDescriptor(x, [4, 11], [11, 1], [2, 8]), arguments[1], 2, 8)
    with pytest.raises(TypeError, match="compiled for a tuple of 6"):
        run(compiled, (3, 2, 1), x, arguments[1], 2, 8)
    with pytest.raises(NotImplementedError, match="not tensor maps"):
        compiled_double_tiles("cuda:90").asm["cubin"]


# ---- looking into a kernel


def walked(kernel, signature, constants):
    target = triton.runtime.driver.active.get_current_target()
    backend, context = make_backend(target), triton._C.libtriton.ir.context()
    triton._C.libtriton.ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    source = ASTSource(kernel, signature, constants)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    assert module.verify() and "func" in str(module)
    operations = []
    module.walk(operations.append)
    return operations


def test_the_walk_over_a_module():
    @triton.jit(noinline=True)
    def put(out, value):
        tl.store(out, value)

    @triton.jit
    def add(a, b):
        return a + b

    @triton.jit
    def kernel(out, x, n, N: tl.constexpr):
        total = 0.0
        for i in range(n):
            total += tl.reduce(tl.load(x + i * N + tl.arange(0, N)), 0, add)
        if n > 2:
            tl.atomic_add(out, total)
        put(out + 1, total)

    operations = walked(kernel, {"out": "*fp32", "x": "*fp32", "n": "i32"}, {"N": 16})
    names = [operation.get_name() for operation in operations]
    assert names[-1] == "builtin.module" and names.count("tt.func") == 2
    assert {"tt.load", "tt.store", "tt.reduce", "tt.reduce.return", "scf.for", "scf.if", "scf.yield", "tt.call"} <= set(
        names
    )
    assert {"tt.atomic_rmw", "tt.addptr", "tt.return"} <= set(names)
    functions = [operation for operation in operations if operation.get_name() == "tt.func"]
    assert functions[0].get_str_attr("sym_name") == "kernel"
    call = operations[names.index("tt.call")]
    assert call.get_flat_symbol_ref_attr("callee") == functions[1].get_str_attr("sym_name")
    # What stands inside comes before, and knows the block that it stands in.
    loop, load = operations[names.index("scf.for")], operations[names.index("tt.load")]
    assert names.index("tt.load") < names.index("scf.for") < names.index("tt.func")
    assert load.get_block().get_parent().id() == loop.get_region(0).id()
    assert loop.get_num_operands() == 4 and load.get_block().get_num_arguments() == 2
    results = {operation.get_result(i).id() for operation in operations for i in range(operation.get_num_results())}
    assert load.get_operand(0).id() in results
    assert operations[-1].get_block() is None


def test_there_is_nothing_else_in_the_extension():
    with pytest.raises(AttributeError, match="has no attribute 'libtritonn'"):
        triton._C.libtritonn  # noqa: B018


def test_more_threads_than_a_block_has():
    with pytest.raises(triton.OutOfResources, match="resource: threads, Required: 4096, Hardware limit: 1024") as error:
        compiled_scale(GPUTarget("cuda", 90, 32), num_warps=128)
    assert (error.value.name, error.value.required, error.value.limit) == ("threads", 4096, 1024)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
