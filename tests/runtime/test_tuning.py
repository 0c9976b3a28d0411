"""How the autotuner compares configurations: who is timed for how long, what is left out, and how that is shown."""

import json
import sys

import numpy as np
import pytest
from counted_time import counted_time

import triton
import triton.language as tl
from triton.runtime import timing

pytestmark = pytest.mark.host


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr, ROUNDS: tl.constexpr = 1):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1000, "too large")
    for _ in range(ROUNDS):
        tl.store(x + index, tl.load(x + index, mask=index < n) + 1, mask=index < n)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@triton.jit
def add_and_count(x, counted, n, BLOCK: tl.constexpr, ROUNDS: tl.constexpr = 1):
    """`add_one`, a round of which takes a millisecond of counted time."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(ROUNDS):
        tl.store(x + index, tl.load(x + index, mask=index < n) + 1, mask=index < n)
    if tl.program_id(0) == 0:
        tl.store(counted, tl.load(counted) + ROUNDS)


def tuned(configs, kernel=add_one, **options):
    return triton.autotune(configs, key=["n"], **options)(triton.jit(kernel.fn))


def blocks(*sizes, **options):
    return [triton.Config({"BLOCK": size}, **options) for size in sizes]


def instant(launch, quantiles):
    launch()
    return [1.0, 0.5, 1.5]


class Clock:
    """A clock whose calls take `milliseconds`, with noise upwards now and then."""

    def __init__(self, milliseconds):
        self.milliseconds, self.calls, self.repeated = milliseconds, 0, 0

    def sample(self, count):
        self.calls += count
        return [self.milliseconds * (1.5 if i % 5 == 0 else 1.0) for i in range(count)]

    def repeat(self, count):
        self.repeated += count


@pytest.mark.parametrize("slower, most, gives_up", [(10, 2, True), (2, 5, True), (1.2, 17, True), (1.01, None, False)])
def test_hopeless_calls_are_given_up(slower, most, gives_up):
    clock = Clock(slower)
    times, gave_up = timing.race(clock, 0, 1, best=1.0)
    assert gave_up == gives_up and min(times) >= slower
    assert most is None or clock.calls <= most


def test_the_first_is_timed_in_full():
    clock = Clock(1.0)
    times, gave_up = timing.race(clock, 0, 0.5, best=float("inf"))
    assert not gave_up and len(times) > 30


def test_a_slow_configuration_is_not_run_often(monkeypatch):
    counted = counted_time(monkeypatch)
    configs = [triton.Config({"BLOCK": 512, "ROUNDS": rounds}) for rounds in (2, 10, 5, 3)]
    kernel = tuned(configs, add_and_count, restore_value=["x"], rep=200)
    x = np.zeros(1000, np.float32)
    kernel[grid](x, counted, x.size)
    assert (x == 2).all()
    found = [(each["values"]["ROUNDS"], each["state"], each["runs"]) for each in kernel.timings[0]["configurations"]]
    assert found == [(2, "timed", 100), (3, "given up", 12), (5, "given up", 5), (10, "given up", 2)]


def test_the_fastest_of_many_are_timed_again(monkeypatch, target):
    shares, briefly, in_full = [], [4, 1, 6, 2, 5, 3, 7], [8, 9, 3, 7]

    def race(clock, warmup, rep, best):
        shares.append(rep)
        clock.sample(1)
        time = (in_full if rep == 50 else briefly)[shares.count(rep) - 1]
        return [time] * 3, False

    monkeypatch.setattr(timing, "race", race)
    configs = blocks(16, 32, 64, 128, 256, 512)
    kernel = tuned(configs + blocks(512, num_stages=5))
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert shares[-4:] == [50.0] * 4 and set(shares[:-4]) == {12.5}
    times = [kernel.configs_timings[config][0] for config in kernel.configs]
    assert times[:6] == [7, 8, 6, 9, 5, 3]  # of the second, the fourth, the sixth and the first in full
    assert kernel.best_config is kernel.configs[5]
    if target == "cpu":  # one code, one time
        assert times[6] == 3
    shares.clear()
    tuned(configs, rep=20)[grid](x, 64)
    assert shares == [20] * 6


def test_what_is_left_out_does_not_win(monkeypatch):
    """Though those that are timed in full take longer this time."""
    times = iter([4, 1, 6, 2, 5, 3, 8, 9, 7, 10])

    def race(clock, warmup, rep, best):
        clock.sample(1)
        return [next(times)] * 3, False

    monkeypatch.setattr(timing, "race", race)
    kernel = tuned(blocks(16, 32, 64, 128, 256, 512))
    kernel[grid](np.zeros(64, np.float32), 64)
    assert kernel.best_config is kernel.configs[5]


def test_the_best_may_be_given_up(monkeypatch):
    """Beside one that was lucky while it was timed briefly, whatever is timed in full is given up."""
    races = []

    def give_up(clock, warmup, rep, best):
        races.append(best)
        assert len(races) < 20
        return [1.0], True

    monkeypatch.setattr(timing, "race", give_up)
    kernel = tuned(blocks(16, 32))
    kernel[grid](np.zeros(64, np.float32), 64)
    assert kernel.best_config is not None


def test_hooks_are_not_timed(monkeypatch):
    counted = counted_time(monkeypatch)

    def wait(arguments, exception=None):
        counted[0] += 200

    kernel = tuned(blocks(16, 32, pre_hook=wait), add_and_count, pre_hook=wait, post_hook=wait)
    kernel[grid](np.zeros(64, np.float32), counted, 64)
    assert list(kernel.configs_timings.values()) == [[1, 1, 1]] * 2
    assert counted[0] > 1000


def test_equal_code_is_timed_once(target):
    """The CPU has no warps: configurations that differ in their number are compiled and timed once."""
    if target != "cpu":
        pytest.skip("other targets have warps")
    launches = []

    def bench(launch, quantiles):
        launches.append(launch().metadata.constants["BLOCK"])
        return [2.0 - launches[-1] / 100]

    configs = [*blocks(16, num_warps=1), *blocks(16, num_warps=2), *blocks(32, num_stages=1), *blocks(32, num_stages=2)]
    kernel = tuned(configs, do_bench=bench)
    kernel[grid](np.zeros(64, np.float32), 64)
    assert launches == [16, 32]
    assert kernel.best_config is configs[2]
    states = [entry["state"] for entry in kernel.timings[0]["configurations"]]
    assert states == ["timed", "same code", "timed", "same code"]


def test_warps_that_the_program_asks_for():
    @triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 2, 4)], key=[], do_bench=instant)
    @triton.jit
    def write_warps(x):
        tl.store(x, tl.extra.cuda.num_warps())

    x = np.zeros(1, np.int32)
    write_warps[(1,)](x)
    assert [entry["state"] for entry in write_warps.timings[0]["configurations"]] == ["timed"] * 3
    assert x[0] == 1


def test_failures_are_reported():
    kernel = tuned(blocks(16, 1024), do_bench=instant)
    kernel[grid](np.zeros(64, np.float32), 64)
    failed = kernel.timings[0]["configurations"][-1]
    assert failed["values"]["BLOCK"] == 1024 and failed["state"] == "failed" and failed["milliseconds"] is None
    assert "too large" in failed["note"]


def test_timings_are_json():
    kernel = tuned(blocks(16, 32, 1024), do_bench=instant)
    for n in (64, 65):
        kernel[grid](np.zeros(80, np.float32), n)
    data = json.loads(json.dumps(kernel.timings))
    assert [each["key"] for each in data] == [[["n", 64], ["", "float32"]], [["n", 65], ["", "float32"]]]
    assert data[0]["kernel"] == "add_one" and data[0]["best"]["BLOCK"] == 16
    assert 0 < data[0]["compile_seconds"] < data[0]["seconds"]
    assert [each["values"]["BLOCK"] for each in data[0]["configurations"]] == [16, 32, 1024]
    assert data[0]["configurations"][0]["milliseconds"] == [1.0, 0.5, 1.5]


def test_the_table(monkeypatch, capsys):
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    times = iter([[4.0, 3.0, 5.0], [2.0, 1.0, 3.0]])

    def bench(launch, quantiles):
        launch()
        return next(times)

    tuned(blocks(16, 32, 1024), do_bench=bench)[grid](np.zeros(64, np.float32), 64)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("Autotuned add_one for n=64, float32 in ")
    assert lines[1].split() == ["ms", "20-80", "%", "slower", "runs", "configuration"]
    assert lines[2].startswith(" 2      1-3    1.00        BLOCK=32, num_warps=4")
    assert lines[3].startswith(" 4      3-5    2.00        BLOCK=16, num_warps=4")
    assert lines[4].lstrip().startswith("-") and "BLOCK=1024" in lines[4] and "(failed: " in lines[4]
    assert err.splitlines()[1].startswith("add_one: 2/3  2  BLOCK=32")


def test_progress_on_a_terminal(monkeypatch):
    class Terminal:
        text = ""

        def write(self, text):
            self.text += text

        def flush(self):
            pass

        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.delenv("TRITON_PRINT_AUTOTUNING", raising=False)
    monkeypatch.setattr("triton.runtime.contest._SILENT", 0)
    monkeypatch.setattr(sys, "stderr", terminal)
    tuned(blocks(16, 32), do_bench=instant)[grid](np.zeros(64, np.float32), 64)
    assert "tuning add_one: 1/2" in terminal.text and terminal.text.endswith("\r\x1b[K")


def test_progress_and_table_in_a_notebook(monkeypatch, capsys):
    """IPython displays one thing, which is updated."""
    from types import ModuleType, SimpleNamespace

    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle)

    def display(bundle, raw, display_id):
        shown.append(bundle)
        return Handle()

    shell, displays = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython, displays.display = lambda: SimpleNamespace(kernel=None), display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.delenv("TRITON_PRINT_AUTOTUNING", raising=False)
    monkeypatch.setattr("triton.runtime.contest._SILENT", 0)
    kernel = tuned(blocks(16, 32), do_bench=instant)
    kernel[grid](np.zeros(64, np.float32), 64)
    assert [each["text/plain"].split(":")[0] for each in shown] == ["tuning add_one", "tuning add_one", "tuned add_one"]
    assert "add_one: 1/2" in shown[0]["text/plain"] and "BLOCK=" in shown[-1]["text/plain"]
    assert shown[-1]["text/html"].count("<tr") == 3 and capsys.readouterr() == ("", "")
    assert shown[-1]["text/html"].count("<td>") == kernel.timings._repr_html_().count("<td>")


def test_quiet_otherwise(monkeypatch, capsys):
    monkeypatch.delenv("TRITON_PRINT_AUTOTUNING", raising=False)
    tuned(blocks(16, 32), do_bench=instant)[grid](np.zeros(64, np.float32), 64)
    assert capsys.readouterr() == ("", "")


def test_threads_tune_in_turn():
    import threading

    launches = []

    def bench(launch, quantiles):
        launch()
        launches.append(1)
        return [1.0]

    kernel = tuned(blocks(16, 32), do_bench=bench)
    threads = [threading.Thread(target=lambda: kernel[grid](np.zeros(64, np.float32), 64)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(launches) == 2 and len(kernel.timings) == 1
