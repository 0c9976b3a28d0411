"""Mangled kernels for the compiler: `python tests/fuzz/campaign.py mutants` makes as many as one likes.

Each must compile or raise an exception; none may crash, hang, or meet a mistake of the compiler (InternalError).
They are compiled, not run: what a mangled kernel would store where is nobody's business. What one target compiles is
compiled for the others, too, "ptx" being a GPU of one of several generations. `--show SEED` prints the script of a
mutant, and `--minimise FILE` such a script with as few statements as still make it fail.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import corpus  # noqa: E402
import harvest  # noqa: E402
import mutations  # noqa: E402
from harness import define  # noqa: E402

import triton  # noqa: E402
from triton import _C  # noqa: E402

GPUS = ["cuda:75", "cuda:80", "cuda:89", "cuda:90", "cuda:90", "cuda:100", "cuda:120"]
GOES_ON = "compiled", "OutOfResources", "UnsupportedError"  # what other targets may say something else to


def prepare():
    """What need not happen in each process."""
    harvest.sources()


def make(seed):
    """The source of one mutant, and its positional arguments and keywords as texts of Python."""
    random = np.random.default_rng(seed)
    original = corpus.pick(random)
    positional, keywords = corpus.arguments(original)
    return mutations.mutant(random, original), *mutations.mutate_arguments(random, positional, keywords)


def outcomes(seed, targets, begin):
    """Yields what comes of a mutant on each target, as far as it gets."""
    source, positional, keywords = make(seed)
    targets = [*targets[seed % len(targets) :], *targets[: seed % len(targets)]]
    begin(targets[0])
    try:
        kernel = define(source, np=np)["kernel"]
        positional, keywords = [eval(x) for x in positional], {name: eval(x) for name, x in keywords.items()}
    except Exception as error:
        yield type(error).__name__
        return
    for target in targets:
        begin(target)
        outcome = compiled(kernel, positional, keywords, GPUS[seed % len(GPUS)] if target == "ptx" else target)
        yield outcome
        if outcome not in GOES_ON:
            return


def compiled(kernel, positional, keywords, target):
    """ "compiled", or the name of an exception; "bug" and more when the compiler is to blame."""
    is_gpu = target.startswith("cuda")
    os.environ["TRITON_TARGET"] = "cpu" if is_gpu else target
    try:
        code = kernel.warmup(*positional, grid=(1,), **keywords)
        if is_gpu:
            _C.compile(code.fn, code.src.entries(), code.info["options"], target)
    except triton.errors.InternalError as error:
        return f"bug: {error}"
    except triton.errors.OptionError as error:  # an AssertionError, too
        return type(error).__name__
    except (SystemError, AssertionError) as error:
        return f"bug: {type(error).__name__}: {error}"
    except Exception as error:
        return type(error).__name__
    return "compiled"


# ---- scripts --------------------------------------------------------------------------------------------------------

SCRIPT = """\
import numpy as np
import triton
import triton.language as tl

{source}

code = kernel.warmup({arguments})
"""
PTX = 'triton._C.compile(code.fn, code.src.entries(), code.info["options"], "{gpu}")\n'


def script(seed, target):
    """What compiles a mutant by itself."""
    source, positional, keywords = make(seed)
    named = [f"{name}={text}" for name, text in keywords.items()]
    text = SCRIPT.format(source=source, arguments=", ".join([*positional, "grid=(1,)", *named]))
    if target == "ptx":
        return text + PTX.format(gpu=GPUS[seed % len(GPUS)])
    return f'import os\n\nos.environ["TRITON_TARGET"] = "{target}"\n' + text


def fails(text):
    """Whether a script crashes, hangs or meets a mistake of the compiler."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text)
        file.flush()
        try:
            done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=30)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode not in (0, 1) or "InternalError" in done.stderr or "SystemError" in done.stderr


def minimised(text):
    """The script with as few statements as still make it fail."""
    again = fails(text)
    while again:
        again = False
        for candidate in with_a_statement_less(text):
            if fails(candidate):
                text, again = candidate, True
                break
    return text


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--minimise", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.show is not None:
        print(script(options.show, "cpu"))
    if options.minimise:
        print(minimised(options.minimise.read_text()))


if __name__ == "__main__":
    main()
