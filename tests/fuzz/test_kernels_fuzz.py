"""A sample of random kernels; tests/fuzz/kernels.py runs as many as one likes."""

import pytest
from kernels import check

BATCH = 10


@pytest.mark.parametrize("batch", range(15))
def test_random_kernels_agree_with_numpy(batch):
    reports = [report for seed in range(batch * BATCH, (batch + 1) * BATCH) if (report := check(seed))]
    assert not reports, "\n\n".join(reports)
