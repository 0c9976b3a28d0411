"""A sample of random indices; tests/fuzz/campaign.py runs as many as one likes."""

import pytest
from campaign import sample


def test_random_indices_are_those_of_unbounded_arithmetic(target, tmp_path):
    if target.startswith("cuda") or target == "interpret":
        pytest.skip("the large array is the host's, and nothing is proved where nothing is compiled")
    result = sample("indices", 8, tmp_path, target)
    assert result["counts"][target]["agrees"] >= 4
