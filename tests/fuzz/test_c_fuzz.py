"""Samples of random and of mangled programs in Triton-C; tests/fuzz/campaign.py runs as many as one likes."""

from campaign import sample


def test_random_programs_agree_with_numpy(target, tmp_path):
    result = sample("c-programs", 150, tmp_path, target)
    assert result["counts"][target]["agrees"] > 140


def test_mangled_programs_compile_or_raise(tmp_path):
    result = sample("c-mutants", 2000, tmp_path)
    assert sum(counts.get("compiled", 0) for counts in result["counts"].values()) > 100
