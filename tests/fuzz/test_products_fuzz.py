"""A sample of random loops of products; tests/fuzz/products.py runs as many as one likes."""

import pytest
from products import run


@pytest.mark.parametrize("batch", range(2))
def test_random_products_are_the_same_everywhere(batch):
    reports = list(run(range(batch * 20, (batch + 1) * 20)))
    assert not reports, "\n\n".join(reports)
