"""What compiles for each kind of device and what runs on it: ``backends["cpu"]`` and ``backends["nvidia"]``.

Each is a `Backend` of a compiler (a `BaseBackend`) and a driver (a `DriverBase`).
"""

from collections import namedtuple

from ..runtime.cuda import CUDADriver
from ..runtime.driver import CPUDriver
from ..runtime.driver_base import DriverBase
from . import compiler, driver
from .compiler import BaseBackend

Backend = namedtuple("Backend", "compiler driver")

backends = {
    "cpu": Backend(compiler.CPUBackend, CPUDriver),
    "nvidia": Backend(compiler.CUDABackend, CUDADriver),
}

__all__ = ["Backend", "BaseBackend", "DriverBase", "backends", "compiler", "driver"]
