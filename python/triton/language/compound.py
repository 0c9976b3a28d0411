"""Builtins on values of several parts."""

from __future__ import annotations

from ._builtin import builtin


@builtin
def aggregate_replace(value, **fields):
    """A copy of an object of a class of `triton.aggregate` (or of a named tuple) with other values in these fields."""
    return value._replace(**fields)
