"""The device that kernels run on: ``triton.runtime.driver.active``."""

import os
import sys

from .. import _C
from .target import GPUTarget, asked_target


class CPUDriver:
    """The processor: kernels' programs run on a pool of threads."""

    def __init__(self):
        self.utils = CPUUtils()

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        import platform

        return GPUTarget("cpu", platform.machine(), 1)

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


class CUDADriver:
    """NVIDIA GPUs, through the CUDA driver; torch and CuPy share its contexts."""

    def __init__(self):
        self.utils = CUDAUtils()

    @staticmethod
    def is_active():
        return _C.cuda_unavailable() is None

    def get_current_target(self):
        properties = _C.cuda_device(self.get_current_device())
        return GPUTarget("cuda", properties["capability"], properties["warpSize"])

    def get_active_torch_device(self):
        import torch

        return torch.device("cuda", self.get_current_device())

    def get_current_device(self):
        if "torch" in sys.modules:
            import torch

            return torch.cuda.current_device()
        return _C.cuda_current_device()

    def set_current_device(self, device):
        import torch

        torch.cuda.set_device(device)

    def get_current_stream(self, device=None):
        return current_stream(self.get_current_device() if device is None else device)

    def get_device_capability(self, device=None):
        capability = _C.cuda_device(self.get_current_device() if device is None else device)["capability"]
        return divmod(capability, 10)

    def get_device_interface(self):
        import torch

        return torch.cuda

    def get_benchmarker(self):
        from ..testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self):
        """An array larger than the second-level cache, to be overwritten between measurements."""
        import torch

        size = max(256 << 20, 2 * _C.cuda_device(self.get_current_device())["l2_cache_size"])
        return torch.empty(size // 4, dtype=torch.int32, device="cuda")

    def clear_cache(self, cache):
        cache.zero_()


class CUDAUtils:
    """What host code asks of a device to decide how many programs to start."""

    def get_device_properties(self, device=0):
        return _C.cuda_device(device)


def current_stream(device):
    """Handle of the stream that torch, else CuPy, works on now on a CUDA device; 0, the default one, without them."""
    if "torch" in sys.modules:
        import torch

        if torch.cuda.is_available():
            return torch.cuda.current_stream(device).cuda_stream
    if "cupy" in sys.modules:
        import cupy

        return cupy.cuda.get_current_stream().ptr
    return 0


class Driver:
    """Makes the driver of the target when it is first asked for: the one that TRITON_TARGET names, else CUDA where
    there is a device, else the CPU."""

    def __init__(self):
        self._active = None

    @property
    def active(self):
        if self._active is None:
            asked = asked_target()
            on_cuda = asked.startswith("cuda") if asked else _C.cuda_unavailable() is None
            self._active = CUDADriver() if on_cuda else CPUDriver()
        return self._active

    default = active

    def set_active(self, driver):
        self._active = driver

    def reset_active(self):
        self._active = None


driver = Driver()
