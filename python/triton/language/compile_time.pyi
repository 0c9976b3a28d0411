"""In a kernel a `constexpr` is the value that it holds, which may be of any type."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from .dtypes import base_type

_P = ParamSpec("_P")
_R = TypeVar("_R")

class const: ...

class constexpr_type(base_type):
    value: Any
    def __init__(self, value: Any) -> None: ...

constexpr: TypeAlias = Any

class constexpr_function(Generic[_P, _R]):
    fn: Callable[_P, _R]
    def __init__(self, fn: Callable[_P, _R]) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @property
    def src(self) -> str: ...

def unwrap(value: Any) -> Any: ...
def _unwrap_if_constexpr(value: Any) -> Any: ...
