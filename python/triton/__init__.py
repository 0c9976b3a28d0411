"""A tile compiler: @triton.jit kernels to native code, on CPUs and GPUs."""

import os as _os

from . import _C, runtime
from .runtime import JITFunction, KernelInterface
from .runtime.jit import jit
from .utilities import cdiv, next_power_of_2

_C.__path__ = [_os.path.join(_os.path.dirname(__file__), "_libtriton")]  # so that `triton._C.libtriton` is found

tritonc_version = "0.1.0"
# The release of the public API that this package follows, which is what programs ask for, and then our own.
__version__ = f"3.9.0+tritonc.{tritonc_version}"

__all__ = [
    "AsyncCompileMode",
    "Autotuner",
    "AutotunerError",
    "CUDAError",
    "CompilationError",
    "Config",
    "DeviceAssertionError",
    "DivisionByZeroError",
    "FutureKernel",
    "Heuristics",
    "IntegerOverflowError",
    "InternalError",
    "InterpreterError",
    "JITFunction",
    "KernelError",
    "KernelInterface",
    "LinearLayout",
    "MemoryAccessError",
    "MockTensor",
    "OutOfResources",
    "PTXASError",
    "RaceError",
    "TargetError",
    "TensorWrapper",
    "TritonError",
    "UnsupportedError",
    "aggregate",
    "autotune",
    "backends",
    "c",
    "cdiv",
    "compile",
    "compiler",
    "constexpr_function",
    "errors",
    "heuristics",
    "jit",
    "knobs",
    "language",
    "must_use_result",
    "next_power_of_2",
    "profiler",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
    "tunable",
    "tritonc_version",
]

# Modules, and where names live whose modules not every program needs.
_MODULES = ["backends", "c", "compiler", "errors", "knobs", "language", "ops", "profiler", "testing", "tools"]
_ERRORS = [
    "AutotunerError",
    "CompilationError",
    "CUDAError",
    "DeviceAssertionError",
    "DivisionByZeroError",
    "IntegerOverflowError",
    "InternalError",
    "KernelError",
    "MemoryAccessError",
    "OutOfResources",
    "PTXASError",
    "RaceError",
    "TargetError",
    "TritonError",
    "UnsupportedError",
]
_LATER = dict.fromkeys(_ERRORS, "errors") | {
    "AsyncCompileMode": "runtime._async_compile",
    "Autotuner": "runtime",
    "Config": "runtime",
    "FutureKernel": "runtime._async_compile",
    "Heuristics": "runtime",
    "InterpreterError": "runtime",
    "LinearLayout": "tools.linear_layout",
    "MockTensor": "runtime",
    "TensorWrapper": "runtime",
    "aggregate": "language.aggregates",
    "autotune": "runtime",
    "compile": "compiler",
    "constexpr_function": "language",
    "heuristics": "runtime",
    "must_use_result": "language",
    "reinterpret": "runtime",
    "set_allocator": "runtime",
    "tunable": "runtime",
}


TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import backends, c, compiler, errors, knobs, language, profiler, testing, tools
    from .compiler import compile
    from .errors import (
        AutotunerError,
        CompilationError,
        CUDAError,
        DeviceAssertionError,
        DivisionByZeroError,
        IntegerOverflowError,
        InternalError,
        KernelError,
        MemoryAccessError,
        OutOfResources,
        PTXASError,
        RaceError,
        TargetError,
        TritonError,
        UnsupportedError,
    )
    from .language import constexpr_function, must_use_result
    from .language.aggregates import aggregate
    from .runtime import (
        Autotuner,
        Config,
        Heuristics,
        InterpreterError,
        MockTensor,
        TensorWrapper,
        autotune,
        heuristics,
        reinterpret,
        set_allocator,
        tunable,
    )
    from .runtime._async_compile import AsyncCompileMode, FutureKernel
    from .tools.linear_layout import LinearLayout


def _load(name):
    if name in _MODULES or name in _LATER:
        from importlib import import_module

        module = import_module(f".{_LATER.get(name, name)}", __name__)
        return globals().setdefault(name, getattr(module, name)) if name in _LATER else module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # which would take every name then
    __getattr__ = _load


def __dir__():
    return sorted({*globals(), *__all__})
