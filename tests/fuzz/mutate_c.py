"""Mangled programs in Triton-C: `python tests/fuzz/campaign.py c-mutants` makes as many as one likes.

Each must compile or raise an exception that shows a place; none may crash, hang, or meet a mistake of the compiler.
Some of what the front end takes goes through the rest, too. `--show SEED` prints a mutant.
"""

import argparse
import os
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import triton  # noqa: E402
import triton.c  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

TESTS = Path(__file__).parent.parent / "triton_c"
TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[A-Za-z_]\w*|\d[\w.]*|\.\.\.|[-+*/%&|^<>=!]=|<<=?|>>=?|&&|\|\||\+\+|--|.",
    re.S,
)
COMPILED = 8  # one in so many of those that the front end takes goes all the way


@cache
def corpus():
    """The programs of the tests: files, and texts in Python."""
    texts = [file.read_text() for file in sorted(TESTS.glob("mistakes/*.tc"))]
    for file in sorted(TESTS.glob("test_*.py")):
        texts += re.findall(r'"""(.*?)"""', file.read_text(), re.S)
        texts += re.findall(r'"((?:kernel|int|float|const) .*?;.*?)"', file.read_text())
    return [text for text in texts if "(" in text and ";" in text]


@cache
def right():
    """Those of the programs that have no mistake: one in them is found deeper in the front end."""
    return [text for text in corpus() if outcome_of(lambda text=text: in_front(text))[1]]


@cache
def vocabulary():
    words = {word for text in corpus() for word in TOKEN.findall(text) if not word.isspace()}
    odd = TOKEN.findall("0-1;1e400;99999999999;0x7fffffffffffffff;2147483647;1048577[]{}@:newaxis...\0é,(void*)")
    odd += ["/*", "(((((", '"', "tunable", "const", "kernel", "return", "double"]
    return sorted(words) + odd * 3


def mutant(seed):
    random = np.random.default_rng(seed)
    texts = corpus()
    words = TOKEN.findall(random.choice(right() if random.random() < 0.85 else texts))
    for _ in range(random.geometric(0.5)):
        at, other = random.integers(len(words) + 1), random.integers(len(words) + 1)
        low, high = sorted((at, min(len(words), at + int(random.integers(1, 12)))))
        kind = random.integers(14)
        if kind == 0:
            del words[low:high]
        elif kind == 1:
            words[at:at] = words[low:high]
        elif kind == 2:
            words.insert(at, vocabulary()[random.integers(len(vocabulary()))])
        elif kind in (3, 4) and at < len(words):
            words[at] = vocabulary()[random.integers(len(vocabulary()))]
        elif kind == 5 and max(at, other) < len(words):
            words[at], words[other] = words[other], words[at]
        elif kind == 6:
            donor = TOKEN.findall(texts[random.integers(len(texts))])
            start = random.integers(len(donor) + 1)
            words[at:at] = donor[start : start + int(random.integers(1, 30))]
        elif kind == 7:
            words[at:at] = words[low:high] * int(2 ** random.integers(1, 11))
        elif kind > 8:
            replace_by_its_like(random, words)
        elif at < len(words) and words[at]:
            place = random.integers(len(words[at]))
            words[at] = words[at][:place] + chr(random.integers(1, 300)) + words[at][place + 1 :]
    return "".join(words)


def replace_by_its_like(random, words):
    """Another name for a name, another number for a number, another operator for an operator."""
    likes = [r"[A-Za-z_]\w*$", r"\d", r"[-+*/%&|^<>=!]+$"]
    like = likes[random.integers(3)]
    places = [place for place, word in enumerate(words) if re.match(like, word)]
    if places:
        place, other = (places[random.integers(len(places))] for _ in range(2))
        words[place] = words[other]


def prepare():
    """What need not happen in each process."""
    vocabulary()
    right()


def in_front(text):
    """The kernels that the front end takes, or the exception it raises."""
    kernels = list(triton.c.Program(text).kernels.values())
    for kernel in kernels:
        kernel.extents()
    return kernels


def compiled(kernel, target):
    types = {param.name: param.annotation_type for param in kernel.params if not param.is_constexpr}
    triton.compile(ASTSource(kernel, types), target)


def outcome_of(action):
    try:
        return "compiled", action()
    except triton.errors.InternalError as error:
        return f"bug: {error}", None
    except triton.CompilationError as error:
        shows = error.line is not None and error.column is not None and str(error)
        return type(error).__name__ if shows else f"bug: no place: {error}", None
    except (ValueError, UnicodeError) as error:  # what is no text, or no one kernel
        return type(error).__name__, None
    except Exception as error:
        return f"bug: {type(error).__name__}: {error}", None


def outcomes(seed, targets, begin):
    """Yields what comes of a mutant: of the front end, and of the rest on one target."""
    begin(targets[0])
    outcome, kernels = outcome_of(lambda: in_front(mutant(seed)))
    yield outcome
    if kernels and seed % COMPILED == 0:
        target = targets[seed // COMPILED % len(targets)]
        begin(target)
        yield outcome_of(lambda: [compiled(kernel, "cuda:90" if target == "ptx" else target) for kernel in kernels])[0]


def script(seed, target):
    """The text of a mutant."""
    return f'"""\n{mutant(seed)}\n"""\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, metavar="SEED", required=True)
    text = mutant(parser.parse_args().show)
    print(text)
    os.environ.setdefault("TRITON_TARGET", "cpu")
    in_front(text)


if __name__ == "__main__":
    main()
