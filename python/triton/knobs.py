"""Settings of a program: ``triton.knobs.runtime.debug = True``. Those that an environment variable sets too are that
variable: reading looks at it, setting sets it (for processes that are started later as well), ``del`` removes it.

``with knobs.runtime.scope():`` takes back at its end what was set inside. Settings of the public API that mean nothing
here are not there, and asking for one says what to use instead.
"""

import os

from . import _C
from ._settings import CacheFolder, Chain, Debug, Flag, Folder, Hook, HookChain, Interpret, Knobs, Text, Variable

base_knobs = Knobs
LaunchHook = JITHook = HookChain


class _Absent:
    """For groups: what they do not have, with a word on it."""

    _instead = {}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"knobs.{self._name} has no setting {name!r}{_because(self._instead.get(name))}")

    def __setattr__(self, name, value):
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(f"knobs.{self._name} has no setting {name!r}{_because(self._instead.get(name))}")
        super().__setattr__(name, value)


def _because(reason):
    return f": {reason}" if reason else ""


class _Runtime(_Absent, Knobs):
    """``debug``: kernels check bounds, overflow and assertions. ``target``: what they are compiled for. ``interpret``:
    they are not compiled, but run in Python. ``sanitize_overflow``: with `debug`, whether overflow is checked.

    ``launch_enter_hook`` and ``launch_exit_hook`` are chains of functions that are called around each launch with an
    object whose ``get()`` is a dict: ``name`` of the kernel, ``function`` (the compiled kernel), ``stream``, and what
    ``@triton.jit(launch_metadata=...)`` adds. On a GPU a launch ends before its kernel does.

    ``jit_cache_hook`` and ``jit_post_compile_hook`` are called before a launch compiles, and when it has, with the
    keywords key, repr, fn, compile, is_manual_warmup and already_compiled; what asks not to compile by returning
    something true raises a RuntimeError. ``kernel_load_start_hook`` and
    ``kernel_load_end_hook`` are chains that are called around the loading of compiled code with (module, function,
    name, metadata_group, hash).
    """

    _name = "runtime"
    _instead = {"add_stages_inspection_hook": "passes are the compiler's own; TRITON_DUMP shows what each does"}
    debug = Debug("TRITON_DEBUG")
    target = Text("TRITON_TARGET")
    interpret = Interpret("TRITON_INTERPRET")
    sanitize_overflow = Flag("TRITON_SANITIZE_OVERFLOW", otherwise=True)
    launch_enter_hook = Chain()
    launch_exit_hook = Chain(reversed=True)
    jit_cache_hook = Hook()
    jit_post_compile_hook = Hook()
    kernel_load_start_hook = Chain()
    kernel_load_end_hook = Chain(reversed=True)

    @property
    def override_arch(self):
        """The compute capability that kernels are compiled for, whatever the device: `target` has it in full."""
        name = self.target or ""
        return name.removeprefix("cuda:") if name.startswith("cuda:") else None

    @override_arch.setter
    def override_arch(self, arch):
        self.target = None if arch is None else f"cuda:{str(arch).removeprefix('sm').strip('_a')}"

    def _install(self):
        chains = self.launch_enter_hook, self.launch_exit_hook
        _C.set_launch_hooks(*(chain if chain.calls else None for chain in chains))
        install_kernel_hooks()


class _Compilation(_Absent, Knobs):
    """``always_compile``: nothing is taken from disk. ``dump_ir``: the stages of each kernel go to `cache.dump_dir`.
    ``override``: files of `cache.override_dir` take the place of stages.
    ``allow_non_constexpr_globals``: kernels may use plain numbers that are global.

    ``listener`` is called when a launch has compiled a kernel with the keywords src, metadata, metadata_group, times
    (a dict of phases and milliseconds) and cache_hit.
    """

    _name = "compilation"
    _instead = {
        "disable_line_info": "line information costs compiled kernels nothing, and is always there",
        "use_ir_loc": "lines are always those of the Python source",
        "store_binary_only": "the other stages are made when they are asked for",
        "enable_asan": "TRITON_DEBUG=1 checks accesses, on every target",
        "front_end_debugging": "an error has the place in the kernel, and as its cause what Python raised",
        "instrumentation_mode": "there is no instrumentation of kernels",
    }
    always_compile = Flag("TRITON_ALWAYS_COMPILE")
    dump_ir = Flag("TRITON_KERNEL_DUMP")
    override = Flag("TRITON_KERNEL_OVERRIDE")
    allow_non_constexpr_globals = Flag("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    listener = Hook()

    def _install(self):
        install_kernel_hooks()


class _Cache(_Absent, Knobs):
    """Folders, and the classes ("module:class") that `triton.runtime.cache` makes managers of. ``size``: how much
    compiled kernels may take on disk. ``home_dir``: in place of the user's own for the folders that are not set."""

    _name = "cache"
    dir = CacheFolder("TRITON_CACHE_DIR")
    size = Text("TRITON_CACHE_SIZE")
    home_dir = Text("TRITON_HOME")
    dump_dir = Folder("TRITON_DUMP_DIR", "dump")
    override_dir = Folder("TRITON_OVERRIDE_DIR", "override")
    manager_class = Text("TRITON_CACHE_MANAGER")
    remote_manager_class = Text("TRITON_REMOTE_CACHE_BACKEND")
    redis_host = Text("TRITON_REDIS_HOST")
    redis_port = Text("TRITON_REDIS_PORT")
    redis_key_format = Text("TRITON_REDIS_KEY_FORMAT")


class _Language(_Absent, Knobs):
    """``default_fp_fusion``: products and sums are fused where a launch does not say `enable_fp_fusion`."""

    _name = "language"
    _instead = {"fp32_default": "tl.dot(..., input_precision=) says how float32 is multiplied"}
    default_fp_fusion = Flag("TRITON_DEFAULT_FP_FUSION", otherwise=True)


class _Autotuning(_Absent, Knobs):
    """``print``: say what was measured and chosen. ``cache``: keep it on disk, whatever a kernel's decorator says."""

    _name = "autotuning"
    cache = Flag("TRITON_CACHE_AUTOTUNING")
    print = Flag("TRITON_PRINT_AUTOTUNING")


class nvidia_tool(str):
    """The path of a program of the CUDA toolkit; ``path`` is itself."""

    @property
    def path(self):
        return str(self)


class _Tool(Text):
    """The path that the variable says, or where the program is found; None if it is nowhere."""

    def __get__(self, knobs, owner=None):
        from .compiler.compiled import cuda_tool

        if knobs is None:
            return self
        path = cuda_tool(self.name.removeprefix("TRITON_").removesuffix("_PATH").lower())
        return path and nvidia_tool(path)


class _Nvidia(_Absent, Knobs):
    """``libdevice_path``: the library of mathematical functions, if it is not found. ``ptxas``, ``cuobjdump`` and
    ``nvdisasm``: paths of these programs; ``ptxas_path``: the one that was asked for."""

    _name = "nvidia"
    _instead = {
        "dump_nvptx": 'kernel.asm["ptx"] has the PTX of a compiled kernel',
        "disable_ptxas_opt": "the driver compiles PTX, with its own options",
        "ptxas_options": "the driver compiles PTX, with its own options",
        "dump_ptxas_log": "compiled.n_regs, n_spills and metadata.shared say what a kernel takes",
        "mock_ptx_version": "the version of PTX is that of the driver",
        "libcuda_path": "the driver is found by the system's loader",
    }
    libdevice_path = Text("TRITON_LIBDEVICE_PATH")
    ptxas_path = Text("TRITON_PTXAS_PATH")
    ptxas = _Tool("TRITON_PTXAS_PATH")
    cuobjdump = _Tool("TRITON_CUOBJDUMP_PATH")
    nvdisasm = _Tool("TRITON_NVDISASM_PATH")


class _Build(_Absent, Knobs):
    """Nothing is built while a program runs: launches need no C compiler."""

    _name = "build"
    _instead = dict.fromkeys(("cc", "impl", "cudacrt_path", "cudart_path", "backend_dirs"), "nothing is built in C")


class _Proton(_Absent, Knobs):
    """``disable``: `triton.profiler` measures nothing."""

    _name = "proton"
    _instead = {
        "cupti_lib_dir": "times come from the driver's events",
        "enable_nvtx": "scopes are written to the trace",
        "profile_buffer_size": "times are kept one by one",
        "profile_buffer_pool_size": "times are kept one by one",
    }
    disable = Flag("TRITON_PROTON_DISABLE")


class _AMD(_Absent, Knobs):
    """AMD's GPUs are not supported."""

    _name = "amd"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"knobs.amd has no setting {name!r}: AMD's GPUs are not supported")


class _Redis(_Absent, Knobs):
    """The database that `triton.runtime.cache` may keep files in."""

    _name = "redis"
    host = Text("TRITON_REDIS_HOST")
    port = Text("TRITON_REDIS_PORT")
    key_format = Text("TRITON_REDIS_KEY_FORMAT")


runtime, compilation, cache, language = _Runtime(), _Compilation(), _Cache(), _Language()
autotuning, nvidia, build = _Autotuning(), _Nvidia(), _Build()
proton, amd, redis = _Proton(), _AMD(), _Redis()


def install_kernel_hooks():
    """Have the compiler call the hooks that there are."""
    from .runtime.kernel_hooks import install

    install(runtime, compilation)


def refresh_knobs():
    """Look at the environment again, for the settings that are not looked up each time."""
    for group in (runtime, compilation):
        for variable in group._variables():
            variable.restore(os.environ.get(variable.name))
    install_kernel_hooks()


__all__ = [
    "HookChain",
    "JITHook",
    "LaunchHook",
    "Variable",
    "amd",
    "autotuning",
    "base_knobs",
    "build",
    "cache",
    "compilation",
    "language",
    "nvidia",
    "proton",
    "redis",
    "refresh_knobs",
    "runtime",
]
