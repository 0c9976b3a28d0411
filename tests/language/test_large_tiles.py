"""Tiles of hundreds of elements for each thread, which GPUs work on a strip at a time: the results are the same."""

import numpy as np
import pytest
from harness import Array, check, evaluate, offsets, random, round_to

N = 8192  # 256 elements for each thread of one warp
ONE_WARP = {"num_warps": 1}


def numbers(*shape, dtype="int32", seed=0):
    return random(shape, dtype, seed=seed, low=-1000, high=1000).values


def test_elementwise_with_masks_and_two_outputs():
    x, y = random((N,), seed=1).values, random((N,), seed=2).values
    code = """
    i = tl.arange(0, 8192)
    inside = i < n
    a = tl.load(x_ptr + i, mask=inside, other=3.0)
    b = tl.load(y_ptr + i, mask=i % 3 != 0, other=-1.0)
    out = tl.where(a > b, a * b, a - b)
    other = inside.to(tl.int32) * 5 + i
    """
    i = np.arange(N)
    a, b = np.where(i < 5001, x, np.float32(3)), np.where(i % 3 != 0, y, np.float32(-1))
    expected = {"out": np.where(a > b, a * b, a - b), "other": ((i < 5001) * 5 + i).astype(np.int32)}
    check(code, {"x": x, "y": y, "n": 5001}, expected, **ONE_WARP)


@pytest.mark.parametrize("shape", [(64, 128), (4, 2048), (2048, 4), (60, 100), (5000,), (16, 8, 64)])
def test_sums_along_each_axis(shape):
    x = numbers(*shape)
    for axis in range(len(shape)):
        check(f"tl.sum(x, axis={axis})", {"x": x}, x.sum(axis, dtype=np.int32), **ONE_WARP)
    check("tl.sum(x)", {"x": x}, x.sum(dtype=np.int32), **ONE_WARP)


@pytest.mark.parametrize("warps", [1, 2])
@pytest.mark.parametrize("shape", [(4, 4096), (128, 128), (3, 5000)])
def test_softmax(shape, warps):
    x = random(shape, seed=3).values
    code = """
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    out = e / tl.sum(e, axis=1, keep_dims=True)
    """
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    check(code, {"x": x}, (e / e.sum(1, keepdims=True)).astype(np.float32), ulps=64, num_warps=warps)


def test_broadcasting_and_products_of_rows():
    x, row, column = numbers(64, 128), numbers(128, seed=1), numbers(64, seed=2)
    code = """
    a = x * row[None, :] + column[:, None]
    out = a - tl.max(a, axis=0)[None, :] + tl.min(a, axis=1)[:, None]
    """
    a = x * row[None, :] + column[:, None]
    expected = a - a.max(0)[None, :] + a.min(1)[:, None]
    check(code, {"x": x, "row": row, "column": column}, expected, **ONE_WARP)


def test_places_of_extremes():
    x = numbers(32, 256)
    expected = {"low": x.argmin(1).astype(np.int32), "high": x.argmax(0).astype(np.int32)}
    check("low = tl.argmin(x, axis=1)\nhigh = tl.argmax(x, axis=0)", {"x": x}, expected, **ONE_WARP)


@pytest.mark.parametrize("shape, axis", [((N,), 0), ((64, 128), 0), ((64, 128), 1), ((5000,), 0)])
def test_scans(shape, axis):
    x = numbers(*shape)
    check(f"tl.cumsum(x, axis={axis})", {"x": x}, x.cumsum(axis, dtype=np.int32), **ONE_WARP)
    back = np.flip(np.flip(x, axis).cumsum(axis, dtype=np.int32), axis)
    check(f"tl.cumsum(x, axis={axis}, reverse=True)", {"x": x}, back, **ONE_WARP)


def test_random_numbers_do_not_depend_on_strips():
    code = f"out = tl.rand(seed, {offsets((N,))})"
    blank = {"out": Array(np.zeros(N, np.float32), "float32")}
    few, many = (evaluate(code, {"seed": 7}, blank, num_warps=warps)["out"].values for warps in (1, 8))
    assert (few == many).all() and 0.45 < few.mean() < 0.55


def test_loop_in_one_strip():
    """The loop goes around within each strip: nobody meets in it."""
    x = numbers(N)
    code = """
    out = x
    for k in range(n):
        out = out * 3 + tl.load(x_ptr + (tl.arange(0, 8192) + k) % 8192)
    """
    expected = x.copy()
    for k in range(3):
        expected = expected * 3 + np.roll(x, -k)
    check(code, {"x": x, "n": 3}, expected, **ONE_WARP)


def test_loop_in_which_threads_meet():
    x = numbers(64, 128)
    code = """
    a, b, total = x, x * 2, 0
    for k in range(n):
        a, b = b - tl.sum(a, axis=0)[None, :], a + k
        total += tl.max(a)
    out = a + b * 7
    """
    a, b, total = x, x * 2, 0
    for k in range(3):
        a, b = b - a.sum(0, dtype=np.int32)[None, :], a + k
        total += a.max()
    expected = {"out": a + b * 7, "total": np.int32(total)}
    check(code, {"x": x, "n": 3}, expected, **ONE_WARP)
    check(code, {"x": x, "n": 0}, {"out": x + x * 14, "total": np.int32(0)}, **ONE_WARP)


def test_while_in_which_threads_meet():
    x = numbers(N)
    code = """
    out, rounds = x, 0
    while tl.sum(tl.abs(out)) > 5000:
        out = tl.where(out > 0, out // 2, -(-out // 2))
        rounds += 1
    """
    out, rounds = x, 0
    while np.abs(out).sum() > 5000:
        out, rounds = np.where(out > 0, out // 2, -(-out // 2)), rounds + 1
    check(code, {"x": x}, {"out": out.astype(np.int32), "rounds": np.int32(rounds)}, **ONE_WARP)


@pytest.mark.parametrize("n", [0, 1])
def test_branches_in_which_threads_meet(n):
    x = numbers(64, 128)
    code = """
    i = tl.arange(0, 128)[None, :] + tl.arange(0, 64)[:, None] * 2
    if n > 0:
        out = x - tl.sum(x, axis=0)[None, :] + i
        mask = i > 17
    else:
        out = x * 2
        mask = i % 2 == 0
    if n < 5:
        out = tl.where(mask, out, i)
    """
    i = np.arange(128)[None, :] + np.arange(64)[:, None] * 2
    out, mask = (x - x.sum(0, dtype=np.int32)[None, :] + i, i > 17) if n else (x * 2, i % 2 == 0)
    check(code, {"x": x, "n": n}, np.where(mask, out, i).astype(np.int32), **ONE_WARP)


def test_elements_that_change_threads():
    x = numbers(64, 128)
    check("x.T", {"x": x}, x.T.copy(), **ONE_WARP)
    check("tl.reshape(x.T, 8192) + 1", {"x": x}, x.T.reshape(-1) + 1, **ONE_WARP)
    index = numbers(64, 128, seed=4) % 128
    expected = np.take_along_axis(x, index, 1)
    check("tl.gather(x, index, axis=1)", {"x": x, "index": index}, expected, **ONE_WARP)


def test_histogram():
    x = numbers(N) % 64
    check("tl.histogram(x, 64)", {"x": x}, np.bincount(x, minlength=64).astype(np.int32), **ONE_WARP)


def test_atomics():
    x, place = numbers(N), (numbers(N, seed=5) % 50).astype(np.int32)
    code = """
    old = tl.atomic_add(sums_ptr + tl.load(place_ptr + tl.arange(0, 8192)), x)
    first = tl.atomic_add(sums_ptr + 50, 3)
    tl.debug_barrier()
    sums = tl.load(sums_ptr + tl.arange(0, 64))
    """
    expected = np.bincount(place, x, 64).astype(np.int32)
    expected[50] += 3
    results = {"sums": Array(np.zeros(64, np.int32), "int32"), "first": Array(np.int32(7), "int32")}
    actual = evaluate(code, {"x": x, "place": place}, results, once=True, **ONE_WARP)
    assert (actual["sums"].values == expected).all() and actual["first"].values == 0


def test_elements_and_rows():
    x = numbers(64, 128)
    check("x[n, 5] + x[n + 1, 77]", {"x": x, "n": 9}, x[9, 5] + x[10, 77], **ONE_WARP)
    check("x[n] + x[:, 3][0]", {"x": x, "n": 9}, x[9] + x[0, 3], **ONE_WARP)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int8"])
def test_other_widths(dtype):
    x = random((N,), dtype, seed=6, low=-50, high=50)
    wide = {"float16": np.float32, "int8": np.int32}.get(dtype, x.values.dtype)
    expected = {"out": (x.values + x.values).astype(x.values.dtype), "most": x.values.max().astype(wide)}
    check("out = x + x\nmost = tl.max(x)", {"x": x}, expected, **ONE_WARP)


def test_branch_that_leaves_everything_as_it_is():
    """Where threads meet on one side and nothing is done on the other, all strips keep what they have."""
    x = numbers(64, 128)
    code = """
    out = x * 2 + 1
    for k in range(n):
        if k % 2 == 1:
            out = out - tl.sum(out, axis=0)[None, :]
        out += 1
    """
    out = x * 2 + 1
    for k in range(3):
        out = (out - out.sum(0, dtype=np.int32)[None, :] if k % 2 else out) + 1
    check(code, {"x": x, "n": 3}, out, **ONE_WARP)


def test_long_loop_that_combines_lanes():
    """What shuffles need on the stack does not add up."""
    x = numbers(64, 128)
    code = """
    out = x
    for k in range(n):
        out = out - tl.max(out, axis=1)[:, None] + tl.max(out, axis=0)[None, :]
    """
    out, n = x, 300
    for _ in range(n):
        out = out - out.max(1)[:, None] + out.max(0)[None, :]
    check(code, {"x": x, "n": n}, out, **ONE_WARP)


def test_sums_in_fp16_that_a_branch_adds_to():
    """They leave the branch two to a word, which is taken apart for each strip."""
    a, b = (random(shape, "int32", low=-1, high=2).values.astype(np.float16) for shape in [(64, 192), (192, 128)])
    code = """
    i, j, k = tl.arange(0, 64), tl.arange(0, 128), tl.arange(0, 64)
    out, other, rows = tl.zeros((64, 128), tl.float16), tl.zeros((64, 128), tl.float16), i
    for start in range(0, n, 64):
        if start != 64:
            if start == 128:
                rows = i // 2
            x = tl.load(a_ptr + rows[:, None] * n + start + k[None, :])
            y = tl.load(b_ptr + (start + k)[:, None] * 128 + j[None, :])
            out = tl.dot(x, y, out, out_dtype=tl.float16)
            if start == 0:
                other += out
    """
    whole, rows = a.astype(np.float32), np.arange(64) // 2
    before = whole[:, :64] @ b[:64]
    expected = {"out": before + whole[rows, 128:] @ b[128:], "other": before}
    check(code, {"a": a, "b": b, "n": 192}, {k: v.astype(np.float16) for k, v in expected.items()}, **ONE_WARP)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "float8e5", "float64"])
def test_products_whose_sums_are_too_many_for_the_registers(dtype, stages):
    sums, steps = {"int8": "int32", "float64": "float64"}.get(dtype, "float32"), 5
    a, b = (round_to(random(shape, "int32", low=-2, high=3).values, dtype) for shape in [(128, 160), (160, 128)])
    code = f"""
    i, k = tl.arange(0, 128), tl.arange(0, 32)
    out, other = tl.zeros((128, 128), tl.{sums}), tl.zeros((128, 128), tl.{sums})
    for step in range(n):
        x = tl.load(a_ptr + i[:, None] * 160 + (step * 32 + k)[None, :])
        y = tl.load(b_ptr + (step * 32 + k)[:, None] * 128 + i[None, :])
        out = tl.dot(x, y, out)
        if step % 2 == 1:
            other += tl.dot(x, y)
    most = tl.max(out, axis=1)
    """
    x, y = a.values.astype(sums), b.values.astype(sums)
    products = [x[:, k : k + 32] @ y[k : k + 32] for k in range(0, 32 * steps, 32)]
    expected = {"out": sum(products), "other": products[1] + products[3], "most": sum(products).max(1)}
    check(code, {"a": a, "b": b, "n": steps}, expected, num_stages=stages, **ONE_WARP)
