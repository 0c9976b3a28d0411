"""Random loops of products, on tensor cores and without: `python tests/fuzz/campaign.py products` runs many.

Operands are small whole numbers, so every order of adding gives the same: the simulator's results, for GPUs with wgmma
and with mma.sync, have to be those of the CPU, bit by bit. `--explain N` prints what is wrong with one, and its kernel.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import DTYPES, PADDINGS, Array, round_to  # noqa: E402
from launches import Chooser, Launch, explain, indented  # noqa: E402
from loop_memory import LEAST_ROW  # noqa: E402

TARGETS = "sim:90", "sim:80"
SUMS = {"int8": "int32", "float64": "float64"}
LOADS = [
    "recomputed",
    "carried",
    "block pointer",
    "descriptor",
    "indirect",
    "stored",
    "in branches",
    "lines of branches",
]
FORMATS = {"float16": "fp16", "bfloat16": "bf16", "float8e5": "e5m2", "float8e4nv": "e4m3"}


@dataclass
class Operand:
    """A matrix in memory of `rows` x `columns`, of which the loop takes pieces along `along`."""

    name: str
    rows: int
    columns: int
    along: int
    dtype: str
    how: str
    is_turned: bool  # it lies in memory, and is loaded, as its transposed matrix
    front: int = 0  # by block pointer: times `size` elements lie in front of it; by descriptor: matrices besides


class Generator(Chooser):
    def __init__(self, seed):
        super().__init__(seed)
        self.m, self.n = self.pick(16, 32, 64, 64, 128), self.pick(8, 16, 32, 64, 64, 128)
        self.k = self.pick(16, 32, 32, 64)
        self.size = int(self.random.integers(0, 5 * self.k + 1))  # of all K
        self.dtype = self.pick("float16", "float16", "bfloat16", "int8", "float32", "float8e5", "float8e4nv", "float64")
        self.in_halves = self.dtype == "float16" and seed % 4 == 0
        self.sum = "float16" if self.in_halves else SUMS.get(self.dtype, "float32")
        self.warps, self.stages = self.pick(1, 2, 4, 4, 8), self.pick(1, 2, 3, 4, 5, 6)
        if self.dtype == "float32" and self.chance(0.2):  # so many sums that one program has a multiprocessor
            self.m, self.n = self.pick((256, 128), (128, 256))
            self.warps = 8
        elif self.dtype != "float64" and self.is_large():  # more of them than a thread has registers, or nearly
            self.m, self.n = self.pick((256, 256), (256, 128), (128, 256), (512, 64), (64, 512))
            self.warps = self.pick(8, 16, 16, 32)
        self.parts = self.pick(1, 1, 2, 3)  # iterations of a loop around
        self.before, self.inside, self.arrays = [], [], {}
        self.loads = 0

    def array(self, name, shape, dtype):
        values = self.random.integers(-1, 2, shape) if self.in_halves else self.random.integers(-3, 4, shape)
        self.arrays[name] = round_to(values, dtype)
        return name

    # ---- operands ---------------------------------------------------------------------------------------------------

    def operand(self, rows, columns, along):
        """Lines that load a piece of a new matrix; the name of the piece."""
        self.loads += 1
        name, dtype = f"p{self.loads}", self.dtype
        if dtype in ("float16", "bfloat16", "float32") and self.chance(0.25):
            dtype = self.pick("int8", "float16", "float8e5")
        o = Operand(name, rows, columns, along, dtype, self.pick(*LOADS), self.chance(0.3))
        if o.how == "descriptor" and (rows if along else columns) * DTYPES[dtype].bits < 8 * LEAST_ROW:
            o.how = "block pointer"
        kept = rows if along else columns
        if o.how == "block pointer":
            o.front = self.pick(0, 8, 16, 3)
        elif o.how == "descriptor":
            o.front = self.pick(0, 0, 1, 2)
        self.array(
            name, (max(1, self.size) * (kept * (1 + o.front) if o.how == "descriptor" else o.front + kept),), dtype
        )
        getattr(self, "load_" + o.how.replace(" ", "_"))(o)
        if o.is_turned:
            self.inside.append(f"x{name} = tl.trans(x{name})")
        self.prepare(o)
        return f"x{name}"

    def index(self, o):
        """The piece's offsets in memory at depth 0, its depth as a tile, and how far an element of depth is."""
        kept, depth = (o.rows, "k") if o.along else (o.columns, "k")
        along = o.along ^ o.is_turned  # as it is loaded
        i, j = (f"tl.arange(0, {kept})[:, None]", f"{depth}[None, :]")
        if not along:
            i, j = f"{depth}[:, None]", f"tl.arange(0, {kept})[None, :]"
        apart = "1" if self.lies_along(o) else str(kept)
        other = "size" if self.lies_along(o) else "1"
        deep, flat = (j, i) if along else (i, j)
        return f"{flat} * {other}", deep, apart

    def lies_along(self, o):
        return (len(o.name) + o.rows + o.is_turned) % 2 == 0

    def masked(self, o, deep, start):
        """A mask that keeps to the matrix; what takes the place of others is zero for one operand of each product."""
        other = 0 if not o.along or self.chance(0.5) else self.pick(1, 2)
        return f"({start} + {deep} < size), other={other}"

    def load_recomputed(self, o):
        kept, deep, apart = self.index(o)
        self.inside.append(
            f"x{o.name} = tl.load({o.name} + {kept} + (start + {deep}) * {apart}, {self.masked(o, deep, 'start')})"
        )

    def load_carried(self, o):
        kept, deep, apart = self.index(o)
        self.before.append(f"at{o.name} = {o.name} + {kept} + {deep} * {apart}")
        self.inside.append(f"x{o.name} = tl.load(at{o.name}, {self.masked(o, deep, 'start')})")
        self.inside.append(f"at{o.name} += {self.k} * {apart}")

    def load_block_pointer(self, o):
        kept, deep = o.rows if o.along else o.columns, o.along ^ o.is_turned
        shape, block = [str(kept), "size"], [str(kept), str(self.k)]
        strides, advance = (["size", "1"] if self.lies_along(o) else ["1", str(kept)]), ["0", str(self.k)]
        if not deep:
            shape, block, strides, advance = shape[::-1], block[::-1], strides[::-1], advance[::-1]
        both = lambda x: f"({x[0]}, {x[1]})"  # noqa: E731
        base = f"{o.name} + {o.front} * size" if o.front else o.name
        self.before.append(
            f"at{o.name} = tl.make_block_ptr({base}, {both(shape)}, {both(strides)}, (0, 0), {both(block)}, (1, 0))"
        )
        checked = self.pick("(0, 1)", f"({int(deep)},)", "()" if self.size % self.k == 0 else "(0, 1)")
        padding = ', padding_option="zero"' if checked != "()" else ""
        self.inside.append(f"x{o.name} = tl.load(at{o.name}, boundary_check={checked}{padding})")
        self.inside.append(f"at{o.name} = tl.advance(at{o.name}, {both(advance)})")

    def load_descriptor(self, o):
        """Rows of the array lie along the depth."""
        kept = o.rows if o.along else o.columns
        array = f"{o.name}, (size, {kept}), ({kept}, 1), ({self.k}, {kept})"
        loaded = f"at{o.name}.load((start, 0))"
        if o.front:  # of so many matrices one, or none, is taken
            array = f"{o.name}, ({o.front + 1}, size, {kept}), (size * {kept}, {kept}, 1), (1, {self.k}, {kept})"
            which = int(self.random.integers(-1, o.front + 2))
            loaded = f"at{o.name}.load(({which}, start, 0)).reshape({self.k}, {kept})"
        self.before.append(f"at{o.name} = tl.make_tensor_descriptor({array})")
        self.inside.append(f"x{o.name} = {f'tl.trans({loaded})' if o.along ^ o.is_turned else loaded}")

    def dependent(self, y):
        """Another operand like `y`, of which only some is loaded: it depends on what was loaded of that one."""
        name = self.array("pd", (max(1, self.size) * self.n,), self.dtype)
        row = "(start + k[:, None])"
        mask = f"({row} < size) & ({y}.to(tl.float32) > 0)"
        self.inside.append(f"x{name} = tl.load({name} + {row} * {self.n} + j, {mask}, other=0)")
        return f"x{name}"

    def load_indirect(self, o):
        """The depths are looked up."""
        kept, deep, apart = self.index(o)
        self.arrays["table"] = Array(self.random.permutation(max(1, self.size)).astype(np.int32), "int32")
        self.inside.append(f"d{o.name} = tl.load(table + start + {deep}, start + {deep} < size, other=0)")
        self.inside.append(
            f"x{o.name} = tl.load({o.name} + {kept} + d{o.name} * {apart}, {self.masked(o, deep, 'start')})"
        )

    def load_in_branches(self, o):
        """Branches say where it begins."""
        kept, deep, apart = self.index(o)
        place = f"from{o.name}"
        self.before.append(f"{place} = 0")
        self.inside += [f"if start // {self.k} % 2 == 0:", f"    {place} = start"]
        self.inside += ["else:", f"    {place} += {self.k}"]
        self.inside.append(
            f"x{o.name} = tl.load({o.name} + {kept} + ({place} + {deep}) * {apart}, {self.masked(o, deep, place)})"
        )

    def load_lines_of_branches(self, o):
        """Branches say which rows or columns they are."""
        kept, deep, apart = self.index(o)
        lines, all_lines = f"lines{o.name}", f"tl.arange(0, {o.rows if o.along else o.columns})"
        self.before.append(f"{lines} = {all_lines}")
        self.inside.append(f"if start // {self.k} % 2 == {self.pick(0, 1)}:")
        self.inside.append(f"    {lines} = ({all_lines} + start // {self.k}) % {o.rows if o.along else o.columns}")
        place = f"{kept.replace(all_lines, lines)} + (start + {deep}) * {apart}"
        self.inside.append(f"x{o.name} = tl.load({o.name} + {place}, {self.masked(o, deep, 'start')})")

    def load_stored(self, o):
        """Of what the iteration before stored through the same parameter: the load cannot move."""
        kept, deep, apart = self.index(o)
        self.load_recomputed(o)
        next_one = f"start + {self.k} + {deep}"
        place = f"{o.name} + {kept} + ({next_one}) * {apart}"
        change = f"x{o.name}" if o.dtype.startswith("float8") else f"(1 - x{o.name}).to({o.name}.dtype.element_ty)"
        self.inside.append(f"tl.store({place}, {change}, {next_one} < size)")

    def prepare(self, o):
        x = f"x{o.name}"
        if o.dtype != self.dtype:
            self.inside.append(f"{x} = {x}.to(tl.{self.dtype})")
        if not self.dtype.startswith("float8") and self.chance(0.3):
            zero = f"tl.zeros_like({x})"
            self.inside.append(f"{x} = " + self.pick(f"-{x}", f"{x} + {x}", f"tl.where({x} > 0, {x}, {zero})"))

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def dot(self, x, y, acc=None):
        precision = f'input_precision="{self.pick("tf32", "tf32", "ieee")}"'
        if acc and self.chance(0.7):
            return f"{acc} = tl.dot({x}, {y}, {acc}, {precision}, out_dtype=tl.{self.sum})"
        return f"{acc} += tl.dot({x}, {y}, {precision}, out_dtype=tl.{self.sum})"

    def scaled(self, x, y):
        """A product of operands with scales, if their format has any; these are powers of two around 1."""
        scales = ["None", "None"]
        if self.dtype.startswith("float8") and self.k >= 32:
            groups = self.k // 32
            for number, rows in enumerate([self.m, self.n]):
                name = f"s{number}"
                self.arrays[name] = Array(self.random.integers(126, 129, (rows, groups)).astype(np.uint8), "uint8")
                place = f"tl.arange(0, {rows})[:, None] * {groups} + tl.arange(0, {groups})[None, :]"
                self.inside.append(f"x{name} = tl.load({name} + {place})")
                scales[number] = f"x{name}"
        kind = FORMATS[self.dtype]
        return f'acc = tl.dot_scaled({x}, {scales[0]}, "{kind}", {y}, {scales[1]}, "{kind}", acc)'

    def clamped(self, x):
        return f"tl.minimum(tl.maximum({x}, -2), 2).to(tl.{self.dtype})"

    def products(self):
        x, y = self.operand(self.m, self.k, 1), self.operand(self.k, self.n, 0)
        lines = [self.dot(x, y, "acc")]
        kind = self.pick("one", "one", "two", "two", "chained", "sometimes", "begun again", "rescaled", "scaled")
        if kind == "scaled" and self.dtype in FORMATS and not self.in_halves:
            lines = [self.scaled(x, y)]
        elif kind == "two":
            z = self.dependent(y) if self.chance(0.3) else self.operand(self.k, self.n, 0)
            lines.append(self.dot(x, z, self.pick("acc", "acc2")))
        elif kind == "chained":
            self.arrays["w"] = round_to(self.random.integers(-2, 3, (self.n, self.n)), self.dtype)
            self.before.append(f"w_tile = tl.load(w + tl.arange(0, {self.n})[:, None] * {self.n} + j)")
            if self.chance(0.5):
                self.inside.append(self.before.pop())
            lines = [f"part = tl.dot({x}, {y}, out_dtype=tl.{self.sum})"]
            lines.append(self.dot(self.clamped("part"), "w_tile", "acc"))
        elif kind == "sometimes":
            lines = [f"if start // {self.k} % 2 == {self.pick(0, 1)}:", "    " + lines[0]]
        elif kind == "begun again":
            every = self.pick(2, 3)
            lines += [f"if start // {self.k} % {every} == {every - 1}:"]
            lines += ["    acc2 += acc", f"    acc = {self.pick('tl.zeros_like(acc)', 'acc * 0', '-acc')}"]
        elif kind == "rescaled":
            ways = "tl.store(side + i * N + j, acc)", "tl.atomic_add(side + i * N + j, acc)"
            lines.append(self.pick("acc = -acc", "acc = acc + 1", "acc2 += acc", *ways))
        return lines

    def picked(self, lines):
        """In a branch: a table says which steps there are; pointers move on all the same."""
        self.arrays["steps"] = Array(self.random.integers(0, 2, 6).astype(np.int32), "int32")
        moves = [line for line in self.inside if line.startswith("at")]
        taken = [line for line in self.inside if not line.startswith("at")] + lines
        condition = self.pick("tl.load(steps + start // {k}) != 0", "start // {k} % 2 == 1", "start > {k}")
        branch = [f"if {condition.format(k=self.k)}:", *indented(taken)]
        if self.chance(0.3):
            branch += ["else:", *indented(taken)]
        return branch + moves

    def loop(self, lines):
        """Over the steps; or the loads are those of the next step, and the last product stands behind the loop."""
        first = "0"
        body = [*self.inside, *lines]
        if self.chance(0.15):
            first, body = f"{self.k}", [*lines, *self.inside]
        elif self.chance(0.2):
            body = self.picked(lines)
        loop = [f"for start in tl.range({first}, size, {self.k}, num_stages={self.stages}):"]
        if self.chance(0.2):
            loop = [f"for start in range({first}, size, {self.k}):"]
        elif self.chance(0.15):
            loop = [f"start = {first}", "while start < size:"]
            body.append(f"start += {self.k}")
        if first != "0":
            return ["start = 0", *self.inside, *loop, *indented(body), *lines]
        return [*loop, *indented(body)]

    def source(self):
        lines = self.products()
        body = [*self.before, *self.loop(lines)]
        if self.parts > 1:
            body = [f"for part_number in range({self.parts}):", *indented([*body, "acc2 += acc"])]
        if self.n >= 16 and self.chance(0.2):
            self.arrays["w"] = round_to(self.random.integers(-2, 3, (self.n, self.n)), self.dtype)
            body.append(f"last = tl.load(w + tl.arange(0, {self.n})[:, None] * {self.n} + j)")
            body.append(f"acc = tl.dot({self.clamped('acc')}, last, out_dtype=tl.{self.sum})")
        lines = [
            f"N: tl.constexpr = {self.n}",
            f"i, j = tl.arange(0, {self.m})[:, None], tl.arange(0, N)[None, :]",
            f"k = tl.arange(0, {self.k})",
            f"acc = tl.{self.pick('zeros((%d, N), tl.%s)', 'full((%d, N), 2, tl.%s)') % (self.m, self.sum)}",
            f"acc2 = tl.zeros(({self.m}, N), tl.{self.sum})",
            *body,
            "tl.store(out + i * N + j, acc + acc2)",
        ]
        text = "".join(f"    {line}\n" for line in lines)
        return f"@triton.jit\ndef kernel({', '.join(self.arrays)}, side, out, size):\n{text}"

    def launch(self):
        source = self.source()
        blank = Array(np.zeros((self.m, self.n), DTYPES[self.sum].values), self.sum)
        arrays = {**self.arrays, "side": blank, "out": blank}
        return Launch(source, arrays, [self.size], 1, {"num_warps": self.warps}, self.pick(None, *PADDINGS))


def outcomes(seed, targets, begin):
    """Yields whether each target gives what the CPU does, or what differs."""
    begin(targets[0])
    launch = Generator(seed).launch()
    try:
        expected = launch.results("cpu")
    except Exception as error:
        yield launch.raised(error, "cpu: ")
        return
    yield from launch.outcomes(expected, targets, begin)


def prepare():
    """What need not happen in each process."""
    import torch  # noqa: F401


def script(seed, target):
    """What shows the failure of a kernel."""
    return f"# python tests/fuzz/products.py --explain {seed} --targets {target}\n{Generator(seed).source()}"


if __name__ == "__main__":
    explain(outcomes, TARGETS, __doc__)
