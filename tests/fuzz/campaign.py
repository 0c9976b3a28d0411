"""Runs one fuzzer on many cores for a while: `python tests/fuzz/campaign.py mutants --seconds 600 --jobs 64`.

    mutants    mangled kernels have to compile or to raise, on every target, within 10 s and 2 GB (mutate.py)
    kernels    random kernels have to compute what NumPy says (kernels.py)
    products   random loops of matrix products have to give on every target what they give on a CPU (products.py)
    loops      random loops of loads, products, reductions and other tiles have to compute what NumPy says (loops.py)
    flow       random branches, loops and calls around tiles have to compute what Python says (flow.py)
    indices    random indices have to be the same whatever a launch's numbers prove of them (indices.py)
    windows    random windows onto arrays and atomic operations have to do what NumPy does (windows.py)
    attention  random kernels of attention, forward and backward, have to compute what NumPy says (attention.py)
    dequantise random products with weights of few bits have to compute what NumPy says (dequantise.py)
    c-programs random programs in Triton-C have to compute what NumPy says (programs_c.py)
    c-mutants  mangled programs in Triton-C have to compile or to raise (mutate_c.py)

A case is a seed, which makes the same case again wherever the sources are the same. This process makes no kernel: it
forks workers, which begin with everything imported, and do a batch of cases each. A worker that crashes, hangs or meets
a failure is replaced by another, which goes on behind that case. Failures are told as they come, and kept with their
sources in the folder of `--failures`: a mutant as a script that runs by itself, of others the kernel and what is wrong
with it. `--json` has everything: counts of outcomes for each target, rates, failures, and which cases took longest.

The library that is tested comes from PYTHONPATH, so one built with sanitizers (`make asan`) may be. `--devices` names
the GPUs that the workers share.
"""

import argparse
import collections
import faulthandler
import importlib
import json
import mmap
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

# The module, the targets that it runs on unless others are asked for, and cases in a batch.
FUZZERS = {
    "mutants": ("mutate", ["cpu", "sim:80", "sim:90", "ptx"], 1000),
    "kernels": ("kernels", ["cpu", "sim:80", "sim:90"], 200),
    "products": ("products", ["sim:80", "sim:90"], 50),
    "loops": ("loops", ["cpu", "sim:80", "sim:90"], 50),
    "flow": ("flow", ["cpu", "sim:80", "sim:90"], 50),
    "windows": ("windows", ["cpu", "sim:80", "sim:90"], 50),
    "attention": ("attention", ["cpu", "sim:80", "sim:90"], 20),
    "dequantise": ("dequantise", ["cpu", "sim:80", "sim:90"], 20),
    "indices": ("indices", ["cpu", "sim:80", "sim:90"], 20),
    "c-programs": ("programs_c", ["cpu", "sim:90"], 200),
    "c-mutants": ("mutate_c", ["cpu", "ptx"], 2000),
}

SECONDS = 10  # of the processor's, that a case may take
MEMORY = 2 << 30  # bytes that it may add to the process
ADDRESSES = 16 << 30  # bytes of them that a worker may have
SILENT = 30, 300  # seconds of the processor's, and of those without waiting for it, after which a worker hangs
FAILURES = "differs", "bug", "slow", "memory", "crash", "hangs"  # first words of outcomes that are failures
KEPT = 5  # sources of failures of one kind


def is_failure(outcome):
    return outcome.split()[0].rstrip(":") in FAILURES


# ---- in a worker ----------------------------------------------------------------------------------------------------


class Worker:
    """In a process of its own: runs cases and writes a line of JSON after each of them.

    The line is [seed, [[target, outcome], ...], seconds]; the process ends behind the first failure.
    """

    def __init__(self, fuzzer, targets, news, place):
        self.fuzzer, self.targets, self.news, self.place = fuzzer, targets, news, place

    def work(self, seeds):
        for seed in seeds:
            start, before, high = time.process_time(), resident(), peak()
            outcomes = self.outcomes(seed)
            seconds, high_now = time.process_time() - start, peak()
            if seconds > SECONDS:
                outcomes.append([self.target, f"slow: {seconds:.0f} s"])
            if high_now > high and high_now - before > MEMORY:
                outcomes.append([self.target, f"memory: {high_now - before >> 20} MiB"])
            line = json.dumps([seed, outcomes, round(seconds, 3)]) + "\n"
            write_all(self.news, line.encode())
            if any(is_failure(outcome) for _, outcome in outcomes):
                return

    def outcomes(self, seed):
        found = []
        try:
            for outcome in self.fuzzer.outcomes(seed, self.targets, self.begin):
                found.append([self.target, outcome])
        except BaseException:
            found.append([self.target, "bug in the fuzzer, or " + traceback.format_exc()])
        return found

    def begin(self, target):
        """The fuzzer says which target comes next; should the process die, its parent knows."""
        self.target = target
        self.place[0] = self.targets.index(target)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def write_all(file, content):
    while content:
        content = content[os.write(file, content) :]


# ---- workers, seen from outside -------------------------------------------------------------------------------------


class Job:
    """One of the workers that run at a time: a batch of cases, and the process that is at them."""

    def __init__(self, campaign, number):
        self.campaign, self.number = campaign, number
        self.place = mmap.mmap(-1, mmap.PAGESIZE)  # shared: the number of the target that the worker is at
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = None
        self.seeds = range(0)

    def start(self):
        """Forks a worker for the rest of the batch, or for the next one. False when there is nothing left to do."""
        if not self.seeds:
            self.seeds = self.campaign.next_batch()
        if not self.seeds:
            return False
        self.errors.truncate(0)
        self.news, news = os.pipe()
        self.pending = b""
        self.process = os.fork()
        if not self.process:
            status = 1
            try:
                self.become_worker(news)
                status = 0
            finally:
                os._exit(status)  # without what the parent has registered for its exit
        os.close(news)
        self.hear()
        return True

    def become_worker(self, news):
        campaign = self.campaign
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # kernels may print
        self.errors.seek(0)
        os.dup2(self.errors.fileno(), 2)
        faulthandler.enable(file=2)
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
        if campaign.options.devices:
            os.environ["CUDA_VISIBLE_DEVICES"] = campaign.options.devices[self.number % len(campaign.options.devices)]
        # CUDA and shadow memory take terabytes of addresses.
        if not campaign.uses_gpus and "asan" not in os.environ.get("LD_PRELOAD", ""):
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        Worker(campaign.fuzzer, campaign.targets, news, self.place).work(self.seeds)

    def hear(self):
        self.heard = self.times()

    def read(self):
        """Takes what the worker has written. At its end, says what it died of."""
        block = os.read(self.news, 1 << 16)
        if not block:
            return self.end()
        *lines, self.pending = (self.pending + block).split(b"\n")
        for line in lines:
            seed, outcomes, seconds = json.loads(line)
            self.seeds = self.seeds[1:]
            self.campaign.count(seed, outcomes, seconds)
        self.hear()

    def end(self, verdict=None):
        os.close(self.news)
        _, status = os.waitpid(self.process, 0)
        self.process = None
        if verdict or status:
            self.errors.seek(0)
            words = self.errors.read().decode(errors="replace").strip()[-6000:]
            cause = verdict or f"crash: {ended(status)}"
            seed, target = self.seeds[0], self.campaign.targets[self.place[0]]
            self.seeds = self.seeds[1:]
            self.campaign.count(seed, [[target, f"{cause}\n{words}"]], 0)

    def look(self):
        """Kills a worker that has been silent for too long."""
        by_clock, by_processor = (now - then for now, then in zip(self.times(), self.heard, strict=True))
        if by_processor > SILENT[0] or by_clock > SILENT[1]:
            os.kill(self.process, signal.SIGUSR1)  # it says where it is
            time.sleep(0.1)
            self.kill()
            self.end(f"hangs: {by_processor:.0f} s of the processor's, {by_clock:.0f} s without waiting for it")

    def kill(self):
        os.kill(self.process, signal.SIGKILL)

    def times(self):
        """Seconds of the clock's, but for those that its first thread has waited for a processor, as far as the system
        says so; and of the processor's."""
        with open(f"/proc/{self.process}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        waited = 0
        if os.path.exists(schedule := f"/proc/{self.process}/schedstat"):
            with open(schedule) as file:
                waited = int(file.read().split()[1])
        return time.monotonic() - waited / 1e9, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def ended(status):
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.WEXITSTATUS(status)}"


# ---- the campaign ---------------------------------------------------------------------------------------------------


class Campaign:
    def __init__(self, options):
        module, targets, batch = FUZZERS[options.fuzzer]
        self.options = options
        self.targets = options.targets or targets
        self.uses_gpus = any(target.startswith("cuda") for target in self.targets)
        self.batch = max(1, min(batch, options.count // options.jobs)) if options.count else batch
        self.fuzzer = importlib.import_module(module)
        self.fuzzer.prepare()
        self.next_seed, self.end_seed = options.seed, options.seed + (options.count or sys.maxsize)
        self.counts = collections.defaultdict(collections.Counter)
        self.cases, self.used, self.failures, self.kinds, self.slowest = 0, 0, [], collections.Counter(), []
        self.stopped = False

    def next_batch(self):
        start = self.next_seed
        self.next_seed = min(start + self.batch, self.end_seed)
        return range(start, self.next_seed)

    def run(self):
        self.start = time.monotonic()
        jobs = [job for job in (Job(self, number) for number in range(self.options.jobs)) if job.start()]
        looked = time.monotonic()
        while jobs and not self.is_over():
            ready, _, _ = select.select([job.news for job in jobs], [], [], 0.5)
            for job in jobs:
                if job.news in ready:
                    job.read()
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                for job in jobs:
                    if job.process:
                        job.look()
            jobs = [job for job in jobs if job.process or not self.is_over() and job.start()]
            time.sleep(0.02)  # so that there is more to read at once
        for job in jobs:
            if job.process:
                job.kill()
                os.waitpid(job.process, 0)
        self.seconds = time.monotonic() - self.start

    def is_over(self):
        late = self.options.seconds and time.monotonic() - self.start > self.options.seconds
        return self.stopped or bool(late)

    def count(self, seed, outcomes, seconds):
        self.cases += 1
        self.used += seconds
        for target, outcome in outcomes:
            self.counts[target][outcome.split()[0].rstrip(":")] += 1
            if is_failure(outcome):
                self.note(seed, target, outcome)
        if len(self.slowest) < 10 or seconds > self.slowest[-1][0]:
            self.slowest = sorted([*self.slowest, (seconds, seed)], reverse=True)[:10]

    def note(self, seed, target, outcome):
        kind = re.sub(r"\d+", "N", outcome.splitlines()[0])
        failure = {"seed": seed, "target": target, "outcome": outcome.splitlines()[0]}
        self.failures.append(failure)
        self.kinds[kind] += 1
        if self.kinds[kind] > KEPT:
            return
        print(f"seed {seed} on {target}: {failure['outcome']}", flush=True)
        folder = self.options.failures
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{self.options.fuzzer}-{seed}-{target.replace(':', '')}.py"
            about = "".join(f"# {line}\n" for line in outcome.splitlines())
            (folder / name).write_text(f"# seed {seed} on {target}\n{about}\n{self.source(seed, target)}")
            failure["file"] = name

    def source(self, seed, target):
        try:
            return self.fuzzer.script(seed, target)
        except Exception:
            return f'"""\n{traceback.format_exc()}"""\n'

    def result(self):
        return {
            "fuzzer": self.options.fuzzer,
            "targets": self.targets,
            "seeds": [self.options.seed, self.next_seed],
            "jobs": self.options.jobs,
            "seconds": round(self.seconds, 1),
            "cases": self.cases,
            "cases a second": round(self.cases / self.seconds, 1),
            "processor's seconds in cases": round(self.used, 1),
            "counts": {target: dict(counts.most_common()) for target, counts in self.counts.items()},
            "kinds of failures": dict(self.kinds.most_common()),
            "failures": self.failures,
            "slowest": self.slowest,
        }


def table(result):
    """What a reader wants to see first."""
    used = result["processor's seconds in cases"]
    yield "{fuzzer}: {cases} cases from seed {seeds[0]} in {seconds} s, ".format(**result) + (
        f"{result['cases a second']} a second; {used / max(1, result['cases']) * 1000:.1f} ms of the processor's each; "
        f"{len(result['failures'])} failures"
    )
    for target, counts in result["counts"].items():
        yield f"  {target:8} {sum(counts.values()):9}: " + ", ".join(f"{name} {n}" for name, n in counts.items())
    for kind, number in result["kinds of failures"].items():
        yield f"  {number} x {kind}"


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fuzzer", choices=FUZZERS)
    parser.add_argument("--targets", type=lambda text: text.split(","), help="cpu,sim:80,sim:90,cuda,... by comma")
    parser.add_argument("--count", type=int, help="cases, each on every target; without, as many as there is time for")
    parser.add_argument("--seconds", type=float, help="of the clock's after which it stops")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="workers at a time")
    parser.add_argument("--devices", type=lambda text: text.split(","), help="GPUs that the jobs share: 0,1,2,3")
    parser.add_argument("--failures", type=Path, metavar="FOLDER", help="where sources of failures go")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the result goes")
    options = parser.parse_args()
    if not options.count and not options.seconds:
        parser.error("--count or --seconds has to say when it is over")
    return options


def sample(fuzzer, count, folder, *targets):
    """The result of a small campaign in another process, proved to be without failures."""
    file = folder / "result.json"
    command = [sys.executable, __file__, fuzzer, "--count", str(count), "--json", file, "--failures", folder]
    command += ["--targets", ",".join(targets)] if targets else []
    done = subprocess.run(command, capture_output=True, text=True)
    sources = [path.read_text() for path in folder.glob("*.py")]
    assert done.returncode == 0, "\n\n".join([done.stdout + done.stderr, *sources])
    return json.loads(file.read_text())


def main():
    options = options_of()
    os.environ.setdefault("TRITON_VERIFY", "1")
    os.environ.setdefault("TRITON_CPU_THREADS", "2")
    warnings.simplefilter("ignore")
    campaign = Campaign(options)

    def stop(signal, frame):
        campaign.stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    campaign.run()
    result = campaign.result()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    print(*table(result), sep="\n")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
