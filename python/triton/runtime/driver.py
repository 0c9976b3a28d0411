"""The device that kernels run on: ``triton.runtime.driver.active``."""

import os
import sys

from .target import GPUTarget, selected_target


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


class Driver:
    """Makes the driver of the selected target when it is first asked for."""

    def __init__(self):
        self._active = None

    @property
    def active(self):
        if self._active is None:
            selected_target()
            self._active = CPUDriver()
        return self._active

    default = active

    def set_active(self, driver):
        self._active = driver

    def reset_active(self):
        self._active = None


driver = Driver()
