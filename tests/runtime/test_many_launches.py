"""Many launches of many kernels, in random order and from many threads: right results, nothing kept, no memory lost."""

import gc
import random
import threading
import weakref

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime import background

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def enabled(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    yield
    assert background.wait()


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * factor, mask=offsets < n)


@triton.jit
def shift(x_ptr, out_ptr, n, by):
    i = tl.program_id(0)
    tl.store(out_ptr + i, tl.load(x_ptr + (i + by) % n))


@triton.jit
def add_rows(x_ptr, out_ptr, rows, stride, WIDTH: tl.constexpr):
    total = tl.zeros((WIDTH,), tl.float32)
    columns = tl.arange(0, WIDTH)
    for row in range(rows):
        total += tl.load(x_ptr + row * stride + columns)
    tl.store(out_ptr + columns, total)


@triton.jit
def fill(out_ptr, n, value, BLOCK: tl.constexpr = 32):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, value, mask=offsets < n)


@triton.jit
def choose(x_ptr, out_ptr, n, flag, OTHER: tl.constexpr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    if flag:
        x = x + OTHER
    tl.store(out_ptr + i, x, mask=i < n)


def run_scale(rng, kernel, dtype):
    n, factor = (
        rng.choice([1, 4, 8, 16, 64, rng.randrange(1, 200)]),
        rng.choice([1, 2, 3, 2**33 if dtype == "i8" else 5]),
    )
    x = np.arange(n + 1).astype(dtype)[rng.randrange(2) :][:n]
    out = np.zeros(n, dtype)
    kernel[(triton.cdiv(n, 64),)](x, out, n, int(factor), BLOCK=rng.choice([64, 128]))
    return [x, out], out, x * np.array(factor).astype(dtype)


def run_shift(rng, kernel, dtype):
    n, by = rng.choice([1, 2, 16, 33]), rng.choice([0, 1, 8, 5])
    x, out = np.arange(n).astype(dtype), np.zeros(n, dtype)
    kernel[(n,)](x, out, n, by)
    return [x, out], out, np.roll(x, -by)


def run_add_rows(rng, kernel, dtype):
    rows, stride = rng.choice([1, 2, 4, 16, 7]), rng.choice([16, 20, 33])
    x = np.arange(rows * stride, dtype="f4")
    out = np.zeros(16, "f4")
    kernel[(1,)](x, out, rows, stride, WIDTH=16)
    return [x, out], out, x.reshape(rows, stride)[:, :16].sum(0)


def run_fill(rng, kernel, dtype):
    n, value = rng.choice([1, 8, 31, 64]), rng.choice([0, 1, 7])
    out = np.zeros(n, dtype)
    options = rng.choice([{}, {"BLOCK": 16}, {"num_warps": 2}])
    kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](out, n=n, value=value, **options)
    return [out], out, np.full(n, value, dtype)


def run_choose(rng, kernel, dtype):
    n, flag, other = rng.choice([1, 8, 63, 64]), rng.choice([True, False, None, 1, 0]), rng.choice([1, 2])
    x, out = np.arange(n).astype(dtype), np.zeros(n, dtype)
    kernel[(1,)](x, out, n, flag, OTHER=other)
    return [x, out], out, x + other if flag else x


RUNS = [(run_scale, scale), (run_shift, shift), (run_add_rows, add_rows), (run_fill, fill), (run_choose, choose)]


def new_kernels():
    """Two of each, which nothing was compiled for."""
    return [(run, triton.jit(kernel.fn)) for run, kernel in RUNS * 2]


def launch_at_random(seed, kernels, ends):
    rng = random.Random(seed)
    launches = 0
    while not ends(launches):
        run, kernel = rng.choice(kernels)
        arrays, result, expected = run(rng, kernel, rng.choice(["f4", "i4", "i8"]))
        assert (result == expected).all(), (kernel, result, expected)
        kept = [weakref.ref(array) for array in arrays]
        del arrays, result, expected
        assert not any(reference() is not None for reference in kept)
        launches += 1
    return launches


@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_random_launches(count, target):
    launch_at_random(0, new_kernels(), lambda launches: launches == (count if target == "cpu" else count // 100))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def run_threads(count, kernels, threads=16):
    errors = []

    def work(seed):
        try:
            launch_at_random(seed, kernels, lambda launches: launches == count or errors)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("count", [1000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_sixteen_threads(count, target):
    count, kernels = count if target == "cpu" else count // 100, new_kernels()
    run_threads(count, kernels)  # all classes are compiled
    assert background.wait()
    gc.collect()
    before = resident()
    run_threads(count, kernels)
    assert background.wait()
    gc.collect()
    assert resident() - before < 64 << 20
