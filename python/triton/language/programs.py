"""Where a program stands in the grid, and what its loops run over."""

from __future__ import annotations

import builtins

from ._builtin import builtin, compute_for_kernel, outside
from .compile_time import unwrap
from .tensors import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@builtin
def program_id(axis: int) -> tensor:
    """The index of this program along an axis of the grid.

    :param axis: 0, 1 or 2, at compile time.
    :return: an ``int32`` scalar from 0 to ``num_programs(axis) - 1``.
    """
    outside()


@builtin
def num_programs(axis: int) -> tensor:
    """The number of programs along an axis of the grid, as the launch gave it (1 for an axis that it left
    out).

    :param axis: 0, 1 or 2, at compile time.
    :return: an ``int32`` scalar.
    """
    outside()


@builtin
def nanoseconds() -> tensor:
    """The time in nanoseconds since some moment in the past, an ``int64`` scalar; looked up anew each time."""
    outside()


@builtin
def condition(arg: tensor, disable_licm: bool = False) -> tensor:
    """The condition of a ``while`` loop, with hints: ``while tl.condition(n > 1, disable_licm=True):``.

    :param disable_licm: leave what does not change between iterations inside the loop.
    """
    outside()


class range:
    """What a ``for`` loop counts through; Python's ``range`` with hints for the compiler.

    ``tl.range(end)``, ``tl.range(start, end)`` or ``tl.range(start, end, step)``, of run-time or compile-time
    integers. The loop stays a loop. A target that has no use for a hint ignores it; one that might use it and
    does not says so in a ``UserWarning``, with the line, when the kernel is compiled (with ``TRITON_STRICT=1`` in
    an error).

    :param num_stages: how many iterations of loads may be in flight at once, instead of the kernel's
        ``num_stages``. With more than one, an iteration's loads may come before what earlier iterations
        store through other pointers. Fewer, with a warning, where shared memory is too small;
        more where a product's launch has so few programs that memory would lie idle (``TRITON_DEEPEN=0``: never).
    :param loop_unroll_factor: how many iterations the body is repeated for; 1 keeps the loop as it is.
        Unasked, short loops of two to four iterations by constant bounds are written out.
    :param disallow_acc_multi_buffer: keep one buffer for the accumulator of a `dot` in the loop, as is always done.
    :param flatten: join this loop with the one inside it; not done.
    :param warp_specialize: let different warps load and compute; not done.
    :param disable_licm: leave what does not change between iterations inside the loop.
    """

    __triton_kind__ = "range"

    def __init__(
        self,
        arg1,
        arg2=None,
        step=None,
        num_stages=None,
        loop_unroll_factor=None,
        disallow_acc_multi_buffer=False,
        flatten=False,
        warp_specialize=False,
        disable_licm=False,
    ):
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step
        self.num_stages = num_stages
        self.loop_unroll_factor = loop_unroll_factor
        self.disallow_acc_multi_buffer = disallow_acc_multi_buffer
        self.flatten = flatten
        self.warp_specialize = warp_specialize
        self.disable_licm = disable_licm

    def __iter__(self) -> Iterator[tensor]:
        raise RuntimeError("tl.range is for loops inside of kernels; a Python loop takes Python's range")


class static_range:
    """What a ``for`` loop of compile-time integers counts through: the body is repeated for each, with the
    counter a compile-time value.

    ``tl.static_range(end)``, ``tl.static_range(start, end)`` or ``tl.static_range(start, end, step)``.
    """

    __triton_kind__ = "static_range"

    def __init__(self, arg1, arg2=None, step=None):
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step

    def __iter__(self) -> Iterator[int]:
        if not compute_for_kernel():
            raise RuntimeError("tl.static_range is for loops inside of kernels; a Python loop takes Python's range")
        return iter(builtins.range(*map(unwrap, (self.start, self.end, self.step))))
