"""Atomic read-modify-write: every operation and dtype, alone and under contention."""

import numpy as np
import pytest
from harness import DTYPES, Array, Buffer, check, jit, random, round_to

import triton

OPERATIONS = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "xchg": lambda old, new: new,
}  # fmt: skip
INTEGERS = ["int32", "int64", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
CASES = [(name, dtype) for name in OPERATIONS for dtype in INTEGERS]
CASES += [("add", dtype) for dtype in FLOATS] + [(name, dtype) for name in ("max", "min", "xchg") for dtype in FLOATS]


@pytest.mark.parametrize("name, dtype", CASES)
def test_every_operation(name, dtype):
    """Each element once: the old value comes back and the new one is in memory. Then under a mask, then one scalar."""
    kernel = jit(f"""
        def kernel(memory, x, old, mask):
            i = tl.arange(0, 50)
            m = tl.load(mask + i)
            tl.store(old + i, tl.atomic_{name}(memory + i, tl.load(x + i), mask=m), mask=m)
            tl.store(old + 50, tl.atomic_{name}(memory + 50, tl.load(x + 50)))
    """)
    before, x = random((51,), dtype, seed=1), random((51,), dtype, seed=2)
    if DTYPES[dtype].kind == "float":  # sums of these are exact in every dtype
        before, x = (Array(np.round(v.values * 4).astype(v.values.dtype), dtype) for v in (before, x))
    mask = np.append(random((50,), "int1").values, True)
    memory, old = Buffer(before), Buffer(Array(np.zeros_like(before.values), dtype))
    kernel[(1,)](memory.argument, Buffer(x).argument, old.argument, Buffer(mask).argument)
    expected = np.where(mask, OPERATIONS[name](before.values, x.values).astype(before.values.dtype), before.values)
    assert (memory.host().values == expected).all()
    assert (old.host().values == np.where(mask, before.values, 0)).all()


CONTENTION = {
    "add": ("i % 64 + 1", lambda i: (i % 64 + 1).sum()), "max": ("i * 7 % 101", lambda i: (i * 7 % 101).max()),
    "min": ("i * 7 % 101 - 50", lambda i: (i * 7 % 101 - 50).min()), "or": ("1 << (i % 20)", lambda i: (1 << 20) - 1),
    "and": ("-1 ^ (1 << (i % 5))", lambda i: 0), "xor": ("i", lambda i: np.bitwise_xor.reduce(i)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize("name", CONTENTION)
def test_many_programs_on_one_address(name, dtype):
    if dtype == "float32" and name in ("or", "and", "xor"):
        return
    value, reference = CONTENTION[name]
    kernel = jit(f"""
        def kernel(memory):
            i = tl.program_id(0) * 32 + tl.arange(0, 32)
            tl.atomic_{name}(memory + tl.zeros((32,), tl.int32), ({value}).to(tl.{dtype}))
    """)
    start = {"max": -1000, "min": 1000}.get(name, 0)
    memory = Buffer(np.array([start], dtype))
    kernel[(200,)](memory.argument)
    assert memory.host().values[0] == reference(np.arange(6400))


def test_a_histogram_by_atomics():
    values = random((10_000,), "int32", low=0, high=37).values
    kernel = jit("""
        def kernel(x, out, n, SIZE: tl.constexpr):
            i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
            tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)
    """)
    out = Buffer(np.zeros(37, np.int32))
    kernel[(-(-10_000 // 96),)](Buffer(values).argument, out.argument, 10_000, 96)
    assert (out.host().values == np.bincount(values, minlength=37)).all()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_compare_and_swap(dtype):
    kernel = jit("""
        def kernel(memory, compare, x, old):
            i = tl.arange(0, 20)
            tl.store(old + i, tl.atomic_cas(memory + i, tl.load(compare + i), tl.load(x + i)))
            tl.store(old + 20, tl.atomic_cas(memory + 20, tl.load(compare + 20), tl.load(x + 20)))
    """)
    before, x = random((21,), dtype, seed=1), random((21,), dtype, seed=2)
    compare = Array(np.where(np.arange(21) % 3 != 1, before.values, x.values), dtype)
    memory, old = Buffer(before), Buffer(x)
    kernel[(1,)](memory.argument, Buffer(compare).argument, Buffer(x).argument, old.argument)
    assert (old.host().values == before.values).all()
    assert (memory.host().values == np.where(compare.values == before.values, x.values, before.values)).all()


def test_a_spin_lock():
    """Programs take a lock, change memory that is not atomic, and give the lock back."""
    kernel = jit("""
        def kernel(lock, total, count):
            while tl.atomic_cas(lock, 0, 1) == 1:
                pass
            tl.store(total, tl.load(total) + tl.program_id(0))
            tl.store(count, tl.load(count) + 1)
            tl.debug_barrier()
            tl.atomic_xchg(lock, 0)
    """)
    lock, total, count = (Buffer(np.zeros(1, np.int32)) for _ in range(3))
    kernel[(2000,)](lock.argument, total.argument, count.argument)
    assert count.host().values[0] == 2000 and total.host().values[0] == sum(range(2000)) and lock.host().values[0] == 0


def test_the_last_program_sees_all_others():
    kernel = jit("""
        def kernel(x, parts, arrived, out, GROUPS: tl.constexpr):
            p = tl.program_id(0)
            tl.store(parts + p, tl.sum(tl.load(x + p * 64 + tl.arange(0, 64))))
            if tl.atomic_add(arrived, 1, sem="acq_rel") == GROUPS - 1:
                tl.store(out, tl.sum(tl.load(parts + tl.arange(0, GROUPS))))
    """)
    x = random((64 * 100,), "int32", low=0, high=1000)
    parts, arrived, out = Buffer(np.zeros(100, np.int32)), Buffer(np.zeros(1, np.int32)), Buffer(np.zeros(1, np.int32))
    kernel[(100,)](Buffer(x).argument, parts.argument, arrived.argument, out.argument, 100)
    assert out.host().values[0] == x.values.sum()


def test_what_stands_before_an_order_may_come_after_it():
    """Of a tile that a warp takes in strips, each of which comes to the order."""
    kernel = jit("""
        def kernel(x, y, arrived, SIZE: tl.constexpr):
            i = tl.arange(0, SIZE)
            tl.store(y + i, tl.load(x + i))
            tl.atomic_add(arrived, 1, sem="acquire")
    """)
    x = random((8192,), "int32")
    y, arrived = Buffer(np.zeros(8192, np.int32)), Buffer(np.zeros(1, np.int32))
    kernel[(2,)](Buffer(x).argument, y.argument, arrived.argument, 8192, num_warps=1)
    assert (y.host().values == x.values).all() and arrived.host().values[0] == 2


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["gpu", "cta", "sys"])
def test_orders_and_scopes(sem, scope):
    code = f'out = tl.atomic_add(x_ptr + tl.arange(0, 4), 5, sem="{sem}", scope="{scope}")'
    check(code, {"x": np.arange(4, dtype=np.int32)}, np.arange(4, dtype=np.int32))


def test_masked_scalars():
    x = np.arange(4, dtype=np.int32)
    check(
        "tl.atomic_add(x_ptr + 1, 5, mask=n > 0)\nout = tl.load(x_ptr + 1)", {"x": x, "n": 0}, np.asarray(1, np.int32)
    )
    check(
        "tl.atomic_add(x_ptr + 1, 5, mask=n > 0)\nout = tl.load(x_ptr + 1)", {"x": x, "n": 1}, np.asarray(6, np.int32)
    )


def test_values_broadcast_and_convert():
    x = np.zeros((3, 4), np.float32)
    code = """
        place = x_ptr + tl.arange(0, 3)[:, None] * 4 + tl.arange(0, 4)[None, :]
        tl.atomic_add(place, tl.arange(0, 4)[None, :])
        tl.atomic_add(place, 0.5)
        out = tl.load(place)
    """
    check(code, {"x": x}, np.broadcast_to(np.arange(4, dtype=np.float32) + 0.5, (3, 4)))


@pytest.mark.parametrize("dtype", ["int32", *FLOATS])
def test_same_address_within_one_tile(dtype):
    """What a target has no instruction for waits for its turn, and what it looks at first is no race."""
    code = "tl.atomic_add(x_ptr + tl.arange(0, 96) % 3, 1)\ntl.debug_barrier()\nout = tl.load(x_ptr + tl.arange(0, 3))"
    check(code, {"x": round_to(np.zeros(3), dtype)}, round_to(np.full(3, 32), dtype))


def test_float_minimum_and_maximum_of_both_signs():
    """Which of the two zeros wins is not said."""
    values = np.array([-1.5, 2.5, -0.0, 0.0, 1e-30, -1e30], np.float32)
    code = "tl.atomic_{}(x_ptr + tl.arange(0, 6), y)\nout = tl.load(x_ptr + tl.arange(0, 6))"
    for name, function in [("max", np.maximum), ("min", np.minimum)]:
        y = values[::-1].copy()
        expected = function(values, y)
        check(code.format(name) + "\nout += 0.0", {"x": values, "y": y}, expected + np.float32(0))


COUNT = jit("""
    def kernel(x, counts, n, STEP: tl.constexpr, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.atomic_add(counts + tl.load(x + i, mask=i < n), STEP, mask=i < n)
""")


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("first, last", [(0, 5), (0, 4000), (70000, 70300), (0, 80000), (3, 3)])
def test_counting(index, dtype, first, last):
    """One number added at many places, near each other or not, from several programs."""
    size, bins = 2048, 90000
    for n, step in [(3 * size, 1), (3 * size - 700, -3), (0, 1)]:
        x = np.random.default_rng(n).integers(first, last + 1, 3 * size).astype(index)
        x[n:] = 1 << 30  # under the mask
        counts = Buffer(Array(np.arange(bins).astype(dtype), dtype))
        COUNT[(3,)](Buffer(Array(x, index)).argument, counts.argument, n, step, size)
        wanted = np.arange(bins) + step * np.bincount(x[:n], minlength=bins)
        np.testing.assert_array_equal(counts.host().values, wanted.astype(dtype))


# ---- loads and stores


MOVED = ["int1", "int8", "uint8", "int16", "uint16", "float8e5", "float16", "bfloat16", *INTEGERS, "float32", "float64"]


@pytest.mark.parametrize("dtype", MOVED)
def test_atomic_loads_and_stores(dtype):
    """A tile, under a mask, and a scalar, with every order there is."""
    kernel = jit("""
        def kernel(x, out, mask):
            i = tl.arange(0, 50)
            m = tl.load(mask + i)
            tl.atomic_store(out + i, tl.atomic_load(x + i, mask=m), mask=m)
            (out + 50).atomic_store((x + 50).atomic_load())
            tl.atomic_store(out + 51, tl.atomic_load(x + 51, sem="relaxed", scope="cta"), sem="relaxed", scope="sys")
    """)
    x = random((52,), dtype, seed=1)
    out = Buffer(Array(np.zeros_like(x.values), dtype))
    mask = np.append(random((50,), "int1").values, [True, True])
    kernel[(1,)](Buffer(x).argument, out.argument, Buffer(mask).argument)
    assert (out.host().values == np.where(mask, x.values, 0)).all()


def test_stored_values_broadcast_and_convert():
    x = np.zeros((3, 4), np.float32)
    code = """
        place = x_ptr + tl.arange(0, 3)[:, None] * 4 + tl.arange(0, 4)[None, :]
        tl.atomic_store(place, tl.arange(0, 4)[None, :])
        tl.atomic_store(x_ptr + 2, 0.5)
        out = tl.atomic_load(place)
    """
    expected = np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4)).copy()
    expected[0, 2] = 0.5
    check(code, {"x": x}, expected)


def test_a_flag_is_given_back_by_a_store():
    """The lock of test_a_spin_lock, with the orders that it needs and no others."""
    kernel = jit("""
        def kernel(lock, total):
            while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
                while tl.atomic_load(lock, sem="relaxed") == 1:
                    pass
            tl.store(total, tl.load(total) + tl.program_id(0))
            tl.debug_barrier()
            tl.atomic_store(lock, 0)
    """)
    lock, total = (Buffer(np.zeros(1, np.int32)) for _ in range(2))
    kernel[(500,)](lock.argument, total.argument)
    assert total.host().values[0] == sum(range(500)) and lock.host().values[0] == 0


def test_a_value_is_handed_on():
    """Each program waits for its turn and adds to what the one before left, which is not atomic."""
    kernel = jit("""
        def kernel(turn, sums):
            ticket = tl.atomic_add(turn + 1, 1, sem="relaxed")
            while tl.atomic_load(turn) != ticket:
                pass
            i = tl.arange(0, 64)
            tl.store(sums + i, tl.load(sums + i) + i * ticket)
            tl.atomic_store(turn, ticket + 1)
    """)
    turn, sums = Buffer(np.zeros(2, np.int32)), Buffer(np.zeros(64, np.int32))
    kernel[(100,)](turn.argument, sums.argument)
    assert (sums.host().values == np.arange(64) * sum(range(100))).all()


# ---- waiting


@pytest.mark.parametrize("dtype", ["int16", "uint16", *INTEGERS])
def test_poll_finds_what_is_there(dtype):
    """With and without a time; elements that never come are false when it is over."""
    kernel = jit("""
        def kernel(x, wanted, out, timeout):
            i = tl.arange(0, 50)
            tl.store(out + i, tl.atomic_poll(x + i, tl.load(x + i)))
            tl.store(out + 50 + i, tl.atomic_poll(x + i, tl.load(wanted + i), timeout_ns=timeout))
            tl.store(out + 100 + i, (x + i).atomic_poll(7, "relaxed", "cta", timeout_ns=0))
            tl.store(out + 150, tl.atomic_poll(x, tl.load(x), scope="sys"))
            tl.store(out + 151, tl.atomic_poll(x, tl.load(x) + 1, timeout_ns=1000))
    """)
    x = random((50,), dtype, seed=1, low=0, high=10)
    wanted = random((50,), dtype, seed=2, low=0, high=10)
    out = Buffer(np.zeros(152, bool))
    kernel[(1,)](Buffer(x).argument, Buffer(wanted).argument, out.argument, 20000)
    same = [np.full(50, True), x.values == wanted.values, x.values == 7, [True, False]]
    assert (out.host().values == np.concatenate(same)).all()


def test_poll_waits_for_another_program():
    """Each program waits for what the one before stores, and sees what it did."""
    kernel = jit("""
        def kernel(turn, sums):
            ticket = tl.atomic_add(turn + 1, 1, sem="relaxed")
            tl.atomic_poll(turn + tl.zeros((4,), tl.int32), ticket)
            i = tl.arange(0, 64)
            tl.store(sums + i, tl.load(sums + i) + i * ticket)
            tl.debug_barrier()
            tl.atomic_store(turn, ticket + 1)
            tl.atomic_poll(turn + 2, 1, timeout_ns=100)
    """)
    turn, sums = Buffer(np.zeros(3, np.int32)), Buffer(np.zeros(64, np.int32))
    kernel[(50,)](turn.argument, sums.argument)
    assert (sums.host().values == np.arange(64) * sum(range(50))).all()


@pytest.mark.parametrize(
    "call, message",
    [
        ("tl.atomic_load(x, sem='release')", '`sem` of tl.atomic_load is one of "acquire", "relaxed"'),
        ("tl.atomic_store(x, 1, sem='acq_rel')", '`sem` of tl.atomic_store is one of "release", "relaxed"'),
        ("tl.atomic_load(x, scope='grid')", '"gpu", "cta", "sys"'),
        ("tl.atomic_store(x, 1, mask=tl.arange(0, 4) < 2)", "got a scalar pointer"),
        ("tl.atomic_poll(x.to(tl.pointer_type(tl.float32)), 1)", "integers of 16, 32 or 64 bits, not fp32"),
        ("tl.atomic_poll(x.to(tl.pointer_type(tl.int8)), 1)", "integers of 16, 32 or 64 bits, not int8"),
        ("tl.atomic_poll(x, 1, timeout_ns=-1)", "timeout_ns must not be negative"),
        ("tl.atomic_poll(x, 1, sem='release')", '"acquire", "relaxed", not "release"'),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(triton.CompilationError, match=message):
        jit(f"def kernel(x):\n    {call}\n")[(1,)](Buffer(np.zeros(1, np.int32)).argument)
