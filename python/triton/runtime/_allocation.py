"""Memory that kernels ask for while they run."""

from contextvars import ContextVar


class NullAllocator:
    """What allocates where nobody set anything: it says what to do."""

    def __call__(self, size, alignment, stream):
        raise RuntimeError(
            f"a kernel needs {size} bytes of scratch memory on its device: set what allocates them, with "
            "triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device='cuda'))"
        )


_NULL_ALLOCATOR = NullAllocator()
_allocator = ContextVar("allocator", default=_NULL_ALLOCATOR)


def set_allocator(allocator):
    """Set the function that allocates scratch memory in the device's memory for kernels, in this context.

    :param allocator: ``allocator(size, alignment, stream)`` returns an array of `size` bytes; None: none is set.
        Kernels on the CPU have their scratch memory from the thread pool and do not call it.
    """
    if allocator is not None and not callable(allocator):
        raise TypeError(f"an allocator must be callable, not {allocator!r}")
    _allocator.set(_NULL_ALLOCATOR if allocator is None else allocator)
