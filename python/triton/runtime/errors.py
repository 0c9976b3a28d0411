"""Errors of launches, under the names that code written for the public API imports from here."""

from ..errors import AutotunerError, OutOfResources

__all__ = ["AutotunerError", "OutOfResources"]
