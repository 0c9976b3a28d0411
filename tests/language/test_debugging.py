"""What a launch with debug=True checks and says: the same words on every target, and the next launch works."""

import re

import numpy as np
import pytest
from harness import Buffer, jit

import triton


def told(kernel, grid, *arguments, **options):
    """The kind of error that a checked launch ends with, and its text behind the name of the kernel's file."""
    with pytest.raises(triton.KernelError) as error:
        kernel[grid](*arguments, debug=True, **options)
    text, checks = str(error.value), "DeviceAssertionError IntegerOverflowError DivisionByZeroError"
    if type(error.value).__name__ in checks.split():
        assert text.endswith(" (device-side assert)"), text
        text = text.removesuffix(" (device-side assert)")
    assert text.startswith(f"kernel '{kernel.__name__}': <kernel "), text
    return type(error.value), re.sub(r"<kernel \d+>", "file", text).split(": ", 1)[1]


def ints(*values, dtype=np.int32):
    return Buffer(np.array(values, dtype))


COPY = jit("""
    @triton.jit
    def fetch(pointer, mask):
        return tl.load(pointer, mask=mask)

    @triton.jit
    def copy(source, target, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = fetch(source + i, i < n)
        tl.store(target + i, value, mask=i < n)
""")


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64])
def test_a_load_out_of_bounds(dtype):
    source, target = Buffer(np.ones(700, dtype)), Buffer(np.zeros(1000, dtype))
    kind, text = told(COPY, (4,), source.argument, target.argument, 701, BLOCK=256)
    assert kind is triton.MemoryAccessError
    assert text == (
        "file:3, called at file:8: load out of bounds of the array 'source': index 700, and it has 700 elements, "
        "in program (2, 0, 0)"
    )
    COPY[(4,)](source.argument, target.argument, 700, BLOCK=256, debug=True)
    assert target.host().values.sum() == 700


def test_a_store_out_of_bounds():
    kernel = jit("""
        def kernel(x, row, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
            i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
            tl.store(x + row * COLUMNS + i, i.to(tl.int32))
    """)
    x = Buffer(np.zeros((48, 16), np.int32))
    kind, text = told(kernel, (1,), x.argument, 17, ROWS=32, COLUMNS=16)
    assert kind is triton.MemoryAccessError
    found = re.fullmatch(
        r"file:3: store out of bounds of the array 'x': index (\d+), and it has 768 elements, in program \(0, 0, 0\)",
        text,
    )
    assert 768 <= int(found[1]) < (17 + 32) * 16  # any of the last row
    kernel[(1,)](x.argument, 16, ROWS=32, COLUMNS=16, debug=True)
    assert (x.host().values[16:].ravel() == np.arange(512)).all()


def test_an_index_below_the_array():
    kernel = jit("""
        def kernel(x, offset):
            tl.atomic_add(x + offset, 1)
    """)
    x = ints(1, 2, 3)
    kind, text = told(kernel, (1, 1, 1), x.argument, -1)
    assert kind is triton.MemoryAccessError
    words = "atomic access out of bounds of the array 'x': index -1, and it has 3 elements"
    assert text == f"file:2: {words}, in program (0, 0, 0)"


def test_assertions():
    kernel = jit("""
        def kernel(x, limit, BLOCK: tl.constexpr):
            i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
            tl.device_assert(tl.load(x + i) < limit, "more than {0}, out of bounds and 100%")
            tl.store(x + i, 7)
    """)
    x = Buffer(np.arange(256, dtype=np.int32))
    kind, text = told(kernel, (1, 4), x.argument, 255, BLOCK=64)
    assert kind is triton.DeviceAssertionError
    assert text == "file:3: assertion failed: more than {0}, out of bounds and 100%, in program (0, 3, 0)"
    y = Buffer(np.arange(256, dtype=np.int32))
    kernel[(1, 4)](y.argument, 256, BLOCK=64, debug=True)
    assert (y.host().values == 7).all()


def test_assertions_that_constants_decide():
    """They count where the program comes by, as all others do, and not while compiling."""
    kernel = jit("""
        @triton.jit
        def add(x, N: tl.constexpr):
            assert N > 3, "inlined"
            return x + N


        @triton.jit
        def kernel(out, n, N: tl.constexpr):
            if N == 2:
                assert False, "two"
            elif N != 3:
                assert N, f"no {N}"
            assert N == 2 or N == 3 or N >= 5, f"an f-string of {n}" if N == 5 else "four"
            if n > 5:
                assert False, "many"
            tl.store(out, add(n, N))
    """)
    for n, constant, line, said in (
        (0, 2, 10, "two"),
        (0, 3, "3, called at file:16", "inlined"),
        (0, 4, 13, "four"),
        (6, 5, 15, "many"),
        (5, 5, None, None),
    ):
        out = ints(0)
        kernel[(1,)](out.argument, n, N=constant, debug=False)
        assert out.host().values == n + constant
        if line is None:
            kernel[(1,)](out.argument, n, N=constant, debug=True)
        else:
            kind, text = told(kernel, (1,), out.argument, n, N=constant)
            assert kind is triton.DeviceAssertionError
            assert text == f"file:{line}: assertion failed: {said}, in program (0, 0, 0)"


def test_what_is_expected_to_be_zero():
    kernel = jit("""
        def kernel(x, out, limit):
            i = tl.arange(0, 64)
            value = tl.load(x + i)
            tl.store(out + i, tl.expect_zero(value, i < limit))
    """)
    x = np.arange(64, dtype=np.float32)
    x[:8] = 0
    out = Buffer(np.zeros(64, np.float32))
    kernel[(1,)](Buffer(x).argument, out.argument, 8, debug=True)
    assert (out.host().values == x).all()
    kernel[(1,)](Buffer(x).argument, out.argument, 9, debug=False)
    with pytest.raises(triton.DeviceAssertionError, match="<kernel .*>:4: .* under the mask is not 0"):
        kernel[(1,)](Buffer(x).argument, out.argument, 9, debug=True)


def test_many_programs_fail_at_once():
    kernel = jit("""
        def kernel(x, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            value = tl.load(x + i)
            tl.device_assert(value < 0, "all of them")
            tl.store(x + i, tl.sum(value, 0) + value)
    """)
    x = Buffer(np.zeros(64 * 128, np.int32))
    for _ in range(3):
        kind, text = told(kernel, (64,), x.argument, BLOCK=128)
        assert kind is triton.DeviceAssertionError
        assert re.fullmatch(r"file:4: assertion failed: all of them, in program \(\d+, 0, 0\)", text)
    assert not x.host().values.any()


def test_no_program_waits_for_one_that_failed():
    """The fourth to have the lock fails while it holds it, and the others wait for it."""
    kernel = jit("""
        def kernel(lock, x):
            program = tl.program_id(0)
            while tl.atomic_cas(lock, 0, 1) == 1:
                pass
            tl.device_assert(tl.load(x) < 3, "the lock is held")
            tl.store(x, tl.load(x) + 1)
            tl.debug_barrier()
            tl.atomic_xchg(lock, 0)
    """)
    lock, x = ints(0), ints(0)
    kind, text = told(kernel, (64,), lock.argument, x.argument)
    assert re.fullmatch(r"file:5: assertion failed: the lock is held, in program \(\d+, 0, 0\)", text)
    assert (x.host().values, lock.host().values) == (3, 1)


# ---- overflow

ARITHMETIC = """
    def kernel(x, y, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        tl.store(x + i, {})
"""
LOADED = "tl.load(x + i) {} tl.load(y + i)"


def limits(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_overflow(dtype, operator):
    low, high = limits(dtype)
    root = 1 << (dtype(0).nbytes * 4 - 1)
    failing = {
        "+": [(high, 1), (low, -1), (high, high), (low, low)],
        "-": [(high, -1), (low, 1), (0, low), (low, high), (-2, high)],
        "*": [(high, 2), (low, -1), (-1, low), (2 * root, root), (-root, -2 * root)],
    }[operator]
    holding = {
        "+": [(high, 0), (low, 0), (high, low), (high - 1, 1), (-1, low + 1)],
        "-": [(high, high), (low, low), (-1, high), (-1, low), (low + 1, 1)],
        "*": [(high, 1), (low, 1), (high, -1), (-root, 2 * root), (0, low), (-1, high)],
    }[operator]
    kernel = jit(ARITHMETIC.format(LOADED.format(operator)))
    for left, right in failing:
        x, y = np.ones(64, dtype), np.ones(64, dtype)
        x[41], y[41] = left, right
        kind, text = told(kernel, (1,), Buffer(x).argument, Buffer(y).argument, SIZE=64)
        assert kind is triton.IntegerOverflowError
        name = np.dtype(dtype).name
        assert text == f"file:3: {name} overflow in `{operator}` of {left} and {right}, in program (0, 0, 0)"
    x, y = (np.array(values, dtype) for values in zip(*holding, strict=True))
    result = Buffer(x)
    kernel[(1,)](result.argument, Buffer(y).argument, SIZE=len(x), debug=True)
    assert (result.host().values == eval(f"x {operator} y")).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, np.uint32])
@pytest.mark.parametrize("operator", ["//", "%"])
def test_division_by_zero(dtype, operator):
    name = np.dtype(dtype).name
    kernel = jit(ARITHMETIC.format(LOADED.format(operator)))
    x, y = np.full(100, 7, dtype), np.full(100, 3, dtype)
    result = Buffer(x)
    kernel[(1,)](result.argument, Buffer(y).argument, SIZE=100, debug=True)
    assert (result.host().values == eval(f"x {operator} y")).all()
    y[97] = 0
    kind, text = told(kernel, (1,), Buffer(x).argument, Buffer(y).argument, SIZE=100)
    assert kind is triton.DivisionByZeroError
    assert text == f"file:3: {name} division by zero in `{operator}` of 7 and 0, in program (0, 0, 0)"
    kernel[(1,)](Buffer(x).argument, Buffer(y).argument, SIZE=100, debug=True, sanitize_overflow=False)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_quotient_that_overflows(dtype):
    low, _ = limits(dtype)
    x, y = np.full(20, low, dtype), np.full(20, -1, dtype)
    quotients, remainders = (jit(ARITHMETIC.format(LOADED.format(operator))) for operator in ("//", "%"))
    kind, text = told(quotients, (1,), Buffer(x).argument, Buffer(y).argument, SIZE=20)
    assert kind is triton.IntegerOverflowError
    name = np.dtype(dtype).name
    assert text == f"file:3: {name} overflow in `//` of {low} and -1, in program (0, 0, 0)"
    result = Buffer(x)
    remainders[(1,)](result.argument, Buffer(y).argument, SIZE=20, debug=True)
    assert not result.host().values.any()


def test_what_may_wrap_around():
    """Unsigned integers, what says so itself, and everything where the launch says so."""
    ones = Buffer(np.ones(4, np.uint32))
    x = Buffer(np.full(4, 2**32 - 1, np.uint32))
    jit(ARITHMETIC.format(LOADED.format("+")))[(1,)](x.argument, ones.argument, SIZE=4, debug=True)
    assert not x.host().values.any()
    ones = ints(1, 1, 1, 1)
    wraps = jit(ARITHMETIC.format("tl.add(tl.load(x + i), tl.load(y + i), sanitize_overflow=False)"))
    for kernel, options in ((wraps, {}), (jit(ARITHMETIC.format(LOADED.format("+"))), {"sanitize_overflow": False})):
        x = Buffer(np.full(4, 2**31 - 1, np.int32))
        kernel[(1,)](x.argument, ones.argument, SIZE=4, debug=True, **options)
        assert (x.host().values == -(2**31)).all()


def test_debugging_by_the_environment(monkeypatch):
    monkeypatch.setenv("TRITON_DEBUG", "1")
    kernel = jit(ARITHMETIC.format(LOADED.format("*")))
    with pytest.raises(triton.IntegerOverflowError, match=r"int32 overflow in `\*` of 65536 and 32768"):
        kernel[(1,)](ints(1, 65536).argument, ints(2, 32768).argument, SIZE=2)
    monkeypatch.setenv("TRITON_DEBUG", "0")
    jit(ARITHMETIC.format(LOADED.format("*")))[(1,)](ints(1, 65536).argument, ints(2, 32768).argument, SIZE=2)
