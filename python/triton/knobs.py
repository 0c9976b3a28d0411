"""Settings of a program: ``triton.knobs.runtime.debug = True``. Most are variables of the environment too. What a
program sets goes to the variable as well, for the compiler looks there, and so do processes that are started later;
``del`` takes it back. (After ``knobs.propagate_env = False`` it does not, and is for those who read the setting alone.)

``with knobs.runtime.scope():`` takes back at its end what was set inside. Settings of the public API that mean nothing
here may be set; a warning says what to use instead.
"""

import os
from collections.abc import Callable

from . import _C
from ._settings import (
    Chain,
    Debug,
    Env,
    Hook,
    HookChain,
    Interpret,
    Knobs,
    env_base,
    env_bool,
    env_class,
    env_int,
    env_opt_bool,
    env_opt_str,
    env_str,
    env_str_callable_default,
)

base_knobs = Knobs
LaunchHook = InitHandleHook = JITHook = HookChain
AutotuneListener = CompilationListener = Callable  # of keywords: see `autotuning_knobs` and `compilation_knobs`

env = Env()
propagate_env = True


class CompileTimes:
    """How long the phases of a compilation took, in microseconds.

    ``ir_initialization``: reading the kernel, or finding it on disk. ``lowering_stages``: names and times of what
    followed. ``store_results``: keeping the code on disk.
    """

    def __init__(self, ir_initialization, lowering_stages, store_results):
        self.ir_initialization, self.lowering_stages = ir_initialization, lowering_stages
        self.store_results = store_results

    @property
    def total_lowering(self):
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self):
        return self.ir_initialization + self.total_lowering + self.store_results

    def __repr__(self):
        return f"CompileTimes({self.ir_initialization}, {self.lowering_stages}, {self.store_results})"


class _Group(Knobs):
    """A group that names what it does not have."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"knobs.{self._name} has no setting {name!r}")

    def __setattr__(self, name, value):
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(f"knobs.{self._name} has no setting {name!r}")
        super().__setattr__(name, value)


class runtime_knobs(_Group):
    """``debug``: kernels check bounds, overflow and assertions. ``target``: what they are compiled for. ``interpret``:
    they are not compiled, but run in Python. ``sanitize_overflow``: with `debug`, whether overflow is checked.

    ``launch_enter_hook`` and ``launch_exit_hook`` are chains of functions that are called around each launch with an
    object whose ``get()`` is a dict: ``name`` of the kernel, ``function`` (the compiled kernel), ``stream``, and what
    ``@triton.jit(launch_metadata=...)`` adds. On a GPU a launch ends before its kernel does.

    ``jit_cache_hook`` and ``jit_post_compile_hook`` are called before a launch compiles, and when it has, with the
    keywords key, repr, fn, compile, is_manual_warmup and already_compiled, once for each key; what asks not to compile
    by returning something true raises a RuntimeError. ``kernel_load_start_hook`` and
    ``kernel_load_end_hook`` are chains that are called around the loading of compiled code with (module, function,
    name, metadata_group, hash), and so is ``kernel_unload_hook`` when a kernel goes whose code was loaded or launched.
    Before loading there are no handles: `module` and `function` are None.
    """

    _name = "runtime"
    debug = Debug("TRITON_DEBUG")
    target = env_opt_str("TRITON_TARGET")
    interpret = Interpret("TRITON_INTERPRET")
    sanitize_overflow = env_bool("TRITON_SANITIZE_OVERFLOW", True)
    launch_enter_hook = Chain()
    launch_exit_hook = Chain(reversed=True)
    jit_cache_hook = Hook()
    jit_post_compile_hook = Hook()
    kernel_load_start_hook = Chain()
    kernel_load_end_hook = Chain(reversed=True)
    kernel_unload_hook = Chain()

    @property
    def override_arch(self):
        """The compute capability that kernels are compiled for, whatever the device: `target` has it in full."""
        name = self.target or ""
        return name.removeprefix("cuda:") if name.startswith("cuda:") else None

    @override_arch.setter
    def override_arch(self, arch):
        self.target = None if arch is None else f"cuda:{str(arch).removeprefix('sm').strip('_a')}"

    @property
    def add_stages_inspection_hook(self):
        """None: passes are the compiler's own, and ``TRITON_DUMP`` shows what each does."""

    @add_stages_inspection_hook.setter
    def add_stages_inspection_hook(self, hook):
        if hook is not None:
            reason = "passes are the compiler's own; TRITON_DUMP shows what each does"
            raise NotImplementedError(f"knobs.runtime.add_stages_inspection_hook: {reason}")

    def _install(self):
        chains = self.launch_enter_hook, self.launch_exit_hook
        _C.set_launch_hooks(*(chain if chain.calls else None for chain in chains))
        install_kernel_hooks()


class compilation_knobs(_Group):
    """``always_compile``: nothing is taken from disk. ``dump_ir``: the stages of each kernel go to `cache.dump_dir`.
    ``override``: files of `cache.override_dir` take the place of stages.
    ``allow_non_constexpr_globals``: kernels may use plain numbers that are global.

    ``listener`` is called when a launch has compiled a kernel, or found it on disk, with the keywords src, metadata,
    metadata_group, times (`CompileTimes`) and cache_hit.
    """

    _name = "compilation"
    always_compile = env_bool("TRITON_ALWAYS_COMPILE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "")
    fpsan_homomorphic_casts = env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS")
    listener = Hook()

    def _install(self):
        install_kernel_hooks()


class cache_knobs(_Group):
    """Folders, and the classes that `triton.runtime.cache` makes managers of. ``size``: how much compiled kernels may
    take on disk. ``home_dir``: in place of the user's own for the folders that are not set."""

    _name = "cache"
    size = env_opt_str("TRITON_CACHE_SIZE")
    home_dir = env_str_callable_default("TRITON_HOME", lambda: os.path.expanduser("~/"))
    dir = env_str_callable_default("TRITON_CACHE_DIR", _C.store_folder)
    dump_dir = env_str_callable_default("TRITON_DUMP_DIR", lambda: cache.get_triton_dir("dump"))
    override_dir = env_str_callable_default("TRITON_OVERRIDE_DIR", lambda: cache.get_triton_dir("override"))
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, name):
        """The folder of this name in ``.triton`` of the home folder."""
        return os.path.join(self.home_dir, ".triton", name)


class redis_knobs(_Group):
    """The server that `triton.runtime.cache` may keep files in."""

    _name = "redis"
    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


class language_knobs(_Group):
    """``default_fp_fusion``: products and sums are fused where a launch does not say `enable_fp_fusion`.
    ``force_disable_fp_fusion``: they are not, whatever it says."""

    _name = "language"
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)
    force_disable_fp_fusion = env_bool("TRITON_FORCE_DISABLE_FP_FUSION")
    fp32_default = env_opt_str("TRITON_F32_DEFAULT")

    def fp_fusion_enabled(self, requested):
        """What holds for a launch that asks for this value of `enable_fp_fusion`, or None."""
        return not self.force_disable_fp_fusion and (self.default_fp_fusion if requested is None else bool(requested))


class autotuning_knobs(_Group):
    """``print``: say what was measured and chosen. ``cache``: keep it on disk, whatever a kernel's decorator says.

    ``listener`` is called when a kernel was tuned, or what was found earlier was on disk, with the keywords fn (the
    kernel), key, best_config, configs_timings, duration (seconds; None from disk) and cache_hit.
    """

    _name = "autotuning"
    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    listener = Hook()


class NvidiaTool(str):
    """The path of a program of the CUDA toolkit."""

    @property
    def path(self):
        return str(self)

    @property
    def version(self):
        """Its release, such as "12.9"; None if it does not run, or says none."""
        import re
        import subprocess

        try:
            done = subprocess.run([self, "--version"], capture_output=True, text=True)
        except OSError:
            return None
        found = re.search(r"release (\d+\.\d+)", done.stdout)
        return found and found[1]


class env_nvidia_tool(env_base):
    """A program of the CUDA toolkit: the one that the variable says, or where it is found; None if it is nowhere."""

    def __init__(self, program):
        super().__init__(f"TRITON_{program.upper()}_PATH", lambda: self._find(program))

    @staticmethod
    def _find(program):
        from .compiler.compiled import cuda_tool

        path = cuda_tool(program)
        return path and NvidiaTool(path)

    def read(self, text):
        return NvidiaTool(text)

    def transform(self, value):
        return value and NvidiaTool(value)


nvidia_tool = NvidiaTool


class nvidia_knobs(_Group):
    """``libdevice_path``: the library of mathematical functions, if it is not found. ``ptxas``, ``cuobjdump`` and
    ``nvdisasm``: these programs, with ``path`` and ``version``; ``ptxas_path``: the one that was asked for."""

    _name = "nvidia"
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    ptxas_path = env_opt_str("TRITON_PTXAS_PATH")
    ptxas = env_nvidia_tool("ptxas")
    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas_blackwell = env_opt_str("TRITON_PTXAS_BLACKWELL_PATH", instead="there is one ptxas")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH", instead="the driver is found by the system's loader")


class build_knobs(_Group):
    """How `triton.runtime.build` compiles modules that programs ask for; launches need no C compiler. ``cc``: the
    compiler. ``impl``: what does it instead, with the parameters of ``_build``. ``backend_dirs``: where headers are."""

    _name = "build"
    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    impl = None

    @property
    def backend_dirs(self):
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


def _amd(kind, key, *otherwise):
    return kind(key, *otherwise, instead="AMD's GPUs are not supported")


class proton_knobs(_Group):
    """``disable``: `triton.profiler` measures nothing."""

    _name = "proton"
    disable = env_bool("TRITON_PROTON_DISABLE")
    cupti_lib_dir = env_opt_str("TRITON_CUPTI_LIB_PATH", instead="times come from the driver's events")
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True, instead="scopes are written to the trace")
    profile_buffer_size = env_int("TRITON_PROFILE_BUFFER_SIZE", 64 << 20, instead="times are kept one by one")
    profile_metric_buffer_size = env_int(
        "TRITON_PROFILE_METRIC_BUFFER_SIZE", 64 << 20, instead="times are kept one by one"
    )
    cupti_lib_blackwell_dir = env_opt_str(
        "TRITON_CUPTI_LIB_BLACKWELL_PATH", instead="times come from the driver's events"
    )
    hsa_runtime_path = _amd(env_opt_str, "TRITON_HSA_RUNTIME_PATH")
    hsa_runtime_library = _amd(env_opt_str, "TRITON_HSA_RUNTIME_LIBRARY")
    rocprofiler_sdk_include_path = _amd(env_opt_str, "TRITON_ROCPROFILER_SDK_INCLUDE_PATH")
    rocprofiler_sdk_lib_path = _amd(env_opt_str, "TRITON_ROCPROFILER_SDK_LIB_PATH")
    rocprofiler_sdk_library = _amd(env_opt_str, "TRITON_ROCPROFILER_SDK_LIBRARY")
    roctracer_lib_path = _amd(env_opt_str, "TRITON_ROCTRACER_LIB_PATH")
    roctracer_library = _amd(env_opt_str, "TRITON_ROCTRACER_LIBRARY")
    roctx_lib_path = _amd(env_opt_str, "TRITON_ROCTX_LIB_PATH")
    roctx_library = _amd(env_str, "TRITON_ROCTX_LIBRARY", "libroctx64.so")
    enable_hw_trace = env_bool("TRITON_ENABLE_HW_TRACE", instead="times come from the driver's events")
    profile_buffer_pool_size = env_int("TRITON_PROFILE_BUFFER_POOL_SIZE", 16, instead="times are kept one by one")


class amd_knobs(_Group):
    """AMD's GPUs are not supported: none of these has an effect."""

    _name = "amd"
    use_buffer_ops = _amd(env_bool, "AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = _amd(env_bool, "AMDGCN_USE_BUFFER_ATOMICS", True)
    dump_amdgcn = _amd(env_bool, "AMDGCN_ENABLE_DUMP")
    libhip_path = _amd(env_opt_str, "TRITON_LIBHIP_PATH")
    use_block_pingpong = _amd(env_opt_bool, "TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = _amd(env_opt_bool, "TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = _amd(env_opt_bool, "TRITON_HIP_USE_ASYNC_COPY")
    global_prefetch = _amd(env_int, "TRITON_HIP_GLOBAL_PREFETCH")
    local_prefetch = _amd(env_int, "TRITON_HIP_LOCAL_PREFETCH")
    scalarize_packed_fops = _amd(env_bool, "AMDGCN_SCALARIZE_PACKED_FOPS")
    buffer_ops_analyze_small_tensor_range = _amd(env_bool, "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    codegen_path = _amd(env_opt_str, "TRITON_AMD_CODEGEN_PATH")
    use_coexec_scheduler = _amd(env_opt_bool, "TRITON_HIP_USE_COEXEC_SCHEDULER")
    use_expert_scheduling = _amd(env_opt_bool, "TRITON_HIP_USE_EXPERT_SCHEDULING")
    dump_mir = _amd(env_opt_str, "TRITON_DUMP_MIR")
    swap_mir = _amd(env_opt_str, "TRITON_SWAP_MIR")
    swap_mir_enable_misched = _amd(env_bool, "TRITON_SWAP_MIR_ENABLE_MISCHED")


runtime, compilation, cache, language = runtime_knobs(), compilation_knobs(), cache_knobs(), language_knobs()
autotuning, nvidia, build = autotuning_knobs(), nvidia_knobs(), build_knobs()
proton, amd, redis = proton_knobs(), amd_knobs(), redis_knobs()


def getenv_bool(key, default):
    """A flag of the environment, which is off as 0, n, no, off or false; `default` where there is none."""
    from .runtime.environment import is_on

    text = os.environ.get(key)
    return default if text is None else is_on(text)


def install_kernel_hooks():
    """Have the compiler call the hooks that there are."""
    from .runtime.kernel_hooks import install

    install(runtime, compilation)


def refresh_knobs():
    """Look at the environment again, for the settings that are not looked up each time."""
    for name, setting in runtime.knob_descriptors.items():
        vars(runtime).pop(name, None)
        setting.changed(runtime)
    install_kernel_hooks()


__all__ = [
    "AutotuneListener",
    "CompilationListener",
    "CompileTimes",
    "Env",
    "HookChain",
    "JITHook",
    "LaunchHook",
    "NvidiaTool",
    "amd",
    "autotuning",
    "base_knobs",
    "build",
    "cache",
    "compilation",
    "env",
    "env_base",
    "env_bool",
    "env_class",
    "env_int",
    "env_opt_bool",
    "env_opt_str",
    "env_str",
    "env_str_callable_default",
    "getenv_bool",
    "language",
    "nvidia",
    "propagate_env",
    "proton",
    "redis",
    "refresh_knobs",
    "runtime",
]
