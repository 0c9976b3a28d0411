"""The program is read once: of configurations that differ in the machine's options alone, while a kernel is tuned; of
variants that differ in what is known of arguments, in the background."""

import numpy as np
import pytest

import triton
import triton.language as tl
from triton._C import survey
from triton.compiler import ASTSource
from triton.runtime import background

pytestmark = pytest.mark.host
FACTOR = tl.constexpr(3)


@triton.jit
def scaled(x, BLOCK: tl.constexpr):
    return x * FACTOR + tl.zeros((BLOCK,), tl.float32)


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(n > 0, "n is not positive")
    x = tl.load(x_ptr + index, mask=index < n)
    tl.store(x_ptr + index, scaled(x, BLOCK), mask=index < n)


@pytest.fixture
def walks(monkeypatch):
    """The names of the kernels that were read, in order."""
    read, parse = [], triton.JITFunction.parse

    def counted(kernel):
        read.append(kernel.__name__)
        return parse(kernel)

    monkeypatch.setattr(triton.JITFunction, "parse", counted)
    return read


def build(kernel, block=64, target="cuda:90", **options):
    source = ASTSource(kernel, {"x_ptr": "*fp32", "n": "i32"}, {"BLOCK": block})
    return triton.compile(source, target=target, options=options)


VARIANTS = [{}, {"num_warps": 8}, {"num_stages": 5}, {"maxnreg": 64}]


def test_the_code_is_the_same(walks):
    alone = [build(scale, **options).asm["ptx"] for options in VARIANTS]
    each = len(walks) / len(VARIANTS)  # functions that it calls are read, too
    walks.clear()
    scale._share_walks(True)
    try:
        shared = [build(scale, **options) for options in VARIANTS]
        assert len(walks) == each > 1
        build(scale, block=128)
        build(scale, debug=True)
        assert len(walks) == 3 * each
    finally:
        scale._share_walks(False)
    assert [each.asm["ptx"] for each in shared] == alone
    assert all(each.timings["frontend"] == 0 for each in shared[1:])
    walks.clear()
    build(scale, num_warps=2)
    assert len(walks) == each


def test_places_stay(walks):
    """What a check says is the same text."""
    texts = []
    for wanted in (False, True):
        scale._share_walks(wanted)
        build(scale, debug=True)
        texts.append(build(scale, debug=True, num_warps=8).asm["ttir"])
    scale._share_walks(False)
    assert texts[0] == texts[1] and "n is not positive" in texts[1]


def test_programs_that_ask_for_the_number_of_warps(walks):
    @triton.jit
    def warps(x_ptr, n, BLOCK: tl.constexpr):
        tl.store(x_ptr, tl.extra.cuda.num_warps() + n)

    warps._share_walks(True)
    codes = [build(warps, num_warps=count).asm["ttir"] for count in (1, 2)]
    assert codes[0] != codes[1] and "value = 2" in codes[1] and walks


def test_programs_that_print_while_they_are_read(walks, capsys):
    @triton.jit
    def talks(x_ptr, n, BLOCK: tl.constexpr):
        tl.static_print("reading")
        tl.store(x_ptr, n)

    talks._share_walks(True)
    for count in (1, 2):
        build(talks, num_warps=count)
    assert capsys.readouterr().out.count("reading") == 2


def test_tuning_shares(walks):
    """On a target with warps; and nothing is kept when it is done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_TARGET", "sim:80")
        patch.setattr("triton.runtime.parallel.core_count", lambda: 1)
        kernel = triton.jit(scale.fn)
        configs = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (32, 64) for warps in (1, 2, 4)]
        tuner = triton.autotune(configs, key=["n"], do_bench=lambda launch, quantiles: [1.0])(kernel)
        x = np.ones(64, np.float32)
        tuner[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, 64)
        assert (x == 3).all()
        assert len(kernel.variants()) == 6
        shared = len(walks)
        walks.clear()
        kernel.warmup(x, 64, 32, num_warps=8, grid=(1,))
        assert shared == 2 * len(walks)


def test_surveys_share_with_what_is_compiled(walks):
    """So the compiler of a search does not read the program again."""
    counts = []
    for wanted in (False, True):
        kernel = triton.jit(scale.fn)
        kernel._share_walks(wanted)
        entries = ("*fp32", 16), ("i32", 16), tl.constexpr(64)
        for options in [{}], [{"num_warps": 8}]:
            survey(kernel, entries, {}, "cuda:90", (None, 64), (1, 1, 1), options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_TARGET", "cuda:90")
            kernel.warmup(np.dtype(np.float32), 64, 64, num_warps=8, grid=(1,))
        kernel._share_walks(False)
        counts.append(len(walks))
        walks.clear()
    alone, shared = counts
    assert alone >= 3 * shared > 0


# ---- in the background


def launch(kernel, n):
    """The variant of the launch, what it computed, and the background idle."""
    x = np.ones(256, np.float32)
    compiled = kernel[(1,)](x, n, BLOCK=256)
    assert background.wait() and (x[n:] == 1).all()
    return compiled, set(x[:n])


def new_scale():
    @triton.jit
    def scale(x_ptr, n, BLOCK: tl.constexpr):
        index = tl.arange(0, BLOCK)
        tl.store(x_ptr + index, scaled(tl.load(x_ptr + index), BLOCK), mask=index < n)

    return scale


def test_a_deep_program(walks, tmp_path, monkeypatch):
    """Its tile IR is as deep as it is itself."""
    lines = ["import triton", "import triton.language as tl", "", "@triton.jit", "def deep(x_ptr, n):", "    x = n"]
    lines += ["    if n == 0:", "        x = 1"]
    lines += [line for i in range(1, 400) for line in (f"    elif n == {i}:", f"        x = x * {i}")]
    (tmp_path / "deep_program.py").write_text("\n".join([*lines, "    tl.store(x_ptr, x)", ""]))
    monkeypatch.syspath_prepend(tmp_path)
    deep = __import__("deep_program").deep
    source = ASTSource(deep, {"x_ptr": "*i32", "n": "i32"})
    deep._share_walks(True)
    try:
        triton.compile(source, target="sim:90")
        read = len(walks)
        triton.compile(source, target="sim:90", options={"num_stages": 5})
        assert len(walks) == read > 0
    finally:
        deep._share_walks(False)


def test_variants_in_the_background_read_once(walks, monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    kernel = new_scale()
    launch(kernel, 160)
    read = len(walks)
    for n in (24, 20, 33):
        launch(kernel, n)
    assert len(walks) == read and len(kernel.variants()) == 4
    shared = [launch(kernel, n)[0] for n in (24, 20, 33)]
    monkeypatch.setenv("TRITON_BACKGROUND", "0")
    other = new_scale()
    assert [each.asm["ttir"] for each in shared] == [launch(other, n)[0].asm["ttir"] for n in (24, 20, 33)]
    assert len({each.asm["ttir"] for each in shared}) == 3 and len(walks) > read


def test_a_name_that_stands_for_something_else_is_read_again(walks, monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_scale()
    for n in (160, 24, 24):
        assert launch(kernel, n)[1] == {3}
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(5))
    for n in (160, 24, 20, 24, 20):
        assert launch(kernel, n)[1] == {5}


def test_a_name_of_python_that_the_program_takes(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")

    @triton.jit
    def largest(x_ptr, n, BLOCK: tl.constexpr):
        index = tl.arange(0, BLOCK)
        tl.store(x_ptr + index, max(2.0, 3.0), mask=index < n)

    for n in (160, 24):
        assert launch(largest, n)[1] == {3}
    monkeypatch.setitem(globals(), "max", min)
    launch(largest, 20)
    assert launch(largest, 20)[1] == {2}
