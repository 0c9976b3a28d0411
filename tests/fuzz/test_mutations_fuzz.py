"""A sample of mangled kernels; tests/fuzz/mutate.py compiles as many as one likes."""

import pytest
from mutate import run


@pytest.mark.parametrize("batch", range(4))
def test_mangled_kernels_compile_or_raise(batch):
    counts, reports = run(range(batch * 250, (batch + 1) * 250))
    assert not reports, "\n\n".join(reports)
    assert sum(counts.values()) == 250
