"""The device that kernels run on: ``triton.runtime.driver.active``."""

import os
import sys
from functools import cache

from .. import _C
from .driver_base import DriverBase


class CPUDriver(DriverBase):
    """The processor: kernels' programs run on a pool of threads."""

    def __init__(self):
        self.utils = CPUUtils()

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        from .target import asked_target, target_of

        asked = asked_target() or ""
        return target_of(asked if asked.startswith("sim:") else "cpu")

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        if device not in (0, None):
            raise ValueError(f"there is one CPU, number 0, and no device {device!r}")

    def get_current_stream(self, device=0):
        return 0

    def get_device_interface(self):
        return CPUInterface

    def get_benchmarker(self):
        from ..testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self):
        """An array larger than the processor's caches, to be overwritten between measurements."""
        count = 2 * _cache_bytes(3, 32 << 20) // 4
        if "torch" in sys.modules:
            import torch

            return torch.empty(count, dtype=torch.int32)
        import numpy

        return numpy.empty(count, dtype=numpy.int32)

    def clear_cache(self, cache):
        cache.zero_() if hasattr(cache, "zero_") else cache.fill(0)


class CPUUtils:
    """What host code asks of a device to decide how many programs to start."""

    def get_device_properties(self, device=0):
        """A thread of the pool is a multiprocessor whose fast memory is a core's second-level cache."""
        return {
            "multiprocessor_count": thread_count(),
            "max_shared_mem": _cache_bytes(2, 1 << 20),
            "max_num_regs": 65536,
            "warpSize": 1,
        }


class CPUInterface:
    """The part of `torch.cuda` that benchmarks use, for the CPU, where every launch has ended when it returns."""

    class Event:
        def __init__(self, enable_timing=False):
            self.time = None

        def record(self, stream=None):
            import time

            self.time = time.perf_counter()

        def elapsed_time(self, end):
            return (end.time - self.time) * 1e3

        def synchronize(self):
            pass

    @staticmethod
    def synchronize(device=None):
        pass

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def is_available():
        return True


def thread_count():
    """Threads that run programs."""
    asked = os.environ.get("TRITON_CPU_THREADS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_bytes(level, otherwise):
    """Size of a cache of the first core, from what Linux says about it."""
    folder = "/sys/devices/system/cpu/cpu0/cache"
    try:
        for name in os.listdir(folder):
            if not name.startswith("index"):
                continue
            with open(f"{folder}/{name}/level") as file:
                if int(file.read()) != level:
                    continue
            with open(f"{folder}/{name}/size") as file:
                return int(file.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        pass
    return otherwise


# ---- streams and devices of the libraries that kernels get arrays from


def torch_on_cuda():
    """The module `torch` if the program uses it and it can use a GPU, else None."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "cuda") and _can_use_cuda(torch) else None


@cache
def _can_use_cuda(torch):
    return torch.cuda.is_available()


@cache
def _stream_of_torch(torch):
    """What gives the handle of its stream on a device: mostly a function of torch that makes no object of it."""
    torch.cuda.init()
    whole = lambda device: torch.cuda.current_stream(device).cuda_stream  # noqa: E731
    return getattr(torch._C, "_cuda_getCurrentRawStream", whole)


def current_stream(device, array_type=None):
    """Handle of the stream on which a library works on a CUDA device now.

    It is CuPy's for arrays of CuPy, else torch's, else CuPy's; 0, the default one, in a program with neither.
    """
    cupy = sys.modules.get("cupy")
    if cupy is not None and array_type is not None and array_type.__module__.partition(".")[0] == "cupy":
        return cupy.cuda.get_current_stream(device).ptr
    torch = torch_on_cuda()
    if torch is not None:
        return _stream_of_torch(torch)(device)
    return cupy.cuda.get_current_stream(device).ptr if cupy is not None else 0


def stream_handle(stream):
    """Handle of what a launch got as ``stream=``: of torch, of CuPy, or of any that has the CUDA stream protocol."""
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    for handle in (getattr(stream, "cuda_stream", None), getattr(stream, "ptr", None), stream):
        if hasattr(handle, "__index__"):
            return handle.__index__()
    raise TypeError(f"stream={stream!r}: it must be a stream of torch or CuPy, or the handle of one as an integer")


class Driver:
    """Makes the driver of the target when it is first asked for: the one that TRITON_TARGET names, else CUDA where
    there is a device, else the CPU."""

    def __init__(self):
        self._active = None  # what the program itself has set
        self._default = self._asked = None

    @property
    def active(self):
        return self.default if self._active is None else self._active

    @property
    def default(self):
        from .target import asked_target

        asked = asked_target()
        if self._default is None or self._asked != asked:
            self._default, self._asked = _make_driver(asked), asked
        return self._default

    def set_active(self, driver):
        self._active = driver

    def reset_active(self):
        self._active = None


def _make_driver(asked):
    if not (asked.startswith("cuda") if asked else _C.cuda_unavailable() is None):
        return CPUDriver()
    from .cuda import CUDADriver  # a program on the CPU has no need of it

    return CUDADriver()


driver = Driver()
