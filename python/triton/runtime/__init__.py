"""Kernels as Python objects: decorating, launching, tuning, and the device they run on."""

from .driver import driver
from .jit import JITFunction, KernelInterface, KernelParam

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "OutOfResources",
    "RedisRemoteCacheBackend",
    "RemoteCacheBackend",
    "TensorWrapper",
    "TritonError",
    "autotune",
    "driver",
    "heuristics",
    "reinterpret",
    "set_allocator",
    "tunable",
]

# Where names live whose modules not every program needs.
_LATER = {
    "Autotuner": "autotuner",
    "AutotunerError": "errors",
    "Config": "config",
    "Heuristics": "launchable",
    "InterpreterError": "errors",
    "MockTensor": "wrapper",
    "OutOfResources": "errors",
    "RedisRemoteCacheBackend": "cache",
    "RemoteCacheBackend": "cache",
    "TensorWrapper": "wrapper",
    "TritonError": "errors",
    "autotune": "autotuner",
    "heuristics": "launchable",
    "reinterpret": "wrapper",
    "set_allocator": "_allocation",
    "tunable": "space",
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..errors import AutotunerError, OutOfResources, TritonError
    from ._allocation import set_allocator
    from .autotuner import Autotuner, autotune
    from .cache import RedisRemoteCacheBackend, RemoteCacheBackend
    from .config import Config
    from .errors import InterpreterError
    from .launchable import Heuristics, heuristics
    from .space import tunable
    from .wrapper import MockTensor, TensorWrapper, reinterpret


def _load(name):
    if name in _LATER or name in {*_LATER.values(), "build", "interpreter"}:
        from importlib import import_module

        module = import_module(f".{_LATER.get(name, name)}", __name__)
        return globals().setdefault(name, getattr(module, name)) if name in _LATER else module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # which would take every name then
    __getattr__ = _load
