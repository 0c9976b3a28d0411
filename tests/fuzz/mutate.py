"""Feeds mangled kernels to the compiler: `python tests/fuzz/mutate.py --count 20000`.

Each must compile or raise an exception; none may crash, hang, or meet a mistake of the compiler (InternalError).
They are compiled, not run: what a mangled kernel would store where is nobody's business. Batches run in processes of
their own, so that a crash is seen, reported with its source, and minimised. `--show SEED` prints one,
`--run SEED` compiles it.
"""

import argparse
import ast
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import batches  # noqa: E402
import corpus  # noqa: E402
import mutations  # noqa: E402
from harness import define  # noqa: E402

SECONDS, MEMORY = 10, 2 << 30  # that a mutant may take


def make(seed):
    """The source and arguments of one mutant."""
    random = np.random.default_rng(seed)
    original = corpus.pick(random)
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


def is_failure(outcome):
    return outcome.split()[0] in ("crash", "hangs", "bug")


def still_fails(source, seed):
    """Whether the source with the mutant's arguments fails in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(source)
        file.flush()
        return batches.fails(__file__, "--run", str(seed), "--source", file.name)


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


def run(seeds, tell=lambda report: None):
    """Counts of outcomes, and reports of failures, each told as it is found."""
    counts, reports = {}, []
    for seed, outcome in batches.outcomes(__file__, seeds):
        name = outcome.split()[0]
        counts[name] = counts.get(name, 0) + 1
        if is_failure(outcome):
            reports.append(report(seed, outcome, minimise=len(reports) < 10))
            tell(reports[-1])
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
        return batches.work(options.work, lambda seed: compile_mutant(*make(seed)), SECONDS, MEMORY)
    if options.show is not None:
        return print(report(options.show, "", minimise=False))
    if options.run is not None:
        source, positional, keywords = make(options.run)
        source = Path(options.source).read_text() if options.source else source
        return print(compile_mutant(source, positional, keywords))
    start = time.monotonic()
    counts, reports = run(range(options.seed, options.seed + options.count), lambda text: print(text, flush=True))
    print(f"{options.count} mutants, {len(reports)} failed, {time.monotonic() - start:.0f} s")
    print(*(f"{count:6} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])), sep="\n")
    return len(reports) > 0


if __name__ == "__main__":
    sys.exit(main())
