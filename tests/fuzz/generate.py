"""Random kernels that compute with tiles, and what NumPy says they compute.

A program is a list of steps. Each step is kernel source and a function that does the same with NumPy, and gives one new
value. Values know how far from exact they may be: `error` bounds the absolute error of each element, and is None where
the language promises every bit. What would turn an error into another result (comparing, rounding, sorting) takes
exact values only.
"""

import os
import textwrap
from dataclasses import dataclass, field

import numpy as np
from harness import DTYPES, INTS, NARROW, PADDINGS, Array, offsets, random, round_to, ulp

FLOATS = ["float16", "bfloat16", "float32", "float64"]
LIMIT = 4096  # elements of a tile; 16 a thread, before padding, where that is fewer
EXTENTS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 64, 96, 100, 128, 257, 1000, 1024]
PADDED = [1, 3, 4, 5, 7, 12, 13, 17, 24, 40, 48, 65, 96, 129, 200]


def large():
    """Programs of a large launch."""
    return 8 if os.environ.get("TRITON_TARGET", "").startswith("sim") else 1 << 18


def edges(dtype):
    """Where a dtype's range begins and ends, what lies beside that, and what is no number."""
    if DTYPES[dtype].kind != "float":
        limits = np.iinfo(DTYPES[dtype].numpy)
        near = [
            0,
            1,
            2,
            3,
            limits.max // 2,
            limits.max // 2 + 1,
            limits.max - 1,
            limits.max,
            limits.min,
            limits.min + 1,
        ]
        return np.array([*near, -1, -2] if limits.min else near, DTYPES[dtype].values)
    bits, mantissa = DTYPES[dtype].bits, DTYPES[dtype].mantissa
    normal = 2.0 ** (2 - 2 ** (bits - mantissa - 2)) if dtype not in NARROW else 2.0 ** (1 - NARROW[dtype][2])
    largest = 2.0 ** (1 - np.log2(normal)) * (2 - 2.0**-mantissa)
    magnitudes = [0, 0.5, 1, 1.5, 2.5, normal, normal / 2, normal * 2.0**-mantissa, largest / 2, largest]
    magnitudes += [2.0**7, 2.0**15, 2.0**31, 2.0**63, np.inf, np.nan]
    return round_to(np.array([*magnitudes, *np.negative(magnitudes)]), dtype).values


@dataclass(frozen=True)
class Reference:
    """Values of a tile, their dtype, and a bound on the error of each element; None when there is none."""

    values: np.ndarray
    dtype: str
    error: np.ndarray | None = None
    terms: int = 0  # of a matrix product, which may start from what is added to it

    @property
    def shape(self):
        return self.values.shape

    @property
    def kind(self):
        return DTYPES[self.dtype].kind

    @property
    def exact(self):
        return self.error is None

    @property
    def number(self):
        return self.dtype in INTS or self.dtype in FLOATS

    @property
    def wide(self):
        return self.values.astype(np.float64)

    @property
    def bound(self):
        """The error as an array."""
        return np.zeros(self.shape) if self.error is None else self.error


def rounded(values, dtype, error=None):
    """A Reference of values rounded to a dtype. When they are not exact, rounding adds to the error."""
    if error is not None:
        error = np.broadcast_to(error, np.shape(values)) + ulp(np.asarray(values, np.float64), dtype)
        error = np.where(np.isfinite(values), error, np.inf)
    return Reference(round_to(values, dtype).values, dtype, error)


def join_errors(*errors):
    """The sum of errors, None where all are."""
    known = [error for error in errors if error is not None]
    return sum(known) if known else None


@dataclass
class Input:
    """An array with a first axis of programs, of which each loads its part: all, or what lies in front of `count`."""

    array: object
    count: int | None = None
    other: int = 0

    def part(self, pid):
        values = self.array.values[pid]
        if self.count is not None:
            index = np.arange(values.size).reshape(values.shape)
            values = np.where(index < self.count, values, values.dtype.type(self.other))
        return Reference(values, self.array.dtype)


@dataclass
class Step:
    """Code with {0}, {1}, ... for the operands, and {out} when it is more than an expression; what it computes."""

    code: str
    operands: list
    compute: object
    scratch: tuple | None = None  # dtype and elements of memory for it alone, zeros at first: {memory}


HELPERS = """
@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def total_and_least(a, b, c, d):
    return a + c, tl.minimum(b, d)

@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d

@triton.jit
def sum_and_bits(a, b, c, d):
    return a + c, b | d

@triton.jit
def last_odd(a, b, c, d):
    return tl.where((d & 1) == 1, c, a), b | d

@triton.jit
def sum_most_bits(a, b, c, d, e, f):
    return a + d, tl.maximum(b, e), c ^ f

@triton.jit
def tripled(x, n=3, *, less: tl.constexpr = False):
    if less:
        return x * n - x
    else:
        return x * n

@triton.jit(noinline=True)
def apart(x, n):
    for k in range(2):
        if k < n:
            x = x * 2
    return x

"""


@dataclass
class Program:
    seed: int
    grid: int = 1
    options: dict = field(default_factory=dict)  # of the launch
    padding: str | None = None  # what a simulator fills padding with, if not with what comes
    launched: int = 1  # programs; those behind the grid do nothing, but a large launch is compiled and run differently
    inputs: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    outputs: list = field(default_factory=list)  # indices of values: inputs first, then one a step

    def run(self, pid):
        """References of all values in one program of the grid."""
        values = [source.part(pid) for source in self.inputs]
        with np.errstate(all="ignore"):
            for step in self.steps:
                values.append(step.compute(pid, *[values[i] for i in step.operands]))
        return values

    def name(self, index):
        return f"x{index}" if index < len(self.inputs) else f"v{index - len(self.inputs)}"

    def source(self, results):
        """The kernel. `results` are the References of the outputs."""
        lines = ["pid = tl.program_id(0)"]
        if self.launched > self.grid:
            lines += [f"if pid >= {self.grid}:", "    return"]
        for i, source in enumerate(self.inputs):
            lines.append(f"x{i} = " + load(f"x{i}_ptr", source))
        for index, step in enumerate(self.steps, len(self.inputs)):
            code = step.code if "{out}" in step.code else "{out} = " + step.code
            memory = f"(m{index}_ptr + pid * {step.scratch[1]})" if step.scratch else ""
            lines += code.format(*map(self.name, step.operands), out=self.name(index), memory=memory).splitlines()
        for index, result in zip(self.outputs, results, strict=True):
            name = self.name(index)
            lines.append(f"tl.static_assert({name}.dtype == tl.{result.dtype}, f'{name} is {{{name}.dtype}}')")
            lines.append(f"tl.store({place(f'o{index}_ptr', result.shape)}, {name})")
        parameters = [f"x{i}_ptr" for i in range(len(self.inputs))] + [f"o{i}_ptr" for i in self.outputs]
        parameters += [f"m{i}_ptr" for i in self.scratch()]
        body = textwrap.indent("\n".join(lines), "    ")
        return HELPERS + f"@triton.jit\ndef kernel({', '.join(parameters)}):\n" + body

    def scratch(self):
        """Index of the value -> dtype and elements that its step needs, for one program."""
        return {i: step.scratch for i, step in enumerate(self.steps, len(self.inputs)) if step.scratch}


def place(pointer, shape):
    size = int(np.prod(shape))
    return f"{pointer} + pid * {size}" + (f" + ({offsets(shape)})" if shape else "")


def load(pointer, source):
    shape = source.array.shape[1:]
    if source.count is None:
        return f"tl.load({place(pointer, shape)})"
    index = offsets(shape) if shape else "pid * 0"
    return f"tl.load({place(pointer, shape)}, mask=({index}) < {source.count}, other={source.other})"


class Generator:
    """Makes one program from a seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        grid = self.integer(1, 4)
        options = {"num_warps": self.pick([1, 2, 4, 4, 8]), "num_stages": self.integer(1, 5)}
        padding = self.pick([None, *PADDINGS])
        self.limit = min(LIMIT, 512 * options["num_warps"])
        self.has_edges = self.chance(0.3)
        self.program = Program(seed, grid, options, padding, launched=large() if self.chance(0.25) else grid)
        self.values = []  # References of the first program

    def integer(self, low, high):
        return int(self.random.integers(low, high))

    def pick(self, items):
        return items[self.integer(0, len(items))]

    def chance(self, share):
        return self.random.random() < share

    def shape(self):
        rank, extents = self.pick([0, 1, 1, 1, 2, 2, 2, 3]), EXTENTS
        if self.chance(0.4):  # with padding along several axes, in several warps
            rank, extents = self.pick([2, 2, 3]), PADDED
        while True:
            shape = tuple(self.pick(extents) for _ in range(rank))
            if np.prod(shape) <= self.limit:
                return shape

    def add_input(self, shape):
        dtype = self.pick(["int1", *INTS, *FLOATS, "float32", "int32", "float8e4nv", "float8e5"])
        x = random((self.program.grid, *shape), dtype, seed=self.integer(0, 1 << 30))
        if DTYPES[dtype].kind == "float" and self.chance(0.5):
            x = round_to(np.round(x.values.astype(np.float64) * 4), dtype)
        if self.has_edges and dtype != "int1":
            at_edge = self.random.random(x.shape) < self.pick([0.1, 1])
            x = Array(np.where(at_edge, self.random.choice(edges(dtype), x.shape), x.values), dtype)
        size = int(np.prod(shape))
        masked = self.chance(0.25) and not dtype.startswith("float8")
        count, other = (self.integer(0, size + 1), self.integer(0, 2)) if masked else (None, 0)
        self.program.inputs.append(Input(x, count, other))
        self.values.append(self.program.inputs[-1].part(0))

    def add(self, code, operands, compute, scratch=None):
        """Adds a step, unless its result is too large."""
        with np.errstate(all="ignore"):
            result = compute(0, *[self.values[i] for i in operands])
        if result.values.size <= self.limit:
            self.program.steps.append(Step(code, list(operands), compute, scratch))
            self.values.append(result)

    def find(self, test=lambda value: True):
        """The index of a random value that passes a test, or None; later values are likelier."""
        found = [i for i, value in enumerate(self.values) if test(value)]
        return found[max(self.integer(0, len(found)), self.integer(0, len(found)))] if found else None

    def choose_operations(self):
        """All, or a few that then meet more often."""
        from operations import OPERATIONS

        return OPERATIONS if self.chance(0.4) else [self.pick(OPERATIONS) for _ in range(self.integer(3, 12))]

    def build(self, steps):
        operations = self.choose_operations()
        shape = self.shape()
        for _ in range(self.integer(1, 4)):
            self.add_input(shape if self.chance(0.7) else self.shape())
        for _ in range(20 * steps):
            if len(self.program.steps) < steps:
                self.pick(operations)(self)
        used = {i for step in self.program.steps for i in step.operands}
        unused = [i for i in range(len(self.values)) if i not in used]
        self.program.outputs = unused[-6:]
        return self.program


def generate(seed):
    generator = Generator(seed)
    return generator.build(generator.integer(1, 8) if generator.chance(0.5) else generator.integer(8, 30))
