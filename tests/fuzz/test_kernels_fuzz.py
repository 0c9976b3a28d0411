"""A sample of random kernels; tests/fuzz/campaign.py runs as many as one likes."""

from campaign import sample


def test_random_kernels_agree_with_numpy(target, tmp_path):
    result = sample("kernels", 150, tmp_path, target)
    assert result["counts"][target]["agrees"] > 100
