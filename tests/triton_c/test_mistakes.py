"""Mistakes in Triton-C: each .tc file in mistakes/ makes one, and the .txt beside it is what is read.

`pytest tests/triton_c --update` writes the texts anew; read the difference before you commit it.
"""

from pathlib import Path

import pytest

import triton
import triton.c
from triton.compiler import ASTSource

pytestmark = pytest.mark.host

CASES = sorted((Path(__file__).parent / "mistakes").glob("*.tc"))


def message(case):
    """What compiling all kernels of a file raises, its folder left out."""
    with pytest.raises(triton.CompilationError) as caught:
        program = triton.c.Program(case.read_text(), case)
        for kernel in program.kernels.values():
            types = {param.name: param.annotation_type for param in kernel.params if not param.is_constexpr}
            triton.compile(ASTSource(kernel, types), "cpu")
    return f"{caught.value}\n".replace(str(case), case.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_message(case, request):
    text, file = message(case), case.with_suffix(".txt")
    if request.config.getoption("--update"):
        file.write_text(text)
    assert file.exists(), f"{file.name} is missing; --update writes it:\n{text}"
    assert text == file.read_text()
    assert text.startswith(f"{case.name}:") and "^" in text


def test_most_say_what_to_do():
    texts = [case.with_suffix(".txt").read_text() for case in CASES]
    assert len(texts) >= 70 and sum("\nhelp: " in text for text in texts) > 0.7 * len(texts)
