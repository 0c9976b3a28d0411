"""Kernels for gpu.py that tensor cores are busy with: products of matrices, and attention.

The vendor's libraries do the same through torch. Results are checked against products in fp32 of the same values.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case

import triton
import triton.language as tl

HALF, BFLOAT, FLOAT = torch.float16, torch.bfloat16, torch.float32
FP8 = torch.float8_e4m3fn

# rows, columns and depth of a program's tile; warps; stages
TILES = [
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (256, 128, 64, 8, 3),
    (128, 128, 64, 4, 3),
    (128, 128, 64, 8, 4),
    (128, 128, 32, 8, 3),
    (256, 128, 32, 8, 3),
    (64, 128, 64, 4, 4),
    (64, 64, 64, 4, 5),
    (16, 64, 128, 4, 5),
]
# the same for multiply-adds, of products in fp32 that are to be exact
EXACT_TILES = [
    (128, 128, 32, 4, 3),
    (128, 128, 32, 4, 2),
    (128, 128, 16, 8, 3),
    (128, 128, 32, 8, 2),
    (128, 128, 8, 8, 4),
    (128, 64, 16, 4, 3),
    (64, 64, 16, 4, 3),
]


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_column, b_row, b_column, out_row,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Programs go through bands of BAND tiles of rows, so that those at work share operands in the cache."""
    program = tl.program_id(0)
    tiles_down, tiles_across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    band = program // (BAND * tiles_across)
    height = min(tiles_down - band * BAND, BAND)
    inside = program % (BAND * tiles_across)
    first_row = (band * BAND + inside % height) * ROWS
    first_column = inside // height * COLUMNS
    rows = (first_row + tl.arange(0, ROWS)) % m
    columns = (first_column + tl.arange(0, COLUMNS)) % n
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * a_row + depth[None, :] * a_column
    b_ptrs = b_ptr + depth[:, None] * b_row + columns[None, :] * b_column
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptrs, mask=depth[None, :] < k - start, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < k - start, other=0.0)
        sums = tl.dot(a, b, sums, input_precision=PRECISION)
        a_ptrs += DEPTH * a_column
        b_ptrs += DEPTH * b_row
    rows = first_row + tl.arange(0, ROWS)
    columns = first_column + tl.arange(0, COLUMNS)
    inside_out = (rows < m)[:, None] & (columns < n)[None, :]
    out = sums.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * out_row + columns[None, :], out, mask=inside_out)


def matmul(m, n, k, dtype, precision="tf32"):
    a = torch.randn(m, k, device=DEVICE).to(dtype)
    b = torch.randn(n, k, device=DEVICE).to(dtype).T if dtype == FP8 else torch.randn(k, n, device=DEVICE).to(dtype)
    out = torch.empty(m, n, device=DEVICE, dtype=HALF if dtype == FP8 else dtype)
    other = torch.empty_like(out)

    def launch(rows, columns, depth, warps, stages):
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8, "PRECISION": precision}
        strides = *a.stride(), *b.stride(), out.stride(0)
        matmul_kernel[grid](a, b, out, m, n, k, *strides, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        if dtype == FP8:
            one = torch.ones((), device=DEVICE)
            return torch._scaled_mm(a, b, one, one, out_dtype=HALF, use_fast_accum=True)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        return torch.matmul(a, b, out=other)

    def check(result):
        torch.backends.cuda.matmul.allow_tf32 = False
        exact = a.float() @ b.float()
        return ((result.float() - exact).norm() / exact.norm()).item() < (4e-3 if precision == "tf32" else 1e-5)

    tiles = TILES if precision == "tf32" else EXACT_TILES
    fits = [t for t in tiles if a.itemsize * t[2] * (t[0] + t[1]) * max(2, t[4] - 1) <= 200 << 10]
    configs = {"x".join(map(str, tile)): partial(launch, *tile) for tile in fits}
    moved = (m * k + k * n) * a.itemsize + out.numel() * out.itemsize
    return Case(configs, out, None, reference, moved, check=check)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, head_stride, n,
    D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head, past all keys that it may see. `scale` has the factor log2(e)."""
    head = tl.program_id(1).to(tl.int64) * head_stride
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns, features = tl.arange(0, COLUMNS), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + features[None, :])
    k_ptrs = k_ptr + head + columns[None, :] * D + features[:, None]
    v_ptrs = v_ptr + head + columns[:, None] * D + features[None, :]
    highest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, D], tl.float32)
    end = tl.program_id(0) * ROWS + ROWS if CAUSAL else n
    for start in range(0, end, COLUMNS):
        scores = tl.dot(q, tl.load(k_ptrs + start * D)) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= (start + columns)[None, :], scores, -1e6)
        now = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - now[:, None])
        fade = tl.exp2(highest - now)
        total = total * fade + tl.sum(powers, axis=1)
        v = tl.load(v_ptrs + start * D)
        out = tl.dot(powers.to(v.dtype), v, out * fade[:, None])
        highest = now
    out /= total[:, None]
    tl.store(out_ptr + head + rows[:, None] * D + features[None, :], out.to(out_ptr.dtype.element_ty))


def attention(n, d, causal):
    heads, batches = 2048 // d, max(1, 16384 // n)
    q, k, v = (torch.randn(batches, heads, n, d, device=DEVICE, dtype=HALF) for _ in range(3))
    out = torch.empty_like(q)

    def launch(rows, columns, warps, stages):
        grid = triton.cdiv(n, rows), batches * heads
        sizes = {"D": d, "ROWS": rows, "COLUMNS": columns, "CAUSAL": causal}
        scale = d**-0.5 * 1.4426950408889634
        attention_kernel[grid](q, k, v, out, scale, n * d, n, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    blocks = [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 128, 8, 3), (64, 64, 4, 3)]
    configs = {"x".join(map(str, block)): partial(launch, *block) for block in blocks}
    return Case(configs, out, reference, reference, 4 * q.numel() * q.itemsize, tolerance=2e-2)


def _cases():
    names = {HALF: "fp16", BFLOAT: "bf16", FP8: "fp8", FLOAT: "tf32"}
    squares = [(HALF, 512), (HALF, 1000), (HALF, 1024), (HALF, 2048), (HALF, 4096), (HALF, 8192)]
    for dtype, size in [*squares, (BFLOAT, 4096), (BFLOAT, 8192), (FP8, 4096), (FP8, 8192), (FLOAT, 4096)]:
        yield f"matmul {size}x{size}x{size} {names[dtype]}", partial(matmul, size, size, size, dtype)
    yield "matmul 4096x4096x4096 fp32", partial(matmul, 4096, 4096, 4096, FLOAT, "ieee")
    for m, n, k in ((16, 4096, 4096), (128, 4096, 14336)):
        yield f"matmul {m}x{n}x{k} fp16", partial(matmul, m, n, k, HALF)
    for d in (64, 128):
        for causal in (False, True):
            for n in (1024, 4096, 16384):
                yield f"attention {'causal ' * causal}{n}x{d} fp16", partial(attention, n, d, causal)


CASES = dict(_cases())
