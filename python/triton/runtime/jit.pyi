"""Types of `jit.py`: a decorated function keeps its signature, for calls from other kernels."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from ..compiler import CompiledKernel
from .wrapper import MockTensor as MockTensor
from .wrapper import TensorWrapper as TensorWrapper
from .wrapper import reinterpret as reinterpret

_P = ParamSpec("_P")
_R = TypeVar("_R")
T = TypeVar("T")

class KernelParam:
    num: int
    name: str
    annotation: Any
    annotation_type: str | None
    has_default: bool
    is_constexpr: bool
    is_const: bool
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool
    @property
    def default(self) -> Any: ...

class _Launch(Protocol):
    """``kernel[grid]``: takes the kernel's arguments, and options by name."""

    def __call__(
        self,
        *args: Any,
        num_warps: int = ...,
        num_stages: int = ...,
        num_ctas: int = ...,
        maxnreg: int | None = ...,
        debug: bool | int = ...,
        stream: Any = ...,
        **kwargs: Any,
    ) -> CompiledKernel: ...

class KernelInterface(Generic[T]):
    def run(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getitem__(self, grid: Any) -> T: ...

class JITCallable: ...

class JITFunction(JITCallable, KernelInterface[_Launch], Generic[_P, _R]):
    fn: Callable[_P, _R]
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
    __wrapped__: Callable[_P, _R]
    def __init__(
        self,
        fn: Callable[_P, _R],
        version: Any = None,
        do_not_specialize: Sequence[str | int] | None = None,
        do_not_specialize_on_alignment: Sequence[str | int] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., dict[str, Any]] | None = None,
    ) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> JITFunction[_P, _R]: ...
    def warmup(self, *args: Any, grid: Any = ..., **kwargs: Any) -> CompiledKernel: ...
    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None: ...
    def variants(self) -> list[CompiledKernel]: ...
    def parse(self) -> Any: ...
    kernel: None
    def is_gluon(self) -> bool: ...
    def preload(self, specialization_data: str) -> Any: ...
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
    def device_caches(self) -> dict[Any, tuple[dict[str, CompiledKernel], dict[Any, str], Any, Any, Any]]: ...
    def create_binder(self) -> tuple[dict[str, CompiledKernel], dict[Any, str], Any, Any, Any]: ...
    @property
    def constexprs(self) -> list[int]: ...

def compute_cache_key(kernel_key_cache: dict[Any, str], specialization: Any, options: Any) -> str: ...
def mangle_type(argument: Any, specialize: bool = False) -> Any: ...
def get_device_key() -> str: ...
def get_jit_fn_file_line(fn: Any) -> tuple[str, int]: ...
@overload
def jit(fn: Callable[_P, _R]) -> JITFunction[_P, _R]: ...
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
) -> Callable[[Callable[_P, _R]], JITFunction[_P, _R]]: ...
