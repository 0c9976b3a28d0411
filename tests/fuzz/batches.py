"""Runs many small cases in processes of their own, so that a crash or a hang is one more outcome."""

import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback

TIMEOUT = 30  # seconds of the processor's without news
PATIENCE = 20  # as many times that when others use the processors too
MEMORY = 8 << 30  # of addresses
BATCH = 500


def work(seeds, outcome_of, seconds=TIMEOUT, resident=MEMORY):
    """In the process: says before each case which it is and after it how it ended, in one line each.

    seconds, resident    more time of the processor's, or more bytes of memory in the process, are a bug
    """
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow memory takes terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    news = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # cases may print
    for seed in seeds:
        news.write(f"{seed} begins\n")
        start = time.process_time()
        try:
            outcome = outcome_of(seed)
        except BaseException:
            outcome = "bug " + traceback.format_exc().splitlines()[-1]
        taken, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if taken > seconds:
            outcome = f"bug {taken:.0f} s; {outcome}"
        if peak > resident:
            resident = MEMORY  # once
            outcome = f"bug {peak >> 20} MiB; {outcome}"
        news.write(f"{seed} {outcome}\n")


def outcomes(script, seeds):
    """Yields (seed, outcome) for every seed; `script --work SEED...` has to call `work`."""
    for start in range(0, len(seeds), BATCH):
        yield from _batch(script, list(seeds[start : start + BATCH]))


def _batch(script, seeds):
    while seeds:
        command = [sys.executable, script, "--work", *map(str, seeds)]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
            current = None
            for line in _lines(process):
                seed, outcome = line.split(maxsplit=1)
                current = int(seed)
                if outcome != "begins":
                    seeds.remove(current)
                    yield current, outcome
                    current = None
            hung = process.poll() is None
            if hung:
                process.kill()
            code = process.wait()
            process.stdout.close()
            errors.seek(0)
            message = errors.read().decode(errors="replace").strip()[-2000:]
        if current is None and seeds:
            raise RuntimeError(f"a batch ended early with code {code}: {message}")
        if current is not None:  # the rest goes on in another process
            seeds.remove(current)
            yield current, "hangs" if hung else f"crash {code}: {message}"


def _lines(process):
    """Lines of a process until it ends or is silent for too long."""
    pending = b""
    while _has_news(process):
        block = os.read(process.stdout.fileno(), 1 << 16)
        if not block:
            process.wait()
            return
        *lines, pending = (pending + block).split(b"\n")
        yield from (line.decode() for line in lines)


def _has_news(process):
    start, used = time.monotonic(), _processor_time(process)
    while time.monotonic() - start < PATIENCE * TIMEOUT and _processor_time(process) - used < TIMEOUT:
        if select.select([process.stdout], [], [], 1)[0]:
            return True
    return False


def _processor_time(process):
    """Seconds that the process has used, of all processors."""
    with open(f"/proc/{process.pid}/stat") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def fails(script, *arguments):
    """Whether a run of the script by itself crashes, hangs or prints the word "bug"."""
    try:
        done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0 or "bug" in done.stdout
