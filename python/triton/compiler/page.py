"""A compiled kernel as a notebook shows it: its stages in tabs, beside the lines of the kernel that they come from.

One piece of HTML with its own CSS: nothing is loaded, no script runs, and a saved notebook keeps it. Where a line of
the kernel is pointed at, what became of it is marked, and the other way round.
"""

import keyword
import os
import re
from html import escape

LONGEST = 2000  # lines of a stage that are shown

_STYLE = """
.tk { font: 13px/1.45 system-ui, sans-serif; color: #24292f; background: #fff; border: 1px solid #d0d7de;
      border-radius: 6px; padding: 8px 12px; max-width: 100%; }
.tk > input { display: none; }
.tk > label { display: inline-block; padding: 2px 10px; margin: 6px 4px 0 0; cursor: pointer; color: #57606a;
      border-bottom: 2px solid #d0d7de; }
.tk > .pane { display: none; grid-template-columns: minmax(20em, 2fr) 3fr; border-top: 1px solid #d0d7de; }
.tk pre { font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; margin: 0; padding: 6px 0; overflow: auto;
      max-height: 36em; background: none; color: inherit; border: 0; }
.tk pre + pre { border-left: 1px solid #d0d7de; }
.tk pre > u { text-decoration: none; display: block; white-space: pre; min-height: 1.45em; padding-right: 1em;
      width: max-content; min-width: 100%; box-sizing: border-box; }
.tk pre b { font-weight: 400; }
.tk i { font-style: normal; display: inline-block; width: 4ch; margin-right: 1ch; text-align: right; color: #8c959f;
      user-select: none; }
.tk .c { color: #6e7781; } .tk .s { color: #0a3069; } .tk .n { color: #0550ae; } .tk .r { color: #953800; }
.tk .k { color: #cf222e; } .tk .t { color: #116329; }
.tk .facts { color: #57606a; margin-left: 1em; }
"""

_PYTHON = rf"""(?P<c>\#.*)|(?P<s>("|')(?:\\.|(?!\3).)*\3)|(?P<n>\b\d[\w.]*)|(?P<t>@[\w.]+)|
(?P<k>\b(?:{"|".join(keyword.kwlist)})\b)"""
_REST = r"""(?P<s>"[^"]*")|(?P<r>[%@$][\w.$]+)|(?P<t>(?<![\w%])\.[a-z][\w.]*|
\b(?:tile|buffer|ptr|layout|[iuf](?:1|8|16|32|64|128)|bf16|f8\w+|half|float|double|void)\b|\#\d+\b)|
(?P<n>(?<![\w.])-?(?:0[xXfFdD][0-9a-fA-F]+|\d[\d.]*(?:[eE][+-]?\d+)?)\b)"""
_COMMENTS = {"ttir": "//", "ttgir": "//", "ptx": "//", "sass": "//", "llir": ";", "asm": r"\#(?!\d)|//"}
# What a line does: the word at its beginning, behind a predicate or what it defines.
_OPERATION = re.compile(r"\s*(?:@!?%\w+\s+)?(?:[%\w.$, ]+ = )?([a-zA-Z_][\w.]*)(?![\w.]*:)")


def _languages():
    yield "python", re.compile(_PYTHON, re.VERBOSE)
    for stage, comment in _COMMENTS.items():
        yield stage, re.compile(rf"(?P<c>(?:{comment}).*)|" + _REST, re.VERBOSE)


_LANGUAGES = dict(_languages())


def highlight(line, language):
    """A line as HTML."""
    out, at = [], 0
    if language != "python" and (operation := _OPERATION.match(line)):
        at = operation.end()
        start = operation.start(1)
        out.append(f"{_marked(line[:start], language)}<b class=k>{escape(line[start:at])}</b>")
    return "".join(out) + _marked(line[at:], language)


def _marked(text, language):
    out, at = [], 0
    for match in _LANGUAGES[language].finditer(text):
        out.append(f"{escape(text[at : match.start()])}<b class={match.lastgroup}>{escape(match[0])}</b>")
        at = match.end()
    return "".join(out) + escape(text[at:])


# ---- where lines come from


class Places:
    """Which line of the kernel's file a place belongs to, also one in a function that the kernel calls."""

    def __init__(self, compiled):
        self.file, kernel = compiled.fn.source_file, compiled.fn
        first = kernel.first_line
        self.source = {first + number: line.rstrip("\n") for number, line in enumerate(_source_lines(kernel))}
        self._callers = {}
        located = compiled._text("ttgir+loc") or compiled._text("ttir+loc")
        for chain in re.findall(r" loc\((.*)\)(?: \{.*)?$", located, re.MULTILINE):
            places = _chain(chain)
            line = self.of(places)
            if places and line:
                self._callers.setdefault(places[0], set()).add(line)

    def of(self, places):
        """The line of the first place, from the innermost on, that is in the kernel's text."""
        return next((line for file, line in places if file == self.file and line in self.source), None)

    def of_inlined(self, place):
        """The line that a place without its callers belongs to, where only one can be meant."""
        lines = self._callers.get(place, ())
        return self.of([place]) or (next(iter(lines)) if len(lines) == 1 else None)


def _source_lines(kernel):
    lines = getattr(kernel, "source_lines", None)
    return lines if lines is not None else kernel.src.splitlines()


def _chain(text):
    return [(file, int(line)) for file, line in re.findall(r'"([^"]*)":(\d+):\d+', text)]


def located(compiled, stage, places):
    """The lines of a stage, each with the line of the kernel that it comes from, or None."""
    if stage in ("ttir", "ttgir"):
        for line in compiled._text(f"{stage}+loc").splitlines():
            match = re.search(r" loc\((.*?)\)(?= \{|$)", line)
            yield (line.replace(match[0], ""), places.of(_chain(match[1]))) if match else (line, None)
        return
    text = compiled.asm[stage]
    if stage == "asm":
        yield from _of_processor(text, compiled._text("asm+loc"), places)
    elif stage == "llir":
        yield from _of_llvm(text, places)
    else:
        yield from _of_assembly(text, places)


def _of_llvm(text, places):
    named = re.findall(r'^!(\d+) = .*!DIFile\(filename: "(.*?)", directory: "(.*?)"', text, re.M)
    files = {number: os.path.join(folder, name) for number, name, folder in named}
    scopes = dict(re.findall(r"^!(\d+) = .*!(?:DISubprogram|DILexicalBlockFile)\(.*?file: !(\d+)", text, re.M))
    lines = {}
    for number, line, scope in re.findall(r"^!(\d+) = !DILocation\(line: (\d+),.*?scope: !(\d+)", text, re.M):
        lines[number] = places.of_inlined((files.get(scopes.get(scope)), int(line)))
    for line in text.splitlines():
        match = re.search(r", !dbg !(\d+)", line)
        yield (line.replace(match[0], ""), lines.get(match[1])) if match else (line, None)


def _of_assembly(text, places):
    files = dict(re.findall(r'\.file\s+(\d+) "(.*?)"', text))
    now = None
    for line in text.splitlines():
        if at := re.match(r"\s*\.loc\s+(\d+) (\d+)", line):
            now = places.of_inlined((files.get(at[1]), int(at[2])))
        elif at := re.match(r'\s*//## File "(.*?)", line (\d+)', line):
            now = places.of_inlined((at[1], int(at[2])))
        elif line.strip() not in ("// begin inline asm", "// end inline asm"):
            yield line, now if _is_code(line) else None


def _of_processor(text, located, places):
    """The lines of reads and writes of memory, which is what the line table for a CPU has (cpu/places.c)."""
    texts = dict(re.findall(r"^# place (\d+): (.*)$", located, re.MULTILINE))
    chains = {number: re.findall(r"(?:^|, called at )(.*?):(\d+)", text) for number, text in texts.items()}
    now, known = None, []
    for line in located.splitlines():
        if at := re.match(r"\s*\.loc\s+\d+ (\d+)", line):
            now = places.of([(file, int(number)) for file, number in chains.get(at[1], ())])
        elif _is_code(line):
            known.append((line, now))
    lines = text.splitlines()
    same = [line for line, _ in known] == list(filter(_is_code, lines))
    rest = iter(known)
    for line in lines:
        yield line, next(rest)[1] if same and _is_code(line) else None


def _is_code(line):
    return line[:1].isspace() and not line.lstrip().startswith((".", "#", "//"))


# ---- the page


def page(compiled):
    """The HTML of a compiled kernel."""
    places, own = Places(compiled), f"tk{os.urandom(4).hex()}"
    stages = [stage for stage in compiled.asm if stage != "cubin"]
    info, tabs, rules = compiled.info, [], []
    for number, stage in enumerate(stages):
        checked = " checked" if number == len(stages) - 1 else ""
        tabs.append(f'<input type="radio" name="{own}" id="{own}-{number}"{checked}>')
        tabs.append(f'<label for="{own}-{number}">{stage}</label>')
        rules.append(f"#{own}-{number}:checked ~ .p{number} {{ display: grid; }}")
        rules.append(f"#{own}-{number}:checked + label {{ border-color: #0969da; color: #0969da; }}")
    rules += [f".{own}:has(.l{line}:hover) .l{line} {{ background: #fff8c5; }}" for line in places.source]
    source = _lines((text, line, "python") for line, text in places.source.items())
    panes = "\n".join(
        f'<div class="pane p{number}"><pre>{source}</pre><pre>{_stage(compiled, stage, places)}</pre></div>'
        for number, stage in enumerate(stages)
    )
    facts = f"{info['target']}, {info['num_warps']} warps, {info['shared']} bytes of shared memory"
    if info["target"] == "cpu":
        facts = "cpu"
    signature = ", ".join(f"{name}: {kind}" for name, kind in compiled.signature.items())
    return (
        f'<div class="tk {own}"><style>{_STYLE}{chr(10).join(rules)}</style>\n'
        f'<b>{escape(compiled.name)}</b>({escape(signature)})<span class="facts">{escape(facts)}</span><br>\n'
        f"{''.join(tabs)}\n{panes}</div>"
    )


def _stage(compiled, stage, places):
    lines = list(located(compiled, stage, places))
    shown = _lines((text, line, stage) for text, line in lines[:LONGEST])
    more = len(lines) - LONGEST
    return shown + (f'<u><b class=c>{more} more lines: asm["{stage}"]</b></u>' if more > 0 else "")


def _lines(lines):
    return "".join(
        f"<u class=l{line}><i>{line}</i>{highlight(text, language)}</u>"
        if line
        else f"<u><i></i>{highlight(text, language)}</u>"
        for text, line, language in lines
    )
