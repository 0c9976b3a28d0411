"""NVIDIA GPUs as the device that kernels run on. torch is used where the program uses it, and nothing needs it."""

from contextlib import contextmanager

from .. import _C
from .driver import current_stream, torch_on_cuda
from .driver_base import GPUDriver
from .target import GPUTarget


class CUDADriver(GPUDriver):
    """The GPUs that the CUDA driver knows; torch and CuPy share its contexts."""

    def __init__(self):
        self.utils = CUDAUtils()

    @staticmethod
    def is_active():
        """Also in a process that another one, which uses CUDA, has forked: it can compile for the devices, no more."""
        return _C.cuda_unavailable() is None or _C.cuda_is_lost_in_fork()

    def get_current_target(self):
        properties = _C.cuda_device(self.get_current_device())
        return GPUTarget("cuda", properties["capability"], properties["warpSize"])

    def get_active_torch_device(self):
        import torch

        return torch.device("cuda", self.get_current_device())

    def get_current_device(self):
        torch = torch_on_cuda()
        return torch.cuda.current_device() if torch else _C.cuda_current_device()

    def set_current_device(self, device):
        """Make a device the current one of this thread, for the array libraries too."""
        import sys

        torch = torch_on_cuda()
        if torch:
            torch.cuda.set_device(device)
        elif "cupy" in sys.modules:
            sys.modules["cupy"].cuda.Device(device).use()
        else:
            _C.cuda_set_current_device(device)

    def get_current_stream(self, device=None):
        return current_stream(self.get_current_device() if device is None else device)

    def get_device_capability(self, device=None):
        capability = _C.cuda_device(self.get_current_device() if device is None else device)["capability"]
        return divmod(capability, 10)

    def get_device_interface(self):
        """`torch.cuda`, or the part of it that benchmarks use."""
        torch = torch_on_cuda()
        return torch.cuda if torch else CUDAInterface

    def get_benchmarker(self):
        from ..testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self):
        """An array larger than the second-level cache, to be overwritten between measurements."""
        device = self.get_current_device()
        size = max(256 << 20, 2 * _C.cuda_device(device)["l2_cache_size"])
        torch = torch_on_cuda()
        return torch.empty(size // 4, dtype=torch.int32, device="cuda") if torch else Memory(device, size)

    def clear_cache(self, cache):
        cache.zero_()


class CUDAUtils:
    """What host code asks of a device to decide how many programs to start."""

    def get_device_properties(self, device=0):
        return _C.cuda_device(device)


class Memory:
    """Bytes on a device that can be cleared, on the stream that is current then."""

    def __init__(self, device, size):
        self.device = device
        self._memory = _C.cuda_allocate(device, size)

    def zero_(self):
        _C.cuda_clear(self._memory, current_stream(self.device))


class CUDAInterface:
    """The part of `torch.cuda` that benchmarks use, for programs without torch."""

    class Event:
        """A point in the work of a stream of the device that was current when the event was made."""

        def __init__(self, enable_timing=False):
            self.device = _C.cuda_current_device()
            self._event = _C.cuda_new_event(self.device)

        def record(self, stream=None):
            from .driver import stream_handle

            handle = current_stream(self.device) if stream is None else stream_handle(stream)
            _C.cuda_record(self._event, handle)

        def elapsed_time(self, end):
            """Milliseconds from this event to `end`, which is waited for."""
            return _C.cuda_milliseconds(self._event, end._event)

        def synchronize(self):
            _C.cuda_milliseconds(self._event, self._event)

    @staticmethod
    def synchronize(device=None):
        _C.cuda_synchronize(_C.cuda_current_device() if device is None else device)

    @staticmethod
    def current_device():
        return _C.cuda_current_device()

    @staticmethod
    def set_device(device):
        from .driver import driver

        driver.active.set_current_device(device)

    @staticmethod
    def device_count():
        return _C.cuda_device_count()

    @staticmethod
    def is_available():
        return _C.cuda_unavailable() is None


@contextmanager
def current_device(device):
    """Make a device the current one for a while; None leaves it as it is."""
    from .driver import driver

    before = driver.active.get_current_device()
    if device in (None, before):
        yield
        return
    driver.active.set_current_device(device)
    try:
        yield
    finally:
        driver.active.set_current_device(before)


# ---- graphs


@contextmanager
def side_stream():
    """Work on a stream other than the default one, which cannot be captured."""
    torch = torch_on_cuda()
    stream = torch.cuda.stream(torch.cuda.Stream()) if torch else _cupy().cuda.Stream(non_blocking=True)
    with stream:
        yield


def capture(work):
    """Record what `work()` enqueues as a CUDA graph, and return the function that enqueues it all again."""
    torch = torch_on_cuda()
    if torch:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay
    stream = _cupy().cuda.get_current_stream()
    stream.begin_capture()
    try:
        work()
    finally:
        graph = stream.end_capture()
    return lambda: graph.launch(stream)


def _cupy():
    try:
        import cupy
    except ImportError:
        raise ImportError("CUDA graphs are captured by torch or CuPy: install one of them") from None
    return cupy
