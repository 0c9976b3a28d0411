"""What a kernel is compiled for, at compile time. On the host: what launches of this thread are compiled for."""

from ._builtin import builtin
from .compile_time import constexpr_function


def _target(name=None):
    from ..runtime.driver import driver
    from ..runtime.target import target_of

    return target_of(name) if name else driver.active.get_current_target()


@builtin
def current_target():
    """The `GPUTarget`: ``backend`` ("cpu", "cuda" or "sim") and ``arch``."""
    return _target()


@builtin
def is_cuda() -> bool:
    """Whether it is code for an NVIDIA GPU; also where the simulator runs it."""
    return _answer("is_cuda", None)


@builtin
def is_hip() -> bool:
    """Always false: AMD's GPUs are not supported."""
    return False


@builtin
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether it is an NVIDIA GPU of this compute capability or a later one."""
    return _answer("cuda_capability_geq", None, major, minor)


@constexpr_function
def _never():
    """False: AMD's GPUs are not supported."""
    return False


is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = is_hip_gfx1250 = _never


def _answer(question, name, major=0, minor=0):
    """What the compiler asks, for a target by name."""
    target = _target(name)
    if question == "current_target":
        return target
    on_gpu = target.backend in ("cuda", "sim")
    if question == "cuda_capability_geq":
        return on_gpu and target.arch >= major * 10 + minor
    return on_gpu and question == "is_cuda"


__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna2",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]
