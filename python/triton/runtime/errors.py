"""Errors of launches, under the names that code written for the public API imports from here."""

from ..errors import AutotunerError, OutOfResources, PTXASError, TritonError


class InterpreterError(TritonError):
    """Never raised: there is no interpreter, kernels are always compiled."""


__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
