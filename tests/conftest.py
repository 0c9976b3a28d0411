"""Which target the tests run on: `pytest --target cpu` (also sim:80, sim:90, cuda)."""

import os

import pytest


def pytest_addoption(parser):
    parser.addoption("--target", default="cpu", help="the target to compile for: cpu, sim:80, sim:90, cuda")
    parser.addoption("--update", action="store_true", help="rewrite the expected texts (messages, IR) in the tests")


def pytest_configure(config):
    os.environ["TRITON_TARGET"] = config.getoption("--target")
    os.environ.setdefault("TRITON_VERIFY", "1")


@pytest.fixture(scope="session")
def target(request):
    """The target the kernels are compiled for."""
    return request.config.getoption("--target")


@pytest.fixture(scope="session")
def device(target):
    """The torch device that the kernels' arguments belong on."""
    return "cuda" if target.startswith("cuda") else "cpu"
