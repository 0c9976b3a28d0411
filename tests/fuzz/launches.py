"""Launches of random kernels on several targets, whose results have to be the same, bit by bit or within bounds."""

import argparse
import functools
import os
from dataclasses import dataclass

import numpy as np
import numpy_language
import smallest
from harness import Buffer, define, padding

import triton

LARGE = 0.05  # share of kernels with large tiles


class Chooser:
    """Makes the random choices of a seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, probability):
        return self.random.random() < probability

    def is_large(self):
        """Is this one of the few kernels whose tiles take all registers that there are?"""
        return self.chance(LARGE)


@dataclass
class Launch:
    """Of the function `kernel` of a source: its arrays by the names of its parameters, then the other arguments."""

    source: str
    arrays: dict
    arguments: list
    grid: int | tuple
    options: dict
    padding: str | None  # what a simulator fills padding with, if not with what comes
    bounds: dict | None = None  # name -> by how much its elements may be off; others may not

    @functools.cached_property
    def kernel(self):
        return define(self.source)["kernel"]

    def results(self, target):
        """Name -> values of every array afterwards."""
        os.environ["TRITON_TARGET"] = target
        buffers = {name: Buffer(array) for name, array in self.arrays.items()}
        grid = self.grid if isinstance(self.grid, tuple) else (self.grid,)
        with padding(self.padding):
            self.kernel[grid](*(b.argument for b in buffers.values()), *self.arguments, **self.options)
        return {name: buffer.host().values for name, buffer in buffers.items()}

    def outcomes(self, expected, targets, begin):
        """Yields whether each target gives what is expected of it, or what differs."""
        for target in targets:
            begin(target)
            try:
                found = self.results(target)
            except triton.OutOfResources:
                yield "OutOfResources"
            except Exception as error:
                yield self.raised(error)
            else:
                yield self.verdict(found, expected)

    def verdict(self, found, expected):
        differing = {
            name: (found[name] != values) & ((found[name] == found[name]) | (values == values))  # NaNs are alike
            for name, values in expected.items()
        }
        for name, bound in (self.bounds or {}).items():
            with np.errstate(invalid="ignore"):
                differing[name] &= ~(np.abs(found[name] - expected[name]) <= bound)
        wrong = [f"{each.sum()} of {each.size} of {name}" for name, each in differing.items() if each.any()]
        return f"differs: {', '.join(wrong)}\n{self.about()}" if wrong else "agrees"

    def raised(self, error, where=""):
        return f"differs: {where}{type(error).__name__}: {error}\n{self.about()}"

    def about(self):
        return f"{self.options}, arguments {self.arguments}, grid {self.grid}, padding {self.padding}\n{self.source}"


def indented(lines):
    return [f"    {line}" for line in lines]


def fuzzer(generator, file):
    """What tests/fuzz/campaign.py asks of a module whose kernels are compared with NumPy, and what explains one."""

    def outcomes(seed, targets, begin):
        """Yields whether each target gives what NumPy does, or what differs."""
        begin(targets[0])
        yield from numpy_language.outcomes(generator(seed).launch(), targets, begin)

    def prepare():
        """What need not happen in each process."""
        import torch  # noqa: F401

    def script(seed, target):
        """What shows the failure of a kernel."""
        name = os.path.basename(file)
        return f"# python tests/fuzz/{name} --explain {seed} --targets {target}\n{generator(seed).source()}"

    def explained(seed, targets, begin):
        """The same as `outcomes`, of the smallest part that is wrong."""
        yield from smallest.outcomes(generator(seed).launch(), targets, begin)

    return outcomes, prepare, script, explained


def reference_fuzzer(generator, file):
    """The same of a module whose generators say what to expect: `launch()`, and behind that `expected`."""

    def outcomes(seed, targets, begin):
        """Yields whether each target gives what is expected, or what differs."""
        begin(targets[0])
        made = generator(seed)
        launch = made.launch()
        yield from launch.outcomes(made.expected, targets, begin)

    def prepare():
        """What need not happen in each process."""
        import torch  # noqa: F401

    def script(seed, target):
        """What shows the failure of a kernel."""
        name = os.path.basename(file)
        return f"# python tests/fuzz/{name} --explain {seed} --targets {target}\n{generator(seed).launch().source}"

    return outcomes, prepare, script


def explain(outcomes, targets, about):
    """Prints what comes of the seed that the command line names on each target, and its kernel where that is wrong."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--explain", type=int, metavar="SEED", required=True)
    parser.add_argument("--targets", nargs="+", default=targets)
    options = parser.parse_args()
    begun = []
    for outcome in outcomes(options.explain, options.targets, begun.append):
        print(f"{begun[-1]}: {outcome}")
