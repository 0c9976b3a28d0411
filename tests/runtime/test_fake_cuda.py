"""Which calls the CUDA driver gets, shown by one without a GPU; the cases run in a process that finds it as libcuda."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "fake_cuda"


# Drivers older than CUDA 12.0 have no libraries, and who wants all loaded in advance does not get them.
@pytest.mark.parametrize(
    "cases, driver, loading",
    [
        ("cases.py", [], "LAZY"),
        ("cases.py", ["-DOLD_DRIVER"], "LAZY"),
        ("cases.py", [], "EAGER"),
        ("tuning_cases.py", [], "LAZY"),
    ],
)
def test_cases_on_the_fake_driver(tmp_path, cases, driver, loading):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("there is no C compiler to build the driver with")
    if not sys.platform.startswith("linux"):
        pytest.skip("the driver takes the real one's place through LD_LIBRARY_PATH")
    library = tmp_path / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", *driver, "-o", library, FOLDER / "fake_cuda.c"], check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", FOLDER / cases, "--target", "cuda"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "CUDA_MODULE_LOADING": loading}
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout
