"""Types of `launchable.py`."""

from collections.abc import Callable, Iterable
from typing import Any

from .jit import JITFunction, KernelInterface, _Launch

class Launchable(KernelInterface[_Launch]):
    fn: KernelInterface[Any]
    kernel: JITFunction[..., Any]
    base_fn: Callable[..., Any]
    arg_names: list[str]
    __name__: str
    __qualname__: str
    def __init__(self, fn: KernelInterface[Any]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Heuristics(Launchable):
    values: dict[str, Callable[[dict[str, Any]], Any]]
    def __init__(
        self, fn: KernelInterface[Any], arg_names: list[str], values: dict[str, Callable[[dict[str, Any]], Any]]
    ) -> None: ...
    def warmup(self, *args: Any, **kwargs: Any) -> Any: ...

def check_names(tuner: Launchable, names: Iterable[str], what: str, options: bool = False) -> None: ...
def heuristics(
    values: dict[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[KernelInterface[Any]], Heuristics]: ...
