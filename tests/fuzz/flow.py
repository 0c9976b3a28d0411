"""Random control flow around tiles, compared with Python: `python tests/fuzz/campaign.py flow` runs many.

Branches, loops, early exits and calls assign numbers, vectors and matrices of int32, in place and to each other. The
text runs as it is on NumPy too. `--explain SEED` shows the smallest part of one that is wrong.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import PADDINGS, Array  # noqa: E402
from launches import Chooser, Launch, explain, fuzzer, indented  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
GRID = 3
COMPARISONS = "<", "<=", "==", "!=", ">", ">="
ARITHMETIC = "+", "-", "*", "&", "|", "^"

HELPERS = """
@triton.jit
def whole(x):
    return tl.cast(x, tl.int32)

@triton.jit
def dealt(t):
    return tl.reshape(tl.trans(tl.reshape(t, (4, t.shape[0] // 4))), (t.shape[0],))

@triton.jit
def with_row_sums(m):
    return m + tl.sum(m, 1)[:, None]

@triton.jit
def product(a, b):
    return tl.dot(tl.cast(a & 7, tl.int8), tl.cast(b & 7, tl.int8))

@triton.jit
def product_onto(a, b, c):
    return tl.dot(tl.cast(a & 7, tl.int8), tl.cast(b & 7, tl.int8), c)

"""


class Generator(Chooser):
    def __init__(self, seed):
        super().__init__(seed)
        self.width, self.warps = self.pick(1, 4, 32, 48, 128), self.pick(1, 2, 4)
        self.with_matrices = self.chance(0.5)
        self.size = 16 + 3 * self.width + (3 * 256 if self.with_matrices else 0)  # of what a program writes
        self.functions, self.loops = [], 0
        self.numbers, self.assigned, self.vectors = ["a", "b", "c", "d"], ["a", "b", "c", "d"], ["x", "y", "z"]
        self.matrices = []  # functions have none

    # ---- expressions ------------------------------------------------------------------------------------------------

    def number(self, depth=0):
        """Numbers of Python do not wrap, so each result is made a number of the kernel."""
        kind = self.pick("name", "name", "constant", "result", "result", "loaded")
        if kind == "constant":
            return str(self.pick(-7, -3, -1, 0, 1, 2, 3, 5, 8, 100))
        if kind == "name" or depth == 2:
            return self.pick(*self.numbers)
        if kind == "loaded":
            return f"tl.load(src + ({self.number(depth + 1)} & 15))"
        return f"whole({self.number(depth + 1)} {self.pick(*ARITHMETIC)} {self.number(depth + 1)})"

    def condition(self, depth=0):
        kind = self.pick("compared", "compared", "compared", "and", "or", "not", "sum")
        if kind == "compared" or depth == 2:
            return f"{self.number(1)} {self.pick(*COMPARISONS)} {self.number(1)}"
        if kind == "not":
            return f"not ({self.condition(depth + 1)})"
        if kind == "sum":
            return f"tl.sum({self.vector(1)}) {self.pick('<', '>')} {self.number(1)}"
        return f"({self.condition(depth + 1)}) {kind} ({self.condition(depth + 1)})"

    def vector(self, depth=0):
        kind = self.pick("name", "name", "result", "result", "number", "where", "scan", "flip", "dealt", "summed")
        inner = lambda: self.vector(depth + 1)  # noqa: E731
        if kind == "name" or depth == 2 or (kind == "dealt" and self.width % 4):
            return self.pick(*self.vectors)
        if kind == "result":
            return f"({inner()} {self.pick(*ARITHMETIC)} {inner()})"
        if kind == "number":
            return f"({inner()} {self.pick('+', '-', '*', '^')} {self.number(1)})"
        if kind == "where":
            return f"tl.where({inner()} {self.pick('<', '>=')} {self.number(1)}, {inner()}, {inner()})"
        if kind == "summed":
            name = self.pick(*self.vectors)
            return f"({name} + tl.sum({name}))"
        return {"scan": f"tl.cumsum({inner()}, 0)", "flip": f"tl.flip({inner()})"}.get(kind, f"dealt({inner()})")

    def matrix(self, depth=0):
        kinds = "name", "name", "result", "number", "product", "product", "onto", "trans", "where", "rows", "negative"
        kind = self.pick(*kinds)
        name, inner = lambda: self.pick(*self.matrices), lambda: self.matrix(depth + 1)
        if kind == "name" or depth == 2:
            return name()
        if kind == "result":
            return f"({inner()} {self.pick('+', '-', '^')} {inner()})"
        if kind == "number":
            return f"({inner()} {self.pick('+', '*')} {self.number(2)})"
        if kind == "product":
            return f"product({inner()}, {inner()})"
        if kind == "onto":
            return f"product_onto({name()}, {name()}, {inner()})"
        if kind == "where":
            return f"tl.where({name()} < {self.number(2)}, {inner()}, {name()})"
        return {"trans": f"tl.trans({inner()})", "rows": f"with_row_sums({inner()})"}.get(kind, f"(-{inner()})")

    # ---- statements: each gives its lines ---------------------------------------------------------------------------

    def block(self, depth, in_loop):
        kinds = [self.assign_number] * 2 + [self.assign_vector] * 3 + [self.call, self.store, self.swap]
        kinds += [self.assign_matrix] * 3 if self.matrices else []
        inner = [self.branch, self.branch, self.for_loop, self.while_loop] if depth < 3 else []
        lines = []
        for _ in range(self.random.integers(1, 4)):
            if self.chance(0.1):
                lines += self.leave(in_loop)
            elif inner and self.chance(0.35):
                lines += self.pick(*inner)(depth + 1, in_loop)
            else:
                lines += self.pick(*kinds)()
        return lines or ["pass"]

    def inside(self, depth, in_loop):
        return indented(self.block(depth, in_loop))

    def assign_number(self):
        return [f"{self.pick(*self.assigned)} = {self.number()}"]

    def assign_vector(self):
        return [f"{self.pick(*self.vectors)} = {self.vector()}"]

    def assign_matrix(self):
        return [f"{self.pick(*self.matrices)} = {self.matrix()}"]

    def swap(self):
        names = self.pick(self.vectors, self.matrices) if self.matrices else self.vectors
        a, b = self.random.permutation(names)[:2]
        return [f"{a}, {b} = {b}, {a}"]

    def store(self):
        return [f"tl.store(out + ({self.number(1)} & 15), {self.number(1)})"]

    def call(self):
        if not self.functions:
            return []
        results = f"{self.pick(*self.vectors)}, {self.pick(*self.assigned)}"
        return [f"{results} = {self.pick(*self.functions)}({self.number(1)}, {self.pick(*self.vectors)}, src, out)"]

    def branch(self, depth, in_loop):
        lines = [f"if {self.condition()}:", *self.inside(depth, in_loop)]
        if self.chance(0.3):
            lines += [f"elif {self.condition()}:", *self.inside(depth, in_loop)]
        if self.chance(0.5):
            lines += ["else:", *self.inside(depth, in_loop)]
        return lines

    def for_loop(self, depth, in_loop):
        name, outside = self.loop_name("i"), self.numbers
        start = self.pick("0", "0", "1", f"{self.number(1)} & 3")
        bounds = f"{start}, {self.pick('3', '2', f'{self.number(1)} & 7', '0')}{self.pick('', ', 2')}"
        self.numbers = [*outside, name]
        lines = [f"for {name} in range({bounds}):", *self.inside(depth, True)]
        self.numbers = outside
        return lines

    def while_loop(self, depth, in_loop):
        name = self.loop_name("w")
        test = f"{name} < {self.pick(2, 4)} and ({self.condition(1)})" if self.chance(0.6) else f"{name} < 3"
        return [f"{name} = 0", f"while {test}:", f"    {name} += 1", *self.inside(depth, True)]

    def loop_name(self, letter):
        self.loops += 1
        return f"{letter}{self.loops}"

    def leave(self, in_loop):
        way = self.pick("break", "continue") if in_loop and self.chance(0.8) else self.leaving
        return [f"if {self.condition(1)}:", f"    {way}"]

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def function(self, name):
        self.leaving = f"return {self.vector(1)}, {self.number(1)}"
        start = ["b = a", "c = whole(a + 1)", "d = 3", "y = x", "z = x"]
        end = f"return {self.vector(1)}, {self.number(1)}"
        body = [*start, *self.block(1, False), end]
        return ["@triton.jit", f"def {name}(a, x, src, out):", *indented(body), ""]

    def main(self):
        width = self.width
        start = [
            f"out += tl.program_id(0) * {self.size}",
            "a, b, d = whole(a), whole(b), tl.program_id(0)",
            "c = whole(a + b)",
            f"x = tl.load(src + 16 + tl.arange(0, {width}))",
            "y, z = x ^ a, x + d",
        ]
        end = [f"tl.store(out + {5 + k}, {name})" for k, name in enumerate(self.assigned)]
        for k, name in enumerate(self.vectors):
            end.append(f"tl.store(out + {16 + k * width} + tl.arange(0, {width}), {name})")
        if self.with_matrices:
            self.matrices = ["m", "p", "q"]
            start.append("ij = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]")
            start += ["m = tl.load(src + 16 + ij)", "p, q = m * 3 + d, tl.trans(m)"]
            for k, name in enumerate(self.matrices):
                end.append(f"tl.store(out + {16 + 3 * width + k * 256} + ij, {name})")
        self.leaving = "return"
        body = [line for _ in range(3) for line in self.block(0, False)]
        return ["@triton.jit", "def kernel(src, out, a, b):", *indented([*start, *body, *end])]

    def source(self):
        lines = []
        for number in range(self.pick(0, 0, 1, 2)):
            lines += self.function(f"f{number}")
            self.functions.append(f"f{number}")
        return HELPERS + "\n".join([*lines, *self.main()]) + "\n"

    def launch(self):
        source = self.source()
        values = self.random.integers(-20, 20, 16 + max(self.width, 256)).astype(np.int32)
        values[3] = 2**31 - 1
        arrays = {"src": Array(values, "int32"), "out": Array(np.zeros(GRID * self.size, np.int32), "int32")}
        arguments = [int(x) for x in self.random.integers(-50, 50, 2)]
        return Launch(source, arrays, arguments, GRID, {"num_warps": self.warps}, self.pick(None, *PADDINGS))


outcomes, prepare, script, explained = fuzzer(Generator, __file__)

if __name__ == "__main__":
    explain(explained, TARGETS, __doc__)
