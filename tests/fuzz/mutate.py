"""Feeds mangled kernels to the compiler: `python tests/fuzz/mutate.py --count 20000`.

Each must compile or raise an exception; none may crash, hang, or meet a mistake of the compiler (InternalError).
They are compiled, not run: what a mangled kernel would store where is nobody's business. Batches run in processes of
their own, so that a crash is seen, reported with its source, and minimised. `--show SEED` prints one,
`--run SEED` compiles it.
"""

import argparse
import ast
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import corpus  # noqa: E402
import mutations  # noqa: E402
from harness import define  # noqa: E402

TIMEOUT = 30  # seconds without news from a batch
MEMORY = 8 << 30
BATCH = 500


def make(seed):
    """The source and arguments of one mutant."""
    random = np.random.default_rng(seed)
    original = mutations.pick(random, corpus.SOURCES)
    positional, keywords = corpus.arguments(original)
    return mutations.mutant(random, original), *mutations.mutate_arguments(random, positional, keywords)


def compile_mutant(source, positional, keywords):
    """The name of what came of it: "compiled" or that of an exception; "bug" when the compiler is to blame."""
    import triton

    try:
        define(source, np=np)["kernel"].warmup(*positional, grid=(1,), **keywords)
    except triton.errors.InternalError as error:
        return f"bug {str(error).splitlines()[0]}"
    except (SystemError, AssertionError) as error:
        return f"bug {type(error).__name__}: {error}".splitlines()[0]
    except Exception as error:
        return type(error).__name__
    return "compiled"


def work(seeds):
    """Compiles mutants one by one, and says before each which it is and after it how it ended."""
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow memory takes terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    news = os.fdopen(os.dup(1), "w", buffering=1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    for seed in seeds:
        news.write(f"{seed} begins\n")
        try:
            outcome = compile_mutant(*make(seed))
        except BaseException:
            outcome = "bug " + traceback.format_exc().splitlines()[-1]
        news.write(f"{seed} {outcome}\n")


def run_batch(seeds):
    """Runs a batch in a process of its own. Yields (seed, outcome); after a crash the rest goes on in another."""
    seeds = list(seeds)
    while seeds:
        command = [sys.executable, __file__, "--work", *map(str, seeds)]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
            current = None
            for line in lines_with_timeout(process):
                seed, outcome = line.split(maxsplit=1)
                current = int(seed)
                if outcome != "begins":
                    seeds.remove(current)
                    yield current, outcome
                    current = None
            hung = process.poll() is None and current is not None
            process.kill() if hung else None
            code = process.wait()
            errors.seek(0)
            message = errors.read().decode(errors="replace").strip()[-2000:]
        if current is None and not seeds:
            return
        if current is None:
            raise RuntimeError(f"a batch ended early with code {code}: {message}")
        seeds.remove(current)
        yield current, "hangs" if hung else f"crash {code}: {message}"


def lines_with_timeout(process):
    """Lines of a process until it ends or is silent for too long."""
    pending = b""
    while select.select([process.stdout], [], [], TIMEOUT)[0]:
        block = os.read(process.stdout.fileno(), 1 << 16)
        if not block:
            process.wait()
            return
        *lines, pending = (pending + block).split(b"\n")
        yield from (line.decode() for line in lines)


def is_failure(outcome):
    return outcome.split()[0] in ("crash", "hangs", "bug")


def still_fails(source, seed):
    """Whether the source with the mutant's arguments fails in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(source)
        file.flush()
        command = [sys.executable, __file__, "--run", str(seed), "--source", file.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0 or "bug" in done.stdout


def minimised(seed):
    """The mutant with as few statements as still make it fail."""
    source = make(seed)[0]
    again = True
    while again:
        again = False
        for candidate in with_a_statement_less(source):
            if still_fails(candidate, seed):
                source, again = candidate, True
                break
    return source


def with_a_statement_less(source):
    count = sum(len(body) for body in mutations.bodies(ast.parse(source)))
    for place in range(count):
        tree = ast.parse(source)
        for body in mutations.bodies(tree):
            if place < len(body):
                body[place : place + 1] = [] if len(body) > 1 else ast.parse("pass").body
                break
            place -= len(body)
        candidate = ast.unparse(tree)
        if candidate != source:
            yield candidate


def report(seed, outcome, minimise=True):
    source = minimised(seed) if minimise else make(seed)[0]
    _, positional, keywords = make(seed)
    shown = ", ".join(f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a) for a in positional)
    return f"seed {seed}: {outcome}\narguments: {shown}, {keywords}\n{source}"


def run(seeds):
    """Counts of outcomes, and reports of failures."""
    counts, reports = {}, []
    for start in range(0, len(seeds), BATCH):
        for seed, outcome in run_batch(seeds[start : start + BATCH]):
            name = outcome.split()[0]
            counts[name] = counts.get(name, 0) + 1
            if is_failure(outcome):
                reports.append(report(seed, outcome, minimise=len(reports) < 10))
    return counts, reports


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int)
    parser.add_argument("--run", type=int)
    parser.add_argument("--source")
    parser.add_argument("--work", type=int, nargs="+")
    options = parser.parse_args()
    if options.work:
        return work(options.work)
    if options.show is not None:
        return print(report(options.show, "", minimise=False))
    if options.run is not None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        source, positional, keywords = make(options.run)
        source = Path(options.source).read_text() if options.source else source
        return print(compile_mutant(source, positional, keywords))
    start = time.monotonic()
    counts, reports = run(range(options.seed, options.seed + options.count))
    print(*reports, sep="\n\n")
    print(f"{options.count} mutants, {len(reports)} failed, {time.monotonic() - start:.0f} s")
    print(*(f"{count:6} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])), sep="\n")
    return len(reports) > 0


if __name__ == "__main__":
    sys.exit(main())
