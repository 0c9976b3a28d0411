"""triton.knobs: settings that are environment variables, and hooks around launches."""

import os
import sys

import numpy as np
import pytest

import triton
import triton.language as tl
from triton import knobs

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def restored():
    with knobs.runtime.scope(), knobs.autotuning.scope(), knobs.compilation.scope(), knobs.cache.scope():
        yield


def metadata(grid, info, arguments):
    return {"name": f"fill<{info.num_warps}>", "bytes": arguments["x"].nbytes, "grid": grid}


@triton.jit(launch_metadata=metadata)
def fill(x, value, SIZE: tl.constexpr):
    tl.store(x + tl.arange(0, SIZE), value)


@triton.jit
def other(x):
    tl.store(x, 1)


def test_hooks_around_launches():
    x, told = np.zeros(4, np.float32), []
    knobs.runtime.launch_enter_hook.add(lambda launch: told.append(("enter", launch.get(), x[0])))
    knobs.runtime.launch_exit_hook.add(lambda launch: told.append(("exit", launch.get(), x[0])))
    compiled = fill[(1, 1)](x, 5, SIZE=4)
    expected = {"name": "fill<4>", "function": compiled, "stream": 0, "bytes": 16, "grid": (1, 1, 1)}
    assert [(when, value) for when, _, value in told] == [("enter", 0), ("exit", 5)]
    assert told[0][1] == expected and told[0][1] is told[1][1]
    other[(1,)](x)
    assert told[2][1]["name"] == "other"
    fill.warmup(x, 5, SIZE=4, grid=(1,))
    assert len(told) == 4
    knobs.runtime.reset()
    fill[(1,)](x, 5, SIZE=4)
    assert len(told) == 4


def test_order_and_removal():
    x, told = np.zeros(1, np.float32), []
    hooks = [lambda launch, name=name: told.append(name) for name in "ab"]
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        for hook in (*hooks, hooks[0]):
            chain.add(hook)
    other[(1,)](x)
    assert told == ["a", "b", "b", "a"]
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        chain.remove(hooks[1])
        chain.remove(print)
    other[(1,)](x)
    assert told[4:] == ["a", "a"]
    knobs.runtime.launch_enter_hook = hooks[1]
    knobs.runtime.launch_exit_hook = None
    other[(1,)](x)
    assert told[6:] == ["b"]
    with pytest.raises(TypeError, match="a hook must be callable, not 3"):
        knobs.runtime.launch_enter_hook = 3


def test_a_hook_that_fails():
    x = np.zeros(1, np.float32)
    knobs.runtime.launch_enter_hook.add(lambda launch: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        other[(1,)](x)
    assert x[0] == 0
    knobs.runtime.reset()
    hook = knobs.runtime.launch_enter_hook
    hook.add(lambda launch: hook.calls.clear() or knobs.runtime.reset())  # takes itself off
    other[(1,)](x)
    assert x[0] == 1


def test_scopes_take_back_what_was_set(monkeypatch):
    monkeypatch.setenv("TRITON_DEBUG", "0")
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        knobs.runtime.launch_enter_hook = print
        assert knobs.runtime.debug and os.environ["TRITON_DEBUG"] == "1"
        with pytest.raises(triton.MemoryAccessError):
            triton.jit(fill.fn)[(1,)](np.zeros(3, np.float32), 5, SIZE=4)
    assert not knobs.runtime.debug and os.environ["TRITON_DEBUG"] == "0"
    assert not knobs.runtime.launch_enter_hook.calls


def test_debug_holds_for_kernels_that_ran_before():
    kernel, x = triton.jit(fill.fn), np.zeros(3, np.float32)
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,)).metadata.debug
    knobs.runtime.debug = True
    with pytest.raises(triton.MemoryAccessError):
        kernel[(1,)](x, 5, SIZE=4)
    assert kernel.warmup(x, 5, SIZE=4, grid=(1,), debug=False).metadata.debug  # it is for all kernels
    knobs.runtime.debug = False
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,)).metadata.debug
    del knobs.runtime.debug
    assert not kernel.warmup(x, 5, SIZE=4, grid=(1,)).metadata.debug


def test_variables(monkeypatch):
    monkeypatch.delenv("TRITON_TARGET", raising=False)
    assert knobs.runtime.target is None
    knobs.runtime.target = "sim:80"
    x = np.zeros(4, np.float32)
    assert triton.jit(fill.fn)[(1,)](x, 2, SIZE=4).info["target"] == "sim:80"
    del knobs.runtime.target
    assert "TRITON_TARGET" not in os.environ
    knobs.autotuning.print = True
    assert os.environ["TRITON_PRINT_AUTOTUNING"] == "1"
    knobs.autotuning.reset()
    assert not knobs.autotuning.print
    with pytest.raises(AttributeError):
        knobs.runtime.no_such_setting = 1


def new_kernel():
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), N)

    return kernel


def test_hooks_around_compiling_and_loading():
    told, kernel, x, keys = [], new_kernel(), np.zeros(8, np.int32), []

    def before(**about):
        keys.append(about["key"])
        told.append(("before", about["fn"].name, about["compile"]["constants"], about["compile"]["is_warmup"]))

    knobs.runtime.jit_cache_hook = before
    knobs.runtime.jit_post_compile_hook = lambda **about: told.append(("after", about["fn"].module, about["repr"]))
    knobs.runtime.kernel_load_start_hook.add(lambda *loaded: told.append(("load", loaded[2])))
    knobs.runtime.kernel_load_end_hook = lambda *loaded: told.append(("loaded", loaded[2], len(loaded[4])))
    compiled = kernel[(1,)](x, N=4)
    kernel[(1,)](x, N=4)
    text = "kernel[num_warps=4, num_stages=3](x: *i32, N: constexpr)"
    expected = [("before", "new_kernel.<locals>.kernel", {"N": 4}, False), ("after", __name__, text)]
    assert told == [*expected, ("load", "kernel"), ("loaded", "kernel", len(compiled.hash))]
    assert keys == list(kernel.device_caches[0][0])
    new_kernel().warmup(x, N=4, grid=(1,))
    assert told[4][3]
    knobs.runtime.reset()
    kernel[(1,)](x, N=8)
    assert len(told) == 6
    with pytest.raises(TypeError, match="must be callable"):
        knobs.runtime.jit_cache_hook = 5


def test_hook_of_code_that_goes():
    told, x = [], np.zeros(8, np.int32)
    knobs.runtime.kernel_load_start_hook.add(lambda *loaded: told.append(("load", *loaded[:3])))
    knobs.runtime.kernel_load_end_hook.add(lambda *loaded: told.append(("loaded", *loaded)))
    knobs.runtime.kernel_unload_hook.add(lambda *gone: told.append(("gone", *gone)))
    kernel = new_kernel()
    compiled = kernel.warmup(x, N=4, grid=(1,))
    kernel[(1,)](x, N=2)
    handles = compiled.module, compiled.function
    last = "kernel", compiled.metadata_group, compiled.hash
    assert [each[0] for each in told] == ["load", "loaded"] * 2 and told[2] == ("load", None, None, "kernel")
    assert told[3] == ("loaded", *handles, *last)
    del compiled, told[:], kernel
    assert [each[0] for each in told] == ["gone"] * 2 and ("gone", *handles, *last) in told


def test_code_that_goes_was_loaded_before():
    """Whether the hook was there when it was, or not; what was compiled alone is no code of a device."""
    told, x = [], np.zeros(8, np.int32)
    launched, loaded, compiled_alone = new_kernel(), new_kernel(), new_kernel()
    launched[(1,)](x, N=4)
    loaded.warmup(x, N=4, grid=(1,))._init_handles()
    compiled_alone.warmup(x, N=4, grid=(1,))
    knobs.runtime.kernel_unload_hook.add(lambda module, function, name, group, hash: told.append(name))
    del compiled_alone
    assert not told
    del launched
    assert told == ["kernel"]
    compiled = loaded.warmup(x, N=4, grid=(1,))
    del loaded
    compiled.__del__()
    assert told == ["kernel"] * 2
    del compiled
    assert told == ["kernel"] * 2


def test_a_hook_of_code_that_goes_raises(monkeypatch):
    """Nobody is there who could be told, but Python's own hook; and what the traceback holds is of use."""
    caught, x, kernel = [], np.zeros(8, np.int32), new_kernel()
    kernel[(1,)](x, N=4)
    knobs.runtime.kernel_unload_hook.add(lambda *gone: 1 // 0)
    monkeypatch.setattr(sys, "unraisablehook", caught.append)
    del kernel
    assert [type(each.exc_value) for each in caught] == [ZeroDivisionError]
    compiled = caught[0].object
    assert isinstance(compiled, triton.compiler.CompiledKernel) and compiled.name == "kernel"
    for use in (lambda: compiled.fn, lambda: compiled[(1,)](x), compiled.run, compiled._rejoin):
        with pytest.raises(ReferenceError, match="the kernel that it was compiled from is gone"):
            use()


def test_a_hook_cannot_keep_a_kernel_from_being_compiled():
    knobs.runtime.jit_cache_hook = lambda **about: True
    x = np.zeros(8, np.int32)
    with pytest.raises(RuntimeError, match="jit_cache_hook asks not to compile kernel 'kernel'"):
        new_kernel()[(1,)](x, N=4)
    assert not x.any()


def test_a_hook_that_raises_ends_the_launch():
    def refuse(**about):
        raise KeyError("not today")

    knobs.runtime.jit_cache_hook = refuse
    x = np.zeros(8, np.int32)
    with pytest.raises(KeyError, match="not today"):
        new_kernel()[(1,)](x, N=4)
    assert not x.any()


def test_the_listener_of_compilations(tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_VERIFY", raising=False)  # which goes without the disk
    told = []
    knobs.compilation.listener = lambda **about: told.append(about)
    knobs.cache.dir, knobs.cache.size = str(tmp_path), "1G"
    kernel = new_kernel()
    kernel[(1,)](np.zeros(4, np.int32), N=4)
    kernel.device_caches.clear()
    kernel[(1,)](np.zeros(4, np.int32), N=4)
    made, found = told
    assert set(made) == {"src", "metadata", "metadata_group", "times", "cache_hit"}
    assert made["src"].name == "kernel" and made["metadata"]["num_warps"] == 4
    assert not made["cache_hit"] and dict(made["times"].lowering_stages)["llvm"] > 0
    assert made["times"].ir_initialization > 0 and made["times"].store_results > 0
    assert found["cache_hit"] and found["times"].total == found["times"].ir_initialization > 0


def test_the_architecture_is_a_target():
    knobs.runtime.target = None
    knobs.runtime.override_arch = "sm90"
    assert knobs.runtime.target == "cuda:90" and knobs.runtime.override_arch == "90"
    knobs.runtime.override_arch = None
    assert knobs.runtime.override_arch is None


def test_defaults_of_options(monkeypatch):
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    assert not knobs.language.default_fp_fusion
    compiled = new_kernel().warmup(np.zeros(4, np.int32), N=4, grid=(1,))
    assert not compiled.metadata.enable_fp_fusion and compiled.metadata.sanitize_overflow
    assert new_kernel().warmup(np.zeros(4, np.int32), N=4, grid=(1,), enable_fp_fusion=True).metadata.enable_fp_fusion


def test_fusion_that_no_launch_may_have(monkeypatch):
    monkeypatch.setenv("TRITON_FORCE_DISABLE_FP_FUSION", "1")
    x = np.zeros(4, np.int32)
    assert not new_kernel().warmup(x, N=4, grid=(1,), enable_fp_fusion=True).metadata.enable_fp_fusion
    assert not knobs.language.fp_fusion_enabled(True)
    knobs.language.force_disable_fp_fusion = False
    assert knobs.language.fp_fusion_enabled(None) and not knobs.language.fp_fusion_enabled(False)
    assert new_kernel().warmup(x, N=4, grid=(1,)).metadata.enable_fp_fusion


@pytest.mark.parametrize("group, name, value, reason", [
    ("amd", "dump_mir", "folder", "AMD's GPUs"), ("proton", "roctx_library", "x.so", "AMD's GPUs"),
    ("proton", "enable_hw_trace", True, "driver's events"),
    ("compilation", "fpsan_homomorphic_casts", True, "no instrumentation"),
])  # fmt: skip
def test_settings_of_what_is_not_here(group, name, value, reason):
    group = getattr(knobs, group)
    with group.scope(), pytest.warns(RuntimeWarning, match=f"{name} has no effect: .*{reason}"):
        setattr(group, name, value)


PLAIN = 3


@triton.jit
def with_a_global(x):
    tl.store(x, PLAIN)


def test_plain_globals(monkeypatch):
    x = np.zeros(1, np.int32)
    with pytest.raises(triton.CompilationError, match="plain int"):
        with_a_global[(1,)](x)
    knobs.compilation.allow_non_constexpr_globals = True
    with_a_global[(1,)](x)
    assert x[0] == 3
    monkeypatch.setitem(globals(), "PLAIN", 4)  # seen, as other names are
    with_a_global[(1,)](x)
    assert x[0] == 4


WITHOUT_EFFECT = {
    "compilation": ("use_ir_loc", None, "ttir"),
    "language": ("fp32_default", None, "ieee"),
    "nvidia": ("dump_nvptx", False, True),
    "amd": ("use_buffer_ops", True, False),
    "proton": ("enable_nvtx", True, False),
}


@pytest.mark.parametrize("group", WITHOUT_EFFECT)
def test_what_has_no_effect_says_so_when_it_is_set(group, monkeypatch, recwarn):
    settings, (name, otherwise, value) = getattr(knobs, group), WITHOUT_EFFECT[group]
    setting = settings.knob_descriptors[name]
    monkeypatch.delenv(setting.key, raising=False)
    with settings.scope():
        assert getattr(settings, name) == otherwise
        setattr(settings, name, otherwise)
        assert not recwarn
        message = rf"knobs.{group}.{name} has no effect: "
        if value:
            with pytest.warns(RuntimeWarning, match=message):
                setattr(settings, name, value)
        else:
            setattr(settings, name, value)
        assert getattr(settings, name) == value
    assert getattr(settings, name) == otherwise and setting.key not in os.environ


def test_what_is_not_there():
    for read in (lambda: knobs.runtime.no_such, lambda: setattr(knobs.cache, "no_such", 1)):
        with pytest.raises(AttributeError, match=r"knobs\.(runtime|cache) has no setting 'no_such'"):
            read()
    assert knobs.runtime.add_stages_inspection_hook is None
    with pytest.raises(NotImplementedError, match="TRITON_DUMP shows what each does"):
        knobs.runtime.add_stages_inspection_hook = print


def test_tools(monkeypatch, tmp_path):
    tool = tmp_path / "ptxas"
    tool.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.9, V12.9.86\n")
    tool.chmod(0o755)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tool))
    assert knobs.nvidia.ptxas.path == knobs.nvidia.ptxas == str(tool)
    assert knobs.nvidia.ptxas.version == "12.9"
    with knobs.nvidia.scope():
        knobs.nvidia.ptxas = "/somewhere/ptxas"
        assert knobs.nvidia.ptxas.path == "/somewhere/ptxas" and knobs.nvidia.ptxas.version is None
        assert triton.compiler.compiled.cuda_tool("ptxas") == "/somewhere/ptxas"
    assert knobs.nvidia.ptxas.path == str(tool)


class settings(knobs.base_knobs):
    """Of a program."""

    name = knobs.env_str("PROGRAM_NAME", "nobody")
    is_on = knobs.env_bool("PROGRAM_ON", True)
    maybe = knobs.env_opt_bool("PROGRAM_MAYBE")
    count = knobs.env_int("PROGRAM_COUNT", 3)


def test_settings_of_a_program(monkeypatch):
    mine = settings()
    defaults = {"name": "nobody", "is_on": True, "maybe": None, "count": 3}
    assert mine.knobs == defaults
    monkeypatch.setenv("PROGRAM_COUNT", "5")
    monkeypatch.setenv("PROGRAM_MAYBE", "No")
    assert mine.count == 5 and mine.maybe is False
    with mine.scope():
        mine.name = "I"
        copy = mine.copy()
        copy.count = 7
        assert os.environ["PROGRAM_NAME"] == "I" and (copy.name, copy.count, mine.count) == ("I", 7, 7)
        del copy.count
        assert copy.count == 5
        copy.reset()
        assert copy.name == mine.name == "I"  # that variable is not the copy's
    assert mine.knobs == defaults | {"count": 5, "maybe": False}
    monkeypatch.setenv("PROGRAM_COUNT", "many")
    with pytest.raises(RuntimeError, match="PROGRAM_COUNT=many: it must be an integer"):
        mine.count  # noqa: B018


def test_what_a_program_sets_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", "/first")
    knobs.cache.dir = "/mine"
    assert os.environ["TRITON_CACHE_DIR"] == knobs.cache.dir == "/mine"
    del knobs.cache.dir
    assert os.environ["TRITON_CACHE_DIR"] == knobs.cache.dir == "/first"
    knobs.cache.dir = "/mine"
    monkeypatch.setenv("TRITON_CACHE_DIR", "/second")
    assert knobs.cache.dir == "/mine"
    knobs.cache.dir = knobs.env
    assert os.environ["TRITON_CACHE_DIR"] == knobs.cache.dir == "/second"
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.cache.dir = "/mine"
    assert os.environ["TRITON_CACHE_DIR"] == "/second" and knobs.cache.dir == "/mine"


@pytest.mark.parametrize("on, off", [("1", "0"), ("true", "FALSE"), ("Y", "n"), ("yes", "No"), ("on", "off")])
def test_flags(on, off, monkeypatch):
    x = np.zeros(3, np.float32)
    for text, expected in ((on, True), (off, False)):
        monkeypatch.setenv("TRITON_DEBUG", text)
        knobs.refresh_knobs()
        assert knobs.runtime.debug is expected
        assert triton.jit(other.fn)[(1,)](x).metadata.debug is expected
        monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", text)
        assert new_kernel().warmup(x, N=4, grid=(1,)).metadata.enable_fp_fusion is expected
        monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", text)  # which the compiler reads
        if expected:
            triton.jit(with_a_global.fn)[(1,)](x)
        else:
            with pytest.raises(triton.CompilationError, match="plain int"):
                triton.jit(with_a_global.fn)[(1,)](x)


def test_folders(monkeypatch, tmp_path):
    for name in ("TRITON_HOME", "TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_OVERRIDE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/someone")
    assert knobs.cache.home_dir == "/someone/" and knobs.cache.dir == "/someone/.triton/cache"
    knobs.cache.home_dir = "/elsewhere"
    folders = [knobs.cache.dir, knobs.cache.dump_dir, knobs.cache.override_dir]
    assert folders == [f"/elsewhere/.triton/{name}" for name in ("cache", "dump", "override")]


def test_managers(monkeypatch):
    from triton.runtime.cache import FileCacheManager, get_cache_manager

    class Mine(FileCacheManager):
        pass

    assert knobs.cache.manager_class is None
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "triton.runtime.cache:FileCacheManager")
    assert knobs.cache.manager_class is FileCacheManager
    knobs.cache.manager_class = Mine
    assert type(get_cache_manager("key")) is Mine
    del knobs.cache.manager_class
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "pathlib:Path")
    with pytest.raises(RuntimeError, match="TRITON_CACHE_MANAGER=pathlib:Path: the class is no CacheManager"):
        get_cache_manager("key")


def test_variables_without_effect_are_told_once():
    import subprocess
    import sys

    code = "import triton\n@triton.jit\ndef f(x): pass\n@triton.jit\ndef g(x): pass\n"
    environment = {**os.environ, "MLIR_ENABLE_DUMP": "1", "PYTHONWARNINGS": "default"}
    program = f"import sys; exec(compile({code!r}, 'x.py', 'exec'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stderr.count("MLIR_ENABLE_DUMP has no effect: TRITON_DUMP=after:all prints the IR") == 1
