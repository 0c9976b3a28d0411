"""Kernels as Python objects: decorating, launching, tuning, and the device they run on."""

from ..errors import AutotunerError, OutOfResources
from .autotuner import Autotuner, autotune
from .config import Config
from .driver import driver
from .jit import JITFunction, KernelInterface, KernelParam
from .launchable import Heuristics, heuristics
from .memory import set_allocator
from .space import tunable
from .wrapper import MockTensor, TensorWrapper, reinterpret

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "JITFunction",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "autotune",
    "driver",
    "heuristics",
    "reinterpret",
    "set_allocator",
    "tunable",
]
