"""The code for narrower vectors and older instruction sets, which this machine can run too."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from triton import _C

from .build import Kernel

HERE = Path(__file__).parent


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
@pytest.mark.parametrize("arch", ["x86-64", "x86-64-v3"])
def test_levels(arch):
    files = [str(HERE / name) for name in ("test_casts.py", "test_dot.py", "test_elementwise.py", "test_programs.py")]
    files += [str(HERE.parent / "language" / name) for name in ("test_prefix_masks.py", "test_reductions.py")]
    few = "test_casts or test_dot or test_float_functions or test_library"
    few += " or test_conditions or test_two_dimensions or test_a_sum_has or test_masked_softmax or test_value_and_index"
    few += " or (test_random_programs and not (3 or 4 or 5 or 6 or 7 or 8 or 9))"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", few, *files]
    done = subprocess.run(command, env={**os.environ, "TRITON_CPU_ARCH": arch}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
def test_a_level_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("TRITON_CPU_ARCH", "x86-64-v9")
    k = Kernel()
    with pytest.raises(ValueError, match="none of x86-64, x86-64-v2, x86-64-v3 and x86-64-v4"):
        _C._run_cpu(k.text(), [])
