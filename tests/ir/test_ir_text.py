"""IR text in, a pass, IR text out: each .tt file beside this one is such a test.

    // pass: canonicalize            a pass, `pipeline`, `parse`, `verify` or `axis_info`
    // What it is about.
    ...the IR...
    // expected
    ...the IR after the pass; of `parse` the error, of `verify` the IR with its failures marked...

`pytest --update` writes what comes out into the files and leaves the difference to the reviewer.
"""

import random
import re
from pathlib import Path

import pytest

from triton import _C

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.tt"))
EXPECTED = "// expected\n"


def read(path):
    given, _, expected = path.read_text().partition(EXPECTED)
    header, body = re.match(r"((?://[^\n]*\n)*)(.*)", given, re.S).groups()
    return header, re.match(r"// pass: (\w+)", header)[1], body, expected


def outcome(name, text):
    if name == "parse":
        try:
            return _C._parse_print(text)
        except ValueError as error:
            return f"{error}\n"
    if name == "verify":
        return _C._verify(text) or "fine\n"
    return _C._axis_info(text) if name == "axis_info" else _C._run_pass(text, name)


@pytest.mark.parametrize("path", FILES, ids=[f"{f.parent.name}/{f.stem}" for f in FILES])
def test_file(path, request):
    header, name, body, expected = read(path)
    result = outcome(name, body)
    if request.config.getoption("--update"):
        path.write_text(f"{header}{body}{EXPECTED}{result}")
        return
    assert result == expected, f"before:\n{body}\nafter {name}:\n{result}"


@pytest.mark.parametrize("path", FILES, ids=[f"{f.parent.name}/{f.stem}" for f in FILES])
def test_printing_and_parsing_are_inverse(path):
    header, name, body, expected = read(path)
    for text in (body, expected):
        try:
            printed = _C._parse_print(text)
        except ValueError:
            continue
        assert _C._parse_print(printed) == printed
        located = _C._parse_print(text, True)
        assert _C._parse_print(located, True) == located


def test_files_are_short():
    assert all(len(path.read_text().splitlines()) <= 150 for path in FILES)


def bodies():
    return [read(path)[2] for path in FILES]


def mangle(text):
    """Some random change of bytes or of tokens."""
    kind = random.randrange(6)
    at = random.randrange(len(text))
    if kind == 0:
        return text[:at] + random.choice('%@{}()[]<>:,=-."^x019 \n\\#/ae') + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at + random.randint(1, 8) :]
    tokens = re.findall(r"\s+|[%@]?[\w.]+|.", text)
    i, j = random.randrange(len(tokens)), random.randrange(len(tokens))
    if kind == 2:
        tokens[i] = tokens[j]
    elif kind == 3:
        tokens.insert(i, tokens[j])
    elif kind == 4:
        del tokens[i : i + random.randint(1, 4)]
    else:
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


def mutate(seed, count):
    """Feeds mangled programs to the parser, and what it takes to verifier and printer: errors, but no crash."""
    random.seed(seed)
    texts, parsed, verified = bodies(), 0, 0
    for _ in range(count):
        text = random.choice(texts)
        for _ in range(random.randint(1, 3)):
            text = mangle(text) if text else "x"
        try:
            printed = _C._parse_print(text)
        except ValueError:
            continue
        parsed += 1
        assert _C._parse_print(printed) == printed
        if _C._verify(text) is None:
            verified += 1
            _C._run_pass(text, "pipeline")
            _C._axis_info(text)
    return parsed, verified


@pytest.mark.parametrize("seed", range(5))
def test_mangled_text(seed):
    parsed, verified = mutate(seed, 1000)
    assert parsed > 20 and verified > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_mangled_text_at_length(seed):
    mutate(seed, 5000)
