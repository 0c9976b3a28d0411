"""Linear layouts, drawn: which register, lane and warp holds which element of a tile.

A layout maps the bits of (register, lane, warp, block) to the bits of an element's coordinates, linearly over F2 (Zhou
et al., "Linear Layouts", arXiv 2505.23819). From a shell::

    python -m triton.tools.layout blocked 16 32 --per-thread 1 4 --lanes 4 8 --warps 2 1
    python -m triton.tools.layout nvmma 8 64 --element-bytes 2 --swizzle 128 --png layout.png
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from .. import _C

PLACES = ("register", "lane", "warp", "block")
MMA_PARTS = ("accumulator", "a", "b")


class LinearLayout:
    """A linear layout of a tile whose extents are powers of two.

    ``shape`` is the tile's shape; ``bases`` maps each of ``register``, ``lane``, ``warp`` and ``block`` to a list with
    one coordinate tuple a bit: what flipping that bit adds (XOR) to the coordinates. Made by :meth:`blocked`,
    :meth:`mma`, :meth:`swizzled` and :meth:`nvmma`, or by the methods that follow a shape operation.
    """

    def __init__(self, raw: tuple):
        self._raw = raw
        out_bits, in_bits, bases = raw
        self.shape = tuple(1 << bits for bits in out_bits)
        self.bases = {}
        start = 0
        for place, bits in zip(PLACES, in_bits, strict=True):
            self.bases[place] = [self._coordinates(base) for base in bases[start : start + bits]]
            start += bits

    @classmethod
    def blocked(cls, shape, size_per_thread, threads_per_warp, warps, order=None) -> LinearLayout:
        """Each thread holds a block of ``size_per_thread``; lanes, then warps, tile the shape in ``order`` (fastest
        dimension first; the last one when None). What is left repeats in registers."""
        order = tuple(reversed(range(len(shape)))) if order is None else tuple(order)
        parts = tuple(shape), tuple(size_per_thread), tuple(threads_per_warp), tuple(warps), order
        return cls(_C._layout("blocked", *parts))

    @classmethod
    def swizzled(cls, shape, vec: int = 1, per_phase: int = 1, max_phase: int = 1) -> LinearLayout:
        """Shared memory, row-major, with vectors of ``vec`` elements XORed by ``row // per_phase % max_phase``.
        Offsets (in elements) take the place of registers."""
        return cls(_C._layout("swizzled", tuple(shape), (vec, per_phase, max_phase)))

    @classmethod
    def nvmma(cls, shape, element_bytes: int, swizzle: int = 128) -> LinearLayout:
        """Shared memory as wgmma and TMA read it: panels of ``swizzle`` (32, 64, 128) bytes with the hardware's XOR."""
        return cls(_C._layout("nvmma", tuple(shape), (element_bytes, swizzle)))

    @classmethod
    def mma(cls, shape, part: str = "accumulator", element_bytes: int = 2, warps=None) -> LinearLayout:
        """Registers of a tensor core's ``accumulator`` (M x N), or of its operand ``"a"`` (M x K) or ``"b"`` (K x N),
        with ``warps`` along M and N; of three dimensions, with a batch before them and ``warps`` along it. wgmma's
        are those of ``warps=(4, 1)``."""
        if part not in MMA_PARTS:
            raise ValueError(f"part is {part!r}, and not one of {', '.join(MMA_PARTS)}")
        if element_bytes not in (1, 2, 4, 8):
            raise ValueError(f"element_bytes is {element_bytes}, and not 1, 2, 4 or 8")
        warps = (1,) * len(shape) if warps is None else tuple(warps)
        return cls(_C._layout("mma", tuple(shape), (MMA_PARTS.index(part), element_bytes), warps))

    def slice(self, axis: int) -> LinearLayout:
        """The layout of a reduction along ``axis``."""
        return self._transformed("slice", (axis,))

    def expand_dims(self, axis: int) -> LinearLayout:
        return self._transformed("expand", (axis,))

    def permute(self, order: Sequence[int]) -> LinearLayout:
        return self._transformed("permute", tuple(order))

    def reshape(self, shape: Sequence[int]) -> LinearLayout:
        return self._transformed("reshape", tuple(shape))

    def _transformed(self, name, numbers) -> LinearLayout:
        return LinearLayout(_C._layout_transform(name, self._raw, numbers))

    def _coordinates(self, element: int) -> tuple[int, ...]:
        out = []
        for extent in reversed(self.shape):
            out.append(element % extent)
            element //= extent
        return tuple(reversed(out))

    def coordinates(self, register: int = 0, lane: int = 0, warp: int = 0, block: int = 0) -> tuple[int, ...]:
        """The element at a place."""
        total = [0] * len(self.shape)
        for place, index in zip(PLACES, (register, lane, warp, block), strict=True):
            for bit, base in enumerate(self.bases[place]):
                if index >> bit & 1:
                    total = [a ^ b for a, b in zip(total, base, strict=True)]
        return tuple(total)

    def places(self) -> Iterator[tuple[tuple[int, int, int, int], tuple[int, ...]]]:
        """All ((register, lane, warp, block), coordinates)."""
        counts = [range(1 << len(self.bases[place])) for place in PLACES]
        for block, warp, lane, register in itertools.product(*reversed(counts)):
            yield (register, lane, warp, block), self.coordinates(register, lane, warp, block)

    def holders(self) -> dict[tuple[int, ...], list[tuple[int, int, int, int]]]:
        """For each element, the places that hold it: several where the layout replicates."""
        table: dict[tuple[int, ...], list] = {}
        for place, coordinates in self.places():
            table.setdefault(coordinates, []).append(place)
        return table

    def __eq__(self, other):
        return isinstance(other, LinearLayout) and self._raw == other._raw

    def __hash__(self):
        return hash(self._raw)

    def __repr__(self):
        parts = [f"{place}={bases}" for place, bases in self.bases.items() if bases]
        return f"LinearLayout(shape={self.shape}, {', '.join(parts)})"

    def __str__(self):
        return text(self)


def _rows(layout: LinearLayout):
    """The tile as a matrix: leading dimensions become rows."""
    columns = layout.shape[-1]
    rows = [(*prefix,) for prefix in itertools.product(*(range(n) for n in layout.shape[:-1]))]
    return rows, columns


def _label(places, layout: LinearLayout) -> str:
    """The first holder as `warp:lane:register`, leaving out what the layout has no bits for; `+` marks copies."""
    register, lane, warp, block = min(places, key=lambda place: place[::-1])
    numbers = [("b", "block", block), ("w", "warp", warp), ("t", "lane", lane), ("r", "register", register)]
    shown = [f"{letter}{value}" for letter, place, value in numbers if layout.bases[place]]
    return ":".join(shown) + ("+" if len(places) > 1 else "") or "r0"


def text(layout: LinearLayout) -> str:
    """The tile with each element's holder written in its cell (`w` warp, `t` lane, `r` register or offset)."""
    holders = layout.holders()
    rows, columns = _rows(layout)
    cells = [
        [_label(holders[(*row, c)], layout) if (*row, c) in holders else "-" for c in range(columns)] for row in rows
    ]
    width = max(len(cell) for row in cells for cell in row)
    names = [",".join(map(str, row)) for row in rows]
    margin = max((len(name) for name in names), default=0)
    lines = [" " * margin + " " + " ".join(f"{c:>{width}}" for c in range(columns))]
    for name, row in zip(names, cells, strict=True):
        lines.append(f"{name:>{margin}} " + " ".join(f"{cell:>{width}}" for cell in row))
    return "\n".join(lines)


def draw(layout: LinearLayout, ax=None, title: str | None = None):
    """Draws the tile with matplotlib: colour by warp (hue) and lane (shade), the holder written in each cell where
    there is room. Returns the axes."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import hsv_to_rgb

    holders = layout.holders()
    rows, columns = _rows(layout)
    if ax is None:
        _, ax = plt.subplots(figsize=(max(4.0, min(24.0, columns * 0.55)), max(2.5, min(24.0, len(rows) * 0.55))))
    warps, lanes = (1 << len(layout.bases[place]) for place in ("warp", "lane"))
    offsets = 1 << len(layout.bases["register"])
    image = []
    for row in rows:
        line = []
        for c in range(columns):
            register, lane, warp, _ = min(holders.get((*row, c), [(0, 0, 0, 0)]), key=lambda place: place[::-1])
            shade = lane / max(lanes - 1, 1) if lanes > 1 else register / max(offsets - 1, 1)
            line.append(hsv_to_rgb(((warp / warps + 0.58) % 1.0, 0.25 + 0.5 * shade, 0.98 - 0.25 * shade)))
        image.append(line)
    ax.imshow(image, aspect="auto", interpolation="nearest")
    if len(rows) * columns <= 2048:
        size = max(4.0, min(9.0, 260 / columns))
        for y, row in enumerate(rows):
            for x in range(columns):
                if (*row, x) in holders:
                    label = _label(holders[(*row, x)], layout).replace(":", "\n")
                    ax.text(x, y, label, ha="center", va="center", fontsize=size)
    ax.set_xlabel(f"dimension {len(layout.shape) - 1}")
    ax.set_ylabel("dimensions " + ", ".join(map(str, range(len(layout.shape) - 1))) if len(layout.shape) > 1 else "")
    ax.set_title(title or f"{'x'.join(map(str, layout.shape))}: {warps} warps, {lanes} lanes, {offsets} registers")
    return ax


def main(arguments: Sequence[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="triton.tools.layout", description="Draws which thread holds which element.")
    parser.add_argument("kind", choices=["blocked", "mma", "swizzled", "nvmma"])
    parser.add_argument("shape", type=int, nargs="+")
    parser.add_argument("--per-thread", type=int, nargs="+", help="blocked: elements a thread, by dimension")
    parser.add_argument("--lanes", type=int, nargs="+", help="blocked: lanes by dimension (product 32)")
    parser.add_argument("--warps", type=int, nargs="+", help="blocked: warps by dimension; mma: along M and N")
    parser.add_argument("--part", choices=MMA_PARTS, default="accumulator", help="mma: which matrix")
    parser.add_argument("--order", type=int, nargs="+", help="blocked: dimensions, fastest first")
    parser.add_argument("--vec", type=int, default=1)
    parser.add_argument("--per-phase", type=int, default=1)
    parser.add_argument("--max-phase", type=int, default=1)
    parser.add_argument("--element-bytes", type=int, default=2)
    parser.add_argument("--swizzle", type=int, default=128, choices=[32, 64, 128])
    parser.add_argument("--png", help="write a picture to this file instead of text")
    args = parser.parse_args(arguments)
    rank = len(args.shape)
    if args.kind == "blocked":
        one = [1] * rank
        lanes = args.lanes or [1] * (rank - 1) + [32]
        layout = LinearLayout.blocked(args.shape, args.per_thread or one, lanes, args.warps or one, args.order)
    elif args.kind == "mma":
        layout = LinearLayout.mma(args.shape, args.part, args.element_bytes, args.warps or (1, 1))
    elif args.kind == "swizzled":
        layout = LinearLayout.swizzled(args.shape, args.vec, args.per_phase, args.max_phase)
    else:
        layout = LinearLayout.nvmma(args.shape, args.element_bytes, args.swizzle)
    if args.png:
        import matplotlib

        matplotlib.use("Agg")
        draw(layout).figure.savefig(args.png, dpi=120, bbox_inches="tight")
        print(f"wrote {args.png}")
    else:
        print(text(layout))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
