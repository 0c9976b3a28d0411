"""Memory that kernels ask for while they run."""

from contextvars import ContextVar

_allocator = ContextVar("allocator", default=None)


def set_allocator(allocator):
    """Set the function that allocates scratch memory in the device's memory for kernels, in this context.

    :param allocator: ``allocator(size, alignment, stream)`` returns an array of `size` bytes. Kernels on the CPU
        have their scratch memory from the thread pool and do not call it.
    """
    if allocator is not None and not callable(allocator):
        raise TypeError(f"an allocator must be callable, not {allocator!r}")
    _allocator.set(allocator)
