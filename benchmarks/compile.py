"""From the call to the first result: milliseconds to compile a kernel, by phase; and those of `import triton`.

Each sample is a new process with an empty cache folder, where nothing helps; "warm" is what the next process with that
folder takes, its first launch of another kernel over: that one reads the compiler's own files, too.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import report

GOALS = {"vector_add": 15, "softmax": 30, "matmul": 80, "layer_norm": None, "attention": None}
IMPORT_GOAL = 40
IMPORT = "import time; start = time.perf_counter(); import {}; print((time.perf_counter() - start) * 1e3)"


def child(case):
    """Runs in the fresh process: prints the whole time and that of each phase."""
    import kernels

    if case != "vector_add":
        kernel, grid, arguments, options = kernels.CASES["vector_add"]()
        kernel[grid](*arguments, **options)
    kernel, grid, arguments, options = kernels.CASES[case]()
    start = time.perf_counter()
    kernel[grid](*arguments, **options)
    total = (time.perf_counter() - start) * 1e3
    compiled = kernel.warmup(*arguments, **options, grid=grid)
    print(json.dumps([total, compiled.timings]))


def fresh(*command, times=1):
    """What so many processes, one after the other with one cache folder, print."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TRITON_CACHE_DIR": cache}
        return [
            subprocess.run(
                [sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True, env=environment
            ).stdout
            for _ in range(times)
        ]


def compile_times(case, repeat):
    """Of the first process, with its phases, and of the second."""
    samples = [list(map(json.loads, fresh(__file__, "--child", case, times=2))) for _ in range(repeat)]
    totals, phases = zip(*(first for first, _ in samples), strict=True)
    total = statistics.median(totals)
    parts = {name: statistics.median(sample[name] for sample in phases) for name in phases[0]}
    parts["other"] = total - sum(parts.values())
    return total, parts, statistics.median(second[0] for _, second in samples)


def import_time(module, repeat):
    return statistics.median(float(fresh("-c", IMPORT.format(module))[0]) for _ in range(repeat))


def main():
    results = report.Report(
        "Compile (ms from the call to the first result)",
        arguments=[("--repeat", {"type": int, "default": 7, "help": "processes for each figure (7)"})],
    )
    repeat = results.options.repeat
    for case, goal in GOALS.items():
        if results.wants(case):
            total, parts, warm = compile_times(case, repeat)
            results.add(case, "ms", total, goal=goal, parts=parts, beside={"warm": warm})
    if results.wants("import"):
        peers = {"import numpy": import_time("numpy", repeat)}
        results.add(
            "import triton, triton.language",
            "ms",
            import_time("triton, triton.language", repeat),
            peers,
            goal=IMPORT_GOAL,
        )
    results.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main()
