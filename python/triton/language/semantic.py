"""What the public API's builtins build their IR with, by name: code that mentions the type imports it.

Here builtins are the compiler's own (`triton.language.core`), and Python has no part in what they build: where such
code passes ``_semantic`` on, it passes None.
"""

from typing import TypeVar

TensorTy = TypeVar("TensorTy")


class TritonSemantic:
    """The type of ``_semantic``; there are no objects of it."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "kernels are compiled without triton.language.semantic: call the functions of triton.language instead, "
            "from a function decorated with @triton.jit"
        )


__all__ = ["TensorTy", "TritonSemantic"]
