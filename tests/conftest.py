"""Which target the tests run on: `pytest --target cpu` (also sim:80, sim:90, cuda)."""

import os
import zlib

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--target", default="cpu", help="the target to compile for: cpu, sim:80, sim:90, cuda; or interpret"
    )
    parser.addoption(
        "--assemble", type=int, nargs="?", const=1, default=0, metavar="N", help="have ptxas take each N-th kernel too"
    )
    parser.addoption("--sample", type=int, default=1, metavar="N", help="run one test in N, always the same ones")
    parser.addoption(
        "--padding", action="store_true", help="on a simulator, run with two paddings of tiles, and compare"
    )
    parser.addoption("--update", action="store_true", help="rewrite the expected texts (messages, IR) in the tests")


def pytest_configure(config):
    target = config.getoption("--target")
    os.environ["TRITON_TARGET"] = "cpu" if target == "interpret" else target
    os.environ.pop("TRITON_INTERPRET", None)  # what is marked as compiled would be interpreted
    if target == "interpret":
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("TRITON_VERIFY", "1")
    os.environ.setdefault("TRITON_BACKGROUND", "0")  # variants are counted, and results compared bit by bit
    os.environ.setdefault("TRITON_CACHE_SIZE", "0")  # nothing is left on this machine, nor taken from what is there
    if config.getoption("--padding"):
        os.environ["TEST_PADDING"] = "1"
    if config.getoption("--assemble"):
        import assembling  # and with it triton, which reads the environment

        assembling.install(config, config.getoption("--assemble"))


def pytest_collection_modifyitems(config, items):
    if config.getoption("--target").startswith("cuda"):
        for item in items:
            if item.get_closest_marker("host"):
                item.add_marker(pytest.mark.skip(reason="its arrays lie in host memory"))
    if config.getoption("--target") == "interpret":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="it is about compiled code"))
    every = config.getoption("--sample")
    left_out = [item for item in items if zlib.crc32(item.nodeid.encode()) % every]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not zlib.crc32(item.nodeid.encode()) % every]


def variables():
    return {name: value for name, value in os.environ.items() if name.startswith(("TRITON_", "TEST_"))}


@pytest.fixture(autouse=True)
def variables_stay():
    """Of the environment: what a test leaves behind would decide those that its process runs next."""
    before = variables()
    yield
    assert variables() == before


@pytest.fixture(scope="session")
def target(request):
    """The target the kernels are compiled for."""
    return request.config.getoption("--target")


@pytest.fixture(scope="session")
def device(target):
    """The torch device that the kernels' arguments belong on."""
    return "cuda" if target.startswith("cuda") else "cpu"
