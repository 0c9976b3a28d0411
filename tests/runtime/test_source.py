"""Where the source of a kernel is found, and what a kernel looks like from outside."""

import copy
import functools
import inspect
import linecache
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def documented(x, y: tl.int32, BLOCK: tl.constexpr = 8):
    """Adds nothing."""
    tl.store(x, y)


def run(kernel):
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    return out[0]


def define(source, name, file=None):
    if file:
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = {"triton": triton, "tl": tl}
    exec(compile(source, file or "<nowhere>", "exec"), namespace)
    return namespace[name]


def test_a_kernel_looks_like_its_function():
    assert documented.__name__ == "documented"
    assert documented.__qualname__ == "documented"
    assert documented.__module__ == __name__
    assert documented.__doc__ == "Adds nothing."
    assert str(inspect.signature(documented)).startswith("(x, y: triton.language.int32, BLOCK: ")
    assert documented.arg_names == ["x", "y", "BLOCK"]
    assert documented.constexprs == [2]
    text = pydoc.render_doc(documented, renderer=pydoc.plaintext)
    assert "documented(x, y" in text
    assert "Adds nothing." in text
    assert documented.src.startswith("def documented(x, y: tl.int32, BLOCK: tl.constexpr = 8):\n")


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(documented)) is documented
    assert copy.deepcopy(documented) is documented
    assert pickle.loads(pickle.dumps(Holder.plain)) is Holder.plain


def test_positions_are_those_of_the_file():
    tree = documented.parse()
    assert documented.parse() is tree
    lines = Path(__file__).read_text().splitlines()
    assert lines[tree.lineno - 1].startswith("def documented")
    store = tree.body[1].value
    assert lines[store.lineno - 1][store.col_offset : store.end_col_offset] == "tl.store(x, y)"


class Holder:
    @triton.jit
    def plain(x):
        tl.store(x, 3)

    @staticmethod
    @triton.jit
    def static(x):
        """A text
        that is indented less."""
        tl.store(x, 4)

    @triton.jit
    @staticmethod
    def inner_static(x):
        tl.store(x, 5)


def test_kernels_in_classes_and_functions():
    assert run(Holder.plain) == run(Holder().plain) == 3
    assert run(Holder.static) == run(Holder().static) == 4
    assert run(Holder.inner_static) == 5

    if True:

        @triton.jit(noinline=False)
        def nested(x):
            tl.store(x, 6)

        assert run(nested) == 6
    tree = nested.parse()
    assert Path(__file__).read_text().splitlines()[tree.lineno - 1].startswith("        def nested")
    assert tree.col_offset == 8


def other_decorator(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)

    return wrapper


@triton.jit
@other_decorator
def wrapped(x):
    tl.store(x, 7)


def test_decorators_stack():
    assert run(wrapped) == 7
    assert run(triton.jit(triton.jit(wrapped))) == 7


def test_one_line_definitions():
    kernel = define("@triton.jit\ndef short(x): tl.store(x, 8)\n", "short", "<short>")
    assert run(kernel) == 8


def test_notebook_cells():
    """A notebook gives each cell a file name of its own, and its text to linecache."""
    source = "import math\n\n@triton.jit\ndef cell(x):\n    tl.store(x, 9)\n"
    assert run(define(source, "cell", "<ipython-input-1-abc>")) == 9
    assert run(define(source.replace("9", "10"), "cell", "<ipython-input-2-abc>")) == 10


def test_no_source():
    kernel = define("@triton.jit\ndef lost(x):\n    tl.store(x, 1)\n", "lost")
    with pytest.raises(ValueError, match="the source of kernel 'lost' cannot be read .* linecache"):
        run(kernel)


@pytest.mark.parametrize("clear", [False, True])
def test_a_file_that_changes_later(tmp_path, clear):
    """A function is what it was when it was imported, as everywhere in Python."""
    file = tmp_path / "later.py"
    text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef later(x):\n    tl.store(x, 1)\n"
    file.write_text(text)
    namespace = {}
    exec(compile(text, str(file), "exec"), namespace)
    file.write_text(text.replace("tl.store(x, 1)", "tl.store(x, 2)"))
    if clear:
        linecache.clearcache()
    assert run(namespace["later"]) == 1


def test_a_file_that_changed(tmp_path):
    file = tmp_path / "changing.py"
    text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef changing(x):\n    tl.store(x, 1)\n"
    file.write_text(text)
    namespace = {}
    file.write_text(text.replace("changing(x)", "other(y, z)"))
    exec(compile(text, str(file), "exec"), namespace)
    with pytest.raises(ValueError, match="changed since it was imported"):
        run(namespace["changing"])


LAYOUTS = {
    "closing brackets as far out as def": """
@triton.jit
def kernel(
    x,
    value: tl.constexpr = 3,
):
    tl.store(
        x,
        value
)
after = 1
""",
    "a text farther out than def": """
if True:
    @triton.jit
    def kernel(x):
        tl.store(x, 3)
        '''
text
    # no comment
'''
    after = 1
""",
    "comments farther out than the body": """
@triton.jit
# between
def kernel(x):
# outside

    value = 3
  # half outside
    if value:
# outside
        tl.store(x, value)
# after
""",
    "lines that go on": """
@triton.jit
def kernel(x): \\
tl.store(x, \\
3)
after = 1
""",
    "code that is never reached": """
@triton.jit
def kernel(x):
    tl.store(x, 3)
    return
    tl.store(x, [
0,
1
])
after = 1
""",
    "a decorator of many lines": """
@triton.jit(
    repr=lambda specialization: '''
def kernel'''.strip()[4:],
)
def kernel(x):
    tl.store(x, 3)
def after():
    pass
""",
    "several statements in a line": "@triton.jit\ndef kernel(x): value = 3; tl.store(x, value)\nafter = 1",
    "the last line of the text": "@triton.jit\ndef kernel(x):\n\ttl.store(x, 3)",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_where_a_kernel_ends(layout, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect", None)  # to import it is an error
    kernel = define(LAYOUTS[layout], "kernel", f"<{layout}>")
    assert run(kernel) == 3
    assert "after" not in kernel.src


def test_sources_are_those_that_inspect_finds():
    kernels = [value for value in vars(tl.standard).values() if isinstance(value, triton.JITFunction)]
    assert len(kernels) > 10
    for kernel in (*kernels, documented, Holder.plain, Holder.static, wrapped):
        assert (kernel.source_lines, kernel.first_line) == inspect.getsourcelines(kernel.fn)
        assert kernel.source_file == inspect.getsourcefile(kernel.fn)


def test_a_lambda_is_told_wherever_it_stands():
    try: kernel = triton.jit(lambda x: None)  # noqa: E701  # fmt: skip
    finally: kernel_is_made = True  # noqa: E701  # fmt: skip
    with pytest.raises(TypeError, match="takes a function made by def, not a lambda"):
        kernel.source  # noqa: B018
    assert kernel_is_made


@pytest.mark.parametrize("thing", [3, "text", int, len, np.add, functools.partial(run)])
def test_things_that_are_no_functions(thing):
    with pytest.raises(TypeError, match="@triton.jit takes a function made by def"):
        triton.jit(thing)


def test_functions_that_cannot_be_kernels():
    with pytest.raises(TypeError, match="not a lambda"):
        run(triton.jit(lambda x: None))

    async def waits(x):
        pass

    with pytest.raises(TypeError, match="'waits' is an async function"):
        run(triton.jit(waits))


def test_a_launch_needs_neither_numpy_nor_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "import triton\n"
        "@triton.jit\n"
        "def kernel(n): pass\n"
        "kernel[(1,)](5)\n"
        "assert not {'numpy', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, program], check=True)
