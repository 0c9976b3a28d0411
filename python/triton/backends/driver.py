"""The base of all drivers, under the name that code written for the public API imports from here."""

from ..runtime.driver_base import DriverBase

__all__ = ["DriverBase"]
