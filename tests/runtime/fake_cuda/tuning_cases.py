"""Tuning on the driver of test_fake_cuda.py: what is timed where, in graphs, on two devices."""

import itertools
import time

import pytest
from cases import GLOBAL, Array, cuda, fresh, log  # noqa: F401

import triton
import triton.language as tl
from triton.runtime.timing import BesideClock


def tuned(*blocks, kernel=None, **options):
    @triton.jit
    def scale(x, y, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)

    configs = [triton.Config({"BLOCK": block}) for block in blocks]
    return triton.autotune(configs, key=["n"], **options)(kernel or scale)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def launches():
    return [line for line in log() if line.startswith("launch")]


def test_the_time_is_that_of_the_kernel_alone():
    kernel = tuned(128, 256, rep=0.1, warmup=0)
    kernel[grid](Array(), Array(number=1), 1000)
    assert [times[0] for times in kernel.configs_timings.values()] == pytest.approx([1, 1])
    clears = [line for line in log() if line.startswith("clear")]
    assert len(clears) >= 6  # before each call that counts
    assert "launch (8, 1, 1) of 128 on 0, stream 0" in launches()
    assert "launch (4, 1, 1) of 128 on 0, stream 0" in launches()


@pytest.mark.parametrize("configs", ["listed", "auto"])
def test_what_is_ready_is_timed_while_the_rest_is_compiled(configs, monkeypatch):
    """On one core, which takes 50 ms for each; and brought onto the device where it is timed."""

    @triton.jit
    def scale(x, y, n, BLOCK: triton.tunable([128])):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)

    monkeypatch.setattr("triton.runtime.parallel.core_count", lambda: 1)
    how = {"rep": 0.1, "warmup": 0}
    kernel = tuned(128, 256, 512, **how) if configs == "listed" else triton.autotune("auto", key=["n"], **how)(scale)
    cuda.fake_set_slow(50)
    kernel[grid](Array(), Array(number=1), 1000)
    words = [line.split()[0] for line in log() if line.startswith(("load", "launch"))]
    loads = [place for place, word in enumerate(words) if word == "load"]
    assert len(loads) >= 3 and min(end - start for start, end in itertools.pairwise(loads)) > 3


def test_a_call_that_comes_late_does_not_count(monkeypatch):
    """Beside other work of the host's; unless all do."""
    monkeypatch.setattr(BesideClock, "HIDDEN", 5.0)  # sleeping for no time takes some
    for late, count in ([0, 1, 0, 1, 1], 2), ([1] * 5, 5):
        waits = iter(late)
        assert len(BesideClock(lambda: time.sleep(next(waits) * 1e-2)).sample(5)) == count  # noqa: B023


def test_it_is_timed_where_the_arrays_are():
    kernel = tuned(128, 256, rep=0.1, warmup=0)
    kernel[grid](Array(1), Array(1, 1), 1000)
    assert all(" on 1, " in line for line in launches())
    assert {line for line in log() if line.startswith("load")} == {"load on 1"}


def test_equal_code_is_timed_once():
    """A loop that nothing is loaded ahead in is the same for every number of stages."""
    tried = []

    def bench(launch, quantiles):
        tried.append(launch().metadata.num_stages)
        return [1.0]

    configs = [triton.Config({"BLOCK": 128}, num_stages=stages) for stages in (1, 2, 3)]
    configs += [triton.Config({"BLOCK": 128}, num_warps=8)]
    kernel = triton.autotune(configs, key=["n"], do_bench=bench)(tuned(128).fn)
    kernel[grid](Array(), Array(number=1), 1000)
    states = [entry["state"] for entry in kernel.timings[0]["configurations"]]
    assert len(tried) == 2 and sorted(states) == ["same code", "same code", "timed", "timed"]


def test_nothing_is_tuned_in_a_capture():
    kernel = tuned(128, 256, rep=0.1, warmup=0)
    arrays = Array(), Array(number=1)
    cuda.fake_begin_capture(0x1008, GLOBAL)
    with pytest.raises(triton.AutotunerError) as error:
        kernel[grid](*arrays, 1000, stream=0x1008)
    text = str(error.value)
    assert text.startswith("kernel 'scale' is not tuned yet for n=1000, float32, float32, Fake GPU, 90")
    assert text.endswith("cannot be done while a CUDA graph is captured: launch it with such arguments once before")
    assert cuda.fake_end_capture() and not log()
    kernel[grid](*arrays, 1000)
    cuda.fake_begin_capture(0x1008, GLOBAL)
    kernel[grid](*arrays, 1000, stream=0x1008)
    assert cuda.fake_end_capture()


def test_one_configuration_may_be_captured():
    kernel = tuned(128)
    cuda.fake_begin_capture(0x1008, GLOBAL)
    kernel[grid](Array(), Array(number=1), 1000, stream=0x1008)
    assert cuda.fake_end_capture()


def test_configurations_that_the_device_has_no_room_for():
    cuda.fake_set_kernel(255, 64)
    configs = [triton.Config({"BLOCK": 128}, num_warps=warps) for warps in (8, 2, 4)]
    kernel = triton.autotune(configs, key=["n"], rep=0.1, warmup=0)(tuned(128).fn)
    kernel[grid](Array(), Array(number=1), 1000)
    assert kernel.best_config is configs[1]
    failed = [entry for entry in kernel.timings[0]["configurations"] if entry["state"] == "failed"]
    assert len(failed) == 2 and all("out of resource: " in entry["note"] for entry in failed)


def test_results_on_disk_are_for_a_kind_of_device(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for device in (0, 1):
        kernel = tuned(128, 256, rep=0.1, warmup=0, cache_results=True)
        kernel[grid](Array(device), Array(device, 1), 1000)
    assert len(list((tmp_path / "tuning").glob("*.json"))) == 2  # they are unlike
    before = len(launches())
    tuned(128, 256, rep=0.1, warmup=0, cache_results=True)[grid](Array(), Array(number=1), 1000)
    assert len(launches()) == before + 1


def test_the_space_is_searched_where_the_arrays_are():
    @triton.jit
    def scale(x, y, n, BLOCK: triton.tunable(64, 1024)):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)

    tried = []

    def bench(launch, quantiles):
        compiled = launch()
        tried.append((compiled.metadata.constants["BLOCK"], compiled.num_warps))
        return [abs(compiled.metadata.constants["BLOCK"] - 256) + compiled.num_warps]

    kernel = triton.autotune("auto", key=["n"], do_bench=bench)(scale)
    kernel[grid](Array(1), Array(1, 1), 1000)
    assert kernel.considered == 25 and len(tried) <= 60
    assert kernel.best_config.kwargs["BLOCK"] == 256
    assert all(" on 1, " in line for line in launches())


def test_unlike_devices_are_tuned_for_apart():
    """The fake ones differ in their clocks."""
    kernel = tuned(128, 256, rep=0.1, warmup=0)
    for device in (0, 1, 0):
        kernel[grid](Array(device), Array(device, 1), 1000)
    assert len(kernel.timings) == 2
    assert [key[:3] for key in kernel.cache] == [(1000, "float32", "float32")] * 2
