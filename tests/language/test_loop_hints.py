"""Hints of `tl.range`: done, or said not to be, with the place; and silence where a hint changes nothing."""

import inspect
import warnings

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def loops(x, n, step, HINT: tl.constexpr):
    total = 0
    if HINT == "flatten":
        for i in tl.range(n, flatten=True):
            for j in range(n):
                total += i * j
    elif HINT == "flatten alone":
        for i in tl.range(n, flatten=True):
            total += i
    elif HINT == "warp_specialize":
        for i in tl.range(n, warp_specialize=True):
            total += i
    elif HINT == "stages of a loop that breaks":
        for i in tl.range(n, num_stages=3):
            total += tl.load(x + i)
            if total > 1000:
                break
    elif HINT == "unroll a loop that breaks":
        for i in tl.range(n, loop_unroll_factor=2):
            total += i
            if total > 1000:
                break
    elif HINT == "unroll unknown steps":
        for i in tl.range(0, n, step, loop_unroll_factor=2):
            total += i
    elif HINT == "unroll too often":
        for i in tl.range(n, loop_unroll_factor=1000):
            total += i
    else:
        for i in tl.range(n, num_stages=3, loop_unroll_factor=2, disallow_acc_multi_buffer=True, disable_licm=True):
            total += i
    tl.store(x, total)


# what is said, and whether on a CPU too
MESSAGES = {
    "flatten": ("flatten=True is not done: loops are not joined", False),
    "warp_specialize": ("warp_specialize=True is not done: all warps", False),
    "stages of a loop that breaks": ("num_stages=3 is not done: a loop that may end early", False),
    "unroll a loop that breaks": ("loop_unroll_factor=2 is not done: the loop may end early", True),
    "unroll unknown steps": ("loop_unroll_factor=2 is not done: the step is not known", True),
    "unroll too often": ("loop_unroll_factor=1000 is not done: it is more than 256", True),
}


def run(hint):
    """The warnings of a compilation, as text; the result of the loop is right in any case."""
    x = np.zeros(64, np.int32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loops[(1,)](x, 7, 2, HINT=hint)
    assert x[0] == {"flatten": 21 * 21, "stages of a loop that breaks": 0, "unroll unknown steps": 12}.get(hint, 21)
    return caught


def line_of(hint):
    lines, first = inspect.getsourcelines(loops.fn)
    return next((first + i + 1 for i, line in enumerate(lines) if f'"{hint}"' in line), None)


@pytest.mark.compiled
@pytest.mark.parametrize("hint", MESSAGES)
def test_what_is_not_done_is_said(hint, target):
    message, everywhere = MESSAGES[hint]
    caught = run(hint)
    if target == "cpu" and not everywhere:
        assert not caught
        return
    assert [w.category for w in caught] == [UserWarning]
    assert str(caught[0].message).startswith(f"{__file__}:{line_of(hint)}: {message}")
    assert not run(hint)  # once a compilation


@pytest.mark.parametrize("hint", ["flatten alone", "all that is done"])
def test_what_changes_nothing_is_not_said(hint):
    assert not run(hint)


@triton.jit
def plain(x, n):
    total = 0
    for i in range(n, num_stages=3, warp_specialize=True):
        total += i
    tl.store(x, total)


def test_what_is_asked_of_range_itself_says_nothing():
    x = np.zeros(1, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain[(1,)](x, 7)
    assert x[0] == 21


@triton.jit
def strict(x, n):
    for i in tl.range(n, warp_specialize=True):
        tl.store(x + i, i)


@triton.jit
def strict_everywhere(x, n, step):
    for i in tl.range(0, n, step, loop_unroll_factor=4):
        tl.store(x + i, i)


@pytest.mark.compiled
def test_strictness(monkeypatch, target):
    x = np.zeros(64, np.int32)
    monkeypatch.setenv("TRITON_STRICT", "1")
    cases = [(strict_everywhere, (x, 7, 3), "loop_unroll_factor=4 is not done")]
    if target != "cpu":
        cases.append((strict, (x, 7), "warp_specialize=True is not done"))
    for kernel, arguments, message in cases:
        with pytest.raises(triton.CompilationError, match=message) as error:
            kernel[(1,)](*arguments)
        assert error.value.line == inspect.getsourcelines(kernel.fn)[1] + 2
        assert "for i in tl.range" in str(error.value) and "^" in str(error.value)
        monkeypatch.setenv("TRITON_STRICT", "0")
        with pytest.warns(UserWarning, match=message):
            kernel[(1,)](*arguments)
        monkeypatch.setenv("TRITON_STRICT", "1")


@triton.jit
def product(a, b, c, K, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for first in tl.range(0, K, BK, num_stages=STAGES):
        x = tl.load(a + i * K + (first + k)[None, :])
        acc = tl.dot(x, tl.load(b + (first + k)[:, None] * N + j), acc)
    tl.store(c + i * N + j, acc)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "stages, given, lowered", [(9, None, True), (None, 9, True), (None, 3, False), (2, None, False)]
)
def test_stages_that_do_not_fit(stages, given, lowered, target):
    """Of 32 kB each (sm_80 has 163 kB, sm_90 has 227 kB), and a kernel's default is no request."""
    size, depth = 128, 64
    a = np.ones((size, 2 * depth), np.float16)
    b, c = np.ones((2 * depth, size), np.float16), np.zeros((size, size), np.float32)
    options = {"num_stages": given} if given else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        product[(1,)](a, b, c, 2 * depth, N=size, BK=depth, STAGES=stages, num_warps=8, **options)
    assert (c == 2 * depth).all()
    assert len(caught) == (lowered and target != "cpu")
    for warning in caught:
        assert f"num_stages=9 is lowered to {5 if target == 'sim:80' else 7}" in str(warning.message)
        assert "bytes of shared memory" in str(warning.message)
