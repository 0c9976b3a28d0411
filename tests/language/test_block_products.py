"""Products of blocks: what descriptors and block pointers read within an array, over its edges, in front of it and
beyond. A GPU of compute capability 9.0 copies such blocks by one instruction each.
"""

import numpy as np
import pytest
from block_products import expected_product, product
from harness import Buffer, assert_equal, random

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
    rows, columns, _ = tile
    a = random((m, k), dtype, 0, -4, 5)
    b = random((n, k), dtype, 1, -4, 5)
    if dtype != "int8":
        a.values[:], b.values[:] = np.round(a.values), np.round(b.values)  # of which every order of adding is exact
    given = b if turned else type(b)(np.ascontiguousarray(b.values.T), b.dtype)
    kind = np.int32 if dtype == "int8" else np.float32
    out = Buffer(np.zeros((rows, columns), kind))
    arrays = Buffer(a).argument, Buffer(given).argument
    product[(1,)](*arrays, out.argument, m, n, k, *place, *tile, turned, by, num_warps=4, num_stages=3)
    assert_equal(out.host(), expected_product(a.values, b.values, tile, place).astype(kind))
