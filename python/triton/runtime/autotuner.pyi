"""Types of `autotuner.py`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict, overload

from .config import Config
from .jit import KernelInterface
from .launchable import Heuristics as Heuristics
from .launchable import Launchable
from .launchable import heuristics as heuristics
from .space_tuner import SpaceTuner

class _Prune(TypedDict, total=False):
    perf_model: Callable[..., float]
    top_k: int | float
    early_config_prune: Callable[..., Sequence[Config]]

class Autotuner(Launchable):
    configs: list[Config]
    keys: list[str]
    cache: dict[Any, Config]
    best_config: Config | None
    configs_timings: dict[Config, list[float]] | None
    bench_time: float | None
    timings: list[dict[str, Any]]
    reset_to_zero: list[str]
    restore_value: list[str]
    perf_model: Callable[..., float] | None
    configs_top_k: int | float
    early_config_prune: Callable[..., Sequence[Config]] | None
    nargs: dict[str, Any] | None
    def __init__(
        self,
        fn: KernelInterface[Any],
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: _Prune | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ) -> None: ...
    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]: ...
    @property
    def do_bench(self) -> Callable[..., Any]: ...
    @do_bench.setter
    def do_bench(self, function: Callable[..., Any]) -> None: ...
    def pre_hook(self, arguments: dict[str, Any], reset_only: bool = False) -> None: ...
    def post_hook(self, arguments: dict[str, Any], exception: BaseException | None = None) -> None: ...
    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]: ...
    def _bench(self, *args: Any, config: Config, **meta: Any) -> list[float]: ...

def config_text(config: Config) -> str: ...
def device_number(arguments: Any) -> int | None: ...
@overload
def autotune(
    configs: Literal["auto"],
    key: Sequence[str],
    prune_configs_by: _Prune | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    seed: int = 0,
) -> Callable[[KernelInterface[Any]], SpaceTuner]: ...
@overload
def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: _Prune | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    seed: int = 0,
) -> Callable[[KernelInterface[Any]], Autotuner]: ...
