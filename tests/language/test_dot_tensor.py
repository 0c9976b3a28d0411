"""`tl.dot` as programs use it, on what tensor cores take: every operand type, layout of memory and shape, loops that
load ahead, chains of products, and what comes before and after them. Results are compared with NumPy in float64, within
what the formats allow."""

import math

import numpy as np
import pytest
from block_products import AHEAD, BRANCHES, WAYS, picked_steps, product_in_a_way, product_of_triangle, tiles_in_one_loop
from harness import DTYPES, Array, Buffer, jit, random, round_to

import triton
import triton.language as tl

OPERANDS = ["float16", "bfloat16", "float32", "float64", "int8", "float8e4nv", "float8e5"]


ROUNDINGS = {"tf32": 2.0**-9, "tf32x3": 2.0**-19, "bf16x3": 2.0**-14, "bf16x6": 2.0**-21}  # of float32 operands


def sum_of(dtype):
    """Of products of this dtype."""
    return {"int8": "int32", "float64": "float64"}.get(dtype, "float32")


def small(shape, dtype, seed):
    """Integers whose products and sums are exact in every dtype, so that results are."""
    return round_to(random(shape, "int32", seed, low=-3, high=4).values, dtype)


def exact(x):
    return x.values.astype(np.float64)


def limit(x, y, dtype, precision=None, target=""):
    """How far from the exact product the sums may be: operands in float64, (..., m, k) and (..., k, n)."""
    if dtype == "int8":
        return 0.0
    size, k = np.abs(x) @ np.abs(y), x.shape[-1]
    rounding = ROUNDINGS.get(precision, 0)
    if target.startswith("cuda") and dtype.startswith("float8"):
        rounding = 2.0**-11  # their sums have fewer bits there
    return size * (rounding + (k + 2) * 2.0 ** (-52 if dtype == "float64" else -23))


def near(found, expected, within):
    found = exact(found) if isinstance(found, Array) else found.astype(np.float64)
    off = np.abs(found - expected) - within
    assert not np.isnan(found).any(), f"{np.isnan(found).sum()} of {found.size} are NaN"
    assert (off <= 0).all(), f"{(off > 0).sum()} of {off.size} are wrong, the first at {np.argwhere(off > 0)[0]}"


def launch(kernel, grid, *arguments, out, **options):
    """Launches with Arrays and numbers, then `out`; what `out` holds afterwards."""
    result = Buffer(out)
    kernel[grid](*(Buffer(a).argument if isinstance(a, Array) else a for a in arguments), result.argument, **options)
    return result.host()


def blank(shape, dtype):
    return Array(np.full(shape, 7, DTYPES[dtype].values), dtype)


# ---- a tiled product, with everything that may vary -----------------------------------------------------------------


@triton.jit
def matmul(
    a, b, M, N, K, am, ak, bk, bn, c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr, PRECISION: tl.constexpr = None,
    STAGES: tl.constexpr = 3, CARRIED: tl.constexpr = False, TA: tl.constexpr = False, TB: tl.constexpr = False,
    OTHER: tl.constexpr = 0, IMPRECISE: tl.constexpr = None,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), SUM)
    # TA, TB: the tile is loaded as the transposed matrix, and turned
    x_offsets = depth[:, None] * ak + rows[None, :] * am if TA else rows[:, None] * am + depth[None, :] * ak
    y_offsets = columns[:, None] * bn + depth[None, :] * bk if TB else depth[:, None] * bk + columns[None, :] * bn
    x_ptrs = a + x_offsets
    y_ptrs = b + y_offsets
    x_rows = rows[None, :] < M if TA else rows[:, None] < M
    y_columns = columns[:, None] < N if TB else columns[None, :] < N
    for k in tl.range(0, K, BK, num_stages=STAGES):
        x_depth = (depth[:, None] if TA else depth[None, :]) < K - k
        y_depth = (depth[None, :] if TB else depth[:, None]) < K - k
        if CARRIED:
            x = tl.load(x_ptrs, mask=x_rows & x_depth, other=OTHER)
            y = tl.load(y_ptrs, mask=y_columns & y_depth, other=0)
            x_ptrs += BK * ak
            y_ptrs += BK * bk
        else:
            x = tl.load(a + k * ak + x_offsets, mask=x_rows & x_depth, other=OTHER)
            y = tl.load(b + k * bk + y_offsets, mask=y_columns & y_depth, other=0)
        if TA:
            x = tl.trans(x)
        if TB:
            y = tl.trans(y)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=SUM)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def multiply(x, y, blocks, turned=(False, False), sums=None, **options):
    """The product by `matmul`; turned: the operand lies in memory as its transposed matrix. `sums`: their dtype."""
    (m, k), n = x.shape, y.shape[1]
    arrays = [Array(np.ascontiguousarray(o.values.T), o.dtype) if t else o for o, t in zip((x, y), turned, strict=True)]
    strides = [(s[1], 1) if not t else (1, s[0]) for s, t in zip((x.shape, y.shape), turned, strict=True)]
    kind = sums or sum_of(x.dtype)
    return launch(
        matmul, (triton.cdiv(m, blocks[0]), triton.cdiv(n, blocks[1])), *arrays, m, n, k, *strides[0], *strides[1],
        out=blank((m, n), kind), BM=blocks[0], BN=blocks[1], BK=blocks[2], SUM=getattr(tl, kind), **options,
    )  # fmt: skip


def check_product(x, y, blocks, target="", precision="tf32", **options):
    found = multiply(x, y, blocks, PRECISION=precision if x.dtype == "float32" else None, **options)
    within = limit(exact(x), exact(y), x.dtype, precision if x.dtype == "float32" else None, target)
    near(found, exact(x) @ exact(y), within)


def operands(dtype, m, n, k, whole=False, seed=0):
    make = small if whole else random
    return make((m, k), dtype, seed + 1), make((k, n), dtype, seed + 2)


@pytest.mark.parametrize("dtype", OPERANDS)
def test_operand_types(dtype, target):
    check_product(*operands(dtype, 128, 64, 128), (64, 64, 32), target)


@pytest.mark.parametrize("precision", ["ieee", *ROUNDINGS])
def test_precisions(precision, target):
    check_product(*operands("float32", 64, 64, 96), (64, 32, 32), target, precision)


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6"])
def test_operands_in_parts_keep_infinities(precision):
    """Largest numbers, infinities and NaN, and numbers whose lower parts are zero."""
    largest = float(np.finfo(np.float32).max)
    x = np.ones((16, 16), np.float32)
    x[0, 0], x[1, 1], x[2, 2], x[3, 3], x[4, :2] = np.inf, -np.inf, np.nan, largest, (np.inf, -np.inf)
    y = np.full((16, 16), 0.5, np.float32)
    found = multiply(Array(x, "float32"), Array(y, "float32"), (16, 16, 16), PRECISION=precision)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(exact(found), expected, rtol=1e-5)


@pytest.mark.parametrize("a, b", [("float8e4nv", "float8e5"), ("float8e5", "float8e4nv")])
def test_two_formats(a, b, target):
    x, y = random((64, 64), a, 1), random((64, 32), b, 2)
    check_product(x, y, (64, 32, 64), target)


@pytest.mark.parametrize("most", [0, 1, 32, 48, 64])
def test_partial_sums(most):
    for depth in (64, 80):
        x, y = operands("float8e5", 64, 64, 3 * depth, whole=True)
        check_product(x, y, (64, 32, depth), IMPRECISE=most)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "float8e5"])
@pytest.mark.parametrize("a", ["rows", "columns", "turned"])
@pytest.mark.parametrize("b", ["rows", "columns", "turned"])
def test_memory_layouts(dtype, a, b):
    """Either operand along its rows or columns in memory, or loaded as its transposed matrix and turned."""
    turned = (a != "rows", b != "rows")
    check_product(
        *operands(dtype, 64, 64, 64, whole=True), (64, 32, 32), turned=turned, TA=a == "turned", TB=b == "turned"
    )


@pytest.mark.parametrize(
    "blocks",
    [
        (16, 16, 16), (16, 8, 16), (32, 16, 32), (64, 16, 16), (64, 256, 16), (128, 128, 64), (256, 64, 32),
        (16, 128, 64), (64, 512, 16), (8, 64, 32), (64, 8, 32), (1, 64, 32), (64, 1, 32), (4, 4, 64), (96, 48, 32),
        (64, 64, 8),
    ],
)  # fmt: skip
def test_shapes(blocks):
    check_product(*operands("float16", blocks[0], blocks[1], 2 * blocks[2], whole=True), blocks)


@pytest.mark.parametrize("dtype, blocks", [
    ("int8", (16, 16, 32)), ("int8", (128, 128, 64)), ("float8e4nv", (64, 128, 128)), ("bfloat16", (128, 64, 32)),
    ("float32", (64, 128, 32)), ("float32", (16, 16, 8)), ("float64", (64, 32, 16)), ("float64", (16, 8, 8)),
])  # fmt: skip
def test_shapes_of_other_types(dtype, blocks):
    check_product(*operands(dtype, blocks[0], blocks[1], 2 * blocks[2], whole=True), blocks)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("dtype", OPERANDS)
def test_any_depth(dtype, stages, turned):
    """K that an instruction does not have: too small, or not a power of two. Nothing of what is beyond it counts."""
    for depth in (1, 2, 3, 4, 7, 8, 12, 20, 24, 48, 96):
        x, y = operands(dtype, 64, 16, 2 * depth, whole=True, seed=depth)
        options = {"TA": turned, "TB": turned, "STAGES": stages, "num_warps": 4}
        check_product(x, y, (64, 16, depth), turned=(turned, turned), **options)


@triton.jit
def of_computed(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Operands that are infinite beyond K, if anything there was."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    x = 1 / (tl.load(a + i * K + k[None, :]) * 1.0)
    y = 1 / (tl.load(b + k[:, None] * N + j) * 1.0)
    tl.store(c + i * N + j, tl.dot(x.to(tl.float16), y.to(tl.float16)))


@pytest.mark.parametrize("m, n, k", [(64, 16, 24), (16, 4, 3), (8, 1, 1), (64, 32, 5), (64, 64, 48), (3, 5, 7)])
def test_computed_operands_of_any_depth(m, n, k):
    powers = [2.0 ** np.random.default_rng(i).integers(-2, 3, s) for i, s in enumerate(((m, k), (k, n)))]
    x, y = (Array(p.astype(np.float32), "float32") for p in powers)
    found = launch(of_computed, (1,), x, y, out=blank((m, n), "float32"), M=m, N=n, K=k)
    near(found, (1 / exact(x)) @ (1 / exact(y)), 0)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "dtype, blocks",
    [("float16", (64, 64, 32)), ("float16", (128, 32, 32)), ("int8", (32, 64, 64)), ("float32", (64, 64, 16))],
)
def test_warps(dtype, blocks, warps):
    check_product(*operands(dtype, blocks[0], 2 * blocks[1], 100, whole=True), blocks, num_warps=warps)


@pytest.mark.parametrize("warps", [16, 32])
def test_large_tiles_of_many_warps(warps):
    """A thread has as many registers as sums, or half as many."""
    check_product(*operands("float16", 256, 256, 40, whole=True), (256, 256, 32), STAGES=2, num_warps=warps)


# ---- loops ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5])
def test_trip_counts(stages, carried):
    """None, one, two, several, with a last one that is not whole; what masks leave out of one operand is not zero."""
    for k in (0, 5, 32, 50, 64, 176, 250):
        x, y = operands("float16", 70, 90, max(k, 1), whole=True, seed=k)
        x, y = Array(x.values[:, :k], x.dtype), Array(y.values[:k], y.dtype)
        found = multiply(x, y, (64, 64, 32), STAGES=stages, CARRIED=carried, OTHER=2)
        near(found, exact(x) @ exact(y), 0)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float8e4nv"])
def test_trip_counts_of_other_types(dtype):
    for k in (1, 64, 150):
        check_product(*operands(dtype, 50, 40, k, whole=True), (64, 32, 32), STAGES=3, CARRIED=True)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("dtype, one_misaligned", [("float16", False), ("float16", True), ("float8e4nv", False)])
def test_more_sums_and_elements_than_registers(dtype, one_misaligned, stages):
    """Rows begin anywhere, so their elements come through registers; those of `y` may be copied beside."""
    for k in (1, 64, 129, 321):
        n = 128 if one_misaligned else 131
        check_product(*operands(dtype, 67, n, k, whole=True), (128, 128, 64), STAGES=stages, num_warps=4)


@triton.jit
def of_a_mask_by_values(a, b, table, c, n, out):
    """A narrow operand that is copied ahead, and also read for the mask of another one."""
    i, j, k = tl.arange(0, 64)[:, None], tl.arange(0, 8)[None, :], tl.arange(0, 16)
    sums = tl.zeros((64, 8), tl.int32)
    for start in range(0, n, 16):
        x = tl.load(a + i * n + start + k[None, :], start + k[None, :] < n, other=0)
        row = tl.load(table + start + k[None, :], start + k[None, :] < n, other=0)
        y = tl.trans(tl.load(b + tl.arange(0, 8)[:, None] + row * 8, start + k[None, :] < n, other=0))
        z = tl.load(c + (start + k[:, None]) * 8 + j, (start + k[:, None] < n) & (y > 0), other=0)
        sums += tl.dot(x, y, out_dtype=tl.int32)
        sums = tl.dot(x, z, sums, out_dtype=tl.int32)
    tl.store(out + i * 8 + j, sums)


def test_copies_of_fewer_elements_than_threads():
    rng, n = np.random.default_rng(4), 79
    x, y, z = (rng.integers(-3, 4, shape).astype(np.int8) for shape in ((64, n), (n, 8), (n, 8)))
    table, out = rng.permutation(n).astype(np.int32), Buffer(np.zeros((64, 8), np.int32))
    arguments = [Buffer(each).argument for each in (x, y, table, z)]
    of_a_mask_by_values[(1,)](*arguments, n, out.argument)
    right = y[table].astype(np.int32) + np.where(y[table] > 0, z, 0)
    assert (out.host().values == x.astype(np.int32) @ right).all()


@pytest.mark.parametrize("stages", [6, 7])
def test_products_of_one_step(stages):
    """No part can be issued ahead of the rest; with 7 stages a slot more would cost a program on the multiprocessor."""
    check_product(*operands("float16", 64, 64, 90, whole=True), (64, 64, 16), STAGES=stages, num_warps=4)


@triton.jit
def of_narrow_rows(a, b, n, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LIMIT: tl.constexpr):
    """The first LIMIT elements of rows that a thread holds whole: the mask is constant, and may end within 16 bytes."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(n):
        x = tl.load(a + (step * M + i) * K + k[None, :], mask=k[None, :] < LIMIT, other=0)
        y = tl.load(b + (step * K + k[:, None]) * N + j)
        acc = tl.dot(x.to(tl.float16), y.to(tl.float16), acc)
    tl.store(c + i * N + j, acc)


@triton.jit
def added_to(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    acc = tl.load(c + i * N + j)
    acc = tl.dot(tl.load(a + i * K + k[None, :]), tl.load(b + k[:, None] * N + j), acc)
    tl.store(out + i * N + j, acc)


@pytest.mark.parametrize("m", [32, 64])
def test_sums_of_integers_at_their_limits(m, target):
    """They stay there where a warp multiplies, and wrap where a warpgroup or a processor does."""
    rng = np.random.default_rng(3)
    x, y = (Array(rng.integers(-128, 128, shape).astype(np.int8), "int8") for shape in ((m, 32), (32, 32)))
    limits = np.where(rng.integers(0, 2, (m, 32)) == 1, 2**31 - 1, -(2**31)).astype(np.int32)
    found = launch(added_to, (1,), x, y, Array(limits, "int32"), out=blank((m, 32), "int32"), M=m, N=32, K=32)
    sums = x.values.astype(np.int64) @ y.values.astype(np.int64) + limits
    arch = triton.runtime.driver.active.get_current_target().arch
    wraps = target in ("cpu", "interpret") or (m == 64 and arch == 90)
    expected = sums.astype(np.int32) if wraps else np.clip(sums, -(2**31), 2**31 - 1)
    assert (found.values == expected).all()


@pytest.mark.parametrize("dtype", ["int8", "float8e5", "float16"])
def test_masks_that_end_within_a_copy(dtype):
    for limit in (4, 8, 12):
        x, y = small((3, 32, 16), dtype, 1), small((3, 16, 32), "float16", 2)
        shape = {"M": 32, "N": 32, "K": 16, "LIMIT": limit}
        found = launch(of_narrow_rows, (1,), x, y, 3, out=blank((32, 32), "float32"), num_warps=8, **shape)
        near(found, (exact(x)[:, :, :limit] @ exact(y)[:, :limit]).sum(0), 0)


@triton.jit
def nested(a, b, K, splits, c, N: tl.constexpr, BK: tl.constexpr):
    """Sum over i of a_i b_i: a loop of products in a loop."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for split in range(splits):
        part = tl.zeros((N, N), tl.float32)
        for first in range(0, K, BK):
            depth = first + k
            x = tl.load(a + (split * N + i) * K + depth[None, :], mask=depth[None, :] < K, other=0)
            y = tl.load(b + (split * K + depth[:, None]) * N + j, mask=depth[:, None] < K, other=0)
            part = tl.dot(x, y, part)
        acc += part * (split + 1)
    tl.store(c + i * N + j, acc)


@pytest.mark.parametrize("splits, k", [(0, 40), (1, 32), (3, 72), (2, 16)])
def test_nested_loops(splits, k):
    x, y = small((splits or 1, 64, k), "float16", 1), small((splits or 1, k, 64), "float16", 2)
    found = launch(nested, (1,), x, y, k, splits, out=blank((64, 64), "float32"), N=64, BK=32)
    factors = np.arange(1, splits + 1)[:, None, None]
    near(found, ((exact(x) @ exact(y))[:splits] * factors).sum(0), 0)


@triton.jit
def persistent(a, b, M, N, K, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLAT: tl.constexpr):
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=FLAT):
        rows = tile // across * BM + tl.arange(0, BM)
        columns = tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            depth = k + tl.arange(0, BK)
            inside = depth < K
            x = tl.load(a + rows[:, None] * K + depth[None, :], (rows[:, None] < M) & inside[None, :], 0)
            y = tl.load(b + depth[:, None] * N + columns[None, :], inside[:, None] & (columns[None, :] < N), 0)
            acc = tl.dot(x, y, acc)
        tl.store(
            c + rows[:, None] * N + columns[None, :], acc.to(tl.float16), (rows[:, None] < M) & (columns[None, :] < N)
        )


@pytest.mark.filterwarnings("ignore:.*flatten=True is not done:UserWarning")
@pytest.mark.parametrize("programs, flat", [(1, False), (3, False), (2, True)])
def test_persistent_programs(programs, flat):
    x, y = operands("float16", 150, 100, 72, whole=True)
    out = blank((150, 100), "float16")
    found = launch(persistent, (programs,), x, y, 150, 100, 72, out=out, BM=64, BN=32, BK=32, FLAT=flat)
    near(found, exact(x) @ exact(y), 0)


@triton.jit
def two_products(a, b, d, K, c, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, ONE: tl.constexpr):
    """c[0] = a b and c[1] = a d; or, into one accumulator, a b + a d."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    first = tl.zeros((N, N), tl.float32)
    second = tl.zeros((N, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        depth = start + k
        x = tl.load(a + i * K + depth[None, :])
        first = tl.dot(x, tl.load(b + depth[:, None] * N + j), first)
        if ONE:
            first = tl.dot(x, tl.load(d + depth[:, None] * N + j), first)
        else:
            second = tl.dot(x, tl.load(d + depth[:, None] * N + j), second)
    tl.store(c + i * N + j, first)
    tl.store(c + N * N + i * N + j, second)


@pytest.mark.parametrize("stages, one", [(1, False), (3, False), (3, True)])
def test_two_products_in_a_loop(stages, one):
    x, y, z = small((64, 128), "float16", 1), small((128, 64), "float16", 2), small((128, 64), "float16", 3)
    found = launch(
        two_products, (1,), x, y, z, 128, out=blank((2, 64, 64), "float32"), N=64, BK=32, STAGES=stages, ONE=one
    )
    first, second = exact(x) @ exact(y), exact(x) @ exact(z)
    near(found, np.stack([first + second, 0 * second] if one else [first, second]), 0)


@triton.jit
def two_kinds(a, b, d, K, c, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    """a b + a d, of which tensor cores make one and the threads the other."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    first = tl.zeros((N, N), tl.float32)
    second = tl.zeros((N, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        depth = start + k
        x = tl.load(a + i * K + depth[None, :])
        first = tl.dot(x, tl.load(b + depth[:, None] * N + j), first, input_precision="tf32")
        second = tl.dot(x, tl.load(d + depth[:, None] * N + j), second, input_precision="ieee")
    tl.store(c + i * N + j, first + second)


@pytest.mark.parametrize("stages, warps", [(1, 4), (2, 4), (3, 8)])
def test_products_of_two_kinds_are_added(stages, warps):
    x, y, z = small((64, 128), "float32", 1), small((128, 64), "float32", 2), small((128, 64), "float32", 3)
    out = blank((64, 64), "float32")
    found = launch(two_kinds, (1,), x, y, z, 128, out=out, N=64, BK=32, STAGES=stages, num_warps=warps)
    near(found, exact(x) @ (exact(y) + exact(z)), 0)


# ---- chains ---------------------------------------------------------------------------------------------------------


@triton.jit
def attention(
    q, k, v, scale, n, out, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
    STAGES: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + depth[None, :], mask=rows[:, None] < n, other=0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(n, (tl.program_id(0) + 1) * BM) if CAUSAL else n
    for first in tl.range(0, end, BN, num_stages=STAGES):
        columns = first + tl.arange(0, BN)
        if TURNED:
            keys = tl.load(k + columns[None, :] * D + depth[:, None], mask=columns[None, :] < n, other=0)
        else:
            keys = tl.load(k + columns[:, None] * D + depth[None, :], mask=columns[:, None] < n, other=0).T
        scores = tl.dot(queries, keys) * scale
        mask = columns[None, :] < n
        if CAUSAL:
            mask = mask & (columns[None, :] <= rows[:, None])
        scores = tl.where(mask, scores, -1e30)
        new = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        correction = tl.exp(largest - new)
        total = total * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        values = tl.load(v + columns[:, None] * D + depth[None, :], mask=columns[:, None] < n, other=0)
        acc = tl.dot(p.to(values.dtype), values, acc)
        largest = new
    acc = acc / total[:, None]
    tl.store(out + rows[:, None] * D + depth[None, :], acc, mask=rows[:, None] < n)


@pytest.mark.parametrize(
    "dtype, n, d, causal, turned, options",
    [
        ("float16", 128, 64, False, False, {}),
        ("float16", 130, 64, True, True, {"num_warps": 8}),
        ("bfloat16", 100, 32, True, False, {"num_warps": 2}),
        ("float32", 64, 32, False, True, {"num_warps": 4}),
        ("float8e5", 96, 64, False, False, {}),
    ],
)
def test_attention(dtype, n, d, causal, turned, options):
    check_attention(dtype, n, d, causal, turned, **options)


def check_attention(dtype, n, d, causal, turned, stages=2, rows=64, **options):
    q, k, v = (random((n, d), dtype, seed) for seed in (1, 2, 3))
    scores = exact(q) @ exact(k).T / math.sqrt(d)
    scores = np.where(np.tri(n, dtype=bool), scores, -np.inf) if causal else scores
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    found = launch(
        attention, (triton.cdiv(n, rows),), q, k, v, 1 / math.sqrt(d), n, out=blank((n, d), "float32"),
        D=d, BM=rows, BN=32, CAUSAL=causal, STAGES=stages, TURNED=turned, **options,
    )  # fmt: skip
    # p is rounded to the format; scores of tf32 are a little off, and p with them
    bits = {"float32": 10, "float8e5": 2}.get(dtype, DTYPES[dtype].mantissa)
    score_error = 2.0**-9 * (np.abs(exact(q)) @ np.abs(exact(k)).T).max() / math.sqrt(d) if dtype == "float32" else 1e-5
    near(found, p @ exact(v), (2.0**-bits + 2 * score_error) * (p @ np.abs(exact(v))) + 1e-5)


CHAIN = jit("""
    def chain(a, b, d, c, N: tl.constexpr):
        i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
        x, y, z = tl.load(a + i * N + j), tl.load(b + i * N + j), tl.load(d + i * N + j)
        first = tl.dot(x, y).to(x.dtype)
        second = tl.dot(z, first).to(x.dtype)
        tl.store(c + i * N + j, tl.dot(second, tl.trans(first)))
""")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_chained_on_either_side(dtype):
    """Products as left and as right operands of others, also turned."""
    x, y, z = (round_to(np.sign(small((32, 32), "float32", seed).values), dtype) for seed in (1, 2, 3))
    first = exact(x) @ exact(y)
    near(launch(CHAIN, (1,), x, y, z, out=blank((32, 32), "float32"), N=32), exact(z) @ first @ first.T, 0)


# ---- operands that were computed ------------------------------------------------------------------------------------


@triton.jit
def dequantised(a, weights, scales, K, c, N: tl.constexpr, BK: tl.constexpr, PACKED: tl.constexpr):
    """c = a (weights * scales), weights int8, or two of four bits in a byte, the low ones of K's even rows."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        x = tl.load(a + i * K + depth[None, :])
        if PACKED:
            both = tl.load(weights + depth[:, None] // 2 * N + j)
            raw = (both >> (depth[:, None] % 2 * 4).to(tl.int8)) & 15
            w = raw.to(tl.float16) - 8
        else:
            w = tl.load(weights + depth[:, None] * N + j).to(tl.float16)
        acc = tl.dot(x, w * tl.load(scales + j), acc)
    tl.store(c + i * N + j, acc)


@pytest.mark.parametrize("packed", [False, True])
def test_dequantised_weights(packed):
    x, scales = (
        small((64, 96), "float16", 1),
        round_to(2.0 ** random((64,), "int32", 3, low=-2, high=2).values, "float16"),
    )
    raw = random((48, 64) if packed else (96, 64), "int8", 2)
    weights = np.stack([raw.values & 15, raw.values >> 4 & 15], 1).reshape(96, 64) - 8.0 if packed else exact(raw)
    found = launch(dequantised, (1,), x, raw, scales, 96, out=blank((64, 64), "float32"), N=64, BK=32, PACKED=packed)
    near(found, exact(x) @ (weights * exact(scales)), 0)


@triton.jit
def gathered(a, index, b, K, c, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Rows of a by an index that is loaded."""
    rows, j, k = tl.load(index + tl.arange(0, M)), tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        x = tl.load(a + rows[:, None] * K + depth[None, :], mask=rows[:, None] >= 0, other=0)
        acc = tl.dot(x, tl.load(b + depth[:, None] * N + j), acc)
    tl.store(c + tl.arange(0, M)[:, None] * N + j, acc)


def test_indirect_rows():
    x, y = operands("float16", 200, 32, 96, whole=True)
    index = random((64,), "int32", 3, low=-1, high=200)
    found = launch(gathered, (1,), x, index, y, 96, out=blank((64, 32), "float32"), M=64, N=32, BK=32)
    near(found, np.where(index.values[:, None] >= 0, exact(x)[index.values], 0) @ exact(y), 0)


@triton.jit
def dependent(a, b, c, K, N: tl.constexpr, STAGES: tl.constexpr, IN_POINTER: tl.constexpr):
    """What is loaded of `b` depends on what was loaded of `a`."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for start in tl.range(0, K, N, num_stages=STAGES):
        x = tl.load(a + i * K + start + j)
        if IN_POINTER:
            y = tl.load(b + (start + i) * N + tl.where(x > 0, j, N - 1 - j))
        else:
            y = tl.load(b + (start + i) * N + j, mask=x > 0, other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i * N + j, acc)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("in_pointer", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_loads_that_depend_on_other_operands(stages, in_pointer, dtype):
    n, k = 16, 96
    x, y = operands(dtype, n, n, k, whole=True)
    parts = []
    for start in range(0, k, n):
        a, b = exact(x)[:, start : start + n], exact(y)[start : start + n]
        parts.append(a @ np.where(a > 0, b, b[:, ::-1] if in_pointer else 0))
    found = launch(dependent, (1,), x, y, out=blank((n, n), "float32"), K=k, N=n, STAGES=stages, IN_POINTER=in_pointer)
    near(found, sum(parts), 0)


@triton.jit
def looked_up_rows(a, table, b, K, c, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    """The addresses of `b` change places between threads, which takes as much shared memory as two of its tiles."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        inside = start + k[:, None] < K
        rows = tl.load(table + start + k[:, None], mask=inside, other=0)
        x = tl.load(a + i * K + start + k[None, :])
        acc += tl.dot(x + x, tl.load(b + j * K + rows, mask=inside, other=0))
    tl.store(c + i * N + j, acc)


@pytest.mark.filterwarnings("ignore:.*num_stages:UserWarning")
@pytest.mark.parametrize("stages", [1, 4])
def test_stages_are_lowered_until_everything_fits(stages, target):
    m, n, k = 128, 256, 128
    x, y = operands("float32", m, n, k, whole=True)
    order = Array(np.random.default_rng(0).permutation(k).astype(np.int32), "int32")
    turned = Array(np.ascontiguousarray(y.values.T), "float32")
    found = launch(
        looked_up_rows, (1,), x, order, turned, k,
        out=blank((m, n), "float32"), M=m, N=n, BK=64, STAGES=stages, num_warps=8,
    )  # fmt: skip
    near(found, 2 * exact(x) @ exact(y)[order.values], 0)


@triton.jit
def scaled_rows(a, b, scales, K, c, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Each step's products are multiplied by numbers of their rows and of all columns."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(0, K // BK):
        x = tl.load(a + i * K + step * BK + k[None, :])
        y = tl.load(b + (step * BK + k[:, None]) * N + j)
        of_rows = tl.load(scales + tl.arange(0, M) * (K // BK) + step)
        of_columns = tl.load(scales + tl.arange(0, N) // N * (K // BK) + step)
        acc += tl.dot(x, y) * of_rows[:, None] * of_columns[None, :]
    tl.store(c + i * N + j, acc)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_numbers_of_rows_are_copied_once(warps):
    m, n, k, depth = 64, 32, 96, 32
    x, y = operands("float16", m, n, k, whole=True)
    scales = small((m, k // depth), "float32", 5)
    found = launch(
        scaled_rows, (1,), x, y, scales, k, out=blank((m, n), "float32"), M=m, N=n, BK=depth, num_warps=warps
    )
    parts = exact(x).reshape(m, -1, depth), exact(y).reshape(-1, depth, n), exact(scales)
    near(found, sum(parts[0][:, s] @ parts[1][s] * parts[2][:, [s]] * parts[2][0, s] for s in range(k // depth)), 0)


@triton.jit
def quotients(x, table, count, n, out, FIRST: tl.constexpr):
    """Of a loop's index, and of multiples of it in an address; `table` has each place's distance from its middle."""
    i = tl.arange(0, 16)
    square = tl.load(x + i[:, None] * 16 + i[None, :])
    acc = tl.zeros((16, 16), tl.float32)
    for step in range(FIRST, count):
        acc = tl.dot(square, square, acc)
        tl.store(out + 4 * step, step // n)
        tl.store(out + 4 * step + 1, step % n)
        tl.store(out + 4 * step + 2, tl.load(table + 1024 + step * 24 // n))
        tl.store(out + 4 * step + 3, tl.load(table + 1024 + step * 24 % n))
    tl.store(x + i[:, None] * 16 + i[None, :], acc.to(tl.float16))


@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 24, 25, 1000, -1, -2, -7, -24, 0])
def test_quotients_of_the_index_of_a_loop(n, first):
    count, x = 40 if n else 0, round_to(np.ones((16, 16)), "float16")
    table = Array(np.arange(-1024, 1024, dtype=np.int32), "int32")
    found = launch(quotients, (1,), x, table, count, n, out=blank((160,), "int32"), FIRST=first)
    steps, expected = np.arange(first, count), np.full((40, 4), 7)
    for at, dividend in (0, steps), (2, steps * 24):
        expected[first:count, at] = np.trunc(dividend / n) if n else 0
        expected[first:count, at + 1] = np.fmod(dividend, n) if n else 0
    assert (found.values.reshape(40, 4) == expected).all()


@triton.jit
def biased(a, b, bias, scales, m, n, c, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """What is added to rows, and what they are multiplied by, loaded for the whole tile."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.dot(tl.load(a + i * BK + k[None, :]), tl.load(b + k[:, None] * N + j))
    mask = (i < m) & (j < n)
    acc *= tl.load(scales + tl.broadcast_to(i, (M, N)), mask)
    tl.store(c + i * N + j, acc + tl.load(bias + tl.broadcast_to(j, (M, N)), mask), mask)


@pytest.mark.parametrize("m, n", [(64, 128), (48, 112), (33, 128), (64, 77), (0, 128)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_row_for_all_of_a_product(m, n, dtype):
    x, y = operands("float16", 64, 128, 32, whole=True)
    bias, scales = small((128,), dtype, 3), small((64,), dtype, 4)
    found = launch(biased, (1,), x, y, bias, scales, m, n, out=blank((64, 128), "float32"), M=64, N=128, BK=32)
    expected = np.full((64, 128), 7.0)
    expected[:m, :n] = (exact(x) @ exact(y) * exact(scales)[:, None] + exact(bias))[:m, :n]
    near(found, expected, 0)


@triton.jit
def convolved(
    image, filters, height, width, channels, out,
    M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The places of a filter one after the other, and channels within them: long ways to what is loaded."""
    place, column, depth = tl.arange(0, M), tl.arange(0, N)[None, :], tl.arange(0, BK)
    across, down, steps = place % width, place // width, channels // BK
    acc = tl.zeros((M, N), tl.float32)
    for step in tl.range(0, 9 * steps, num_stages=STAGES):
        tap, first = step // steps, step % steps * BK
        y, x = tap // 3 - 1, tap % 3 - 1
        inside = (down + y >= 0) & (down + y < height) & (across + x >= 0) & (across + x < width)
        a_ptrs = image + (place + y * width + x)[:, None] * channels + first + depth[None, :]
        a = tl.load(a_ptrs, mask=inside[:, None], other=0.0)
        b = tl.load(filters + (tap * channels + first + depth[:, None]) * N + column)
        acc = tl.dot(a, b, acc)
    tl.store(out + place[:, None] * N + column, acc, mask=(down < height)[:, None])


@pytest.mark.parametrize("channels, stages", [(64, 1), (64, 3), (64, 6), (128, 6)])
def test_convolutions(channels, stages):
    """Six stages of these tiles take the whole multiprocessor: ways to copies are carried."""
    height, width, n = 7, 9, 128
    image, filters = small((height, width, channels), "float16", 1), small((3, 3, channels, n), "float16", 2)
    found = launch(
        convolved, (1,), image, filters, height, width, channels, out=blank((height, width, n), "float32"),
        M=64, N=n, BK=64, STAGES=stages,
    )  # fmt: skip
    padded, expected = np.pad(exact(image), ((1, 1), (1, 1), (0, 0))), np.zeros((height, width, n))
    for y, x in np.ndindex(3, 3):
        expected += padded[y : y + height, x : x + width] @ exact(filters)[y, x]
    near(found, expected, 0)


@triton.jit
def chosen(tables, b, K, c, N: tl.constexpr, BK: tl.constexpr):
    """The operand's array is looked up for each step of the loop."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for step in range(0, K // BK):
        a = tl.load(tables + step).to(tl.pointer_type(tl.float16))
        x = tl.load(a + i * BK + k[None, :])
        acc = tl.dot(x, tl.load(b + (step * BK + k[:, None]) * N + j), acc)
    tl.store(c + i * N + j, acc)


def test_arrays_that_are_looked_up():
    x, y = operands("float16", 64, 64, 96, whole=True)
    parts = [
        Buffer(Array(np.ascontiguousarray(x.values[:, 32 * i : 32 * i + 32]), "float16")).argument for i in range(3)
    ]
    places = [p.ctypes.data if isinstance(p, np.ndarray) else p.data_ptr() for p in parts]
    table = Array(np.array(places, np.int64), "int64")
    near(launch(chosen, (1,), table, y, 96, out=blank((64, 64), "float32"), N=64, BK=32), exact(x) @ exact(y), 0)


@triton.jit
def hinted(
    a, b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr, A: tl.constexpr, B: tl.constexpr, c
):  # fmt: skip
    """Of what is loaded for products the cache is told how soon it is needed again."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N), tl.arange(0, BK)
    left, right = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for first in range(0, K, BK):
        x = tl.load(a + i * K + (first + k)[None, :], eviction_policy=A)
        rows = b + j[:, None] * K + (first + k)[None, :]
        left = tl.dot(x, tl.trans(tl.load(rows, eviction_policy=B)), left)
        right = tl.dot(x, tl.trans(tl.load(rows + N * K, eviction_policy=B)), right)
    tl.store(c + i * N + j[None, :], left)
    tl.store(c + M * N + i * N + j[None, :], right)


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("n", [64, 128])
@pytest.mark.parametrize("depth, hints", [(32, ("evict_first", "")), (64, ("", "evict_last"))])
def test_loads_with_hints(depth, hints, n, warps):
    x, y = operands("bfloat16", 64, 2 * n, 256, whole=True)
    y = Array(np.ascontiguousarray(y.values.T), y.dtype)
    out = blank((2, 64, n), "float32")
    found = launch(hinted, (1,), x, y, 64, n, 256, depth, *hints, out=out, num_warps=warps, num_stages=2)
    near(found, (exact(x) @ exact(y).T).reshape(64, 2, n).transpose(1, 0, 2), 0)


# ---- accumulators and epilogues -------------------------------------------------------------------------------------


@triton.jit
def finished(a, b, bias, start, K, c, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, LOADED: tl.constexpr):
    """relu(start + a b + bias), rounded to c's type."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.load(start + i * N + j) if LOADED else tl.full((M, N), 3, tl.float32)
    for first in range(0, K, BK):
        depth = first + k
        acc = tl.dot(tl.load(a + i * K + depth[None, :]), tl.load(b + depth[:, None] * N + j), acc)
    acc += tl.load(bias + tl.arange(0, N))[None, :]
    tl.store(c + i * N + j, tl.maximum(acc, 0), mask=(i + j) % 3 > 0)


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("out", ["float16", "float32"])
def test_accumulators_that_begin_with_values(loaded, out):
    x, y = operands("float16", 64, 32, 64, whole=True)
    bias, start = small((32,), "float32", 5), small((64, 32), "float32", 6)
    found = launch(finished, (1,), x, y, bias, start, 64, out=blank((64, 32), out), M=64, N=32, BK=32, LOADED=loaded)
    expected = np.maximum(exact(x) @ exact(y) + exact(bias) + (exact(start) if loaded else 3), 0)
    places = np.add(*np.indices((64, 32))) % 3 > 0
    near(found, np.where(places, expected, 7), 0)


@triton.jit
def split_k(a, b, K, c, N: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for first in range(tl.program_id(0) * BK, K, tl.num_programs(0) * BK):
        depth = first + k
        acc = tl.dot(tl.load(a + i * K + depth[None, :]), tl.load(b + depth[:, None] * N + j), acc)
    tl.atomic_add(c + i * N + j, acc)


def test_programs_that_share_k():
    x, y = operands("float16", 64, 64, 256, whole=True)
    out = Array(np.zeros((64, 64), np.float32), "float32")
    near(launch(split_k, (3,), x, y, 256, out=out, N=64, BK=32), exact(x) @ exact(y), 0)


@triton.jit
def reduced(a, b, c, N: tl.constexpr):
    """Row sums, and the largest of each column, of a product: other threads' elements."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    acc = tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j))
    tl.store(c + tl.arange(0, N), tl.sum(acc, 1))
    tl.store(c + N + tl.arange(0, N), tl.max(acc, 0))


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_reductions_of_products(warps):
    x, y = operands("float16", 64, 64, 64, whole=True)
    product = exact(x) @ exact(y)
    found = launch(reduced, (1,), x, y, out=blank((2, 64), "float32"), N=64, num_warps=warps)
    near(found, np.stack([product.sum(1), product.max(0)]), 0)


@triton.jit
def sometimes(a, b, flags, steps, c, N: tl.constexpr):
    """A product that only some iterations make."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in range(steps):
        if tl.load(flags + step) > 0:
            acc = tl.dot(tl.load(a + (step * N + i) * N + j), tl.load(b + i * N + j), acc)
        else:
            acc += 1
    tl.store(c + i * N + j, acc)


def test_products_under_a_condition():
    x, y = small((4, 64, 64), "float16", 1), small((64, 64), "float16", 2)
    flags = Array(np.array([0, 1, 1, 0], np.int32), "int32")
    found = launch(sometimes, (1,), x, y, flags, 4, out=blank((64, 64), "float32"), N=64)
    near(found, (exact(x)[1] + exact(x)[2]) @ exact(y) + 2, 0)


@triton.jit
def states_of_chunks(a_ptr, b_ptr, chunks, out_ptr, N: tl.constexpr, TURNED: tl.constexpr, SCALED: tl.constexpr):
    """What a product leaves, in 16 bits, is an operand of the next one, turned or not; the other may be scaled."""
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    some = tl.arange(0, N)[:, None]
    state, sums = tl.zeros([64, 64], tl.float32), tl.zeros([N, 64], tl.float32)
    for chunk in range(chunks):
        a = tl.load(a_ptr + (chunk * N + some) * 64 + columns)
        b = tl.load(b_ptr + (chunk * 64 + rows) * 64 + columns)
        old = (tl.trans(state) if TURNED else state).to(a.dtype)
        sums += tl.dot(a * 2 if SCALED else a, old)
        state = tl.dot(b * 2 if SCALED else b, b)
    tl.store(out_ptr + some * 64 + columns, sums)


@pytest.mark.parametrize("n, warps", [(16, 2), (32, 1), (64, 4), (128, 8)])
@pytest.mark.parametrize("turned, scaled", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_states_of_chunks(n, warps, turned, scaled, dtype):
    chunks = 3
    a, b = random((chunks * n, 64), dtype, seed=1), round_to(exact(random((chunks * 64, 64), dtype, seed=2)) / 8, dtype)
    found = launch(
        states_of_chunks,
        (1,),
        a,
        b,
        chunks,
        N=n,
        TURNED=turned,
        SCALED=scaled,
        num_warps=warps,
        out=blank((n, 64), "float32"),
    )
    x, y, factor = exact(a).reshape(chunks, n, 64), exact(b).reshape(chunks, 64, 64), 2 if scaled else 1
    state, sums, sizes = np.zeros((64, 64)), 0, 0
    for i in range(chunks):
        old = exact(round_to(state.T if turned else state, dtype))
        sums = sums + factor * x[i] @ old
        sizes = sizes + factor * np.abs(x[i]) @ np.abs(old)
        state = factor * y[i] @ y[i]
    near(found, sums, sizes * 2.0 ** (-9 if dtype == "float16" else -7))


# ---- stages and warps -----------------------------------------------------------------------------------------------


@triton.jit
def grouped(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Rows and columns past the end are those of the beginning again; programs come in groups of `GROUP` rows."""
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = tl.program_id(0) // (GROUP * across)
    height = min(down - group * GROUP, GROUP)
    row = group * GROUP + tl.program_id(0) % (GROUP * across) % height
    column = tl.program_id(0) % (GROUP * across) // height
    rows, columns = (row * BM + tl.arange(0, BM)) % M, (column * BN + tl.arange(0, BN)) % N
    depth = tl.arange(0, BK)
    at_a, at_b = a + rows[:, None] * am + depth[None, :] * ak, b + depth[:, None] * bk + columns[None, :] * bn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(at_a, mask=depth[None, :] < K - k * BK, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        at_a += BK * ak
        at_b += BK * bk
    rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + cm * rows[:, None] + cn * columns[None, :], tl.where(acc >= 0, acc, 2 * acc), mask=inside)


QUICK = (1, 2), (2, 4), (3, 8), (4, 4), (6, 16)
STAGES_AND_WARPS = [
    pytest.param(stages, warps, marks=[] if (stages, warps) in QUICK else pytest.mark.slow)
    for stages in range(1, 7)
    for warps in (1, 2, 4, 8, 16)
]


@pytest.mark.parametrize("stages, warps", STAGES_AND_WARPS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_grouped_programs_with_any_stages_and_warps(dtype, stages, warps):
    m, n, k = 100, 72, 200
    x, y = operands(dtype, m, n, k, whole=True)
    options = {"BM": 64, "BN": 64, "BK": 32, "GROUP": 2, "num_stages": stages, "num_warps": warps}
    result = Buffer(blank((m, n), "float32"))
    grouped[(4,)](Buffer(x).argument, Buffer(y).argument, result.argument, m, n, k, k, 1, n, 1, n, 1, **options)
    found = result.host()
    product = exact(x) @ exact(y)
    near(found, np.where(product >= 0, product, 2 * product), 0)


@pytest.mark.parametrize("stages, warps", STAGES_AND_WARPS)
@pytest.mark.parametrize("turned", [False, True])
def test_attention_with_any_stages_and_warps(turned, stages, warps):
    check_attention("float16", 150, 32, True, turned, stages=stages, num_warps=warps)


@pytest.mark.parametrize("n, causal", [(20, False), (64, True), (130, False), (300, True)])
@pytest.mark.parametrize("stages, warpgroups", [(2, 2), (3, 2), (4, 4)])
def test_attention_of_warpgroups_in_turns(stages, warpgroups, n, causal):
    """Of loops with one iteration to ten: on wgmma one warpgroup multiplies while another computes."""
    check_attention("float16", n, 32, causal, n % 4 > 0, stages, 64 * warpgroups, num_warps=4 * warpgroups)


@triton.jit
def scaled_steps(a, b, scales, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, HANDS_ON: tl.constexpr):
    """Each step's product by scales, which the step before may have written, for others' rows."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        product = tl.dot(tl.load(a + i[:, None] * K + depth[None, :]), tl.load(b + depth[:, None] * N + j[None, :]))
        tl.device_assert(product < 500, "too large")
        acc += product * tl.load(scales + M - 1 - i)[:, None]
        if HANDS_ON:
            tl.store(scales + i, tl.max(product, 1))
    tl.store(c + i[:, None] * N + j[None, :], acc)


def test_steps_hand_on_through_memory_what_other_threads_read():
    x, y = (
        Array(np.random.default_rng(shape).integers(-3, 4, shape).astype(np.float16), "float16")
        for shape in ((128, 160), (160, 32))
    )
    products = exact(x).reshape(128, 5, 32).transpose(1, 0, 2) @ exact(y).reshape(5, 32, 32)
    factor, expected = np.ones(128), np.zeros((128, 32))
    for product in products:
        expected, factor = expected + product * factor[::-1, None], product.max(1)
    places, result = Buffer(np.ones(128, np.float32)), Buffer(np.zeros((128, 32), np.float32))
    sizes = {"M": 128, "N": 32, "BK": 32, "HANDS_ON": True, "num_warps": 8, "num_stages": 3}
    scaled_steps[(1,)](Buffer(x).argument, Buffer(y).argument, places.argument, result.argument, 160, **sizes)
    near(result.host(), expected, 0)


def test_threads_that_end_early_hold_up_nobody():
    """One element is too large: its thread ends, while the others of two warpgroups go on to the loop's barriers."""
    a, b, scales = (np.ones(shape, t) for shape, t in (((128, 96), "float16"), ((96, 32), "float16"), (128, "float32")))
    result = Buffer(np.zeros((128, 32), np.float32))
    sizes = {"M": 128, "N": 32, "BK": 32, "HANDS_ON": False, "num_warps": 8, "num_stages": 3, "debug": True}
    scaled_steps[(1,)](*(Buffer(x).argument for x in (a, b, scales)), result.argument, 96, **sizes)
    assert (result.host().values == 96).all()
    a[70, 32:64] = 100
    with pytest.raises(Exception, match="too large"):
        scaled_steps[(1,)](*(Buffer(x).argument for x in (a, b, scales)), result.argument, 96, **sizes)


# ---- batches --------------------------------------------------------------------------------------------------------


@triton.jit
def batched(
    a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SUM: tl.constexpr, TURNED: tl.constexpr
):
    batch = tl.arange(0, B)[:, None, None]
    i, j = tl.arange(0, M)[None, :, None], tl.arange(0, N)[None, None, :]
    x = tl.load(a + (batch * M + i) * K + tl.arange(0, K)[None, None, :])
    if TURNED:
        y = tl.load(b + (batch * N + tl.arange(0, N)[None, :, None]) * K + tl.arange(0, K)[None, None, :])
        y = tl.permute(y, (0, 2, 1))
    else:
        y = tl.load(b + (batch * K + tl.arange(0, K)[None, :, None]) * N + j)
    tl.store(c + (batch * M + i) * N + j, tl.dot(x, y, out_dtype=SUM))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "float64", "float8e5"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "batch, m, n, k", [(2, 32, 32, 32), (4, 16, 64, 16), (3, 64, 16, 32), (1, 16, 8, 16), (8, 4, 2, 24), (16, 1, 16, 3)]
)
def test_batches(batch, m, n, k, dtype, turned):
    x, y = small((batch, m, k), dtype, 1), small((batch, k, n), dtype, 2)
    stored = Array(np.ascontiguousarray(y.values.transpose(0, 2, 1)), dtype) if turned else y
    kind = sum_of(dtype)
    out, kind = blank((batch, m, n), kind), getattr(tl, kind)
    found = launch(batched, (1,), x, stored, out=out, B=batch, M=m, N=n, K=k, SUM=kind, TURNED=turned)
    near(found, exact(x) @ exact(y), 0)


@triton.jit
def batched_chain(
    a, b, d, K, c, B: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr
):
    """(a b) d of a batch: a loop that loads ahead, then a product of its sums."""
    batch = tl.arange(0, B)[:, None, None]
    i, j, k = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :], tl.arange(0, BK)
    acc = tl.zeros((B, N, N), tl.float32)
    for first in tl.range(0, K, BK, num_stages=STAGES):
        depth = first + k
        inside = depth < K
        x = tl.load(a + (batch * N + i) * K + depth[None, None, :], mask=inside[None, None, :], other=0)
        y = tl.load(b + (batch * K + depth[None, :, None]) * N + j, mask=inside[None, :, None], other=0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
    z = tl.load(d + (batch * N + i) * N + j)
    tl.store(c + (batch * N + i) * N + j, tl.dot(acc.to(z.dtype), z, input_precision=PRECISION))


@pytest.mark.parametrize("dtype, precision", [("float16", "tf32"), ("float32", "tf32"), ("float32", "bf16x3")])
@pytest.mark.parametrize("batch, n, stages, warps", [(2, 32, 3, 4), (4, 16, 2, 8), (3, 16, 1, 1), (2, 64, 3, 8)])
def test_batches_in_loops(batch, n, stages, warps, dtype, precision):
    for k in (0, 8, 80):
        x = round_to(random((batch, n, k), "int32", 1, low=-1, high=2).values, dtype)
        y = round_to(random((batch, k, n), "int32", 2, low=-1, high=2).values, dtype)
        z, out = small((batch, n, n), dtype, 3), blank((batch, n, n), "float32")
        sizes = {"B": batch, "N": n, "BK": 32, "STAGES": stages, "PRECISION": precision, "num_warps": warps}
        near(launch(batched_chain, (1,), x, y, z, k, out=out, **sizes), exact(x) @ exact(y) @ exact(z), 0)


@triton.jit
def blocks_of_a_diagonal(a, b, n, c, BLOCK: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr, STAGES: tl.constexpr):
    """Each program's rows of `a` times the rows of `b` of its own block, cut off at the end of `b`."""
    block = tl.program_id(0)
    i, j, k = tl.arange(0, BLOCK), tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.zeros((BLOCK, 64), tl.float32)
    for first in tl.range(block * BLOCK, min((block + 1) * BLOCK, n), BK, num_stages=STAGES):
        depth = first + k
        elements = ((block * BLOCK + i)[:, None] * n + depth[None, :]) * STEP
        x = tl.load(a + elements, mask=depth[None, :] < n, other=0)
        y = tl.load(b + depth[:, None] * 64 + j[None, :], mask=depth[:, None] < n, other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + (block * BLOCK + i)[:, None] * 64 + j[None, :], acc)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("block, bk, warps", [(64, 64, 4), (128, 64, 8), (64, 32, 4), (64, 16, 4), (32, 16, 2)])
@pytest.mark.parametrize("step", [1, 3])  # 3: elements go through registers
def test_loops_of_few_iterations_at_most(block, bk, warps, stages, step):
    """How often they run is not known, but that it is not often: nothing is copied for iterations that cannot be."""
    for n in (block * 2, block * 2 - 24, block + 8):
        programs = triton.cdiv(n, block)
        x, y = small((programs * block, n * step), "float16", 1), small((n, 64), "float16", 2)
        expected = np.zeros((programs * block, 64))
        for first in range(0, n, block):
            rows, inside = slice(first, first + block), slice(first, min(first + block, n))
            expected[rows] = exact(x)[rows, ::step][:, inside] @ exact(y)[inside]
        sizes = {"BLOCK": block, "BK": bk, "STEP": step, "STAGES": stages, "num_warps": warps}
        out = launch(blocks_of_a_diagonal, (programs,), x, y, n, out=blank(expected.shape, "float32"), **sizes)
        near(out, expected, 0)


# ---- at random ------------------------------------------------------------------------------------------------------


@triton.jit
def of_its_own_transposes(x, out):
    i, j = tl.arange(0, 2), tl.arange(0, 8)
    a = tl.load(x + i[:, None] * 8 + j)
    b = tl.cumsum(a, 1) + tl.reshape(tl.trans(a), (2, 8))
    c = b + tl.reshape(tl.trans(b), (2, 8))
    tl.store(out + i[:, None] * 2 + i, tl.dot(c, tl.trans(c), input_precision="ieee"))


def test_tiles_that_are_added_to_their_transposes():
    """Their layouts follow from each other in a circle."""
    x, out = Buffer(np.arange(16, dtype=np.float32).reshape(2, 8)), Buffer(np.zeros((2, 2), np.float32))
    of_its_own_transposes[(1,)](x.argument, out.argument)
    a = np.arange(16, dtype=np.float32).reshape(2, 8)
    b = a.cumsum(1) + a.T.reshape(2, 8)
    c = b + b.T.reshape(2, 8)
    np.testing.assert_array_equal(out.host().values, c @ c.T)


def random_product(seed, target):
    generator = np.random.default_rng(seed)
    pick = lambda *choices: choices[generator.integers(len(choices))]  # noqa: E731
    dtype = pick(*OPERANDS, "float16", "bfloat16", "int8")
    blocks = (pick(8, 16, 32, 64, 128), pick(8, 16, 32, 64, 128), pick(16, 32, 64))
    if generator.integers(8) == 0:
        blocks = tuple(int(x) for x in generator.integers(1, 80, 3))
    m, n = (int(generator.integers(1, 2 * b + 1)) for b in blocks[:2])
    k = int(generator.integers(1, 6 * blocks[2]))
    whole = generator.integers(2) == 0
    precision = pick("ieee", *ROUNDINGS)
    check_product(
        *operands(dtype, m, n, k, whole=whole, seed=seed), blocks, target, precision,
        turned=(pick(False, True), pick(False, True)), TA=pick(False, True), TB=pick(False, True),
        STAGES=pick(1, 2, 3, 4), CARRIED=pick(False, True), num_warps=pick(1, 2, 4, 8),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("warps, n, depth", [(4, 72, 32), (8, 128, 64), (2, 70, 32)])
def test_sums_that_begin_with_what_is_loaded(kind, warps, n, depth):
    kernel = jit("""
        def kernel(a_ptr, b_ptr, first, m, n, k, out, N: tl.constexpr, K: tl.constexpr):
            i, j, depth = tl.arange(0, 64)[:, None], tl.program_id(0) * N + tl.arange(0, N)[None, :], tl.arange(0, K)
            inside = (i < m) & (j < n)
            sums = tl.load(first + i * n + j, mask=inside, other=0.0)
            for start in range(0, k, K):
                d = start + depth
                a = tl.load(a_ptr + i * k + d[None, :], mask=(i < m) & (d[None, :] < k), other=0.0)
                b = tl.load(b_ptr + d[:, None] * n + j, mask=(d[:, None] < k) & (j < n), other=0.0)
                sums = tl.dot(a, b, sums)
            tl.store(out + i * n + j, sums, mask=inside)
    """)
    m, k = 60, 200
    a, b, first = small((m, k), "float16", 1), small((k, n), "float16", 2), small((m, n), kind, 3)
    sizes = {"N": 64, "K": depth, "num_warps": warps}
    found = launch(kernel, (triton.cdiv(n, 64),), a, b, first, m, n, k, out=blank((m, n), kind), **sizes)
    near(found, exact(a) @ exact(b) + exact(first), 0)


# ---- sums in fp16 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float8e4nv"])
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize(
    "blocks",
    [(64, 64, 32), (128, 64, 64), (64, 256, 16), (16, 16, 16), (96, 48, 32), (64, 8, 40), (1, 64, 32), (64, 1, 32)],
)
def test_sums_of_halves(dtype, blocks, warps):
    """Of whole numbers that fp16 has."""
    x, y = operands(dtype, blocks[0], blocks[1], 3 * blocks[2], whole=True)
    near(multiply(x, y, blocks, sums="float16", num_warps=warps), exact(x) @ exact(y), 0)


@pytest.mark.parametrize("stages, warps", [(1, 4), (3, 4), (4, 8), (2, 1)])
@pytest.mark.parametrize("turned", [(False, False), (True, True)])
def test_sums_of_halves_are_rounded_to_them(stages, warps, turned):
    """By each instruction, at most."""
    k = 200
    x, y = operands("float16", 64, 128, k)
    found = multiply(x, y, (64, 64, 32), turned, sums="float16", STAGES=stages, num_warps=warps)
    near(found, exact(x) @ exact(y), np.abs(exact(x)) @ np.abs(exact(y)) * (k / 8) * 2.0**-11)


def test_sums_that_halves_do_not_have_are_infinite():
    x, y = Array(np.full((64, 64), 100, np.float16), "float16"), Array(np.full((64, 64), -100, np.float16), "float16")
    assert (exact(multiply(x, y, (64, 64, 32), sums="float16")) == -np.inf).all()


@pytest.mark.parametrize("most", [0, 32])
def test_partial_sums_of_halves(most):
    x, y = operands("float8e5", 64, 64, 192, whole=True)
    near(multiply(x, y, (64, 32, 64), sums="float16", IMPRECISE=most), exact(x) @ exact(y), 0)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("batch, m, n, k", [(2, 32, 32, 32), (3, 64, 16, 32), (8, 4, 2, 24), (16, 1, 16, 3)])
def test_batches_of_halves(batch, m, n, k, warps):
    x, y = small((batch, m, k), "float16", 1), small((batch, k, n), "float16", 2)
    sizes = {"B": batch, "M": m, "N": n, "K": k, "SUM": tl.float16, "TURNED": False, "num_warps": warps}
    found = launch(batched, (1,), x, y, out=blank((batch, m, n), "float16"), **sizes)
    near(found, exact(x) @ exact(y), 0)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_halves_of_a_product_are_operands_of_the_next(warps):
    kernel = jit("""
        def kernel(a_ptr, b_ptr, d_ptr, steps, N: tl.constexpr, out):
            i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
            a, sums = tl.load(a_ptr + i * N + j), tl.full((N, N), 1, tl.float16)
            for step in range(steps):
                part = tl.dot(a, tl.load(b_ptr + (step * N + i) * N + j), out_dtype=tl.float16)
                part = tl.minimum(tl.maximum(part, -4), 3)
                sums = tl.dot(part, tl.load(d_ptr + (step * N + i) * N + j), sums)
            tl.store(out + i * N + j, sums * 0.5)
    """)
    n, steps = 64, 3
    a, (b, d) = small((n, n), "float16", 1), (small((steps, n, n), "float16", i) for i in (2, 3))
    found = launch(kernel, (1,), a, b, d, steps, n, out=blank((n, n), "float16"), num_warps=warps)
    near(found, ((np.clip(exact(a) @ exact(b), -4, 3) @ exact(d)).sum(0) + 1) / 2, 0)


@pytest.mark.parametrize(
    "dtype, kind, m, n, warps",
    [
        ("float16", "float32", 64, 64, 8), ("float16", "float32", 64, 64, 4), ("int8", "int32", 128, 64, 4),
        ("float16", "float16", 64, 64, 8), ("float16", "float16", 128, 64, 4), ("float16", "float16", 32, 64, 2),
    ],
)  # fmt: skip
def test_sums_that_are_read_between_products(dtype, kind, m, n, warps):
    """Of each iteration the sums are clamped before its second product and after it, and added up behind both."""
    kernel = jit("""
        def kernel(a_ptr, b_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, out):
            i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
            sums = before = after = tl.zeros((M, N), out.dtype.element_ty)
            for step in range(steps):
                a = tl.load(a_ptr + step * M * K + i[:, None] * K + k[None, :])
                b = tl.load(b_ptr + step * K * N + k[:, None] * N + j[None, :])
                sums = tl.dot(a, b, sums, out_dtype=sums.dtype)
                first = tl.minimum(tl.maximum(sums, -20), 20)
                sums = tl.dot(a, b, sums, out_dtype=sums.dtype)
                after += tl.minimum(tl.maximum(sums, -20), 20)
                before += first
            at = i[:, None] * N + j[None, :]
            tl.store(out + at, sums)
            tl.store(out + M * N + at, before)
            tl.store(out + 2 * M * N + at, after)
    """)
    k, steps = 32, 3
    a, b = small((steps, m, k), dtype, 1), small((steps, k, n), dtype, 2)
    found = launch(kernel, (1,), a, b, steps, m, n, k, out=blank((3, m, n), kind), num_warps=warps)
    products = exact(a) @ exact(b)
    sums = np.cumsum(np.repeat(products, 2, axis=0), axis=0)
    clamped = np.clip(sums, -20, 20)
    near(found, np.stack([sums[-1], clamped[::2].sum(0), clamped[1::2].sum(0)]), 0)


@pytest.mark.parametrize("by", ["pointers", "descriptor"])
@pytest.mark.parametrize("warps, stages", [(4, 3), (8, 2), (4, 1), (2, 4), (4, 5)])
@pytest.mark.parametrize("m, n, k, programs", [(200, 136, 72, 3), (64, 64, 32, 2), (130, 64, 200, 1), (64, 320, 40, 5)])
@pytest.mark.parametrize("sums", ["float32", "float16"])
def test_tiles_in_one_loop(m, n, k, programs, warps, stages, by, sums):
    x, y = small((m, k), "float16", 1), small((k, n), "float16", 2)
    sizes = {"BM": 64, "BN": 64, "BK": 32, "BY": by, "STAGES": stages, "num_warps": warps}
    found = launch(tiles_in_one_loop, (programs,), x, y, m, n, k, out=blank((m, n), sums), **sizes)
    near(found, exact(x) @ exact(y), 0)


@pytest.mark.parametrize(
    "way, warps, k",
    [
        (way, warps, k)
        for way in WAYS + BRANCHES + AHEAD
        for warps, k in [(4, 32), (4, 64), (8, 256), (2, 192)]
        if k > 32 or way != "two"  # of which an iteration has two steps
    ],
)
@pytest.mark.parametrize("sums", ["float32", "float16"])
def test_ways_to_write_a_product(way, warps, k, sums):
    x, y = small((64, k), "float16", 1), small((k, 128), "float16", 2)
    a, b = x, y
    if way == "bits":
        a, b = (Array(z.values.astype(np.float16).view(np.int16), "int16") for z in (x, y))
    sizes = {"WAY": way, "BM": 64, "BN": 64, "BK": 32, "num_warps": warps}
    found = launch(product_in_a_way, (1, 2), a, b, 128, k, out=blank((64, 128), sums), **sizes)
    near(found, exact(x) @ exact(y), 0)


@pytest.mark.parametrize("warps, stages", [(4, 3), (8, 2), (4, 1), (2, 4)])
@pytest.mark.parametrize("branch", [False, True])
def test_product_of_a_triangle(branch, warps, stages):
    x, y = small((128, 128), "float16", 1), small((128, 64), "float16", 2)
    sizes = {"BRANCH": branch, "BM": 64, "BN": 64, "BK": 32, "STAGES": stages, "num_warps": warps}
    found = launch(product_of_triangle, (2, 1), x, y, 64, 128, out=blank((128, 64), "float32"), **sizes)
    near(found, np.tril(exact(x)) @ exact(y), 0)


@pytest.mark.parametrize("warps, stages", [(4, 3), (8, 2), (4, 1), (2, 4), (4, 5)])
@pytest.mark.parametrize("picked", [[1, 0, 2, 1, 0, 0, 1], [0, 0, 0], [2], [0, 1, 1, 1, 0]])
def test_steps_that_a_table_leaves_out(picked, warps, stages):
    k = 32 * len(picked) - 8
    x, y = small((64, k), "float16", 1), small((k, 128), "float16", 2)
    counts = np.repeat(picked, 32)[:k]
    table = Array(np.array(picked, np.int32), "int32")
    sizes = {"BM": 64, "BN": 64, "BK": 32, "STAGES": stages, "num_warps": warps}
    found = launch(picked_steps, (2,), x, y, 128, k, table, out=blank((64, 128), "float32"), **sizes)
    near(found, (exact(x) * counts) @ exact(y), 0)


@triton.jit
def squares_beside_branches(x_ptr, y_ptr, n, out_ptr, M: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], tl.arange(0, K)
    y = tl.load(y_ptr + tl.arange(0, K)[:, None] + j * K)
    now_and_then = tl.zeros((M, M), tl.float32)
    squares, columns = now_and_then, tl.zeros((K, K), tl.float32)
    for step in range(n):
        x = tl.load(x_ptr + 1 + step * M * K + i * K + k[None, :])
        if step % 2 == 1:
            now_and_then += tl.dot(x, y)
        squares = tl.dot(x, tl.trans(x), squares)
        columns = tl.dot(tl.trans(x), x, columns, input_precision="ieee")
    tl.store(out_ptr + i * M + j, now_and_then + squares)
    tl.store(out_ptr + M * M + tl.arange(0, K)[:, None] * K + k[None, :], columns)


@pytest.mark.parametrize("dtype", ["float8e5", "float16"])
@pytest.mark.parametrize("warps, stages", [(4, 3), (16, 5)])
def test_what_is_stored_for_products_is_read_in_branches_first(warps, stages, dtype):
    """Threads meet in front of the branch."""
    m, k, n = 64, 32, 5
    x, y = small((1 + n * m * k,), dtype, 1), small((m, k), dtype, 2)
    sizes = {"M": m, "K": k, "num_warps": warps, "num_stages": stages}
    found = launch(squares_beside_branches, (1,), x, y, n, out=blank((m * m + k * k,), "float32"), **sizes)
    steps = exact(x)[1:].reshape(n, m, k)
    squares = sum(z @ z.T for z in steps) + sum(z @ exact(y).T for z in steps[1::2])
    near(found, np.concatenate([squares.ravel(), sum(z.T @ z for z in steps).ravel()]), 0)


@pytest.mark.parametrize("seed", range(10))
def test_products_at_random(seed, target):
    random_product(seed, target)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(50))
def test_many_products_at_random(part, target):
    for seed in range(10):
        random_product(1000 + 10 * part + seed, target)
