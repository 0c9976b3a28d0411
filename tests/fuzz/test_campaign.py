"""A campaign goes on behind cases that end its workers, and says what became of each."""

import json
import subprocess
import sys
from pathlib import Path

FUZZER = """
import ctypes, os, time

def prepare():
    pass

def outcomes(seed, targets, begin):
    for target in targets:
        begin(target)
        if (seed, target) == (3, "second"):
            ctypes.string_at(0)
        if (seed, target) == (5, "first"):
            while True:
                pass
        if (seed, target) == (6, "second"):
            time.sleep(1000)
        if (seed, target) == (8, "first"):
            os._exit(7)
        if (seed, target) == (9, "second"):
            raise ValueError("unexpected")
        if (seed, target) == (11, "first"):
            b"x" * (300 << 20)
        if (seed, target) == (12, "first"):
            end = time.process_time() + 0.6
            while time.process_time() < end:
                pass
        yield "differs: much" if (seed, target) == (14, "first") else "agrees"

def script(seed, target):
    return f"seed = {seed}"
"""

RUN = """
import sys
sys.path[:0] = sys.argv.pop(1).split(":")
import campaign
campaign.FUZZERS["broken"] = ("broken", ["first", "second"], 8)
campaign.SILENT, campaign.SECONDS, campaign.MEMORY = (2, 8), 0.5, 200 << 20
sys.exit(campaign.main())
"""


def test_every_kind_of_failure_is_told_and_survived(tmp_path):
    (tmp_path / "broken.py").write_text(FUZZER)
    command = [
        sys.executable,
        "-c",
        RUN,
        f"{Path(__file__).parent}:{tmp_path}",
        "broken",
        "--count",
        "20",
        "--jobs",
        "2",
    ]
    command += ["--json", tmp_path / "result.json", "--failures", tmp_path / "failures"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    found = {(failure["seed"], failure["target"]): failure["outcome"].split()[0] for failure in result["failures"]}
    assert found == {
        (3, "second"): "crash:",
        (5, "first"): "hangs:",
        (6, "second"): "hangs:",
        (8, "first"): "crash:",
        (9, "second"): "bug",
        (11, "second"): "memory:",
        (12, "second"): "slow:",
        (14, "first"): "differs:",
    }
    assert result["cases"] == 20
    kept = {file.name: file.read_text() for file in (tmp_path / "failures").iterdir()}
    assert len(kept) == 8
    assert kept["broken-3-second.py"].endswith("seed = 3") and "Segmentation fault" in kept["broken-3-second.py"]
    assert "in outcomes" in kept["broken-6-second.py"]  # where it hung
