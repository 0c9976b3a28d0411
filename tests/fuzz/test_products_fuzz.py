"""Samples of random loops of products, attention and dequantising; tests/fuzz/campaign.py runs as many as one likes."""

from campaign import sample


def test_random_products_are_the_same_everywhere(tmp_path):
    result = sample("products", 40, tmp_path)
    assert result["counts"]["sim:90"]["agrees"] > 20


def test_random_attention_agrees_with_numpy(target, tmp_path):
    result = sample("attention", 12, tmp_path, target)
    assert result["counts"][target]["agrees"] > 8


def test_random_products_of_few_bits_agree_with_numpy(target, tmp_path):
    result = sample("dequantise", 20, tmp_path, target)
    assert result["counts"][target]["agrees"] > 15
