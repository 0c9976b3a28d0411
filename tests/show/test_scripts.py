"""Scripts that need what few machines have start everywhere."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_sanitize():
    script = [sys.executable, ROOT / "scripts" / "sanitize"]
    assert "racecheck" in subprocess.run([*script, "--help"], check=True, capture_output=True, text=True).stdout
