"""Arrays of more than 2**31 elements: offsets that 32 bits do not hold are computed in 64, and only these."""

import random

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime import background

pytestmark = pytest.mark.host

COUNT = 3_000_000_000


@pytest.fixture(scope="module")
def large():
    """Zeros that take no memory before they are written."""
    return np.zeros(COUNT, np.int8)


def widths(kernel):
    return sorted(compiled.metadata.wide_offsets for compiled in kernel.variants())


def written(large, at):
    """Whether these elements were set; clears them."""
    result = bool(large[at].all())
    large[at] = 0
    return result


def new(function):
    """A kernel that is not compiled yet."""
    return triton.jit(function)


def fill(x_ptr, first, n, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) + first) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1, mask=offsets < n)


@pytest.mark.parametrize("n", [COUNT, COUNT - 500])
def test_blocks(large, n):
    kernel = new(fill)
    first = COUNT // 1024 - 1
    kernel[(3,)](large, first, n, BLOCK=1024)
    assert written(large, np.arange(first * 1024, n))
    assert not large[-500:].any()
    assert widths(kernel) == [True]


def test_the_last_block_of_an_array_of_almost_two_to_the_31():
    """The offsets behind the end wrap around, and the mask must see that they are behind it."""
    n = 2**31 - 100
    x = np.zeros(n, np.int8)
    kernel = new(fill)
    kernel[(3,)](x, n // 1024 - 1, n, BLOCK=1024)
    assert x[-2500:].sum() == n - (n // 1024 - 1) * 1024
    assert widths(kernel) == [True]


def test_both_widths_are_there_side_by_side(large):
    kernel = new(fill)
    for _ in range(3):
        kernel[(1,)](large, 0, COUNT, BLOCK=1024)
        assert written(large, np.arange(1024))
        kernel[(1,)](large, 2_500_000, COUNT, BLOCK=1024)
        assert written(large, np.arange(1024) + 2_500_000 * 1024)
    assert widths(kernel) == [False, True]


def test_wide_launches_of_a_kernel_that_has_general_variants(large, monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new(fill)
    kernel[(1,)](large, 16, COUNT, BLOCK=1024)
    assert written(large, np.arange(1024) + 16 * 1024)
    assert background.wait()
    for first in (2_500_016, 2_500_001, 1, 2_500_008, 16, 2_500_008, 2_500_016):
        kernel[(1,)](large, first, COUNT, BLOCK=1024)
        at = np.arange(1024) + first * 1024
        assert written(large, at)
    assert background.wait()
    assert kernel[(1,)](large, 2_500_016, COUNT, BLOCK=1024).metadata.divisibility["first"] == 16
    assert written(large, np.arange(1024) + 2_500_016 * 1024)


def test_small_launches_never_compile_the_wide_variant():
    kernel = new(fill)
    x = np.zeros(100_000, np.int8)
    for n in [100_000, 10_000, 99_999 // 7 * 7]:
        kernel[(triton.cdiv(n, 1024),)](x, 0, n, BLOCK=1024)
    assert not any(widths(kernel))


def rows(x_ptr, first, stride, columns, N: tl.constexpr):
    row = first + tl.program_id(0)
    c = tl.arange(0, N)
    tl.store(x_ptr + row * stride + c, 1, mask=c < columns)


def tiles(x_ptr, first, stride_m, stride_n, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = (first + tl.program_id(0)) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(x_ptr + m[:, None] * stride_m + n[None, :] * stride_n, 1, mask=(m[:, None] < M) & (n[None, :] < N))


def test_rows(large):
    new(rows)[(2,)](large, 28_999, 100_000, 13, N=16)
    at = (np.array([28_999, 29_000])[:, None] * 100_000 + np.arange(13)).ravel()
    assert written(large, at) and not large[at + 13].any()


def test_tiles(large):
    new(tiles)[(2, 3)](large, 3, 20_000_000, 3, 130, 90, BM=32, BN=32)
    at = (np.arange(96, 130)[:, None] * 20_000_000 + np.arange(90) * 3).ravel()
    assert written(large, at)


def backwards(x_ptr, last, first, stride, N: tl.constexpr):
    row = first + tl.program_id(0)
    tl.store(x_ptr + (last - row * stride) + tl.arange(0, N), 1)


def test_a_difference(large):
    new(backwards)[(1,)](large, 2**31 - 1, 200, 10_000_000, N=16)
    assert written(large, 2**31 - 1 - 2_000_000_000 + np.arange(16))
    new(backwards)[(1,)](large, 500_000_000, 200, -10_000_000, N=16)
    assert written(large, 2_500_000_000 + np.arange(16))


def carried(x_ptr, step, count, N: tl.constexpr):
    offsets = tl.arange(0, N)
    for _ in range(count):
        tl.store(x_ptr + offsets, 1)
        offsets += step


def by_index(x_ptr, start, chunk, step, N: tl.constexpr):
    for i in range(start * chunk, start * chunk + 2 * step, step):
        tl.store(x_ptr + i + tl.arange(0, N), 1)


def by_while(x_ptr, start, chunk, step, N: tl.constexpr):
    i = start * chunk
    while i < start * chunk + 2 * step:
        tl.store(x_ptr + i + tl.arange(0, N), 1)
        i += step


def by_bound(x_ptr, start, n, step, N: tl.constexpr):
    i = start
    while i < n:
        tl.store(x_ptr + i + tl.arange(0, N), 1)
        i += step


def test_what_a_loop_carries(large):
    new(carried)[(1,)](large, 700_000_001, 5, N=8)
    assert written(large, (np.arange(5)[:, None] * 700_000_001 + np.arange(8)).ravel())


@pytest.mark.parametrize("function", [by_index, by_while])
def test_a_loop_over_offsets(large, function):
    new(function)[(1,)](large, 2800, 1_000_000, 3000, N=8)
    assert written(large, (2_800_000_000 + np.arange(2)[:, None] * 3000 + np.arange(8)).ravel())


def test_a_loop_whose_last_step_leaves_32_bits(large):
    new(by_bound)[(1,)](large, 2_000_000_000, 2**31 - 1, 100_000_000, N=8)
    assert written(large, (2_000_000_000 + np.arange(2)[:, None] * 100_000_000 + np.arange(8)).ravel())


def split(x_ptr, first, width, stride, BLOCK: tl.constexpr):
    """A flat index that is divided again, as for arrays of several dimensions."""
    index = (tl.program_id(0) + first) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + index // width * stride + index % width, 1)


def test_division_of_a_flat_index(large):
    new(split)[(1,)](large, 2_700_000, 1_000_000, 1_000_003, BLOCK=1024)
    index = 2_700_000 * 1024 + np.arange(1024)
    assert written(large, index // 1_000_000 * 1_000_003 + index % 1_000_000)


def several(x_ptr, i, stride, far: tl.constexpr):
    """Branches and choices."""
    offset = i * stride
    if i > 5:
        offset = offset - stride
    offset = tl.where(i < 3, 5, tl.maximum(offset, 7))
    pointer = x_ptr + offset
    tl.store(pointer, 1)


@pytest.mark.parametrize("i, at", [(1, 5), (4, 2_400_000_000), (6, 3_000_000_000 - 600_000_000 + 600_000_000)])
def test_branches(large, i, at):
    stride = 600_000_000 if i < 6 else 590_000_000
    expected = 5 if i < 3 else i * stride if i < 6 else (i - 1) * stride
    new(several)[(1,)](large, i, stride, far=1)
    assert written(large, np.array([expected]))


def stored(x_ptr, out_ptr, i, stride):
    offset = i * stride
    tl.store(x_ptr + offset, 1)
    tl.store(out_ptr, offset)


def test_a_number_that_is_stored_wraps_around(large):
    out = np.zeros(1, np.int32)
    new(stored)[(1,)](large, out, 30_000, 90_000)
    assert written(large, np.array([2_700_000_000])) and out[0] == 2_700_000_000 - 2**32


def looked_up(x_ptr, index_ptr, n, N: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, N))
    tl.store(x_ptr + index * n, 1)


def test_what_comes_from_memory_is_left_as_it_was_written():
    kernel = new(looked_up)
    x = np.zeros(2**16, np.int8)
    index = np.array([3, 1 << 20, 5, 7], np.int32)
    kernel[(1,)](x, index, 1 << 12, N=4)
    assert x.nonzero()[0].tolist() == [0, 3 << 12, 5 << 12, 7 << 12]
    assert widths(kernel) == [False]


def test_only_what_a_launch_needs_is_checked():
    """Constants and remainders bound an offset whatever the launch; so one variant does."""

    @triton.jit
    def bounded(x_ptr, n, N: tl.constexpr):
        i = tl.program_id(0) % 1000 * 1000 + tl.arange(0, N)
        tl.store(x_ptr + i % 4096, 1)

    x = np.zeros(4096, np.int8)
    bounded[(2,)](x, 2**31 - 1, N=8)
    assert x[:8].all() and x[1000:1008].all()
    assert widths(bounded) == [False]


def test_a_compiled_kernel_refuses_what_it_is_too_narrow_for(large):
    kernel = new(rows)
    compiled = kernel[(1,)](large, 0, 100_000, 13, N=16)
    with pytest.raises(ValueError, match="compiled with offsets of 32 bits.*launch the kernel itself"):
        compiled.run(2, 1, 1, 0, None, None, None, None, None, large, 28_992, 100_000, 13, 16)
    compiled[(1, 1, 1)](large, 28_992, 100_000, 13, 16)  # which is the kernel with these constants
    assert written(large, 28_992 * 100_000 + np.arange(13))


def test_a_bad_grid_is_told_before_anything_is_compiled():
    kernel = new(rows)
    with pytest.raises(ValueError, match="extents cannot be negative"):
        kernel[(-1,)](np.zeros(16, np.int8), 0, 16, 13, N=16)
    assert not kernel.variants()


# ---- random expressions ----


def divide(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


OPERATORS = {
    "{} + {}": lambda x, y: x + y,
    "{} - {}": lambda x, y: x - y,
    "{} * {}": lambda x, y: x * y,
    "tl.minimum({}, {})": min,
    "tl.maximum({}, {})": max,
    "{} // {}": divide,
    "{} % {}": lambda x, y: x - divide(x, y) * y,
}
LEAVES = {"tl.program_id(0)": "pid", "tl.num_programs(1)": "count", "a": "a", "b": "b", "c": "c", "r": "r"}
LEAVES |= {number: int(number) for number in ("3", "1000", "65536")}
TEMPLATE = """
def template(x_ptr, a, b, c, n):
    r = tl.arange(0, 4)
    index = {} + r * 0
    tl.store(x_ptr + index, 1, mask=(index >= 0) & (index < n))
"""


@triton.jit
def template(x_ptr, a, b, c, n):
    pass


class TooLarge(Exception):
    pass


def leaf(rng, among):
    text = rng.choice(among)
    value = LEAVES[text]
    return text, lambda names: names.get(value, value)


def expression(rng, depth):
    """Its text, and a function from the values of its names to the number that it is."""
    if depth == 0 or rng.random() < 0.1:
        return leaf(rng, list(LEAVES))
    operator = rng.choice(list(OPERATORS))
    left = expression(rng, depth - 1)
    right = leaf(rng, ["3", "1000", "b"]) if "//" in operator or "%" in operator else expression(rng, depth - 1)

    def value(names):
        result = OPERATORS[operator](left[1](names), right[1](names))
        if abs(result) >= 2**63:
            raise TooLarge
        return result

    return f"({operator.format(left[0], right[0])})", value


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions(large, seed):
    """The elements that are written are those that arithmetic without bounds says, for any size of arguments."""
    rng = random.Random(seed)
    text, value = expression(rng, 4)
    kernel = new(template.fn)
    kernel._unsafe_update_src(TEMPLATE.format(text).strip())
    for _ in range(8):
        sizes = [rng.choice([50, 1000, 70_000, 2**31 - 1]) for _ in range(3)]
        a, b, c = (rng.randrange(2, size) for size in sizes)
        count = rng.randrange(2, 4)
        names = {"a": a, "b": b, "c": c, "count": count}
        try:
            at = {value({**names, "pid": pid, "r": r}) for pid in range(3) for r in range(4)}
        except TooLarge:
            continue
        kernel[(3, count)](large, a, b, c, COUNT)
        assert written(large, np.array(sorted(i for i in at if 0 <= i < COUNT), np.int64)), (text, names)
