"""The simulator's tensor cores and asynchronous copies, one instruction at a time: results against NumPy, with fragments
and matrices laid out as the PTX manual has it; and that every missing wait, fence or barrier is found."""

import re

import numpy as np
import pytest
from harness import code_values

from triton import _C

OPCODES = (
    "store load barrier warp_sync load_matrices store_matrices mma wgmma_begin wgmma commit_wgmma wait_wgmma copy_async "
    "commit_copies wait_copies fence_proxy"
).split()
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
PAIRS = [(name, name) for name in ELEMENTS] + [("float8e4nv", "float8e5"), ("float8e5", "float8e4nv")]


def depth(name):
    return 8 if name == "float64" else 32 // BYTES[name]


def random_codes(generator, name, shape):
    """Elements as bits; every code of a format may come up, but for infinities and NaN."""
    if name == "float64":
        return generator.standard_normal(shape).view(np.uint64)
    if name == "tf32":
        return generator.standard_normal(shape).astype(np.float32).view(np.uint32)
    if name == "int8":
        return generator.integers(0, 256, shape).astype(np.uint8)
    values = code_values(name)
    modest = np.flatnonzero(np.isfinite(values) & (np.abs(values) < 1e4))
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


def sum_type(name):
    return {"int8": np.int32, "float64": np.float64}.get(name, np.float32)


def random_sums(generator, name, shape):
    dtype = sum_type(name)
    return generator.integers(-1000, 1000, shape).astype(dtype) if name == "int8" else generator.normal(
        size=shape
    ).astype(dtype)


def check_sums(name, found, sums, a, b):
    """a and b hold values; the sums of one or more instructions, each rounded once."""
    exact = sums.astype(np.float64) + a @ b
    if name == "int8":
        assert (found == exact.astype(np.int64).astype(np.int32)).all()
    else:
        size = np.abs(sums) + np.abs(a) @ np.abs(b)
        assert (np.abs(found - exact) <= size * (1e-15 if name == "float64" else 2.0**-23)).all()


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
    own = np.ascontiguousarray(sums[rows, columns])
    own = slots(own.view(f"u{own.itemsize}"))
    registers = np.hstack([slots(a_fragment(names[0], a)), slots(b_fragment(names[1], b)), own])
    succeed([("mma", 0, ELEMENTS.index(names[0]), ELEMENTS.index(names[1]))], registers)
    found = np.ascontiguousarray(registers[:, 12:]).view(np.uint64)
    result = np.empty_like(sums)
    result[rows, columns] = found.astype(f"u{sums.itemsize}").view(sums.dtype)
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


@pytest.mark.parametrize("name", ELEMENTS)
def test_each_element_of_a_product_counts(name):
    """A product with the identity gives every element of the other operand, in its place."""
    if name in ("int8",):
        one = np.uint8(1)
    else:
        one = {"float16": 0x3C00, "bfloat16": 0x3F80, "tf32": 0x3F800000, "float8e4nv": 0x38, "float8e5": 0x3C,
               "float64": 0x3FF0000000000000}[name]  # fmt: skip
    generator, k = np.random.default_rng(1), depth(name)
    zeros = np.zeros((16, 8), sum_type(name))
    for start in range(0, k, 8):
        a, b = random_codes(generator, name, (16, k)), np.zeros((k, 8), f"u{BYTES[name]}")
        b[start + np.arange(8), np.arange(8)] = one
        assert (mma((name, name), a, b, zeros) == values(name, a)[:, start : start + 8]).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8e4nv", "float8e5"])
def test_every_code_of_a_format(name):
    """NaN, infinities and subnormals included: row 0 of a holds the codes, one at a time."""
    k, one = depth(name), {"float16": 0x3C00, "bfloat16": 0x3F80, "float8e4nv": 0x38, "float8e5": 0x3C}[name]
    codes = np.arange(1 << 8 * BYTES[name])
    if len(codes) > 256:
        codes = np.concatenate([codes[::97], [0x7C00, 0xFC00, 0x7F80, 0x7F81, 0x7C01, 1, 0x8001]])
    wanted = values(name, codes)
    for start in range(0, len(codes) - 15, 16):
        a, b = np.zeros((16, k), f"u{BYTES[name]}"), np.zeros((k, 8), f"u{BYTES[name]}")
        a[:, 0], b[0, :] = codes[start : start + 16], one
        with np.errstate(invalid="ignore"):
            found = mma((name, name), a, b, np.zeros((16, 8), np.float32))
        np.testing.assert_array_equal(found[:, 3], wanted[start : start + 16].astype(np.float32))


def test_sums_of_integers_wrap():
    a, b = np.full((16, 32), 0x80, np.uint8), np.full((32, 8), 0x80, np.uint8)
    found = mma(("int8", "int8"), a, b, np.full((16, 8), 2**31 - 1, np.int32))
    assert (found == -(2**31) + 32 * 128 * 128 - 1).all()


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
