"""Samples of random loops, control flow, windows and atomics; tests/fuzz/campaign.py runs as many as one likes."""

import numpy as np
import smallest
from campaign import sample
from harness import Array
from launches import Launch


def test_random_loops_agree_with_numpy(target, tmp_path):
    result = sample("loops", 20, tmp_path, target)
    assert result["counts"][target]["agrees"] > 15


def test_random_control_flow_agrees_with_python(target, tmp_path):
    result = sample("flow", 50, tmp_path, target)
    assert result["counts"][target]["agrees"] == 50


def test_random_windows_and_atomics_agree_with_numpy(target, tmp_path):
    result = sample("windows", 40, tmp_path, target)
    assert result["counts"][target]["agrees"] == 40


def test_what_is_wrong_is_told_in_few_lines(monkeypatch):
    """A language in which the sum of all, and of nothing else, is wrong."""
    monkeypatch.setenv("TRITON_TARGET", "cpu")  # which trying out sets
    monkeypatch.setattr(smallest.numpy_language.Language, "sum", lambda self, x, axis=None: x.max(axis))
    lines = ["i = tl.arange(0, 4)", "x = i + 1", "for j in range(2):", "    x = x + j", "    y = tl.sum(x)"]
    lines += ["    if j == 0:", "        x = x * 2", "tl.store(out + i, x)", "tl.store(out, y)"]
    body = "".join(f"    {line}\n" for line in lines)
    arrays = {"out": Array(np.zeros(4, np.int32), "int32")}
    launch = Launch(f"@triton.jit\ndef kernel(out):\n{body}", arrays, [], 1, {}, None)
    begun = []
    [outcome] = smallest.outcomes(launch, ["cpu"], begun.append)
    assert begun == ["cpu"] and outcome.startswith("differs: 1 of 4 of out")
    assert outcome.splitlines()[2:] == [
        "@triton.jit",
        "def kernel(out):",
        "    i = tl.arange(0, 4)",
        "    x = i + 1",
        "    y = tl.sum(x)",
        "    tl.store(out, y)",
    ]
