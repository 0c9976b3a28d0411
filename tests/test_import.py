"""Importing the package."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import parse


def test_versions_agree():
    import triton
    from triton import _C

    assert _C.version() == triton.tritonc_version
    assert triton.__version__ == f"3.9.0+tritonc.{triton.tritonc_version}"
    assert int(_C.llvm_version().split(".")[0]) >= 19


def test_versions_are_ordered_as_programs_ask_for_them():
    import triton

    version = parse(triton.__version__)
    assert version.release == (3, 9, 0) and version.local == f"tritonc.{triton.tritonc_version}"
    assert not version.is_prerelease
    for level in ("2.1.0", "3.0", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8", "3.9.0"):
        assert version >= parse(level)
        assert version in SpecifierSet(f">={level}")
    assert version in SpecifierSet("~=3.5") and version in SpecifierSet("==3.9.*") and version < parse("3.9.1")
    assert [int(part) for part in triton.__version__.split(".")[:2]] == [3, 9]


def test_import_is_light():
    """A command-line tool that merely imports triton must not pay for torch and numpy."""
    code = "import sys, triton; assert not {'torch', 'numpy', 'random', 'threading'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["errors.TritonError", "tools.tensor_descriptor.TensorDescriptor", "testing.do_bench"])
def test_modules_are_there_without_being_imported(name):
    subprocess.run([sys.executable, "-c", f"import triton; triton.{name}"], check=True)


def test_free_threaded_python_is_told_why_there_is_no_build():
    setup = Path(__file__).parent.parent / "setup.py"
    code = (
        "import runpy, sysconfig; known = sysconfig.get_config_var; "
        "sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else known(name); "
        f"runpy.run_path({str(setup)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, cwd=setup.parent)
    assert done.returncode == 1 and "does not build for free-threaded Python (3.13t, 3.14t)" in done.stderr
