"""Which target kernels are compiled for."""

import os
from collections import namedtuple

from ..errors import TargetError


class GPUTarget(namedtuple("GPUTarget", "backend arch warp_size")):
    """A target: what runs it, its architecture, and how many threads run in step."""

    __slots__ = ()


def selected_target():
    """The name of the target: that of TRITON_TARGET, else the one that this build has, "cpu"."""
    name = os.environ.get("TRITON_TARGET") or "cpu"
    if name == "cpu":
        return name
    family = name.split(":")[0]
    if family in ("cuda", "sim"):
        raise TargetError(f"TRITON_TARGET={name}: the target {family!r} is not available in this build; 'cpu' is")
    raise TargetError(f"TRITON_TARGET={name}: there is no such target; this build has 'cpu'")
