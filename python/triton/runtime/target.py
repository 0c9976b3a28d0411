"""Names of targets."""

import os
from collections import namedtuple


class GPUTarget(namedtuple("GPUTarget", "backend arch warp_size")):
    """A target: what runs it, its architecture, and how many threads run in step."""

    __slots__ = ()


def target_of(name):
    """The GPUTarget that a name ("cpu", "cuda:90") stands for."""
    backend, _, arch = name.partition(":")
    if backend == "cpu":
        import platform

        return GPUTarget(backend, platform.machine(), 1)
    return GPUTarget(backend, int(arch), 32)


def asked_target():
    """What TRITON_TARGET says, or None: then a launch runs where its arrays lie."""
    return os.environ.get("TRITON_TARGET") or None


def target_name(target=None):
    """The name ("cpu", "cuda:90") of a target given by name, as a `GPUTarget`, or None for the active driver's."""
    if target is None:
        from .driver import driver

        target = driver.active.get_current_target()
    if isinstance(target, str):
        return target
    return target.backend if target.backend == "cpu" else f"{target.backend}:{target.arch}"
