"""triton.testing: timing, reports, and comparing results."""

import os
import subprocess
import time

import numpy as np
import pytest
import torch
from counted_time import counted_time

import triton
from triton.testing import Benchmark, assert_close, do_bench, perf_report

pytestmark = pytest.mark.host


def test_do_bench():
    start = time.perf_counter()
    times = do_bench(lambda: time.sleep(0.002), warmup=5, rep=20, return_mode="all")
    assert min(times) >= 2 and sum(times) <= (time.perf_counter() - start) * 1e3


def test_how_often_it_calls(monkeypatch):
    counted, calls = counted_time(monkeypatch), []

    def work():
        calls.append(1)
        counted[0] += 2

    assert do_bench(work, warmup=5, rep=200) == 2
    assert len(calls) == 1 + 5 + 2 + 100  # to compile, for an estimate, to warm up, to be timed


def test_quantiles_and_modes(monkeypatch):
    counted = counted_time(monkeypatch)

    def bench(**options):
        def work():
            counted[0] += next(times)

        times = iter([1, 1, 9, 2, 7, 4])
        return do_bench(work, n_warmup=1, n_repeat=4, **options)

    assert bench(return_mode="all") == [9, 2, 7, 4]
    assert bench(quantiles=[0, 0.5, 1]) == [2, 5.5, 9]
    assert bench(quantiles=[0.5]) == 5.5
    for mode, expected in {"mean": 5.5, "min": 2, "max": 9, "median": 5.5}.items():
        assert bench(return_mode=mode) == expected
    with pytest.raises(ValueError, match="return_mode='fast' is none of"):
        do_bench(lambda: None, return_mode="fast")


def test_no_graph_is_captured_in_a_graph(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    for bench in (triton.testing.do_bench_cudagraph, triton.testing.do_bench_cudagraph_proton):
        with pytest.raises(RuntimeError, match="Warm up autotuned kernels before"):
            bench(lambda: pytest.fail("it was called"))


def test_gradients_are_dropped():
    x = torch.ones(3, requires_grad=True)

    def work():
        assert x.grad is None
        x.sum().backward()

    do_bench(work, warmup=1, rep=1, grad_to_none=[x])


def report(**options):
    return Benchmark(
        x_names=["n"],
        x_vals=[2, 4, 8],
        line_arg="provider",
        line_vals=["a", "b"],
        line_names=["Mine", "Theirs"],
        ylabel="GB/s",
        plot_name="speed",
        args={"factor": 10},
        **options,
    )


def measured(n, provider, factor, extra=0):
    value = n * factor + (provider == "b") + extra
    return (value, value - 1, value + 1) if provider == "a" else float(value)


def test_tables(capsys):
    assert perf_report(report())(measured).run(print_data=True, extra=0.5) is None
    assert capsys.readouterr().out == (
        "speed:\n"
        "n  Mine (GB/s)  Theirs (GB/s)\n"
        "2         20.5           21.5\n"
        "4         40.5           41.5\n"
        "8         80.5           81.5\n"
    )


def test_files(tmp_path):
    folder = tmp_path / "out" / "plots"
    styles = [("blue", "-"), ("green", "--")]
    perf_report([report(x_log=True, styles=styles)])(measured).run(save_path=str(folder))
    csv = (folder / "speed.csv").read_text().splitlines()
    assert csv == ["n,Mine (GB/s),Theirs (GB/s)", "2,20,21.0", "4,40,41.0", "8,80,81.0"]
    assert (folder / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert "speed.png" in (folder / "index.html").read_text()


def test_x_values_of_several_arguments(capsys):
    benchmark = Benchmark(["m", "n"], [(1, 2), 3], "line", [0], ["only"], "pairs", {})
    perf_report(benchmark)(lambda m, n, line: m * 10 + n).run(print_data=True)
    assert capsys.readouterr().out == "pairs:\nm  n  only\n1  2    12\n3  3    33\n"
    bad = Benchmark(["m", "n"], [(1, 2, 3)], "line", [0], ["only"], "pairs", {})
    with pytest.raises(ValueError, match="is not a value for each of"):
        perf_report(bad)(measured).run()
    with pytest.raises(ValueError, match="1 line_vals, but 2 line_names"):
        Benchmark(["m"], [1], "line", [0], ["a", "b"], "p", {})


def page(folder, **options):
    benchmark = report(**options)
    perf_report(benchmark)(measured).run(save_path=str(folder))
    return (folder / "index.html").read_text()


def test_the_page_keeps_every_report(tmp_path):
    page(tmp_path)
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    benchmark = Benchmark(["n"], [1], "line", [0], ["Triton <1>"], "second & last", {"dtype": "fp16"})
    perf_report(benchmark)(lambda n, line, dtype: 1.5).run(save_path=str(tmp_path))
    text = (tmp_path / "index.html").read_text()
    assert text.count("<section") == 2 and '<section id="speed">' in text
    assert "Triton &lt;1&gt;" in text and "second &amp; last" in text and "dtype=fp16" in text
    assert "<td>80</td>" in text and "<td>81</td>" in text
    assert "triton " + triton.__version__ in text and "threads" in text
    page(tmp_path)
    assert (tmp_path / "index.html").read_text().count("<section") == 2


def test_emphasis(tmp_path):
    assert report().emphasised() is None
    assert report(emphasis="b").emphasised() == 1
    assert Benchmark(["n"], [1], "line", [0, 1], ["Torch", "Triton"], "p", {}).emphasised() == 1
    with pytest.raises(ValueError, match="emphasis='c' is none of the line_vals"):
        report(emphasis="c")
    text = page(tmp_path, emphasis="b")
    assert '<th class="strong">Theirs (GB/s)</th>' in text and '<td class="strong">81</td>' in text


def test_ticks_are_powers_of_two():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from triton.reports import _scale_x

    def labels(values):
        figure, axes = pyplot.subplots()
        axes.plot(values, values)
        _scale_x(axes, values)
        figure.canvas.draw()
        texts = [label.get_text() for label in axes.get_xticklabels()]
        pyplot.close(figure)
        return texts

    assert labels([256, 512, 1024, 2048]) == ["256", "512", "1K", "2K"]
    assert labels([1 << log for log in range(12, 29)]) == ["4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M"]
    assert "1K" not in labels([100, 1000, 10000])


def test_ticks_of_a_linear_axis():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from triton.reports import _round_ticks

    figure, axes = pyplot.subplots()
    axes.plot([512, 1280, 4096], [1, 2, 3])
    _round_ticks(axes, [512, 1280, 4096])
    assert {512, 1024, 2048} <= set(axes.get_xticks())
    pyplot.close(figure)


def test_differences_and_digits(tmp_path, capsys):
    benchmark = Benchmark(["n"], [3], "line", [1, 2], ["a", "b"], "thirds", {})
    perf_report(benchmark)(lambda n, line: line / n).run(
        diff_col=True, save_precision=2, save_path=str(tmp_path), print_data=True
    )
    assert (tmp_path / "thirds.csv").read_text().splitlines() == ["n,a,b,Diff", "3,0.33,0.67,0.33"]
    assert "0.333333" in capsys.readouterr().out


def test_nvsmi_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="nvidia-smi was not found"):
        triton.testing.nvsmi(["clocks.max.sm"])


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame = perf_report(report())(measured).run(return_df=True)
    assert isinstance(frame, pandas.DataFrame)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_assert_close(make):
    assert_close(make([1.0, 2.0]), make([1.005, 2.0]))
    assert_close(make([float("nan")]), make([float("nan")]))
    assert_close(make(3), 3)
    assert_close(make([100.0, 200.0]), make([101.0, 201.0]), rtol=0.02, atol=0)
    with pytest.raises(AssertionError, match="the message"):
        assert_close(make([1.0, 2.0]), make([1.5, 2.0]), err_msg="the message")
    with pytest.raises(AssertionError):
        assert_close(make([1.0, 2.0]), make([1.005, 2.0]), atol=1e-4)
    with pytest.raises(AssertionError, match="is not close to"):
        assert_close(make(3), make(4))


def test_assert_close_of_narrow_types():
    for dtype in (torch.bfloat16, torch.float8_e5m2, torch.float16):
        x = torch.tensor([1.0, 2.0]).to(dtype)
        assert_close(x, x)
    assert_close(torch.ones(3, requires_grad=True), np.ones(3), atol=lambda dtype: 1e-6, rtol=lambda dtype: 0)


def test_driver(target):
    driver = triton.runtime.driver.active
    current = driver.get_current_target()
    assert (current.backend, current.warp_size) == (("sim", 32) if target.startswith("sim") else ("cpu", 1))
    assert driver.get_active_torch_device() == torch.device("cpu")
    assert driver.get_current_device() == 0
    properties = driver.utils.get_device_properties(0)
    assert properties["multiprocessor_count"] >= 1
    assert properties["max_shared_mem"] >= 1 << 15
    interface = driver.get_device_interface()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    end.record()
    interface.synchronize()
    assert start.elapsed_time(end) >= 0
    assert driver.get_benchmarker() is do_bench
    driver.clear_cache(driver.get_empty_cache_for_benchmark())


def test_thread_count(monkeypatch):
    monkeypatch.setenv("TRITON_CPU_THREADS", "3")
    assert triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"] == 3


def test_small_functions():
    assert [triton.cdiv(n, 4) for n in (1, 4, 5)] == [1, 1, 2]
    assert [triton.next_power_of_2(n) for n in (1, 2, 3, 1000, 2**40 + 1)] == [1, 2, 4, 1024, 2**41]


def test_set_allocator():
    triton.set_allocator(lambda size, alignment, stream: None)
    triton.set_allocator(None)
    with pytest.raises(TypeError, match="an allocator must be callable"):
        triton.set_allocator(3)


def test_what_nvidia_smi_says(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\ntest "$3" = --query-gpu=clocks.max.sm,clocks.max.mem && echo "1980, 2619"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert triton.testing.nvsmi(["clocks.max.sm", "clocks.max.mem"]) == [1980, 2619]
    with pytest.raises(subprocess.CalledProcessError):
        triton.testing.nvsmi(["nonsense"])


def test_so_many_calls():
    calls = []
    assert len(do_bench(lambda: calls.append(1), n_warmup=3, n_repeat=7, return_mode="all")) == 7
    assert len(calls) == 1 + 3 + 7
