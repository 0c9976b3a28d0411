"""One of the processes that gpu.py compares: whose `triton` it imports is for its PYTHONPATH to say.

It reads commands as JSON, a line each, from standard input, and answers likewise. With --compile it instead times the
compilation of each kernel, in a process that has compiled nothing, and ends.

Without a GPU the kernels run on the CPU: that shows that the benchmark works, and nothing else.
"""

import json
import os
import statistics
import sys
import time
import traceback

import torch

START = time.perf_counter()
import triton  # noqa: E402

IMPORT_MILLISECONDS = (time.perf_counter() - START) * 1e3
import gpu_kernels  # noqa: E402

from triton.compiler.errors import CompilationError  # noqa: E402
from triton.runtime.errors import OutOfResources  # noqa: E402

CLEARED_BYTES = 256 << 20  # more than the second-level cache holds


class HostClock:
    """Times calls that have ended when they return."""

    @staticmethod
    def sample(function, count, lead=0):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            function()
            times.append((time.perf_counter() - start) * 1e3)
        return times

    @staticmethod
    def synchronize():
        pass


class EventClock:
    """Times between events on the GPU, the cache overwritten before each call, which hides what a launch costs.

    A call that keeps the host busy for longer than that (50 µs) takes a `lead`: seconds for which the GPU waits before.
    """

    CYCLES = 2e9  # of the GPU in a second, about

    def __init__(self):
        self.cache = torch.empty(CLEARED_BYTES // 4, dtype=torch.int32, device="cuda")

    def sample(self, function, count, lead=0):
        starts, ends = ([torch.cuda.Event(enable_timing=True) for _ in range(count)] for _ in range(2))
        for start, end in zip(starts, ends, strict=True):
            if lead:
                torch.cuda._sleep(int(lead * self.CYCLES))
            self.cache.zero_()
            start.record()
            function()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]

    synchronize = staticmethod(torch.cuda.synchronize)


class Worker:
    """Answers commands: each method named do_... returns what can be written as JSON."""

    def __init__(self):
        self.clock = EventClock() if torch.cuda.is_available() else HostClock()
        self.case = self.best = self.launches = None

    def do_hello(self):
        return {
            "version": getattr(triton, "__version__", "unknown"),
            "file": triton.__file__,
            "torch": torch.__version__,
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "cases": list(gpu_kernels.CASES),
        }

    def do_prepare(self, case):
        """Make the case's arguments, verify each configuration, and keep the fastest one.

        One that this compiler does not take, for its size or for lack of shared memory, is left out: the answer has it.
        """
        self.case = None  # so that two cases never fill the memory at once
        torch.manual_seed(0)
        self.case = gpu_kernels.CASES[case]()
        medians, refused = {}, {}
        for label, launch in self.case.configs.items():
            try:
                launch()
            except (OutOfResources, CompilationError) as error:
                refused[label] = str(getattr(error, "message", error)).strip().split("\n")[-1]
                continue
            self.case.verify()
            self.clock.sample(launch, 3)
            medians[label] = statistics.median(self.clock.sample(launch, 15))
        if not medians:
            raise RuntimeError(f"no configuration compiles: {refused}")
        label = min(medians, key=medians.get)
        self.best = self.case.configs[label]
        answer = {"config": label, "configs": medians, "refused": refused}
        return answer | {"bytes": self.case.bytes, "estimate": medians[label]}

    def do_sample(self, count, reference=False):
        """Milliseconds of so many calls of the best configuration, or of torch."""
        function = self.case.reference if reference else self.best
        self.clock.sample(function, 2)
        return self.clock.sample(function, count)

    def do_launch(self, name, count):
        """Microseconds that the host is busy with a launch, in the mean over `count`."""
        self.launches = self.launches or gpu_kernels.launches()
        call = self.launches[name]
        for _ in range(20):
            call()
        self.clock.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        elapsed = time.perf_counter() - start
        self.clock.synchronize()
        return elapsed / count * 1e6

    def answer(self, command):
        name = command.pop("do")
        try:
            return {"ok": getattr(self, f"do_{name}")(**command)}
        except Exception as error:
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"[:500]}


def serve(answers):
    worker = Worker()
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


def compile_times():
    """Milliseconds from the call to the first result, for each kernel; the first one meets a compiler that sleeps."""
    synchronize = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    torch.ones(1, device=gpu_kernels.DEVICE)
    synchronize()
    first = gpu_kernels.launches()["5 arguments"]

    def measure(launch):
        start = time.perf_counter()
        launch()
        synchronize()
        return (time.perf_counter() - start) * 1e3

    times = {"import": IMPORT_MILLISECONDS, "first kernel": measure(first)}
    for name, case in gpu_kernels.COMPILED.items():
        launch = next(iter(gpu_kernels.CASES[case]().configs.values()))
        synchronize()
        times[name] = measure(launch)
    return times


if __name__ == "__main__":
    # What anybody prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if "--compile" in sys.argv:
        print(json.dumps(compile_times()), file=answers, flush=True)
    else:
        serve(answers)
