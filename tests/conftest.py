"""Which target the tests run on: `pytest --target cpu` (also sim:80, sim:90, cuda)."""

import os

import pytest


def pytest_addoption(parser):
    parser.addoption("--target", default="cpu", help="the target to compile for: cpu, sim:80, sim:90, cuda")
    parser.addoption("--update", action="store_true", help="rewrite the expected texts (messages, IR) in the tests")


def pytest_configure(config):
    os.environ["TRITON_TARGET"] = config.getoption("--target")
    os.environ.setdefault("TRITON_VERIFY", "1")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--target").startswith("cuda"):
        for item in items:
            if item.get_closest_marker("host"):
                item.add_marker(pytest.mark.skip(reason="its arrays lie in host memory"))


@pytest.fixture(scope="session")
def target(request):
    """The target the kernels are compiled for."""
    return request.config.getoption("--target")


@pytest.fixture(scope="session")
def device(target):
    """The torch device that the kernels' arguments belong on."""
    return "cuda" if target.startswith("cuda") else "cpu"
