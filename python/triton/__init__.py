"""A tile compiler: @triton.jit kernels to native code, on CPUs and GPUs."""

from .runtime.jit import JITFunction, jit

__version__ = "0.1.0"

__all__ = ["JITFunction", "jit"]
