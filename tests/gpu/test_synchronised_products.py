"""Products on tensor cores with one synchronisation left out, as in test_synchronisation.py: the waits for copies and
for products, the fences, and the barriers around buffers are all needed, and the simulator notices each."""

import re

import numpy as np
import pytest
from synchronised import Case, floats

import triton
import triton.language as tl
from triton import _C


@triton.jit
def matmul_kernel(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        depth = start + k
        acc = tl.dot(tl.load(a + i * K + depth[None, :]), tl.load(b + depth[:, None] * N + j), acc)
    tl.store(c + i * N + j, acc)


def halves(*shape):
    """Whole numbers, so that products are exact."""
    return np.random.default_rng(shape).integers(-3, 4, shape).astype(np.float16)


def product(stages, m=64, n=64, depth=32, steps=6):
    a, b = halves(m, depth * steps), halves(depth * steps, n)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    arguments = [a, b, np.zeros((m, n), np.float32), depth * steps]
    return Case(matmul_kernel, arguments, {2: expected}, M=m, N=n, BK=depth, STAGES=stages)


def product_in_halves(depth=64):
    """Of fp32: one half of `depth` is read, and copied, while the other one is multiplied."""
    a, b = (x.astype(np.float32) for x in (halves(256, 3 * depth), halves(3 * depth, 128)))
    arguments = [a, b, np.zeros((256, 128), np.float32), 3 * depth]
    return Case(matmul_kernel, arguments, {2: a @ b}, M=256, N=128, BK=depth, STAGES=3)


@triton.jit
def computed_kernel(
    a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, BOTH: tl.constexpr, SQUARES: tl.constexpr
):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[:, None], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=3):
        depth = start + k
        y = tl.load(b + j * K + depth[None, :])
        x, y = tl.load(a + i * K + depth[None, :]).to(tl.float16), y.to(tl.float16) if BOTH else y
        for _ in tl.static_range(SQUARES):
            x, y = x * x + x, y * y + y if BOTH else y
        acc = tl.dot(x, y.T, acc)
    tl.store(c + i * N + tl.arange(0, N)[None, :], acc)


def widened_product_in_halves(both):
    """The left operand, of bytes, is computed for one half of the depth while the other one is multiplied."""
    a, b = (x.astype(np.int8) for x in (halves(256, 192), halves(128, 192)))
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    arguments = [a, b if both else b.astype(np.float16), np.zeros((256, 128), np.float32), 192]
    return Case(computed_kernel, arguments, {2: expected}, M=256, N=128, BK=64, BOTH=both, SQUARES=0)


@triton.jit
def twice_kernel(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    """The square of a product: the second one's buffers follow those of the loop."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=3):
        depth = start + k
        acc = tl.dot(tl.load(a + i * K + depth[None, :]), tl.load(b + depth[:, None] * N + j), acc)
    half = acc.to(tl.float16)
    tl.store(c + i * N + j, tl.dot(half, half))


def product_after_a_loop():
    a, b = halves(64, 96), halves(96, 64)
    first = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64)
    arguments = [a, b, np.zeros((64, 64), np.float32), 96]
    return Case(twice_kernel, arguments, {2: first @ first}, N=64, BK=32)


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, depth = tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + depth[None, :])
    largest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[:, None] * D + depth[None, :])
        scores = tl.dot(q, k.T)
        new = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        correction = tl.exp(largest - new)
        v = tl.load(v_ptr + keys[:, None] * D + depth[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * correction[:, None])
        total = total * correction + tl.sum(p, 1)
        largest = new
    tl.store(out_ptr + rows[:, None] * D + depth[None, :], acc / total[:, None])


def attention(rows=64):
    q, k, v = floats(rows, 32, dtype=np.float16) / 4, floats(160, 32, dtype=np.float16), halves(160, 32) + 3
    q = q.astype(np.float16)
    scores = q.astype(np.float64) @ k.T.astype(np.float64)
    p = np.exp(scores - scores.max(1, keepdims=True))
    expected = p / p.sum(1, keepdims=True) @ v.astype(np.float64)
    arguments = [q, k, v.astype(np.float16), np.zeros((rows, 32), np.float32), 160]
    return Case(attention_kernel, arguments, {3: expected}, within=1e-2, D=32, BM=rows, BN=32)


@triton.jit
def dequantised_kernel(a, weights, scales, c, K, N: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        w = tl.load(weights + depth[:, None] * N + j).to(tl.float16)
        acc = tl.dot(tl.load(a + i * K + depth[None, :]), w * tl.load(scales + j), acc)
    tl.store(c + i * N + j, acc)


def dequantised():
    a, scales = halves(64, 160), np.float16(2.0) ** np.random.default_rng(1).integers(-2, 3, 64).astype(np.float16)
    weights = np.random.default_rng(2).integers(-8, 8, (160, 64)).astype(np.int8)
    expected = a.astype(np.float64) @ (weights * scales.astype(np.float64))
    arguments = [a, weights, scales, np.zeros((64, 64), np.float32), 160]
    return Case(dequantised_kernel, arguments, {3: expected}, N=64, BK=32)


@triton.jit
def converted_kernel(a, b, scales, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Both operands are computed, with scales that lie across their rows."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        x = tl.load(a + i[:, None] * K + depth[None, :]).to(tl.float16)
        y = tl.load(b + j[:, None] * K + depth[None, :]).to(tl.float16) * tl.load(scales + start // BK * N + j)[:, None]
        acc = tl.dot(x, y.T, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


def converted():
    a, b, scales = halves(128, 160), halves(64, 160), halves(5, 64)
    expected = a.astype(np.float32) @ (b.astype(np.float32) * scales.astype(np.float32).repeat(32, 0).T).T
    arguments = [a.astype(np.int8), b.astype(np.int8), scales, np.zeros_like(expected), 160]
    return Case(converted_kernel, arguments, {3: expected}, M=128, N=64, BK=32)


@triton.jit
def computed_and_copied_kernel(a, b, c, out, K, N: tl.constexpr, BK: tl.constexpr):
    """The first product's operand is computed, the second one's is read where copies put it: both are waited for in the
    next iteration, behind the last of them."""
    i, j, k = tl.arange(0, 64)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    first, second = tl.zeros((64, N), tl.float32), tl.zeros((64, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        x = tl.load(a + i * K + depth[None, :])
        first = tl.dot(x, tl.load(b + depth[:, None] * N + j) * 2, first)
        second = tl.dot(x, tl.load(c + depth[:, None] * N + j), second)
    tl.store(out + i * N + j, first + second)


def computed_and_copied():
    a, b, c = halves(64, 160), halves(160, 64), halves(160, 64)
    expected = a.astype(np.float32) @ (2 * b + c).astype(np.float32)
    return Case(computed_and_copied_kernel, [a, b, c, np.zeros_like(expected), 160], {3: expected}, N=64, BK=32)


@triton.jit
def scaled_kernel(a, b, scales, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """A scale for each row and step of K: what wgmma gives is computed with in each iteration."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        depth = start + k
        product = tl.dot(tl.load(a + i[:, None] * K + depth[None, :]), tl.load(b + depth[:, None] * N + j[None, :]))
        acc += product * tl.load(scales + start // BK * M + i)[:, None]
    tl.store(c + i[:, None] * N + j[None, :], acc)


def scaled():
    a, b, scales = halves(128, 160), halves(160, 32), halves(5, 128).astype(np.float32)
    parts = a.astype(np.float32).reshape(128, 5, 32).transpose(1, 0, 2) @ b.astype(np.float32).reshape(5, 32, 32)
    expected = (parts * scales[:, :, None]).sum(0)
    return Case(scaled_kernel, [a, b, scales, np.zeros_like(expected), 160], {3: expected}, M=128, N=32, BK=32)


@triton.jit
def split_kernel(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in range(tl.program_id(0) * BK, K, tl.num_programs(0) * BK):
        depth = start + k
        acc = tl.dot(tl.load(a + i * K + depth[None, :]), tl.load(b + depth[:, None] * N + j), acc)
    tl.atomic_add(c + i * N + j, acc)


def split_k():
    a, b = halves(64, 320), halves(320, 64)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return Case(split_kernel, [a, b, np.zeros_like(expected), 320], {2: expected}, (2, 1, 1), N=64, BK=32)


@triton.jit
def nested_kernel(a, b, c, K, parts, N: tl.constexpr, BK: tl.constexpr):
    """A loop of products in a loop: the slots are filled anew in each iteration of the outer one."""
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    for part in range(parts):
        acc = tl.zeros((N, N), tl.float32)
        for start in range(0, K, BK):
            depth = start + k
            x = tl.load(a + (part * N + i) * K + depth[None, :])
            acc = tl.dot(x, tl.load(b + depth[:, None] * N + j), acc)
        tl.store(c + (part * N + i) * N + j, acc)


def nested():
    a, b = halves(192, 128), halves(128, 64)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return Case(nested_kernel, [a, b, np.zeros_like(expected), 128, 3], {2: expected}, N=64, BK=32)


@triton.jit
def tiles_kernel(a, b, c, K, steps, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Tiles of rows in one loop over the steps of all: their sums leave while the buffers are in use. The last tile's
    steps may not be all."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(steps):
        row, depth = step // (K // BK) * M + i, step % (K // BK) * BK + k
        acc = tl.dot(tl.load(a + row * K + depth[None, :]), tl.load(b + depth[:, None] * N + j), acc)
        if step % (K // BK) == K // BK - 1:
            tl.store(c + row * N + j, acc)
            acc = tl.zeros((M, N), tl.float32)
    tl.store(c + (steps // (K // BK) * M + i) * N + j, acc)


def sums_in_parts(depth=64):
    """Of 128 KB, which cross 32 KB of shared memory that the buffers leave. The second tile has half of its steps."""
    a, b = halves(256, 4 * depth), halves(4 * depth, 256)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    expected[128:] = a[128:, : 2 * depth].astype(np.float32) @ b[: 2 * depth].astype(np.float32)
    arguments = [a, b, np.zeros((256, 256), np.float32), 4 * depth, 6]
    return Case(tiles_kernel, arguments, {2: expected}, M=128, N=256, BK=depth)


CASES = {
    "product, 1 stage": lambda: product(1),
    "product, 2 stages": lambda: product(2),
    "product, 3 stages": lambda: product(3),
    "product, 4 stages": lambda: product(4),
    "wide product": lambda: product(3, m=128, n=32),
    "product with copies between its steps": lambda: product(4, m=128, n=128, depth=64),
    "the same with a slot less": lambda: product(3, m=128, n=128, depth=64),
    "product after a loop": product_after_a_loop,
    "attention": attention,
    "dequantised weights": dequantised,
    "converted operands": converted,
    "computed and copied operands": computed_and_copied,
    "scaled products": scaled,
    "programs that share K": split_k,
    "nested loops": nested,
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.mark.parametrize("sm, warps", [(80, 4), (90, 4), (90, 8)])
def test_each_one_is_needed(case, sm, warps):
    case.check_each(warps, sm)


@pytest.mark.parametrize("warpgroups", [2, 4])
def test_each_one_is_needed_where_warpgroups_take_turns(warpgroups):
    attention(64 * warpgroups).check_each(4 * warpgroups, 90)


def test_each_one_is_needed_in_halves():
    product_in_halves().check_each(8, 90)


@pytest.mark.parametrize("both, warps", [(False, 8), (True, 8), (True, 16)])
def test_each_one_is_needed_in_computed_halves(both, warps):
    case = widened_product_in_halves(both)
    assert len(re.findall(r"wgmma .*k = ", _C._compile_gpu(case.text, 90, warps, pipeline=True)["ttgir"])) == 2
    case.check_each(warps, 90, of_registers=2)


@pytest.mark.parametrize("both", [False, True])
def test_each_half_is_read_once(both):
    """However often it is computed with."""
    arguments = [np.zeros(shape, np.float16) for shape in ((256, 192), (128, 192), (256, 128))]
    case = Case(computed_kernel, [*arguments, 192], {}, M=256, N=128, BK=64, BOTH=both, SQUARES=40)
    compiled = _C._compile_gpu(case.text, 90, 8, pipeline=True)["ttgir"]
    assert len(re.findall(r"smem_load .*part = ", compiled)) == len(re.findall(r"wgmma .*k = ", compiled)) == 2
    assert compiled.count("fma") + compiled.count("fmul") <= (6 if both else 4) * 40


def test_each_one_is_needed_where_sums_cross_in_parts():
    case = sums_in_parts()
    case.check_each(8, 90)
    compiled = _C._compile_gpu(case.text, 90, 8, pipeline=True)
    assert re.findall(r"convert_layout .*scratch = \[196608, (\d+)\]", compiled["ttgir"]) == ["32768"]
