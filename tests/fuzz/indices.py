"""Random indices, launch after launch: `python tests/fuzz/campaign.py indices` runs many.

What a launch's numbers prove decides which code runs, so a kernel is launched with numbers of every class: of either
sign, multiples of 16 or of nothing, one, zero, around 2**31. Its indices are made of them, of the program's number and
of loops by sums, products, quotients and remainders; they lie in a large array, of which only what they should find is
not zero. Unbounded arithmetic says where that is. Each launch happens again, in another order: with variants made in
the background, or with a new kernel that finds its code on the disk.
"""

import contextlib
import functools
import mmap
import os
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import define  # noqa: E402
from launches import Chooser, explain, indented  # noqa: E402

import triton  # noqa: E402
from triton.runtime import background  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
LARGE = 6_000_000_000  # bytes, most of which are never touched
NEAR = 80  # elements around each index that differ from zero, too
LAUNCHES = 7
MOST_TRIPS = 6
OUTPUTS = 24  # tiles that a program may store
LIMITS = {32: 2**31, 64: 2**62}


class Skipped(Exception):
    """Numbers of which the language does not say what comes of them."""


# ---- arithmetic without bounds --------------------------------------------------------------------------------------


class Whole:
    """A number or a tile of them. What is `fixed` has the bits that its arithmetic was written in, so it has to fit; of
    what is `far`, something on the way to it did not."""

    def __init__(self, value, fixed=False, far=False):
        self.value, self.fixed = np.asarray(value, np.int64), fixed
        size = abs(self.value.astype(np.float64)).max()
        self.far = far or size >= LIMITS[32]
        if size >= LIMITS[64] or (fixed and self.far):
            raise Skipped

    def number(self):
        return int(self.value)

    def _with(self, other, function):
        other = wrapped(other)
        rough = function(self.value.astype(np.float64), other.value.astype(np.float64))
        if not (abs(rough) < LIMITS[64]).all():
            raise Skipped
        return self._joined(function(self.value, other.value), other)

    def _joined(self, value, other):
        return Whole(value, self.fixed or other.fixed, self.far or other.far)

    def __add__(self, other):
        return self._with(other, np.add)

    def __sub__(self, other):
        return self._with(other, np.subtract)

    def __mul__(self, other):
        return self._with(other, np.multiply)

    __rmul__, __radd__ = __mul__, __add__

    def __neg__(self):
        return Whole(0) - self

    def __floordiv__(self, other):
        other = wrapped(other)
        if not other.value.all():
            raise Skipped
        quotient = abs(self.value) // abs(other.value)
        return self._joined(np.where((self.value < 0) == (other.value < 0), quotient, -quotient), other)

    def __mod__(self, other):
        return self - self // other * other

    def __rfloordiv__(self, other):
        return Whole(other) // self

    def __rmod__(self, other):
        return Whole(other) % self

    def __rsub__(self, other):
        return Whole(other) - self

    def __and__(self, mask):
        return Whole(Whole(self.value, True, self.far).value & mask)

    def __rshift__(self, bits):
        return Whole(self.value >> bits, self.fixed, self.far)

    def __lshift__(self, bits):
        return self * (1 << bits)

    def __lt__(self, other):
        return self.value < (other.value if isinstance(other, Whole) else other)

    def __ge__(self, other):
        return ~(self < other)

    def __gt__(self, other):
        return wrapped(other) < self

    def __le__(self, other):
        return ~(self > other)

    def __getitem__(self, places):
        return Whole(self.value[places], self.fixed, self.far)

    def to(self, kind):
        """Of another width: what is narrowed has to fit, and unsigned numbers are the bits that they were."""
        if kind == "int64":
            return self
        if kind == "uint32":
            return Whole(Whole(self.value, True, self.far).value & 0xFFFFFFFF)
        return Whole(self.value, True, self.far)


def wrapped(x):
    return x if isinstance(x, Whole) else Whole(x)


def argument(number):
    """One is a constant, with which Python computes by its own rules."""
    return 1 if number == 1 else Whole(number)


class Language:
    """`tl` for one program. Loads and stores note their places."""

    int32, int64, uint32 = "int32", "int64", "uint32"
    constexpr = int

    def __init__(self, program, grid, found):
        self.program, self.grid, self.found = program, grid, found

    def program_id(self, axis):
        return Whole(self.program[axis])

    def num_programs(self, axis):
        return Whole(self.grid[axis])

    def arange(self, start, end):
        return Whole(np.arange(start, end))

    def minimum(self, x, y):
        return wrapped(x)._with(y, np.minimum)

    def maximum(self, x, y):
        return wrapped(x)._with(y, np.maximum)

    def where(self, test, x, y):
        x, y = wrapped(x), wrapped(y)
        return x._joined(np.where(test, x.value, y.value), y)

    def range(self, start, end, step=1):
        """Its index is no part of an address, so that its bounds are what was written."""
        if any(bound.far for bound in (start, end, step) if isinstance(bound, Whole)):
            raise Skipped
        return self.indices(start, end, step)

    def indices(self, start, end, step=1):
        if isinstance(step, Whole) and step.number() <= 0:
            raise Skipped
        start, end, step = (wrapped(bound).number() for bound in (start, end, step))
        if len(range(start, end, step)) > MOST_TRIPS:
            raise Skipped
        return map(Whole, range(start, end, step))

    def load(self, pointer, mask=True, other=0):
        return self.found.load(pointer, mask)

    def store(self, pointer, value, mask=True):
        self.found.store(pointer, value, mask)


class Pointer:
    def __init__(self, array, place=None):
        self.array, self.place = array, place or Whole(0)

    def __add__(self, offset):
        return Pointer(self.array, self.place + offset)


class Found:
    """Where a launch loads, and stores, in the large array; and which of its outputs is what."""

    def __init__(self, table):
        self.table, self.loads, self.stores = table, [], []

    def load(self, pointer, mask):
        if pointer.array == "t":
            return Whole(self.table[pointer.place.value], True)
        return np.broadcast_arrays(pointer.place.value, mask)

    def store(self, pointer, value, mask):
        if pointer.array == "x":
            place, mask = np.broadcast_arrays(pointer.place.value, mask)
            self.stores.append(place[mask])
        else:
            self.loads.append((pointer.place.value, *value))


# ---- kernels --------------------------------------------------------------------------------------------------------


class Generator(Chooser):
    def __init__(self, seed):
        super().__init__(seed)
        self.width = self.pick(16, 32, 64, 64, 128)
        self.rows = self.pick(4, 8, 16)
        self.stores = self.chance(0.3)
        self.names, self.outputs, self.lines = 0, 0, []
        self.scalars = ["a", "b", "c", "pid", "row", "count"]

    def new_name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    # ---- numbers ----------------------------------------------------------------------------------------------------

    def small(self):
        return str(self.pick(1, 2, 3, 4, 5, 7, 8, 16, 16, 32, 64, 100))

    def divisor(self, depth):
        kind = self.pick("small", "small", "argument", "difference", "odd", "minimum")
        if kind == "small":
            return self.small()
        if kind == "argument" or depth > 2:
            return self.pick("b", "c")
        x = self.scalar(depth + 1)
        return {
            "difference": f"({x} - {self.small()})",
            "odd": f"({x} * 2 - 1)",
            "minimum": f"tl.minimum({x}, {self.small()})",
        }[kind]

    def scalar(self, depth=0):
        if depth >= 3 or self.chance(0.2):
            return self.pick(*self.scalars, *self.scalars, self.small())
        return self.operation(lambda: self.scalar(depth + 1), lambda: self.scalar(depth + 2), depth)

    def condition(self):
        return f"{self.pick('a', 'b', 'c', 'pid')} {self.pick('<', '>=')} {self.pick('b', 'c', '1', '5')}"

    def operation(self, x, simple, depth):
        kind = self.pick("sum", "sum", "sum", "product", "division", "division", "extremum", "rare")
        if kind == "sum":
            return f"({x()} {self.pick('+', '-')} {x()})"
        if kind == "product":
            return f"({x()} * {self.pick(self.small, self.small, simple)()})"
        if kind == "division":
            return f"({x()} {self.pick('//', '%')} {self.divisor(depth)})"
        if kind == "extremum":
            return f"tl.{self.pick('minimum', 'maximum')}({x()}, {self.pick(x, simple)()})"
        form = self.pick(
            f"({{}} & {self.pick(3, 15, 63, 1023)})",
            f"({{}} >> {self.pick(1, 2, 4)})",
            f"({{}} << {self.pick(1, 4)})",
            "(-{})",
            f"tl.where({self.condition()}, {{}}, {{}})",
            "({} + pid * 0).to(tl.int64)",
            "({} + pid * 0).to(tl.int64).to(tl.int32)",
            "({} + pid * 0).to(tl.uint32).to(tl.int64)",
        )
        return form.format(*(x() for _ in range(form.count("{}"))))

    def assign(self):
        name = self.new_name("s")
        self.lines.append(f"{name} = {self.scalar()} + pid * 0")
        self.scalars.append(name)

    def look_up(self):
        name = self.new_name("s")
        self.lines.append(f"{name} = tl.load(t + (pid & 7))")
        self.scalars.append(name)

    # ---- indices ----------------------------------------------------------------------------------------------------

    def run(self):
        """A tile of neighbours, most often one that starts at a multiple of something."""
        start = f"{self.scalar(1)} * {self.pick(1, 4, 8, 16, 16, 'N', 'N')}"
        return self.pick(f"({start} + r)", f"({start} + r)", f"(r + {self.scalar(1)})", f"({self.scalar(1)} - r)", "r")

    def tile(self, depth=0):
        if depth >= 2 or self.chance(0.15):
            return self.run()
        if self.chance(0.5):
            return f"({self.tile(depth + 1)} {self.pick('//', '%', '%')} {self.divisor(1)})"
        return self.operation(lambda: self.tile(depth + 1), lambda: self.scalar(2), depth)

    def index(self):
        """Its text, and the tile that it has the shape of."""
        if self.chance(0.25):
            across = f"({self.scalar(1)} * {self.pick(1, 4, 'R')} + q)"
            if self.chance(0.6):
                across = f"({across} {self.pick('//', '%')} {self.divisor(1)})"
            stride = self.pick("N", "a", "b", "16", self.scalar(2))
            return f"{across}[:, None] * {stride} + {self.tile(1)}[None, :]", "matrix"
        return self.tile(), "r"

    def place(self, shape):
        """Where a program's next output goes."""
        self.outputs += 1
        return f"out + at * {self.rows * self.width} + {'q[:, None] * N + r[None, :]' if shape == 'matrix' else 'r'}"

    def access(self, pointer, mask, shape):
        masked = f", mask={mask}" if mask else ""
        if self.stores:
            return [f"tl.store({pointer}, 1{masked})"]
        other = ", other=0" if mask else ""
        return [f"tl.store({self.place(shape)}, tl.load({pointer}{masked}{other}))", "at += 1"]

    def touch(self):
        """An access at an index."""
        text, shape = self.index()
        name = self.new_name("i")
        mask = f"({name} >= low) & ({name} < high)" if self.chance(0.7) else None
        return [f"{name} = {text}", *self.access(f"x + {name}", mask, shape)]

    def loop(self):
        """Over an index, or with a pointer or an index that is carried."""
        k, kind = self.new_name("k"), self.pick("index", "pointer", "carried", "while")
        bounds = self.bounds(self.scalar(2) if kind == "index" else f"({self.scalar(2)} & 255)")
        if kind == "index":
            known, self.scalars = self.scalars, [*self.scalars, k, k, k]
            body = [line for _ in range(self.pick(1, 2)) for line in self.touch()]
            self.scalars = known
            over = self.range(*bounds)
            if any(k in line for line in body):  # what is part of an address does not wrap around
                over = over.removeprefix("tl.")
            return [f"for {k} in {over}:", *indented(body)]
        text, shape = self.index()
        name, step = self.new_name("i"), self.scalar(1)
        if kind in ("pointer", "while"):
            lines, use, mask = [f"p{name} = x + ({text})"], f"p{name}", None
            body = [*self.access(use, mask, shape), f"p{name} = p{name} + ({step})"]
        else:
            mask = f"({name} >= low) & ({name} < high)" if self.chance(0.7) else None
            lines, body = (
                [f"{name} = {text}"],
                [*self.access(f"x + {name}", mask, shape), f"{name} = {name} + ({step})"],
            )
        if kind == "while":
            start, end, by = self.bounds("(b & 255)", "2")
            body.append(f"{k} = {k} + {by}")
            return [*lines, f"{k} = {start} + pid * 0", f"while {k} < {end}:", *indented(body)]
        return [*lines, f"for {k} in {self.range(*bounds)}:", *indented(body)]

    def bounds(self, start, step="c"):
        start = self.pick("0", "1", "pid", start, start)
        step = self.pick("1", "1", "2", step, "16")
        return start, f"{start} + {self.pick(2, 3)} * {step}", step

    def range(self, start, end, step):
        if step == "1" and self.chance(0.3):
            return f"tl.range({start}, {start} - 3, -1)"
        return f"tl.range({start}, {end}, {step})"

    def source(self):
        for _ in range(self.random.integers(1, 4)):
            self.look_up() if self.chance(0.1) else self.assign()
        body = self.lines
        for _ in range(self.random.integers(1, 4)):
            body += self.loop() if self.chance(0.4) else self.touch()
        head = ["pid = tl.program_id(0)", "row = tl.program_id(1)", "count = tl.num_programs(0)"]
        head += ["r = tl.arange(0, N)", "q = tl.arange(0, R)", f"at = (row * count + pid) * {OUTPUTS}"]
        head.append("x += middle")
        signature = "x, out, t, middle, a, b, c, low, high, N: tl.constexpr, R: tl.constexpr"
        return f"@triton.jit\ndef kernel({signature}):\n" + "\n".join(indented(head + body)) + "\n"

    # ---- launches ---------------------------------------------------------------------------------------------------

    def argument(self):
        size = self.pick("one", "small", "small", "small", "small", "middle", "huge", "limit")
        if size == "limit":
            return self.pick(1, -1) * 2**31 + self.pick(-16, -8, -1, 0, 1, 16)
        if size == "one":
            return self.pick(0, 1, 1, -1)
        most = {"small": 12, "middle": 5000, "huge": 2**31 // 16}[size]
        number = int(self.random.integers(1, most)) * self.pick(1, 1, 4, 8, 16)
        return number if self.chance(0.7) else -number

    def numbers(self):
        """Arguments, the grid, by how much an aligned array is missed, and its elements."""
        a, b, c = (self.argument() for _ in range(3))
        low = self.pick(0, 0, -16, -1000, -(2**31), -LARGE)
        high = self.pick(16, 1000, 2**31 - 1, LARGE)
        return [a, b, c, low, high], (self.pick(1, 2, 5, 8), self.pick(1, 1, 3), 1), self.pick(0, 0, 0, 1, 4, 8)


class Case:
    """A kernel and its launches."""

    def __init__(self, seed):
        generator = Generator(seed)
        self.seed, self.text, self.stores = seed, generator.source(), generator.stores
        self.width, self.rows = generator.width, generator.rows
        self.dtype = generator.pick(np.int8, np.int8, np.int8, np.int16, np.int32)
        self.table = generator.random.integers(-40, 300, 8).astype(np.int32)
        self.launches, tries = [], 0
        while len(self.launches) < LAUNCHES and tries < 40:
            tries += 1
            numbers, grid, miss = generator.numbers()
            with contextlib.suppress(Skipped):
                self.launches.append((numbers, grid, miss, self.expected(numbers, grid)))
        self.again = list(generator.random.permutation(len(self.launches)))

    def expected(self, numbers, grid):
        """What the programs find and write, by unbounded arithmetic: pairs of where, and of what place in the array."""
        found, reach = Found(self.table), LARGE // 2 // np.dtype(self.dtype).itemsize - 2 * NEAR
        for number in range(grid[0] * grid[1]):
            space = {"tl": Language((number % grid[0], number // grid[0]), grid, found)}
            space |= {"triton": mock.Mock(jit=lambda function: function), "range": space["tl"].indices}
            with np.errstate(all="ignore"):
                exec(compile(self.text, "<kernel>", "exec"), space)
                arrays = [Pointer("x"), Pointer("out"), Pointer("t"), 0]
                try:
                    space["kernel"](*arrays, *map(argument, numbers), self.width, self.rows)
                except ZeroDivisionError:
                    raise Skipped from None
        size = self.rows * self.width
        if any(at.max() >= grid[0] * grid[1] * OUTPUTS * size for at, _, _ in found.loads):
            raise Skipped
        touched = [np.extract(mask, place) for _, place, mask in found.loads] + found.stores
        touched = np.unique(np.concatenate([np.zeros(0, np.int64), *touched]))
        if touched.size and max(-touched[0], touched[-1]) >= reach:
            raise Skipped
        return found, touched


# ---- on a target ----------------------------------------------------------------------------------------------------


class Memory:
    """The large array of a host, whose pages come and go."""

    def __init__(self):
        self.pages = mmap.mmap(-1, LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.bytes = np.frombuffer(self.pages, np.uint8)

    def clear(self):
        self.pages.madvise(mmap.MADV_DONTNEED)

    def elements(self, dtype, miss):
        """All of them but for the first few."""
        return self.bytes.view(dtype)[miss:]

    def argument(self, array):
        """An array as a kernel is given it."""
        return array

    def put(self, elements, places, values):
        elements[places] = values

    def get(self, elements, places):
        return elements[places]


class DeviceMemory:
    """The same of a GPU: arguments and elements are tensors. What was touched is zeroed behind each launch."""

    def __init__(self):
        import torch

        self.bytes = torch.zeros(LARGE, dtype=torch.uint8, device="cuda")
        self.tensor = torch.from_numpy

    def clear(self):
        pass

    def elements(self, dtype, miss):
        return self.bytes.view(self.tensor(np.zeros(0, dtype)).dtype)[miss:]

    def argument(self, array):
        return self.tensor(array).to(self.bytes.device)

    def put(self, elements, places, values):
        elements[self.argument(places)] = self.argument(np.asarray(values, self.get(elements, places[:0]).dtype))

    def get(self, elements, places):
        return elements[self.argument(places)].cpu().numpy()


def contents(places):
    """Of the elements there: numbers from 1 to 127."""
    return ((places * 167 + 13) ^ (places >> 7)) & 127 | 1


def near(touched):
    return np.unique((touched[:, None] + np.arange(-NEAR, NEAR)).ravel())


def wrong(case, kernel, launch, memory):
    """Launches; says what differs, or None."""
    numbers, grid, miss, (found, touched) = launch
    x = memory.elements(case.dtype, miss)
    middle = len(x) // 2 // 16 * 16  # from which the kernel counts
    out = np.zeros(grid[0] * grid[1] * OUTPUTS * case.rows * case.width, case.dtype)
    around, expected = near(touched), np.zeros_like(out)
    if not case.stores:
        memory.put(x, around + middle, contents(around))
    for at, place, mask in found.loads:
        expected[at] = np.where(mask, contents(place), 0)
    out, table = memory.argument(out), memory.argument(case.table)
    try:
        kernel[grid](x, out, table, middle, *numbers, case.width, case.rows)
        if case.stores:
            stored = memory.get(x, around + middle)
            return None if (stored == np.isin(around, touched)).all() else "what was stored"
        differing = memory.get(out, np.arange(expected.size)) != expected
        return f"{differing.sum()} of {expected.size} loaded" if differing.any() else None
    finally:
        memory.put(x, around + middle, np.zeros(around.size, case.dtype))


def new_kernel(case):
    return define(case.text, f"<indices {case.seed}>")["kernel"]


def passes(case):
    """Kernels and orders to launch in: a new kernel, with and without variants made in the background, and others whose
    code is on the disk."""
    first, again = range(len(case.launches)), case.again
    with mock.patch.dict(os.environ, {"TRITON_BACKGROUND": "0"}):
        kernel = new_kernel(case)
        yield "verified", kernel, first
    folder = tempfile.mkdtemp()
    settings = {"TRITON_CACHE_DIR": folder, "TRITON_CACHE_SIZE": "1G", "TRITON_VERIFY": "0", "TRITON_BACKGROUND": "1"}
    try:
        with mock.patch.dict(os.environ, settings):
            kernel = new_kernel(case)
            yield "in the background", kernel, again
            assert background.wait()
            yield "after the background", kernel, first
            yield "from the disk", new_kernel(case), again
            os.environ["TRITON_BACKGROUND"] = "0"
            yield "from the disk at once", new_kernel(case), first
            assert background.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def memory_of(kind):
    return kind()


def outcomes(seed, targets, begin):
    begin(targets[0])
    case = Case(seed)
    for target in targets:
        begin(target)
        os.environ["TRITON_TARGET"] = target
        memory = memory_of(DeviceMemory if target.startswith("cuda") else Memory)
        yield verdict(case, memory)
        memory.clear()


def verdict(case, memory):
    if not case.launches:
        return "skipped"
    for how, kernel, order in passes(case):
        for number in order:
            launch = case.launches[number]
            try:
                what = wrong(case, kernel, launch, memory)
            except triton.CompilationError as error:
                what = None if "changes its type" in str(error) else str(error)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
            if what:
                return f"differs: {how}: {what}\n{launch[:3]}, {np.dtype(case.dtype)}, N {case.width}\n{case.text}"
    return "agrees"


def prepare():
    import torch  # noqa: F401


def script(seed, target):
    return f"# python tests/fuzz/indices.py --explain {seed} --targets {target}\n{Case(seed).text}"


if __name__ == "__main__":
    explain(outcomes, TARGETS, __doc__)
