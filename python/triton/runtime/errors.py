"""Errors of launches, under the names that code written for the public API imports from here."""

from ..errors import AutotunerError, OutOfResources, PTXASError, TritonError

InterpreterError = TritonError  # what goes wrong in an interpreted kernel is told as in a compiled one


__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
