"""Layouts that programs name on the host, for the descriptors that they pass; no kernel is compiled with them."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class NVMMASharedLayout:
    """How the tensor memory accelerator writes blocks: rows of `swizzle_byte_width` bytes, turned about."""

    swizzle_byte_width: int
    element_bitwidth: int
    rank: int = 2
    transposed: bool = False
    fp4_padded: bool = False
    cga_layout: list = field(default_factory=list)


__all__ = ["NVMMASharedLayout"]
