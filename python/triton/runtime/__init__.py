"""Kernels as Python objects: decorating, launching, tuning, and the device they run on."""

from ..errors import AutotunerError, OutOfResources, TritonError
from ._allocation import set_allocator
from .config import Config
from .driver import driver
from .errors import InterpreterError
from .jit import JITFunction, KernelInterface, KernelParam
from .wrapper import MockTensor, TensorWrapper, reinterpret

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
    "Heuristics": "launchable",
    "RedisRemoteCacheBackend": "cache",
    "RemoteCacheBackend": "cache",
    "autotune": "autotuner",
    "heuristics": "launchable",
    "tunable": "space",
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .autotuner import Autotuner, autotune
    from .cache import RedisRemoteCacheBackend, RemoteCacheBackend
    from .launchable import Heuristics, heuristics
    from .space import tunable


def _load(name):
    if name in _LATER or name in {*_LATER.values(), "interpreter"}:
        from importlib import import_module

        module = import_module(f".{_LATER.get(name, name)}", __name__)
        return getattr(module, name) if name in _LATER else module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # which would take every name then
    __getattr__ = _load
