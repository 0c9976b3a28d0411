"""Kernels as Python objects: decorating, launching, tuning, and the device they run on."""

from .jit import JITFunction, KernelParam

__all__ = ["JITFunction", "KernelParam"]
