"""Compiling kernels without launching them, and what can be asked of a compiled one."""

from .compiler import ASTSource, CompiledKernel, LazyDict, compile, make_backend, max_shared_mem
from .errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "IRSource",
    "LazyDict",
    "UnsupportedLanguageConstruct",
    "compile",
    "get_cache_key",
    "make_backend",
    "max_shared_mem",
]


def _load(name):
    if name == "get_cache_key":
        from ..runtime.cache import get_cache_key

        return get_cache_key
    if name == "IRSource":
        from .ir_source import IRSource

        return IRSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtime.cache import get_cache_key
    from .ir_source import IRSource
else:
    __getattr__ = _load  # a type checker would take every name
