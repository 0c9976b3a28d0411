"""Timing kernels, comparing providers over a range of sizes, and comparing results."""

import os

from .runtime.timing import EventClock, GraphClock, HostClock, measure, measure_in_graph, median, quantile


def _mean(times):
    return sum(times) / len(times)


_MODES = {"mean": _mean, "median": median, "min": min, "max": max, "all": list}


def _summarize(times, quantiles, return_mode):
    if quantiles is not None:
        ordered = sorted(times)
        results = [quantile(ordered, fraction) for fraction in quantiles]
        return results[0] if len(results) == 1 else results
    return _MODES[return_mode](times)


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds that a call of `fn` takes.

    On a GPU it is the time between two events on the current stream, and the second-level cache is overwritten before
    each call; on the CPU the time that passes during the call.

    :param warmup: milliseconds to call it before anything is measured.
    :param rep: milliseconds to measure for, each call by itself.
    :param grad_to_none: tensors whose gradient is dropped before each call, so that none accumulates.
    :param quantiles: fractions; the result is the list of these quantiles (one number if there is one).
    :param return_mode: without quantiles: "mean", "min", "max", "median", or "all" for the list of all times.
    """
    return benchmarker(_backend())(fn, warmup, rep, grad_to_none, quantiles, return_mode)


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds that `fn` takes in a CUDA graph of many calls, so that launches cost next to nothing.

    Caches stay warm. It is `do_bench` on targets that have no graphs.

    :param rep: milliseconds that a replay of the graph is to take.
    """
    return benchmarker(_backend(), graph=True)(fn, rep, rep, grad_to_none, quantiles, return_mode)


def _backend():
    from .runtime import driver

    return driver.active.get_current_target().backend


def benchmarker(backend, graph=False):
    """The function with the parameters of `do_bench` that times on a backend ("cpu", "cuda")."""

    def bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
        if return_mode not in _MODES:
            raise ValueError(f"return_mode={return_mode!r} is none of {', '.join(_MODES)}")

        def prepare():
            for tensor in grad_to_none or ():
                tensor.grad = None

        if backend == "cuda" and graph:
            from .runtime.cuda import side_stream

            with side_stream():
                times = measure_in_graph(GraphClock(fn, prepare, length=rep))
        else:
            times = measure((EventClock if backend == "cuda" else HostClock)(fn, prepare), warmup, rep)
        return _summarize(times, quantiles, return_mode)

    return bench


def assert_close(x, y, atol=None, rtol=None, err_msg=""):
    """Raise an AssertionError unless two arrays or numbers agree.

    :param x: what was computed: NumPy array, torch tensor or number.
    :param y: what is expected.
    :param atol: allowed absolute difference (1e-2), or a function of the dtype of `x`.
    :param rtol: allowed difference relative to `y` (0), or a function of the dtype of `x`.
    """
    import numpy

    dtype = getattr(x, "dtype", None)
    atol = atol(dtype) if callable(atol) else 1e-2 if atol is None else atol
    rtol = rtol(dtype) if callable(rtol) else 0.0 if rtol is None else rtol
    x, y = _as_numpy(x), _as_numpy(y)
    if x.size > 1 or y.size > 1:
        numpy.testing.assert_allclose(x, y, atol=atol, rtol=rtol, err_msg=err_msg, equal_nan=True)
    elif not numpy.allclose(x, y, atol=atol, rtol=rtol, equal_nan=True):
        raise AssertionError(f"{err_msg} {x} is not close to {y} (atol={atol}, rtol={rtol})".strip())


def _as_numpy(value):
    """As a NumPy array of a type that NumPy computes with."""
    import numpy

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16" or "float8" in str(value.dtype):
            value = value.float()
        value = value.resolve_conj().resolve_neg().numpy()
    return numpy.asarray(value)


class Benchmark:
    """What `perf_report` measures and how it is shown.

    :param x_names: arguments that take the values on the x axis, all the same one, or a tuple of values each.
    :param x_vals: these values.
    :param line_arg: argument that distinguishes the lines.
    :param line_vals: its values, a line each.
    :param line_names: what the legend calls the lines.
    :param plot_name: title, and name of the files.
    :param args: fixed arguments.
    :param xlabel: label of the x axis; the first of `x_names` if empty.
    :param ylabel: label of the y axis, and the unit in the table.
    :param x_log: logarithmic x axis.
    :param y_log: logarithmic y axis.
    :param styles: (color, line style) for each line, as matplotlib spells them.
    """

    def __init__(
        self,
        x_names,
        x_vals,
        line_arg,
        line_vals,
        line_names,
        plot_name,
        args,
        xlabel="",
        ylabel="",
        x_log=False,
        y_log=False,
        color=None,
        styles=None,
    ):
        if len(line_vals) != len(line_names):
            raise ValueError(f"{len(line_vals)} line_vals, but {len(line_names)} line_names")
        self.x_names, self.x_vals = list(x_names), list(x_vals)
        self.line_arg, self.line_vals, self.line_names = line_arg, list(line_vals), list(line_names)
        self.plot_name, self.args = plot_name, dict(args)
        self.xlabel, self.ylabel = xlabel, ylabel
        self.x_log, self.y_log = x_log, y_log
        self.styles = styles


class Mark:
    """A function to be measured for one or more `Benchmark`s; made by `perf_report`."""

    def __init__(self, fn, benchmarks):
        self.fn, self.benchmarks = fn, benchmarks

    def run(self, show_plots=False, print_data=False, save_path="", return_df=False, **kwargs):
        """Measure.

        :param show_plots: open the plots.
        :param print_data: print a table for each benchmark.
        :param save_path: folder for a CSV file and a plot for each benchmark, and an HTML page of the plots.
        :param return_df: return a pandas DataFrame, or a list of them where there are several benchmarks.
        :param kwargs: more arguments for the function.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if single else list(self.benchmarks)
        tables = []
        plots = (save_path or show_plots) and _can_plot()
        for benchmark in benchmarks:
            table = _measure(self.fn, benchmark, kwargs)
            tables.append(table)
            if print_data:
                print(f"{benchmark.plot_name}:")
                print(table.text())
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                table.write_csv(os.path.join(save_path, f"{benchmark.plot_name}.csv"))
            if plots:
                _plot(benchmark, table, show_plots, save_path)
        if plots and save_path:
            _write_page(benchmarks, save_path)
        if return_df:
            frames = [table.frame() for table in tables]
            return frames[0] if single else frames
        return None


def perf_report(benchmarks):
    """Decorator: the function measures one provider at one size, and its `run` method all that `benchmarks` lists.

    It returns a number, or (value, lowest, highest) where the plot is to show a range.
    """
    return lambda fn: Mark(fn, benchmarks)


class _Table:
    """Rows of x values, then value, lowest and highest for each line."""

    def __init__(self, x_names, lines, unit):
        self.x_names, self.lines, self.unit = x_names, lines, unit
        self.rows = []  # ([x, ..], [(value, low, high), ..])

    def headings(self):
        unit = f" ({self.unit})" if self.unit else ""
        return [*self.x_names, *(f"{line}{unit}" for line in self.lines)]

    def text(self):
        cells = [self.headings()]
        cells += [[*map(_number, xs), *(_number(y[0]) for y in ys)] for xs, ys in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)

    def write_csv(self, path):
        import csv

        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.headings())
            writer.writerows([*xs, *(y[0] for y in ys)] for xs, ys in self.rows)

    def frame(self):
        try:
            import pandas
        except ImportError:
            raise ImportError("return_df=True needs pandas: pip install pandas") from None
        return pandas.DataFrame([[*xs, *(y[0] for y in ys)] for xs, ys in self.rows], columns=self.headings())


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _measure(fn, benchmark, kwargs):
    table = _Table(benchmark.x_names, benchmark.line_names, benchmark.ylabel)
    for x in benchmark.x_vals:
        xs = list(x) if isinstance(x, (tuple, list)) else [x] * len(benchmark.x_names)
        if len(xs) != len(benchmark.x_names):
            raise ValueError(f"{benchmark.plot_name}: {x!r} is not a value for each of {benchmark.x_names}")
        arguments = {**dict(zip(benchmark.x_names, xs, strict=True)), **benchmark.args, **kwargs}
        ys = []
        for line in benchmark.line_vals:
            result = fn(**arguments, **{benchmark.line_arg: line})
            ys.append(tuple(result) if isinstance(result, (tuple, list)) else (result, None, None))
        table.rows.append((xs, ys))
    return table


def _can_plot():
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no plots, for there is no matplotlib: pip install matplotlib")
        return False
    return True


def _plot(benchmark, table, show, save_path):
    import matplotlib

    if not show:
        matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    x = [row[0][0] for row in table.rows]
    for number, line in enumerate(table.lines):
        color, style = benchmark.styles[number] if benchmark.styles else (None, "-")
        value, low, high = zip(*(row[1][number] for row in table.rows), strict=True)
        (drawn,) = axes.plot(x, value, label=line, color=color, linestyle=style, marker=".")
        if None not in low and None not in high:
            axes.fill_between(x, low, high, alpha=0.15, color=drawn.get_color())
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
    axes.set_ylabel(benchmark.ylabel)
    axes.set_title(benchmark.plot_name)
    axes.grid(alpha=0.3)
    if not benchmark.y_log:
        axes.set_ylim(bottom=0)
    axes.legend()
    if save_path:
        figure.savefig(os.path.join(save_path, f"{benchmark.plot_name}.png"))
    if show:
        pyplot.show()
    pyplot.close(figure)


def _write_page(benchmarks, save_path):
    from html import escape

    images = "\n".join(f'<img src="{escape(benchmark.plot_name)}.png"/>' for benchmark in benchmarks)
    with open(os.path.join(save_path, "results.html"), "w") as file:
        file.write(f"<html><body>\n{images}\n</body></html>\n")


# ---- what a GPU could do at most


def _gpu(device):
    from .runtime.driver import driver

    device = driver.active.get_current_device() if device is None else device
    properties = driver.active.utils.get_device_properties(device)
    if "capability" not in properties:
        raise ValueError("the limits of a GPU were asked for, and the active driver is the CPU's")
    return properties


def nvsmi(attributes):
    """What `nvidia-smi` says of the first GPU, as whole numbers: ``["clocks.max.sm"]`` gives ``[1980]`` (MHz)."""
    import subprocess

    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attributes)}", "--format=csv,noheader,nounits"]
    return [int(number) for number in subprocess.check_output(command, text=True).split(",")]


def get_dram_gbps(device=None):
    """Gigabytes a second between a GPU and its memory: two transfers a clock over the whole bus."""
    properties = _gpu(device)
    return 2 * properties["mem_clock_rate"] * properties["mem_bus_width"] / 8e6


def _tflops(dtype, a_clock, clock_rate, device):
    """`a_clock` maps names of dtypes to operations that a quarter of a multiprocessor does in a clock."""
    name = str(getattr(dtype, "name", dtype)).split(".")[-1].replace("fp", "float").replace("bf16", "bfloat16")
    if name not in a_clock:
        raise ValueError(f"dtype {dtype!r} is none of {', '.join(a_clock)}")
    properties = _gpu(device)
    clock = properties["sm_clock_rate"] if clock_rate is None else clock_rate
    return 4 * properties["multiprocessor_count"] * clock * a_clock[name] * 1e-9


def get_max_simd_tflops(dtype, clock_rate=None, device=None):
    """10¹² operations a second of a GPU's ordinary arithmetic, where a multiplication with an addition is two.

    :param dtype: float32, float16 or bfloat16, of the language or of torch, or its name.
    :param clock_rate: in kHz; by default the highest of the device.
    """
    wide = 64 if _gpu(device)["capability"] not in (75, 80) else 32
    return _tflops(dtype, {"float32": wide, "float16": 128, "bfloat16": 128}, clock_rate, device)


def get_max_tensorcore_tflops(dtype, clock_rate=None, device=None):
    """The same of its tensor cores; float32 is computed as tf32."""
    capability = _gpu(device)["capability"]
    half = 256 if capability < 80 else 1024 if capability in (90, 100) else 512
    rates = {"float32": half // 2, "float16": half, "bfloat16": half}
    rates |= dict.fromkeys(("int8", "float8_e4m3fn", "float8_e5m2", "float8e4nv", "float8e5"), 2 * half)
    return _tflops(dtype, rates, clock_rate, device)
