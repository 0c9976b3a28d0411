"""Linear layouts, drawn: which register, lane and warp holds which element of a tile.

A layout maps the bits of (register, lane, warp, block) to the bits of an element's coordinates, linearly over F2 (Zhou
et al., "Linear Layouts", arXiv 2505.23819). From a shell::

    python -m triton.tools.layout blocked 16 32 --per-thread 1 4 --lanes 4 8 --warps 2 1
    python -m triton.tools.layout nvmma 8 64 --element-bytes 2 --swizzle 128 --svg layout.svg
    python -m triton.tools.layout of-kernel dump/kernel.ttgir --value acc --svg layout.svg

In a notebook a `LinearLayout` shows its picture, and ``layouts(compiled)`` those of all values of a compiled kernel.
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
    :meth:`mma`, :meth:`swizzled` and :meth:`nvmma`, or by the methods that follow a shape operation. One of shared
    memory has ``element_bytes``; offsets in elements take the place of registers.
    """

    def __init__(self, raw: tuple, element_bytes: int | None = None):
        self._raw, self.element_bytes = raw, element_bytes
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
    def swizzled(
        cls, shape, vec: int = 1, per_phase: int = 1, max_phase: int = 1, element_bytes: int = 2
    ) -> LinearLayout:
        """Shared memory, row-major, with vectors of ``vec`` elements XORed by ``row // per_phase % max_phase``."""
        return cls(_C._layout("swizzled", tuple(shape), (vec, per_phase, max_phase)), element_bytes)

    @classmethod
    def nvmma(cls, shape, element_bytes: int, swizzle: int = 128) -> LinearLayout:
        """Shared memory as wgmma and TMA read it: panels of ``swizzle`` (32, 64, 128) bytes with the hardware's XOR."""
        return cls(_C._layout("nvmma", tuple(shape), (element_bytes, swizzle)), element_bytes)

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
        for place, element in self.elements():
            yield place, self._coordinates(element)

    def elements(self) -> Iterator[tuple[tuple[int, int, int, int], int]]:
        """The same with the number of the element, row by row, in place of its coordinates."""
        elements = [0]
        for base in self._raw[2]:
            elements += [element ^ base for element in elements]
        counts = [range(1 << len(self.bases[place])) for place in PLACES]
        places = itertools.product(*reversed(counts))
        for (block, warp, lane, register), element in zip(places, elements, strict=True):
            yield (register, lane, warp, block), element

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

    def svg(self, title: str | None = None) -> str:
        """The picture, as the text of an SVG file."""
        from .layout_picture import Picture

        return Picture(self, title).svg()

    def _repr_svg_(self) -> str:
        return self.svg()


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


def layouts(compiled):
    """Name of a value to its layout, for all tiles and buffers of a kernel that was compiled for a GPU or a simulator;
    ``layouts(kernel.warmup(...))["acc"]`` is a picture in a notebook, and the whole shows all of them."""
    from .kernel_layouts import KernelLayouts

    text = compiled._text("ttgir+loc")
    if text is None:
        raise ValueError(f"a kernel for {compiled.info['target']!r} has no layouts: they are of GPUs and simulators")
    return KernelLayouts(text)


def main(arguments: Sequence[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="triton.tools.layout", description="Draws which thread holds which element.")
    parser.add_argument("kind", choices=["blocked", "mma", "swizzled", "nvmma", "of-kernel"])
    parser.add_argument("shape", nargs="+", help="extents of the tile; of-kernel: a file of the stage ttgir")
    parser.add_argument("--value", help="of-kernel: the name of a value; without it, they are listed")
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
    parser.add_argument("--svg", help="write a picture to this file instead of text")
    args = parser.parse_args(arguments)
    if args.kind == "of-kernel":
        from .kernel_layouts import KernelLayouts

        with open(args.shape[0], encoding="utf-8") as file:
            values = KernelLayouts(file.read())
        if args.value is None:
            print(values)
            return 0
        if args.value not in values:
            parser.error(f"no value {args.value!r} has a layout; there are: {', '.join(values)}")
        return _show(values[args.value], args)
    args.shape = [int(extent) for extent in args.shape]
    rank = len(args.shape)
    if args.kind == "blocked":
        one = [1] * rank
        lanes = args.lanes or [1] * (rank - 1) + [32]
        layout = LinearLayout.blocked(args.shape, args.per_thread or one, lanes, args.warps or one, args.order)
    elif args.kind == "mma":
        layout = LinearLayout.mma(args.shape, args.part, args.element_bytes, args.warps or (1, 1))
    elif args.kind == "swizzled":
        layout = LinearLayout.swizzled(args.shape, args.vec, args.per_phase, args.max_phase, args.element_bytes)
    else:
        layout = LinearLayout.nvmma(args.shape, args.element_bytes, args.swizzle)
    return _show(layout, args)


def _show(layout, args) -> int:
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as file:
            file.write(layout.svg(args.value))
        print(f"wrote {args.svg}")
    else:
        print(text(layout))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
