"""Builtins on values of several parts."""

from __future__ import annotations

from ._builtin import builtin


@builtin
def aggregate_replace(value, **fields):
    """A copy of an object of a class of `triton.aggregate` (or of a named tuple) with other values in these fields."""
    if not hasattr(value, "_replace"):
        raise TypeError(f"tl.aggregate_replace expects an aggregate instance, not {value!r}")
    return value._replace(**fields)
