"""Kernels as Python objects: decorating, launching, tuning, and the device they run on."""

from ..errors import AutotunerError, OutOfResources, TritonError
from ._allocation import set_allocator
from .autotuner import Autotuner, autotune
from .config import Config
from .driver import driver
from .errors import InterpreterError
from .jit import JITFunction, KernelInterface, KernelParam
from .launchable import Heuristics, heuristics
from .space import tunable
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
    "TensorWrapper",
    "TritonError",
    "autotune",
    "driver",
    "heuristics",
    "reinterpret",
    "set_allocator",
    "tunable",
]
