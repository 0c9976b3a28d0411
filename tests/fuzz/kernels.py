"""Random kernels, compared with NumPy: `python tests/fuzz/campaign.py kernels` runs as many as one likes.

`--explain SEED` shows what is wrong with one, and the smallest part of it that is wrong, on the target that
TRITON_TARGET names.
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from generate import generate  # noqa: E402
from harness import DTYPES, Array, Buffer, define, padding  # noqa: E402

import triton  # noqa: E402

FINE = AGREES, OUT_OF_RESOURCES = "agrees", "OutOfResources"


def execute(program):
    """AGREES when every output does with the reference, else what differs and the kernel's source."""
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
                    return f"differs: {program.name(i)} of program {pid}: {report}\n{launch}\n{source}"
    except triton.OutOfResources:  # a scan in 8 warps may want more shared memory than there is
        return OUT_OF_RESOURCES
    except Exception as error:
        return f"differs: {type(error).__name__}: {error}\n{launch}\n{source}"
    return AGREES


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
            if expected.dtype.kind == "f":
                near_limit = np.abs(reference.wide) + 1.5 * reference.error >= np.finfo(expected.dtype).max
                same |= np.isinf(actual) & (np.sign(actual) == np.sign(reference.wide)) & near_limit
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
        if execute(candidate) not in FINE:
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


def prepare():
    """What need not happen in each process."""
    import operations  # noqa: F401
    import torch  # noqa: F401


def outcomes(seed, targets, begin):
    """Yields what comes of a kernel on each target."""
    for target in targets:
        begin(target)
        os.environ["TRITON_TARGET"] = target
        yield execute(generate(seed))


def script(seed, target):
    """What shows the failure of a kernel."""
    program = generate(seed)
    results = program.run(0)
    shown = program.source([results[i] for i in program.outputs])
    return f"# TRITON_TARGET={target} python tests/fuzz/kernels.py --explain {seed}\n{shown}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--explain", type=int, metavar="SEED", required=True)
    program = generate(parser.parse_args().explain)
    print(execute(minimised(program)))


if __name__ == "__main__":
    main()
