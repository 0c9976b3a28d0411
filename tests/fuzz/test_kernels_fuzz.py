"""A sample of random kernels; tests/fuzz/kernels.py runs as many as one likes."""

import pytest
from kernels import run


@pytest.mark.parametrize("batch", range(3))
def test_random_kernels_agree_with_numpy(batch):
    reports = list(run(range(batch * 50, (batch + 1) * 50)))
    assert not reports, "\n\n".join(reports)
