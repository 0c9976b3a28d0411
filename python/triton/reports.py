"""Reports of `triton.testing.perf_report`: a function measured over a range, as table and plot, and a page of all.

A folder of reports has for each one a CSV file, a plot, and its data (JSON); ``index.html`` shows every report that is
there, also those of earlier runs, with its table and the machine it was measured on.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


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
    :param x_log: logarithmic x axis: in powers of two, with a tick at each, where the values are such.
    :param y_log: logarithmic y axis.
    :param color: accepted; `styles` says what each line looks like.
    :param styles: (color, line style) for each line, as matplotlib spells them.
    :param emphasis: the value in `line_vals` whose line is drawn strongly, the others thinner and paler; by default
        "triton", or that of a line of this name. Where there is none, all lines look alike.
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        color: Any = None,
        styles: Sequence[tuple[str, str]] | None = None,
        emphasis: Any = None,
    ):
        if len(line_vals) != len(line_names):
            raise ValueError(f"{len(line_vals)} line_vals, but {len(line_names)} line_names")
        if emphasis is not None and emphasis not in line_vals:
            raise ValueError(f"emphasis={emphasis!r} is none of the line_vals")
        self.x_names, self.x_vals = list(x_names), list(x_vals)
        self.line_arg, self.line_vals, self.line_names = line_arg, list(line_vals), list(line_names)
        self.plot_name, self.args = plot_name, dict(args)
        self.xlabel, self.ylabel = xlabel, ylabel
        self.x_log, self.y_log = x_log, y_log
        self.styles = styles
        self.emphasis = emphasis

    def emphasised(self) -> int | None:
        """The number of the line that is drawn strongly, or None."""
        if self.emphasis is not None:
            return self.line_vals.index(self.emphasis)
        named = list(map(_is_own, zip(self.line_vals, self.line_names, strict=True)))
        return named.index(True) if True in named else None


def _is_own(names):
    return "triton" in (str(name).strip().lower() for name in names)


class Mark:
    """A function to be measured for one or more `Benchmark`s; made by `perf_report`."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]):
        self.fn, self.benchmarks = fn, benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | os.PathLike[str] = "",
        return_df: bool = False,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: Any,
    ) -> Any:
        """Measure.

        :param show_plots: open the plots.
        :param print_data: print a table for each benchmark.
        :param save_path: folder for a CSV file, a plot and the data of each benchmark, and for index.html.
        :param return_df: return a pandas DataFrame, or a list of them where there are several benchmarks.
        :param diff_col: a column of the second line's values less the first's, where there are two lines.
        :param save_precision: digits after the point in the CSV files.
        :param kwargs: more arguments for the function.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if single else list(self.benchmarks)
        tables = []
        plots = (save_path or show_plots) and _can_plot()
        for benchmark in benchmarks:
            table = _measure(self.fn, benchmark, kwargs, diff_col)
            tables.append(table)
            if print_data:
                print(f"{benchmark.plot_name}:")
                print(table.text())
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                table.write_csv(os.path.join(save_path, f"{benchmark.plot_name}.csv"), save_precision)
                _write_data(benchmark, table, save_path, plots)
            if plots:
                _plot(benchmark, table, show_plots, save_path)
        if save_path:
            _write_index(save_path)
        if return_df:
            frames = [table.frame() for table in tables]
            return frames[0] if single else frames
        return None


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorator: the function measures one provider at one size, and its `run` method all that `benchmarks` lists.

    It returns a number, or (value, lowest, highest) where the plot is to show a range.
    """
    return lambda fn: Mark(fn, benchmarks)


# ---- tables


class _Table:
    """Rows of x values, then value, lowest and highest for each line."""

    def __init__(self, x_names, lines, unit, with_difference):
        self.x_names, self.lines, self.unit = x_names, lines, unit
        self.with_difference = with_difference and len(lines) == 2
        self.rows = []  # ([x, ..], [(value, low, high), ..])

    def headings(self):
        unit = f" ({self.unit})" if self.unit else ""
        return [*self.x_names, *(f"{line}{unit}" for line in self.lines), *(["Diff"] * self.with_difference)]

    def values(self):
        """The rows as they are shown: x values, and one number for each line."""
        for xs, ys in self.rows:
            numbers = [y[0] for y in ys]
            yield [*xs, *numbers, *([numbers[1] - numbers[0]] if self.with_difference else [])]

    def text(self):
        cells = [self.headings(), *([_number(value) for value in row] for row in self.values())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)

    def write_csv(self, path, digits):
        import csv

        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.headings())
            writer.writerows([_rounded(value, digits) for value in row] for row in self.values())

    def frame(self):
        try:
            import pandas
        except ImportError:
            raise ImportError("return_df=True needs pandas: pip install pandas") from None
        return pandas.DataFrame(list(self.values()), columns=self.headings())


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _rounded(value, digits):
    return round(value, digits) if isinstance(value, float) else value


def _measure(fn, benchmark, kwargs, with_difference):
    table = _Table(benchmark.x_names, benchmark.line_names, benchmark.ylabel, with_difference)
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


# ---- plots


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

    figure, axes = pyplot.subplots(figsize=(8, 5))
    x, strong = [row[0][0] for row in table.rows], benchmark.emphasised()
    for number, line in enumerate(table.lines):
        color, style = benchmark.styles[number] if benchmark.styles else (f"C{number}", "-")
        value, low, high = zip(*(row[1][number] for row in table.rows), strict=True)
        look = {"linewidth": 1.6}
        if strong is not None:
            look = {"linewidth": 3, "zorder": 3} if number == strong else {"linewidth": 1.2, "alpha": 0.6}
        axes.plot(x, value, label=line, color=color, linestyle=style, marker=".", **look)
        if None not in low and None not in high:
            axes.fill_between(x, low, high, alpha=0.12, color=color, linewidth=0)
    _scale_x(axes, x) if benchmark.x_log else _round_ticks(axes, x)
    axes.set_yscale("log" if benchmark.y_log else "linear")
    axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
    axes.set_ylabel(benchmark.ylabel)
    axes.set_title(benchmark.plot_name)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if not benchmark.y_log:
        axes.set_ylim(bottom=0)
    legend = axes.legend(frameon=False)
    if strong is not None:
        legend.get_texts()[strong].set_fontweight("bold")
    if save_path:
        figure.savefig(os.path.join(save_path, f"{benchmark.plot_name}.png"), bbox_inches="tight", dpi=120)
    if show:
        pyplot.show()
    pyplot.close(figure)


def _scale_x(axes, values):
    """Logarithmic; with a tick at powers of two, every one or every few, where the values are such."""
    if not all(isinstance(value, int) and value > 0 and not value & (value - 1) for value in values):
        axes.set_xscale("log")
        return
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    first, last = (value.bit_length() - 1 for value in (min(values), max(values)))
    step = (last - first) // 12 + 1
    ticks = [1 << log for log in range(first, last + 1, step)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(ticks, labels=[binary(tick) for tick in ticks])


def _round_ticks(axes, values):
    """On a linear axis: ticks at multiples of a power of two, where the values are multiples of one."""
    from math import gcd

    if not all(isinstance(value, int) for value in values) or gcd(*values) % 16:
        return
    from matplotlib.ticker import MultipleLocator

    step = gcd(*values) & -gcd(*values)
    while max(values) / step > 9:
        step *= 2
    axes.xaxis.set_major_locator(MultipleLocator(step))


def binary(number):
    """A power of two in as few characters as it takes: 512, 1K, 64M."""
    for log, unit in ((30, "G"), (20, "M"), (10, "K")):
        if number >= 1 << log:
            return f"{number >> log}{unit}"
    return str(number)


# ---- pages


def _write_data(benchmark, table, save_path, has_plot):
    import datetime

    data = {
        "triton_report": 1,  # so that other JSON files in the folder are left alone
        "name": benchmark.plot_name,
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine(),
        "arguments": {name: str(value) for name, value in benchmark.args.items()},
        "headings": table.headings(),
        "rows": [[_plain(value) for value in row] for row in table.values()],
        "emphasis": benchmark.emphasised(),
        "axes": len(table.x_names),
        "plot": has_plot,
    }
    with open(os.path.join(save_path, f"{benchmark.plot_name}.json"), "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1, ensure_ascii=False)


def _plain(value):
    """As JSON can have it."""
    if isinstance(value, (int, float, str)) or value is None:
        return value
    return value.item() if hasattr(value, "item") else str(value)


def machine():
    """What figures depend on: the device, the number of threads or multiprocessors, and the versions."""
    import platform
    import sys

    from . import __version__
    from .runtime.driver import driver
    from .runtime.tuning_store import device_text

    target = driver.active.get_current_target()
    device = driver.active.get_current_device() if target.backend == "cuda" else None
    versions = [f"triton {__version__}", f"Python {platform.python_version()}"]
    if hasattr(sys.modules.get("torch"), "__version__"):
        versions.append(f"torch {sys.modules['torch'].__version__}")
    return f"{device_text(device)}; {', '.join(versions)}"


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 62em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }
th, td { padding: .15em .8em; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; }
.strong { font-weight: 600; background: #f2f6fc; }
img { max-width: 100%; }
p.machine { color: #666; font-size: 13px; }
nav a { margin-right: 1em; }
"""


def _write_index(folder):
    """All reports that are in the folder, the newest first."""
    from html import escape

    reports = sorted(_reports(folder), key=lambda report: report["date"], reverse=True)
    links = "\n".join(f'<a href="#{escape(each["name"])}">{escape(each["name"])}</a>' for each in reports)
    sections = "\n".join(map(_section, reports))
    with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Reports</title>\n'
            f"<style>{_STYLE}</style>\n<body>\n<nav>{links}</nav>\n{sections}\n</body>\n</html>\n"
        )


def _reports(folder):
    for name in os.listdir(folder):
        if not name.endswith(".json"):
            continue
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            continue
        if isinstance(data, dict) and data.get("triton_report") == 1:
            yield data


def _section(report):
    from html import escape
    from urllib.parse import quote

    name = escape(report["name"])
    strong = None if report["emphasis"] is None else report["axes"] + report["emphasis"]
    rows = [_row("th", map(escape, report["headings"]), strong)]
    rows += [_row("td", (escape(_number(value)) for value in row), strong) for row in report["rows"]]
    arguments = ", ".join(f"{key}={value}" for key, value in report["arguments"].items())
    about = escape("; ".join(filter(None, [report["date"], report["machine"], arguments])))
    image = f'<img src="{quote(report["name"])}.png" alt="{name}">' if report["plot"] else ""
    table = "\n".join(rows)
    return (
        f'<section id="{name}">\n<h2>{name}</h2>\n<p class="machine">{about}</p>\n{image}\n'
        f"<table>\n{table}\n</table>\n</section>"
    )


def _row(tag, cells, strong):
    marked = ((cell, ' class="strong"' if number == strong else "") for number, cell in enumerate(cells))
    return "<tr>" + "".join(f"<{tag}{mark}>{cell}</{tag}>" for cell, mark in marked) + "</tr>"
