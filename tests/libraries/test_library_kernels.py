"""The kernels of benchmarks/gpu_libraries.py, which are written as libraries write theirs, at small sizes."""

import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("too slow there", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gpu_libraries  # noqa: E402


@pytest.mark.parametrize("name", gpu_libraries.KERNELS)
def test_kernels(name):
    torch.manual_seed(0)
    make, _, sizes = gpu_libraries.KERNELS[name]
    case = make(*sizes)
    next(iter(case.configs.values()))()
    case.verify()
