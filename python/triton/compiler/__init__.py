"""Compiling kernels without launching them, and what can be asked of a compiled one."""

from .compiler import ASTSource, CompiledKernel, KernelMetadata, compile
from .errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "KernelMetadata",
    "UnsupportedLanguageConstruct",
    "compile",
]
