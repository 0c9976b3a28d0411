"""Every function of the language has an example in docs/examples.txt, and the examples say what happens."""

import ast
import doctest
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^\[(\w+)\](.*)\n((?:(?!\[\w+\]).*\n?)*)", re.MULTILINE)
EXAMPLES = {name: (note.strip(), text.strip()) for name, note, text in SECTION.findall(
    (ROOT / "docs/examples.txt").read_text().partition("\n\n")[2]
)}  # fmt: skip


_, LIBDEVICE = EXAMPLES.pop("libdevice_functions")


def published():
    text = (ROOT / "docs/language.md").read_text().partition("## Programs and loops")[2]
    return re.findall(r"^### (\w+)$", text, re.MULTILINE)


def literal(text):
    try:
        return eval(text, {"nan": float("nan")})
    except Exception:
        return None


def array(value):
    """As a list stands for one: of int32, or of float32 where there is a point."""
    made = np.array(value)
    return made.astype(np.float32 if made.dtype.kind == "f" else np.int32)


def offsets(shape):
    parts = []
    for axis, extent in enumerate(shape):
        index = ", ".join(":" if each == axis else "None" for each in range(len(shape)))
        parts.append(f"tl.arange(0, {extent})[{index}] * {int(np.prod(shape[axis + 1 :]))}")
    return " + ".join(parts) or "0"


class Example:
    """The kernel that an example is, with its arrays and what they have to hold in the end."""

    def __init__(self, text):
        self.outside, self.body, self.arrays, self.expected, self.grid = [], [], {}, {}, 1
        for line in text.splitlines():
            code, _, comment = line.partition("  # ")
            name, _, value = code.partition(" = ")
            is_outside = self.outside and not self.body and not self.arrays and line.startswith((" ", "def "))
            if line.startswith(("@", "from ")) or is_outside:
                self.outside.append(line)
            elif name == "grid":
                self.grid = int(value)
            elif name.isidentifier() and value.startswith("["):
                self.add_input(name, array(ast.literal_eval(value)))
            elif (known := literal(comment)) is None or line.startswith(" "):
                self.body.append(line)
            elif code in self.arrays:
                self.expected[code] = array(known)
            else:
                self.add_result(code, known)

    def add_input(self, name, value):
        pointer = name if name.endswith("_ptr") else f"{name}_in"
        self.arrays[pointer] = value
        if pointer != name:
            self.body.append(f"{name} = tl.load({pointer} + {offsets(value.shape)})")

    def add_result(self, code, known):
        name, value = f"result_{len(self.expected)}", np.array(known)
        self.arrays[name] = np.zeros(value.shape or 1, np.float32 if value.dtype.kind == "f" else np.int64)
        self.expected[name] = value.reshape(self.arrays[name].shape)
        self.body.append(f"tl.store({name} + {offsets(value.shape)}, {code})")

    def kernel(self, folder):
        head = ["import triton", "import triton.language as tl", *self.outside, "@triton.jit"]
        body = [f"    {line}" for line in self.body]
        path = folder / "example.py"
        path.write_text("\n".join([*head, f"def example({', '.join(self.arrays)}):", *body]) + "\n")
        return runpy.run_path(str(path))["example"]


def check(example, kernel):
    kernel[(example.grid,)](*example.arrays.values())
    for name, expected in example.expected.items():
        np.testing.assert_allclose(example.arrays[name], expected, rtol=1e-6, atol=1e-6, err_msg=str(example.body))


def test_every_function_has_an_example():
    assert set(EXAMPLES) == {*published(), "libdevice"}


def lines_of_libdevice():
    return [line for line in LIBDEVICE.splitlines() if "  # " in line]


def test_every_function_of_libdevice_has_an_example():
    reference = (ROOT / "docs/language.md").read_text().partition("## libdevice")[2]
    functions = set(re.findall(r"^\| `(\w+)\(", reference, re.MULTILINE)) & set(dir(libdevice))
    assert (
        len(functions) > 150 and {re.match(r"libdevice\.(\w+)", line)[1] for line in lines_of_libdevice()} == functions
    )


@pytest.mark.host
@pytest.mark.parametrize("first", range(0, len(lines_of_libdevice()), 50))
def test_functions_of_libdevice(first, tmp_path):
    head = "from triton.language.extra import libdevice\n"
    example = Example(head + "\n".join(lines_of_libdevice()[first : first + 50]))
    check(example, example.kernel(tmp_path))


@pytest.mark.host
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path, capsys):
    note, text = EXAMPLES[name]
    assert name in text, f"the example of {name} does not use it"
    if text.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(text + "\n", {"tl": tl, "triton": triton}, name, None, None)
        assert doctest.DocTestRunner().run(test).failed == 0
        return
    example = Example(text)
    kernel = example.kernel(tmp_path)
    if note == "on GPUs":
        source = ASTSource(kernel, dict.fromkeys(example.arrays, "*i32"), {})
        assert "add.s32" in triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"]
        return
    check(example, kernel)
