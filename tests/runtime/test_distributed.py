"""Kernels in the ranks of torch.distributed: two processes on the CPU, over gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.host
FOLDER = Path(__file__).parent
LESSON = FOLDER.parents[1] / "tutorials" / "07_two_devices.py"


def run(*command, **environment):
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "TRITON_CACHE_SIZE": "1G"} | environment
    return subprocess.run(
        [sys.executable, *map(str, command)], check=True, capture_output=True, text=True, env=environment, timeout=300
    ).stdout


def test_ranks_tune_once(tmp_path):
    """And use one cache; each gets what its kernel computed, added up."""
    run(FOLDER / "distributed_process.py", tmp_path, TRITON_CACHE_DIR=str(tmp_path), TRITON_CPU_THREADS="1")
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert sorted(rank["timed"] for rank in ranks) == [0, 3]
    assert {(rank["chosen"], rank["sum"]) for rank in ranks} == {(64, 3.0)}
    assert len(list((tmp_path / "tuning").glob("*.json"))) == 1


@pytest.mark.slow
def test_the_lesson_says_that_there_are_no_gpus(target):
    if target != "cpu":
        pytest.skip("its tiles are for CPUs")
    program = f"import sys; sys.path.insert(0, {str(LESSON.parent)!r}); assert __import__({LESSON.stem!r}).check()"
    assert run("-c", program) == "there are not two GPUs here: two processes on the CPU do the same, over gloo\n"
