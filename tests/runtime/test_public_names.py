"""Names that libraries and test suites import from the public API, and what stands behind them."""

import ast
import copy
import importlib
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host

# Module: what is imported from it.
NAMES = """
triton: Config InterpreterError MockTensor OutOfResources TensorWrapper TritonError aggregate compile constexpr_function
triton: AsyncCompileMode FutureKernel LinearLayout must_use_result reinterpret set_allocator
triton._C.libtriton: get_cache_invalidating_env_vars ir native_specialize_impl nvidia
triton._filecheck: filecheck_test run_filecheck run_filecheck_test run_parser stub_target
triton._internal_testing: ProcessResult is_hip_cdna3_or_newer is_hip_gfx11 is_hip_mi200 is_hip_mi300 is_hip_mi350
triton._internal_testing: is_hip_rdna4m is_rubin random_float random_int run_in_process supports_clc
triton._internal_testing: is_compile_warmup type_canonicalisation_dict use_process_pool
triton._utils: BITWIDTH_DICT canonicalize_dtype canonicalize_ptr_dtype find_paths_if get_iterable_path
triton._utils: get_primitive_bitwidth tuple_create type_canonicalisation_dict validate_block_shape
triton.backends.amd.compiler: HIPBackend
triton.backends.driver: Benchmarker DriverBase GPUDriver decompose_descriptor expand_signature
triton.backends.driver: wrap_handle_tensordesc_impl
triton.backends.nvidia.compiler: CUDABackend CUDAOptions get_ptxas get_ptxas_version min_dot_size
triton.backends.nvidia.compiler: PTXASError ptx_get_version sm_arch_from_capability
triton.compiler.compiler: max_shared_mem triton_key
triton.backends.nvidia.driver: CudaDriver CudaUtils include_dirs libcuda_dirs library_dirs ty_to_cpp
triton.compiler: LazyDict
triton.compiler.code_generator: CodeGenerator
triton.compiler: ASTSource CompilationError CompiledKernel IRSource compile get_cache_key make_backend max_shared_mem
triton.compiler.compiler: OutOfResources get_cache_key max_shared_mem
triton.compiler.errors: CompilationError TritonError
triton.experimental.gluon.language._layouts: NVMMASharedLayout
triton.experimental.gluon.nvidia.hopper: TensorDescriptor
triton.knobs: AutotuneListener CompilationListener JITHook LaunchHook getenv_bool
triton.runtime.cache: default_cache_dir default_dump_dir default_override_dir
triton.language: core extra float8e4b8 float8e5b16 libdevice math random semantic standard target_info
triton.language.core: TRITON_BUILTIN _constexpr_to_value _unwrap_if_constexpr _unwrap_shape builtin dispatch extern
triton.language.core: extern_elementwise is_builtin atomic_load atomic_poll atomic_store expect_zero
triton.language.core: dot_scaled load_tensor_descriptor make_tensor_descriptor map_elementwise store_tensor_descriptor
triton.language.core: tensor_descriptor tensor_descriptor_base
triton.language: tensor_descriptor tensor_descriptor_base
triton.language.extra: cuda libdevice
triton.language.extra.cuda: convert_custom_float8_sm70 convert_custom_float8_sm80 gdc_wait globaltimer libdevice smid
triton.language.extra.cuda.utils: convert_custom_float8_sm70 convert_custom_float8_sm80 globaltimer num_threads
triton.language.extra.cuda.utils: num_warps smid
triton.language.math: libdevice
triton.language.semantic: TensorTy TritonSemantic
triton.language.standard: _argmax_combine_tie_break_fast _argmax_combine_tie_break_left _argmin_combine_tie_break_fast
triton.language.standard: _argmin_combine_tie_break_left _elementwise_max _elementwise_min _log2 _or_combine
triton.language.standard: _sum_combine _xor_combine
triton.language.target_info: current_target is_cuda is_hip is_hip_cdna3 is_hip_cdna4
triton.ops.matmul_perf_model: early_config_prune estimate_matmul_time get_clock_rate_in_khz get_simd_tflops get_tflops
triton.ops.matmul_perf_model: get_tensorcore_tflops
triton.runtime: InterpreterError OutOfResources RedisRemoteCacheBackend RemoteCacheBackend TritonError
triton.runtime._allocation: NullAllocator _allocator set_allocator
triton.runtime.build: compile_module_from_file compile_module_from_src platform_key
triton.runtime.errors: InterpreterError OutOfResources PTXASError
triton.runtime.interpreter: InterpretedFunction InterpreterError
triton.runtime.jit: ConstexprFunction DependenciesFinder JITCallable JITFunction JitFunctionInfo KernelInterface
triton.runtime.jit: KernelParam _find_paths_if_leaf_is_constexpr _find_paths_if_leaf_is_str
triton.runtime.jit: create_function_from_signature type_canonicalisation_dict
triton.runtime.jit: MockTensor T TensorWrapper constexpr_function get_device_key get_jit_fn_file_line mangle_type
triton.runtime.jit: native_specialize_impl reinterpret
triton.testing: cuda_graph_without_gc do_bench_cudagraph_proton do_bench_proton nvsmi
triton.tools.compile: CompileArgs compile_kernel
triton.tools.disasm: extract get_sass path_to_cuobjdump
triton.tools: LinearLayout
triton.tools.mxfp: MXFP4Tensor MXScaleTensor
triton.tools.ragged_tma: atomic_add_ragged create_ragged_descriptor load_ragged store_ragged
triton.tools.ragged_tma: create_ragged_descriptor_device_2d create_ragged_descriptor_device_3d
"""


@pytest.mark.parametrize("line", NAMES.strip().splitlines(), ids=lambda line: line.partition(":")[0])
def test_names_are_there(line):
    module, _, names = line.partition(": ")
    space = {}
    exec(f"from {module} import {', '.join(names.split())}", space)
    assert all(space[name] is not None for name in names.split())


@pytest.mark.parametrize("module", ["triton.language", "triton.language.math", "triton.language.extra.libdevice"])
def test_functions_are_found_where_they_say(module):
    """By programs that write source text of them, and by pickle."""
    functions = [value for value in vars(importlib.import_module(module)).values() if tl.core.is_builtin(value)]
    assert len(functions) > 12
    for function in functions:
        where = inspect.getmodule(function)
        assert where.__name__ == function.__module__ and getattr(where, function.__qualname__) is function
        assert where.__name__ == module or module != "triton.language.extra.libdevice"
        assert pickle.loads(pickle.dumps(function)) is function is copy.deepcopy(function)
        assert f"def {function.__triton_builtin__}(" in inspect.getsource(function)
        assert str(inspect.signature(function))[0] == "(" and inspect.getdoc(function)
        assert inspect.isfunction(function) and f"{function.__name__}(" in pydoc.plain(pydoc.render_doc(function))


def test_functions_of_libdevice():
    libdevice = tl.extra.libdevice
    for function in (libdevice.pow, libdevice.exp, libdevice.max, libdevice.isnan, tl.extra.cuda.libdevice.tanh):
        assert inspect.getmodule(function) is libdevice
        assert function.__module__ == "triton.language.extra.libdevice"
        assert pickle.loads(pickle.dumps(function)) is function
    assert libdevice.max.__qualname__ == "max" and inspect.getmodule(tl.math.exp) is tl.math
    assert tl.tensor.__module__ == "triton.language.tensors" and triton.jit.__module__ == "triton.runtime.jit"


def test_types_are_copied():
    for kind in (tl.float32, tl.pointer_type(tl.int8), tl.block_type(tl.float16, [4])):
        assert pickle.loads(pickle.dumps(kind)) == kind == copy.deepcopy(kind)


def test_libtriton_is_found_in_a_fresh_process():
    """Whether anything of it was looked at before or not."""
    for code in (
        "from triton._C.libtriton import ir",
        "import triton._C.libtriton as l; l.ir",
        "import triton; triton._C.libtriton.ir",
    ):
        subprocess.run([sys.executable, "-c", code], check=True)


def test_what_there_is_no_hardware_for_says_so():
    with pytest.raises(AttributeError, match="'hip': there are the CPU and NVIDIA's GPUs"):
        tl.extra.hip  # noqa: B018
    with pytest.raises(NotImplementedError, match="call the functions of triton.language instead"):
        tl.semantic.TritonSemantic(None)
    with pytest.raises(NotImplementedError, match="kernels are walked over in C"):
        importlib.import_module("triton.compiler.code_generator").CodeGenerator(None)
    with pytest.raises(triton.TargetError, match="AMD's GPUs are not supported"):
        importlib.import_module("triton.backends.amd.compiler").HIPBackend(
            triton.backends.compiler.GPUTarget("hip", 0, 64)
        )


def test_what_is_the_public_compiler_s_own_says_so():
    assert kernel.kernel is None and not kernel.is_gluon()
    with pytest.raises(AttributeError, match="'passes': the passes run in C"):
        triton._C.libtriton.passes  # noqa: B018


NOT_HERE = """
triton.experimental.gluon.language.amd triton.instrumentation triton.plugins
triton.profiler.language triton.profiler.mode triton.tools.build_extern triton.tools.gsan
triton.tools.experimental_descriptor triton.tools.triton_to_gluon_translator tl.extra.hip tl.tensor_descriptor_type
triton.backends.compiler.AttrsDescriptor triton.testing.cublas
triton.testing.cuda_memcheck triton.runtime._allocation.set_profile_allocator
"""


@pytest.mark.parametrize("path", NOT_HERE.split())
def test_what_is_not_here_is_listed(path):
    """The error says its name, and so does the page about porting."""
    *space, name = path.replace("tl.", "triton.language.").split(".")
    listed = "triton.experimental.gluon" if "gluon.language" in path else path
    assert f"`{listed}`" in (Path(__file__).parents[2] / "docs/porting.md").read_text()
    with pytest.raises((ImportError, AttributeError), match=name):
        exec(f"from {'.'.join(space)} import {name}")


def test_versions_of_ptx():
    from triton.backends.nvidia.compiler import ptx_get_version

    releases = {"11.8": 78, "12.0": 80, "12.5": 85, "12.6": 85, "12.9": 88, "13.0": 90}
    assert {release: ptx_get_version(release) for release in releases} == releases
    with pytest.raises(ValueError, match="CUDA 10.2: the version of its PTX is not known"):
        ptx_get_version("10.2")


def test_shared_memory_of_the_device():
    assert triton.compiler.compiler.max_shared_mem(0) > 1000


def test_products_to_compare_with():
    torch = pytest.importorskip("torch")
    cublas = triton._C.libtriton.nvidia.cublas.CublasLt(torch.empty(1))
    a, b, c = torch.randn(16, 32), torch.randn(8, 32), torch.empty(16, 8)
    cublas.matmul(a, b, c)
    torch.testing.assert_close(c, a @ b.T)
    d = torch.empty_like(c)
    cublas.gemm(a, b, c, d, 2.0, 0.5)
    torch.testing.assert_close(d, 2.5 * c)


# ---- builtins of other libraries


@tl.core.builtin
def scaled(x, factor, _semantic=None):
    return tl.core.cast(x, tl.float32, _semantic=_semantic) * factor


@triton.jit
def root(x):
    return tl.core.dispatch(
        None,
        "libdevice",
        "",
        [x],
        {
            (tl.core.dtype("fp32"),): ("__nv_sqrtf", tl.core.dtype("fp32")),
            (tl.core.dtype("fp64"),): ("__nv_sqrt", tl.core.dtype("fp64")),
        },
        None,
        True,
    )


@triton.jit
def use_builtins(x_ptr, y_ptr, COUNT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, COUNT))
    tl.static_assert(not tl.target_info.is_hip_cdna3())
    tl.store(y_ptr + tl.arange(0, COUNT), scaled(x, 3) + root(x) + tl.math.libdevice.sqrt(x))


def test_builtins_of_other_libraries(device):
    torch = pytest.importorskip("torch")
    x, y = torch.arange(8, dtype=torch.float32, device=device), torch.zeros(8, device=device)
    use_builtins[(1,)](x, y, COUNT=8)
    torch.testing.assert_close(y, 3 * x + 2 * x.sqrt())


def test_small_functions_of_core():
    assert tl.core._unwrap_shape(tl.constexpr([tl.constexpr(3), 4])) == [3, 4]
    assert tl.core._constexpr_to_value(tl.constexpr(5)) == 5 == tl.core._constexpr_to_value(5)
    assert getattr(tl.load, tl.core.TRITON_BUILTIN) == "load"


# ---- kernels


class Clearing:
    """A compile-time value that, compared, empties what is looked up."""

    def __init__(self):
        self.kernel, self.times = None, 0

    def __hash__(self):
        return 1

    def __eq__(self, other):
        self.times += 1
        if self.kernel is not None:
            self.kernel.device_caches.clear()
            self.kernel = None
        return self is other


def test_variants_are_forgotten():
    @triton.jit
    def fill(x, VALUE: tl.constexpr):
        tl.store(x, 1)

    x = np.zeros(16, np.float32)
    first = fill[(1,)](x, 3)
    assert list(fill.device_caches[0][0].values()) == [first]
    fill.device_caches[0][0].clear()
    assert not fill.variants()
    assert fill[(1,)](x, 3) is not first
    fill.device_caches.clear()
    values = [Clearing(), Clearing()]
    for value in values * 2:
        fill[(1,)](x, value)
        value.kernel = fill
    assert values[0].times or values[1].times
    assert fill.variants() and (fill[(1,)](x, 3), x[0])[1] == 1


@triton.constexpr_function
def a_function():
    return 1


def test_functions_made_of_templates():
    text, key = a_function.src, a_function.cache_key
    a_function._unsafe_update_src(text.replace("1", "2"))
    assert a_function() == 2 and a_function.src != text and a_function.cache_key != key
    a_function._unsafe_update_src(text)
    assert a_function() == 1 and a_function.cache_key == key


SCALE: tl.constexpr = 3


@triton.jit
def helper(x):
    return x * SCALE


@triton.jit
def kernel(x_ptr, y_ptr, n, factor, OFFSET: tl.constexpr, dtype: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, (helper(x) * factor + OFFSET).to(dtype), mask=i < n)


@triton.autotune([triton.Config({})], key=[])
@triton.jit
def tuned(x):
    pass


def test_where_a_kernel_is_defined():
    for each, name in ((kernel, "kernel"), (tuned, "tuned")):
        file, line = triton.runtime.jit.get_jit_fn_file_line(each)
        assert os.path.samefile(file, __file__)
        with open(file) as text:
            assert text.read().splitlines()[line - 1].startswith(f"def {name}(")


def test_the_source_is_not_assigned():
    with pytest.raises(AttributeError, match=r"kernel 'helper' is changed by _unsafe_update_src\(text\)"):
        helper.src = "def helper(x):\n    return x\n"


def test_keys_are_forgotten_and_made_again():
    def changed(old, new):
        """The key with another text for a while."""
        kernel.hash = None
        helper._unsafe_update_src(helper.src.replace(old, new))
        try:
            return kernel.hash
        finally:
            helper._unsafe_update_src(helper.src.replace(new, old))

    before = kernel.cache_key
    assert changed("SCALE", "SCALE") == before == kernel.cache_key != changed("x *", "x +")
    with pytest.raises(AttributeError, match="the key of kernel 'kernel' follows from its source"):
        kernel.hash = "other"


def test_a_kernel_may_be_debugged_later():
    @triton.jit
    def check(x):
        tl.device_assert(tl.load(x) == 1, "not one")

    x = np.zeros(1)
    check[(1,)](x)
    check.debug = True
    assert check.debug is True
    with pytest.raises(RuntimeError, match="not one"):
        check[(1,)](x)
    ((variants, *_),) = check.device_caches.values()
    assert len(variants) == 2
    check.debug = None
    check[(1,)](x)
    assert check.debug is None


def test_a_finder_of_dependencies():
    def found(source, **names):
        finder = triton.runtime.jit.DependenciesFinder("f", {"helper": helper, **names}, {}, source)
        finder.visit(ast.parse(source))
        return finder

    one = found("def f(x):\n    return helper(x) + N\n", N=tl.constexpr(1))
    assert {name: value for (name, _), (value, _) in one.used_global_vals.items()} == {"N": 1, "SCALE": 3}
    keys = {one.ret} | {
        found(f"def f(x):\n    return helper(x) + N{more}\n", N=tl.constexpr(n)).ret
        for more, n in (("", 2), (" + 1", 1))
    }
    assert len(keys) == 3
    assert one.ret == found("def f(x):\n    return helper(x) + N\n", N=tl.constexpr(1)).ret


def test_an_interpreted_function(monkeypatch):
    kind = triton.runtime.interpreter.InterpretedFunction
    assert not isinstance(kernel, kind)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert isinstance(kernel, kind) and not isinstance(3, kind)
    assert isinstance(kind(kernel.fn), triton.JITFunction)


# ---- variants as texts


@pytest.fixture
def described():
    """What hooks get of the launches that compile."""
    seen = []
    triton.knobs.runtime.jit_post_compile_hook = lambda **details: seen.append(details)
    yield seen
    triton.knobs.runtime.jit_post_compile_hook = None


def fresh():
    return triton.jit(kernel.fn)


@pytest.mark.parametrize("n", [16, 24, 7, 1, 2**33])
def test_preloaded_variants_are_those_that_launches_run(n, described):
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    compiled = fresh()[(1,)](x, y, n, 2.0, OFFSET=1, dtype=tl.float16, num_warps=2)
    text = described[0]["compile"]["specialization_data"]
    assert isinstance(described[0]["fn"], triton.runtime.jit.JitFunctionInfo)
    again = fresh()
    preloaded = again.preload(text)
    assert preloaded.hash == compiled.hash and preloaded.signature == compiled.signature
    del described[:]
    y[:] = 0
    again[(1,)](x, y, n, 2.0, OFFSET=1, dtype=tl.float16, num_warps=2)
    assert not described and len(again.variants()) == 1
    assert (y[: min(n, 16)] == (x * 6 + 1)[: min(n, 16)]).all()


def test_data_of_another_kernel_is_refused(described):
    x = np.zeros(16, np.float32)
    fresh()[(1,)](x, x, 16, 2.0, OFFSET=1, dtype=tl.float32)
    with pytest.raises(RuntimeError, match="is for kernel 'kernel', not for 'helper'"):
        helper.preload(described[0]["compile"]["specialization_data"])


def test_values_that_are_no_text_have_no_data(described):
    @triton.jit
    def apply(x, f: tl.constexpr):
        tl.store(x, f(tl.load(x)))

    apply[(1,)](np.ones(1), helper)
    assert described[0]["compile"]["specialization_data"] is None


def test_a_source_for_the_compiler():
    source = triton.compiler.ASTSource(helper, {"x": "i32"})
    assert source.ext == "ttir" and source.parse_options() == {} and len(source.hash()) == 64


def test_a_text_of_tile_ir_as_source(tmp_path):
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float16)
    text = kernel[(1,)](x, y, 12, 2.0, OFFSET=1, dtype=tl.float16).asm["ttir"]
    path = tmp_path / "other.ttir"
    path.write_text(text.replace("fadd", "fsub"))
    source = triton.compiler.IRSource(path)
    types = {"x_ptr": "*fp32", "y_ptr": "*fp16", "n": "i32", "factor": "fp32"}
    assert (source.name, source.signature, source.ext, source.parse_options()) == ("kernel", types, "ttir", {})
    assert "fsub" in str(source.make_ir("cpu", triton.backends.compiler.Options(), None, None, None))
    for target in ("cpu", "sim:90"):
        compiled = triton.compile(path, target=target)
        y[:] = -5
        compiled[(1, 1, 1)](x, y, 12, 2.0)
        assert (y == np.where(np.arange(16) < 12, x * 6 - 1, -5)).all()
    assert ".visible .entry kernel" in triton.compile(str(path), target="cuda:90").asm["ptx"]
    path.write_text(text)
    assert triton.compiler.IRSource(path).hash() != source.hash()
    assert "fadd" in triton.compile(path, target="cpu").asm["ttir"]
    path.write_text(text.replace("fadd", "add"))
    with pytest.raises(triton.CompilationError, match="add"):
        triton.compile(path, target="cpu")
    path.write_text(text.replace("fadd", "plus"))
    with pytest.raises(triton.CompilationError, match="other.ttir:.*error: unknown operation 'plus'"):
        triton.compile(path, target="cpu")


def test_files_that_are_no_tile_ir(tmp_path):
    (tmp_path / "x.ttir").write_text("module {}")
    for path, message in [("x.ttir", "no kernel of tile IR"), ("x.ptx", "takes a file of tile IR")]:
        with pytest.raises(ValueError, match=message):
            triton.compiler.IRSource(tmp_path / path)
    with pytest.raises(FileNotFoundError):
        triton.compile(str(tmp_path / "y.ttir"))


# ---- other processes


def fails(text, number=3):
    os.write(2, text.encode())
    raise ValueError(number)


def ends():
    os._exit(number_of_threads())


def number_of_threads():
    return 7


def raises_what_is_not_pickled():
    class Local(Exception):
        pass

    raise Local("here")


def test_functions_in_another_process():
    testing = pytest.importorskip("triton._internal_testing", reason="torch is not installed")
    result = testing.run_in_process(fails, ("words",), {"number": 5})
    assert isinstance(result.exc, ValueError) and result.exc.args == (5,) and "words" in result.driver_stderr_output
    assert "exit code 7" in str(testing.run_in_process(ends).exc)
    assert str(testing.run_in_process(raises_what_is_not_pickled).exc) == "Local: here"
    assert testing.run_in_process(number_of_threads).exc is None


def raises_unless_first(path):
    with open(path, "x") as file:
        file.write(str(os.getpid()))


def sets_a_variable():
    os.environ["TRITON_OF_A_TEST"] = "1"
    triton.knobs.compilation.always_compile = True


def finds_no_variable(name):
    assert "TRITON_OF_A_TEST" in os.environ and not triton.knobs.compilation.always_compile and os.environ[name] == "x"


def test_functions_in_one_other_process(tmp_path):
    """One is taken again and again, until a function fails in it."""
    testing = pytest.importorskip("triton._internal_testing", reason="torch is not installed")
    with testing.use_process_pool("triton.language"):
        paths = [str(tmp_path / name) for name in "aabc"]
        results = [testing.run_in_process(raises_unless_first, (path,)).exc for path in paths]
        assert [type(each) for each in results] == [type(None), FileExistsError, type(None), type(None)]
        first, *others = [(tmp_path / name).read_text() for name in "abc"]
        assert others[0] == others[1] != first
        assert testing.run_in_process(sets_a_variable).exc is None
        assert testing.run_in_process(finds_no_variable, ("OF_A_TEST",), env={"OF_A_TEST": "x"}).exc is None
        assert "exit code 7" in str(testing.run_in_process(ends).exc)
        assert testing.run_in_process(number_of_threads).exc is None


# ---- types and paths


def test_types_by_name():
    from triton import _utils

    assert [_utils.canonicalize_dtype(each) for each in (tl.float8e5, np.dtype("int64"), "bool")] == [
        "fp8e5",
        "i64",
        "i1",
    ]
    assert _utils.canonicalize_ptr_dtype("torch.bfloat16", True) == "*kbf16"
    assert [_utils.get_primitive_bitwidth(name) for name in ("i1", "u16", "fp8e4nv", "bf16")] == [1, 16, 8, 16]
    with pytest.raises(TypeError, match="'complex64' is no type"):
        _utils.canonicalize_dtype("complex64")


def test_shapes_of_tiles():
    from triton._utils import validate_block_shape

    assert validate_block_shape([3, 32]) == 96
    with pytest.raises(TypeError, match="Shape element 1"):
        validate_block_shape([4, 2.0])
    with pytest.raises(ValueError, match="Shape element 0"):
        validate_block_shape([0])


def test_paths_in_a_signature():
    from triton.runtime import jit

    kinds, facts = triton._C.libtriton.native_specialize_impl(
        triton.backends.compiler.CUDABackend, ((1, 2.0), 16, (3,))
    )
    assert jit._find_paths_if_leaf_is_constexpr(kinds) == ((0, 0),)
    assert jit._find_paths_if_leaf_is_str(facts) == ((1,), (2, 0))


class Pair(NamedTuple):
    first: object
    second: object


def test_tuples_like_others():
    from triton._utils import tuple_create

    assert tuple_create(Pair(1, 2), [3, 4]) == Pair(3, 4) and type(tuple_create((1,), [3])) is tuple


# ---- drivers of others


def test_descriptors_in_signatures():
    from triton.backends.driver import expand_signature

    signature = "fp32", ("tensordesc<fp16[8, 16]>", "i1"), "tensordesc<i8[16]>"
    lengths = ["i32", "i32", "i64", "i64"]
    apart = ("*fp16", "i64", "i64", "i64", "i64", "i1", "i1", *lengths, "i1")
    assert expand_signature(signature, [None, {}], "map") == ["fp32", apart, "map", "i32", "i64"]
    assert expand_signature(signature[1:2], None, "map") == [apart]


def test_a_launcher_of_descriptors():
    from triton.backends.driver import decompose_descriptor, wrap_handle_tensordesc_impl
    from triton.tools.tensor_descriptor import TensorDescriptor

    def launcher(*arguments):
        return arguments

    array = np.zeros((4, 16), np.float32)
    descriptor = TensorDescriptor.from_tensor(array, [2, 16])

    def apart(value, meta, others):
        return [*decompose_descriptor(value)[1:], meta, others[0]]

    wrapped = wrap_handle_tensordesc_impl(
        launcher, {"a": "i32", "b": ("tensordesc<fp32[2, 16]>", "i64")}, ["meta"], apart
    )
    parts = 4, 16, 16, 1, False, False, 4, 16, 16, 1, "meta", "stream"
    assert wrapped("stream", [3, (descriptor, 5)]) == ("stream", [3, (*parts, 5)])
    assert wrap_handle_tensordesc_impl(launcher, {"a": "i32", "b": ("i64",)}, None, apart) is launcher


def test_a_dict_made_late():
    calls = []
    late = triton.compiler.LazyDict({"a": 1})
    late.add(lambda x: calls.append(x) or {"b": x}, (2,))
    assert not calls and late.get() == late.get() == {"a": 1, "b": 2} and calls == [2]


# ---- tests of kernels


@triton.jit
def takes_options(x, N: tl.constexpr):
    x + tl.arange(0, N)


@triton.jit
def is_taken():
    tl.arange(0, 8)


def test_the_frontend_alone():
    from triton._filecheck import filecheck_test, run_parser

    assert "range" in str(run_parser(takes_options, (1.5,), {"N": 8, "num_warps": 2}))
    with pytest.raises(triton.CompilationError, match="unknown"):
        run_parser(kernel_of_mistakes)
    with pytest.raises(pytest.skip.Exception, match="the frontend took the kernel"):
        filecheck_test(is_taken)()
    with pytest.raises(triton.CompilationError):
        filecheck_test(kernel_of_mistakes)()


@triton.jit
def kernel_of_mistakes():
    unknown()  # noqa: F821


# ---- modules in C

MODULE = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(NUMBER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "answers", NULL, -1, methods};
PyMODINIT_FUNC PyInit_answers(void) { return PyModule_Create(&definition); }
"""


def test_a_module_in_c(tmp_path, monkeypatch):
    from triton.runtime import build

    if not (Path(build.sysconfig.get_paths()["include"]) / "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    module = build.compile_module_from_src(MODULE.replace("NUMBER", "7"), "answers")
    assert module.answer() == 7
    monkeypatch.setattr(build, "_build", None)  # it is kept
    again = build.compile_module_from_src(MODULE.replace("NUMBER", "7"), "answers")
    assert again.__file__ == module.__file__
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="the compiler refused answers(.|\n)*NUMBER"):
        build.compile_module_from_src(MODULE, "answers")


# ---- tools


def test_machine_code_as_text(tmp_path, monkeypatch):
    from triton.tools import disasm

    for name in ("CUDA_HOME", "PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(RuntimeError, match="cuobjdump was not found"):
        disasm.get_sass(b"cubin")
    tool = tmp_path / "cuobjdump"
    tool.write_text(
        f'#!/bin/sh\nif test "$1" = --version; then echo "Cuda tools, release 13.0, V13.0.1"; else echo "{SASS}"; fi\n'
    )
    tool.chmod(0o755)
    assert disasm.path_to_cuobjdump() == (str(tool), "13.0")
    expected = "Function:-fun_kernel\n--:-:0:-:1\tLDG.E R0, desc[UR4][R2.64];\n04:-:-:-:5\t@P0 EXIT;\n"
    assert disasm.get_sass(b"cubin", "kernel") == expected
    asked = []
    monkeypatch.setattr(disasm, "path_to_cuobjdump", lambda: "/a/tool")
    monkeypatch.setattr(disasm.subprocess, "check_output", lambda command: asked.append(command) or b"nothing")
    assert disasm.extract("x.cubin") == "" and asked == [["/a/tool", "-sass", "x.cubin"]]


SASS = r"""
    Function : $1_$2
    .headerflags @\"EF_CUDA_SM90\"
        /*0000*/                   LDG.E R0, desc[UR4][R2.64] ;     /* 0x0000000402007981 */
                                                                    /* 0x000e22000c1e1900 */
        /*10010*/              @P0 EXIT ;                           /* 0x000000000000094d */
                                                                    /* 0x004fea0003800000 */
"""


def test_types_in_c():
    from triton.backends.nvidia.driver import ty_to_cpp

    assert [ty_to_cpp(each) for each in ("*fp32", "i32", "u64", "i1", "fp32")] == [
        "CUdeviceptr", "int32_t", "uint64_t", "int8_t", "double",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no parameter has the type 'x'"):
        ty_to_cpp("x")


class Operand:
    def __init__(self, dtype):
        self.dtype = dtype

    def element_size(self):
        return 2


def product(**changes):
    from triton.ops.matmul_perf_model import estimate_matmul_time

    half = Operand("float16")
    values = {"num_warps": 4, "num_stages": 3, "A": half, "B": half, "C": half, "M": 4096, "N": 4096, "K": 4096}
    return estimate_matmul_time(**{**values, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, **changes})


def config(stages, block=64):
    return triton.Config({"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": 64}, num_stages=stages)


def test_a_model_of_products(monkeypatch):
    from triton.ops import matmul_perf_model as model

    configs = [config(stages) for stages in (2, 3, 4, 5, 9)] + [config(3, 1024)]
    properties = {
        "multiprocessor_count": 132, "sm_clock_rate": 1980000, "mem_clock_rate": 3201000, "mem_bus_width": 6144,
        "capability": 90, "max_shared_mem": 100000,
    }  # fmt: skip
    active = triton.runtime.driver.active
    monkeypatch.setattr(
        active, "utils", type("Utils", (), {"get_device_properties": lambda self, device: properties})()
    )
    targets = [active.get_current_target()._replace(backend=each, arch=90) for each in ("cuda", "cpu")]
    monkeypatch.setattr(active, "get_current_target", lambda: targets[-1])
    assert model.early_config_prune(configs, {"A": Operand("float16")}) == configs  # a CPU has room for all
    targets.pop()
    kept = model.early_config_prune(configs, {"A": Operand("float16")})
    assert [each.num_stages for each in kept] == [4, 5]

    peak = model.get_tensorcore_tflops(None, 10**6, 8, "float16")
    assert peak == pytest.approx(triton.testing.get_max_tensorcore_tflops("float16"))
    assert 2 * 4096**3 / (peak * 1e9) <= product() < 20 * 2 * 4096**3 / (peak * 1e9)
    assert product(M=8192) > product() < product(BLOCK_M=16, BLOCK_N=16)
    assert product(M=16, N=16, K=65536, BLOCK_M=16, BLOCK_N=16, SPLIT_K=64) < product(
        M=16, N=16, K=65536, BLOCK_M=16, BLOCK_N=16
    )
    assert model.get_clock_rate_in_khz() == 1980000 and model.get_tflops(None, 1, 4, "float64") < peak


# ---- launches taken apart, as programs do that compile a variant before its first launch


class Scale(NamedTuple):
    factor: int
    kind: tl.constexpr


@triton.jit
def scale(x_ptr, y_ptr, n, by: Scale, pair, OFFSET: tl.constexpr, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, (helper(x) * by.factor + pair[0] + pair[1] + OFFSET).to(by.kind), mask=i < n)


def test_a_launch_is_taken_apart():
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.int32)
    arguments = x, y, 16, Scale(5, tl.constexpr(tl.int32)), (2, tl.constexpr(7))
    variants, keys, target, backend, binder = scale.device_caches[triton.runtime.driver.active.get_current_device()]
    bound, specialization, options = binder(*arguments, OFFSET=helper, num_warps=2)
    assert list(bound) == scale.arg_names and bound["BLOCK"] == 16 and options == {"num_warps": 2}
    key = triton.runtime.jit.compute_cache_key(keys, specialization, options)
    assert key != triton.runtime.jit.compute_cache_key(keys, specialization, {"num_warps": 4})
    bound, specialization, options = binder(*arguments, OFFSET=1, num_warps=2)
    assert key != triton.runtime.jit.compute_cache_key(keys, specialization, options)
    options, signature, constants, facts = scale._pack_args(backend, options, bound, specialization, options)
    assert signature["x_ptr"] == "*fp32" and signature["by"] == ("i32", "constexpr")
    assert facts[0,] == facts[2,] == [["tt.divisibility", 16]] and facts[3, 0] == []
    assert constants[4, 1] == 7 and constants[5,] == 1 and options.num_warps == 2
    source = scale.ASTSource(scale, signature, constants, facts)
    assert len(source.hash()) == 64 != source.hash()
    variants[key] = compiled = scale.compile(source, target=target, options=options.__dict__)
    assert scale.device_caches[0][0][key] is compiled and compiled.metadata.num_warps in (1, 2)
    compiled[(1,)](*arguments)
    np.testing.assert_array_equal(y, np.arange(16) * 15 + 10)
    scale[(1,)](*arguments, OFFSET=3)
    np.testing.assert_array_equal(y, np.arange(16) * 15 + 12)
    scale.device_caches.clear()
    assert not scale.device_caches[0][0]


def test_mistakes_of_a_launch_that_is_taken_apart():
    *_, backend, binder = scale.create_binder()
    with pytest.raises(TypeError, match="missing a required argument: 'n'"):
        binder(1, 2)
    bound, specialization, options = binder(np.zeros(1), np.zeros(1), 1, 2, 3, OFFSET=1, num_wraps=2)
    with pytest.raises(KeyError, match="'scale' has no parameter and a launch no option 'num_wraps'"):
        scale._pack_args(backend, options, bound, specialization)
    kinds = {name: "constexpr" for name in scale.arg_names} | {"by": ("i32", "constexpr")}
    source = scale.ASTSource(scale, kinds, dict.fromkeys([(0,), (1,), (2,), (4,), (5,)], 1))
    with pytest.raises(ValueError, match=r"no value for the item \(3, 1\)"):
        source.entries()
