"""docs/extending.md, followed to the letter: its changes are made in a copy of the repository, and that is tested."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = r"```\w+\n(.*?)```\n"
CHANGE = re.compile(rf"In\s`([^`]+)`,\s(before|behind)\s`([^`]+)`:\n\n{BLOCK}", re.DOTALL)
FILE = re.compile(rf"New\sfile\s`([^`]+)`:\n\n{BLOCK}", re.DOTALL)


def sections():
    """Title of a section -> its changes, (file, before or behind, the beginning of a line, text), and its new files."""
    parts = re.split(r"^## (.*)\n", (ROOT / "docs" / "extending.md").read_text(), flags=re.MULTILINE)
    return {
        title: (CHANGE.findall(text), FILE.findall(text)) for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def change(file, side, beginning, text):
    """The text goes before, or behind, the first line that begins so."""
    lines = file.read_text().splitlines(True)
    number = next(i for i, line in enumerate(lines) if line.lstrip().startswith(beginning.lstrip()))
    apart = "\n\n" if file.suffix == ".py" else ""
    lines.insert(number + (side == "behind"), text + apart)
    file.write_text("".join(lines))


def test_how_many_places_there_are():
    """An operation is five, a pass two, a builtin three; with their tests, which a pass and a builtin have besides."""
    places = {title: len(changes) + len(files) for title, (changes, files) in sections().items()}
    assert places == {"An operation on elements": 5, "A pass": 3, "A builtin": 4, "A target": 0}


@pytest.mark.slow
@pytest.mark.host
def test_following_it(tmp_path):
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
        copy.chmod((ROOT / name).stat().st_mode)
    tests = []
    for changes, files in sections().values():
        for name, side, beginning, text in changes:
            change(tmp_path / name, side, beginning, text)
        for name, text in files:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
            tests += [name] if name.endswith(".py") else []
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "python"), "TRITON_BUILD": "dev", "TRITON_WERROR": "1"}

    def run(*command, **variables):
        done = subprocess.run(command, cwd=tmp_path, env=environment | variables, capture_output=True, text=True)
        assert not done.returncode, done.stdout + done.stderr

    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    python = sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"
    texts = "tests/ir/test_ir_text.py", "-k", "negations or parse or verify"
    run(*python, "tests/frontend/test_language_host.py", *tests)
    run(*python, *texts)
    run(*python, "--target", "sim:90", *tests)
    run("scripts/language_reference")
    run("scripts/language_reference", "--check")
