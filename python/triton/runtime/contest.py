"""A comparison of configurations: who was timed, how long each takes, what failed, and how it is shown.

On a terminal a line says how far it is, in a notebook that and the table so far. TRITON_PRINT_AUTOTUNING=1 shows each
configuration as it is timed, and a table.
"""

import sys
import time

from .environment import flag

FAILED = [float("inf")] * 3
TIMED, GIVEN_UP, SAME_CODE, NO_CODE = "timed", "given up", "same code", "failed"
_SILENT = 0.5  # seconds before a terminal shows anything


def asked_to_print():
    return flag("TRITON_PRINT_AUTOTUNING")


class Entry:
    """Of one configuration: quantiles 0.5, 0.2 and 0.8 of its milliseconds, how many runs, what became of it, and
    whether it was timed for a part only."""

    __slots__ = ("config", "times", "runs", "state", "note", "brief")

    def __init__(self, config, times=FAILED, runs=0, state=NO_CODE, note="", brief=False):
        self.config, self.times, self.runs, self.state, self.note = config, list(times), runs, state, note
        self.brief = brief

    @property
    def rank(self):
        """The fastest first. What was timed for a part only comes behind: it was left out for others that were slower
        when they were timed in full, or luckier."""
        return self.times[0] == float("inf"), self.brief, self.times

    def as_data(self):
        times = None if self.state == NO_CODE else self.times
        return {
            "milliseconds": times, "runs": self.runs, "state": self.state, "note": self.note, "brief": self.brief,
        }  # fmt: skip

    @classmethod
    def of(cls, config, data):
        return cls(
            config, data["milliseconds"] or FAILED, data["runs"], data["state"], data["note"], data["brief"]
        )  # fmt: skip


class Contest:
    """Of configurations of one kernel for one key.

    :param name: of the kernel.
    :param key: name to value of what it is tuned for.
    """

    def __init__(self, name, key, configs):
        self.name, self.key, self.configs = name, key, configs
        self.entries = {}  # by the number of the configuration, for configurations need not be hashable
        self.error = None  # the first
        self.copies = {}  # number of a configuration to that of another with its code
        self.runs, self.gave_up = 0, False  # of the configuration that is being timed
        self.start, self.seconds, self.compiling = time.perf_counter(), 0.0, 0.0
        self.estimating = 0.0  # seconds, of a search
        self.shown, self.displayed = False, None  # a line on a terminal; what a notebook displays

    def index(self, config):
        return next(i for i, each in enumerate(self.configs) if each is config)

    def best_time(self):
        return min((entry.times[0] for entry in self.entries.values()), default=float("inf"))

    def best(self):
        """The number of the fastest configuration; of equal ones the first."""
        return min(sorted(self.entries), key=lambda number: self.entries[number].rank)

    def add(self, number, times, brief=False):
        """What was measured: `runs` and `gave_up` say how, if this package's own clock was used."""
        state = NO_CODE if times[0] == float("inf") else GIVEN_UP if self.gave_up else TIMED
        self._add(number, Entry(self.configs[number], times, self.runs, state, brief=brief))
        self.runs, self.gave_up = 0, False

    def fail(self, number, error):
        self.error = self.error or error
        text = str(error).strip().splitlines()
        self._add(number, Entry(self.configs[number], note=text[0] if text else type(error).__name__))

    def same(self, number, other):
        """`number` has the code of `other`."""
        self.copies[number] = other
        entry = self.entries[other]
        note = f"as with {_text(self.configs[other])}"
        self._add(number, Entry(self.configs[number], entry.times, entry.runs, SAME_CODE, note, entry.brief))

    def renew_copies(self):
        """After configurations were timed again."""
        for number, other in self.copies.items():
            self.entries[number].times, self.entries[number].brief = (
                self.entries[other].times,
                self.entries[other].brief,
            )

    def fastest(self, count):
        """The numbers of so many that were timed, the fastest first."""
        timed = [number for number, entry in self.entries.items() if entry.state == TIMED]
        return sorted(timed, key=lambda number: self.entries[number].times)[:count]

    def _add(self, number, entry):
        self.entries[number] = entry
        self._show_progress(entry)

    def timings(self):
        """What `Autotuner.configs_timings` is."""
        return {self.configs[number]: entry.times for number, entry in sorted(self.entries.items())}

    def end(self):
        self.seconds = time.perf_counter() - self.start
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        if self.displayed:
            self.displayed.update(self._bundle(f"tuned {self.name}"), raw=True)
        if asked_to_print():
            print(self.table(), flush=True)

    # ---- how it is shown

    def _show_progress(self, entry):
        text = f"{self.name}: {len(self.entries)}/{len(self.configs)}"
        if asked_to_print():
            print(f"{text}  {_milliseconds(entry)}  {_text(entry.config)}", file=sys.stderr, flush=True)
        elif time.perf_counter() - self.start <= _SILENT:
            return
        elif self.displayed:
            self.displayed.update(self._bundle(f"tuning {text}"), raw=True)
        elif display := _notebook_display():
            self.displayed = display(self._bundle(f"tuning {text}"), raw=True, display_id=True)
        elif _is_terminal():
            sys.stderr.write(f"\rtuning {text}\x1b[K")
            sys.stderr.flush()
            self.shown = True

    def _bundle(self, head):
        """For a notebook: how far it is, and behind that what was timed."""
        from .tables import Tunings, escape

        best = self.entries[self.best()]
        text = f"{head}: {_milliseconds(best)} ms with {_text(best.config)}"
        table = Tunings([self.as_data()])._repr_html_()
        return {"text/plain": text, "text/html": f"<details><summary>{escape(text)}</summary>{table}</details>"}

    def table(self):
        """The fastest first, a line each; what failed is at the end with the reason."""
        best = self.entries[self.best()]
        values = [f"{name}={value!r}" if name else str(value) for name, value in self.key]
        head = (
            f"Autotuned {self.name} for {', '.join(values)} in {self.seconds:.2f} s: {best.config} "
            f"({best.times[0]:.4g} ms, best of {len(self.entries)})"
        )
        rows = [("ms", "20-80 %", "slower", "runs", "configuration")]
        for entry in sorted(self.entries.values(), key=lambda entry: entry.rank):
            times, text = entry.times, _text(entry.config)
            spread = f"{times[1]:.4g}-{times[2]:.4g}" if len(times) == 3 and entry.state != NO_CODE else ""
            slower = "" if entry.state == NO_CODE or not best.times[0] else f"{times[0] / best.times[0]:.2f}"
            note = f"  ({entry.state}{': ' + entry.note if entry.note else ''})" if entry.state != TIMED else ""
            rows.append((_milliseconds(entry), spread, slower, str(entry.runs or ""), text + note))
        widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
        lines = ["  ".join([*map(str.rjust, row, widths), row[-1]]) for row in rows]
        return "\n".join([head, *lines])

    def as_data(self):
        """All of it, as JSON can have it."""
        entries = sorted(self.entries.values(), key=lambda entry: entry.rank)
        return {
            "kernel": self.name,
            "key": [[name, value if isinstance(value, (int, float, str)) else str(value)] for name, value in self.key],
            "seconds": self.seconds,
            "compile_seconds": self.compiling,
            "estimate_seconds": self.estimating,
            "best": values_of(entries[0].config),
            "configurations": [{"values": values_of(entry.config), **entry.as_data()} for entry in entries],
        }


def values_of(config):
    """The keywords of a configuration, as JSON can have them."""
    plain = int, float, str, bool, type(None)
    return {name: value if isinstance(value, plain) else str(value) for name, value in config.all_kwargs().items()}


def _text(config):
    return ", ".join(f"{name}={value}" for name, value in values_of(config).items())


def _milliseconds(entry):
    return "-" if entry.state == NO_CODE else f"{entry.times[0]:.4g}"


def _notebook_display():
    """The function `display` where this runs in a notebook, else None."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


def _is_terminal():
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False
