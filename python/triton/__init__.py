"""A tile compiler: @triton.jit kernels to native code, on CPUs and GPUs."""

__version__ = "0.1.0"
