"""Many processes on one cache of compiled kernels: killed while they work, and with files damaged under their hands.

    python benchmarks/stress.py [--processes 32] [--kernels 20] [--kills 100] [--damages 2000] [--seed 0] [--rounds 1]
                                [--at-once 20] [--threads 0] [--seconds 300] [--json FILE]

Every process checks what its kernels compute. At the end every file must be whole, and nothing may be left over.
Children are forks of this process, which has compiled nothing itself; some start new interpreters. Each round begins
with an empty cache. With --threads, so many threads of one process then make, compile and launch kernels for so long,
while Python's collector rests: its memory must not grow.
"""

import argparse
import importlib.util
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import triton  # noqa: F401  (once, for all children)
from triton import _C

KERNEL = """
@triton.jit
def kernel_{number}(out, x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.store(out + index, tl.load(x + index, mask=mask) * {factor} + {number}, mask=mask)
"""


def write_program(folder, kernels):
    path = Path(folder, "stressed.py")
    texts = (KERNEL.format(number=number, factor=number % 7 + 2) for number in range(kernels))
    path.write_text("import triton\nimport triton.language as tl\n" + "".join(texts))
    return path


def check_kernels(path, seed):
    """Launches every kernel of the program in some order; True if all results are right."""
    spec = importlib.util.spec_from_file_location("stressed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = [name for name in vars(module) if name.startswith("kernel_")]
    random.Random(seed).shuffle(names)
    x = np.arange(100, dtype=np.float32)
    for name in names:
        number, out = int(name[7:]), np.zeros_like(x)
        getattr(module, name)[(7,)](out, x, 100, BLOCK=16)
        if not (out == x * (number % 7 + 2) + number).all():
            return False
    return True


def start(path, seed):
    """A child that checks the kernels and exits with 0 if they are right: its process number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if seed % 16 == 15:  # by a new interpreter
            command = [sys.executable, __file__, "--check", str(path), "--seed", str(seed)]
            status = subprocess.run(command).returncode
        else:
            status = not check_kernels(path, seed)
    finally:
        os._exit(status)


def run_and_kill(path, processes, kills, chance):
    """Keeps `processes` children running and kills some of them, until `kills` were killed; then all the others end.
    Returns how many ended with wrong results."""
    running, wrong, killed, seed = set(), 0, 0, 0
    while killed < kills or running:
        while killed < kills and len(running) < processes:
            running.add(start(path, seed := seed + 1))
        if killed < kills:
            time.sleep(chance.random() * 0.02)
            victim = chance.choice(sorted(running))
            os.kill(victim, signal.SIGKILL)
            killed += 1
        while running:
            ended, status = os.waitpid(-1, os.WNOHANG if killed < kills else 0)
            if not ended:
                break
            running.discard(ended)
            wrong += status not in (0, signal.SIGKILL)
    return wrong


def entries(folder):
    return sorted(path for kind in ("kernels", "sources") for path in Path(folder, kind).rglob("*") if path.is_file())


def damage(folder, chance):
    """Truncates, alters, or exchanges one or two files."""
    paths = entries(folder)
    one, other = chance.choice(paths), chance.choice(paths)
    data, what = one.read_bytes(), chance.randrange(4)
    if what == 0:
        one.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif what == 1 and data:
        place = chance.randrange(len(data))
        one.write_bytes(data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :])
    elif what == 2:
        one.write_bytes(other.read_bytes())
    else:
        one.write_bytes(chance.randbytes(chance.randrange(1000)))


def wait(child):
    return os.waitpid(child, 0)[1] == 0


def check_damages(path, folder, count, chance, at_once):
    """Damages `count` files, some at a time, with a process after each time; how many had wrong results."""
    wrong = 0
    for done in range(0, count, at_once):
        for _ in range(min(at_once, count - done)):
            damage(folder, chance)
        wrong += not wait(start(path, 16 * done))
    return wrong


def bad_entries(folder):
    """Files that are not what their name says."""
    bad = []
    for path in entries(folder):
        seal = _C.read_seal(path.read_bytes())
        if seal is None or path.parts[-3:] != (seal[0], seal[1].hex()[:2], seal[1].hex()[2:]):
            bad.append(path)
    return bad


def stress(folder, processes, kernels, kills, damages, seed, at_once=20, say=print):
    """True if all was right."""
    chance, cache = random.Random(seed), Path(folder, "cache")
    os.environ |= {"TRITON_CACHE_DIR": str(cache), "TRITON_CPU_THREADS": "1", "TRITON_VERIFY": "0"}
    os.environ["TRITON_BACKGROUND"] = "0"  # every file is one that each process looks at
    os.environ.pop("TRITON_CACHE_SIZE", None)
    path = write_program(folder, kernels)
    began = time.perf_counter()
    wrong = run_and_kill(path, processes, kills, chance)
    say(f"{kills} of {processes} processes at a time killed in {time.perf_counter() - began:.1f} s: {wrong} wrong")
    fresh = wait(start(path, 0))
    left = list((cache / "drafts").iterdir())
    say(f"{len(entries(cache))} files, {len(bad_entries(cache))} bad, {len(left)} left over; next one right: {fresh}")
    began = time.perf_counter()
    damaged = check_damages(path, cache, damages, chance, at_once)
    after = wait(start(path, 0))
    bad = bad_entries(cache)
    say(f"{damages} files damaged in {time.perf_counter() - began:.1f} s: {damaged} wrong, {len(bad)} bad at the end")
    return fresh and after and not (wrong or left or damaged or bad)


def in_threads(count, seconds, seed):
    """Launches made, and megabytes after a quarter of the time and after three. Has a process to itself."""
    import gc
    import threading

    import triton.language as tl

    def fresh():
        @triton.jit
        def scale(out, x, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
            index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + index, tl.load(x + index, mask=index < n) * FACTOR, mask=index < n)

        return scale

    end, launches, wrong = time.perf_counter() + seconds, [0] * count, []

    def work(thread):
        try:
            launch_all(thread)
        except Exception as error:
            wrong.append(error)
            raise

    def launch_all(thread):
        chance, x = random.Random(seed * count + thread), np.arange(100, dtype=np.float32)
        while time.perf_counter() < end:
            kernel, factor, out = fresh(), chance.randrange(50 * count), np.zeros_like(x)
            kernel[(7,)](out, x, 100, FACTOR=factor, BLOCK=16)
            launches[thread] += 1
            if not (out == x * factor).all():
                wrong.append(factor)

    def megabytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    gc.disable()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 4)
    early = megabytes()
    time.sleep(seconds / 2)
    late = megabytes()
    for thread in threads:
        thread.join()
    return {"launches": sum(launches), "wrong": len(wrong), "early": early, "late": late}


def stress_threads(count, seconds, seed, say=print):
    """What `in_threads` finds with an empty cache; and whether that is right."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TRITON_CACHE_DIR": cache, "TRITON_BACKGROUND": "0"}
        command = [sys.executable, __file__, "--run-threads", "--threads", str(count), "--seconds", str(seconds)]
        done = subprocess.run([*command, "--seed", str(seed)], env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    say(
        f"{found['launches']} kernels made, compiled and launched by {count} threads in {seconds} s: "
        f"{found['wrong']} wrong, {found['early']:.0f} MB early, {found['late']:.0f} MB late"
    )
    return found, not found["wrong"] and found["late"] < 1.1 * found["early"] + 8


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("processes", 32), ("kernels", 20), ("kills", 100), ("damages", 2000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("rounds", 1), ("at-once", 20), ("threads", 0), ("seconds", 300)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", metavar="FILE", help="also write what was found there")
    parser.add_argument("--run-threads", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--check", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        sys.exit(not check_kernels(options.check, options.seed))
    if options.run_threads:
        print(json.dumps(in_threads(options.threads, options.seconds, options.seed)))
        return
    lines, done, found, settings = [], True, {}, vars(options).copy()

    def say(text):
        print(text, flush=True)
        lines.append(text)

    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            sizes = options.processes, options.kernels, options.kills, options.damages
            done &= stress(folder, *sizes, options.seed + number, options.at_once, say)
    if options.threads:
        found, is_right = stress_threads(options.threads, options.seconds, options.seed, say)
        done &= is_right
    if options.json:
        for name in ("check", "json", "run_threads"):
            del settings[name]
        machine = {"machine": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0))}
        data = {**machine, "options": settings, "right": done, "said": lines, "threads": found}
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(not done)


if __name__ == "__main__":
    main()
