"""Tensor descriptors of arrays whose rows are cut into batches of different lengths, one behind the other: what a
kernel loads from a batch and stores to it never reaches into the next one."""

import triton.language as tl
from triton import jit
from triton.language.descriptor import tensor_descriptor

from .tensor_descriptor import TensorDescriptor


def create_ragged_descriptor(T, block_shape, ragged_dim=0, write_only=False):
    """The descriptor of an array that `load_ragged` and its like take.

    :param block_shape: extents of the tiles.
    :param ragged_dim: the dimension that consists of batches; not the last one.
    :param write_only: kernels only store to it, which makes no difference to the descriptor.
    """
    rank = len(T.shape)
    if not -rank <= ragged_dim < rank or ragged_dim % rank == rank - 1:
        raise ValueError(f"ragged_dim is {ragged_dim}, and must be a dimension but the last of {rank}")
    return TensorDescriptor.from_tensor(T, block_shape)


@jit
def create_ragged_descriptor_device_2d(
    base_ptr,
    shape_0,
    shape_1,
    stride_0,
    stride_1: tl.constexpr,
    block_shape_0: tl.constexpr,
    block_shape_1: tl.constexpr,
    ragged_dim: tl.constexpr,
):
    """`create_ragged_descriptor` in a kernel, of a matrix whose rows (`ragged_dim` is 0) are cut into batches."""
    tl.static_assert(ragged_dim == 0, "ragged_dim of a matrix must be 0")
    return tl.make_tensor_descriptor(base_ptr, (shape_0, shape_1), (stride_0, stride_1), (block_shape_0, block_shape_1))


@jit
def create_ragged_descriptor_device_3d(
    base_ptr,
    shape_0,
    shape_1,
    shape_2,
    stride_0,
    stride_1,
    stride_2: tl.constexpr,
    block_shape_0: tl.constexpr,
    block_shape_1: tl.constexpr,
    block_shape_2: tl.constexpr,
    ragged_dim: tl.constexpr,
):
    """The same of an array of three dimensions, of which the first or the second consists of batches."""
    tl.static_assert(ragged_dim == 0 or ragged_dim == 1, "ragged_dim of three dimensions must be 0 or 1")
    return tl.make_tensor_descriptor(
        base_ptr,
        (shape_0, shape_1, shape_2),
        (stride_0, stride_1, stride_2),
        (block_shape_0, block_shape_1, block_shape_2),
    )


@jit
def _batch(desc, slice_off, slice_size, ragged_dim: tl.constexpr):
    """The descriptor of one batch: its rows are all that there is."""
    rank: tl.constexpr = len(desc.block_shape)
    axis: tl.constexpr = ragged_dim % rank
    base = desc.base + tl.cast(slice_off, tl.int64) * desc.strides[axis]
    size = tl.minimum(slice_size, desc.shape[axis] - slice_off)
    shape = desc.shape[:axis] + (size,) + desc.shape[axis + 1 :]
    return tensor_descriptor(base, shape, desc.strides, desc.block_shape, desc.padding_option, desc.round_f32_to_tf32)


@jit
def load_ragged(TMA, slice_off, slice_size, coords, ragged_dim: tl.constexpr = 0):
    """The tile at `coords` of the batch that begins at `slice_off` and has `slice_size` rows; 0 beyond it.

    :param coords: indices of the first element; that of `ragged_dim` counts from the beginning of the batch.
    """
    return _batch(TMA, slice_off, slice_size, ragged_dim).load(coords)


@jit
def store_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Store a tile there; what is beyond the batch is left out."""
    _batch(TMA, slice_off, slice_size, ragged_dim).store(coords, data)


@jit
def atomic_add_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Add a tile to what is there, element by element atomically; what is beyond the batch is left out."""
    _batch(TMA, slice_off, slice_size, ragged_dim).atomic_add(coords, data)
