"""The mistakes people make most: each file in cases/ makes one, and the .txt beside it is what they read.

`pytest tests/errors --update` writes the texts anew; read the difference before you commit it.
"""

import io
import runpy
from contextlib import redirect_stdout
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))


def message(case):
    """The exception of a case, as the last lines of a traceback show it, its file named without its folder."""
    try:
        with redirect_stdout(io.StringIO()):
            runpy.run_path(str(case))
    except Exception as error:
        kind = type(error)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        return f"{name}: {error}\n".replace(str(case), case.name)
    pytest.fail(f"{case.name} raises nothing")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Messages name the target."""
    monkeypatch.setenv("TRITON_TARGET", "cpu")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_message(case, request):
    text, file = message(case), case.with_suffix(".txt")
    if request.config.getoption("--update"):
        file.write_text(text)
    assert file.exists(), f"{file.name} is missing; --update writes it:\n{text}"
    assert text == file.read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_message_says_where_and_what_to_do(case):
    """Compile-time mistakes show the line with a caret; every one says what to do."""
    text = message(case)
    if text.startswith("triton.errors.") and not text.startswith("triton.errors.OptionError"):
        assert f"{case.name}:" in text and "^" in text
        assert "\nhelp: " in text or "static assertion failed" in text
    assert len(text.splitlines()) < 24 and all(len(line) < 260 for line in text.splitlines())


def test_there_are_enough():
    assert len(CASES) >= 100
