"""Control flow: what a function of scalars computes is what Python computes."""

# ruff: noqa: SIM102, SIM108, SIM201 -- the nesting is what is tested

from plain_python import check

import triton
import triton.language as tl

PAIRS = [(a, b) for a in (-3, 0, 1, 2, 7) for b in (0, 1, 5)]
SMALL = [(n, m) for n in range(6) for m in range(6)]


@triton.jit
def if_else(a, b):
    x = a
    if a > b:
        x = a - b
        y = 1
    elif a == b:
        y = 2
    else:
        x += 10
        y = 3
    return x, y


@triton.jit
def nested_if(a, b):
    r = 0
    if a > 0:
        if b > 0:
            r = 1
        else:
            if a > 1:
                r = 2
    else:
        r = 3
    return r


@triton.jit
def early_return(a, b):
    if a < 0:
        return 100
    x = a + b
    if b == 0:
        return x
    elif a == 1:
        x = x * 2
    else:
        return x * 3
    return x + 7


@triton.jit
def half_return(a, b):
    """The first `if` may return or go on, on both sides."""
    x = 1
    if a > 0:
        if b > 0:
            return 10
        x = 2
    else:
        if b > 1:
            return 20
        x = 3
    x += a
    return x


@triton.jit
def return_in_loop(a, b):
    total = 0
    for i in range(b):
        total += i
        if total > a:
            return total * 100
    return total


@triton.jit
def return_in_nested_loops(a, b):
    count = 0
    for i in range(a):
        for j in range(b):
            count += 1
            if i * j == 6:
                return i, j, count
    return -1, -1, count


@triton.jit
def break_and_continue(a, b):
    total = 0
    for i in range(0, 20, 2):
        if i == a:
            continue
        if i > b * 3:
            break
        total += i
    return total


@triton.jit
def break_keeps_values(a, b):
    x = 0
    y = 0
    for i in range(10):
        x = i
        if i == a:
            break
        y = i * b
    return x, y


@triton.jit
def break_inner(a, b):
    total = 0
    for i in range(a):
        for j in range(10):
            if j > i:
                break
            if j == b:
                continue
            total += 10 * i + j
        total += 1000
    return total


@triton.jit
def all_exits(a, b):
    total = 0
    for i in range(10):
        if i == 1:
            if b == 1:
                continue
        elif i == a:
            if b == 2:
                break
            if b == 3:
                return total * 7
        total += i
    total += 1
    return total


@triton.jit
def while_loop(a, b):
    n = a
    steps = 0
    while n > 0 and steps < 10:
        n -= b
        steps += 1
    return n, steps


@triton.jit
def while_true(a, b):
    i = 0
    while True:
        i += 1
        if i > a:
            break
        if i * i > b * 10:
            return -i
    return i


@triton.jit
def while_true_return(a, b):
    i = 0
    while True:
        i += 2
        if i > a:
            return i + b


@triton.jit
def while_continue(a, b):
    i = 0
    odd = 0
    while i < a:
        i += 1
        if i % 2 == 0:
            continue
        odd += i * b
    return odd


@triton.jit
def while_walrus(a, b):
    n = a
    seen = 0
    while (rest := n - b) > 0:
        n = n - 2
        seen += rest
    return n, seen


@triton.jit
def loop_value_after(a, b):
    i = -1
    for i in range(a):  # noqa: B007
        if i == b:
            break
    return i


@triton.jit
def backwards(a, b):
    total = 0
    weight = 1
    for i in range(a, b, -2):
        total += i * weight
        weight += 1
    for i in range(5, -1, -1):
        total += i * weight
        weight += 1
    return total


@triton.jit
def step_of_argument(a, b):
    total = 0
    for i in range(0, a, b + 1):
        total += i
    return total


@triton.jit
def reassigned_index(a, b):
    total = 0
    for i in range(a):
        i = i * 2
        total += i + b
    return total


@triton.jit
def conditional_expression(a, b):
    x = a if a > b else b
    y = 1 if a == 0 else (2 if b == 0 else 3)
    z = a + b if a > 1 and b > 1 or a == b else -1
    return x, y, z


@triton.jit
def chained_comparison(a, b):
    x = 0
    if 0 < a <= b < 6:
        x = 1
    if a == b == 1:
        x += 2
    if not (a < b) and not b == 0:
        x += 4
    return x


@triton.jit
def guarded_division(a, b):
    """The division may run only behind its guard."""
    r = 0
    if b != 0 and 10 // b > a:
        r = 1
    if b == 0 or 10 // b > a:
        r += 2
    return r


@triton.jit
def swapped(a, b):
    for _ in range(3):
        a, b = b, a + b
    return a, b


@triton.jit
def unrolled(a, b):
    total = 0
    for i in tl.static_range(4):
        if i == 2:
            continue
        for j in tl.static_range(3, 0, -1):
            total += i * j + a
            if total > b * 10:
                break
        if total > b * 20:
            break
        total += 100
    return total


@triton.jit
def unrolled_return(a, b):
    for i in tl.static_range(5):
        if i * i > a:
            return i
    for i, x in enumerate((a, b, a + b)):
        if x == 2:
            return i + 10
    return -1


@triton.jit
def last(a):
    while a > 10:
        a = a - 3
        if a == 20:
            return 0
    return a


@triton.jit
def calls_in_loops(a, b):
    total = 0
    for i in range(b):
        total += last(a + i * 5)
        if last(total) == 9:
            break
    return total


@triton.jit
def only_continue(a, b):
    n = 0
    for i in range(a):
        n += 1
        if i < b:
            continue
        else:
            n += 10
            continue
    return n


@triton.jit
def dead_code(a, b):
    if a > 0:
        return b
        a += 100
    else:
        while True:
            a += 1
            break
            a += 1000
        return a


@triton.jit
def loop_that_always_ends(a, b):
    r = 0
    for i in range(a):
        r = i + b
        break
    for i in range(b):
        return i + r
    return r - 1


@triton.jit
def for_else(a, b):
    r = 0
    for i in range(a):
        if i == b:
            r += 1
            break
    else:
        r += 10
    for i in range(a):
        if i == 2:
            continue
        if i > b:
            return r * 7
    else:
        r += 100
    while r < 200:
        r += 60
        if r == 160 + b:
            break
    else:
        if a == 3:
            return r
        r += 1
    return r


@triton.jit
def static_else(a, b):
    r = 0
    for i in tl.static_range(3):
        if i == a:
            break
        if i == b:
            return r + i
        r += 1
    else:
        r = 50
    for j in range(4):
        for k in (1, 2):
            if k * j == a:
                break
        else:
            continue
        r += j
        if j == b:
            break
    return r


@triton.jit
def sequence_of_guards(a, b):
    for i in range(4):
        if i == a:
            if b == 1:
                continue
            if b == 2:
                return 1
        if i == b:
            if a == 3:
                break
        if a == 5:
            if i == 1:
                return 2
        b += 1
    return b + 10


def test_branches():
    for function in (
        if_else,
        nested_if,
        early_return,
        half_return,
        conditional_expression,
        chained_comparison,
        dead_code,
    ):
        check(function, *PAIRS)


def test_loops():
    for function in (while_loop, while_continue, while_walrus):
        check(function, *[(a, b) for a, b in SMALL if b > 0])
    for function in (while_true, while_true_return, loop_value_after, reassigned_index, swapped):
        check(function, *SMALL)
    check(backwards, *[(a, b) for a in (-1, 0, 4, 9, 10) for b in (-4, -1, 0, 3, 9)])
    check(step_of_argument, *SMALL)


def test_leaving_loops():
    for function in (
        return_in_loop,
        return_in_nested_loops,
        break_and_continue,
        break_keeps_values,
        break_inner,
        all_exits,
        only_continue,
        loop_that_always_ends,
        sequence_of_guards,
        for_else,
        static_else,
        calls_in_loops,
    ):
        check(function, *SMALL, (9, 9))


def test_unrolling():
    check(unrolled, *SMALL)
    check(unrolled_return, *PAIRS)


def test_guards_are_kept():
    text = check(guarded_division, *PAIRS)
    assert text.count("div_s") == 2


@triton.jit
def optional(x, flag: tl.constexpr, extra=None):
    if flag:
        x = x + 1
    else:
        x = x.no_such_method()
    if extra is not None:
        x += extra
    return x


@triton.jit
def compile_time_branches(a, b, use: tl.constexpr, name: tl.constexpr):
    x = optional(a, use)
    if name == "twice":
        x = x * 2
    elif name in ("thrice", "three"):
        x = x * 3
    elif name == "none":
        pass
    else:
        x = undefined_name  # noqa: F821
    return x + (b if use else "never")


def test_compile_time_branches():
    for name in ("twice", "three", "none"):
        text = check(compile_time_branches, *[(a, b, tl.constexpr(True), tl.constexpr(name)) for a, b in PAIRS])
        assert "if " not in text


@triton.jit
def known_condition(a):
    n = 4
    if n > 3 and a is not None:
        n = 5
    while n == 0:
        a += 1
    return a + n


def test_conditions_that_fold():
    assert "if" not in check(known_condition, (1,), (2,))


@triton.jit
def cheap_choice(a, b):
    return a if a < b else b - 1


def test_cheap_choice_selects():
    text = check(cheap_choice, *PAIRS)
    assert "select" in text and "if " not in text


@triton.jit
def counted(a):
    total = 0
    for i in tl.range(0, a, num_stages=3, loop_unroll_factor=2, flatten=True, warp_specialize=False):
        total += i
    return total


def test_range_options_reach_the_loop():
    text = check(counted, (0,), (5,))
    assert "num_stages = 3" in text and "unroll = 2" in text and "flatten" in text
    assert "warp_specialize" not in text
