"""Scripts that need what few machines have start everywhere."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_sanitize():
    script = [sys.executable, ROOT / "scripts" / "sanitize"]
    assert "racecheck" in subprocess.run([*script, "--help"], check=True, capture_output=True, text=True).stdout


COMMANDS = "c profiler profiler.viewer tools.cache tools.compile tools.disasm tools.layout tools.link"


@pytest.mark.parametrize("module", COMMANDS.split())
def test_commands_say_what_they_take(module):
    """From the documents: `python -m triton.tools.compile` and its like."""
    command = [sys.executable, "-m", f"triton.{module}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: ") and len(done.stdout) > 200, done.stderr
