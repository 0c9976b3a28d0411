"""The kernels of the paper's experiments (benchmarks/paper.tc): products and convolutions, with K in parts."""

import re
from pathlib import Path

import numpy as np
import pytest
from programs import launch

import triton
import triton.c
from triton.compiler import ASTSource

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "paper.tc"
ELEMENTS = {"float": np.float32, "half": np.float16}


def program(name, element):
    """What other kernels of the program are called does not matter: only `name` is left."""
    text = re.sub(r"\bPRECISION\b", '"tf32"', re.sub(r"\bT\b", element, PROGRAM.read_text()))
    functions = re.split(r"(?<=\n}\n)", text)
    return "".join(each for each in functions if "kernel void " not in each or f"kernel void {name}(" in each)


def run(name, element, *args, grid, **options):
    launch(program(name, element), *args, grid=grid, SPLIT=int(grid[2] > 1), **options)


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


def conv(element, x, w, pads, parts, tile, last=1, shifts=None):
    """The convolution of x, N C H W, with w. `last`: as the kernel is told; above 1 it sees x as C H W N. `shifts` are
    the (row, column) of each channel, then w has shape (filters, channels, 1, 1)."""
    (images, channels, height, width), (filters, _, r, s) = x.shape, w.shape
    k = channels * r * s
    column = np.arange(k)
    row, across = shifts or (column // s % r, column % s)
    p, q = (height, width) if shifts else (height + 2 * pads[0] - r + 1, width + 2 * pads[1] - s + 1)
    delta = (column // (r * s) * height * width + row * width + across) * last
    tables = [np.pad(table, (0, tile["TK"]), constant_values=beyond).astype(np.int32)
              for table, beyond in ((delta, 0), (1 << row | 65536 << across, -1))]  # fmt: skip
    m = images * p * q
    grid = -(-m // tile["TM"]), -(-filters // tile["TN"]), parts
    sums, counts = scratch(grid, tile)
    y = np.full((images, filters, p, q), np.nan, ELEMENTS[element])
    if last > 1:
        x, y = (np.ascontiguousarray(each.transpose(1, 2, 3, 0)) for each in (x, y))
    sizes = m, filters, k, channels, height, width, p, q, *pads, parts
    run("conv", element, x, w, y, sums, counts, *tables, *sizes, grid=grid, LAST=last, **tile)
    return y.transpose(3, 0, 1, 2) if last > 1 else y


# (images, channels, height, width, filters, r, s, parts, tiles)
IMAGES_FIRST = [
    (2, 5, 8, 8, 20, 3, 3, 1, 0), (1, 16, 7, 7, 32, 3, 3, 3, 0), (1, 3, 9, 16, 8, 5, 4, 2, 1),
    (2, 8, 8, 8, 64, 1, 1, 1, 2), (1, 24, 6, 16, 16, 3, 3, 1, 2),
]  # fmt: skip
# Runs of 4 or 8 images are copied together; of 3 they are not.
IMAGES_LAST = [
    (4, 5, 5, 7, 20, 3, 3, 1, 0), (8, 3, 3, 5, 40, 3, 2, 3, 1), (4, 9, 6, 4, 33, 1, 1, 2, 2),
    (3, 8, 5, 5, 16, 3, 3, 1, 0),
]  # fmt: skip


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("sizes, last", [(x, False) for x in IMAGES_FIRST] + [(x, True) for x in IMAGES_LAST], ids=str)
def test_conv(element, sizes, last):
    images, channels, height, width, filters, r, s, parts, tiles = sizes
    rng = np.random.default_rng(height)
    x = small_numbers(rng, element, images, channels, height, width)
    w = small_numbers(rng, element, filters, channels, r, s)
    pads = (r - 1) // 2, (s - 1) // 2
    y = conv(element, x, w, pads, parts, TILES[tiles], last=images if last else 1)
    np.testing.assert_array_equal(y, convolve(x, w, *pads))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(
    "images, channels, height, width, filters, tiles", [(4, 70, 5, 7, 20, 0), (8, 20, 3, 3, 40, 1)]
)
def test_shift_conv(element, images, channels, height, width, filters, tiles, last):
    """Each channel is shifted by its own distance, over the image's border too."""
    rng = np.random.default_rng(channels)
    x = small_numbers(rng, element, images, channels, height, width)
    w = small_numbers(rng, element, filters, channels, 1, 1)
    shifts = rng.integers(0, 3, channels), rng.integers(0, 3, channels)
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    shifted = [wide[:, c, i : i + height, j : j + width] for c, (i, j) in enumerate(zip(*shifts, strict=True))]
    expected = np.einsum("cnhw,kc->nkhw", shifted, w[:, :, 0, 0].astype(np.float64))
    y = conv(element, x, w, (1, 1), 1, TILES[tiles], images if last else 1, shifts)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.host
@pytest.mark.parametrize("element, last, widths", [
    ("half", 4, {8}), ("half", 8, {16}), ("half", 1, set()), ("half", 3, set()),
    ("float", 2, {4, 8}), ("float", 4, {4, 16}), ("float", 1, {4}),
])  # fmt: skip
def test_runs_of_images_are_copied_together(element, last, widths):
    """Whatever the sizes are: nothing is known of the numbers, so that filters are copied element by element, in 4
    bytes or through registers. Many copies of 8 bytes have their places from entries of the table read four at once."""
    kernel = triton.c.compile(program("conv", element))
    kind = {"half": "*fp16", "float": "*fp32"}[element]
    types = [kind] * 3 + ["*fp32"] + ["*i32"] * 3 + ["i32"] * 11
    names = [name for name in kernel.arg_names if not name.isupper() or len(name) == 1]
    attrs = {(number,): [("tt.divisibility", 16)] for number, each in enumerate(types) if each[0] == "*"}
    constants = dict(TM=128, TN=64, TK=32 if element == "half" else 16, LAST=last)
    source = ASTSource(kernel, dict(zip(names, types, strict=True)), constants, attrs)
    ptx = triton.compile(source, "cuda:90", options=dict(num_warps=4, num_stages=3)).asm["ptx"]
    copies = {int(each) for each in re.findall(r"cp\.async\.\w+\.shared\.global \[[^]]*\], \[[^]]*\], (\d+)", ptx)}
    assert copies == widths
    if 8 in widths:
        assert re.search(r"ld\.global[\w.:]*\.v4\.b32", ptx)
