"""The layouts of the values of a compiled kernel, read from its stage ttgir."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape

from .layout import PLACES, LinearLayout

_TYPE = re.compile(r"((?:tile|buffer)<(?:[^<>]|<[^<>]*>)*>|\w+(?:<\w+>)?)(?: #(\d+))?")
_ARGUMENT = re.compile(r"%([\w.$]+): " + _TYPE.pattern)


class KernelLayouts(Mapping):
    """Name of a value (without ``%``) to its `LinearLayout`; ``types`` and ``lines`` have the type and line of each.

    :param text: of the stage ttgir, with or without the places of operations.
    """

    def __init__(self, text: str):
        self.numbers: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.lines: dict[str, int] = {}
        self._layouts: dict[tuple[int, int | None], LinearLayout] = {}
        found = re.findall(r"^#(\d+) = layout<([\dx]+)> \{(.*)\}$", text, re.MULTILINE)
        self._raw = {int(number): _raw(shape, places) for number, shape, places in found}
        for line in text.splitlines():
            if line.startswith(" "):
                self._add(line)

    def _add(self, line):
        place = re.search(r" loc\((.*?)\)(?= \{|$)", line)
        if place:
            line = line.replace(place[0], "")
        head, _, region = line.partition(" { ^(")
        names, _, operation = head.strip().partition(" = ")
        pairs = list(_ARGUMENT.findall(region))
        if operation and " : " in operation:
            types = _TYPE.findall(operation.rpartition(" : ")[2])
            pairs += [(name, *kind) for name, kind in zip(re.findall(r"%([\w.$]+)", names), types, strict=False)]
        for name, kind, number in pairs:
            if number:
                self.numbers[name], self.types[name] = int(number), kind
                if place:
                    self.lines[name] = int(re.findall(r'":(\d+):', place[1])[-1])  # that of the outermost caller

    def __getitem__(self, name: str) -> LinearLayout:
        kind, number = self.types[name], self.numbers[name]
        key = number, _element_bytes(kind) if kind.startswith("buffer") else None
        if key not in self._layouts:
            self._layouts[key] = LinearLayout(self._raw[number], key[1])
        return self._layouts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def describe(self, name: str) -> str:
        """``%acc: tile<128x128xf32>, line 20``."""
        line = f", line {self.lines[name]}" if name in self.lines else ""
        return f"%{name}: {self.types[name]}{line}"

    def __repr__(self):
        return "\n".join(f"#{self.numbers[name]} {self.describe(name)}" for name in self)

    def _repr_html_(self):
        """Each layout once, with the values that have it."""
        groups: dict[LinearLayout, list[str]] = {}
        for name in self:
            groups.setdefault(self[name], []).append(name)
        return "".join(
            f"<details><summary>{escape(self.describe(names[0]))}{_others(names)}</summary>"
            f"{layout.svg(self.describe(names[0]))}</details>"
            for layout, names in groups.items()
        )


def _others(names):
    return f" and %{', %'.join(names[1:])}" if len(names) > 1 else ""


def _element_bytes(kind):
    """Bytes of an element of ``buffer<2, 128x64xf16>``; 8 of a pointer."""
    element = kind.rstrip(">").rpartition("x")[2]
    if "ptr<" in kind:
        return 8
    return 1 if element.startswith(("f8", "i1>")) else max(1, int(re.sub(r"\D", "", element) or 8) // 8)


def _raw(shape, places):
    """What `LinearLayout` takes: bits of the extents, bits of each place, and the element of each of these."""
    extents = [int(extent) for extent in shape.split("x")]
    counts, masks = [], []
    for place in PLACES:
        listed = re.search(rf"\b{place}s = \[(.*?)\](?=, \w+ = |$)", places)
        bases = re.findall(r"\(([\d,]*)\)|(\d+)", listed[1]) if listed else []
        counts.append(len(bases))
        for several, single in bases:
            element = 0
            for extent, coordinate in zip(extents, (several or single).split(","), strict=True):
                element = element * extent + int(coordinate)
            masks.append(element)
    return tuple(extent.bit_length() - 1 for extent in extents), tuple(counts), tuple(masks)
