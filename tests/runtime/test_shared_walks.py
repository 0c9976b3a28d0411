"""Variants that share the frontend's walk: the cases count what is read, so they have a process of their own."""

import subprocess
import sys
from pathlib import Path


def test_cases_of_shared_walks():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        Path(__file__).with_name("shared_walks.py"),
    ]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout
