"""Names, compile-time values, tuples and calls."""

# ruff: noqa: SIM102, SIM108, SIM201, UP031 -- the nesting is what is tested

import math
import typing

import pytest
from plain_python import build, check, interpret, kernel_of

import triton
import triton.language as tl
from triton import _C

PAIRS = [(a, b) for a in (-3, 0, 2, 7) for b in (0, 1, 5)]
POINTER, INT = ("*i64", 8), ("i32", 1)

SEVEN: tl.constexpr = 7
NINE = tl.constexpr(9)
TABLE = tl.constexpr((10, 20, 30))
MODES = tl.constexpr({"fast": 1, "slow": 2})


@triton.jit
def constants(a):
    x: tl.constexpr = SEVEN + NINE
    y: tl.constexpr = math.ceil(x / 3) if x > 3 else undefined  # noqa: F821
    z = TABLE[1] + MODES["slow"] + len(TABLE) + max(x, y)
    text: tl.constexpr = f"{x:>4}{'even' if x % 2 == 0 else 'odd'!s:}"
    n = 12
    w = len(text) + len("%d items" % n) if "even" in text else -1
    return a + z, x // y, w, int("12") + a


@triton.jit
def tuples(a, b):
    first, rest = a, (b, 3, a + b)
    (p, q), r = (1, b), 2
    both = (first, p) + (q, r) * 2
    c, d, e = both[0], both[1:-1], both[-1]
    total = 0
    for i, x in enumerate(both[1:]):
        total += i * x
    for x, y in zip(rest, reversed(rest)):  # noqa: B905
        total += x * y
    squares = [k * k for k in range(5) if k != 2]
    return total, squares[-1] + len(d) + e, c + both[-3], sum(rest) + len(rest)


@triton.jit
def tuples_in_loops(a, b):
    state = (a, (b, 1))
    for i in range(4):
        x, (y, z) = state
        if i % 2 == 1:
            state = (y, (x + i, z * 2))
        else:
            state = (x + 1, (y, z))
    return state[0], state[1][0], state[1][1]


@triton.jit
def helper(x, y=2, *, factor: tl.constexpr = 3, offset=None):
    if offset is None:
        return x * factor + y
    return x * factor + y + offset


@triton.jit
def several(x, y):
    return x + y, x - y, 5


@triton.jit
def variadic(first, *rest):
    total = first
    for x in rest:
        total += 2 * x
    return total, len(rest)


@triton.jit
def arguments(a, b):
    x = helper(a) + helper(a, b) * 10 + helper(y=b, x=a, factor=2) + helper(a, factor=SEVEN, offset=b)
    s, d, five = several(a, b)
    v, n = variadic(a, b, *(s, 1))
    w, m = variadic(a)
    return x, s * d + five, v * 10 + n, w + m


@triton.jit(noinline=True)
def separate(a, pair, c: tl.constexpr):
    """Early returns in a function that stays one."""
    if a > pair[0]:
        return a + c, pair[1]
    return pair[0] * c, a


@triton.jit
def calls_separate(a, b):
    x, y = separate(a, (b, a), 3)
    z, w = separate(b, (x, y), 3)
    u, v = separate(b, (x, y), 4)
    return x + y, z + w, u + v


@triton.jit
def factorial(n: tl.constexpr):
    return 1 if n <= 1 else n * factorial(n - 1)


@triton.jit
def recursion(a):
    return a + factorial(5)


@triton.jit
def walrus(a, b):
    y = (x := a + b) * 2
    z = [last := k for k in range(3)]  # noqa: F841
    if (w := x - 3) > 0 and (v := w - 2) > 0:
        y += v
    return x, y, w


@triton.jit
def builtins_of_python(a, b):
    return min(a, b, 3), max((a, b)), abs(a), divmod(a + 10, 3)[1], pow(b, 2) + bool(a > 0) + int(b)


@triton.jit
def types_in_place(a, b):
    is_value = isinstance(a, tl.tensor) and not isinstance(3, tl.tensor)
    is_constant = isinstance(4, tl.constexpr) and not isinstance(a, tl.constexpr)
    is_int = isinstance("x", str) and isinstance((1, 2), tuple) and not isinstance(a, (int, float))
    same = a.dtype == tl.int32 and a.dtype is not None and a.dtype in (tl.int32, tl.int64)
    return 1 if is_value and is_constant and is_int and same else 0


def test_values():
    check(constants, (1,), (-5,))
    check(tuples, *PAIRS)
    check(tuples_in_loops, *PAIRS)
    check(arguments, *PAIRS)
    check(calls_separate, *PAIRS)
    check(recursion, (1,))
    check(walrus, *PAIRS)
    check(builtins_of_python, *PAIRS)


def test_functions_are_shared():
    text = build(calls_separate, 1, 2)
    assert text.count("func @separate") == 2 and text.count("call ") == 3


def test_questions_about_types():
    assert interpret(build(types_in_place, 1, 2), (1, 2), 1) == (1,)


class Pair(typing.NamedTuple):
    x: typing.Any
    y: typing.Any = 3

    @triton.jit
    def total(self, scale):
        return (self.x + self.y) * scale


@triton.jit
def named_tuples(a, b):
    p = Pair(a)
    q = Pair(y=a, x=b)
    for i in range(2):
        p = Pair(p.y, p.x + i)
    x, y = p
    return p.total(2), q.x - q.y, x, y, len(q)


def test_named_tuples():
    for a, b in PAIRS:
        x, y = a, 3
        for i in range(2):
            x, y = y, x + i
        expected = ((x + y) * 2, b - a, x, y, 2)
        assert interpret(build(named_tuples, a, b), (a, b), 5) == expected


def test_closure():
    scale = tl.constexpr(4)
    inner = helper

    @triton.jit
    def uses_closure(a):
        return inner(a) * scale

    assert interpret(build(uses_closure, 5), (5,), 1) == (68,)


def test_meta_is_a_mapping():
    @triton.jit
    def old_style(out, n, **META):
        BLOCK = META["BLOCK"]
        tl.store(out + tl.arange(0, BLOCK), n + META.get("EXTRA", 1) + len(META))

    text = _C._frontend(old_style, (POINTER, INT, tl.constexpr({"BLOCK": 8, "num_warps": 4})))
    assert interpret(text, (4,), 8) == (7,) * 8


def test_a_constant_of_a_plain_name_is_known():
    @triton.jit
    def kernel(out):
        n = 4
        m = n * 2 + (1 if n == 4 else 0)
        shape = (m, n)
        tl.static_assert(m == 9)
        tl.store(out + tl.arange(0, n), tl.sum(tl.zeros(shape, tl.int32), axis=0))

    assert "tile<9x4xi32>" in _C._frontend(kernel, (("*i32", 16),))


def test_plain_names_are_strong_literals_weak():
    @triton.jit
    def kernel(out, h):
        strong = 2.0
        tl.static_assert((h * 2.0).dtype == tl.float16)
        tl.static_assert((h * strong).dtype == tl.float32)

    _C._frontend(kernel, (POINTER, ("fp16", 1)))


def test_parameters():
    @triton.jit
    def kernel(p, q, n, flag, pair, skipped, B: tl.constexpr):
        a, (b, c) = pair
        tl.store(p, tl.load(q) + n + a + b + c + flag + B if skipped is None else 0)

    pair = [INT, [("i64", 8), tl.constexpr(3)]]
    signature = (POINTER, ("*kbf16", 16), ("u32", 16), ("i1", 1), pair, tl.constexpr(None), tl.constexpr(5))
    first = _C._frontend(kernel, signature).splitlines()[0]
    assert "%q: ptr<bf16> {divisibility = [16]}, %n: i32 {divisibility = [16]}, %flag: i1" in first
    assert "%pair_0: i32, %pair_1_0: i64 {divisibility = [8]}) {" in first


def test_used_names():
    used = []
    text = _C._frontend(kernel_of(constants), (POINTER, [INT]), None, used)
    names = {name: value for _, name, value in used if name}
    assert {"SEVEN", "NINE", "TABLE", "MODES", "math", "ceil", "store_all"} <= set(names)
    assert names["SEVEN"] == 7 and names["ceil"] is math.ceil and names["NINE"] is NINE
    spaces = {name: space for space, name, _ in used if name}
    assert spaces["SEVEN"] is globals() and spaces["ceil"] is vars(math)
    cells = [(space, value) for space, name, value in used if name is None]
    assert len(cells) == 1 and cells[0][1] is constants and "tl" not in names and "print" not in names
    assert text.startswith("kernel @kernel")


def test_locations():
    @triton.jit
    def kernel(out, n):
        x = n + 1
        tl.store(out, helper(x))

    text = _C._frontend(kernel, (POINTER, INT), locations=True)
    assert "test_names_and_calls.py" in text


def test_references_are_released():
    import gc
    import sys

    value = object()
    marker = tl.constexpr(value)

    @triton.jit
    def kernel(out, n, m: tl.constexpr):
        x = [m, m, (m, n)]  # noqa: F841
        tl.store(out, n)

    @triton.jit
    def broken(out, n, m: tl.constexpr):
        x = (m, n)  # noqa: F841
        tl.store(out, m)

    before = sys.getrefcount(value)
    for _ in range(5):
        _C._frontend(kernel, (POINTER, INT, marker))
        with pytest.raises(triton.CompilationError):
            _C._frontend(broken, (POINTER, INT, marker))
    gc.collect()
    assert sys.getrefcount(value) == before


def test_numpy_scalars_are_numbers():
    import numpy as np

    @triton.jit
    def kernel(out, a: tl.constexpr, b: tl.constexpr, c: tl.constexpr):
        if c:
            tl.static_assert(a * 2 == 3.0)
            tl.store(out, a * 2 + b)

    values = [tl.constexpr(value) for value in (np.float32(1.5), np.int64(3), np.bool_(True))]
    assert interpret(_C._frontend(kernel, (POINTER, *values)), (), 1) == (6,)
