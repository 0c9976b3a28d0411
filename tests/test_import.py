"""Importing the package."""

import subprocess
import sys


def test_versions_agree():
    import triton
    from triton import _C

    assert _C.version() == triton.__version__
    assert int(_C.llvm_version().split(".")[0]) >= 19


def test_import_is_light():
    """A command-line tool that merely imports triton must not pay for torch and numpy."""
    code = "import sys, triton; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
