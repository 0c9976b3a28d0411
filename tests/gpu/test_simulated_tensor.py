"""The simulator's tensor cores and asynchronous copies, one instruction at a time: results against NumPy, with
fragments and matrices laid out as the PTX manual has it; and that every missing wait, fence or barrier is found."""

import re

import numpy as np
import pytest
from harness import code_values

from triton import _C

OPCODES = [
    "store", "load", "barrier", "warp_sync", "load_matrices", "store_matrices", "mma", "wgmma_begin", "wgmma",
    "commit_wgmma", "wait_wgmma", "copy_async", "commit_copies", "wait_copies", "fence_proxy",
]  # fmt: skip
LANES = np.arange(32)
G, T = LANES // 4, LANES % 4


def run(program, registers, shared=0):
    """Runs (name, number, ...) on registers, u32 of (threads, registers) that change; what it fails with."""
    rows = np.zeros((len(program), 8), np.int32)
    for row, (name, *numbers) in zip(rows, program, strict=True):
        row[0], row[1 : 1 + len(numbers)] = OPCODES.index(name), numbers
    return _C._run_instructions(rows, registers, len(registers), shared)


def succeed(program, registers, shared=0):
    assert run(program, registers, shared) is None
    return registers


def fails(program, registers, shared, *words):
    """It fails, and the message has these words in it, in this order."""
    message = run(program, registers.copy(), shared)
    assert message and re.search(".*".join(map(re.escape, words)), message), message


# ---- elements -------------------------------------------------------------------------------------------------------

ELEMENTS = ["float16", "bfloat16", "tf32", "int8", "float8e4nv", "float8e5", "float64"]
BYTES = {"float16": 2, "bfloat16": 2, "tf32": 4, "int8": 1, "float8e4nv": 1, "float8e5": 1, "float64": 8}
ONE = {
    "float16": 0x3C00, "bfloat16": 0x3F80, "tf32": 0x3F800000, "int8": 1, "float8e4nv": 0x38, "float8e5": 0x3C,
    "float64": 0x3FF0000000000000,
}  # fmt: skip
PAIRS = [(name, name) for name in ELEMENTS] + [("float8e4nv", "float8e5"), ("float8e5", "float8e4nv")]


def depth(name):
    return 8 if name == "float64" else 32 // BYTES[name]


OF_HALVES = 30  # the largest operands whose sums fp16 has


def random_codes(generator, name, shape, most=1e4):
    """Elements as bits; every code of a format may come up, but for infinities and NaN."""
    if name == "float64":
        return generator.standard_normal(shape).view(np.uint64)
    if name == "tf32":
        return generator.standard_normal(shape).astype(np.float32).view(np.uint32)
    if name == "int8":
        return generator.integers(0, 256, shape).astype(np.uint8)
    values = code_values(name)
    modest = np.flatnonzero(np.isfinite(values) & (np.abs(values) < most))
    return generator.choice(modest, shape).astype(f"u{BYTES[name]}")


def values(name, codes):
    """What the bits mean, in float64."""
    if name == "float64":
        return codes.view(np.float64)
    if name == "tf32":
        return (codes & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if name == "int8":
        return codes.view(np.int8).astype(np.float64)
    return code_values(name)[codes]


HALVES = [pair for pair in PAIRS if pair[0] == "float16" or pair[0].startswith("float8")]  # that have sums in fp16


def sum_type(name):
    return {"int8": np.int32, "float64": np.float64}.get(name, np.float32)


def random_sums(generator, name, shape, dtype=None):
    dtype = dtype or sum_type(name)
    return (
        generator.integers(-1000, 1000, shape).astype(dtype)
        if name == "int8"
        else generator.normal(size=shape).astype(dtype)
    )


def check_sums(name, found, sums, a, b, instructions=1):
    """a and b hold values; the sums are rounded once by each instruction."""
    exact = sums.astype(np.float64) + a @ b
    if name == "int8":
        assert (found == exact.astype(np.int64).astype(np.int32)).all()
    else:
        size, unit = np.abs(sums.astype(np.float64)) + np.abs(a) @ np.abs(b), {2: 2.0**-11, 4: 2.0**-23, 8: 1e-15}
        assert (np.abs(found.astype(np.float64) - exact) <= size * instructions * unit[sums.itemsize]).all()
        assert instructions > 1 or sums.itemsize > 2 or (found == exact.astype(np.float16)).all()


# ---- mma.sync -------------------------------------------------------------------------------------------------------


def k_places(name, half):
    """(lane, element): which of K the lanes have in a register of the first or second half."""
    each = max(1, 4 // BYTES[name])
    return half * 4 * each + T[:, None] * each + np.arange(each)


def a_fragment(name, a):
    """(lane, register) as words, or wider, of a (16, K) operand."""
    wide = np.uint64 if name == "float64" else np.uint32
    registers = [a[(G + 8 * (i % 2))[:, None], k_places(name, i // 2)] for i in range(4)]
    return np.stack([np.ascontiguousarray(r).view(wide)[:, 0] for r in registers], 1)


def b_fragment(name, b):
    return a_fragment(name, np.concatenate([b.T, b.T]))[:, ::2]


def slots(fragment):
    return fragment.astype(np.uint64).view(np.uint32)


def mma(names, a, b, sums):
    """The sums after mma.sync, (16, 8)."""
    rows, columns = G[:, None] + 8 * np.array([0, 0, 1, 1]), 2 * T[:, None] + np.array([0, 1, 0, 1])
    own, in_halves = np.ascontiguousarray(sums[rows, columns]), sums.itemsize == 2
    wide = f"u{max(4, own.itemsize)}"
    own = slots(own.view(wide))
    registers = np.hstack(
        [slots(a_fragment(names[0], a)), slots(b_fragment(names[1], b)), np.zeros((32, 8), np.uint32)]
    )
    registers[:, 12 : 12 + own.shape[1]] = own
    succeed([("mma", 0, ELEMENTS.index(names[0]), ELEMENTS.index(names[1]), in_halves)], registers)
    found = np.ascontiguousarray(registers[:, 12 : 12 + own.shape[1]]).view(np.uint64)
    result = np.empty_like(sums)
    result[rows, columns] = found.astype(wide).view(sums.dtype)
    return result


@pytest.mark.parametrize("names", PAIRS)
def test_mma(names):
    for seed in range(20):
        generator = np.random.default_rng(seed)
        a = random_codes(generator, names[0], (16, depth(names[0])))
        b = random_codes(generator, names[1], (depth(names[1]), 8))
        sums = random_sums(generator, names[0], (16, 8))
        found = mma(names, a, b, sums)
        check_sums(names[0], found, sums, values(names[0], a), values(names[1], b))


@pytest.mark.parametrize("names", HALVES)
def test_mma_with_sums_of_halves(names):
    for seed in range(20):
        generator = np.random.default_rng(seed)
        a = random_codes(generator, names[0], (16, depth(names[0])), OF_HALVES)
        b = random_codes(generator, names[1], (depth(names[1]), 8), OF_HALVES)
        sums = random_sums(generator, names[0], (16, 8), np.float16)
        check_sums(names[0], mma(names, a, b, sums), sums, values(names[0], a), values(names[1], b))


@pytest.mark.parametrize("name", ELEMENTS)
def test_each_element_of_a_product_counts(name):
    """A product with the identity gives every element of the other operand, in its place."""
    generator, k = np.random.default_rng(1), depth(name)
    zeros = np.zeros((16, 8), sum_type(name))
    for start in range(0, k, 8):
        a, b = random_codes(generator, name, (16, k)), np.zeros((k, 8), f"u{BYTES[name]}")
        b[start + np.arange(8), np.arange(8)] = ONE[name]
        assert (mma((name, name), a, b, zeros) == values(name, a)[:, start : start + 8]).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8e4nv", "float8e5"])
def test_every_code_of_a_format(name):
    """NaN, infinities and subnormals included: row 0 of a holds the codes, one at a time."""
    k = depth(name)
    codes = np.arange(1 << 8 * BYTES[name])
    if len(codes) > 256:
        codes = np.concatenate([codes[::97], [0x7C00, 0xFC00, 0x7F80, 0x7F81, 0x7C01, 1, 0x8001]])
    wanted = values(name, codes)
    for start in range(0, len(codes) - 15, 16):
        a, b = np.zeros((16, k), f"u{BYTES[name]}"), np.zeros((k, 8), f"u{BYTES[name]}")
        a[:, 0], b[0, :] = codes[start : start + 16], ONE[name]
        with np.errstate(invalid="ignore"):
            found = mma((name, name), a, b, np.zeros((16, 8), np.float32))
        np.testing.assert_array_equal(found[:, 3], wanted[start : start + 16].astype(np.float32))


def test_sums_of_integers_stay_at_their_limits():
    """Those of mma.sync, which is asked to."""
    a, b = np.full((16, 32), 0x80, np.uint8), np.full((32, 8), 0x80, np.uint8)
    found = mma(("int8", "int8"), a, b, np.full((16, 8), 2**31 - 1, np.int32))
    assert (found == 2**31 - 1).all()
    found = mma(("int8", "int8"), a, b ^ 0xFF, np.full((16, 8), -(2**31), np.int32))
    assert (found == -(2**31)).all()


# ---- ldmatrix, stmatrix ---------------------------------------------------------------------------------------------


def matrix_program(generator, count, transposed, size=4096):
    """Rows at random places, the content of shared memory, and what each lane is to have of it."""
    rows = generator.permutation(size // 16)[:32] * 16
    content = generator.integers(0, 1 << 16, size // 2).astype(np.uint16)
    matrices = content[rows[:, None] // 2 + np.arange(8)].reshape(4, 8, 8)[:count]
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    words = np.ascontiguousarray(matrices).view(np.uint32).reshape(count, 32).T
    return rows, content, words


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_load_and_store_matrices(count, transposed):
    """Registers: 0 the row's place, 1 .. 4 words, 5 where the lane fills and reads shared memory, 6 .. 37 what."""
    for seed in range(10):
        rows, content, words = matrix_program(np.random.default_rng(seed), count, transposed)
        registers = np.zeros((32, 38), np.uint32)
        registers[:, 0], registers[:, 5] = rows, LANES * 128
        registers[:, 6:] = content.view(np.uint32).reshape(32, 32)
        load = [("store", 5, 6, 32), ("warp_sync",), ("load_matrices", 0, 1, count, transposed)]
        assert (succeed(load, registers.copy(), 4096)[:, 1 : 1 + count] == words).all()
        registers[:, 1 : 1 + count] = words
        store = [("store_matrices", 0, 1, count, transposed), ("warp_sync",), ("load", 5, 6, 32)]
        found = succeed(store, registers.copy(), 4096)[:, 6:].copy().view(np.uint16).ravel()
        wanted = np.full(2048, 0xFFFF, np.uint16)
        places = (rows[: 8 * count, None] // 2 + np.arange(8)).ravel()
        wanted[places] = content[places]
        assert (found == wanted).all()


def test_matrices_need_order():
    registers = np.zeros((32, 8), np.uint32)
    registers[:, 0] = LANES * 16
    store, load, sync = ("store", 0, 1, 4), ("load_matrices", 0, 1, 4, 0), ("warp_sync",)
    succeed([store, sync, load, sync, store], registers, 512)
    fails([store, load], registers, 512, "race", "written", "store (program:0)", "read", "(program:1)", "no barrier")
    fails([store, sync, load, store], registers, 512, "race", "read", "(program:2)", "written", "(program:3)")
    store_matrices = ("store_matrices", 0, 1, 4, 0)
    fails([store_matrices, ("load", 0, 1, 4)], registers, 512, "race", "store_matrices (program:0)", "(program:1)")
    succeed([store_matrices, sync, ("load", 0, 1, 4)], registers, 512)


def test_rows_of_matrices_are_aligned_and_in_bounds():
    registers = np.zeros((32, 8), np.uint32)
    registers[:, 0] = LANES * 16 + 8
    fails([("load_matrices", 0, 1, 4, 0)], registers, 4096, "no multiple of 16")
    registers[:, 0] = LANES * 16
    fails([("load_matrices", 0, 1, 4, 0)], registers, 496, "outside shared memory")


# ---- wgmma ----------------------------------------------------------------------------------------------------------

THREADS = np.arange(128)
W = THREADS // 32
IN_REGISTERS = 2
NONE, SWIZZLED_128, SWIZZLED_64, SWIZZLED_32 = range(4)
SPANS = {NONE: 16, SWIZZLED_128: 128, SWIZZLED_64: 64, SWIZZLED_32: 32}
SHARED = 72 << 10
WORDS = SHARED // 4 // 128  # that a thread fills of it
PLACE, DESCRIPTORS, A_WORDS, SUMS = WORDS, WORDS + 2, WORDS + 6, WORDS + 10


def swizzled(address, span):
    """The 16-byte pieces of each row of a panel are permuted by the row's number."""
    row, piece = address // 128, address // 16
    return (piece ^ (row % (span // 16))) * 16 + address % 16


class Operand:
    """A matrix of (rows, K), or more along either, in shared memory from `start` on, as panels of `span` bytes."""

    def __init__(self, codes, major, mode, start):
        self.codes, self.major, self.mode, self.start, self.span = codes, major, mode, start, SPANS[mode]
        self.element = codes.itemsize
        if mode == NONE:  # cores of 8 x 16 bytes, anywhere: here one after the other, with gaps
            cores = (codes.shape[0] // 8, codes.shape[1] * self.element // 16)
            if major:
                cores = (codes.shape[0] * self.element // 16, codes.shape[1] // 8)
            self.stride, self.leading = (cores[1] * 128 + 32, 128) if start % 256 else (128, cores[0] * 128 + 16)
        elif major:
            self.stride, self.leading = 8 * self.span, codes.shape[1] * self.span
        else:
            self.stride, self.leading = 8 * self.span, 16

    def addresses(self):
        row, k = np.indices(self.codes.shape)
        if self.mode == NONE:
            along, across = (k, row) if not self.major else (row, k)
            byte = along * self.element
            outer, inner = (across // 8, byte // 16) if not self.major else (byte // 16, across // 8)
            return self.start + outer * self.stride + inner * self.leading + across % 8 * 16 + byte % 16
        along, line = (k, row) if not self.major else (row, k)
        lines = self.codes.shape[1] if self.major else self.codes.shape[0]
        byte = along * self.element
        offset = byte // self.span * lines * self.span + line * self.span + byte % self.span
        return swizzled(self.start + offset, self.span)

    def write(self, memory):
        memory[self.addresses()[..., None] + np.arange(self.element)] = np.ascontiguousarray(self.codes)[
            ..., None
        ].view(np.uint8)

    def descriptor(self, advance=0):
        return (self.start + advance) >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | self.mode << 62


def pack(*numbers):
    return numbers[0] | numbers[1] << 8


def sum_places(n):
    """Rows and columns of (thread, register); of fp16 two are one register."""
    i = np.arange(n // 2)
    rows = 16 * W[:, None] + G[THREADS % 32, None] + 8 * (i >> 1 & 1)
    return rows, 8 * (i >> 2) + 2 * T[THREADS % 32, None] + (i & 1)


def wgmma_registers(memory, n, sums=None):
    registers = np.zeros((128, SUMS + n // 2), np.uint32)
    registers[:, :WORDS] = memory.view(np.uint32).reshape(128, WORDS)
    registers[:, PLACE] = THREADS * WORDS * 4
    if sums is not None:
        own = np.ascontiguousarray(sums[sum_places(n)]).view(np.uint32)
        registers[:, SUMS : SUMS + own.shape[1]] = own
    return registers


def set_descriptors(registers, a, b, at=DESCRIPTORS):
    registers[:, at : at + 4] = np.array([a, b], np.uint64).view(np.uint32)


def a_words(name, a):
    return np.concatenate([a_fragment(name, a[16 * w : 16 * w + 16]) for w in range(4)])


FILL = [("store", PLACE, 0, WORDS), ("fence_proxy",), ("barrier",), ("wgmma_begin",)]


def end(n, left=0):
    return [("commit_wgmma",), ("wait_wgmma", SUMS, n // 2, left)]


def product(names, n, majors, adds=1, descriptors=DESCRIPTORS, sums=SUMS, in_halves=0):
    kinds = pack(*map(ELEMENTS.index, names)) | in_halves << 16
    return ("wgmma", descriptors, A_WORDS, sums, kinds, n, pack(*majors), adds)


def sums_of(registers, n, dtype, at=SUMS):
    result = np.empty((64, n), dtype)
    words = n // 2 * result.itemsize // 4
    result[sum_places(n)] = np.ascontiguousarray(registers[:, at : at + words]).view(dtype)
    return result


WIDTHS = {"int8": [8, 24, 32, 64, 256]}
MODES = [NONE, SWIZZLED_128, SWIZZLED_64, SWIZZLED_32]


def majors_of(name):
    return [(a, b) for a in (0, 1, IN_REGISTERS) for b in (0, 1)] if BYTES[name] == 2 else [(0, 0), (IN_REGISTERS, 0)]


def random_operand(generator, name, rows, major, mode, start, most=1e4):
    """In shared memory, as large as its panels: the instruction multiplies the first rows, and K from some place on."""
    k, panel = depth(name), SPANS[mode] // BYTES[name]
    shape = (max(rows, panel), k) if major == 1 else (rows, max(k, panel))
    operand = Operand(random_codes(generator, name, shape, most), major % 2, mode, start)
    return operand, int(generator.integers(shape[1] // k)) * k


def wgmma(names, n, majors, modes, seed, adds=1, dtype=None):
    """One product of random operands, checked."""
    generator = np.random.default_rng(seed)
    memory = generator.integers(0, 256, SHARED).astype(np.uint8)
    sums = random_sums(generator, names[0], (64, n), dtype)
    starts, factors, descriptors = generator.permutation([1, 34]) * 1024, [], []
    for i, rows in enumerate((64, n)):
        start = int(starts[i]) + (int(generator.integers(30)) * 16 if modes[i] == NONE else 0)
        most = OF_HALVES if sums.itemsize == 2 else 1e4
        operand, first = random_operand(generator, names[i], rows, majors[i], modes[i], start, most)
        if majors[i] != IN_REGISTERS:
            operand.write(memory)
        factors.append(operand.codes[:rows, first : first + depth(names[i])])
        descriptors.append(operand.descriptor(first * BYTES[names[i]]))
    registers = wgmma_registers(memory, n, sums)
    set_descriptors(registers, *descriptors)
    registers[:, A_WORDS : A_WORDS + 4] = a_words(names[0], factors[0])
    one = product(names, n, majors, adds, in_halves=int(sums.itemsize == 2))
    succeed([*FILL, one, *end(n)], registers, SHARED)
    a, b = map(values, names, factors)
    check_sums(names[0], sums_of(registers, n, sums.dtype), sums * adds, a, b.T)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("names", [pair for pair in PAIRS if pair[0] != "float64"])
def test_wgmma(names, mode):
    for seed, majors in enumerate(majors_of(names[0])):
        for n in (8, 24, 64, 256):
            wgmma(names, n, majors, (mode, mode), (seed, n))


def test_wgmma_of_matrices_laid_out_differently():
    for seed in range(40):
        generator = np.random.default_rng(seed)
        modes = generator.choice(MODES, 2)
        majors = majors_of("float16")[generator.integers(6)]
        wgmma(("float16", "float16"), int(generator.integers(1, 33)) * 8, majors, modes, seed, seed % 2)


@pytest.mark.parametrize("names", HALVES)
def test_wgmma_with_sums_of_halves(names):
    for seed, majors in enumerate(majors_of(names[0])):
        for n in (8, 24, 64, 256):
            wgmma(names, n, majors, (SWIZZLED_128, SWIZZLED_64), (seed, n), seed % 2, np.float16)


SECOND = SUMS + 16  # other sums of 32 columns
SLICES = [SUMS + 32 + 4 * i for i in range(4)]  # descriptors, by slice of K


@pytest.fixture(scope="module")
def operands():
    """Registers and values for products of (64, 64) by (64, 32), in four slices of K that lie in shared memory."""
    generator = np.random.default_rng(0)
    memory = np.zeros(SHARED, np.uint8)
    a, b = (random_codes(generator, "float16", (rows, 64), OF_HALVES) for rows in (64, 32))
    matrices = Operand(a, 0, SWIZZLED_128, 0), Operand(b, 0, SWIZZLED_128, 8192)
    for matrix in matrices:
        matrix.write(memory)
    sums = random_sums(generator, "float16", (64, 32))
    registers = np.hstack([wgmma_registers(memory, 32, sums), np.zeros((128, 32), np.uint32)])
    for i, place in enumerate(SLICES):
        set_descriptors(registers, *(m.descriptor(32 * i) for m in matrices), place)
    return registers, sums, values("float16", a), values("float16", b).T


STORE, FENCE, BARRIER, BEGIN = FILL
COMMIT = ("commit_wgmma",)
WAIT = [("wait_wgmma", SUMS, 16, left) for left in range(3)]
FRAGMENTS = product(("float16", "float16"), 32, (IN_REGISTERS, 0), 1, SLICES[1])
SLICE = [product(("float16", "float16"), 32, (0, 0), 1, place) for place in SLICES]


@pytest.mark.parametrize(
    "program",
    [
        [*SLICE, COMMIT, WAIT[0]],
        [COMMIT, BEGIN, *SLICE, COMMIT, COMMIT, WAIT[1]],
        [step for one in SLICE for step in (BEGIN, one, COMMIT)] + [WAIT[0]],
        [step for one in SLICE for step in (one, COMMIT)] + [WAIT[0]],
        [step for one in SLICE for step in (BEGIN, one, COMMIT, WAIT[1])] + [WAIT[0]],
        [step for one in SLICE for step in (WAIT[2], BEGIN, one, COMMIT)] + [WAIT[1], WAIT[0]],
        [step for one in SLICE for step in (BEGIN, one, COMMIT, WAIT[0])] + [WAIT[0]],
    ],
)
def test_products_on_the_same_sums(operands, program):
    """In one group or in several, and with waits that leave some in flight."""
    registers, sums, a, b = operands
    found = succeed([*FILL, *program], registers.copy(), SHARED)
    check_sums("float16", sums_of(found, 32, np.float32), sums, a, b, 4)


def test_sums_of_halves_are_no_numbers_until_they_are_waited_for(operands):
    registers, sums, a, b = operands
    halves, registers = sums.astype(np.float16), registers.copy()
    registers[:, SUMS : SUMS + 8] = np.ascontiguousarray(halves[sum_places(32)]).view(np.uint32)
    steps = [product(("float16", "float16"), 32, (0, 0), 1, place, in_halves=1) for place in SLICES]
    begun = [*FILL, *(x for step in steps for x in (step, COMMIT))]
    found = succeed([*begun, ("wait_wgmma", SUMS, 8, 0)], registers.copy(), SHARED)
    check_sums("float16", sums_of(found, 32, np.float16), halves, a, b, 4)
    found = succeed([*begun, ("wait_wgmma", SUMS, 0, 0)], registers.copy(), SHARED)
    assert np.isnan(sums_of(found, 32, np.float16)).all()
    fails([*FILL, steps[0], SLICE[1], *end(32)], registers, SHARED, "program:5: sums of products in flight, mixed")


def test_old_sums_are_not_read_unless_added_to(operands):
    registers, sums, a, b = operands
    registers = registers.copy()
    registers[:, SUMS : SUMS + 16] = 0x7FC00000
    succeed([*FILL, product(("float16", "float16"), 32, (0, 0), 0, SLICES[0]), *end(32)], registers, SHARED)
    check_sums("float16", sums_of(registers, 32, np.float32), 0 * sums, a[:, :16], b[:16])


def test_two_warpgroups_have_products_of_their_own(operands):
    registers, sums, a, b = operands
    both = np.vstack([registers, registers])
    both[128:, SUMS : SUMS + 16] = 0
    succeed([*FILL, *SLICE, *end(32)], both, SHARED)
    check_sums("float16", sums_of(both[:128], 32, np.float32), sums, a, b, 4)
    check_sums("float16", sums_of(both[128:], 32, np.float32), 0 * sums, a, b, 4)


def test_sums_are_not_numbers_until_they_are_waited_for(operands):
    registers, sums, a, b = operands
    second = product(("float16", "float16"), 32, (0, 0), 1, SLICES[1], SECOND)
    for program in (
        [SLICE[0], second, COMMIT, WAIT[0]],
        [SLICE[0], COMMIT, BEGIN, second, COMMIT, WAIT[1], ("wait_wgmma", SUMS, 0, 0)],
    ):
        found = succeed([*FILL, *program], registers.copy(), SHARED)
        check_sums("float16", sums_of(found, 32, np.float32), sums, a[:, :16], b[:16])
        assert np.isnan(sums_of(found, 32, np.float32, SECOND)).all()
    mixed = product(("float16", "float16"), 32, (0, 0), 1, SLICES[1], SUMS + 1)
    fails([*FILL, SLICE[0], mixed, *end(32)], registers, SHARED, "program:5: sums of products in flight, mixed")
    for place, message in [(SUMS, "of a product in flight of another shape"), (SUMS + 8, "in flight, mixed")]:
        narrow = product(("float16", "float16"), 16, (0, 0), 1, SLICES[1], place)
        fails([*FILL, SLICE[0], narrow, *end(32)], registers, SHARED, "program:5: sums", message)


@pytest.mark.parametrize(
    "program, words",
    [
        (
            [STORE, BARRIER, BEGIN, *SLICE, *end(32)],
            ["race", "store (program:0)", "(program:3)", "no fence"],
        ),
        ([STORE, BARRIER, FENCE, BEGIN, *SLICE, *end(32)], ["race", "store (program:0)", "no fence for tensor cores"]),
        ([FENCE, STORE, BARRIER, BEGIN, *SLICE, *end(32)], ["race", "store (program:1)", "no fence for tensor cores"]),
        ([STORE, FENCE, BEGIN, *SLICE, *end(32)], ["race", "store (program:0)", "wgmma (program:3)", "no barrier"]),
        ([STORE, FENCE, BARRIER, *SLICE, *end(32)], ["program:3", "without a fence for its registers"]),
        ([*FILL, SLICE[0], *end(32), SLICE[1], *end(32)], ["program:7", "without a fence for its registers"]),
        ([*FILL, SLICE[0], COMMIT, FRAGMENTS, *end(32)], ["program:6", "without a fence for its registers"]),
        ([*FILL, *SLICE[:2], WAIT[0]], ["program:4", "nothing waits for"]),
        ([*FILL, *SLICE, COMMIT], ["program:4", "nothing waits for"]),
        ([*FILL, *SLICE, COMMIT, WAIT[1]], ["program:4", "nothing waits for"]),
        (
            [*FILL, SLICE[0], COMMIT, BARRIER, STORE, WAIT[0]],
            ["race", "read", "wgmma (program:4)", "written", "store (program:7)", "no wait"],
        ),
        (
            [*FILL, SLICE[0], COMMIT, BEGIN, SLICE[1], COMMIT, WAIT[1], BARRIER, STORE, WAIT[0]],
            ["race", "wgmma (program:7)", "store (program:11)", "no wait"],
        ),
        (
            [*FILL, SLICE[0], *end(32), STORE],
            ["race", "read", "wgmma (program:4)", "written", "store (program:7)", "no barrier"],
        ),
        ([*FILL, SLICE[0], STORE, *end(32)], ["race", "no barrier"]),
    ],
)
def test_what_products_of_a_warpgroup_need(operands, program, words):
    fails(program, operands[0], SHARED, *words)


def test_shared_memory_is_free_after_the_wait_and_a_barrier(operands):
    succeed([*FILL, *SLICE, *end(32), BARRIER, *FILL, *SLICE, *end(32)], operands[0].copy(), SHARED)


def test_products_of_a_warpgroup_that_are_none(operands):
    registers = operands[0]
    fails([*FILL, SLICE[0], *end(32)], registers[:96], SHARED, "takes four warps")
    for names, n, majors in [
        (("float16", "float16"), 20, (0, 0)), (("int8", "int8"), 40, (0, 0)), (("float16", "bfloat16"), 16, (0, 0)),
        (("int8", "int8"), 32, (0, 1)), (("float16", "float16"), 264, (0, 0)), (("float64", "float64"), 8, (0, 0)),
        (("float16", "float16"), 16, (0, IN_REGISTERS)),
    ]:  # fmt: skip
        fails([*FILL, product(names, n, majors, 1, SLICES[0]), *end(32)], registers, SHARED, "has no such product")
    other = registers.copy()
    other[77, SLICES[0]] += 2
    fails([*FILL, SLICE[0], *end(32)], other, SHARED, "different descriptors")
    other = registers.copy()
    other[:, SLICES[0] + 1] |= 1 << 17
    fails([*FILL, SLICE[0], *end(32)], other, SHARED, "other bits than the format's")


# ---- asynchronous copies --------------------------------------------------------------------------------------------


@pytest.fixture
def copies():
    """Registers: 0 a place in shared memory, 1 .. 2 the address and 3 the size of a source; 4 .. 7 those of the next
    four, 8 .. 11 are for data, 12 the place of another thread."""
    source = np.arange(256, dtype=np.uint32).reshape(2, 32, 4)
    registers = np.zeros((32, 13), np.uint32)
    for i in range(2):
        registers[:, 4 * i] = 512 * i + LANES * 16
        addresses = source.ctypes.data + 512 * i + LANES.astype(np.uint64) * 16
        registers[:, 4 * i + 1 : 4 * i + 3] = addresses.view(np.uint32).reshape(32, 2)
        registers[:, 4 * i + 3] = 16
    registers[:, 12] = (31 - LANES) * 16
    return registers, source


FIRST, NEXT, COMMIT_COPIES = ("copy_async", 0, 16), ("copy_async", 4, 16), ("commit_copies",)
LANDED, ALL_BUT_ONE, SYNC = ("wait_copies", 0), ("wait_copies", 1), ("warp_sync",)
READ, READ_OTHERS = ("load", 0, 8, 4), ("load", 12, 8, 4)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_copies(copies, size):
    registers, source = copies
    registers[:, 3] = size * (LANES % 3 > 0)
    program = [("copy_async", 0, size), COMMIT_COPIES, LANDED, SYNC, ("load", 12, 8, size // 4)]
    found = succeed(program, registers, 1024)[::-1, 8 : 8 + size // 4]
    assert (found == source[0, :, : size // 4] * (LANES % 3 > 0)[:, None]).all()


def test_copies_that_are_waited_for_group_by_group(copies):
    registers, source = copies
    program = [FIRST, COMMIT_COPIES, NEXT, COMMIT_COPIES, ALL_BUT_ONE, SYNC, READ_OTHERS, LANDED]
    assert (succeed(program, registers, 1024)[::-1, 8:12] == source[0]).all()


def test_copies_to_one_place(copies):
    """One thread waits for the first; different ones may bring the same."""
    registers, source = copies
    again = [FIRST, COMMIT_COPIES, SYNC, FIRST, COMMIT_COPIES, LANDED]
    fails(again, registers, 512, "race", "(program:0)", "written", "(program:3)", "no wait")
    warps = np.vstack([registers, registers])
    warps[32:, 1:4] = registers[:, 5:8]
    one = [FIRST, COMMIT_COPIES, LANDED]
    fails(one, warps, 512, "race", "(program:0)", "written", "(program:0)", "no barrier")
    fails([FIRST, COMMIT_COPIES, BARRIER, LANDED], warps, 512, "race", "(program:0)", "written", "(program:0)")
    source[1] = source[0]
    succeed([*one, BARRIER, *one], warps, 512)


@pytest.mark.parametrize(
    "program, words",
    [
        ([FIRST, COMMIT_COPIES, SYNC, READ_OTHERS], ["program:0", "an asynchronous copy that nothing waits for"]),
        ([FIRST, LANDED, SYNC, READ_OTHERS], ["program:0", "an asynchronous copy that nothing waits for"]),
        ([FIRST, COMMIT_COPIES, SYNC, READ_OTHERS, SYNC, LANDED], ["race", "(program:0)", "(program:3)", "no wait"]),
        (
            [FIRST, COMMIT_COPIES, LANDED, READ_OTHERS],
            ["race", "(program:3)", "(program:0)", "no barrier"],
        ),
        (
            [READ_OTHERS, FIRST, COMMIT_COPIES, LANDED],
            ["race", "(program:1)", "(program:0)", "no barrier"],
        ),
        ([("copy_async", 0, 12), COMMIT_COPIES, LANDED], ["an asynchronous copy of 12 bytes"]),
        ([("copy_async", 12, 16)], ["misaligned"]),
    ],
)
def test_what_copies_need(copies, program, words):
    registers = copies[0].copy()
    if "misaligned" in words:
        registers[:, 0] += 4
        program = [FIRST]
    fails(program, registers, 1024, *words)


def test_products_of_what_copies_brought(operands):
    """Tensor cores see what copies brought once these are waited for, before a barrier, without a fence."""
    registers, sums, a, b = operands
    content = np.ascontiguousarray(registers[:, :WORDS])
    sources = content.ctypes.data + (THREADS * WORDS * 4)[:, None] + np.arange(WORDS // 4) * 16
    registers = np.hstack([registers, np.zeros((128, WORDS), np.uint32)])
    start = registers.shape[1] - WORDS
    copies = []
    for i in range(WORDS // 4):
        at = start + 4 * i
        registers[:, at] = THREADS * WORDS * 4 + 16 * i
        registers[:, at + 1 : at + 3] = sources[:, i].astype(np.uint64)[:, None].view(np.uint32)
        registers[:, at + 3] = 16
        copies.append(("copy_async", at, 16))
    steps = [*copies, COMMIT_COPIES, LANDED, BARRIER, BEGIN, *SLICE, *end(32)]
    found = succeed(steps, registers.copy(), SHARED)
    check_sums("float16", sums_of(found, 32, np.float32), sums, a, b, 4)
    for left_out, word in [(LANDED, "no wait"), (BARRIER, "no barrier")]:
        without = [step for step in steps if step != left_out]
        message = run(without, registers.copy(), SHARED)
        assert message and (word in message or "nothing waits" in message), message
