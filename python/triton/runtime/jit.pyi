"""Types of `jit.py`: a decorated function keeps its signature, for calls from other kernels."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from .wrapper import MockTensor as MockTensor
from .wrapper import TensorWrapper as TensorWrapper
from .wrapper import reinterpret as reinterpret

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

class KernelParam:
    num: int
    name: str
    annotation: Any
    annotation_type: str | None
    has_default: bool
    default: Any
    is_constexpr: bool
    is_const: bool
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool

class KernelInterface(Generic[T]):
    def run(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getitem__(self, grid: Any) -> T: ...

class JITCallable: ...

class JITFunction(JITCallable, KernelInterface[Callable[..., Any]], Generic[P, R]):
    fn: Callable[P, R]
    params: list[KernelParam]
    arg_names: list[str]
    do_not_specialize: list[str | int]
    do_not_specialize_on_alignment: list[str | int]
    version: Any
    debug: bool | None
    noinline: bool
    repr: Callable[[Any], str]
    launch_metadata: Callable[..., dict[str, Any]] | None
    pre_run_hooks: list[Callable[..., Any]]
    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __get__(self, instance: Any, owner: Any = None) -> JITFunction[P, R]: ...
    def warmup(self, *args: Any, grid: Any = ..., **kwargs: Any) -> Any: ...
    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None: ...
    def variants(self) -> list[Any]: ...
    def parse(self) -> Any: ...
    @property
    def src(self) -> str: ...
    @property
    def raw_src(self) -> list[str]: ...
    @property
    def starting_line_number(self) -> int: ...
    @property
    def module(self) -> str: ...
    @property
    def signature(self) -> inspect.Signature: ...
    @property
    def cache_key(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def used_global_vals(self) -> dict[Any, Any]: ...
    @property
    def device_caches(self) -> dict[int, Any]: ...
    @property
    def constexprs(self) -> list[int]: ...

def mangle_type(argument: Any, specialize: bool = False) -> Any: ...
def get_device_key() -> str: ...
@overload
def jit(fn: Callable[P, R]) -> JITFunction[P, R]: ...
@overload
def jit(
    fn: None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., dict[str, Any]] | None = None,
    do_not_specialize: Sequence[str | int] | None = None,
    do_not_specialize_on_alignment: Sequence[str | int] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[P, R]], JITFunction[P, R]]: ...
