"""No kernel touches memory outside of its arrays, not even by reading a little more than it was told."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_no_access_outside_of_the_arrays(target):
    if target.startswith("cuda"):
        pytest.skip("the arrays lie in host memory")
    here = Path(__file__).parent
    code = f"import sys, runpy; sys.path.insert(0, {str(here.parent)!r}); "
    code += f"runpy.run_path({str(here / 'guarded.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "no stray access" in done.stdout, done.stderr[-3000:]
