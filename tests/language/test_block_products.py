"""Products of blocks: what descriptors and block pointers read within an array, over its edges, in front of it and
beyond. A GPU of compute capability 9.0 copies such blocks by one instruction each.
"""

import numpy as np
import pytest
from harness import Buffer, assert_equal, random

import triton
import triton.language as tl


def window(x, row, column, rows, columns):
    """The elements of a matrix from there on, and zeros where there are none."""
    seen = np.zeros((rows, columns))
    top, left = max(row, 0), max(column, 0)
    part = x[top : max(row + rows, 0), left : max(column + columns, 0)]
    seen[top - row : top - row + part.shape[0], left - column : left - column + part.shape[1]] = part
    return seen


@triton.jit
def product(
    a_ptr, b_ptr, out_ptr, m, n, k, row, column, first,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, B_IS_TURNED: tl.constexpr, B_BY: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [ROWS, DEPTH])
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    if B_BY == "block pointer":
        if B_IS_TURNED:
            block = tl.make_block_ptr(b_ptr, (n, k), (k, 1), (column, first), (COLUMNS, DEPTH), (1, 0))
        else:
            block = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (first, column), (DEPTH, COLUMNS), (1, 0))
    elif B_IS_TURNED:
        b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [COLUMNS, DEPTH])
    else:
        b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [DEPTH, COLUMNS])
    sums = tl.zeros((ROWS, COLUMNS), out_ptr.dtype.element_ty)
    for start in range(first, k, DEPTH):
        x = a.load([row, start])
        if B_BY == "block pointer":
            y = tl.load(block, boundary_check=(0, 1), padding_option="zero")
            block = tl.advance(block, (0, DEPTH) if B_IS_TURNED else (DEPTH, 0))
        elif B_BY == "pointers":
            deep, wide = start + tl.arange(0, DEPTH), column + columns
            inside = (deep[:, None] >= 0) & (deep[:, None] < k) & (wide[None, :] >= 0) & (wide[None, :] < n)
            places = wide[None, :] * k + deep[:, None] if B_IS_TURNED else deep[:, None] * n + wide[None, :]
            y = tl.load(b_ptr + places, mask=inside, other=0)
        else:
            y = b.load([column, start] if B_IS_TURNED else [start, column])
        if B_IS_TURNED and B_BY != "pointers":
            y = y.T
        sums = tl.dot(x, y, sums)
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], sums)


SHAPES = [  # m, n, k, the tile and where it lies
    (64, 64, 256, (64, 64, 64), (0, 0, 0)),
    (100, 72, 208, (64, 32, 64), (64, 64, 0)),  # beyond the edges of all dimensions
    (100, 80, 208, (64, 64, 32), (-24, -7, -40)),  # and in front of them
    (70, 80, 80, (64, 128, 16), (0, -16, -8)),
    (40, 16, 64, (128, 64, 64), (0, 0, 0)),  # arrays smaller than the tile
    (64, 256, 64, (64, 256, 128), (0, 0, 0)),  # rows of several 128 bytes
    (128, 64, 48, (128, 64, 128), (1, 3, 0)),
    (128, 64, 128, (64, 64, 64), (200, 100, 0)),  # where there is nothing
]


@pytest.mark.parametrize("by", ["descriptor", "block pointer", "pointers"])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "float8e5"])
@pytest.mark.parametrize("m, n, k, tile, place", SHAPES)
def test_of_two_matrices(m, n, k, tile, place, dtype, turned, by):
    rows, columns, depth = tile
    row, column, first = place
    a = random((m, k), dtype, 0, -4, 5)
    b = random((n, k), dtype, 1, -4, 5)
    if dtype != "int8":
        a.values[:], b.values[:] = np.round(a.values), np.round(b.values)  # of which every order of adding is exact
    given = b if turned else type(b)(np.ascontiguousarray(b.values.T), b.dtype)
    kind = np.int32 if dtype == "int8" else np.float32
    out = Buffer(np.zeros((rows, columns), kind))
    arrays = Buffer(a).argument, Buffer(given).argument
    product[(1,)](*arrays, out.argument, m, n, k, *place, *tile, turned, by, num_warps=4, num_stages=3)
    expected = np.zeros((rows, columns))
    for start in range(first, k, depth):
        pieces = window(a.values, row, start, rows, depth), window(b.values, column, start, columns, depth)
        expected += pieces[0] @ pieces[1].T
    assert_equal(out.host(), expected.astype(kind))
