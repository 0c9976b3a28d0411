"""How long it took, as data that a notebook shows as tables: phases of compiling, configurations that were timed."""

_STYLE = (
    "<style>.tt{border-collapse:collapse;font:13px/1.5 system-ui,sans-serif;color:#24292f;background:#fff}"
    ".tt caption{text-align:left;padding:4px 8px;color:#57606a}.tt th,.tt td{padding:1px 10px;text-align:right;"
    "border-bottom:1px solid #d8dee4;white-space:nowrap}.tt td:has(.bar){text-align:left}"
    ".tt td:last-child,.tt th:last-child{text-align:left}"
    ".tt .bar{display:inline-block;height:.7em;background:#54aeff}.tt .best td{font-weight:600;"
    "background:#ddf4ff}</style>"
)


def escape(text):
    from html import escape  # when a page is made: its import takes longer than that of this file

    return escape(text)


def _table(caption, headings, rows):
    """`rows` are of cells that are HTML already, the class of the row in front."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f'<tr class="{kind}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for kind, *cells in rows)
    return f'<table class="tt"><caption>{caption}</caption><tr>{head}</tr>{body}</table>'


def _bar(share):
    return f'<span class="bar" style="width:{8 * share:.2f}em"></span>'


class Timings(dict):
    """Milliseconds by name of the phase."""

    def _repr_html_(self):
        total = sum(self.values())
        rows = [("", escape(name), f"{time:.2f}", _bar(time / (total or 1))) for name, time in self.items()]
        rows.append(("best", "together", f"{total:.2f}", ""))
        return _STYLE + _table("Compiling, in milliseconds", ("phase", "ms", ""), rows)


class Tunings(list):
    """What an autotuner found, for each key in turn: see `Autotuner.timings`."""

    def _repr_html_(self):
        return _STYLE + "".join(map(_tuning, self))


def _tuning(found):
    """The table of one key, the fastest configuration first."""
    entries = found["configurations"]
    names = list(dict.fromkeys(name for entry in entries for name in entry["values"]))
    best = (entries[0]["milliseconds"] or [0])[0]
    rows = []
    for number, entry in enumerate(entries):
        times = entry["milliseconds"]
        cells = ["-", "", "", ""]
        if times:
            spread = f"{times[1]:.4g}–{times[2]:.4g}" if len(times) == 3 else ""
            slower = times[0] / best if best else 1
            cells = [f"{times[0]:.4g}", spread, f"{slower:.2f}", _bar(1 / slower if slower else 1)]
        note = ": ".join(filter(None, [entry["state"], entry["note"]])) if entry["state"] != "timed" else ""
        values = (escape(str(entry["values"].get(name, ""))) for name in names)
        rows.append(("best" if not number else "", *cells, str(entry["runs"] or ""), *values, escape(note)))
    key = ", ".join(f"{name}={value!r}" if name else str(value) for name, value in found["key"])
    caption = f"<b>{escape(found['kernel'])}</b> for {escape(key)}, tuned in {found['seconds']:.2f} s"
    return _table(caption, ("ms", "20–80 %", "slower", "speed", "runs", *names, ""), rows)
