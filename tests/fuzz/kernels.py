"""Runs random kernels and compares them with NumPy: `python tests/fuzz/kernels.py --count 2000 --seed 0`.

A difference is printed with the smallest part of the kernel that shows it; `--seed N --count 1` runs it again.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import batches  # noqa: E402
from generate import generate  # noqa: E402
from harness import DTYPES, Array, Buffer, define, padding  # noqa: E402

import triton  # noqa: E402


def execute(program):
    """None when every output agrees with the reference, else what differs and the kernel's source."""
    runs = [program.run(pid) for pid in range(program.grid)]
    expected = {i: [values[i] for values in runs] for i in program.outputs}
    source = program.source([expected[i][0] for i in program.outputs])
    launch = f"{program.options}, padding {program.padding}"
    buffers = {i: blank(expected[i]) for i in program.outputs}
    arguments = [Buffer(source.array).argument for source in program.inputs]
    try:
        kernel, outputs = define(source)["kernel"], [buffers[i].argument for i in program.outputs]
        outputs += [Buffer(np.zeros(program.grid * n, DTYPES[d].numpy)).argument for d, n in program.scratch().values()]
        with padding(program.padding):
            kernel[(program.launched,)](*arguments, *outputs, enable_fp_fusion=False, **program.options)
        for i in program.outputs:
            actual = buffers[i].host().values
            for pid, reference in enumerate(expected[i]):
                report = difference(actual[pid], reference)
                if report:
                    return f"{program.name(i)} of program {pid}: {report}\n{launch}\n{source}"
    except triton.OutOfResources:  # a scan in 8 warps may want more shared memory than there is
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{launch}\n{source}"
    return None


def blank(references):
    first = references[0]
    return Buffer(Array(np.zeros((len(references), *first.shape), DTYPES[first.dtype].values), first.dtype))


def difference(actual, reference):
    """What is wrong, or None. Which zero it is does not count; where the bound is infinite, nothing does."""
    expected = reference.values
    with np.errstate(all="ignore"):
        same = (actual == expected) | ((actual != actual) & (expected != expected))
        if not reference.exact:
            off = np.abs(actual.astype(np.float64) - reference.wide)
            same |= (off <= 1.5 * reference.error) | ~np.isfinite(reference.error) | ~np.isfinite(reference.wide)
    if np.all(same):
        return None
    place = tuple(int(k) for k in np.argwhere(np.atleast_1d(~same))[0]) if np.ndim(same) else ()
    bound = 0 if reference.exact else reference.error[place]
    count = int(np.size(same) - np.count_nonzero(same))
    wanted = f"{expected[place]!r} +- {bound:.3g}"
    return f"{count} of {np.size(same)} differ, first at {place}: {actual[place]!r}, not {wanted}"


def minimised(program):
    """The program with fewer outputs and steps that still fails."""
    smallest = program
    for i in range(len(program.inputs) + len(program.steps)):
        candidate = replace(program, outputs=[i])
        candidate = without_unused(candidate)
        if execute(candidate):
            return candidate
    return smallest


def without_unused(program):
    """The program with only what its outputs need."""
    first = len(program.inputs)
    needed, stack = set(), list(program.outputs)
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            if i >= first:
                stack += program.steps[i - first].operands
    kept = sorted(needed)
    place = {old: new for new, old in enumerate(kept)}
    steps = [program.steps[i - first] for i in kept if i >= first]
    return replace(
        program,
        inputs=[program.inputs[i] for i in kept if i < first],
        steps=[replace(step, operands=[place[i] for i in step.operands]) for step in steps],
        outputs=[place[i] for i in program.outputs],
    )


def run(seeds):
    """Yields a report for every seed that fails."""
    for seed, outcome in batches.outcomes(__file__, seeds):
        if outcome == "agrees":
            continue
        yield f"seed {seed} {outcome}\n{explained(seed) or source_of(generate(seed))}"


def explained(seed):
    """What --explain says, or nothing: what shows a difference may crash or hang when it is made smaller."""
    command = [sys.executable, __file__, "--explain", str(seed)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.strip()
    except subprocess.TimeoutExpired:
        return ""


def source_of(program):
    runs = program.run(0)
    return program.source([runs[i] for i in program.outputs])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=int, nargs="+")
    parser.add_argument("--explain", type=int)
    options = parser.parse_args()
    if options.explain is not None:
        program = generate(options.explain)
        return print(execute(minimised(program)) or execute(program))
    if options.work:
        return batches.work(options.work, lambda seed: "agrees" if execute(generate(seed)) is None else "differs")
    failures, start = 0, time.monotonic()
    for report in run(range(options.seed, options.seed + options.count)):
        failures += 1
        print(report, end="\n\n", flush=True)
    print(f"{options.count} kernels, {failures} failed, {time.monotonic() - start:.0f} s")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
