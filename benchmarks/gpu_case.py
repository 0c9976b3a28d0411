"""What one comparison of gpu.py consists of: ways to launch a kernel, the right result, and what torch does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WARPS = 1, 2, 4, 8, 16


@dataclass
class Case:
    configs: dict[str, Callable]  # ways to launch that all fill `result`
    result: torch.Tensor
    expected: Callable  # the right result, or a tolerance around it
    reference: Callable  # torch doing the same
    bytes: int  # that have to be moved
    tolerance: float = 0
    check: Callable | None = field(default=None)  # instead of `expected`: returns whether the result is right

    def verify(self):
        """Raise if the last launch left a wrong result."""
        if self.check:
            right, error = self.check(self.result), "not what it should be"
        else:
            off = (self.result.double() - self.expected().double()).abs().max().item()
            right, error = off <= self.tolerance, f"off by {off:.2e} where {self.tolerance:.0e} is allowed"
        if not right:
            raise ArithmeticError(f"wrong result, {error}")


def warps_for(elements):
    """Warp counts that give a thread 1 to 128 of so many elements."""
    return [warps for warps in WARPS if 1 <= elements // (32 * warps) <= 128]


def is_close(result, exact, error=4e-3):
    """Is the relative error in the norm less than `error`?"""
    return ((result.double() - exact.double()).norm() / exact.double().norm()).item() < error


def by_tile(launch, tiles):
    """Case.configs: `launch` with each of these tuples."""
    return {"x".join(map(str, tile)): partial(launch, *tile) for tile in tiles}
