"""What notebooks show of kernels: pages without scripts and without anything to load, every line with its place."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.page import Places, highlight, located


@triton.jit
def softmax(out_ptr, x_ptr, n_columns, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + columns, mask=columns < n_columns, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + columns, powers / tl.sum(powers, axis=0), mask=columns < n_columns)


FIRST = softmax.first_line
LOAD, EXP, STORE = FIRST + 3, FIRST + 4, FIRST + 5


class Checked(HTMLParser):
    """Every element is closed, and none fetches anything."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "img", "link", "iframe") and not {"src", "href"} & dict(attributes).keys()
        if tag not in ("input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def compiled_for(target):
    source = ASTSource(softmax, {"out_ptr": "*fp32", "x_ptr": "*fp32", "n_columns": "i32"}, {"BLOCK": 256})
    return triton.compile(source, target=GPUTarget(*target))


@pytest.mark.parametrize("target", [("cuda", 90, 32), ("cpu", 0, 1)], ids=str)
def test_page(target):
    compiled = compiled_for(target)
    page = compiled._repr_html_()
    text = Checked(page).text
    assert page.count("<label") == len([stage for stage in compiled.asm if stage != "cubin"])
    for stage in compiled.asm:
        if stage not in ("cubin", "sass"):
            lines = [line for line in compiled.asm[stage].splitlines() if not line.startswith("\t.loc\t")]
            middle = lines[len(lines) // 2]
            assert re.sub(r", !dbg.*|loc\(.*", "", middle).strip() in text
    assert f"<u class=l{EXP}><i>{EXP}</i>    powers" in page


@pytest.mark.parametrize("stage, part, line", [
    ("ttir", "= load", LOAD), ("ttir", "fmax", EXP), ("ttgir", "= exp", EXP), ("ttgir", "store", STORE),
    ("llir", "shfl.sync", EXP), ("ptx", "ld.global", LOAD), ("ptx", "st.global", STORE), ("ptx", "max.", EXP),
])  # fmt: skip
def test_lines_of_stages(stage, part, line):
    """The first line of a stage with a text in it comes from this line of the kernel, also through a function."""
    compiled = compiled_for(("cuda", 90, 32))
    pairs = located(compiled, stage, Places(compiled))
    assert next(place for text, place in pairs if part in text and place) == line


def test_lines_of_a_processors_reads_and_writes():
    compiled = compiled_for(("cpu", 0, 1))
    pairs = list(located(compiled, "asm", Places(compiled)))
    assert [text for text, _ in pairs] == compiled.asm["asm"].splitlines()
    assert {place for _, place in pairs if place} == {LOAD, STORE}


def test_highlighting():
    assert highlight('x = "a<b"  # c', "python") == "x = <b class=s>&quot;a&lt;b&quot;</b>  <b class=c># c</b>"
    assert highlight("\tadd.s32 \t%r1, %r2, 7; // %x", "ptx") == (
        "\t<b class=k>add.s32</b> \t<b class=r>%r1</b>, <b class=r>%r2</b>, <b class=n>7</b>; <b class=c>// %x</b>"
    )
    assert highlight("  %x = load %4 : tile<8xf32> #0", "ttgir").count("<b class=k>load</b>") == 1


def test_timings():
    x = np.zeros(256, np.float32)
    timings = softmax[(1,)](x, x, 256, BLOCK=256).timings
    text = Checked(timings._repr_html_()).text
    assert all(name in text for name in timings) and f"{sum(timings.values()):.2f}" in text
