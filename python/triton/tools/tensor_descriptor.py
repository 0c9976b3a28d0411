"""Tensor descriptors made on the host: an array, and the tiles that kernels take from it."""

from dataclasses import dataclass
from typing import Any


@dataclass
class TensorDescriptor:
    """An argument that is a `tl.tensor_descriptor` in the kernel.

    base          the array: of torch, CuPy, NumPy, ...
    shape         its extents
    strides       distances between neighbours in each dimension, in elements; the last is 1
    block_shape   extents of the tiles that the kernel loads and stores; each makes a variant of the kernel
    padding       what elements beyond the edges are when they are loaded: "zero" or "nan"
    round_f32_to_tf32
                  round what is loaded of an array of float32 to the 10 bits of mantissa of tf32

    Attributes may be changed between launches (a configuration's ``pre_hook`` sets ``block_shape``).
    """

    base: Any
    shape: list
    strides: list
    block_shape: list
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    __triton_kind__ = "descriptor"

    def __post_init__(self):
        rank = len(self.shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"a descriptor of an array of {rank} dimensions; from 1 to 5 are possible")
        if len(self.strides) != rank or len(self.block_shape) != rank:
            raise ValueError(
                f"shape {self.shape}, strides {self.strides} and block_shape {self.block_shape} differ in length"
            )
        if self.strides[-1] != 1:
            raise ValueError(f"the last stride is {self.strides[-1]}, and must be 1: elements of a row are neighbours")
        if self.padding not in ("zero", "nan"):
            raise ValueError(f"padding is {self.padding!r}, and must be 'zero' or 'nan'")
        if self.round_f32_to_tf32 and str(self.base.dtype).rpartition(".")[2] != "float32":
            raise ValueError(
                f"round_f32_to_tf32 is for arrays of float32, and this one's elements are {self.base.dtype}"
            )

    @staticmethod
    def from_tensor(tensor, block_shape, padding="zero", round_f32_to_tf32=False):
        """The descriptor of a whole array."""
        in_bytes = not hasattr(tensor, "stride")  # NumPy and CuPy; torch counts elements
        strides = [step // tensor.itemsize for step in tensor.strides] if in_bytes else tensor.stride()
        shapes = list(tensor.shape), list(strides), list(block_shape)
        return TensorDescriptor(tensor, *shapes, padding, round_f32_to_tf32)

    def _as_argument(self):
        """What the launch passes: the named tuple of the language, its compile-time parts marked."""
        from ..language.compile_time import constexpr
        from ..language.descriptor import tensor_descriptor

        block = tuple(constexpr(extent) for extent in self.block_shape)
        options = constexpr(self.padding), constexpr(bool(self.round_f32_to_tf32))
        return tensor_descriptor(self.base, tuple(self.shape), tuple(self.strides), block, *options)
