"""triton.tools.layout: layouts as text and as a picture."""

import pytest

from triton.tools import layout as tool
from triton.tools.layout import LinearLayout


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
    pytest.importorskip("matplotlib")
    assert tool.main(["nvmma", "8", "64", "--png", str(tmp_path / "layout.png")]) == 0
    assert (tmp_path / "layout.png").stat().st_size > 1000
    assert tool.main(["mma", "16", "16", "--part", "b", "--warps", "1", "2"]) == 0
    assert tool.main(["blocked", "4", "8", "--lanes", "4", "8"]) == 0
    assert tool.main(["swizzled", "4", "8", "--vec", "2", "--max-phase", "4"]) == 0
    assert "r3" in capsys.readouterr().out
