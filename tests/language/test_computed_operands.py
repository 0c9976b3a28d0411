"""Products in loops of operands that are computed of what is loaded: widened, scaled, activated, on either side, in
tiles large and small. All values are small integers, or powers of two, so that results are exact."""

import random

import numpy as np
import pytest
from harness import Array, Buffer, round_to

import triton
import triton.language as tl

KINDS = ("loaded", "widened", "scaled", "activated", "scaled by rows and groups")


@triton.jit
def computed(x, scale, KIND: tl.constexpr, TYPE: tl.constexpr):
    """`scale`: [rows, groups], for `x`: [rows, depth]."""
    if KIND == "loaded":
        return x
    elif KIND == "widened":
        return x.to(TYPE)
    elif KIND == "scaled":
        return (x.to(tl.float32) * 0.5).to(TYPE)
    elif KIND == "activated":
        y = tl.where(x > 0, x.to(TYPE), 0.0)
        return (y * y).to(TYPE)
    else:
        group: tl.constexpr = x.shape[1] // scale.shape[1]
        parts = tl.reshape(x.to(tl.float32), [x.shape[0], scale.shape[1], group])
        bits = tl.where(scale == 255, 0, scale.to(tl.uint32) << 23)
        return tl.reshape(parts * bits.to(tl.float32, bitcast=True)[:, :, None], x.shape).to(TYPE)


@triton.jit
def product(
    a, b, a_scale, b_scale, c, K, c_stride, a_row, a_k, b_row, b_k,
    M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    TYPE: tl.constexpr, STAGES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    i, j, k, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK), tl.arange(0, BK // GROUP)
    i += tl.program_id(0) * M
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        depth = start + k
        groups = start // GROUP + g
        if MASKED:
            x = tl.load(a + i[:, None] * a_row + depth * a_k, mask=depth[None, :] < K, other=0)
            y = tl.load(b + j[:, None] * b_row + depth * b_k, mask=depth[None, :] < K, other=0)
            x_scale = tl.load(a_scale + i[:, None] * (K // GROUP) + groups, mask=groups < K // GROUP, other=127)
            y_scale = tl.load(b_scale + j[:, None] * (K // GROUP) + groups, mask=groups < K // GROUP, other=127)
        else:
            x = tl.load(a + i[:, None] * a_row + depth * a_k)
            y = tl.load(b + j[:, None] * b_row + depth * b_k)
            x_scale = tl.load(a_scale + i[:, None] * (K // GROUP) + groups)
            y_scale = tl.load(b_scale + j[:, None] * (K // GROUP) + groups)
        acc = tl.dot(computed(x, x_scale, LEFT, TYPE), computed(y, y_scale, RIGHT, TYPE).T, acc)
    tl.store(c + i[:, None] * c_stride + j, acc)


def expected_of(values, scales, kind, group):
    if kind == "scaled":
        return values * 0.5
    if kind == "activated":
        return np.maximum(values, 0) ** 2
    if kind == "scaled by rows and groups":
        powers = np.where(scales == 255, 0, np.exp2(scales.astype(np.float64) - 127))
        return values * np.repeat(powers, group, 1)
    return values


def check(m, n, k, bk, types, kinds, along_k, wide="float16", programs=1, seed=0, **options):
    """`types`: of the operands in memory; `along_k`: do they lie so?"""
    rng = np.random.default_rng(seed)
    arguments, exact, strides = [], [], []
    for rows, dtype, kind, is_along in zip((m * programs, n), types, kinds, along_k, strict=True):
        values = rng.integers(-2, 3, (rows, k))
        scales = rng.integers(126, 129, (rows, k // 32), np.uint8)
        scales[rng.random(scales.shape) < 0.05] = 255
        exact.append(expected_of(values.astype(np.float64), scales, kind, 32))
        arguments += [round_to(values if is_along else values.T.copy(), dtype), Array(scales, "uint8")]
        strides += [k, 1] if is_along else [1, rows]
    x, x_scale, y, y_scale = (Buffer(a).argument for a in arguments)
    result = Buffer(Array(np.full((m * programs, n), 7, np.float32), "float32"))
    product[(programs,)](
        x, y, x_scale, y_scale, result.argument, k, n, *strides, M=m, N=n, BK=bk, GROUP=32, LEFT=kinds[0],
        RIGHT=kinds[1], TYPE=getattr(tl, wide), MASKED=k % bk != 0, **options,
    )  # fmt: skip
    np.testing.assert_array_equal(result.host().values, (exact[0] @ exact[1].T).astype(np.float32))


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("warps", [8, 16])
@pytest.mark.parametrize("left, right", [("widened", "loaded"), ("scaled by rows and groups",) * 2])
def test_large_tiles(left, right, warps, steps):
    """Their products go in halves on some targets, and K in another order, where both are computed of bytes."""
    types = ("float8e4nv", "float16" if right == "loaded" else "float8e4nv")
    check(256, 128, 64 * steps, 64, types, (left, right), (True, True), STAGES=3, num_warps=warps)


def case(seed):
    choose = random.Random(seed).choice
    wide = choose(["float16", "bfloat16"])
    kinds = (choose(KINDS[1:]), choose(KINDS))
    types = [wide if kind == "loaded" else choose(["float8e4nv", "float8e5", "int8", wide]) for kind in kinds]
    m, n, warps = choose(
        [(256, 128, 8), (256, 128, 16), (128, 256, 8), (128, 128, 4), (64, 64, 4), (64, 256, 8), (32, 32, 2)]
    )
    bk = choose([32, 64, 64, 128])
    along_k = (choose([True, True, False]), choose([True, True, False]))
    k = 32 * choose([0, 1, 2, 3, 4, 5, 8])
    options = {"STAGES": choose([1, 2, 3, 4]), "num_warps": warps, "programs": choose([1, 2])}
    return (m, n, k, bk, types, kinds, along_k, wide), options


@pytest.mark.parametrize("seed", range(8))
def test_at_random(seed):
    arguments, options = case(seed)
    check(*arguments, seed=seed, **options)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
def test_many_at_random(part):
    for seed in range(1000 + 10 * part, 1010 + 10 * part):
        arguments, options = case(seed)
        check(*arguments, seed=seed, **options)
