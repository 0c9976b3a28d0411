"""Matrix products: dtypes, shapes of any extent, batches, accumulators, precision."""

import numpy as np
import pytest
from harness import DTYPES, Array, Buffer, array, check, jit, random, round_to

SHAPES = [
    (16, 16, 16), (1, 1, 1), (1, 16, 16), (16, 1, 16), (16, 16, 1), (3, 5, 7), (32, 64, 16), (96, 96, 96), (33, 17, 65),
    (64, 3, 100), (128, 128, 32), (2, 100, 64), (7, 256, 9),
]  # fmt: skip


def whole(shape, dtype, seed):
    """Small integers: their products and sums are exact in every dtype and order."""
    return round_to(random(shape, "int32", seed, low=0 if DTYPES[dtype].kind == "uint" else -3, high=4).values, dtype)


def product(x, y, dtype="float32"):
    return round_to(x.values.astype(np.float64) @ y.values.astype(np.float64), dtype)


@pytest.mark.parametrize("m, n, k", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_shapes(dtype, m, n, k):
    x, y = whole((m, k), dtype, 1), whole((k, n), dtype, 2)
    check("tl.dot(x, y)", {"x": x, "y": y}, product(x, y, "int32" if dtype == "int8" else "float32"))


@pytest.mark.parametrize(
    "dtype",
    ["float8e4nv", "float8e5", "float8e4b8", "float8e5b16", "float16", "bfloat16", "float32", "float64", "int8"],
)
def test_dtypes(dtype):
    result = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    for m, n, k in [(16, 16, 32), (48, 24, 40)]:
        x, y = whole((m, k), dtype, 3), whole((k, n), dtype, 4)
        check("tl.dot(x, y)", {"x": x, "y": y}, product(x, y, result))


@pytest.mark.parametrize("dtype, rtol", [("float16", 2e-6), ("bfloat16", 2e-6), ("float32", 2e-6), ("float64", 1e-14)])
def test_products_are_kept_in_full(dtype, rtol):
    """Products of halves are exact in float32 and added there; float32 is IEEE on this target when asked."""
    x, y = random((64, 128), dtype, 1), random((128, 32), dtype, 2)
    exact = x.values.astype(np.float64) @ y.values.astype(np.float64)
    scale = np.abs(x.values.astype(np.float64)) @ np.abs(y.values.astype(np.float64))
    result = "float64" if dtype == "float64" else "float32"
    check('tl.dot(x, y, input_precision="ieee")', {"x": x, "y": y}, round_to(exact, result), atol=rtol * scale.max())


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
def test_input_precision(precision):
    x, y = random((32, 32), "float32", 1), random((32, 32), "float32", 2)
    exact = x.values.astype(np.float64) @ y.values.astype(np.float64)
    tolerance = {"tf32": 2e-2, "tf32x3": 3e-5, "ieee": 1e-5}[precision]
    check(f'tl.dot(x, y, input_precision="{precision}")', {"x": x, "y": y}, exact.astype(np.float32), atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "float64"])
def test_accumulator(dtype):
    result = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    x, y, acc = whole((16, 24), dtype, 1), whole((24, 32), dtype, 2), whole((16, 32), result, 3)
    expected = round_to(product(x, y, "float64").values + acc.values, result)
    inputs = {"x": x, "y": y, "acc": acc}
    check("tl.dot(x, y, acc)", inputs, expected)
    check("tl.dot(x, y, acc=acc)", inputs, expected)
    check("acc += tl.dot(x, y)\nout = acc", inputs, expected)
    check("out = tl.dot(x, y) + acc", inputs, expected)


def test_out_dtype():
    x, y = whole((16, 16), "float16", 1), whole((16, 16), "float16", 2)
    check("tl.dot(x, y, out_dtype=tl.float16)", {"x": x, "y": y}, product(x, y, "float16"))
    check("tl.dot(x, y, out_dtype=tl.float32)", {"x": x, "y": y}, product(x, y))
    x, y = whole((16, 16), "float32", 1), whole((16, 16), "float32", 2)
    check("tl.dot(x, y, out_dtype=tl.float64)", {"x": x, "y": y}, product(x, y, "float64"))


@pytest.mark.parametrize("batch, m, n, k", [(1, 16, 16, 16), (3, 5, 7, 9), (8, 16, 32, 16), (2, 33, 3, 64)])
def test_batches(batch, m, n, k):
    for dtype in ["float16", "float32"]:
        x, y = whole((batch, m, k), dtype, 1), whole((batch, k, n), dtype, 2)
        check("tl.dot(x, y)", {"x": x, "y": y}, product(x, y))


@pytest.mark.parametrize("batches", [(2, 3), (2, 1, 2), (2, 2, 1, 2)])
def test_batches_of_several_dimensions(batches):
    x, y = whole((*batches, 16, 8), "float16", 1), whole((*batches, 8, 32), "float16", 2)
    check("tl.dot(x, y)", {"x": x, "y": y}, product(x, y))
    acc = whole((*batches, 16, 32), "float32", 3)
    expected = round_to(product(x, y).values + acc.values, "float32")
    check("tl.dot(x, y, acc)", {"x": x, "y": y, "acc": acc}, expected)


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("dtype", ["float8e4nv", "float16", "bfloat16", "float32", "float64", "int8"])
def test_long_products(dtype, warps):
    """Large enough for loops over k, with operands in either order of memory."""
    result = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    for m, n, k in [(16, 128, 72), (4, 8, 200)] if warps == 1 else [(64, 32, 100), (16, 64, 72)]:
        x, y = whole((m, k), dtype, 1), whole((k, n), dtype, 2)
        check("tl.dot(x, y)", {"x": x, "y": y}, product(x, y, result), num_warps=warps)
        x, y = whole((k, m), dtype, 1), whole((n, k), dtype, 2)
        expected = round_to(x.values.T.astype(np.float64) @ y.values.T.astype(np.float64), result)
        check("tl.dot(x.T, y.T)", {"x": x, "y": y}, expected, num_warps=warps)


@pytest.mark.parametrize("warps", [1, 8])
def test_long_batches(warps):
    x, y = whole((4, 16, 72), "float32", 1), whole((4, 72, 32), "float32", 2)
    check("tl.dot(x, y)", {"x": x, "y": y}, product(x, y), num_warps=warps)
    check("tl.dot(tl.permute(y, (0, 2, 1)), tl.permute(x, (0, 2, 1)))", {"x": x, "y": y},
          round_to(product(x, y).values.transpose(0, 2, 1), "float32"), num_warps=warps)  # fmt: skip


def test_transposed_operands():
    x, y = whole((24, 16), "float32", 1), whole((32, 24), "float32", 2)
    check("tl.dot(x.T, tl.trans(y))", {"x": x, "y": y}, (x.values.T @ y.values.T).astype(np.float32))
    check("tl.dot(tl.trans(x), y.T)", {"x": x, "y": y}, (x.values.T @ y.values.T).astype(np.float32))
    check("tl.dot(y, x).T", {"x": x, "y": y}, (y.values @ x.values).T.astype(np.float32))


def test_computed_operands():
    x, y = whole((16, 24), "float32", 1), whole((24, 8), "float32", 2)
    check("tl.dot(x * 2 + 1, tl.where(y > 0, y, 0))", {"x": x, "y": y}, (x.values * 2 + 1) @ np.maximum(y.values, 0))
    check("tl.dot(x.to(tl.float16), y.to(tl.float16)).to(tl.float16)", {"x": x, "y": y}, product(x, y, "float16"))
    expected = np.exp(np.minimum((x.values @ y.values).astype(np.float64), 0)).astype(np.float32)
    check("tl.exp(tl.minimum(tl.dot(x, y), 0.0))", {"x": x, "y": y}, expected, rtol=1e-5)


def test_a_chain_of_products():
    x, y, z = whole((16, 16), "float32", 1), whole((16, 24), "float32", 2), whole((24, 8), "float32", 3)
    check("tl.dot(tl.dot(x, y), z)", {"x": x, "y": y, "z": z}, x.values @ y.values @ z.values)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_sums_that_begin_with_a_product_of_what_they_replace(count):
    x = whole((16, 16), "float64", 1)
    code = "out = x\nfor i in range(count):\n    out = tl.dot(x, x, tl.dot(x, x, tl.dot(out, x, x)))"
    expected = x.values
    for _ in range(count):
        expected = x.values @ x.values * 2 + expected @ x.values + x.values
    check(code, {"x": x, "count": count}, expected)


MATMUL = """
    @triton.jit
    def kernel(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        columns = tl.program_id(1) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            depth = k + tl.arange(0, BK)
            x = tl.load(a + rows[:, None] * stride_am + depth[None, :] * stride_ak,
                        mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0)
            y = tl.load(b + depth[:, None] * stride_bk + columns[None, :] * stride_bn,
                        mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0)
            acc += tl.dot(x, y)
        tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))
"""


@pytest.mark.parametrize("blocks", [(16, 16, 16), (32, 64, 32), (48, 24, 20), (64, 64, 8), (5, 7, 3)])
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (50, 70, 90), (1, 100, 33), (129, 31, 17)])
def test_a_tiled_product(m, n, k, blocks):
    kernel = jit(MATMUL)
    for dtype, transposed in [("float32", False), ("float16", True)]:
        a, b = whole((m, k), dtype, 1), whole((n, k) if transposed else (k, n), dtype, 2)
        right = b.values.T if transposed else b.values
        out = Buffer(np.full((m, n), 7, np.float32))
        grid = (-(-m // blocks[0]), -(-n // blocks[1]))
        strides = (1, k) if transposed else (n, 1)
        kernel[grid](Buffer(a).argument, Buffer(b).argument, out.argument, m, n, k, k, 1, *strides, *blocks)
        assert (out.host().values == a.values.astype(np.float32) @ right.astype(np.float32)).all()


SCALED = """
    @triton.jit
    def kernel(a, b, scales, out, first, n, count, UNIT: tl.constexpr, GROUP: tl.constexpr, MODULO: tl.constexpr):
        rows, depth, places = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 64)
        columns = first * UNIT + places
        if MODULO:
            columns = columns % n
        x_ptrs = a + rows[:, None] * 32 + depth[None, :]
        y_ptrs = b + places[None, :] * 32 + depth[:, None]
        scale_ptrs = scales + 16 + columns // GROUP
        sums = tl.zeros((64, 64), tl.float32)
        for i in range(0, count):
            scale = tl.load(scale_ptrs + i * 32)
            sums += tl.dot(tl.load(x_ptrs), tl.load(y_ptrs)) * scale[None, :]
            x_ptrs += 64 * 32
            y_ptrs += 64 * 32
        tl.store(out + rows[:, None] * 64 + places[None, :], sums)
"""


@pytest.mark.parametrize("unit, group", [(64, 64), (64, 128), (16, 32), (32, 16), (16, 24), (1, 64)])
@pytest.mark.parametrize("first", [-5, -2, 0, 3])
@pytest.mark.parametrize("n", [None, 48, 160, 50])
def test_scales_of_groups_of_columns(unit, group, first, n):
    """Division and remainder truncate toward zero, so that the first column of a group may differ from the rest."""
    a, b = whole((3, 64, 32), "float16", 1), whole((3, 64, 32), "float16", 2)
    scales = whole((3, 32), "float32", 3)
    out = Buffer(np.zeros((64, 64), np.float32))
    jit(SCALED)[(1,)](
        *(Buffer(x).argument for x in (a, b, scales)), out.argument, first, n or 0, 3, unit, group, n is not None
    )  # fmt: skip
    columns = first * unit + np.arange(64)
    columns = np.fmod(columns, n) if n else columns
    wide = [x.values.astype(np.float32) for x in (a, b)]
    scale = scales.values[:, 16 + np.trunc(columns / group).astype(int)]
    assert (out.host().values == (wide[0] @ wide[1].swapaxes(1, 2) * scale[:, None, :]).sum(0)).all()


GATHERED = """
def kernel(
    x, y, out, places, wanted, m, n, k, stride,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr,
):
    row, column, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    limits = tl.load(wanted + row, mask=row < m, other=0)
    sums = tl.zeros((M, N), tl.int32 if x.dtype.element_ty == tl.int8 else tl.float32)
    for start in tl.range(0, k, K, num_stages=STAGES):
        inside = depth < k - start
        place = tl.load(places + start + depth, mask=inside, other=stride)
        left = tl.load(x + row[:, None] * stride + place[None, :], mask=place[None, :] < limits[:, None], other=0)
        right = tl.load(y + (start + depth)[:, None] * n + column, mask=inside[:, None] & (column < n), other=0)
        sums = tl.dot(left, right, sums)
    tl.store(out + row[:, None] * n + column, sums, mask=(row < m)[:, None] & (column < n))
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("stages, n", [(3, 40), (3, 48), (4, 48), (6, 48)])
def test_columns_at_places_from_a_table(dtype, stages, n):
    """Of iterations that there are not, nothing is fetched; each row has places that it does not read. With 48 columns
    copies bring the other operand, and gathers go as far ahead as registers let them: as far as copies, or less."""
    kernel, m, stride = jit(GATHERED), 61, 150
    result = np.int32 if dtype == "int8" else np.float32
    x, limits = whole((m, stride), dtype, 1), np.random.default_rng(1).integers(0, stride + 1, m).astype(np.int32)
    for k in (0, 1, 32, 50, 64, 96, 131) if stages == 3 else (0, 50, 64, 131, 288):
        places, y = random((k + 1,), "int32", k, low=0, high=stride).values[:k], whole((k, n), dtype, 2)
        out = Buffer(np.full((m, n), 7, result))
        arguments = (Buffer(each).argument for each in (x, y))
        tables = (Buffer(each).argument for each in (places, limits))
        kernel[(1,)](*arguments, out.argument, *tables, m, n, k, stride, 64, 64, 32, stages)
        left = np.where(places < limits[:, None], x.values.astype(result)[:, places], 0)
        assert (out.host().values == left @ y.values.astype(result)).all()


def test_special_values_flow_through():
    x = np.array([[np.inf, 1.0], [0.0, np.nan]], np.float32)
    y = np.array([[1.0, 0.0], [2.0, 3.0]], np.float32)
    with np.errstate(invalid="ignore"):
        check("tl.dot(x, y)", {"x": x, "y": y}, x @ y)


def test_integer_products_wrap_in_int32():
    x, y = array(np.full((16, 64), -128, np.int8)), array(np.full((64, 16), -128, np.int8))
    check("tl.dot(x, y)", {"x": x, "y": y}, np.full((16, 16), 64 * 128 * 128, np.int32))


def test_attention():
    """Two products around a softmax: the second one's operand was computed, not loaded."""
    q, k, v = (random((32, 24), "float32", seed) for seed in (1, 2, 3))
    code = """
        scores = tl.dot(q, k.T, input_precision="ieee") * 0.2
        p = tl.exp(scores - tl.max(scores, axis=1)[:, None])
        out = tl.dot(p, v, input_precision="ieee") / tl.sum(p, axis=1)[:, None]
    """
    scores = q.values.astype(np.float64) @ k.values.T.astype(np.float64) * 0.2
    p = np.exp(scores - scores.max(1, keepdims=True))
    expected = (p @ v.values / p.sum(1, keepdims=True)).astype(np.float32)
    check(code, {"q": q, "k": k, "v": v}, Array(expected, "float32"), rtol=1e-4, atol=1e-5)


PAIRED = """
def kernel(x, y, out, steps):
    rows, columns = tl.arange(0, 16), tl.arange(0, 16)
    sums = tl.zeros((16, 16), tl.float32)
    for step in range(steps):
        even, odd = tl.split((step * 32 + tl.arange(0, 32)).reshape(16, 2))
        a = tl.load(x + rows[:, None] * 64 + ((even + odd) // 4)[None, :])
        b = tl.load(y + (odd // 2)[:, None] * 16 + columns[None, :])
        sums = tl.dot(a, b, sums)
    tl.store(out + rows[:, None] * 16 + columns[None, :], sums)
"""


def test_addresses_of_both_halves_of_a_split():
    """They are computed again for the iterations that operands are loaded ahead for."""
    x, y = whole((16, 64), "float16", 1), whole((64, 16), "float16", 2)
    out = Buffer(np.zeros((16, 16), np.float32))
    jit(PAIRED)[(1,)](Buffer(x).argument, Buffer(y).argument, out.argument, 4)
    assert (out.host().values == product(x, y).values).all()
