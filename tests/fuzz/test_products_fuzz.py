"""A sample of random loops of products; tests/fuzz/campaign.py runs as many as one likes."""

from campaign import sample


def test_random_products_are_the_same_everywhere(tmp_path):
    result = sample("products", 40, tmp_path)
    assert result["counts"]["sim:90"]["agrees"] > 20
