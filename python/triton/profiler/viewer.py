"""Trees of ``.hatchet`` files: ``tree, metrics = parse(["time/ms"], "run.hatchet"); print_tree(tree, metrics)``."""

import json
import re
import sys

_TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}


class Node:
    """A scope or kernel. ``metrics`` are of it and all below, ``values`` what `parse` was asked for, by name."""

    def __init__(self, data):
        self.name = data["frame"]["name"]
        self.children = [Node(child) for child in data["children"]]
        own = {name: value for name, value in data["metrics"].items() if isinstance(value, int | float)}
        self.metrics = own | {
            name: own.get(name, 0) + sum(child.metrics.get(name, 0) for child in self.children)
            for child in self.children
            for name in child.metrics
        }
        self.values = {}

    def nodes(self):
        """This one and all below, those above first."""
        yield self
        for child in self.children:
            yield from child.nodes()


def _rate(metrics, unit, name):
    """Of "gbyte/s" or "tflop16/s": what there is of the metric, by its time."""
    amount, time = metrics.get(name), metrics.get("time (ns)")
    return amount / _UNITS[unit] / (time * 1e-9) if amount and time else None


def _value(metrics, wanted):
    """Of one node; None where it has no such thing."""
    time = metrics.get("time (ns)")
    if found := re.fullmatch(r"(avg_)?time/(s|ms|us|ns)", wanted):
        runs = metrics.get("count", 1) if found[1] else 1
        return None if time is None or not runs else time / _TIMES[found[2]] / runs
    if found := re.fullmatch(r"([kmgtp]?)(flop\d*|byte)/s", wanted):
        kind = found[2]
        return _rate(metrics, found[1], "bytes" if kind == "byte" else kind.replace("flop", "flops"))
    return metrics.get(wanted)


def read(filename):
    """The root of a file's tree, and its devices."""
    with open(filename) as file:
        root, *devices = json.load(file)
    return Node(root), devices[0] if devices else {}


def parse(metrics, filename, include=None, exclude=None, threshold=None):
    """The tree of a file, and the names of the metrics that some node has.

    :param metrics: "time/ms", "avg_time/us", "gbyte/s", "tflop16/s", "count", or a name that the program gave.
    :param include: a regular expression: only nodes whose name it finds, what is above them and below.
    :param exclude: one for what is left out, with what is below.
    :param threshold: only nodes whose first metric is more than this part of the root's.
    """
    root, _ = read(filename)
    known = {name for node in root.nodes() for name in node.metrics}
    for node in root.nodes():
        node.values = {name: _value(node.metrics, name) for name in metrics}
    there = [name for name in metrics if any(node.values[name] is not None for node in root.nodes())]
    unknown = [name for name in metrics if not re.search(r"/(s|ms|us|ns)$", name) and name not in known]
    if unknown:
        raise ValueError(f"{filename} has no metric {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    least = threshold * (root.values[there[0]] or 0) if threshold and there else None
    _keep(root, include, exclude, least, there)
    return root, there


def _keep(node, include, exclude, least, metrics):
    """Leave out children; whether the node itself is wanted, for itself or for what is below."""
    is_found = include is None or re.search(include, node.name) is not None
    below = None if is_found else include
    node.children = [
        child
        for child in node.children
        if not (exclude and re.search(exclude, child.name))
        and (least is None or (child.values[metrics[0]] or 0) > least)
        and _keep(child, below, exclude, least, metrics)
    ]
    return is_found or bool(node.children)


def print_tree(tree, metrics, depth=100, format=None, print_sorted=False, file=None):
    """Each node on a line, the values of `metrics` in front of its name.

    :param format: None; frames of Python's stack, which it would shorten, are not recorded.
    :param print_sorted: those with more of the first metric first.
    """
    file = file or sys.stdout

    def show(node, indent, level):
        values = " ".join("-" if node.values[name] is None else f"{node.values[name]:.3f}" for name in metrics)
        print(f"{indent}{values} {node.name}", file=file)
        if level < depth:
            children = node.children
            if print_sorted and metrics:
                children = sorted(children, key=lambda child: -(child.values[metrics[0]] or 0))
            for child in children:
                show(child, f"{indent}  ", level + 1)

    print(" ".join(metrics), file=file)
    show(tree, "", 0)


def main(arguments=None):
    """``python -m triton.profiler.viewer -m time/ms run.hatchet``."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="proton-viewer")
    parser.add_argument("files", nargs="+")
    parser.add_argument("-m", "--metrics", default="time/ms", help="separated by commas")
    parser.add_argument("-i", "--include")
    parser.add_argument("-e", "--exclude")
    parser.add_argument("-t", "--threshold", type=float)
    parser.add_argument("-d", "--depth", type=int, default=100)
    parser.add_argument("--print-sorted", action="store_true")
    asked = parser.parse_args(arguments)
    for path in asked.files:
        tree, metrics = parse(asked.metrics.split(","), path, asked.include, asked.exclude, asked.threshold)
        print_tree(tree, metrics, asked.depth, print_sorted=asked.print_sorted)


if __name__ == "__main__":
    main()
