"""The smallest part of a random kernel that is still wrong."""

import dataclasses

import numpy_language


def outcomes(launch, targets, begin):
    """Yields of each target whether it gives what NumPy does, or what differs in the smallest part that does."""
    for target in targets:
        yield from numpy_language.outcomes(smallest(launch, target), [target], begin)


def is_wrong(launch, target):
    """Does a target give something else than NumPy? Not where one of them raises an error."""
    try:
        expected = numpy_language.run(launch.source, launch.arrays, launch.arguments, launch.grid)
        return launch.verdict(launch.results(target), expected) != "agrees"
    except Exception:
        return False


def smallest(launch, target):
    """The launch without the lines that do not matter; all of it where it is right or raises an error."""
    before = None
    while launch.source != before and is_wrong(launch, target):
        before, k = launch.source, 0
        while k < launch.source.count("\n"):
            candidates = (dataclasses.replace(launch, source=source) for source in without(launch.source, k))
            found = next((candidate for candidate in candidates if is_wrong(candidate, target)), None)
            launch, k = (found, k) if found else (launch, k + 1)
    return launch


def without(source, k):
    """The sources without the statement of line k and its body, or with the body alone.

    What is added to in place stays: it ends loops, and keeps programs apart.
    """
    lines = source.splitlines()
    line, end = lines[k], k + 1
    if " += " in line or line.strip() == "pass":
        return
    while end < len(lines) and lines[end] and depth(lines[end]) > depth(line):
        end += 1
    bodies = [[], [" " * depth(line) + "pass"]] + [[inner[4:] for inner in lines[k + 1 : end]]] * (end > k + 1)
    for body in bodies:
        yield "\n".join([*lines[:k], *body, *lines[end:]]) + "\n"


def depth(line):
    return len(line) - len(line.lstrip())
