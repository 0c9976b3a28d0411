"""Compiling kernels without launching them, and what can be asked of a compiled one."""

from .compiler import ASTSource, CompiledKernel, IRSource, compile, get_cache_key, make_backend, max_shared_mem
from .errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "IRSource",
    "UnsupportedLanguageConstruct",
    "compile",
    "get_cache_key",
    "make_backend",
    "max_shared_mem",
]
