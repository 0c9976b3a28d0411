"""Graphs that torch.compile makes kernels of: time of a call and of compiling them, beside a peer and torch without it.

On a GPU the time of a call is the GPU's; how long the host takes for it, checks and all, is a row of its own.

The kernels are compiled by whichever `triton` is imported. To compare two, run this twice: first with the peer on
PYTHONPATH and --json FILE, then with ours and --peer FILE; on one machine, the one right after the other. Without a GPU
torch's kernels for the CPU are ours too, and the peer is what torch makes in C++ (--cpp).
"""

import json
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from statistics import median

import report

if __name__ == "__main__" and not os.path.exists("/dev/nvidiactl"):
    report.use_threads(len(os.sched_getaffinity(0)))

import torch
import torch.nn.functional as F
from gpu_worker import EventClock, HostClock

import triton

GOAL = 0.95  # of the peer's speed
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, INDICES, ELEMENTS = (4096, 16384, 1 << 24) if DEVICE == "cuda" else (256, 1024, 1 << 20)
GRAPHS = {}


def graph(*shapes, dtype=torch.float32, backward=False):
    """Decorator: a graph of arguments of these shapes (an integer stands for so many indices below 256)."""

    def register(function):
        GRAPHS[function.__name__.replace("_", " ")] = function, shapes, dtype, backward
        return function

    return register


@graph((ROWS, 4096), (4096,))
def bias_and_gelu(x, bias):
    return F.gelu(x + bias, approximate="tanh") * 0.5


@graph((ROWS, 4096), (ROWS, 4096), (ROWS, 1), dtype=torch.bfloat16)
def gated_products_of_bf16(x, y, scale):
    return F.silu(x) * y * scale + x


@graph((ROWS, 4096))
def softmax(x):
    return torch.softmax(x * 0.125, -1)


@graph((ROWS, 2048), (2048,), (2048,))
def layer_norm(x, weight, bias):
    return F.layer_norm(x, (2048,), weight, bias)


@graph((ROWS, 2048), (2048,), (2048,), backward=True)
def layer_norm_and_gradients(x, weight, bias):
    return F.layer_norm(x, (2048,), weight, bias)


@graph((ROWS, 4096), (4096,), dtype=torch.bfloat16)
def rms_norm_of_bf16(x, weight):
    return F.rms_norm(x, (4096,), weight) * 2


@graph((ROWS, 16384), ROWS)
def cross_entropy(x, classes):
    return F.cross_entropy(x, classes)


@graph((INDICES, 1024))
def sums_of_columns(x):
    return x.sum(0), (x * x).mean(0)


@graph((ELEMENTS,))
def sum_of_all(x):
    return x.abs().sum(), x.amax()


@graph((ROWS, 2048))
def cumulative_sum(x):
    return x.cumsum(-1)


@graph((32, 64, 56, 56), (64,), (64,))
def batch_norm_and_relu(x, weight, bias):
    return F.relu(F.batch_norm(x, None, None, weight, bias, training=True))


@graph((256, 1024), INDICES)
def embedding(table, indices):
    return F.embedding(indices, table) * 32 + 1


@graph((256, 512), (INDICES, 512), INDICES)
def scattered_sums(into, x, indices):
    return into.index_add(0, indices, x)


@graph((ROWS, ROWS), (ROWS, ROWS))
def transpose_and_add(x, y):
    return x.t() + y


@graph(*[(ELEMENTS // 4,)] * 4)
def step_of_adam(parameter, gradient, mean, square):
    mean = torch.lerp(mean, gradient, 0.1)
    square = square * 0.999 + gradient * gradient * 0.001
    return parameter - 1e-3 * mean / (square.abs().sqrt() + 1e-8), mean, square


@graph((ROWS // 16, 1024, 128), (1024, 64), (1024, 64))
def rotary_embedding(x, cosines, sines):
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosines - second * sines, first * sines + second * cosines], -1)


@graph((ROWS, 8192), dtype=torch.bfloat16)
def gated_halves_of_bf16(x):
    gate, value = x.chunk(2, -1)
    return F.silu(gate) * value


@graph((32, 256, 28, 28), (256,), (256,), dtype=torch.bfloat16)
def group_norm_of_bf16(x, weight, bias):
    return F.silu(F.group_norm(x, 32, weight, bias))


@graph((16, 64, 112, 112))
def largest_of_windows(x):
    return F.max_pool2d(x, 3, 2, 1)


@graph((16, 64, 56, 56))
def bilinear_resizing(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear")


@graph((ROWS, 4096))
def places_of_largest(x):
    return x.argmax(-1), x.var(-1)


@graph((ROWS, 4096), dtype=torch.bfloat16)
def quantised_rows_of_bf16(x):
    scale = x.abs().amax(-1, keepdim=True).float() / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def arguments(shapes, dtype, backward):
    torch.manual_seed(0)

    def argument(shape):
        if isinstance(shape, int):
            return torch.randint(0, 256, (shape,), device=DEVICE)
        return torch.randn(shape, device=DEVICE, dtype=dtype).requires_grad_(backward)

    return [argument(shape) for shape in shapes]


def with_gradients(function):
    def both(*values):
        result = function(*values)
        return result, *torch.autograd.grad(result.sum(), values)

    return both


@contextmanager
def timed_precompilation():
    """Collects kernels and the seconds that torch waits for the compilation and loading of each."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    made, precompile = [], CachingAutotuner.precompile

    def timed(*args, **kwargs):
        start = time.perf_counter()
        try:
            return precompile(*args, **kwargs)
        finally:
            made.append((args[0], time.perf_counter() - start))

    CachingAutotuner.precompile = timed
    try:
        yield made
    finally:
        CachingAutotuner.precompile = precompile


def chosen(kernels):
    """["XBLOCK 1024, 4 warps", ...]: with what torch launches each of the kernels, of what it has tried."""
    configs = [kernel.launchers[0].config for kernel in kernels if kernel.launchers]
    return [", ".join([*(f"{k} {v}" for k, v in c.kwargs.items()), f"{c.num_warps} warps"]) for c in configs]


def compile_anew(function, values, backend="triton"):
    """The compiled function, the milliseconds to its first result, those of its kernels, and their configurations."""
    from torch._inductor import async_compile, codecache

    torch._dynamo.reset()
    codecache.PyCodeCache.cache_clear()
    async_compile.CompiledTritonKernels.cache_clear()
    settings = {"cpu_backend": backend, "compile_threads": 1, "fx_graph_cache": False, "force_disable_caches": True}
    with (
        tempfile.TemporaryDirectory() as folder,
        torch._inductor.config.patch(settings),
        timed_precompilation() as kernels,
    ):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ.pop("TRITON_CACHE_DIR", None)
        compiled = torch.compile(function)
        start = time.perf_counter()
        compiled(*values)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        elapsed = time.perf_counter() - start
        made = dict(kernels)  # some are looked at twice
        return compiled, elapsed * 1e3, sum(seconds for _, seconds in kernels) * 1e3, chosen(made)


def peer_values(path):
    """{case: what was `ours` in a run of the peer}."""
    if not path:
        return {}
    with open(path) as file:
        return {row["case"]: row["ours"] for row in json.load(file)["rows"]}


def on_host(clock, function):
    """Seconds that the host takes for a call."""

    def measured(count):
        clock.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            function()
        return (time.perf_counter() - start) / count

    return min(measured(10) for _ in range(5))


def sampled(clock, functions):
    """Microseconds a call of each of {name: function}, taken in turns, and of its host."""
    samples, hosts = {name: [] for name in functions}, {name: on_host(clock, functions[name]) for name in functions}
    for _ in range(5):
        for name, function in functions.items():
            function()
            clock.synchronize()
            samples[name] += clock.sample(function, 20, lead=2 * hosts[name])
    times = {name: median(values) * 1e3 for name, values in samples.items()}
    return times, {name: seconds * 1e6 for name, seconds in hosts.items()}


def run(results, name, peer, clock):
    function, shapes, dtype, backward = GRAPHS[name]
    values = arguments(shapes, dtype, backward)
    function = with_gradients(function) if backward else function
    others = {"cpp": compile_anew(function, values, "cpp")} if results.options.cpp else {}
    ours = compile_anew(function, values)
    functions = {"ours": ours[0], **{other: made[0] for other, made in others.items()}, "eager": function}
    times, hosts = sampled(clock, {who: lambda made=made: made(*values) for who, made in functions.items()})
    add(results, peer, name, "µs", times.pop("ours"), times, GOAL, chosen=ours[3])
    if DEVICE == "cuda":
        add(results, peer, f"host, {name}", "µs", hosts.pop("ours"), hosts)
    add(results, peer, f"compile, {name}", "ms", ours[1], {other: made[1] for other, made in others.items()})
    add(results, peer, f"kernels, {name}", "ms", ours[2], {})


def add(results, peer, case, unit, value, others, goal=None, **more):
    found = {"peer": peer[case]} if case in peer else {}
    results.add(case, unit, value, found | others, goal if found else None, **more)


def main():
    flags = [
        ("--peer", {"metavar": "FILE", "help": "the JSON of a run with the peer"}),
        ("--cpp", {"action": "store_true", "help": "on the CPU: how long torch's C++ takes to compile, too"}),
    ]
    results = report.Report("Graphs compiled by torch", arguments=flags)
    results.versions |= {"triton": f"{triton.__version__} ({triton.__file__})", "torch": torch.__version__}
    if DEVICE == "cuda":
        results.machine["gpu"] = torch.cuda.get_device_name()
    clock = EventClock() if DEVICE == "cuda" else HostClock()
    peer = peer_values(results.options.peer)
    compile_anew(lambda x: x.sin() + 1, [torch.ones(64, device=DEVICE)])  # what is imported and made only once
    for name in filter(results.wants, GRAPHS):
        try:
            run(results, name, peer, clock)
        except Exception as error:  # the other rows are worth having
            results.failed = True
            print(f"  {name}: {type(error).__name__}: {error}", file=sys.stderr)
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
