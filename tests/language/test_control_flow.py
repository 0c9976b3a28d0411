"""if, for, while, break, continue, early return: as Python means them, on run-time values."""

import numpy as np
import pytest
from harness import Buffer, check, jit

X = np.arange(1, 9, dtype=np.int32)


def result(source, *arguments, dtype=np.int32, count=1, **options):
    """What a kernel `kernel(out, ...)` leaves in `out`, which starts as -1; a number when there is one element."""
    out = Buffer(np.full(count, -1, dtype))
    jit(source)[(1,)](out.argument, *arguments, **options)
    values = out.host().values
    return values[0] if count == 1 else values.tolist()


def same_as_python(source, *arguments):
    """Runs the source of `f` as a kernel's function and as Python, and compares."""
    space = {}
    exec(source, space)
    kernel = "@triton.jit\n" + source + "\n@triton.jit\ndef kernel(out, a, b):\n    tl.store(out, f(a, b))\n"
    compiled = jit(kernel)
    for a, b in arguments:
        out = Buffer(np.full(1, -1, np.int32))
        compiled[(1,)](out.argument, a, b)
        assert out.host().values[0] == space["f"](a, b), (a, b)


PAIRS = [(0, 0), (1, 0), (0, 3), (5, 2), (2, 5), (7, 7), (20, 3)]

PROGRAMS = {
    "if": "def f(a, b):\n    r = 1\n    if a > b:\n        r = 2\n    return r",
    "if else": "def f(a, b):\n    if a > b:\n        r = a\n    else:\n        r = b\n    return r",
    "elif": """def f(a, b):
    if a > b:
        r = 1
    elif a == b:
        r = 2
    elif a == 2:
        r = 3
    else:
        r = 4
    return r""",
    "nested if": """def f(a, b):
    r = 0
    if a > 1:
        r += 10
        if b > 1:
            r += 100
        else:
            r -= 1
    return r""",
    "ternary": "def f(a, b):\n    return (a + 1 if a > b else b + 2) * (3 if b == 0 else 5)",
    "for": "def f(a, b):\n    r = 0\n    for i in range(a):\n        r += i * b\n    return r",
    "for from to": "def f(a, b):\n    r = 0\n    for i in range(b, a):\n        r += i\n    return r",
    "for step": "def f(a, b):\n    r = 0\n    for i in range(b, a, 3):\n        r = r * 3 + i\n    return r",
    "run-time step": "def f(a, b):\n    r = 0\n    for i in range(0, a, b + 1):\n        r = r * 3 + i\n    return r",
    "negative step": "def f(a, b):\n    r = 0\n    for i in range(a, b, -2):\n        r = r * 3 + i\n    return r",
    "counting down": "def f(a, b):\n    r = 0\n    for i in range(a, -1, -1):\n        r = r * 2 + i * b\n    return r",
    "index after the loop": "def f(a, b):\n    i = 100\n    for i in range(a):\n        b += 1\n    return i + b",
    "nested for": """def f(a, b):
    r = 0
    for i in range(a):
        for j in range(i, b):
            r += i * j + 1
    return r""",
    "while": "def f(a, b):\n    r = 0\n    while a > b:\n        a -= 2\n        r += a\n    return r",
    "while with and": """def f(a, b):
    while a > 0 and b < 10:
        a -= 1
        b += 2
    return a * 100 + b""",
    "collatz": """def f(a, b):
    n = a + 1
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps""",
    "gcd": "def f(a, b):\n    while b != 0:\n        a, b = b, a % b\n    return a",
    "break": """def f(a, b):
    r = 0
    for i in range(a):
        if i == b:
            break
        r += i
    return r""",
    "continue": """def f(a, b):
    r = 0
    for i in range(a):
        if i % 3 == b:
            continue
        r += i
    return r""",
    "break and continue": """def f(a, b):
    r = 0
    for i in range(50):
        if i < b:
            continue
        if i > a:
            break
        r += i
        if r > 40:
            break
    return r""",
    "break in while": """def f(a, b):
    r = 0
    while True:
        if r > a:
            break
        r += b + 1
    return r""",
    "continue in while": """def f(a, b):
    r = 0
    i = 0
    while i < a:
        i += 1
        if i % 2 == 0:
            continue
        r += i
    return r + b""",
    "break from the inner loop": """def f(a, b):
    r = 0
    for i in range(a):
        for j in range(10):
            if j > i:
                break
            if j == b:
                continue
            r += j
        r += 100
    return r""",
    "for else": """def f(a, b):
    r = 0
    for i in range(a):
        if i == b:
            r = 1
            break
    else:
        r = 2
    return r""",
    "while else": """def f(a, b):
    while a > 0:
        a -= 1
        if a == b:
            break
    else:
        a = 77
    return a""",
    "early return": "def f(a, b):\n    if a > b:\n        return 10\n    return 20",
    "early returns": """def f(a, b):
    if a == 0:
        return 1
    if b == 0:
        return 2
    c = a * b
    if c > 20:
        return c
    else:
        c += 1
    return c * 2""",
    "return from a branch": """def f(a, b):
    r = a
    if a > 1:
        if b > 1:
            return 5
        r += 1
    return r""",
    "return from a loop": """def f(a, b):
    for i in range(a):
        if i * i > b:
            return i
    return -1""",
    "return from nested loops": """def f(a, b):
    for i in range(a):
        for j in range(a):
            if i * j > b:
                return i * 10 + j
    return -1""",
    "return from while": "def f(a, b):\n    while True:\n        a += 1\n        if a > b:\n            return a",
    "swap in a loop": "def f(a, b):\n    for i in range(3):\n        a, b = b + 1, a\n    return a * 100 + b",
    "tuple through a loop": """def f(a, b):
    t = (a, b)
    for i in range(4):
        t = (t[1], t[0] + i)
    return t[0] * 100 + t[1]""",
    "conditional tuple": """def f(a, b):
    t = (a, b)
    if a > b:
        t = (b, a)
    return t[0] * 100 + t[1]""",
    "logic": "def f(a, b):\n    r = 0\n    if (a > 1 and b > 1) or not a < 5:\n        r = 1\n    return r",
    "chained": "def f(a, b):\n    r = 0\n    if 0 <= b < a < 10:\n        r = 1\n    return r",
    "pass": """def f(a, b):
    if a > b:
        pass
    else:
        a = b
    for i in range(2):
        pass
    return a""",
    "loop in a branch": """def f(a, b):
    r = 0
    if a > b:
        for i in range(a):
            r += i
    else:
        while b > a:
            b -= 1
            r += 2
    return r""",
    "walrus": "def f(a, b):\n    r = 0\n    if (c := a - b) > 0:\n        r = c\n    return r + c",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python(name):
    same_as_python(PROGRAMS[name], *PAIRS)


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
]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_every_kind_of_loop(loop):
    import triton.language as tl

    code = f"out = x\nfor i in {loop}:\n    out = out * 2 + i"
    indices = [0, 2, 4, 6] if "8, 2" in loop else [3, 2, 1, 0] if "-1" in loop else [0, 1, 2, 3]
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


def test_conditions_of_every_type():
    for n, expected in [(0, 2), (5, 1), (-1, 1)]:
        check("1 if n else 2", {"n": n}, np.asarray(expected, np.int32))
    check("1 if n else 2", {"n": 0.0}, np.asarray(2, np.int32))
    check("1 if tl.sum(x) > 3 else 2", {"x": X}, np.asarray(1, np.int32))
    check("1 if x else 2", {"x": np.array([3], np.int32)}, np.asarray(1, np.int32))
