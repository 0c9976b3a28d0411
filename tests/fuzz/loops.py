"""Random loops over tiles, compared with NumPy: `python tests/fuzz/campaign.py loops` runs many.

A loop loads tiles of a few shapes in several ways, combines them by products, reductions, scans, elementwise and by
turning them, and carries what it likes: what has to be pipelined, fused and laid out together. All numbers are whole
and small, so every order of adding gives the same. `--explain SEED` shows the smallest part of one that is wrong.
"""

import sys
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import numpy_language  # noqa: E402
import smallest  # noqa: E402
from harness import PADDINGS, Array, round_to  # noqa: E402
from launches import Chooser, Launch, explain, indented  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
DTYPES = "float16", "float16", "bfloat16", "float32", "int8", "float8e4nv", "float8e5"
OTHER_DTYPES = "int8", "float16", "float32", "int32", "uint8"  # of tiles that are converted
MATRICES = "MK", "KN", "MN", "MK", "KN", "NL", "KM", "NK", "NM"
VECTORS = "M", "N", "K", ""
LONGEST_SCAN = 2048  # elements, for the simulator's sake

HELPERS = """
@triton.jit
def clamp(x):
    return tl.minimum(tl.maximum(x, -2), 2)

"""


@dataclass
class Tile:
    name: str
    axes: str  # a letter each, which names its extent
    dtype: str  # the operands' or the sums'


def size(axes):
    return " * ".join(axes) or "1"


def index(axes, k):
    """Places along axis k, in the shape of a tile."""
    return f"tl.arange(0, {axes[k]})" + ("" if len(axes) == 1 else "[None, :]" if k else "[:, None]")


class Generator(Chooser):
    def __init__(self, seed):
        super().__init__(seed)
        self.extents = {
            "M": self.pick(16, 32, 64, 64, 128),
            "N": self.pick(16, 32, 64, 64, 128),
            "K": self.pick(16, 32, 32, 64),
            "L": self.pick(16, 32, 64),
        }
        if self.chance(0.15):
            self.extents[self.pick(*self.extents)] = self.pick(1, 2, 3, 4, 8, 24, 48)
        self.dtype = self.pick(*DTYPES)
        self.sum = "int32" if self.dtype == "int8" else "float32"
        self.warps, self.stages = self.pick(1, 2, 4, 4, 8, 16), self.pick(1, 2, 3, 3, 4, 5)
        self.grid, self.count = self.pick(1, 1, 2), int(self.random.integers(0, 7))  # of programs, of iterations
        self.is_plain = self.chance(0.25)  # products that stay under way, by warpgroups
        if self.is_plain:
            self.extents |= {"M": self.pick(64, 128), "N": self.pick(32, 64, 128), "K": self.pick(32, 64)}
            self.warps = self.pick(4, 4, 8)
        elif self.chance(0.08):  # more sums than registers
            self.extents |= {"M": 128, "N": self.pick(64, 128)}
            self.warps = self.pick(1, 1, 2)
        self.pieces = self.count + 2  # of an array, for each program
        self.arrays, self.tiles, self.carried, self.names = {}, [], [], 0
        self.before, self.inside, self.tail = [], [], []

    # ---- texts ------------------------------------------------------------------------------------------------------

    def new_name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def elements(self, axes):
        return prod(self.extents[axis] for axis in axes)

    def offsets(self, axes):
        """Of a tile that lies in memory with its last axis along, or now and then its first."""
        if len(axes) < 2:
            return index(axes, 0) if axes else "0"
        along = 0 if self.chance(0.4) else 1
        return f"{index(axes, along)} + {index(axes, 1 - along)} * {axes[along]}"

    def as_sum(self, tile):
        return tile.name if tile.dtype == self.sum else f"tl.cast({tile.name}, tl.{self.sum})"

    def as_operand(self, tile):
        return tile.name if tile.dtype == self.dtype else f"tl.cast(clamp({tile.name}), tl.{self.dtype})"

    def find(self, test=lambda tile: True):
        """A random tile that passes a test, or None; later ones are likelier."""
        found = [tile for tile in self.tiles if test(tile)]
        return found[max(self.random.integers(len(found), size=2))] if found else None

    def add(self, axes, text, dtype=None):
        """A new tile."""
        name = self.new_name("v")
        self.inside.append(f"{name} = {text}")
        self.tiles.append(Tile(name, axes, dtype or self.sum))

    # ---- loads ------------------------------------------------------------------------------------------------------

    def load_some(self):
        self.load(self.pick(*MATRICES, *VECTORS))

    def load(self, axes):
        """One piece after the other of a new array."""
        dtype = self.dtype if self.chance(0.8) else self.pick(*OTHER_DTYPES)
        array, first = self.new_name("p"), self.pick(0, 0, 0, 1, 2, 8)
        name, way = self.new_name("x"), self.pick("recomputed", "recomputed", "carried", "indirect", "ahead")
        unread = {"indirect": 0, "ahead": 1}.get(way, 2) * self.elements(axes)
        length = max(1, self.length(axes) + first - unread)
        self.arrays[array] = round_to(self.random.integers(0 if dtype == "uint8" else -2, 3, length), dtype)
        start = f"{array} + {first} + pid * ({self.pieces} * {size(axes)})"
        mask = self.mask(axes, way != "ahead") if axes and self.chance(0.4) else ""
        getattr(self, f"load_{way}")(name, start, f"({size(axes)})", self.offsets(axes), mask)
        if dtype == self.dtype:
            self.tiles.append(Tile(name, axes, dtype))
        if dtype != self.dtype or self.chance(0.25):
            self.add(axes, f"tl.cast({name}, tl.{self.sum})")

    def length(self, axes):
        return self.grid * self.pieces * self.elements(axes)

    def mask(self, axes, can_vary):
        axis = self.random.integers(len(axes))
        limit = self.random.integers(0, self.extents[axes[axis]] + 1)
        bound = self.pick(f"{limit}", f"limit - {self.pick(0, 3, 5)}", f"{limit} + i * 0" if can_vary else f"{limit}")
        return f", mask={index(axes, axis)} < {bound}, other={self.pick(0, 0, 0, 1)}"

    def load_recomputed(self, name, start, step, offsets, mask):
        self.inside.append(f"{name} = tl.load({start} + i * {step} + {offsets}{mask})")

    def load_carried(self, name, start, step, offsets, mask):
        self.before.append(f"at_{name} = {start} + {offsets}")
        self.inside.append(f"{name} = tl.load(at_{name}{mask})")
        self.tail.append(f"at_{name} += {step}")

    def load_indirect(self, name, start, step, offsets, mask):
        table = self.new_name("t")
        self.arrays[table] = Array(self.random.permutation(self.pieces).astype(np.int32), "int32")
        self.inside.append(f"{name} = tl.load({start} + tl.load({table} + i) * {step} + {offsets}{mask})")

    def load_ahead(self, name, start, step, offsets, mask):
        """An iteration before it is used."""
        self.before.append(f"next_{name} = tl.load({start} + {offsets}{mask})")
        self.inside.append(f"{name} = next_{name}")
        lines = self.pick(self.inside, self.tail)
        lines.append(f"next_{name} = tl.load({start} + (i + 1) * {step} + {offsets}{mask})")

    def load_once(self):
        """A tile that all iterations use."""
        axes, name = self.pick("MK", "MN", "KN"), self.new_name("x")
        self.arrays[f"p_{name}"] = round_to(self.random.integers(-2, 3, self.elements(axes)), self.dtype)
        self.before.append(f"{name} = tl.load(p_{name} + {self.offsets(axes)})")
        self.tiles.append(Tile(name, axes, self.dtype))

    # ---- other steps ------------------------------------------------------------------------------------------------

    def combine(self):
        x = self.find()
        y = self.find(lambda y: y.axes in (x.axes, "") or (len(y.axes) == 1 and len(x.axes) == 2 and y.axes in x.axes))
        if y:
            other = self.as_sum(y)
            if len(y.axes) == 1 and len(x.axes) == 2:
                other += "[None, :]" if x.axes.index(y.axes) else "[:, None]"
            self.add(x.axes, f"clamp({self.as_sum(x)} {self.pick('+', '-', '*')} {other})")

    def where(self):
        x = self.find(lambda x: x.axes)
        if x:
            place = index(x.axes, self.random.integers(len(x.axes)))
            test = f"{place} {self.pick('<', '>=', '!=')} {self.pick('i * 5', 'limit', '7')}"
            self.add(x.axes, f"tl.where({test}, {self.as_sum(x)}, {self.pick('0', '1', '-1')})")

    def power(self):
        """Powers of two of what rows have below their maxima."""
        x = self.find(lambda x: len(x.axes) == 2 and self.sum == "float32")
        if x:
            value = self.as_sum(x)
            self.add(x.axes, f"tl.floor(tl.exp2({value} - tl.max({value}, 1)[:, None] + 1.0))")

    def reduce(self):
        x = self.find(lambda x: x.axes)
        if x:
            axis = int(self.random.integers(len(x.axes)))
            function = self.pick("sum", "max", "min")
            self.add(x.axes[:axis] + x.axes[axis + 1 :], f"clamp(tl.{function}({self.as_sum(x)}, {axis}))")

    def scan(self):
        x = self.find(lambda x: x.axes and self.elements(x.axes) <= LONGEST_SCAN)
        if x:
            self.add(x.axes, f"clamp(tl.cumsum({self.as_sum(x)}, {self.random.integers(len(x.axes))}))")

    def transpose(self):
        x = self.find(lambda x: len(x.axes) == 2)
        if x:
            self.add(x.axes[::-1], f"tl.trans({x.name})", x.dtype)

    def product(self):
        """A product: another tile, or added to sums that the loop carries."""
        matrices = [x for x in self.tiles if len(x.axes) == 2]
        pairs = [(x, y) for x in matrices for y in matrices if x.axes[1] == y.axes[0] and x is not y]
        loaded = [pair for pair in pairs if all(x.dtype == self.dtype for x in pair)]
        if not pairs:
            return
        x, y = self.pick(*(loaded if loaded and self.chance(0.5) else pairs))
        axes, operands = x.axes[0] + y.axes[1], f"{self.as_operand(x)}, {self.as_operand(y)}"
        options = f"input_precision='{self.pick('tf32', 'tf32', 'ieee')}', out_dtype=tl.{self.sum}"
        if self.chance(0.1 if self.is_plain else 0.4):
            self.add(axes, f"clamp(tl.dot({operands}, {options}))")
            return
        sums = self.sums(axes)
        added = self.chance(0.3)
        text = f"{sums} + tl.dot({operands}, {options})" if added else f"tl.dot({operands}, {sums}, {options})"
        self.inside.append(f"{sums} = {text}")
        if self.chance(0.3):
            self.add(axes, f"clamp({sums})")

    def sums(self, axes):
        """The name of sums of some axes that the loop carries."""
        known = [tile.name for tile in self.carried if tile.axes == axes and tile.name.startswith("acc")]
        return self.pick(*known) if known and self.chance(0.6) else self.carry("acc", axes)

    def carry(self, name, axes):
        name = self.new_name(name)
        shape = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
        self.before.append(f"{name} = tl.full({shape}, 0, tl.{self.sum})")
        self.carried.append(Tile(name, axes, self.sum))
        return name

    def keep(self, tile):
        """Makes something that the loop carries of a tile."""
        name, value = self.carry("c", tile.axes), self.as_sum(tile)
        update = self.pick(f"{name} + {value}", f"tl.maximum({name}, {value})", f"{name} - {value} * 2", value)
        self.inside.append(f"{name} = {update}")

    def store(self, tile):
        """In every iteration."""
        array = self.output(self.length(tile.axes))
        place = f"{array} + (pid * {self.pieces} + i) * ({size(tile.axes)}) + {self.offsets(tile.axes)}"
        self.inside.append(f"tl.store({place}, {self.as_sum(tile)})")

    def output(self, length):
        name = self.new_name("o")
        self.arrays[name] = round_to(np.zeros(length), self.sum)
        return name

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def step(self):
        steps = [self.load_some, self.combine, self.where, self.power, self.reduce, self.scan, self.transpose]
        self.pick(*steps, self.load_some, self.combine, *[self.product] * 5)()

    def sometimes(self):
        """A step in every other iteration, whose result is kept."""
        known, lines, self.inside = list(self.tiles), self.inside, []
        self.step()
        if len(self.tiles) > len(known):
            self.keep(self.tiles[-1])
        if self.inside:
            lines += [f"if i % 2 == {self.pick(0, 1)}:", *indented(self.inside)]
        self.tiles, self.inside = known, lines

    def body(self):
        if self.chance(0.5):
            self.load_once()
        constant = len(self.tiles)
        self.load("MK")
        self.load("KN")
        if self.is_plain:
            self.product()
        for _ in range(self.random.integers(0, 4) if self.is_plain else self.random.integers(2, 12)):
            self.sometimes() if self.chance(0.12) else self.step()
        changing = self.tiles[constant:]
        for _ in range(self.random.integers(1, 4)):
            self.keep(self.pick(*changing))
        if self.chance(0.15):
            self.store(self.pick(*changing))
        if self.chance(0.1):
            self.inside += ["if i >= limit:", "    break"]

    def loop(self):
        """The lines of the loop, in a loop of two where no pointer is carried out of its array."""
        body = [*self.inside, *self.tail]
        if self.chance(0.1):
            return ["i = 0", "while i < n:", *indented([*body, "i += 1"])]
        ranges = "range(n)", "tl.range(0, n)", f"tl.range(0, n, num_stages={self.stages})", "range(0, n, 1)"
        lines = [f"for i in {self.pick(*ranges)}:", *indented(body)]
        if self.chance(0.2) and not any(line.startswith("at_") for line in self.tail):
            return ["for j in range(2):", *indented(lines)]
        return lines

    def source(self):
        self.body()
        lines = ["pid = tl.program_id(0)", *self.before, *self.loop()]
        for tile in self.carried:
            count = self.elements(tile.axes)
            array = self.output(self.grid * count)
            lines.append(f"tl.store({array} + pid * {count} + {self.offsets(tile.axes)}, {tile.name})")
        extents = ", ".join(f"{name}: tl.constexpr" for name in self.extents)
        head = f"@triton.jit\ndef kernel({', '.join(self.arrays)}, n, limit, {extents}):\n"
        return HELPERS + head + "\n".join(indented(lines)) + "\n"

    def launch(self):
        source = self.source()
        arguments = [self.count, int(self.random.integers(0, 70)), *self.extents.values()]
        options = {"num_warps": self.warps, "num_stages": self.stages}
        return Launch(source, self.arrays, arguments, self.grid, options, self.pick(None, *PADDINGS))


def outcomes(seed, targets, begin):
    """Yields whether each target gives what NumPy does, or what differs."""
    begin(targets[0])
    yield from numpy_language.outcomes(Generator(seed).launch(), targets, begin)


def prepare():
    """What need not happen in each process."""
    import torch  # noqa: F401


def script(seed, target):
    """What shows the failure of a kernel."""
    return f"# python tests/fuzz/loops.py --explain {seed} --targets {target}\n{Generator(seed).source()}"


def explained(seed, targets, begin):
    """The same, of the smallest part that is wrong."""
    yield from smallest.outcomes(Generator(seed).launch(), targets, begin)


if __name__ == "__main__":
    explain(explained, TARGETS, __doc__)
