"""Tiles, pointers, block pointers and tuples of them through branches, loops and calls."""

# ruff: noqa: SIM108 -- both forms of a choice are tested

import numpy as np
import pytest

import triton
import triton.language as tl

SIZE = tl.constexpr(16)


def run(kernel, *args, grid=(1,)):
    out = np.zeros(64, np.float32)
    kernel[grid](out, *args)
    return out


@triton.jit
def branches(out, n, flag):
    offsets = tl.arange(0, SIZE)
    if n > 2:
        x = offsets * 2
        y = tl.zeros((SIZE,), tl.float32)
    elif flag:
        x = offsets + n
        y = x.to(tl.float32)
    else:
        x = tl.full((SIZE,), 7, tl.int32)
        y = tl.full((SIZE,), 1.5, tl.float32)
        if n == 0:
            return
    z = y + 1.0 if flag else y - 1.0
    tl.store(out + offsets, x + z)


def test_branches():
    i = np.arange(16)
    for n in (0, 1, 2, 3, 16):
        for flag in (True, False):
            x, y = (i * 2, 0) if n > 2 else (i + n, i + n) if flag else (7, 1.5)
            expected = np.zeros(64, np.float32)
            if n > 2 or flag or n != 0:
                expected[:16] = x + y + (1 if flag else -1)
            np.testing.assert_array_equal(run(branches, n, flag), expected)


@triton.jit
def loops(out, x, n, limit):
    offsets = tl.arange(0, SIZE)
    pointers = x + offsets
    total = tl.zeros((SIZE,), tl.float32)
    state = (total, (pointers, 0))
    for i in range(0, n):
        sums, (at, count) = state
        values = tl.load(at)
        if tl.max(values, axis=0) > limit:
            break
        if i % 2 == 1:
            state = (sums, (at + SIZE, count + 1))
            continue
        state = (sums + values, (at + SIZE, count + 1))
    while state[1][1] < 3:
        state = (state[0] + 100.0, (state[1][0], state[1][1] + 1))
    tl.store(out + offsets, state[0])
    tl.store(out + 32, state[1][1])


def test_loops():
    x = np.arange(16 * 8, dtype=np.float32)
    for n in (0, 1, 2, 5, 8):
        for limit in (10.0, 50.0, 1000.0):
            total, count = np.zeros(16, np.float32), 0
            for i in range(n):
                values = x[16 * i : 16 * i + 16]
                if values.max() > limit:
                    break
                total, count = total + values * (i % 2 == 0), count + 1
            total, count = total + 100 * max(0, 3 - count), max(count, 3)
            out = run(loops, x, n, limit)
            np.testing.assert_array_equal(out[:16], total)
            assert out[32] == count


@triton.jit
def block_pointers(out, x, n, transposed):
    a = tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))
    if transposed:
        a = tl.advance(a, (4, 0))
    else:
        a = tl.advance(a, (0, 4))
    total = tl.zeros((4, 4), tl.float32)
    for i in range(n):
        total += tl.load(a)
        if i == 1:
            a = tl.advance(a, (-4, 0)) if transposed else tl.advance(a, (0, -4))
    tl.store(tl.make_block_ptr(out, (4, 4), (4, 1), (0, 0), (4, 4), (1, 0)), total)


def test_block_pointers():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    for n in (0, 1, 3):
        for transposed in (True, False):
            first = x[4:, :4] if transposed else x[:4, 4:]
            expected = first * min(n, 2) + x[:4, :4] * max(n - 2, 0)
            np.testing.assert_array_equal(run(block_pointers, x, n, transposed)[:16].reshape(4, 4), expected)


@triton.jit
def find(x, n, wanted):
    """A return out of two loops, with a tile for a result."""
    for i in range(n):
        row = tl.load(x + i * SIZE + tl.arange(0, SIZE))
        for j in range(4):
            if tl.sum(row, axis=0) + j == wanted:
                return row * 2, i
    return tl.zeros((SIZE,), tl.float32), -1


@triton.jit
def finds(out, x, n, wanted):
    row, i = find(x, n, wanted)
    tl.store(out + tl.arange(0, SIZE), row)
    tl.store(out + 20, i)


def test_return_out_of_loops():
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    sums = x.sum(axis=1)
    for wanted in (sums[0], sums[2] + 3, 5.0):
        out = run(finds, x, 4, float(wanted))
        hits = [i for i in range(4) if 0 <= wanted - sums[i] < 4]
        np.testing.assert_array_equal(out[:16], x[hits[0]] * 2 if hits else 0)
        assert out[20] == (hits[0] if hits else -1)


@triton.jit
def maximum_and_index(a, i, b, j):
    if a > b or (a == b and i < j):
        return a, i
    return b, j


@triton.jit
def reduces(out, x):
    values = tl.load(x + tl.arange(0, SIZE))
    value, index = tl.reduce((values, tl.arange(0, SIZE)), 0, maximum_and_index)
    tl.store(out, value)
    tl.store(out + 1, index)


def test_branches_in_a_combine_function():
    x = np.array([1, 5, 2, 5, 0, -1, 3, 4] * 2, np.float32)
    assert list(run(reduces, x)[:2]) == [5, 1]


@triton.jit
def guarded_loads(out, x, n):
    """Nothing is loaded past the end: the second operand of `and` is not evaluated."""
    i = 0
    while i < n and tl.load(x + i) >= 0:
        i += 1
    j = tl.load(x + n) if n < 4 else -1.0
    tl.store(out, i)
    tl.store(out + 1, j)


def test_guarded_loads():
    x = np.array([1, 2, -1, 3], np.float32)
    assert list(run(guarded_loads, x, 4)[:2]) == [2, -1]
    assert list(run(guarded_loads, x, 2)[:2]) == [2, -1]
    assert list(run(guarded_loads, x, 3)[:2]) == [2, 3]


@triton.jit
def wide_bounds(out, start, stop, step: tl.constexpr):
    count = 0
    last = start.to(tl.int64)
    for i in range(start, stop, step):
        count += 1
        last = i.to(tl.int64)
    tl.store(out, count)
    tl.store(out + 1, last)


@pytest.mark.parametrize("start, stop, step", [(2**40, 2**40 + 10, 3), (5, -(2**40), -(2**39)), (2**40, 0, 1)])
def test_wide_bounds(start, stop, step):
    out = np.zeros(4, np.int64)
    wide_bounds[(1,)](out, start, stop, step)
    values = list(range(start, stop, step))
    assert list(out[:2]) == [len(values), values[-1] if values else start]


@triton.jit
def unsigned_bounds(out, x):
    n = tl.load(x)
    count = 0
    for i in range(n - 5, n):
        tl.static_assert(i.dtype == tl.uint32)
        count += 1
    for _ in range(3, n - n - 1 + 1, -1):
        count += 10
    tl.store(out, count)


def test_unsigned_bounds():
    x = np.array([2**32 - 1], np.uint32)
    assert run(unsigned_bounds, x)[0] == 35
