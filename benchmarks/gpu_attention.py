"""Attention for gpu.py, forward and backward, beside torch's; the backward kernels are those of the sixth lesson."""

import importlib.util
from functools import partial
from pathlib import Path

import torch
from gpu_case import DEVICE, Case, by_tile

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

HALF = torch.float16
LESSON = Path(__file__).resolve().parents[1] / "tutorials" / "06_fused_attention.py"


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
    configs = by_tile(launch, blocks)
    return Case(configs, out, reference, reference, 4 * q.numel() * q.itemsize, tolerance=2e-2)


@triton.jit
def descriptors_kernel(
    q_tiles, k_tiles, v_tiles, out_tiles, scale, n,
    D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The same through descriptors of all heads' rows, made on the host; masks for the diagonal's keys alone."""
    head, first = tl.program_id(1) * n, tl.program_id(0) * ROWS
    rows, columns = first + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    q = q_tiles.load([head + first, 0])
    highest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, D], tl.float32)
    for start in range(0, first if CAUSAL else n, COLUMNS):
        scores = tl.dot(q, k_tiles.load([head + start, 0]).T)
        now = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        powers = tl.exp2(scores * scale - now[:, None])
        fade = tl.exp2(highest - now)
        total = total * fade + tl.sum(powers, axis=1)
        out = tl.dot(powers.to(tl.float16), v_tiles.load([head + start, 0]), out * fade[:, None])
        highest = now
    for start in range(first, first + ROWS if CAUSAL else first, COLUMNS):
        scores = tl.dot(q, k_tiles.load([head + start, 0]).T) * scale
        scores = tl.where(rows[:, None] >= (start + columns)[None, :], scores, -1e6)
        now = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - now[:, None])
        fade = tl.exp2(highest - now)
        total = total * fade + tl.sum(powers, axis=1)
        out = tl.dot(powers.to(tl.float16), v_tiles.load([head + start, 0]), out * fade[:, None])
        highest = now
    out_tiles.store([head + first, 0], (out / total[:, None]).to(tl.float16))


def attention_by_descriptors(n, d, causal):
    heads, batches = 2048 // d, max(1, 16384 // n)
    q, k, v = (torch.randn(batches, heads, n, d, device=DEVICE, dtype=HALF) for _ in range(3))
    out = torch.empty_like(q)

    def launch(rows, columns, warps, stages):
        tiles = [
            TensorDescriptor(x, [batches * heads * n, d], [d, 1], [block, d])
            for x, block in ((q, rows), (k, columns), (v, columns), (out, rows))
        ]
        sizes = {"D": d, "ROWS": rows, "COLUMNS": columns, "CAUSAL": causal}
        grid, scale = (n // rows, batches * heads), d**-0.5 * 1.4426950408889634
        descriptors_kernel[grid](*tiles, scale, n, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    blocks = [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 128, 8, 3), (64, 64, 4, 3), (128, 128, 4, 2)]
    configs = by_tile(launch, blocks)
    return Case(configs, out, reference, reference, 4 * q.numel() * q.itemsize, tolerance=2e-2)


# Keys and queries of a program's tiles, warps, stages: of the kernel for dk and dv, and of the one for dq.
BACKWARD = {
    "128x64x8x2+64x128x8x3": ((128, 64, 8, 2), (64, 128, 8, 3)),
    "64x64x4x2+64x64x4x3": ((64, 64, 4, 2), (64, 64, 4, 3)),
    "128x64x8x3+64x128x8x2": ((128, 64, 8, 3), (64, 128, 8, 2)),
    "64x128x8x2+64x128x4x3": ((128, 128, 8, 2), (64, 128, 4, 3)),
}


def attention_backward(n, d, causal):
    heads, batches = 2048 // d, max(1, 16384 // n)
    spec = importlib.util.spec_from_file_location("lesson_06", LESSON)
    lesson = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lesson)
    q, k, v, do = (torch.randn(batches, heads, n, d, device=DEVICE, dtype=HALF) for _ in range(4))
    scale = d**-0.5
    o, logsum = lesson.attention_forward(q, k, v, scale, causal)
    delta = torch.empty_like(logsum)
    gradients = torch.empty(3, *q.shape, device=DEVICE, dtype=HALF)
    dq, dk, dv = gradients
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    with torch.nn.attention.sdpa_kernel(
        [torch.nn.attention.SDPBackend.CUDNN_ATTENTION, torch.nn.attention.SDPBackend.FLASH_ATTENTION,
         torch.nn.attention.SDPBackend.MATH], set_priority=True,
    ):  # fmt: skip
        output = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)

    def launch(by_keys, by_queries):
        total = batches * heads
        lesson.delta_kernel[(triton.cdiv(total * n, 64),)](delta, o, do, total * n, D=d, BLOCK=64)
        for kernel, outs, sizes in (
            (lesson.keys_kernel, (dk, dv), by_keys),
            (lesson.queries_kernel, (dq,), by_queries),
        ):
            columns, rows, warps, stages = sizes
            block = columns if kernel is lesson.keys_kernel else rows
            kernel[(triton.cdiv(n, block), total)](
                *outs, q, k, v, do, logsum, delta, n, scale, D=d, CAUSAL=causal,
                BLOCK_M=rows, BLOCK_N=columns, num_warps=warps, num_stages=stages,
            )  # fmt: skip

    def reference():
        return torch.autograd.grad(output, inputs, do, retain_graph=True)

    configs = {label: partial(launch, *sizes) for label, sizes in BACKWARD.items()}
    moved = 8 * q.numel() * q.itemsize
    return Case(configs, gradients, lambda: torch.stack(reference()), reference, moved, tolerance=3e-2)


def _cases():
    for d in (64, 128):
        for causal in (False, True):
            for n in (1024, 4096, 16384):
                yield f"attention {'causal ' * causal}{n}x{d} fp16", partial(attention, n, d, causal)
    for d in (64, 128):
        for causal in (False, True):
            name = f"descriptors attention {'causal ' * causal}4096x{d} fp16"
            yield name, partial(attention_by_descriptors, 4096, d, causal)
    for d in (64, 128):
        for causal in (False, True):
            yield f"attention backward {'causal ' * causal}4096x{d} fp16", partial(attention_backward, 4096, d, causal)


CASES = dict(_cases())
