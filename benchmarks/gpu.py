"""Kernels, launches and compilations on the GPU: ours, the Triton that is installed, and torch, in one run.

Ours and the peer are processes of their own that take turns on the GPU, with the same kernels (gpu_kernels.py), the
same arguments, and the same clock; both use the fastest of the same configurations. The peer is what `import triton`
finds when this repository is not on the path; --peer-path adds where to look.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import report

OURS = report.ROOT / "python"
GOAL = 1.0
COMPILE_GOAL = 5.0  # as many times faster than the peer


class Process:
    """A gpu_worker.py with a compiler of its own, which keeps nothing from earlier runs."""

    def __init__(self, path):
        self.cache = tempfile.TemporaryDirectory()
        self.environment = environment(path, self.cache.name)
        self.process = subprocess.Popen(
            worker_command(), env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, do, **arguments):
        """The answer to a command; RuntimeError when the command fails."""
        try:
            print(json.dumps({"do": do, **arguments}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError("the process ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ok"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.cache.cleanup()


def worker_command(*arguments):
    return [sys.executable, str(Path(__file__).with_name("gpu_worker.py")), *arguments]


def environment(path, cache):
    """With these folders in front of the others on PYTHONPATH, ours not among those."""
    others = [
        entry
        for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry and Path(entry).resolve() != OURS.resolve()
    ]
    paths = os.pathsep.join([*map(str, path), *others])
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_TARGET"}
    return inherited | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}


def start_peer(path, ours):
    """The peer's process, or None, said aloud, where there is no other Triton."""
    peer = Process(path)
    try:
        hello = peer("hello")
    except RuntimeError as error:
        print(f"no peer: {error}; --peer-path says where `import triton` finds one", file=sys.stderr)
    else:
        if Path(hello["file"]).resolve() != Path(ours["file"]).resolve():
            return peer, hello
        print("no peer: `import triton` is this repository everywhere", file=sys.stderr)
    peer.end()
    return None, None


class Comparison:
    """Runs cases on the processes in turns and adds the rows."""

    def __init__(self, results, ours, peer):
        self.results, self.ours = results, ours
        self.rounds = results.options.rounds
        self.contenders = {"ours": ours} | ({"peer": peer} if peer else {})

    def take_turns(self, samplers):
        """{name: median of all that each of {name: function that returns samples} gives}."""
        samples = {name: [] for name in samplers}
        for _ in range(self.rounds):
            for name, sampler in samplers.items():
                samples[name] += sampler()
        return {name: statistics.median(values) for name, values in samples.items()}

    def kernel(self, case):
        prepared = {}
        for name, process in self.contenders.items():
            try:
                prepared[name] = process("prepare", case=case)
            except RuntimeError as error:
                print(f"  {case}: {name} failed: {error}", file=sys.stderr)
                continue
            for label, why in prepared[name]["refused"].items():
                print(f"  {case}: {name} without {label}: {why}", file=sys.stderr)
                self.results.failed |= name == "ours"
        if "ours" not in prepared:
            self.results.failed = True
            return
        # The cache is cleared before each call, which takes longer than most of them.
        count = max(5, min(40, int(10 / (prepared["ours"]["estimate"] + 0.1))))
        samplers = {name: lambda process=self.contenders[name]: process("sample", count=count) for name in prepared}
        samplers["torch"] = lambda: self.ours("sample", count=count, reference=True)
        times = {name: milliseconds * 1e3 for name, milliseconds in self.take_turns(samplers).items()}
        moved = prepared["ours"]["bytes"]
        rates = {name: moved / microseconds / 1e3 for name, microseconds in times.items()}
        configs = {name: answer["config"] for name, answer in prepared.items()}
        goal = GOAL if "peer" in times else None
        self.results.add(case, "µs", times.pop("ours"), times, goal, rates=rates, configs=configs)

    def launch(self, name):
        samplers = {
            who: lambda process=process: [process("launch", name=name, count=300)]
            for who, process in self.contenders.items()
        }
        samplers["torch"] = lambda: [self.ours("launch", name="torch", count=300)]
        times = self.take_turns(samplers)
        self.results.add(f"launch, {name}", "µs", times.pop("ours"), times)

    def compilations(self, repeat):
        """Each sample is a process that has an empty cache."""
        samples = {name: [] for name in self.contenders}
        for _ in range(repeat):
            for name, process in self.contenders.items():
                with tempfile.TemporaryDirectory() as cache:
                    command, variables = worker_command("--compile"), process.environment | {"TRITON_CACHE_DIR": cache}
                    output = subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True)
                samples[name].append(json.loads(output.stdout))
        for what in samples["ours"][0]:
            times = {name: statistics.median(sample[what] for sample in runs) for name, runs in samples.items()}
            case = "import triton" if what == "import" else f"compile, {what}"
            goal = COMPILE_GOAL if "peer" in times and what == "softmax" else None
            self.results.add(case, "ms", times.pop("ours"), times, goal)


# ---- plots


def families(rows):
    """{name of a kernel and its type: [(size, row)]}, for kernels measured at several sizes."""
    found = {}
    for row in rows:
        words = row["case"].split()
        if "rates" in row and len(words) > 2:
            kernel, size, dtype = " ".join(words[:-2]), words[-2], words[-1]
            found.setdefault(f"{kernel} {dtype}", []).append((size, row))
    return {name: members for name, members in found.items() if len(members) > 1}


def plot(rows, folder):
    try:
        import matplotlib
    except ImportError:
        print("no plots, for there is no matplotlib: pip install matplotlib", file=sys.stderr)
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for name, members in families(rows).items():
        figure, axes = pyplot.subplots(figsize=(7, 4))
        for contender in members[0][1]["rates"]:
            rates = [row["rates"].get(contender) for _, row in members]
            axes.plot([size for size, _ in members], rates, marker=".", label=contender)
        axes.set_title(name)
        axes.set_ylabel("GB/s")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(folder / f"{name.replace(' ', '_')}.png", bbox_inches="tight")
        pyplot.close(figure)
    compared = [row for row in rows if "peer" in row["peers"]]
    if compared:
        plot_ratios(pyplot, compared, folder / "ratios.png")


def plot_ratios(pyplot, rows, file):
    figure, axes = pyplot.subplots(figsize=(8, 0.22 * len(rows) + 1))
    axes.barh([row["case"] for row in rows], [row["ratio"] for row in rows])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("times faster than the peer")
    axes.invert_yaxis()
    figure.savefig(file, bbox_inches="tight")
    pyplot.close(figure)


def main():
    results = report.Report(
        "GPU kernels (ratio to the first peer)",
        arguments=[
            ("--peer-path", {"action": "append", "default": [], "metavar": "FOLDER", "help": "where the peer is"}),
            ("--no-peer", {"action": "store_true", "help": "ours and torch only"}),
            ("--rounds", {"type": int, "default": 7, "help": "turns that each contender gets (7)"}),
            ("--repeat", {"type": int, "default": 3, "help": "processes for each time of compilation (3)"}),
            ("--plots", {"type": Path, "metavar": "FOLDER", "help": "draw plots there"}),
        ],
    )
    options = results.options
    ours = Process([OURS])
    hello = ours("hello")
    peer, their_hello = (None, None) if options.no_peer else start_peer(options.peer_path, hello)
    results.machine["gpu"] = hello["gpu"]
    results.versions |= {"triton": hello["version"], "torch": hello["torch"]}
    results.versions |= {"peer": their_hello["version"]} if peer else {}
    comparison = Comparison(results, ours, peer)
    for case in filter(results.wants, hello["cases"]):
        comparison.kernel(case)
    for name in ("5 arguments", "16 arguments"):
        if results.wants(f"launch, {name}"):
            comparison.launch(name)
    if results.wants("compile"):
        comparison.compilations(options.repeat)
    for process in comparison.contenders.values():
        process.end()
    results.finish()
    if options.plots:
        plot(results.rows, options.plots)
    sys.exit(results.failed)


if __name__ == "__main__":
    main()
