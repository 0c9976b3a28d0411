"""What the simulator finds wrong in a program, and how it says so: where an access goes, in which Python line."""

import inspect
import re
import time
from functools import partial

import numpy as np
import pytest
from gpu_kernels import matmul

import triton
import triton.language as tl


@pytest.fixture(autouse=True, params=["sim:80", "sim:90"])
def simulator(request, monkeypatch):
    monkeypatch.setenv("TRITON_TARGET", request.param)


def line_of(kernel, text):
    """Of the one line of a kernel that has this text in it."""
    source, first = inspect.getsourcelines(kernel.fn)
    (number,) = [first + i for i, line in enumerate(source) if text in line]
    return number


def wrong_access(kernel, text, access, array, *arguments, grid=(1,), **constants):
    """The launch fails at the line that has `text` in it: the index, and how many elements there are."""
    with pytest.raises(triton.MemoryAccessError) as caught:
        kernel[grid](*arguments, **constants)
    place = re.escape(f"{__file__}:{line_of(kernel, text)}")
    pattern = (
        rf"{place}: {access} out of bounds of the array '{array}': index (-?\d+), and it has (\d+) elements, in pro"
    )
    found = re.search(pattern, str(caught.value))
    assert found, str(caught.value)
    return int(found[1]), int(found[2])


def ones(n, dtype=np.float32):
    return np.ones(n, dtype)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, start, SIZE: tl.constexpr):
    i = start + tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x, mask=i < n)


def test_within_the_bounds():
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    copy_kernel[(2,)](x, y, 100, 0, SIZE=64)
    assert (x == y).all()


def test_a_load_past_the_end():
    said = wrong_access(copy_kernel, "tl.load", "load", "x_ptr", ones(99), ones(100), 100, 0, grid=(2,), SIZE=64)
    assert said == (99, 99)


def test_a_store_past_the_end():
    said = wrong_access(copy_kernel, "tl.store", "store", "y_ptr", ones(100), ones(99), 100, 0, grid=(2,), SIZE=64)
    assert said == (99, 99)


def test_a_vector_that_reaches_past_the_end():
    said = wrong_access(copy_kernel, "tl.load", "load", "x_ptr", ones(62), ones(64), 64, 0, SIZE=64)
    assert said == (62, 62)


def test_negative_offsets():
    said = wrong_access(copy_kernel, "tl.load", "load", "x_ptr", ones(64), ones(64), 64, -3, SIZE=64)
    assert said == (-3, 64)


def test_views_in_the_middle_of_an_array():
    """What lies beside the view is the program's memory, too: kernels reach from one of its arrays into the next."""
    whole, other = ones(300), ones(300)
    copy_kernel[(1,)](whole[100:164], other[:64], 64, 0, SIZE=64)
    copy_kernel[(1,)](whole[100:164], other[100:164], 200, 136, SIZE=64)
    for view, start in ((whole[10:74], -11), (whole[230:290], 7)):
        wrong_access(copy_kernel, "tl.load", "load", "x_ptr", view, ones(600)[20:], 300, start, SIZE=64)
    wrong_access(copy_kernel, "tl.store", "store", "y_ptr", ones(600), whole[260:300], 64, 0, SIZE=64)
    debugged = partial(copy_kernel.run, debug=True, grid=(1,))
    with pytest.raises(triton.MemoryAccessError, match="store out of bounds of the array 'y_ptr': index 50"):
        debugged(other, whole[100:150], 64, 0, SIZE=64)


def test_an_array_that_goes_backwards():
    x = np.arange(64, dtype=np.float32)
    copy_kernel[(1,)](x[::-1], ones(64), 1, 0, SIZE=64)
    wrong_access(copy_kernel, "tl.load", "load", "x_ptr", x[::-1], ones(64), 2, 0, SIZE=64)


def test_masked_lanes_access_nothing():
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    copy_kernel[(1,)](x, y, 10, 0, SIZE=1024)
    assert (x == y).all()
    copy_kernel[(1,)](x[:0], y[:0], 0, 0, SIZE=64)
    said = wrong_access(copy_kernel, "tl.load", "load", "x_ptr", x[:0].copy(), y[:0], 1, 0, SIZE=64)
    assert said == (0, 0)


@triton.jit
def gather_kernel(x_ptr, index_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    index = tl.load(index_ptr + i)
    tl.store(y_ptr + i, tl.load(x_ptr + index))


@pytest.mark.parametrize("index", [64, -1, 2**30])
def test_loaded_indices(index):
    indices = np.arange(64, dtype=np.int32)
    gather_kernel[(1,)](ones(64), indices, ones(64), SIZE=64)
    indices[37] = index
    said = wrong_access(gather_kernel, "tl.load(x_ptr", "load", "x_ptr", ones(64), indices, ones(64), SIZE=64)
    assert said == (index, 64)


@triton.jit
def count_kernel(counts_ptr, index_ptr, SIZE: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, SIZE))
    tl.atomic_add(counts_ptr + index, 1, mask=index >= 0)


@triton.jit
def swap_kernel(lock_ptr, place):
    tl.atomic_cas(lock_ptr + place, 0, 1)


def test_atomics():
    indices, counts = np.full(64, -1, np.int32), np.zeros(8, np.int32)
    indices[5] = 7
    count_kernel[(1,)](counts, indices, SIZE=64)
    assert counts.sum() == counts[7] == 1
    indices[6] = 8
    said = wrong_access(count_kernel, "tl.atomic_add", "atomic access", "counts_ptr", counts, indices, SIZE=64)
    assert said == (8, 8)
    swap_kernel[(1,)](counts, 0)
    assert counts[0] == 1
    said = wrong_access(swap_kernel, "tl.atomic_cas", "atomic access", "lock_ptr", counts, -1)
    assert said == (-1, 8)


@triton.jit
def promised_kernel(x_ptr, y_ptr, start, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.multiple_of(start, 4) + i))


def test_misaligned_vectors():
    """A promise that does not hold makes a vector of elements that does not begin where vectors may."""
    promised_kernel[(1,)](ones(600), ones(512), 8, SIZE=512)
    with pytest.raises(triton.MemoryAccessError, match="misaligned access") as caught:
        promised_kernel[(1,)](ones(600), ones(512), 7, SIZE=512)
    assert f"{__file__}:{line_of(promised_kernel, 'tl.load')}: " in str(caught.value)


@triton.jit
def load_third(x_ptr, i):
    return tl.load(x_ptr + 3 * i)


@triton.jit
def called_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, load_third(x_ptr, i))


def test_the_line_is_that_of_a_called_function():
    called_kernel[(1,)](ones(192), ones(64), SIZE=64)
    with pytest.raises(triton.MemoryAccessError) as caught:
        called_kernel[(1,)](ones(64), ones(64), SIZE=64)
    assert f"{__file__}:{line_of(load_third, 'tl.load')}: load out of bounds" in str(caught.value)


@triton.jit
def softmax_kernel(x_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(x_ptr + i, tl.softmax(tl.load(x_ptr + i)))


def test_an_array_is_read_and_written_in_place():
    x = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    e = np.exp(x - x.max())
    for warps in (1, 4, 8, 16):
        y = x.copy()
        softmax_kernel[(1,)](y, SIZE=256, num_warps=warps)
        np.testing.assert_allclose(y, e / e.sum(), rtol=1e-5)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_another_order_of_warps(monkeypatch, seed):
    monkeypatch.setenv("TRITON_SIM_SEED", seed)
    test_an_array_is_read_and_written_in_place()


@triton.jit
def sum_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, SIZE)), 0))


@pytest.mark.parametrize("size", [96, 128])
def test_padding_is_filled_on_request(monkeypatch, size):
    """What is computed does not show it; the code does."""
    x, y = np.arange(size, dtype=np.int32), np.zeros(1, np.int32)
    for word in (0, 0x12345678):
        monkeypatch.setenv("TRITON_SIM_PADDING", hex(word))
        kernel = triton.jit(sum_kernel.fn)  # compiled anew
        assert (str(0x12345678) in kernel[(1,)](x, y, SIZE=size).asm["llir"]) == (word != 0 and size == 96)
        assert y[0] == x.sum()


@triton.jit
def two_sums_kernel(a_ptr, b_ptr, sums_ptr, least_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The first sums are under way while other products are computed with."""
    a = tl.load(a_ptr + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    sums, least = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for step in range(steps):
        b = tl.load(b_ptr + step * (K * N) + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
        sums = tl.dot(a, b, sums)
        least += tl.minimum(tl.dot(a, b), 2)
        sums = tl.dot(a, b, sums)
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(sums_ptr + places, sums)
    tl.store(least_ptr + places, least)


def test_padding_of_sums_under_way_is_left_alone(monkeypatch):
    monkeypatch.setenv("TRITON_SIM_PADDING", "0x5a5a5a5a5a5a5a5a")
    rng = np.random.default_rng(0)
    m, n, k, steps = 64, 48, 16, 3
    a, b = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(-3, 4, (steps, k, n)).astype(np.float16)
    sums, least = np.zeros((2, m, n), np.float32)
    two_sums_kernel[(1,)](a, b, sums, least, steps, M=m, N=n, K=k, num_warps=4)
    products = a.astype(np.float32) @ b.astype(np.float32)
    assert (sums == 2 * products.sum(0)).all() and (least == np.minimum(products, 2).sum(0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_matrix_product_of_real_size_is_fast(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((256, 64)).astype(dtype), rng.standard_normal((64, 256)).astype(dtype)
    c = np.zeros((256, 256), np.float32)
    start = time.process_time()
    matmul[(1, 1)](a, b, c, 256, 256, 64, BM=256, BN=256, BK=64, num_warps=8)
    assert time.process_time() - start < 10  # it is a second or less
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_copies_that_land_now_or_later(monkeypatch, seed):
    monkeypatch.setenv("TRITON_SIM_SEED", seed)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (64, 160)).astype(np.float16), rng.integers(-3, 4, (160, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    matmul[(1, 2)](a, b, c, 64, 64, 160, BM=64, BN=32, BK=32, num_stages=3)
    assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()
