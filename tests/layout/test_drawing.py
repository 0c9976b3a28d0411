"""triton.tools.layout: layouts as text and as a picture."""

from xml.etree import ElementTree

import pytest

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools import layout as tool
from triton.tools.layout import LinearLayout, layouts
from triton.tools.layout_picture import Picture


def test_text_names_the_holder_of_each_element():
    layout = LinearLayout.blocked((2, 8), (1, 2), (2, 2), (1, 2))
    assert tool.text(layout).splitlines() == [
        "         0        1        2        3        4        5        6        7",
        "0 w0:t0:r0 w0:t0:r1 w0:t1:r0 w0:t1:r1 w1:t0:r0 w1:t0:r1 w1:t1:r0 w1:t1:r1",
        "1 w0:t2:r0 w0:t2:r1 w0:t3:r0 w0:t3:r1 w1:t2:r0 w1:t2:r1 w1:t3:r0 w1:t3:r1",
    ]


def test_copies_are_marked_and_operations_compose():
    layout = LinearLayout.blocked((4, 4), (1, 4), (4, 8), (1, 1))
    row = layout.slice(1)
    assert row.shape == (4,)
    assert all(len(places) == 32 for places in row.holders().values())
    assert "t0:r0+" in tool.text(row)
    assert row.expand_dims(1).permute((1, 0)).shape == (1, 4)
    assert layout.reshape((16,)).permute((0,)) == layout.reshape((16,))
    assert "lane=" in repr(layout)


def test_fragments():
    layout = LinearLayout.mma((16, 8))
    assert tool.text(layout).splitlines()[9].split() == ["8", *(f"t{t}:r{r}" for t in range(4) for r in (2, 3))]
    assert LinearLayout.mma((64, 32), "a", warps=(4, 1)).bases["warp"] == [(16, 0), (32, 0)]
    with pytest.raises(ValueError, match="part is 'c'"):
        LinearLayout.mma((16, 8), "c")
    with pytest.raises(ValueError, match="element_bytes is 3"):
        LinearLayout.mma((16, 8), "a", 3)


def test_the_command_draws(tmp_path, capsys):
    assert tool.main(["nvmma", "8", "64", "--svg", str(tmp_path / "layout.svg")]) == 0
    assert ElementTree.parse(tmp_path / "layout.svg").getroot().tag.endswith("svg")
    assert tool.main(["mma", "16", "16", "--part", "b", "--warps", "1", "2"]) == 0
    assert tool.main(["blocked", "4", "8", "--lanes", "4", "8"]) == 0
    assert tool.main(["swizzled", "4", "8", "--vec", "2", "--max-phase", "4"]) == 0
    assert "r3" in capsys.readouterr().out


def elements_of(svg, tag):
    return [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith(f"}}{tag}")]


def area(path):
    """Of rectangles that are written as M..h..v1h..z."""
    return sum(int(part.partition("h")[2].partition("v")[0]) for part in path.split("M")[1:])


@pytest.mark.parametrize("shape", [(1,), (1024,), (128, 128), (128, 1), (1, 64), (4, 2, 8), (2048, 4)], ids=str)
def test_a_picture_covers_the_tile(shape):
    """Of any shape; what is enlarged and the whole have every element once."""
    layout = LinearLayout.blocked(shape, [1] * len(shape), [1] * (len(shape) - 1) + [32], [2] + [1] * (len(shape) - 1))
    picture = Picture(layout)
    paths = [path for path in elements_of(layout._repr_svg_(), "path") if path.get("fill") != "none"]
    rows, columns = picture.shown
    corner = (rows, columns) if rows <= 16 and columns <= 32 else (min(rows, 16), min(columns, 16))
    whole = 0 if corner == (rows, columns) else rows * columns
    assert sum(area(path.get("d")) for path in paths) == whole + corner[0] * corner[1]


def test_threads_are_named_in_the_picture():
    words = [text.text for text in elements_of(LinearLayout.mma((16, 8)).svg("%acc"), "text")]
    assert words[0] == "%acc: 16x8" and words.count("t5:2") == 1
    assert "32 lanes, 4 registers; in a cell: w warp, t lane:register" in words


def test_banks():
    """Eight rows of 16 bytes at one place of a row lie in eight different groups of four banks."""
    picture = Picture(LinearLayout.nvmma((8, 64), 2, 128))
    banks = {picture._bank(picture.cells[row, 0][0]) for row in range(8)}
    assert banks == set(range(0, 32, 4))
    assert len({picture.color((2 * bank, 0, 0, 0)) for bank in range(32)}) == 32
    assert len({Picture(LinearLayout.swizzled((8, 64)))._bank(((row * 64), 0, 0, 0)) for row in range(8)}) == 1


@triton.jit
def product(a_ptr, b_ptr, c_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def compiled_for(target):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    return triton.compile(ASTSource(product, signature, {"BLOCK": 64}), target=GPUTarget(*target))


def test_layouts_of_a_kernel(tmp_path, capsys):
    compiled = compiled_for(("cuda", 80, 32))
    found = layouts(compiled)
    by_kind = {found.types[name].partition("<")[0]: found[name] for name in found}
    assert by_kind["buffer"].element_bytes == 2 and by_kind["tile"].element_bytes is None
    assert by_kind["buffer"].shape == (64, 64)
    text = compiled.asm["ttgir"]
    for name, layout in found.items():
        line = next(line for line in text.splitlines() if line.startswith(f"#{found.numbers[name]} = "))
        assert f"layout<{'x'.join(map(str, layout.shape))}>" in line
        for place, bases in layout.bases.items():
            assert (
                str([base[0] if len(base) == 1 else base for base in bases])
                .replace(", ", ",")
                .replace("),(", "), (")
                .replace(",", ", " if len(layout.shape) == 1 else ",")
                in line
                or not bases
            ), (name, place)
    assert found.lines["i"] == product.first_line + 2
    assert found._repr_html_().count("<svg") == len({found[name] for name in found})

    dump = tmp_path / "product.ttgir"
    dump.write_text(text)
    assert tool.main(["of-kernel", str(dump)]) == 0 and "%i: tile<64xi32>" in capsys.readouterr().out
    assert tool.main(["of-kernel", str(dump), "--value", "i", "--svg", str(tmp_path / "i.svg")]) == 0
    assert elements_of((tmp_path / "i.svg").read_text(), "text")[0].text.startswith("i: 64")


def test_a_cpu_has_no_layouts():
    with pytest.raises(ValueError, match="a kernel for 'cpu' has no layouts"):
        layouts(compiled_for(("cpu", 0, 1)))
