"""Timing kernels, comparing providers over a range of sizes, and comparing results."""

from __future__ import annotations

from contextlib import contextmanager

from .reports import Benchmark as Benchmark
from .reports import Mark as Mark
from .reports import perf_report as perf_report
from .runtime.timing import EventClock, GraphClock, HostClock, measure, measure_in_graph, median, quantile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Literal

    Mode = Literal["mean", "median", "min", "max", "all"]


def _mean(times):
    return sum(times) / len(times)


_MODES = {"mean": _mean, "median": median, "min": min, "max": max, "all": list}


def _summarize_statistics(times, quantiles, return_mode):
    if quantiles is not None:
        ordered = sorted(times)
        results = [quantile(ordered, fraction) for fraction in quantiles]
        return results[0] if len(results) == 1 else results
    return _MODES[return_mode](times)


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: Mode = "mean",
    *,
    n_warmup: int | None = None,
    n_repeat: int | None = None,
) -> Any:
    """Milliseconds that a call of `fn` takes.

    On a GPU it is the time between two events on the current stream, and the second-level cache is overwritten before
    each call; on the CPU the time that passes during the call.

    :param warmup: milliseconds to call it before anything is measured.
    :param rep: milliseconds to measure for, each call by itself.
    :param grad_to_none: tensors whose gradient is dropped before each call, so that none accumulates.
    :param quantiles: fractions; the result is the list of these quantiles (one number if there is one).
    :param return_mode: without quantiles: "mean", "min", "max", "median", or "all" for the list of all times.
    :param n_warmup: how many calls, in place of `warmup`; the first one, which compiles, is not counted.
    :param n_repeat: how many calls, in place of `rep`.
    """
    bench = benchmarker(_backend())
    return bench(fn, warmup, rep, grad_to_none, quantiles, return_mode, n_warmup=n_warmup, n_repeat=n_repeat)


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: Mode = "mean",
) -> Any:
    """Milliseconds that `fn` takes in a CUDA graph of many calls, so that launches cost next to nothing.

    Caches stay warm. It is `do_bench` on targets that have no graphs.

    :param rep: milliseconds that a replay of the graph is to take.
    """
    _check_not_captured()
    return benchmarker(_backend(), graph=True)(fn, rep, rep, grad_to_none, quantiles, return_mode)


def _check_not_captured():
    """A graph cannot be captured within another one."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "do_bench_cudagraph() while a CUDA graph is captured, which it would capture another one in. Warm up "
            "autotuned kernels before: launch them once with such arguments"
        )


def do_bench_proton(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """`do_bench`, by the name of the one that asks a profiler: times come from the driver's events."""
    return do_bench(fn, warmup, rep, grad_to_none, quantiles, return_mode)


def do_bench_cudagraph_proton(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """`do_bench_cudagraph`, by the name of the one that asks a profiler."""
    return do_bench_cudagraph(fn, rep, grad_to_none, quantiles, return_mode)


@contextmanager
def cuda_graph_without_gc(*args, **kwargs):
    """``torch.cuda.graph`` of the arguments, in which Python does not collect garbage: an object that frees what it has
    on the device would end the capture."""
    import gc

    import torch

    was_on = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(*args, **kwargs) as graph:
            yield graph
    finally:
        if was_on:
            gc.enable()


def _backend():
    from .runtime import driver

    return driver.active.get_current_target().backend


def benchmarker(backend: str, graph: bool = False) -> Callable[..., Any]:
    """The function with the parameters of `do_bench` that times on a backend ("cpu", "cuda")."""

    def bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean", **counts):
        if return_mode not in _MODES:
            raise ValueError(f"return_mode={return_mode!r} is none of {', '.join(_MODES)}")

        def prepare():
            for tensor in grad_to_none or ():
                tensor.grad = None

        if backend == "cuda" and graph:
            from .runtime.cuda import side_stream

            with side_stream():
                times = measure_in_graph(GraphClock(fn, prepare, length=rep))
        else:
            times = measure((EventClock if backend == "cuda" else HostClock)(fn, prepare), warmup, rep, **counts)
        return _summarize_statistics(times, quantiles, return_mode)

    return bench


def assert_close(
    x: Any,
    y: Any,
    atol: float | Callable[[Any], float] | None = None,
    rtol: float | Callable[[Any], float] | None = None,
    err_msg: str = "",
) -> None:
    """Raise an AssertionError unless two arrays or numbers agree.

    :param x: what was computed: NumPy array, torch tensor or number.
    :param y: what is expected.
    :param atol: allowed absolute difference (1e-2), or a function of the dtype of `x`.
    :param rtol: allowed difference relative to `y` (0), or a function of the dtype of `x`.
    """
    import numpy

    dtype = getattr(x, "dtype", None)
    atol = atol(dtype) if callable(atol) else 1e-2 if atol is None else atol
    rtol = rtol(dtype) if callable(rtol) else 0.0 if rtol is None else rtol
    x, y = _as_numpy(x), _as_numpy(y)
    if x.size > 1 or y.size > 1:
        numpy.testing.assert_allclose(x, y, atol=atol, rtol=rtol, err_msg=err_msg, equal_nan=True)
    elif not numpy.allclose(x, y, atol=atol, rtol=rtol, equal_nan=True):
        raise AssertionError(f"{err_msg} {x} is not close to {y} (atol={atol}, rtol={rtol})".strip())


def _as_numpy(value):
    """As a NumPy array of a type that NumPy computes with."""
    import numpy

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16" or "float8" in str(value.dtype):
            value = value.float()
        value = value.resolve_conj().resolve_neg().numpy()
    return numpy.asarray(value)


# ---- what a GPU could do at most


def _gpu(device):
    from .runtime.driver import driver

    device = driver.active.get_current_device() if device is None else device
    properties = driver.active.utils.get_device_properties(device)
    if "capability" not in properties:
        raise ValueError("the limits of a GPU were asked for, and the active driver is the CPU's")
    return properties


def _run_nvsmi(*arguments):
    import subprocess

    try:
        done = subprocess.run(["nvidia-smi", "-i", "0", *arguments], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise RuntimeError("nvidia-smi was not found: it comes with the driver of NVIDIA GPUs") from None
    return done.stdout


def nvsmi(attributes: Sequence[str]) -> list[int]:
    """What `nvidia-smi` says of the first GPU, as whole numbers: ``["clocks.max.sm"]`` gives ``[1980]`` (MHz)."""
    text = _run_nvsmi(f"--query-gpu={','.join(attributes)}", "--format=csv,noheader,nounits")
    return [int(float(number)) for number in text.split(",")]


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Iterator[tuple[float, float]]:
    """Keep the first GPU at these clocks (MHz) for a while, which takes an administrator; gives what it can do then:
    10¹² operations a second of its tensor cores in 16 bits, and gigabytes a second of its memory."""
    try:
        _run_nvsmi("-pm", "1")
        _run_nvsmi(f"--lock-gpu-clocks={ref_sm_clock},{ref_sm_clock}")
        _run_nvsmi(f"--lock-memory-clocks={ref_mem_clock},{ref_mem_clock}")
        for name, wanted in (("sm", ref_sm_clock), ("memory", ref_mem_clock)):
            (clock,) = nvsmi([f"clocks.current.{name}"])
            if abs(clock - wanted) >= 10:
                raise RuntimeError(f"the {name} clock is {clock} MHz, and not {wanted}")
        bandwidth = 2 * ref_mem_clock * _gpu(0)["mem_bus_width"] / 8e3
        yield get_max_tensorcore_tflops("float16", ref_sm_clock * 1000, 0), bandwidth
    finally:
        for option in ("-pm=0", "-rgc", "-rmc"):
            _run_nvsmi(*option.split("="))


def get_dram_gbps(device: int | None = None) -> float:
    """Gigabytes a second between a GPU and its memory: two transfers a clock over the whole bus."""
    properties = _gpu(device)
    return 2 * properties["mem_clock_rate"] * properties["mem_bus_width"] / 8e6


def _tflops(dtype, a_clock, clock_rate, device):
    """`a_clock` maps names of dtypes to operations that a quarter of a multiprocessor does in a clock."""
    name = str(getattr(dtype, "name", dtype)).split(".")[-1].replace("fp", "float").replace("bf16", "bfloat16")
    if name not in a_clock:
        raise ValueError(f"dtype {dtype!r} is none of {', '.join(a_clock)}")
    properties = _gpu(device)
    clock = properties["sm_clock_rate"] if clock_rate is None else clock_rate
    return 4 * properties["multiprocessor_count"] * clock * a_clock[name] * 1e-9


def get_max_simd_tflops(dtype: Any, clock_rate: float | None = None, device: int | None = None) -> float:
    """10¹² operations a second of a GPU's ordinary arithmetic, where a multiplication with an addition is two.

    :param dtype: float32, float16 or bfloat16, of the language or of torch, or its name.
    :param clock_rate: in kHz; by default the highest of the device.
    """
    wide = 64 if _gpu(device)["capability"] not in (75, 80) else 32
    return _tflops(dtype, {"float32": wide, "float16": 128, "bfloat16": 128}, clock_rate, device)


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float | None = None, device: int | None = None) -> float:
    """The same of its tensor cores; float32 is computed as tf32."""
    capability = _gpu(device)["capability"]
    half = 256 if capability < 80 else 1024 if capability in (90, 100) else 512
    rates = {"float32": half // 2, "float16": half, "bfloat16": half}
    rates |= dict.fromkeys(("int8", "float8_e4m3fn", "float8_e5m2", "float8e4nv", "float8e5"), 2 * half)
    return _tflops(dtype, rates, clock_rate, device)
