"""A clock for `triton.runtime.timing` that work moves on, so that what is slower, and by how much, is no matter of who
else has the processor.

    counted = counted_time(monkeypatch)
    counted[0] += 3  # a function's work, or a kernel's that is given the array: three milliseconds
"""

from fractions import Fraction  # differences are exact
from types import SimpleNamespace

import numpy as np

from triton.runtime import timing


def counted_time(monkeypatch):
    """The array, of one integer, that says how many milliseconds have passed."""
    milliseconds = np.zeros(1, np.int64)
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: Fraction(int(milliseconds[0]), 1000)))
    return milliseconds
