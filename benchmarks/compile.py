"""From the call to the first result: milliseconds to compile a kernel, by phase; and those of `import triton`.

No cache helps: each sample is a new process with an empty cache folder.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import report

GOALS = {"vector_add": 15, "softmax": 30, "matmul": 80, "layer_norm": None}
IMPORT_GOAL = 40
IMPORT = "import time; start = time.perf_counter(); import {}; print((time.perf_counter() - start) * 1e3)"


def child(case):
    """Runs in the fresh process: prints the whole time and that of each phase."""
    import kernels

    kernel, grid, arguments, options = kernels.CASES[case]()
    start = time.perf_counter()
    kernel[grid](*arguments, **options)
    total = (time.perf_counter() - start) * 1e3
    compiled = kernel.warmup(*arguments, **options, grid=grid)
    print(json.dumps([total, compiled.timings]))


def fresh(*command):
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TRITON_CACHE_DIR": cache}
        return subprocess.run(
            [sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True, env=environment
        ).stdout


def compile_times(case, repeat):
    samples = [json.loads(fresh(__file__, "--child", case)) for _ in range(repeat)]
    totals, phases = zip(*samples, strict=True)
    total = statistics.median(totals)
    parts = {name: statistics.median(sample[name] for sample in phases) for name in phases[0]}
    parts["other"] = total - sum(parts.values())
    return total, parts


def import_time(module, repeat):
    return statistics.median(float(fresh("-c", IMPORT.format(module))) for _ in range(repeat))


def main():
    results = report.Report(
        "Compile (ms from the call to the first result)",
        arguments=[("--repeat", {"type": int, "default": 7, "help": "processes for each figure (7)"})],
    )
    repeat = results.options.repeat
    for case, goal in GOALS.items():
        if results.wants(case):
            total, parts = compile_times(case, repeat)
            results.add(case, "ms", total, goal=goal, parts=parts)
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
