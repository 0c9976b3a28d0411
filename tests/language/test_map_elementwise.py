"""`tl.map_elementwise`: functions of scalars, with branches and loops, for each element of tiles."""

import numpy as np
import pytest
from harness import check, define, random

import triton

FUNCTIONS = """
@triton.jit
def compare(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1

@triton.jit
def steps(n):
    count = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return count

@triton.jit
def triangle(n, step):
    total = 0
    for i in range(1, n, step):
        total += i
    return total

@triton.jit
def power(x, n):
    result = x * 0 + 1
    for _ in range(n):
        result *= x
    return result

@triton.jit
def divided(x, y):
    return x // y, x % y, x.to(tl.float32) / y

@triton.jit
def nested(x, limit):
    found = 0
    if x > 0:
        candidate = 2
        while candidate < limit:
            inner = 2
            prime = True
            while inner * inner <= candidate:
                if candidate % inner == 0:
                    prime = False
                inner += 1
            if prime:
                if x % candidate == 0:
                    found += candidate
            candidate += 1
    return found

@triton.jit
def root(x):
    if x < 0:
        return -tl.sqrt(-x)
    return tl.extra.libdevice.cbrt(x) if x > 8 else tl.sqrt(x)

@triton.jit
def pair(a, b, c, d):
    return a + c * 10, b + d * 100

@triton.jit
def rotated(a, b, c, d):
    return b, c, d, a

@triton.jit
def twice(a, b):
    return a, b, a * 2, b * 2
"""


@pytest.fixture
def names():
    space = define(FUNCTIONS)
    return {name: value for name, value in space.items() if isinstance(value, triton.JITFunction)}


@pytest.mark.parametrize("shape", [(64,), (37,), (3, 5, 2), (8, 32)])
def test_branches(shape, names):
    x, y = random(shape, "int32", 1, low=0, high=4), random(shape, "int32", 2, low=0, high=4)
    check("tl.map_elementwise(compare, x, y)", {"x": x, "y": y}, np.sign(x.values - y.values), names=names)


def collatz(n):
    count = 0
    while n > 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


@pytest.mark.parametrize("shape", [(64,), (5, 7)])
def test_loops_that_elements_leave_at_their_own_time(shape, names):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    check("tl.map_elementwise(steps, x)", {"x": x}, np.vectorize(collatz)(x).astype(np.int32), names=names)


def test_ranges_of_each_element(names):
    n, step = np.arange(-4, 28, dtype=np.int32), np.arange(32, dtype=np.int32) % 5 + 1
    expected = np.array([sum(range(1, a, b)) for a, b in zip(n, step, strict=True)], np.int32)
    check("tl.map_elementwise(triangle, n, step)", {"n": n, "step": step}, expected, names=names)
    expected = np.array([sum(range(1, a, 3)) for a in n], np.int32)
    check("tl.map_elementwise(triangle, n, 3)", {"n": n}, expected, names=names)


def test_an_index_that_would_wrap_around_ends_the_loop():
    names = define("""
        @triton.jit
        def count(start):
            n = 0
            for i in range(start, 2147483647, 100):
                n += 1
            return n
        """)
    start = np.array([2147483647, 2147483646, 2147483640, 2147483400], np.int32)
    expected = np.array([len(range(s, 2147483647, 100)) for s in start.tolist()], np.int32)
    check("tl.map_elementwise(count, x)", {"x": start}, expected, names={"count": names["count"]})


def test_ranges_that_all_elements_share(names):
    x = np.linspace(-1.5, 1.5, 48, dtype=np.float32).reshape(6, 8)
    expected = np.ones_like(x)
    for _ in range(5):
        expected = expected * x
    check("tl.map_elementwise(power, x, n)", {"x": x, "n": 5}, expected, names=names)


def test_several_results_and_broadcasting(names):
    x, y = np.arange(-8, 8, dtype=np.int32)[:, None], np.array([[1, 2, 3, 5]], np.int32)
    quotient = np.trunc(x / y).astype(np.int32)
    check(
        "a, b, c = tl.map_elementwise(divided, x, y)",
        {"x": x, "y": y},
        {"a": quotient, "b": (x - quotient * y).astype(np.int32), "c": x.astype(np.float32) / y.astype(np.float32)},
        names=names,
        ulps=2,
    )


def test_loops_within_branches_within_loops(names):
    def primes_of(x, limit):
        primes = [p for p in range(2, limit) if all(p % q for q in range(2, p))]
        return sum(p for p in primes if x > 0 and x % p == 0)

    x = np.arange(-5, 59, dtype=np.int32)
    expected = np.array([primes_of(int(value), 20) for value in x], np.int32)
    check("tl.map_elementwise(nested, x, limit)", {"x": x, "limit": 20}, expected, names=names)


def test_functions_of_floats(names):
    x = np.array([-4, -1, 0, 1, 4, 7.5, 27, 1000], np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.where(x < 0, -np.sqrt(-x), np.where(x > 8, np.cbrt(x), np.sqrt(x)))
    check("tl.map_elementwise(root, x)", {"x": x}, expected.astype(np.float32), names=names, ulps=2)


def test_what_is_not_taken_does_not_trap():
    names = define("""
        @triton.jit
        def safe(x, y):
            if y == 0:
                return x
            return x // y
        """)
    x, y = np.full(16, 100, np.int32), np.arange(16, dtype=np.int32)
    expected = np.where(y == 0, x, x // np.maximum(y, 1))
    check("tl.map_elementwise(safe, x, y)", {"x": x, "y": y}, expected, names={"safe": names["safe"]})


def test_scalars(names):
    check("tl.full((4,), tl.map_elementwise(compare, n, 3), tl.int32)", {"n": 5}, np.ones(4, np.int32), names=names)


@pytest.mark.parametrize("shape", [(32,), (4, 8)])
def test_neighbours_together(shape, names):
    x, y = random(shape, "int32", 1, low=0, high=9).values, random(shape, "int32", 2, low=0, high=9).values
    odd = np.arange(x.size).reshape(shape) % 2
    check(
        "tl.map_elementwise(pair, x, y, pack=2)",
        {"x": x, "y": y},
        (x + y * np.where(odd, 100, 10)).astype(np.int32),
        names=names,
    )
    expected = np.roll(x.reshape(-1, 4), -1, axis=1).reshape(shape)
    check("tl.map_elementwise(rotated, x, pack=4)", {"x": x}, expected, names=names)
    check(
        "a, b = tl.map_elementwise(twice, x, pack=2)",
        {"x": x},
        {"a": x, "b": (x * 2).astype(np.int32)},
        names=names,
    )


@pytest.mark.host
@pytest.mark.parametrize(
    "function, message",
    [
        ("tl.load(x_ptr)", "the function of tl.map_elementwise cannot access memory"),
        ("x + tl.arange(0, 4)", "the function of tl.map_elementwise works on scalars"),
        ("None", "the function of tl.map_elementwise must return scalars, not None"),
        ("(x, None)", "must return scalars, not None"),
    ],
)
def test_mistakes(function, message):
    names = define(f"""
        @triton.jit
        def mapped(x, x_ptr):
            return {function}
        """)
    x = np.zeros(4, np.int32)
    with pytest.raises(triton.CompilationError, match=message):
        check("tl.map_elementwise(mapped, x, x_ptr)", {"x": x}, x, names={"mapped": names["mapped"]})


@pytest.mark.host
def test_a_pack_that_does_not_fit(names):
    x = np.zeros(8, np.int32)
    for pack, message in ((3, "pack must be a power of 2"), (2, "is not given|lacks|missing|takes")):
        with pytest.raises(triton.CompilationError, match=message):
            check(f"tl.map_elementwise(rotated, x, pack={pack})", {"x": x}, x, names=names)
