"""if, for, while, break, continue, early return: as Python means them, on run-time scalars."""

import numpy as np
import pytest
from harness import Buffer, jit


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


# Names that only a loop assigns, read after it: `a` and `b` are such that each of the loops runs at least once.
AFTER_LOOPS = {
    "a name": "def f(a, b):\n    for i in range(a):\n        x = i * 3 + b\n    return x",
    "the index": "def f(a, b):\n    for i in range(a):\n        b += 1\n    return i + b",
    "while": "def f(a, b):\n    while a > 0:\n        x = a + b\n        a -= 2\n    return x",
    "two names and a tuple": """def f(a, b):
    for i in range(a):
        x, y = (i, b), i + b
    return x[0] * 100 + x[1] * 10 + y""",
    "twice": "def f(a, b):\n    for i in range(a):\n        x = i\n    y = x\n    y += x\n    return y",
    "an outer value": "def f(a, b):\n    c = a * 7\n    for i in range(a):\n        x = c\n    return x",
    "a constant": "def f(a, b):\n    for i in range(a):\n        x = 5\n    return x + b",
    "nested": """def f(a, b):
    for i in range(a):
        for j in range(i, b):
            x = i * 10 + j
        b += 1
    return x""",
    "read in the outer loop": """def f(a, b):
    r = 0
    for i in range(a):
        for j in range(b):
            x = i * 10 + j
        r += x
    return r + x""",
    "read in a later loop": """def f(a, b):
    for i in range(a):
        x = i
    r = 0
    for j in range(b):
        r += x + j
    while r < 50:
        r += x + 1
    return r""",
    "assigned in a later loop": """def f(a, b):
    for i in range(a):
        x = i
    y = x
    for j in range(b):
        x = j * 2
        y += x
    return y""",
    "assigned on one side after": """def f(a, b):
    for i in range(a):
        x = i
    if b > 3:
        x = b
    return x""",
    "assigned on the other side": """def f(a, b):
    if b > 3:
        for i in range(a):
            x = i
    else:
        x = b
    return x""",
    "on both sides": """def f(a, b):
    if b > 3:
        for i in range(a):
            x = i
        r = x
    else:
        while a > 0:
            x = a
            a -= 1
        r = x + 100
    return r""",
    "break": """def f(a, b):
    for i in range(100):
        x = i * b
        if i >= a:
            break
    return x + i""",
    "break in while": """def f(a, b):
    while True:
        x = a
        a += b
        if a > 50:
            break
    return x""",
    "continue": """def f(a, b):
    for i in range(a):
        x = i
        if i % 2 == 0:
            continue
        b += 1
    return x + b""",
    "return": """def f(a, b):
    for i in range(a):
        x = i + b
        if x == 9:
            return 1000
    return x""",
    "else": """def f(a, b):
    for i in range(a):
        x = i
        if i == b:
            break
    else:
        x += 100
    return x""",
    "counting down": "def f(a, b):\n    for i in range(a, 0, -1):\n        x = i * b\n    return x + i",
    "a walrus": "def f(a, b):\n    for i in range(a):\n        b += (x := i * 2)\n    return x + b",
}


@pytest.mark.parametrize("name", AFTER_LOOPS)
def test_names_that_only_a_loop_assigns(name):
    same_as_python(AFTER_LOOPS[name], (1, 1), (1, 5), (5, 2), (2, 5), (7, 7))


def test_a_tile_and_a_pointer_that_only_a_loop_assigns():
    kernel = jit("""
@triton.jit
def kernel(out, x, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    for i in range(n):
        tile = tl.load(x + i * BLOCK + index)
        place = out + index
    tl.store(place, tile)
""")
    x, out = Buffer(np.arange(48, dtype=np.float32)), Buffer(np.zeros(16, np.float32))
    kernel[(1,)](out.argument, x.argument, 3, BLOCK=16)
    assert (out.host().values == np.arange(32, 48)).all()


@pytest.mark.compiled
def test_a_loop_that_did_not_run():
    """The value is unspecified, and nobody is hurt."""
    kernel = jit("""
@triton.jit
def kernel(out, n):
    for i in range(n):
        x = i + 40
    tl.store(out, tl.where(n > 0, x, -1))
""")
    out = Buffer(np.zeros(1, np.int32))
    for n, expected in ((0, -1), (3, 42)):
        kernel[(1,)](out.argument, n)
        assert out.host().values[0] == expected
