"""Descriptors that say how their blocks lie in shared memory."""

from triton.tools import tensor_descriptor


class TensorDescriptor(tensor_descriptor.TensorDescriptor):
    """A descriptor with a layout, which kernels of ``triton.language``, that have layouts made for them, do not see."""

    def __init__(self, base, shape, strides, block_shape, layout, padding="zero", round_f32_to_tf32=False):
        super().__init__(base, shape, strides, block_shape, padding, round_f32_to_tf32)
        self.layout = layout

    @staticmethod
    def from_tensor(tensor, block_shape, layout, padding="zero", round_f32_to_tf32=False):
        """The descriptor of a whole array."""
        plain = tensor_descriptor.TensorDescriptor.from_tensor(tensor, block_shape, padding, round_f32_to_tf32)
        return TensorDescriptor(
            plain.base, plain.shape, plain.strides, plain.block_shape, layout, padding, round_f32_to_tf32
        )


__all__ = ["TensorDescriptor"]
