"""Arrays whose rows are batches of different lengths: `triton.tools.ragged_tma`."""

import numpy as np
import pytest
from harness import Buffer

import triton
import triton.language as tl
from triton.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    create_ragged_descriptor_device_2d,
    create_ragged_descriptor_device_3d,
    load_ragged,
    store_ragged,
)


@triton.jit
def move(x, y, ends, MODE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    batch = tl.program_id(0)
    start = tl.load(ends + batch)
    size = tl.load(ends + batch + 1) - start
    for row in range(0, size, ROWS):
        for column in range(0, 24, COLUMNS):
            tile = load_ragged(x, start, size, [row, column])
            if MODE == "store":
                store_ragged(y, start, size, [row, column], tile * (batch + 1))
            else:
                atomic_add_ragged(y, start, size, [row, column], tile * (batch + 1))


@pytest.mark.parametrize("mode", ["store", "atomic_add"])
def test_batches_stay_within_their_rows(mode):
    ends = np.array([0, 3, 3, 11, 20], np.int32)
    x = np.arange(20 * 24, dtype=np.float32).reshape(20, 24)
    rows = np.repeat(np.arange(1, 5), np.diff(ends))[:, None].astype(np.float32)
    source, result, batches = Buffer(x), Buffer(np.zeros_like(x)), Buffer(ends)
    made = [create_ragged_descriptor(each.argument, [4, 16], write_only=each is result) for each in (source, result)]
    move[(4,)](*made, batches.argument, MODE=mode, ROWS=4, COLUMNS=16)
    assert (result.host().values == x * rows).all()


@triton.jit
def planes(x, y):
    tile = load_ragged(x, 2, 3, [0, 1, 0], ragged_dim=1)
    index = tl.arange(0, 2)[:, None, None] * 32 + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)
    tl.store(y + index, tile)


def test_another_dimension_may_be_ragged():
    x = np.arange(2 * 7 * 8, dtype=np.float32).reshape(2, 7, 8)
    source, result = Buffer(x), Buffer(np.ones((2, 4, 8), np.float32))
    planes[(1,)](create_ragged_descriptor(source.argument, [2, 4, 8], ragged_dim=1), result.argument)
    expected = np.zeros((2, 4, 8), np.float32)
    expected[:, :2] = x[:, 3:5]
    assert (result.host().values == expected).all()


@triton.jit
def made_in_the_kernel(x, y, DIMENSIONS: tl.constexpr):
    if DIMENSIONS == 2:
        source = create_ragged_descriptor_device_2d(x, 7, 16, 16, 1, 4, 16, 0)
        result = create_ragged_descriptor_device_2d(y, 7, 16, 16, 1, 4, 16, 0)
        store_ragged(result, 3, 2, [0, 0], load_ragged(source, 2, 3, [0, 0]))
    else:
        source = create_ragged_descriptor_device_3d(x, 2, 7, 16, 112, 16, 1, 2, 4, 16, 1)
        result = create_ragged_descriptor_device_3d(y, 2, 7, 16, 112, 16, 1, 2, 4, 16, 1)
        store_ragged(result, 3, 2, [0, 0, 0], load_ragged(source, 2, 3, [0, 0, 0], 1), 1)


@pytest.mark.parametrize("shape", [(7, 16), (2, 7, 16)])
def test_descriptors_made_in_kernels(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    source, result = Buffer(x), Buffer(np.full_like(x, -1))
    made_in_the_kernel[(1,)](source.argument, result.argument, len(shape))
    expected = np.full_like(x, -1)
    expected[..., 3:5, :] = x[..., 2:4, :]
    assert (result.host().values == expected).all()


def test_the_last_dimension_is_not_ragged():
    with pytest.raises(ValueError, match="ragged_dim is -1, and must be a dimension but the last of 2"):
        create_ragged_descriptor(np.zeros((4, 4)), [2, 2], ragged_dim=-1)
