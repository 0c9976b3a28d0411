"""One way to compile a kernel, among which the autotuner chooses."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Never


def _unexpected(name):
    from difflib import get_close_matches

    options = "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook"
    close = get_close_matches(name, options)
    hint = f"did you mean {close[0]!r}?" if close else f"parameters of the kernel go into the dict: {{{name!r}: ...}}"
    return f"Config() got an unexpected keyword argument {name!r}; {hint}"


class Config:
    """One way to compile a kernel: values of compile-time parameters, and launch options.

    :param kwargs: name to value, for parameters that the autotuner fills in, and for launch options: those of the
        parameters below are taken from here rather than from there.
    :param num_warps: warps a program runs on.
    :param num_stages: how deep loads in loops are pipelined.
    :param num_ctas: blocks in a cluster.
    :param maxnreg: the most registers a thread may use, or None.
    :param pre_hook: called with a dict of all arguments before the kernel runs with this configuration.
    :param ir_override: a file whose text stands for a stage of the kernel, which its name ends in: ``.ttir`` (tile IR
        of this compiler, as ``TRITON_KERNEL_DUMP`` writes it) or ``.ptx``.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
        **unknown: Never,
    ):
        for name in unknown:
            raise TypeError(_unexpected(name))
        self.kwargs = dict(kwargs)
        self.num_warps: int = self.kwargs.pop("num_warps", num_warps)
        self.num_stages: int = self.kwargs.pop("num_stages", num_stages)
        self.num_ctas: int = self.kwargs.pop("num_ctas", num_ctas)
        self.maxnreg: int | None = self.kwargs.pop("maxnreg", maxnreg)
        self.pre_hook = pre_hook
        self.ir_override: str | None = self.kwargs.pop("ir_override", ir_override)

    def _options(self):
        override = {} if self.ir_override is None else {"ir_override": str(self.ir_override)}
        return override | {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
        }

    def all_kwargs(self) -> dict[str, Any]:
        """The keywords of a launch with this configuration."""
        return {**self.kwargs, **{name: value for name, value in self._options().items() if value is not None}}

    def __eq__(self, other):
        if not isinstance(other, Config):
            return NotImplemented
        mine = self.kwargs, self._options(), self.pre_hook
        return mine == (other.kwargs, other._options(), other.pre_hook)

    def __hash__(self):
        return hash((*sorted(self.all_kwargs().items(), key=str), self.pre_hook))

    def __str__(self):
        items = {**self.kwargs, **self._options()}.items()
        return ", ".join(f"{name}: {value}" for name, value in items)

    def __repr__(self):
        return f"Config({self})"
