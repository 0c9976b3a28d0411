"""Timings on disk: found again, by other processes too; and whatever may be wrong with a file is no harm."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from counted_time import counted_time

import triton
import triton.language as tl
from triton.runtime.tuning_store import TuningStore

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_CACHE_AUTOTUNING", raising=False)
    return tmp_path / "tuning"


def add_one(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + index, tl.load(x + index, mask=index < n) + 1, mask=index < n)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


timed = []


def bench(launch, quantiles):
    timed.append(launch().metadata.constants["BLOCK"])
    return [100.0 / timed[-1]] * 3


def run(*sizes, n=64, function=add_one, cache_results=True):
    """Tunes a new kernel, as another process would, and returns the best block and which ones were timed."""
    timed.clear()
    configs = [triton.Config({"BLOCK": size}) for size in sizes]
    kernel = triton.autotune(configs, key=["n"], do_bench=bench, cache_results=cache_results)(triton.jit(function))
    x = np.zeros(n, np.float32)
    kernel[grid](x, n)
    assert (x == len(timed) + 1).all()
    assert len(kernel.configs_timings) == len(sizes)
    return kernel.best_config.kwargs["BLOCK"], list(timed)


def test_found_again(folder):
    assert run(16, 32) == (32, [16, 32])
    assert run(16, 32) == (32, [])
    assert run(16, 32, n=65) == (32, [16, 32])
    assert len(list(folder.glob("*.json"))) == 2


def test_only_what_is_new_is_timed():
    assert run(16, 32) == (32, [16, 32])
    assert run(16, 64, 32) == (64, [64])
    assert run(16, 32) == (32, [])
    assert run(16, 64) == (64, [])


def test_only_where_it_is_asked_for(folder, monkeypatch):
    run(16, 32, cache_results=False)
    assert not folder.exists()
    monkeypatch.setenv("TRITON_CACHE_AUTOTUNING", "1")
    run(16, 32, cache_results=False)
    assert run(16, 32, cache_results=False) == (32, [])


def test_another_source_is_another_kernel():
    def add_two(x, n, BLOCK: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + index, tl.load(x + index, mask=index < n) + 1 * 1, mask=index < n)

    run(16, 32)
    assert run(16, 32, function=add_two) == (32, [16, 32])


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff\xfe", b'{"checksum": 1, "body": {}}', None])
def test_damaged_files(folder, damage):
    run(16, 32)
    (path,) = folder.glob("*.json")
    if damage is None:
        kept = json.loads(path.read_text())
        next(iter(kept["body"]["configurations"].values()))["milliseconds"] = [0.0, 0.0, 0.0]
        damage = json.dumps(kept).encode()
    path.write_bytes(damage)
    assert run(16, 32) == (32, [16, 32])
    assert run(16, 32) == (32, [])


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="results of tuning are not kept"):
        assert run(16, 32) == (32, [16, 32])


def test_what_was_given_up_is_timed_in_full_if_it_is_the_fastest_left(monkeypatch):
    counted = counted_time(monkeypatch)

    def take(counted, MILLISECONDS: tl.constexpr):
        tl.store(counted, tl.load(counted) + MILLISECONDS)

    def tune(*milliseconds):
        configs = [triton.Config({"MILLISECONDS": count}) for count in milliseconds]
        kernel = triton.autotune(configs, key=[], cache_results=True)(triton.jit(take))
        kernel[(1,)](counted)
        return [(entry["state"], entry["runs"]) for entry in kernel.timings[0]["configurations"]]

    assert tune(1, 10) == [("timed", 50), ("given up", 2)]
    for _ in range(2):
        assert tune(10, 100) == [("timed", 5), ("given up", 2)]


SCRIPT = Path(__file__).parent / "tuning_process.py"


def start(*arguments, **environment):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)


def test_one_of_several_processes_tunes():
    processes = [start() for _ in range(3)]
    counts = [int(process.communicate(timeout=600)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 3
    assert sorted(counts) == [0, 0, 2]


def test_waiting_ends(folder):
    holder = TuningStore(["another"])
    with holder.locked(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_AUTOTUNING_WAIT", "0.1")
        warns = pytest.warns(RuntimeWarning, match="another process tunes this kernel for more than 0.1 s")
        with warns, TuningStore(["another"]).locked():
            pass
        patch.setenv("TRITON_AUTOTUNING_WAIT", "soon")
        raises = pytest.raises(ValueError, match="TRITON_AUTOTUNING_WAIT='soon': it is a number of seconds")
        with raises, TuningStore(["another"]).locked():
            pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with TuningStore(["another"]).locked():
            pass


def test_a_process_that_dies_gives_the_lock_back(folder):
    process = start("die")
    assert process.communicate(timeout=600)[0] == "locked\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with TuningStore(["another"]).locked():
            pass


def test_the_listener_of_tuning():
    told = []
    with triton.knobs.autotuning.scope():
        triton.knobs.autotuning.listener = lambda **about: told.append(about)
        for hits in ([False], [False, True]):
            configs = [triton.Config({"BLOCK": size}) for size in (16, 32)]
            kernel = triton.autotune(configs, key=["n"], do_bench=bench, cache_results=True)(triton.jit(add_one))
            for _ in range(2):  # the second launch finds it in memory
                kernel[grid](np.zeros(64, np.float32), 64)
            assert [each["cache_hit"] for each in told] == hits
        triton.autotune(configs[:1], key=["n"])(triton.jit(add_one))[grid](np.zeros(64, np.float32), 64)  # not compared
    made, found = told
    assert made["fn"].__name__ == "add_one" and made["best_config"] in made["configs_timings"]
    assert made["duration"] > 0 and found["duration"] is None and len(found["configs_timings"]) == 2
    assert made["key"] == found["key"]
