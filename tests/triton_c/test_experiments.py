"""The kernels of the paper's experiments (benchmarks/paper.tc): products and convolutions, with K in parts."""

import re
from pathlib import Path

import numpy as np
import pytest
from programs import launch

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "paper.tc"
ELEMENTS = {"float": np.float32, "half": np.float16}


def run(name, element, *args, grid, **options):
    """What other kernels of the program are called does not matter: only `name` is left."""
    text = re.sub(r"\bPRECISION\b", '"tf32"', re.sub(r"\bT\b", element, PROGRAM.read_text()))
    functions = re.split(r"(?<=\n}\n)", text)
    text = "".join(each for each in functions if "kernel void " not in each or f"kernel void {name}(" in each)
    launch(text, *args, grid=grid, SPLIT=int(grid[2] > 1), **options)


def scratch(grid, tile):
    sums = np.prod(grid) * tile["TM"] * tile["TN"]
    return np.full(sums, np.nan, np.float32), np.zeros(grid[0] * grid[1], np.int32)


def small_numbers(rng, element, *shape):
    return rng.integers(-3, 4, shape).astype(ELEMENTS[element])


TILES = [
    dict(TM=64, TN=32, TK=32, num_warps=4, num_stages=3),
    dict(TM=32, TN=32, TK=64, num_warps=4, num_stages=4),
    dict(TM=64, TN=64, TK=32, num_warps=8, num_stages=2),
]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("m, n, k, parts, tiles", [(70, 40, 100, 1, 0), (64, 64, 256, 3, 0), (35, 33, 65, 2, 1),
                                                   (64, 64, 128, 8, 2)])  # fmt: skip
def test_matmul(element, m, n, k, parts, tiles):
    """Some of eight parts have nothing to add up. Run twice: the counts are as before."""
    tile = TILES[tiles]
    rng = np.random.default_rng(m)
    d, w = small_numbers(rng, element, m, k), small_numbers(rng, element, n, k)
    grid = -(-m // tile["TM"]), -(-n // tile["TN"]), parts
    sums, counts = scratch(grid, tile)
    for _ in range(2):
        a = np.full((m, n), np.nan, ELEMENTS[element])
        run("matmul", element, d, w, a, sums, counts, m, n, k, parts, grid=grid, **tile)
        np.testing.assert_array_equal(a, d.astype(np.float64) @ w.T.astype(np.float64))
        assert not counts.any()


def convolve(x, w, pad_h, pad_w):
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad_h, pad_h), (pad_w, pad_w)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, w.shape[2:], (2, 3))
    return np.einsum("nchwrs,kcrs->nkhw", windows, w.astype(np.float64))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("images, channels, height, width, filters, r, s, parts, tiles", [
    (2, 5, 8, 8, 20, 3, 3, 1, 0), (1, 16, 7, 7, 32, 3, 3, 3, 0), (1, 3, 9, 16, 8, 5, 4, 2, 1),
    (2, 8, 8, 8, 64, 1, 1, 1, 2), (1, 24, 6, 16, 16, 3, 3, 1, 2),
])  # fmt: skip
def test_conv(element, images, channels, height, width, filters, r, s, parts, tiles):
    tile = TILES[tiles]
    rng = np.random.default_rng(height)
    x = small_numbers(rng, element, images, channels, height, width)
    w = small_numbers(rng, element, filters, channels, r, s)
    pads = (r - 1) // 2, (s - 1) // 2
    expected = convolve(x, w, *pads)
    p, q = expected.shape[2:]
    m, k = images * p * q, channels * r * s
    column = np.arange(k)
    row, across = column // s % r, column % s
    delta = (column // (r * s) * height * width + row * width + across).astype(np.int32)
    tap = (1 << row | 65536 << across).astype(np.int32)
    grid = -(-m // tile["TM"]), -(-filters // tile["TN"]), parts
    sums, counts = scratch(grid, tile)
    y = np.full(expected.shape, np.nan, ELEMENTS[element])
    sizes = m, filters, k, channels, height, width, p, q, *pads, parts
    run("conv", element, x, w, y, sums, counts, delta, tap, *sizes, grid=grid, **tile)
    np.testing.assert_array_equal(y, expected)
