"""triton.LinearLayout: linear maps between named dimensions."""

import itertools
import random

import pytest

from triton import LinearLayout

pytestmark = pytest.mark.host


def every_input(layout):
    sizes = [range(1 << len(bases)) for bases in layout.bases.values()]
    return [dict(zip(layout.bases, values, strict=True)) for values in itertools.product(*sizes)]


def random_layout(random, sizes, outs):
    bases = {
        name: [[random.randrange(size) for size in outs.values()] for _ in range(bits)] for name, bits in sizes.items()
    }
    return LinearLayout(bases, outs)


def test_lines():
    identity = LinearLayout.identity_1d(8, "i", "o")
    assert [identity.apply({"i": i})["o"] for i in range(8)] == list(range(8))
    assert identity.is_surjective() and identity.is_injective()
    strided = LinearLayout.strided_1d(4, 2, "i", "o")
    assert [strided.apply({"i": i})["o"] for i in range(4)] == [0, 2, 4, 6]
    assert strided.get_matrix_view() == [[0, 0], [1, 0], [0, 1]] and not strided.is_surjective()
    zeros = LinearLayout.zeros_1d(8, "i", "o")
    assert {zeros.apply({"i": i})["o"] for i in range(8)} == {0} and zeros.is_surjective()
    assert not LinearLayout.zeros_1d(8, "i", "o", outDimSize=4).is_surjective()


def test_bases():
    layout = LinearLayout.from_bases([("lane", [[0, 1], [0, 2]]), ("warp", [[1, 0], [2, 3]])], ["row", "column"])
    assert layout.apply({"lane": 2, "warp": 3}) == {"row": 3, "column": 1}
    assert layout.get_matrix_view() == [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1]]
    assert layout.out_dims == {"row": 4, "column": 4} and layout.bases["warp"] == ((1, 0), (2, 3))
    with pytest.raises(ValueError, match="does not reach all"):
        LinearLayout.from_bases({"i": [[1], [2]]}, ["o"], [8])
    assert LinearLayout.from_bases({"i": [[1], [2]]}, ["o"], [8], require_surjective=False).out_dims == {"o": 8}


def test_products():
    both = LinearLayout.identity_1d(4, "i", "o") * LinearLayout.identity_1d(8, "i", "o")
    assert both == LinearLayout.identity_1d(32, "i", "o") and hash(both) == hash(LinearLayout.identity_1d(32, "i", "o"))
    apart = LinearLayout.identity_1d(8, "a", "x") * LinearLayout.identity_1d(4, "b", "y")
    assert all(apart.apply({"a": a, "b": b}) == {"x": a, "y": b} for a in range(8) for b in range(4))


@pytest.mark.parametrize("seed", range(20))
def test_inverses_and_composition(seed):
    choose = random.Random(seed)
    inner = random_layout(choose, {"a": 2, "b": 3}, {"x": 4, "y": 8})
    outer = random_layout(choose, {"x": 2, "y": 3}, {"p": 8, "q": 4})
    composed = inner.compose(outer)
    assert all(composed.apply(each) == outer.apply(inner.apply(each)) for each in every_input(inner))
    images = {tuple(outer.apply(each).items()) for each in every_input(outer)}
    assert (len(images) == 32) == outer.is_surjective() == outer.is_invertible() == outer.is_injective()
    if not outer.is_invertible():
        with pytest.raises(ValueError, match="cannot be inverted"):
            outer.invert()
        return
    inverse = outer.invert()
    assert all(inverse.apply(outer.apply(each)) == each for each in every_input(outer))
    there = composed.invert_and_compose(outer)
    assert all(outer.apply(there.apply(each)) == composed.apply(each) for each in every_input(composed))


def test_what_is_wrong():
    layout = LinearLayout.identity_1d(8, "i", "o")
    for inputs, message in (({"j": 1}, "wanted for i, not for j"), ({"i": 8}, "i=8: it has 8 values")):
        with pytest.raises(ValueError, match=message):
            layout.apply(inputs)
    with pytest.raises(ValueError, match="power of 2 of values, not 6"):
        LinearLayout.identity_1d(6, "i", "o")
    with pytest.raises(ValueError, match=r"the basis \(4,\) lies outside"):
        LinearLayout({"i": [[4]]}, {"o": 4})
