"""A layout as SVG: which warp and lane holds each element of a tile, or which bank of shared memory.

The whole tile in colours, and beside it the corner of a large one enlarged, with the holder of each element written
into its cell. Elements of one colour are one path, so that a tile of 128x128 takes about 100 KB.
"""

from __future__ import annotations

import colorsys
import itertools
from html import escape

LINE = 64  # elements of a row of a tile of one dimension
CORNER = 16, 16  # elements that are enlarged
LARGEST = 512, 512  # of a tile that is drawn; of a larger one the first of these
SIDE = 560.0  # points that the larger side of the whole tile takes
BANKS, BANK_BYTES = 32, 4


class Picture:
    """The elements of a tile as a matrix: each with its colour, what is written into it, and the thread or bank.

    :param layout: a `LinearLayout`; one with `element_bytes` is of shared memory, and is coloured by banks.
    """

    def __init__(self, layout, title=None):
        self.layout, self.title = layout, title
        self.extents = [extent for extent in layout.shape if extent > 1] or [1]
        if len(self.extents) == 1 and self.extents[0] > LINE:
            self.extents = [self.extents[0] // LINE, LINE]
        self.columns = self.extents[-1]
        self.rows = 1
        for extent in self.extents[:-1]:
            self.rows *= extent
        self.shown = min(self.rows, LARGEST[0]), min(self.columns, LARGEST[1])
        self.counts = {place: 1 << len(bases) for place, bases in layout.bases.items()}
        self.cells = self._cells()

    def _cells(self):
        """(row, column) to the first place that holds the element, and whether there are others."""
        cells = {}
        for place, element in self.layout.elements():
            at = divmod(element, self.columns)
            if at[0] < self.shown[0] and at[1] < self.shown[1]:
                cells[at] = (cells[at][0], True) if at in cells else (place, False)
        return cells

    # ---- what an element looks like

    def _bank(self, place):
        return place[0] * self.layout.element_bytes // BANK_BYTES % BANKS

    def color(self, place):
        register, lane, warp, _ = place
        if self.layout.element_bytes:
            return _color(self._bank(place) / BANKS, 0.78, 0.75 if self._bank(place) % 2 else 0.65)
        lanes, registers = self.counts["lane"], self.counts["register"]
        shade = lane / (lanes - 1) if lanes > 1 else register / max(registers - 1, 1)
        return _color((warp / self.counts["warp"] + 0.58) % 1, 0.88 - 0.36 * shade, 0.6)

    def label(self, place, copied):
        register, lane, warp, block = place
        if self.layout.element_bytes:
            return [str(register), f"b{self._bank(place)}"]
        names = [("b", "block", block), ("w", "warp", warp)]
        first = " ".join(f"{letter}{value}" for letter, of, value in names if self.counts[of] > 1)
        second = f"t{lane}:{register}" if self.counts["lane"] > 1 else f"r{register}"
        return [*([first] if first else []), second + "+" * copied]

    # ---- the drawing

    def svg(self):
        """The picture as the text of an SVG file."""
        rows, columns = self.shown
        is_small = rows <= CORNER[0] and columns <= 2 * CORNER[1]
        parts, at = [], 24.0
        if not is_small:
            side = max(1.0, SIDE / max(rows, columns))
            across = max(side, min(6.0, SIDE / columns))
            down = max(side, min(6.0, SIDE / rows))
            parts.append(self._tile(rows, columns, across, down, at, labels=False))
            at += columns * across + 56
        corner = (rows, columns) if is_small else (min(rows, CORNER[0]), min(columns, CORNER[1]))
        down, across = (22.0, 34.0) if self.layout.element_bytes else (24.0, 44.0)
        parts.append(self._tile(*corner, across, down, at, labels=True))
        width = at + corner[1] * across + 12
        whole = 0.0 if is_small else rows * max(max(1.0, SIDE / max(rows, columns)), min(6.0, SIDE / rows))
        height = 46 + max(whole, corner[0] * down) + 18
        legend, below = self._legend(24.0, height, width)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height + below:.0f}" '
            f'viewBox="0 0 {width:.0f} {height + below:.0f}" font-family="sans-serif" font-size="11" fill="#24292f">'
            f'<rect width="100%" height="100%" fill="#fff"/>'
            f'<text x="24" y="18" font-size="13" font-weight="600">{escape(self._heading())}</text>'
            f"{''.join(parts)}{legend}</svg>"
        )

    def _heading(self):
        shape = "x".join(map(str, self.layout.shape))
        cut = "" if self.shown == (self.rows, self.columns) else f", the first {self.shown[0]} x {self.shown[1]}"
        folded = ", in rows of 64" if self.rows > 1 and len(self.layout.shape) == 1 else ""
        return f"{self.title + ': ' if self.title else ''}{shape}{folded}{cut}"

    def _tile(self, rows, columns, across, down, left, labels):
        """A part of the tile from its corner on, with numbers at its sides."""
        paths, texts = {}, []
        for row in range(rows):
            column = 0
            while column < columns:
                if (row, column) not in self.cells:
                    column += 1
                    continue
                color, start = self.color(self.cells[row, column][0]), column
                while column < columns and (row, column) in self.cells:
                    if self.color(self.cells[row, column][0]) != color:
                        break
                    column += 1
                paths.setdefault(color, []).append(f"M{start} {row}h{column - start}v1h{start - column}z")
        if labels:
            for (row, column), (place, copied) in self.cells.items():
                if row < rows and column < columns:
                    lines = self.label(place, copied)
                    for number, line in enumerate(lines):
                        y = (row + (number + 1) / (len(lines) + 1)) * down + 3
                        texts.append(f'<text x="{(column + 0.5) * across:.1f}" y="{y:.1f}">{line}</text>')
        whole = f"M0 0H{columns * across:.1f}V{rows * down:.1f}H0z"
        edges = self._edges(rows, columns, across, down) if labels else whole
        fills = "".join(f'<path fill="{color}" d="{"".join(path)}"/>' for color, path in paths.items())
        return (
            f'<g transform="translate({left:.1f} 46)">{self._numbers(rows, columns, across, down)}'
            f'<g transform="scale({across:.3f} {down:.3f})" shape-rendering="crispEdges">{fills}</g>'
            f'<path d="{edges}" fill="none" stroke="#24292f" stroke-width="1"/>'
            f'<g font-size="8.5" text-anchor="middle">{"".join(texts)}</g></g>'
        )

    def _edges(self, rows, columns, across, down):
        """The outline, and lines between elements of different warps."""

        def warp(row, column):
            cell = self.cells.get((row, column))
            return None if cell is None else cell[0][2:]

        out = [f"M0 0H{columns * across:.1f}V{rows * down:.1f}H0z"]
        for row, column in itertools.product(range(rows), range(columns)):
            if column and warp(row, column) != warp(row, column - 1):
                out.append(f"M{column * across:.1f} {row * down:.1f}v{down:.1f}")
            if row and warp(row, column) != warp(row - 1, column):
                out.append(f"M{column * across:.1f} {row * down:.1f}h{across:.1f}")
        return "".join(out)

    def _numbers(self, rows, columns, across, down):
        out = []
        for count, extent, is_row in ((rows, down, True), (columns, across, False)):
            step = 1
            while step * extent < (12 if is_row else 26):
                step *= 2
            for number in range(0, count, step):
                middle = (number + 0.5) * extent
                at = f'x="-4" y="{middle + 3:.1f}" text-anchor="end"' if is_row else f'x="{middle:.1f}" y="-5"'
                out.append(f"<text {at}>{number}</text>")
        return f'<g font-size="9" fill="#57606a" text-anchor="middle">{"".join(out)}</g>'

    def _legend(self, left, top, width):
        """Swatches of the banks, or of warps and lanes, and what is true of the whole layout."""
        counts, swatches = self.counts, []
        if self.layout.element_bytes:
            step = max(1, BANK_BYTES // self.layout.element_bytes)
            swatches += [(f"{bank}", self.color((bank * step, 0, 0, 0))) for bank in range(BANKS)]
            size = self.layout.element_bytes
            text = f"bank of the first byte; {size} byte{'s' * (size > 1)} an element; in a cell: offset, bank"
        else:
            for warp in range(min(counts["warp"], 8)):
                lanes = sorted({0, counts["lane"] // 2, counts["lane"] - 1})
                swatches += [(f"w{warp} t{lane}", self.color((0, lane, warp, 0))) for lane in lanes]
            parts = [f"{counts[of]} {of}s" for of in ("warp", "lane", "register") if counts[of] > 1]
            copies = sum(1 for bases in self.layout.bases.values() for base in bases if not any(base))
            text = ", ".join(parts) or "one thread"
            text += f"; {1 << copies} copies of each element (+)" if copies else ""
            text += "; in a cell: w warp, t lane:register" if counts["lane"] > 1 else "; in a cell: register"
        out, x, y = [f'<text x="{left}" y="{top + 8:.1f}">{text}</text>'], left, top + 16
        for name, color in swatches:
            if x > width - 56:
                x, y = left, y + 16
            out.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="11" height="11" fill="{color}" stroke="#8c959f"/>')
            out.append(f'<text x="{x + 14:.0f}" y="{y + 9:.0f}" font-size="9">{name}</text>')
            x += 28 if self.layout.element_bytes else 56
        return "".join(out), y + 24 - top


def _color(hue, lightness, saturation):
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, lightness, saturation))
