"""Random loops over tiles, compared with NumPy: `python tests/fuzz/campaign.py loops` runs many.

A loop loads tiles of a few shapes in several ways (`loop_memory.py`), combines them by products, reductions, scans,
gathers, histograms, elementwise and by turning them, rearranges them (`loop_tiles.py`), stores, and carries what it
likes: what has to be pipelined, fused and laid out together. All numbers are whole and small, so every order of adding
gives the same. `--explain SEED` shows the smallest part of one that is wrong.
"""

import sys
from math import prod
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import PADDINGS  # noqa: E402
from launches import Launch, explain, fuzzer, indented  # noqa: E402
from loop_memory import Tile, index  # noqa: E402
from loop_tiles import HELPERS as OTHER_HELPERS  # noqa: E402
from loop_tiles import Tiles  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
DTYPES = "float16", "float16", "bfloat16", "float32", "int8", "float8e4nv", "float8e5"
LONGEST_SCAN, LONGEST_GATHER = 2048, 4096  # elements, for the simulator's sake

HELPERS = """
@triton.jit
def clamp(x):
    return tl.minimum(tl.maximum(x, -2), 2)

"""


class Generator(Tiles):
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
        self.moves_much = self.chance(0.35)
        self.is_plain = self.chance(0.25)  # products that stay under way, by warpgroups
        if self.is_plain:
            self.extents |= {"M": self.pick(64, 128), "N": self.pick(32, 64, 128), "K": self.pick(32, 64)}
            self.warps = self.pick(4, 4, 8)
        elif self.chance(0.08):  # more sums than registers
            self.extents |= {"M": 128, "N": self.pick(64, 128)}
            self.warps = self.pick(1, 1, 2)
        self.pieces = self.count + 2  # of an array, for each program
        self.arrays, self.tiles, self.carried, self.names = {}, [], [], 0
        self.before, self.inside, self.tail, self.stored = [], [], [], []

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

    def gather(self):
        """Along one axis, whose extent may become another."""
        x = self.find(lambda x: x.axes and self.elements(x.axes) <= LONGEST_GATHER)
        if x:
            axis = int(self.random.integers(len(x.axes)))
            axes = x.axes[:axis] + (self.pick("M", "N", "K") if self.chance(0.3) else x.axes[axis]) + x.axes[axis + 1 :]
            places = " + ".join(f"{index(axes, k)} * {self.pick(1, 3)}" for k in range(len(axes)))
            if len(set(axes)) == len(axes) and self.elements(axes) <= LONGEST_GATHER:
                self.add(axes, f"tl.gather({self.as_sum(x)}, ({places} + i) % {x.axes[axis]}, {axis})")

    def histogram(self):
        x, bins = self.find(lambda x: x.axes), self.pick("M", "N", "K")
        if x and self.extents[bins].bit_count() == 1:
            counts = f"tl.histogram(tl.cast({self.as_sum(x)}, tl.int32) & ({bins} - 1), {bins})"
            self.add(bins, f"tl.cast({counts} % 3, tl.{self.sum})")

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

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def moving(self):
        pairs = self.swap_neighbours, self.choose_of_two, self.pair, self.pair
        return self.sort, self.place_of_extreme, self.deal, self.call, self.barrier, *pairs

    def step(self):
        steps = [self.load_some, self.combine, self.where, self.power, self.reduce, self.scan, self.transpose]
        rare = self.pick(self.gather, self.histogram, self.atomic)
        if self.moves_much or self.chance(0.05):
            rare = self.pick(*self.moving(), rare)
            steps += [self.pick(*self.moving())] * 4 * self.moves_much
        self.pick(*steps, self.load_some, self.combine, *[self.product] * 5, rare)()

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
        if self.chance(0.2):
            self.load_stored()
        for _ in range(self.random.integers(0, 4) if self.is_plain else self.random.integers(2, 12)):
            self.sometimes() if self.chance(0.12) else self.step()
        changing = self.tiles[constant:]
        for _ in range(self.random.integers(1, 4)):
            self.keep(self.pick(*changing))
        if self.chance(0.25):
            self.store(self.pick(*changing))
        self.store_again()
        if self.chance(0.1):
            self.inside += ["if i >= limit:", "    break"]

    def loop(self):
        """The lines of the loop, in a loop of two where no pointer is carried out of its array."""
        body = [*self.inside, *self.tail]
        if self.chance(0.1):
            return ["i = 0", "while i < n:", *indented([*body, "i += 1"])]
        ranges = "range(n)", "tl.range(0, n)", f"tl.range(0, n, num_stages={self.stages})", "range(0, n, 1)"
        lines = [f"for i in {self.pick(*ranges)}:", *indented(body)]
        if self.chance(0.2) and not any("at_" in line for line in self.tail):
            return ["for j in range(2):", *indented(lines)]
        return lines

    def source(self):
        self.body()
        loop = self.loop()
        lines = ["pid = tl.program_id(0)", *self.before, *loop]
        if self.chance(0.15):  # once more from the first piece, into the same sums
            lines += [*(line for line in self.before if line.startswith(("at_", "next_"))), *loop]
        if self.chance(0.15):
            lines[1:1] = [f"if n == {self.pick(0, 1)} or pid == {self.pick(1, 2)}:", "    return"]
        for tile in self.carried:
            count = self.elements(tile.axes)
            array = self.output(self.grid * count)
            lines.append(f"tl.store({array} + pid * {count} + {self.offsets(tile.axes)}, {tile.name})")
        extents = ", ".join(f"{name}: tl.constexpr" for name in self.extents)
        head = f"@triton.jit\ndef kernel({', '.join(self.arrays)}, n, limit, {extents}):\n"
        return HELPERS + OTHER_HELPERS + head + "\n".join(indented(lines)) + "\n"

    def launch(self):
        source = self.source()
        arguments = [self.count, int(self.random.integers(0, 70)), *self.extents.values()]
        options = {"num_warps": self.warps, "num_stages": self.stages}
        return Launch(source, self.arrays, arguments, self.grid, options, self.pick(None, *PADDINGS))


outcomes, prepare, script, explained = fuzzer(Generator, __file__)

if __name__ == "__main__":
    explain(explained, TARGETS, __doc__)
