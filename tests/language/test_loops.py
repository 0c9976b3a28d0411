"""Loops, branches and early returns around tiles, loads and stores; every kind of range."""

import os
import subprocess
import sys

import numpy as np
import pytest
from harness import Buffer, check, jit

import triton
import triton.language as tl

X = np.arange(1, 9, dtype=np.int32)


def result(source, *arguments, dtype=np.int32, count=1, **options):
    """What a kernel `kernel(out, ...)` leaves in `out`, which starts as -1; a number when there is one element."""
    out = Buffer(np.full(count, -1, dtype))
    jit(source)[(1,)](out.argument, *arguments, **options)
    values = out.host().values
    return values[0] if count == 1 else values.tolist()


def test_tiles_are_carried_through_loops():
    code = """
        a = tl.zeros((8,), tl.int32)
        b = x
        for i in range(n):
            a, b = a + b, b + i
        out = a
    """
    a, b = np.zeros(8, np.int32), X
    for i in range(5):
        a, b = a + b, b + i
    check(code, {"x": X, "n": 5}, a.astype(np.int32))
    check(code, {"x": X, "n": 0}, np.zeros(8, np.int32))


def test_tiles_in_branches():
    code = """
        if n > 3:
            y = x * 2
        else:
            y = x - 1
        out = y + 1
    """
    check(code, {"x": X, "n": 5}, X * 2 + 1)
    check(code, {"x": X, "n": 1}, X)


def test_ternary_of_tiles():
    check("x if n > 3 else -x", {"x": X, "n": 5}, X)
    check("x if n > 3 else -x", {"x": X, "n": 2}, -X)
    check("tl.where(n > 3, x, -x)", {"x": X, "n": 2}, -X)


def test_only_the_taken_branch_has_effects():
    source = """
        def kernel(out, n):
            if n > 2:
                tl.store(out, 1)
            else:
                tl.store(out + 1, 2)
            if n == 4:
                tl.store(out + 2, 3)
    """
    assert result(source, 1, count=3) == [-1, 2, -1]
    assert result(source, 3, count=3) == [1, -1, -1]
    assert result(source, 4, count=3) == [1, -1, 3]


def test_early_return_of_the_kernel():
    source = """
        def kernel(out, n):
            i = tl.program_id(0)
            if i >= n:
                return
            tl.store(out + i, i)
    """
    out = Buffer(np.full(8, -1, np.int32))
    jit(source)[(8,)](out.argument, 5)
    assert out.host().values.tolist() == [0, 1, 2, 3, 4, -1, -1, -1]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_loads_and_stores_in_loops(n):
    code = """
        for i in range(n):
            tl.store(x_ptr + i, tl.load(x_ptr + i) * 10)
        out = tl.load(x_ptr + tl.arange(0, 8))
    """
    check(code, {"x": X, "n": n}, np.where(np.arange(8) < n, X * 10, X))


LOOPS = [
    "range(4)", "tl.range(4)", "tl.range(0, 4)", "tl.range(0, 4, 1, num_stages=3)", "tl.range(4, loop_unroll_factor=2)",
    "tl.range(0, 4, flatten=True)", "tl.range(4, warp_specialize=True)", "tl.range(4, disallow_acc_multi_buffer=True)",
    "tl.static_range(4)", "tl.static_range(0, 4)", "range(n)", "tl.range(n, num_stages=2)", "range(C)",
    "tl.static_range(C)",
    "tl.range(0, n, loop_unroll_factor=3)", "tl.static_range(0, 8, 2)", "tl.static_range(3, -1, -1)",
    "tl.range(2 * n, step=2)", "tl.range(arg2=8, arg1=0, step=2)", "tl.static_range(8, step=2)",
    "tl.static_range(step=2, arg1=0, arg2=8)",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*warp_specialize=True is not done:UserWarning")
@pytest.mark.parametrize("loop", LOOPS)
def test_every_kind_of_loop(loop):
    import triton.language as tl

    code = f"out = x\nfor i in {loop}:\n    out = out * 2 + i"
    indices = [0, 2, 4, 6] if "step=2" in loop or "8, 2" in loop else [3, 2, 1, 0] if "-1" in loop else [0, 1, 2, 3]
    expected = X
    for i in indices:
        expected = expected * 2 + i
    check(code, {"x": X, "n": 4}, expected.astype(np.int32), names={"C": tl.constexpr(4)})


def test_static_range_gives_constants():
    code = """
        out = tl.zeros((16,), tl.int32)
        for k in tl.static_range(5):
            out += tl.sum(tl.arange(0, 2 ** k)) * tl.full((16,), k, tl.int32)
    """
    expected = sum(int(np.arange(2**k).sum()) * k for k in range(5))
    check(code, {}, np.full(16, expected, np.int32))


def test_64_bit_loops():
    check("out = n * 0\nfor i in range(n, n + 3):\n    out += i", {"n": 2**33}, np.asarray(3 * 2**33 + 3))


EXTREMES = [
    (0, 2**31 - 1, 2**30), (2**31 - 10, 2**31 - 1, 4), (-(2**31), 2**31 - 1, 2**30), (2 * 10**9, -2 * 10**9, -(10**9)),
    (-(2**31), 1, -1), (2**31 - 1, -1, -(2**30)), (0, -(2**31), -(2**31)), (10, -5, -4), (2**63 - 10, 2**63 - 1, 4),
]  # fmt: skip


@pytest.mark.parametrize("bounds", EXTREMES)
@pytest.mark.parametrize("leaves", [False, True])
def test_ranges_that_end_where_integers_do(bounds, leaves):
    count, total = len(range(*bounds)), sum(range(*bounds))
    code = f"""
        count, total = 0, n * 0
        for i in range(a, b, {bounds[2]}):
            count += 1
            total += i
            {"if count == n:" if leaves else "if False:"}
                break
    """
    numbers = {"a": bounds[0], "b": bounds[1], "n": np.array(2**40, np.int64)}
    expected = np.asarray(total % 2**64, np.uint64).astype(np.int64)
    check(code, numbers, {"count": np.asarray(count, np.int32), "total": expected})


ENDS = [(0, n) for n in range(7)] + [(-3, 4), (5, 5), (2**31 - 3, 2**31 - 1), (0, 2**31 - 1), (-(2**31), 2**31 - 1)]


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("step", ["1", "2", "2**29", "s"])
@pytest.mark.parametrize("hint", ["", ", loop_unroll_factor=2"])
def test_loops_that_load_in_pairs(ends, step, hint):
    """Of an even or odd number of iterations, up to where integers end."""
    if ends[1] - ends[0] > 100 and step in "12":
        return
    indices = range(*ends, {"s": 2**28 + 1}.get(step) or eval(step))
    code = f"""
        total = tl.zeros((8,), tl.float32)
        for i in tl.range(a, b, {step}{"" if step == "s" else hint}):
            total = total * 0.5 + tl.load(x_ptr + (tl.arange(0, 8) + i % 4 + 4) % 8)
    """
    x, expected = np.arange(8, dtype=np.float32) ** 2, np.zeros(8, np.float32)
    for i in indices:
        remainder = i % 4 - 4 if i < 0 and i % 4 else i % 4  # rounded toward zero
        expected = expected * np.float32(0.5) + x[(np.arange(8) + remainder + 4) % 8]
    check(code, {"x": x, "a": ends[0], "b": ends[1], "s": 2**28 + 1}, {"total": expected})


@pytest.mark.compiled  # Python counts down
@pytest.mark.parametrize("step", ["n - 8", "0 - tl.num_programs(0)", "(tl.num_programs(0) < -1).to(tl.int32) - 3"])
def test_steps_that_turn_out_negative(step):
    """A run-time step has to be positive; where it is not, the loop ends all the same."""
    code = f"s = {step}\nout = 0\nfor i in range(n, 4, s):\n    out += 1"
    check(code, {"n": 5}, np.asarray(0, np.int32))
    check(f"{code}\nout = (out < 5).to(tl.int32)", {"n": 1}, np.asarray(1, np.int32))


def test_loop_bounds_are_evaluated_once():
    check("m = n\nout = 0\nfor i in range(m):\n    m += 5\n    out += 1", {"n": 4}, np.asarray(4, np.int32))


def test_unsigned_and_mixed_bounds():
    check("out = 0\nfor i in range(u, 4):\n    out += 1", {"u": np.array(1, np.uint8)}, np.asarray(3, np.int32))


def test_many_iterations():
    check(
        "out = 0\nfor i in range(n):\n    out = (out * 31 + i) & 65535",
        {"n": 100_000},
        np.asarray(_hash(100_000), np.int32),
    )


def _hash(n):
    value = 0
    for i in range(n):
        value = (value * 31 + i) & 65535
    return value


def test_variables_of_a_branch_that_is_never_left_open():
    """A name assigned in both branches exists after them; one of them may return."""
    source = """
        def kernel(out, n):
            if n > 2:
                value = 7
            else:
                tl.store(out, 0)
                return
            tl.store(out, value)
    """
    assert result(source, 3) == 7 and result(source, 1) == 0


def test_tiles_change_places_in_a_branch():
    source = """
        def kernel(out, n):
            a = tl.arange(0, 4) + 1
            b = a * 10
            for i in range(n):
                if i % 3 != 1:
                    a, b = b, a
            tl.store(out + tl.arange(0, 4), a)
            tl.store(out + 4 + tl.arange(0, 4), b)
    """
    a, b = [1, 2, 3, 4], [10, 20, 30, 40]
    for n, swapped in [(0, False), (1, True), (2, True), (3, False), (4, True)]:
        assert result(source, n, count=8) == (b + a if swapped else a + b)


def test_branches_assign_what_both_carried_tiles_gave():
    source = """
        def kernel(out, n, flag):
            a = tl.arange(0, 4)
            b = tl.flip(a)
            while n > 0:
                n -= 1
                b = a + b
                if flag == 1:
                    a = b
                elif flag == 2:
                    a, b = b + 1, a
                else:
                    b = tl.sum(a) + a
                    a = a * 2
            tl.store(out + tl.arange(0, 4), a)
            tl.store(out + 4 + tl.arange(0, 4), b)
    """
    for flag in range(3):
        a, b = np.arange(4), np.arange(4)[::-1]
        for n in range(4):
            assert result(source, n, flag, count=8) == [*a, *b], (flag, n)
            b = a + b
            a, b = [(a * 2, a.sum() + a), (b, b), (b + 1, a)][flag]


def test_a_loop_keeps_what_was_computed_from_the_tile_that_it_changes():
    source = """
        def kernel(out, n, m):
            a = tl.arange(0, 4)
            for i in range(n):
                before = a + 1
                for j in range(m):
                    a = a * 2 + before
            tl.store(out + tl.arange(0, 4), a)
    """
    a = np.arange(4)
    for n in range(4):
        assert result(source, n, 3, count=4) == a.tolist()
        before = a + 1
        for _ in range(3):
            a = a * 2 + before


def test_conditions_of_every_type():
    for n, expected in [(0, 2), (5, 1), (-1, 1)]:
        check("1 if n else 2", {"n": n}, np.asarray(expected, np.int32))
    check("1 if n else 2", {"n": 0.0}, np.asarray(2, np.int32))
    check("1 if tl.sum(x) > 3 else 2", {"x": X}, np.asarray(1, np.int32))
    check("1 if x else 2", {"x": np.array([3], np.int32)}, np.asarray(1, np.int32))


@triton.jit
def collatz(n_ptr, steps_ptr):
    n = tl.load(n_ptr)
    steps = 0
    while tl.condition(n > 1, disable_licm=True):
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(steps_ptr, steps)


def test_conditions_with_hints():
    n, steps = Buffer(np.array([27], np.int32)), Buffer(np.zeros(1, np.int32))
    collatz[(1,)](n.argument, steps.argument)
    assert steps.host().values[0] == 111


@triton.jit
def goes_on_for_ever(x_ptr, n):
    while n > 0:
        pass
    tl.store(x_ptr, 1)


@pytest.mark.host  # a GPU would be busy for ever
@pytest.mark.compiled
def test_a_loop_that_never_ends_keeps_what_follows_from_happening():
    x = np.zeros(1, np.int32)
    compiled = goes_on_for_ever[(1,)](x, -1)
    assert x == 1
    assert compiled.asm["ttir"].index("while") < compiled.asm["ttir"].index("store")
    launch = "goes_on_for_ever[(1,)](x, -1); print('compiled', flush=True); goes_on_for_ever[(1,)](x, 1)"
    code = f"import numpy as np; from test_loops import *; x = np.zeros(1, np.int32); {launch}"
    folders = os.pathsep.join([os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__)), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": folders}, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"compiled\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
        other.kill()


@triton.jit
def staying_sums(x_ptr, scale_ptr, out_ptr, rows, columns, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0)
        scale = tl.load(scale_ptr + row)
        below = tl.cumsum(x) * scale
        tl.store(out_ptr + row * columns + at, below - tl.sum(x), mask=at < columns)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("rows, columns", [(1, 64), (2, 200), (7, 256), (13, 33)])
def test_rows_by_programs_that_stay(stages, rows, columns):
    """Fewer rows than programs, than stages, and more; in the last iterations there is nothing to load ahead."""
    x = np.random.default_rng(columns).integers(-9, 10, (rows, columns)).astype(np.int32)
    scale, out = np.arange(1, rows + 1, dtype=np.int32), Buffer(np.full((rows, columns), -1, np.int32))
    staying_sums[(3,)](
        Buffer(x).argument, Buffer(scale).argument, out.argument, rows, columns, stages, 256, num_warps=4
    )
    expected = np.cumsum(x, 1) * scale[:, None] - x.sum(1, keepdims=True)
    np.testing.assert_array_equal(out.host().values, expected)


@triton.jit
def staying_turns(x_ptr, out_ptr, m, n, STAGES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    across = tl.cdiv(n, COLUMNS)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, ROWS) * across, tl.num_programs(0), num_stages=STAGES):
        i = tile // across * ROWS + tl.arange(0, ROWS)[:, None]
        j = tile % across * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        x = tl.load(x_ptr + i * n + j, mask=(i < m) & (j < n))
        tl.store(out_ptr + j * m + i, x, mask=(i < m) & (j < n))
        y, down, right = tl.trans(x), i.T, j.T
        tl.store(out_ptr + n * m + right * m + down, y + y, mask=(down < m) & (right < n))


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.int8])
@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("m, n", [(32, 32), (80, 112), (37, 50)])
def test_tiles_turned_by_programs_that_stay(stages, m, n, dtype):
    x = np.random.default_rng(n).integers(-9, 10, (m, n)).astype(dtype)
    out = Buffer(np.full((2, n, m), -1, dtype))
    staying_turns[(2,)](Buffer(x).argument, out.argument, m, n, stages, 32, 16, num_warps=2)
    np.testing.assert_array_equal(out.host().values, np.stack([x.T, x.T + x.T]))
