"""tl.dot_scaled against NumPy in float64, in every pair of formats."""

import itertools

import numpy as np
import pytest

import triton
import triton.language as tl

torch = pytest.importorskip("torch")

M, N, K = 32, 16, 64
FORMATS = ["e2m1", "e4m3", "e5m2", "bf16", "fp16"]
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
TORCH = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "fp16": torch.float16}


@triton.jit
def product(
    lhs_ptr, rhs_ptr, out_ptr, lhs_scale_ptr, rhs_scale_ptr, LHS: tl.constexpr, RHS: tl.constexpr, PACK: tl.constexpr,
    LHS_SHAPE: tl.constexpr, RHS_SHAPE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    lhs = tl.load(lhs_ptr + tl.arange(0, LHS_SHAPE[0])[:, None] * LHS_SHAPE[1] + tl.arange(0, LHS_SHAPE[1])[None, :])
    rhs = tl.load(rhs_ptr + tl.arange(0, RHS_SHAPE[0])[:, None] * RHS_SHAPE[1] + tl.arange(0, RHS_SHAPE[1])[None, :])
    lhs_scale, rhs_scale = None, None
    if lhs_scale_ptr is not None:
        lhs_scale = tl.load(lhs_scale_ptr + tl.arange(0, M)[:, None] * GROUPS + tl.arange(0, GROUPS)[None, :])
    if rhs_scale_ptr is not None:
        rhs_scale = tl.load(rhs_scale_ptr + tl.arange(0, N)[:, None] * GROUPS + tl.arange(0, GROUPS)[None, :])
    out = tl.dot_scaled(lhs, lhs_scale, LHS, rhs, rhs_scale, RHS, lhs_k_pack=PACK, rhs_k_pack=PACK)
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], out)


def elements(format, shape, axis, rng):
    """Values in float64, and the tensor that holds them; pairs of e2m1 are neighbours along `axis`."""
    if format == "e2m1":
        bits = rng.integers(0, 16, shape, np.uint8)
        low, high = (np.take(bits, range(start, shape[axis], 2), axis) for start in (0, 1))
        values = MAGNITUDES[bits & 7] * np.where(bits & 8, -1, 1)
        return values, torch.tensor(low | high << 4)
    tensor = torch.tensor(rng.standard_normal(shape).astype(np.float32)).to(TORCH[format])
    return tensor.double().numpy(), tensor.view(torch.uint8) if format[0] == "e" else tensor


def scales(format, rows, group, rng):
    if format in ("bf16", "fp16"):
        return np.ones((rows, K)), None
    if group == 32:
        exponents = rng.integers(120, 132, (rows, K // 32), np.uint8)
        return np.repeat(np.exp2(exponents.astype(np.float64) - 127), 32, 1), torch.tensor(exponents)
    tensor = torch.tensor(rng.uniform(0.5, 4, (rows, K // 16)).astype(np.float32)).to(torch.float8_e4m3fn)
    return np.repeat(tensor.double().numpy(), 16, 1), tensor


def moved(tensor, device):
    return tensor if tensor is None else tensor.to(device)


@pytest.mark.parametrize("lhs, rhs", itertools.product(FORMATS, repeat=2))
@pytest.mark.parametrize("pack, group", [(True, 32), (False, 16)])
def test_formats(lhs, rhs, pack, group, device):
    rng = np.random.default_rng(0)
    a, lhs_tensor = elements(lhs, (M, K), int(pack), rng)
    b, rhs_tensor = elements(rhs, (K, N), int(not pack), rng)
    a_scale, lhs_scale = scales(lhs, M, group, rng)
    b_scale, rhs_scale = scales(rhs, N, group, rng)
    out = torch.zeros(M, N, device=device)
    arguments = [moved(x, device) for x in (lhs_tensor, rhs_tensor, out, lhs_scale, rhs_scale)]
    product[(1,)](
        *arguments, lhs, rhs, pack, tuple(lhs_tensor.shape), tuple(rhs_tensor.shape), M, N, K // group
    )  # fmt: skip
    expected = (a * a_scale) @ (b * b_scale.T)
    # Elements have 4 bits of mantissa at most, so a scale that is a power of two loses nothing.
    tolerance = 1e-5 if group == 32 and "16" not in lhs + rhs else 1e-2
    np.testing.assert_allclose(out.cpu().numpy(), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("format", ["e2m1", "e4m3", "e5m2"])
@pytest.mark.parametrize("warps", [1, 4])
def test_every_number_with_scales_of_any_size(format, warps, device):
    """Times the unit matrix: what operands become is exact, fractions below the formats' normal range, too."""
    m, n, k = 64, 64, 64
    rng = np.random.default_rng(1)
    codes = np.arange(n * k, dtype=np.uint16).reshape(n, k)
    if format == "e2m1":
        values = MAGNITUDES[codes & 7] * np.where(codes & 8, -1, 1)
        bits = torch.tensor(((codes[:, ::2] & 15) | (codes[:, 1::2] & 15) << 4).astype(np.uint8))
    else:
        bits = torch.tensor(codes.astype(np.uint8))
        values = bits.view(TORCH[format]).double()
        bits[~values.isfinite()], values[~values.isfinite()] = 0, 0
        values = values.numpy()
    exponents = rng.integers(40, 220, (n, k // 32), np.uint8)
    lhs, rhs = torch.eye(m, dtype=torch.bfloat16, device=device), bits.T.contiguous().to(device)
    out, scale = torch.zeros(m, n, device=device), torch.tensor(exponents).to(device)
    product[(1,)](
        lhs, rhs, out, None, scale, "bf16", format, True, (m, k), tuple(rhs.shape), m, n, k // 32, num_warps=warps
    )  # fmt: skip
    expected = values * np.repeat(np.exp2(exponents.astype(np.float64) - 127), 32, 1)
    np.testing.assert_array_equal(out.cpu().numpy(), expected.T)


def test_special_scales(device):
    """255 is NaN, and 0 is the least power of two there is."""
    lhs = torch.ones(M, K, dtype=torch.bfloat16, device=device)
    rhs = torch.full((K, N), 0x38, dtype=torch.uint8, device=device)  # one
    scale = torch.full((N, K // 32), 127, dtype=torch.uint8, device=device)
    scale[0, 0], scale[1, :] = 255, 0
    out = torch.zeros(M, N, device=device)
    product[(1,)](lhs, rhs, out, None, scale, "bf16", "e4m3", True, (M, K), (K, N), M, N, K // 32)
    out = out.cpu()
    assert out[:, 0].isnan().all() and (out[:, 2:] == K).all()
    assert (out[:, 1] == K * 2.0**-127).all() or (out[:, 1] == 0).all()  # targets may flush what is not normal


@triton.jit
def product_in_steps(
    lhs_ptr, rhs_ptr, out_ptr, lhs_scale_ptr, rhs_scale_ptr, k, rows_there, lhs_stride, rhs_stride, STEP: tl.constexpr,
    GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    rows, columns, depth, groups = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP), tl.arange(0, STEP // GROUP)
    lhs_scale_ptrs = lhs_scale_ptr + rows[:, None] * lhs_stride + groups
    rhs_scale_ptrs = rhs_scale_ptr + columns[:, None] * rhs_stride + groups
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, STEP):
        lhs = tl.load(lhs_ptr + rows[:, None] * k + (start + depth))
        rhs = tl.load(rhs_ptr + columns * k + (start + depth)[:, None])
        if MASKED:
            lhs_scale = tl.load(lhs_scale_ptrs, rows[:, None] < rows_there, 127 if GROUP == 32 else 1)
        else:
            lhs_scale = tl.load(lhs_scale_ptrs)
        sums = tl.dot_scaled(lhs, lhs_scale, "e4m3", rhs, tl.load(rhs_scale_ptrs), "e4m3", sums)
        lhs_scale_ptrs += STEP // GROUP
        rhs_scale_ptrs += STEP // GROUP
    tl.store(out_ptr + rows[:, None] * N + columns, sums)


@pytest.mark.parametrize(
    "step, steps, group, lhs_pad, rhs_pad, start",
    [(64, 5, 32, 0, 0, 0), (64, 3, 32, 1, 4, 3), (32, 9, 32, 0, 3, 1), (128, 3, 32, 2, 1, 2), (64, 5, 16, 0, 3, 1)],
)
@pytest.mark.parametrize("stages, masked", [(1, False), (3, True)])
def test_scales_of_rows_that_begin_anywhere(step, steps, group, lhs_pad, rhs_pad, start, stages, masked, device):
    """Of which an iteration reads a few bytes each: they come from 8 at a time, and nothing follows the last ones."""
    m, n, k = 64, 128, step * steps
    there = m - 5 if masked else m
    rng = np.random.default_rng(2)
    arguments, wide = [], []
    for rows, pad in ((m, lhs_pad), (n, rhs_pad)):
        bits = torch.tensor(rng.standard_normal((rows, k)).astype(np.float32)).to(torch.float8_e4m3fn)
        scale = rng.integers(124, 130, (rows, k // group + pad), np.uint8)
        values = np.exp2(scale.astype(np.float64) - 127)
        if group == 16:
            scale = rng.integers(0x30, 0x48, scale.shape, np.uint8)
            values = torch.tensor(scale).view(torch.float8_e4m3fn).double().numpy()
        values = values[:, : k // group].copy()
        if rows == m:
            values[there:] = 1  # as MASKED has it
        wide.append(bits.double().numpy() * np.repeat(values, group, 1))
        flat = np.concatenate([np.full(start, 0xFF, np.uint8), scale.ravel()])
        flat = flat[: flat.size - pad]  # the last row ends with what is read of it
        arguments.append((bits.view(torch.uint8).to(device), torch.tensor(flat).to(device)[start:]))
    (lhs, lhs_scale), (rhs, rhs_scale) = arguments
    if group == 16:
        lhs_scale, rhs_scale = (each.view(torch.float8_e4m3fn) for each in (lhs_scale, rhs_scale))
    out = torch.zeros(m, n, device=device)
    strides = k // group + lhs_pad, k // group + rhs_pad
    product_in_steps[(1,)](
        lhs, rhs, out, lhs_scale, rhs_scale, k, there, *strides, step, group, m, n, masked, num_stages=stages
    )
    expected = wide[0] @ wide[1].T
    tolerance = 1e-5 if group == 32 else 1e-2
    np.testing.assert_allclose(out.cpu().numpy(), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@triton.jit
def wrong(CASE: tl.constexpr):
    m = tl.zeros((32, 64), tl.bfloat16)
    bits, scale = tl.zeros((64, 16), tl.uint8), tl.zeros((16, 3), tl.uint8)
    if CASE == "format":
        tl.dot_scaled(m, None, "e3m0", bits, None, "e4m3")
    elif CASE == "type":
        tl.dot_scaled(m, None, "e4m3", bits, None, "e4m3")
    elif CASE == "scale":
        tl.dot_scaled(m, None, "bf16", bits, scale, "e4m3")
    else:
        tl.dot_scaled(m, None, "bf16", bits, None, "e2m1")


@pytest.mark.parametrize(
    "case, message",
    [
        ("format", "lhs_format is 'e3m0', and must be one of 'e2m1'"),
        ("type", "lhs has elements of type bf16, and in the format e4m3 must be fp8e4nv"),
        ("scale", r"scales of shape \(16, 3\) for elements of shape \(16, 64\)"),
        ("extents", "lhs has 64 elements along K, and rhs 128"),
    ],
)
def test_mistakes(case, message):
    with pytest.raises(triton.CompilationError, match=message):
        wrong[(1,)](case)


@triton.jit
def scaled_bytes(x_ptr, scale_ptr, y_ptr, out_ptr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + i * 32 + j)
    scale = tl.load(scale_ptr + i * 2 + tl.arange(0, 2)[None, :])
    tl.static_assert(x.dtype == tl.uint8 and scale.dtype == tl.uint8)
    y = tl.load(y_ptr + tl.arange(0, 64)[:, None] * 16 + tl.arange(0, 16)[None, :])
    out = tl.dot_scaled(x, scale.to(tl.float8e8m0fnu, bitcast=True), "e2m1", y, None, "bf16")
    tl.store(out_ptr + i * 16 + tl.arange(0, 16)[None, :], out)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="torch has no such types")
@pytest.mark.parametrize("wrapped", [False, True])
def test_arrays_of_torch_s_own_types(device, wrapped):
    """Of exponents and of pairs of e2m1: in a kernel they are bytes."""
    rng = np.random.default_rng(4)
    values, packed = elements("e2m1", (16, 64), 1, rng)
    factors, exponents = scales("e2m1", 16, 32, rng)
    y = torch.tensor(rng.standard_normal((64, 16)).astype(np.float32)).bfloat16()
    out = torch.empty(16, 16, device=device)
    packed, exponents = packed.to(device).view(torch.float4_e2m1fn_x2), exponents.to(device)
    exponents = triton.reinterpret(exponents, tl.float8e8m0fnu) if wrapped else exponents.view(torch.float8_e8m0fnu)
    scaled_bytes[(1,)](packed, exponents, y.to(device), out)
    torch.testing.assert_close(out.cpu().double(), torch.tensor(values * factors) @ y.double(), rtol=1e-2, atol=1e-2)


def test_the_type_of_exponents():
    kind = tl.float8e8m0fnu
    assert kind.is_storage_only() and not kind.is_floating() and not kind.is_int() and kind.primitive_bitwidth == 8
    assert repr(kind) == "triton.language.float8e8m0fnu" and not tl.float8e5.is_storage_only()
