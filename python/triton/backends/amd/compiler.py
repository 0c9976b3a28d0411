"""What would compile for AMD's GPUs: a class that says what counts of arguments, as all do, and cannot be made."""

from ...errors import TargetError
from ..compiler import BaseBackend


class HIPBackend(BaseBackend):
    """Kernels are not compiled for AMD's GPUs, so there are no objects of it."""

    names = ("hip",)

    def __init__(self, target):
        raise TargetError(f"there is no backend for {target!r}: AMD's GPUs are not supported")


__all__ = ["HIPBackend"]
