"""The Python in README.md and docs/ runs, and the reference is what the docstrings say."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(path.read_text())
]


@pytest.mark.host
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_in_documents_runs(document, tmp_path, monkeypatch):
    """All blocks of a document are one program: a kernel needs a file for its source. It chooses its target itself."""
    monkeypatch.delenv("TRITON_TARGET")
    program = tmp_path / f"{document.stem}.py"
    program.write_text("\n\n".join(BLOCK.findall(document.read_text())))
    runpy.run_path(str(program))


def test_language_reference_is_up_to_date():
    subprocess.run([sys.executable, ROOT / "scripts" / "language_reference", "--check"], check=True)


@pytest.mark.slow
@pytest.mark.host
def test_site(tmp_path):
    """Every page is made without a warning, fetches nothing from elsewhere, and the search knows functions."""
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(module)
    subprocess.run([sys.executable, ROOT / "scripts" / "site", tmp_path], check=True)
    pages = {path.stem: path.read_text() for path in (tmp_path / "html").rglob("*.html")}
    assert {"index", "language", "host", "design", "01_vector_add"} <= pages.keys()
    for text in pages.values():
        assert not re.search(r"<(?:script|img|link)[^>]*(?:src|href)=\"(?:https?:)?//", text)
    assert "<math" in pages["12_convolutions"] and "cumsum" in (tmp_path / "html" / "searchindex.js").read_text()


def test_notebooks(tmp_path):
    """Each notebook is the tutorial, cell by cell, and its code still parses."""
    import json

    subprocess.run([sys.executable, ROOT / "scripts" / "notebooks", tmp_path], check=True)
    notebooks = sorted(tmp_path.glob("*.ipynb"))
    assert len(notebooks) == len(list((ROOT / "tutorials").glob("[0-9]*.py")))
    for path in notebooks:
        cells = json.loads(path.read_text())["cells"]
        assert cells[0]["cell_type"] == "markdown" and "".join(cells[0]["source"]).startswith("# ")
        for cell in cells:
            if cell["cell_type"] == "code":
                compile("".join(cell["source"]), path.name, "exec")


@pytest.fixture(params=sorted((ROOT / "tutorials").glob("[0-9]*.py")), ids=lambda path: path.stem)
def lesson(request, target):
    pytest.importorskip("torch")
    if target.startswith("sim") and "triton.autotune" in request.param.read_text():
        pytest.skip("it has large tiles for CPUs where the arrays are on one, and to time a simulator says nothing")
    return request.param


@pytest.mark.slow
def test_checked_lesson(lesson):
    """Nothing that a right kernel does, or the library that it uses, is taken for an error."""
    program = f"import sys; sys.path.insert(0, {str(lesson.parent)!r}); assert __import__({lesson.stem!r}).check()"
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"TRITON_DEBUG": "1"})


def test_tutorial(lesson):
    """The checks of each tutorial hold; its benchmark is left out."""
    sys.path.insert(0, str(lesson.parent))
    try:
        assert __import__(lesson.stem).check()
    finally:
        sys.path.remove(str(lesson.parent))
