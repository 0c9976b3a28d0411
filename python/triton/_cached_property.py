"""``functools.cached_property`` without the lock that it had before Python 3.12, one for all instances of a class."""

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """Threads may compute it at once: what the first of them made is kept.

        A process that is forked while another thread computes one can read it; with a lock it would wait for ever.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            kept, name = instance.__dict__, self.attrname
            return kept[name] if name in kept else kept.setdefault(name, self.func(instance))


__all__ = ["cached_property"]
