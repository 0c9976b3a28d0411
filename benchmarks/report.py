"""What the benchmarks share: fair timing side by side, the table they print, and the JSON they write.

A row is {case, unit, ours, peers: {name: value}, ratio}: smaller values are better in every unit used
here, and ratio is the first peer's value over ours, so more than 1 means that ours is faster. A row may also
hold `goal` (the ratio aimed at, or the value where there is no peer), `parts` (what `ours` consists of), `beside` (what
else was measured, in the same unit), and `rates` ({contender: GB/s}, where larger is better).
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import statistics
import sys
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def use_threads(count):
    """Gives everybody `count` threads. To be called before NumPy, torch or triton is imported.

    OpenMP threads are bound to cores: a scheduler that puts two on one core makes the peer five times slower.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TRITON_CPU_THREADS"):
        os.environ[name] = str(count)
    os.environ.setdefault("OMP_PROC_BIND", "true")
    os.environ.setdefault("TRITON_BACKGROUND", "0")  # nobody is to compile while something is timed
    os.environ.setdefault("OMP_PLACES", "cores")
    # NumPy's threads would spin for a tenth of a second after a call, on the cores that the next contender needs.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")  # 2^20 cycles


def tutorial(name):
    """A tutorial as a module: its kernels and wrappers, without its prints."""
    sys.path.insert(0, str(ROOT / "tutorials"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def measure(contenders, rounds=15, sample=0.02):
    """Median seconds a call of each of {name: function}, taken in turns, so that all meet the same machine.

    A sample is as many calls as take about `sample` seconds. A pause before it lets the other contenders' threads
    stop spinning, and half as many calls that do not count warm caches and threads.
    """
    calls = {}
    for name, function in contenders.items():
        function()
        start = time.perf_counter()
        function()
        calls[name] = max(1, round(sample / (time.perf_counter() - start)))
    samples = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, function in contenders.items():
            time.sleep(0.005)
            for _ in range(calls[name] // 2 + 1):
                function()
            start = time.perf_counter()
            for _ in range(calls[name]):
                function()
            samples[name].append((time.perf_counter() - start) / calls[name])
    return {name: statistics.median(values) for name, values in samples.items()}


class Report:
    """Collects rows, prints each as it comes, and writes them all at the end."""

    def __init__(self, title, argv=None, arguments=()):
        parser = argparse.ArgumentParser(description=title)
        parser.add_argument("--json", metavar="FILE", help="also write the rows there")
        parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose name contains TEXT")
        for flag, options in arguments:
            parser.add_argument(flag, **options)
        self.options = parser.parse_args(argv)
        self.title = title
        self.rows = []
        self.failed = False
        self.machine, self.versions = {}, {}  # more of them than this process knows by itself

    def wants(self, case):
        return self.options.only in case

    def add(self, case, unit, ours, peers=None, goal=None, **more):
        peers = peers or {}
        first = next(iter(peers.values()), None)
        row = {"case": case, "unit": unit, "ours": ours, "peers": peers, "ratio": first and first / ours}
        row |= {"goal": goal} if goal else {}
        self.rows.append(row | more)
        print(f"  {case}: {figure(ours)} {unit}", file=sys.stderr, flush=True)

    def compare(self, case, unit, contenders, goal=None, **more):
        """Times {"ours": ..., peer: ...} and adds the row. `unit` is ms or µs."""
        scale = {"ms": 1e3, "µs": 1e6}[unit]
        times = {name: seconds * scale for name, seconds in measure(contenders).items()}
        self.add(case, unit, times.pop("ours"), times, goal, **more)

    def finish(self):
        peers = list(dict.fromkeys(name for row in self.rows for name in row["peers"]))
        has_goals = any("goal" in row for row in self.rows)
        parts = list(dict.fromkeys(name for row in self.rows for name in row.get("parts", ())))
        beside = list(dict.fromkeys(name for row in self.rows for name in row.get("beside", ())))
        rates = list(dict.fromkeys(name for row in self.rows for name in row.get("rates", ())))
        head = [
            "case",
            "unit",
            "ours",
            *parts,
            *beside,
            *peers,
            *(["ratio"] if peers else []),
            *(["goal"] if has_goals else []),
            *(f"{name} GB/s" for name in rates),
        ]
        body = []
        for row in self.rows:
            cells = [row["case"], row["unit"], figure(row["ours"])]
            cells += [figure(row.get("parts", {}).get(name)) for name in parts]
            cells += [figure(row.get("beside", {}).get(name)) for name in beside]
            cells += [figure(row["peers"].get(name)) for name in peers]
            cells += [figure(row["ratio"])] if peers else []
            cells += [figure(row.get("goal"))] if has_goals else []
            cells += [figure(row.get("rates", {}).get(name)) for name in rates]
            body.append(cells)
        print_table(self.title, head, body)
        if self.options.json:
            self.write(self.options.json)

    def write(self, path):
        text = json.dumps(
            {
                "benchmark": self.title,
                "date": datetime.date.today().isoformat(),
                "threads": int(os.environ["OMP_NUM_THREADS"]) if "OMP_NUM_THREADS" in os.environ else None,
                "real_time": os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR),
                "machine": machine() | self.machine,
                "versions": versions() | self.versions,
                "rows": self.rows,
            },
            indent=2,
            ensure_ascii=False,
        )
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text + "\n")


def figure(value):
    """Three significant digits; a dash for what was not measured."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def print_table(title, head, body):
    """Prints with rich where it is installed, and as plain columns where it is not."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        print(title)
        for row in [head, ["-" * width for width in widths], *body]:
            cells = enumerate(zip(row, widths, strict=True))
            print("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in cells))
        return
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(head):
        table.add_column(name, justify="left" if i < 2 else "right", no_wrap=True)
    for row in body:
        table.add_row(*row)
    # Piped into a file, a table must not be cut at 80 columns.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)


def machine():
    """What decides the figures; not the machine's name, which is nobody's business."""
    info = {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
    }
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return info
    entries = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    family, model = entries.get("cpu family", "?"), entries.get("model", "?")
    info["cpu"] = f"{entries.get('model name', info['cpu'])} (family {family}, model {model})"
    interesting = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
    flags = set(entries.get("flags", "").split())
    info["features"] = [flag for flag in interesting if flag in flags]
    return info


def versions():
    names = {"triton": "tritonc", "numpy": "numpy", "torch": "torch"}
    found = {"python": platform.python_version()}
    for name, distribution in names.items():
        module = sys.modules.get(name)
        try:
            found[name] = getattr(module, "__version__", None) or metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return found
