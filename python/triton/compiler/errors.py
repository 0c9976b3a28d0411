"""Compile errors, under the names that code written for the public API imports from here."""

from ..errors import CompilationError, CompileTimeAssertionFailure, TritonError, UnsupportedError

UnsupportedLanguageConstruct = UnsupportedError

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "TritonError", "UnsupportedLanguageConstruct"]
