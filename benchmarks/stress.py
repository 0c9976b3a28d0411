"""Many processes on one cache of compiled kernels: killed while they work, and with files damaged under their hands.

    python benchmarks/stress.py [--processes 32] [--kernels 20] [--kills 100] [--damages 2000] [--seed 0]

Every process checks what its kernels compute. At the end every file must be whole, and nothing may be left over.
Children are forks of this process, which has compiled nothing itself; some start new interpreters.
"""

import argparse
import importlib.util
import os
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("processes", 32), ("kernels", 20), ("kills", 100), ("damages", 2000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--check", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        sys.exit(not check_kernels(options.check, options.seed))
    with tempfile.TemporaryDirectory() as folder:
        done = stress(folder, options.processes, options.kernels, options.kills, options.damages, options.seed)
    sys.exit(not done)


if __name__ == "__main__":
    main()
