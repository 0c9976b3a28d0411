"""Targets, under the names that code written for the public API imports from here."""

from ..runtime.target import GPUTarget

__all__ = ["GPUTarget"]
