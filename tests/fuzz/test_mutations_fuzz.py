"""A sample of mangled kernels; tests/fuzz/campaign.py compiles as many as one likes."""

from campaign import sample


def test_mangled_kernels_compile_or_raise(tmp_path):
    result = sample("mutants", 1000, tmp_path)
    assert sum(result["counts"]["ptx"].values()) > 250
