"""Tensor descriptors, written in the language: an array, and the shape of the tiles that are taken from it.

A descriptor is a named tuple in a kernel, and its methods are kernels' functions: loads and stores through it are those
of a block pointer whose every dimension is checked.
"""

from collections import namedtuple

from ..runtime.jit import jit
from . import core
from ._builtin import builtin, outside
from .compile_time import constexpr_function
from .core import constexpr
from .extra.cuda.utils import round_f32_to_tf32
from .standard import _line_shape

__all__ = [
    "load_tensor_descriptor",
    "make_tensor_descriptor",
    "store_tensor_descriptor",
    "tensor_descriptor",
    "tensor_descriptor_base",
]


@constexpr_function
def _row_major(rank):
    return tuple(reversed(range(rank)))


@constexpr_function
def _all(rank):
    return tuple(range(rank))


@jit
def _window(self, offsets):
    rank: constexpr = len(self.block_shape)
    core.static_assert(len(offsets) == rank, "one offset for each dimension of the descriptor")
    return core.make_block_ptr(self.base, self.shape, self.strides, offsets, self.block_shape, _row_major(rank))


@jit
def _elements(self, offsets):
    """Pointers to the elements of a block, and which of them lie in the array."""
    rank: constexpr = len(self.block_shape)
    core.static_assert(len(offsets) == rank, "one offset for each dimension of the descriptor")
    pointers = self.base
    inside = core.full(self.block_shape, True, core.int1)
    for axis in core.static_range(rank):
        line = core.arange(0, self.block_shape[axis])
        index = offsets[axis] + core.reshape(line, _line_shape(self.block_shape, axis))
        pointers = pointers + index.to(core.int64) * self.strides[axis]
        inside = inside & (index >= 0) & (index < self.shape[axis])
    return core.broadcast_to(pointers, self.block_shape), inside


@jit
def _rows(self, x_offsets, y_offset):
    """Pointers to rows of a matrix, and which of their elements lie in it."""
    core.static_assert(len(self.block_shape) == 2, "rows are gathered from a matrix")
    core.static_assert(self.block_shape[0] == 1, "a block that is gathered has one row")
    row = x_offsets[:, None]
    column = y_offset + core.arange(0, self.block_shape[1])[None, :]
    inside = (row >= 0) & (row < self.shape[0]) & (column >= 0) & (column < self.shape[1])
    return self.base + row.to(core.int64) * self.strides[0] + column.to(core.int64) * self.strides[1], inside


@constexpr_function
def _padding(option, dtype):
    return float("nan") if option == "nan" and dtype.is_floating() else 0


@jit
def _rounded(self, tile):
    """`tile`, as it was loaded, in the precision that the descriptor asks for: to the nearest, ties to even."""
    if self.round_f32_to_tf32:
        return round_f32_to_tf32(tile, "rn")
    else:
        return tile


# as tensor memory access, which is to do these, has it
_NO_ORDER_OF_FP32 = constexpr(
    "atomic_min and atomic_max of a descriptor take integers, fp16 and bf16; use tl.atomic_min and pointers for fp32"
)
_FIELDS = "base shape strides block_shape padding_option round_f32_to_tf32"


class tensor_descriptor(namedtuple("tensor_descriptor", _FIELDS)):
    """What `make_tensor_descriptor` gives, and what a `triton.tools.tensor_descriptor.TensorDescriptor` becomes.

    =======================================  ========================================================================
    ``load(offsets)``                        the tile of ``block_shape`` from these indices on; 0 beyond the edges
    ``store(offsets, value)``                writes a tile; elements beyond the edges are left out
    ``atomic_add(offsets, value)``           adds it, in one step for each element; so ``atomic_min``, ``max``, ...
    ``gather(x_offsets, y_offset)``          of a matrix with blocks of one row: the parts of many rows
    ``scatter(value, x_offsets, y_offset)``  the inverse
    =======================================  ========================================================================

    Beyond the edges a load gives NaN if `padding_option` of the descriptor says so. One that was made on the host with
    `round_f32_to_tf32` gives floats that are rounded to the 10 bits of mantissa of ``tf32``. Atomic are ``atomic_add``,
    ``atomic_min``, ``atomic_max``, ``atomic_and``, ``atomic_or`` and ``atomic_xor``.
    """

    __slots__ = ()
    _constexprs = (False, False, False, True, True, True)

    @property
    @jit
    def dtype(self):
        return self.base.dtype.element_ty

    @property
    @jit
    def block_type(self):
        return core.block_type(self.base.dtype.element_ty, self.block_shape)

    @jit
    def load(self, offsets):
        tile = core.load(
            _window(self, offsets), boundary_check=_all(len(self.block_shape)), padding_option=self.padding_option
        )
        return _rounded(self, tile)

    @jit
    def store(self, offsets, value):
        core.static_assert(
            value.shape == self.block_shape, f"the value has the shape {value.shape}, and the block {self.block_shape}"
        )
        core.store(_window(self, offsets), value, boundary_check=_all(len(self.block_shape)))

    @jit
    def atomic_add(self, offsets, value):
        pointers, inside = _elements(self, offsets)
        core.atomic_add(pointers, value, mask=inside)

    @jit
    def atomic_min(self, offsets, value):
        core.static_assert(self.dtype != core.float32, _NO_ORDER_OF_FP32)
        pointers, inside = _elements(self, offsets)
        core.atomic_min(pointers, value, mask=inside)

    @jit
    def atomic_max(self, offsets, value):
        core.static_assert(self.dtype != core.float32, _NO_ORDER_OF_FP32)
        pointers, inside = _elements(self, offsets)
        core.atomic_max(pointers, value, mask=inside)

    @jit
    def atomic_and(self, offsets, value):
        pointers, inside = _elements(self, offsets)
        core.atomic_and(pointers, value, mask=inside)

    @jit
    def atomic_or(self, offsets, value):
        pointers, inside = _elements(self, offsets)
        core.atomic_or(pointers, value, mask=inside)

    @jit
    def atomic_xor(self, offsets, value):
        pointers, inside = _elements(self, offsets)
        core.atomic_xor(pointers, value, mask=inside)

    @jit
    def gather(self, x_offsets, y_offset):
        pointers, inside = _rows(self, x_offsets, y_offset)
        other: constexpr = _padding(self.padding_option, self.base.dtype.element_ty)
        return _rounded(self, core.load(pointers, mask=inside, other=other))

    @jit
    def scatter(self, value, x_offsets, y_offset):
        pointers, inside = _rows(self, x_offsets, y_offset)
        core.store(pointers, value, mask=inside)


tensor_descriptor_base = tensor_descriptor  # in the public API, also of those without extents


@constexpr_function
def _known(shape):
    return tuple(shape)


@builtin
def promised_multiples(values, promised, divisor):
    """The tuple `values`; a descriptor promises that those of `promised` in it are multiples, if they are loaded."""
    outside()


@jit
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option: constexpr = "zero"):
    """A descriptor of an array that tiles of one shape are loaded from and stored to; see `tensor_descriptor`.

    As for the hardware's descriptors, `base` and all strides but the last are multiples of 16 bytes. Of what comes from
    arguments the launch sees whether they are; what the kernel itself loads from memory has to be.

    :param base: scalar pointer to the first element of the array.
    :param shape: extents of the array, up to five run-time or compile-time integers.
    :param strides: distance between neighbours in each dimension, in elements; 1 in the last one.
    :param block_shape: extents of the tiles, compile-time integers; a row of one has at least 16 bytes.
    :param padding_option: what elements beyond the edges are when they are loaded: ``"zero"`` or ``"nan"``.
    """
    # As many as the hardware's descriptors have.
    core.static_assert(
        len(shape) >= 1 and len(shape) <= 5, f"an array of {len(shape)} dimensions; from 1 to 5 are possible"
    )
    core.static_assert(len(strides) == len(shape), "as many strides as extents are needed")
    core.static_assert(len(block_shape) == len(shape), "the block has other dimensions than the array")
    core.static_assert(
        block_shape[-1] * base.dtype.element_ty.primitive_bitwidth >= 128,
        f"Descriptor block shape must have at least 16 bytes in the last dimension, which is {block_shape[-1]} here",
    )
    is_one: constexpr = not isinstance(strides[-1], core.tensor) and strides[-1] == 1
    core.static_assert(is_one, "the last stride must be 1, and known to be: elements of a row are neighbours")
    core.static_assert(padding_option == "zero" or padding_option == "nan", 'padding_option is "zero" or "nan"')
    apart: constexpr = max(1, 128 // base.dtype.element_ty.primitive_bitwidth)
    base = promised_multiples((base,), (base,), 16)[0]
    shape = promised_multiples(shape, strides, apart)
    strides = promised_multiples(strides, strides, apart)
    return tensor_descriptor(base, shape, strides, _known(block_shape), padding_option, False)


@jit
def load_tensor_descriptor(desc, offsets):
    """``desc.load(offsets)`` of a `tensor_descriptor`."""
    return desc.load(offsets)


@jit
def store_tensor_descriptor(desc, offsets, value):
    """``desc.store(offsets, value)`` of a `tensor_descriptor`."""
    desc.store(offsets, value)
