"""Random windows onto arrays, and atomics, compared with NumPy: `python tests/fuzz/campaign.py windows` runs many.

Block pointers and descriptors of one to four dimensions reach over the edges of arrays whose rows are padded: they are
moved, padded with zeros or NaNs, loaded, stored and combined atomically. Tiles of pointers do all atomic operations,
masked, at places of their own or shared ones, and what these give counts. `--explain SEED` shows one.
"""

import sys
from math import prod
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import DTYPES, PADDINGS, Array, offsets, random, round_to  # noqa: E402
from launches import Chooser, Launch, explain, indented  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
GRID = 2
LIMIT = 2048  # elements of a tile
MOST_SHARED = 40  # places that elements share
ELEMENTS = "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "float8e5"
BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
COMBINED = {"add": np.add, "max": np.maximum, "min": np.minimum, **BITWISE}
OF_DESCRIPTORS = "add", "max", "min", *BITWISE
ATOMIC = "int32", "int64", "uint32", "uint64", "float32", "float16", "bfloat16", "float64"


def rows(texts):
    """A tuple's text."""
    return f"({', '.join(map(str, texts))},)"


class Generator(Chooser):
    """Builds the lines of a kernel beside the arrays that it is to leave behind."""

    def __init__(self, seed):
        super().__init__(seed)
        self.warps, self.lines = self.pick(1, 2, 4, 4, 8, 16), []
        self.arrays, self.expected, self.arguments, self.names = {}, {}, {}, 0

    # ---- arrays and numbers -----------------------------------------------------------------------------------------

    def new_name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def array(self, letter, values, dtype):
        """The name of a new array, and its values to work on."""
        name = self.new_name(letter)
        self.arrays[name] = Array(values, dtype)
        self.expected[name] = values.copy()
        return name, self.expected[name]

    def number(self, value):
        """An integer's text: a constant, an argument, or one that is computed."""
        if self.chance(0.5):
            return str(value)
        name = self.new_name("n")
        self.arguments[name] = value
        return name

    def values(self, shape, dtype, small=False):
        shape = (shape,) if isinstance(shape, int) else shape
        low, high = (-4, 5) if small else (None, None)
        if DTYPES[dtype].kind == "float":
            return round_to(self.random.integers(-8, 9, shape), dtype).values
        return random(shape, dtype, int(self.random.integers(1 << 30)), low, high).values

    def extents(self, rank, limit=LIMIT):
        while True:
            shape = [self.pick(1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 33, 64, 100, 128, 256) for _ in range(rank)]
            if prod(shape) <= limit:
                return shape

    # ---- windows ----------------------------------------------------------------------------------------------------

    def window(self, of_descriptor):
        """A random array and windows onto it; fills in what the methods below need."""
        rank = self.pick(1, 2, 2, 3, 4)
        self.dtype, self.block = self.pick(*ELEMENTS), self.extents(rank)
        self.shape = [max(1, int(extent * self.pick(0.5, 1, 1.5, 2)) + self.pick(-1, 0, 0, 1)) for extent in self.block]
        order = [int(k) for k in self.random.permutation(rank)] if not of_descriptor and self.chance(0.4) else None
        self.order = order or list(range(rank))[::-1]
        self.strides, along = [0] * rank, 1
        for axis in self.order:
            self.strides[axis] = along
            along *= self.shape[axis] + self.pick(0, 0, 1, 3)
            if of_descriptor:  # rows of descriptors are aligned
                along = -(-along // 16) * 16
        self.size = along

    def view(self, flat, program):
        """The array of one program."""
        part = flat[program * self.size :]
        steps = [stride * part.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(part, self.shape, steps)

    def corner(self, inside):
        """Where a window begins: below zero or behind the end, too, along axes that are looked at."""
        corner = []
        for axis, extent in enumerate(self.shape):
            last = extent - self.block[axis]
            within = last >= 0 and (axis in inside or self.chance(0.3))
            corner.append(
                int(
                    self.random.integers(0, last + 1) if within else self.random.integers(-self.block[axis], extent + 2)
                )
            )
        return corner

    def part(self, view, corner):
        """What a window has in common with an array, there and in the window."""
        there, here = [], []
        for start, extent, width in zip(corner, view.shape, self.block, strict=True):
            low, high = max(start, 0), max(min(start + width, extent), max(start, 0))
            there.append(slice(low, high))
            here.append(slice(low - start, high - start))
        return tuple(there), tuple(here)

    def loaded(self, view, corner, beyond):
        there, here = self.part(view, corner)
        tile = np.full(self.block, beyond, view.dtype)
        tile[here] = view[there]
        return tile

    def result(self, text, tiles, dtype=None):
        """Stores what a text gives, which is one tile for each program."""
        dtype = dtype or self.dtype
        name, values = self.array("o", np.zeros((GRID, *tiles[0].shape), DTYPES[dtype].values), dtype)
        values[...] = tiles
        shape = tiles[0].shape
        place = f"{name} + pid * {prod(shape)}" + (f" + {offsets(shape)}" if shape else "")
        self.lines.append(f"tl.store({place}, {text})")

    def unlooked(self):
        """Axes along which windows are within the array, so that nobody need look."""
        return [k for k in range(len(self.block)) if self.shape[k] >= self.block[k] and self.chance(0.4)]

    def block_pointer(self, base):
        """The text of one, moved or not; where it is, and the options of an access."""
        inside = self.unlooked()
        corner = self.corner(inside)
        moves = [self.pick(0, 0, 1, -3, 16) for _ in corner]
        start = [a - b for a, b in zip(corner, moves, strict=True)] if any(moves) else corner
        shape, strides = (rows(map(self.number, each)) for each in (self.shape, self.strides))
        text = f"tl.make_block_ptr({base} + pid * {self.size}, {shape}, {strides}, {rows(map(self.number, start))}, "
        text += f"{rows(self.block)}, {rows(self.order)})"
        if any(moves):
            text = f"tl.advance({text}, {rows(map(self.number, moves))})"
        looked = [k for k in range(len(self.block)) if k not in inside]
        return text, corner, f", boundary_check={rows(looked)}" if looked else ""

    def load_block(self):
        self.window(False)
        name, flat = self.array("p", self.values(GRID * self.size, self.dtype), self.dtype)
        text, corner, check = self.block_pointer(name)
        is_float = DTYPES[self.dtype].kind == "float" and self.dtype != "float8e5"
        padding = self.pick("zero", "nan") if is_float else "zero"
        option = f", padding_option='{padding}'" if check else ""
        beyond = np.nan if padding == "nan" else 0
        tiles = [self.loaded(self.view(flat, pid), corner, beyond) for pid in range(GRID)]
        self.result(f"tl.load({text}{check}{option})", tiles)

    def store_block(self):
        self.window(False)
        tiles = self.values((GRID, *self.block), self.dtype)
        source, _ = self.array("p", tiles, self.dtype)
        name, flat = self.array("q", self.values(GRID * self.size, self.dtype), self.dtype)
        text, corner, check = self.block_pointer(name)
        place = f"{source} + pid * {prod(self.block)} + {offsets(self.block)}"
        self.lines.append(f"tl.store({text}, tl.load({place}){check})")
        for pid in range(GRID):
            view = self.view(flat, pid)
            there, here = self.part(view, corner)
            view[there] = tiles[pid][here]

    def descriptor(self, base, padding=""):
        strides = rows([*map(self.number, self.strides[:-1]), 1])
        shape = rows(map(self.number, self.shape))
        option = f", padding_option='{padding}'" if padding else ""
        return f"tl.make_tensor_descriptor({base} + pid * {self.size}, {shape}, {strides}, {rows(self.block)}{option})"

    def is_wide_enough(self):
        return self.block[-1] * DTYPES[self.dtype].bits >= 128

    def load_descriptor(self):
        self.window(True)
        if not self.is_wide_enough():
            return
        name, flat = self.array("p", self.values(GRID * self.size, self.dtype), self.dtype)
        is_float = DTYPES[self.dtype].kind == "float" and self.dtype != "float8e5"
        padding = self.pick("", "zero", "nan") if is_float else ""
        described = self.new_name("d")
        self.lines.append(f"{described} = {self.descriptor(name, padding)}")
        for _ in range(self.pick(1, 1, 2)):
            corner = self.corner([])
            beyond = np.nan if padding == "nan" else 0
            tiles = [self.loaded(self.view(flat, pid), corner, beyond) for pid in range(GRID)]
            self.result(f"{described}.load({rows(map(self.number, corner))})", tiles)

    def store_descriptor(self):
        """Or one of the atomic operations, each element of which has a place of its own."""
        self.window(True)
        function = self.pick("store", "store", *OF_DESCRIPTORS)
        if function in BITWISE:
            self.dtype = self.pick("int32", "int64")
        elif function != "store":
            self.dtype = self.pick("int32", "int64", "float32" if function == "add" else "float16")
        if not self.is_wide_enough():
            return
        tiles = self.values((GRID, *self.block), self.dtype)
        source, _ = self.array("p", tiles, self.dtype)
        name, flat = self.array("q", self.values(GRID * self.size, self.dtype), self.dtype)
        corner, method = self.corner([]), function if function == "store" else f"atomic_{function}"
        place = f"{source} + pid * {prod(self.block)} + {offsets(self.block)}"
        text = f"{self.descriptor(name)}.{method}({rows(map(self.number, corner))}, tl.load({place}))"
        self.lines.append(text)
        for pid in range(GRID):
            view = self.view(flat, pid)
            there, here = self.part(view, corner)
            new = tiles[pid][here]
            view[there] = new if function == "store" else COMBINED[function](view[there], new)

    # ---- atomic operations ------------------------------------------------------------------------------------------

    def atomic(self):
        """Of a tile or a scalar, masked or not. What it gives is compared where each element has a place of its own."""
        shape = tuple(self.extents(self.pick(0, 1, 1, 2, 3), 512))
        function, dtype = self.pick(*COMBINED, "xchg", "cas"), self.pick(*ATOMIC)
        if function in BITWISE or (dtype in ("float16", "bfloat16", "float64") and function != "add"):
            dtype = self.pick("int32", "int64", "uint32", "uint64")
        shared = function in COMBINED and self.chance(0.4)
        places = self.places(shape, shared)
        mask = None
        if function != "cas" and self.chance(0.6):
            mask = np.asarray(self.random.random(shape) < self.pick(0.1, 0.5, 0.9))
        size = max(prod(shape), MOST_SHARED)
        memory, flat = self.array("m", self.values(GRID * size, dtype, small=True), dtype)
        values, wanted = (self.values((GRID, *shape), dtype, small=True) for _ in range(2))
        operands = [f"{memory} + pid * {size} + {self.for_all(places.astype(np.int32), 'int32')}"]
        operands += [self.given(wanted, dtype)] if function == "cas" else []
        operands.append(self.given(values, dtype))
        chosen = self.for_all(mask, "int1") if mask is not None else None
        operands += [f"mask={chosen}"] if chosen else []
        operands += self.pick([], [], ["sem='relaxed'"], ["sem='acquire'"], ["scope='cta'"])
        found = self.new_name("v")
        self.lines.append(f"{found} = tl.atomic_{function}({', '.join(operands)})")
        olds = []
        for pid in range(GRID):
            part = flat[pid * size : (pid + 1) * size]
            olds.append(np.asarray(part[places]).copy())
            done = np.ones(shape, bool) if mask is None else mask
            done = part[places] == wanted[pid] if function == "cas" else done
            if function in COMBINED:
                COMBINED[function].at(part, places[done], values[pid][done])
            else:
                part[places[done]] = values[pid][done]
        if chosen:
            found, olds = f"tl.where({chosen}, {found}, 0)", [np.where(mask, old, old.dtype.type(0)) for old in olds]
        if not shared and self.chance(0.7):
            self.result(found, olds, dtype)

    def places(self, shape, shared):
        """Where each element goes: alone, or with others."""
        if shared:
            return np.asarray(self.random.integers(0, self.pick(1, 3, MOST_SHARED), shape))
        return self.random.permutation(prod(shape)).reshape(shape)

    def for_all(self, values, dtype):
        """The text of a tile that is the same in all programs."""
        return self.given(np.broadcast_to(values, (GRID, *values.shape)).copy(), dtype)

    def given(self, values, dtype):
        """The text of a tile that is loaded from an array."""
        name, _ = self.array("p", values, dtype)
        shape = values.shape[1:]
        loaded = self.new_name("x")
        place = f"{name} + pid * {prod(shape)}" + (f" + {offsets(shape)}" if shape else "")
        self.lines.append(f"{loaded} = tl.load({place})")
        return loaded

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def launch(self):
        steps = self.load_block, self.store_block, self.load_descriptor, self.store_descriptor, self.atomic, self.atomic
        for _ in range(self.random.integers(1, 5)):
            self.pick(*steps)()
        parameters = ", ".join([*self.arrays, *self.arguments])
        lines = ["pid = tl.program_id(0)", *self.lines]
        source = f"@triton.jit\ndef kernel({parameters}):\n" + "\n".join(indented(lines)) + "\n"
        options = {"num_warps": self.warps}
        return Launch(source, self.arrays, list(self.arguments.values()), GRID, options, self.pick(None, *PADDINGS))


def outcomes(seed, targets, begin):
    """Yields whether each target gives what NumPy does, or what differs."""
    begin(targets[0])
    generator = Generator(seed)
    launch = generator.launch()
    yield from launch.outcomes(generator.expected, targets, begin)


def prepare():
    """What need not happen in each process."""
    import torch  # noqa: F401


def script(seed, target):
    """What shows the failure of a kernel."""
    return f"# python tests/fuzz/windows.py --explain {seed} --targets {target}\n{Generator(seed).launch().source}"


if __name__ == "__main__":
    explain(outcomes, TARGETS, __doc__)
