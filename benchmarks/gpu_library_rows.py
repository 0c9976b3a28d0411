"""Kernels for gpu.py as training and inference libraries write them, of rows: norms, losses, activations, narrow types.

Each goes in its libraries' typical way: a row for each program in one tile whose warps follow from its width, wide rows
piece by piece, gradients of weights by programs that stay or that take turns under locks.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case, is_close

import triton
import triton.language as tl

HALF, BFLOAT, FLOAT, FP8 = torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn
LOG2E = tl.constexpr(1.4426950408889634)


def random(*shape, dtype=BFLOAT):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def settings(columns):
    """Block and warps of a row in one tile, as training libraries choose them."""
    block = triton.next_power_of_2(columns)
    return block, 4 if block < 2048 else 8 if block < 8192 else 16 if block < 32768 else 32


def close_to(expected, error=5e-3):
    return lambda result: is_close(result, expected, error)


def row_case(launch, out, expected, reference, moved, warps, error=5e-3):
    configs = {f"num_warps={count}": partial(launch, count) for count in warps}
    return Case(configs, out, None, reference, moved, check=close_to(expected, error))


# ---- gated activations


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, x_stride, out_stride, n_columns, BLOCK: tl.constexpr):
    """silu of a row's first half times the second one."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    gate = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0).to(tl.float32)
    up = tl.load(x_ptr + row * x_stride + n_columns + columns, mask=mask, other=0)
    out = (gate * tl.sigmoid(gate)).to(up.dtype) * up
    tl.store(out_ptr + row * out_stride + columns, out, mask=mask)


def swiglu(rows, columns):
    x, out = random(rows, 2 * columns), torch.empty(rows, columns, device=DEVICE, dtype=BFLOAT)
    block, warps = settings(columns)

    def launch(warps):
        swiglu_kernel[(rows,)](x, out, 2 * columns, columns, columns, BLOCK=block, num_warps=warps)

    def reference():
        return torch.nn.functional.silu(x[:, :columns]) * x[:, columns:]

    gate, up = x.float().chunk(2, 1)
    expected = torch.nn.functional.silu(gate) * up
    return row_case(launch, out, expected, reference, 6 * out.numel(), (warps, max(4, warps // 2)), 1e-2)


@triton.jit
def swiglu_backward_kernel(dout_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    dout = tl.load(dout_ptr + row + columns, mask=mask, other=0)
    gate = tl.load(gate_ptr + row + columns, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row + columns, mask=mask, other=0)
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    tl.store(dgate_ptr + row + columns, dout * (silu * (1 - sigmoid) + sigmoid) * up, mask=mask)
    tl.store(dup_ptr + row + columns, dout * silu, mask=mask)


def swiglu_backward(rows, columns):
    dout, gate, up = (random(rows, columns) for _ in range(3))
    out = torch.empty(2, rows, columns, device=DEVICE, dtype=BFLOAT)
    block, warps = settings(columns)

    def launch(warps):
        swiglu_backward_kernel[(rows,)](dout, gate, up, out[0], out[1], columns, columns, BLOCK=block, num_warps=warps)

    def reference():
        g, sigmoid = gate.float(), torch.sigmoid(gate.float())
        silu = g * sigmoid
        return torch.stack((dout * (silu * (1 - sigmoid) + sigmoid) * up, dout * silu))

    return row_case(launch, out, reference(), reference, 10 * dout.numel(), (warps, max(4, warps // 2)), 1e-2)


@triton.jit
def geglu_kernel(gate_ptr, up_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """The tanh form of gelu, tanh by its exponential."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask, other=0)
    inner = 0.7978845608028654 * gate * (1.0 + 0.044715 * gate * gate)
    tanh = 1 - 2 / (tl.exp(2 * inner) + 1)
    out = (0.5 * gate * (tanh + 1.0)).to(up.dtype) * up
    tl.store(out_ptr + offsets, out, mask=mask)


def geglu(log2):
    gate, up = random(1 << log2), random(1 << log2)
    out = torch.empty_like(gate)

    def launch(block):
        geglu_kernel[(triton.cdiv(gate.numel(), block),)](gate, up, out, gate.numel(), BLOCK=block)

    def reference():
        return torch.nn.functional.gelu(gate, approximate="tanh") * up

    configs = {f"BLOCK={block}": partial(launch, block) for block in (1024, 2048)}
    expected = torch.nn.functional.gelu(gate.float(), approximate="tanh") * up.float()
    return Case(configs, out, None, reference, 6 * out.numel(), check=close_to(expected, 1e-2))


# ---- norms


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, out_ptr, sum_ptr, scale_ptr, n_columns, eps, BLOCK: tl.constexpr
):
    """Adds the residual first, and keeps the sum and 1 / rms for the backward pass."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0)
    residual = tl.load(residual_ptr + row * n_columns + columns, mask=mask, other=0)
    x = x + residual
    tl.store(sum_ptr + row * n_columns + columns, x, mask=mask)
    wide = x.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, axis=0) / n_columns + eps)
    tl.store(scale_ptr + row, scale)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0)
    tl.store(out_ptr + row * n_columns + columns, (wide * scale).to(weight.dtype) * weight, mask=mask)


def add_rms_norm(rows, columns):
    x, residual, weight = random(rows, columns), random(rows, columns), random(columns)
    out, total = torch.empty_like(x), torch.empty_like(x)
    scales = torch.empty(rows, device=DEVICE)
    block, warps = settings(columns)

    def launch(warps):
        add_rms_norm_kernel[(rows,)](
            x, residual, weight, out, total, scales, columns, 1e-6, BLOCK=block, num_warps=warps
        )

    def reference():
        return torch.nn.functional.rms_norm(x + residual, (columns,), weight, 1e-6)

    expected = torch.nn.functional.rms_norm((x + residual).float(), (columns,), weight.float(), 1e-6)
    return row_case(launch, out, expected, reference, 8 * x.numel(), (warps, max(4, warps // 2)), 1e-2)


@triton.jit
def rms_norm_backward_kernel(
    dout_ptr, x_ptr, weight_ptr, scale_ptr, dx_ptr, dweight_ptr, n_rows, n_columns, rows_each, BLOCK: tl.constexpr
):
    """Each program goes through rows_each rows and sums up its part of the weight's gradient."""
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    first = program * rows_each
    dweight = tl.zeros((BLOCK,), dtype=tl.float32)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dout_ptr += first * n_columns
    x_ptr += first * n_columns
    dx_ptr += first * n_columns
    for row in range(first, min(first + rows_each, n_rows)):
        dout = tl.load(dout_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(scale_ptr + row)
        scaled = dout * weight
        dx = scale * scaled + scale * (-(1 / n_columns) * scale * scale * tl.sum(scaled * x, axis=0) * x)
        tl.store(dx_ptr + columns, dx, mask=mask)
        dweight += dout * (x * scale)
        dout_ptr += n_columns
        x_ptr += n_columns
        dx_ptr += n_columns
    tl.store(dweight_ptr + program * n_columns + columns, dweight, mask=mask)


def rms_norm_backward(rows, columns, programs=132):
    x, dout, weight = random(rows, columns), random(rows, columns), random(columns)
    scales = torch.rsqrt(x.float().square().mean(1) + 1e-6)
    dx, dweight = torch.empty_like(x), torch.empty(programs, columns, device=DEVICE)
    block, warps = settings(columns)

    def launch(warps):
        rms_norm_backward_kernel[(programs,)](
            dout,
            x,
            weight,
            scales,
            dx,
            dweight,
            rows,
            columns,
            triton.cdiv(rows, programs),
            BLOCK=block,
            num_warps=warps,
        )

    def gradients():
        wide, w = x.float().requires_grad_(), weight.float().requires_grad_()
        out = torch.nn.functional.rms_norm(wide, (columns,), w, 1e-6)
        return torch.autograd.grad(out, (wide, w), dout.float())

    expected = gradients()

    def check(result):
        return is_close(result, expected[0], 1e-2) and is_close(dweight.sum(0), expected[1], 1e-2)

    configs = {f"num_warps={count}": partial(launch, count) for count in (warps, max(4, warps // 2))}
    return Case(configs, dx, None, gradients, 6 * x.numel(), check=check)


@triton.jit
def layer_norm_backward_kernel(
    dout_ptr, x_ptr, weight_ptr, mean_ptr, scale_ptr, dx_ptr, dweight_ptr, dbias_ptr, lock_ptr, n_columns,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row each; programs that share one of GROUPS sums take turns under a lock, whose second word says 'begun'."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    group = row % GROUPS
    lock = lock_ptr + group
    begun = lock + GROUPS
    dweight_ptrs = dweight_ptr + group * n_columns + columns
    dbias_ptrs = dbias_ptr + group * n_columns + columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0).to(tl.float32)
    dout = tl.load(dout_ptr + row * n_columns + columns, mask=mask, other=0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr + row)
    normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * scale, 0.0)
    scaled = tl.where(mask, weight * dout, 0.0)
    along = tl.sum(normal * scaled, axis=0) / n_columns
    mean = tl.sum(scaled, axis=0) / n_columns
    dx = (scaled - (normal * along + mean)) * scale
    tl.store(dx_ptr + row * n_columns + columns, dx, mask=mask)
    dweight = (dout * normal).to(weight_ptr.dtype.element_ty)
    dbias = dout.to(weight_ptr.dtype.element_ty)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(begun) == 0:
        tl.atomic_xchg(begun, 1)
    else:
        dweight += tl.load(dweight_ptrs, mask=mask)
        dbias += tl.load(dbias_ptrs, mask=mask)
    tl.store(dweight_ptrs, dweight, mask=mask)
    tl.store(dbias_ptrs, dbias, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def layer_norm_backward(rows, columns, groups=128):
    x, dout, weight = (random(*shape, dtype=HALF) for shape in ((rows, columns), (rows, columns), (columns,)))
    means = x.float().mean(1)
    scales = torch.rsqrt(x.float().var(1, correction=0) + 1e-5)
    dx, locks = torch.empty_like(x), torch.zeros(2 * groups, device=DEVICE, dtype=torch.int32)
    sums = torch.empty(2, groups, columns, device=DEVICE, dtype=HALF)

    def launch(warps):
        locks.zero_()
        layer_norm_backward_kernel[(rows,)](
            dout, x, weight, means, scales, dx, sums[0], sums[1], locks, columns,
            GROUPS=groups, BLOCK=triton.next_power_of_2(columns), num_warps=warps,
        )  # fmt: skip

    def gradients():
        parts = [part.float().requires_grad_() for part in (x, weight, torch.zeros_like(weight))]
        out = torch.nn.functional.layer_norm(parts[0], (columns,), parts[1], parts[2], 1e-5)
        return torch.autograd.grad(out, parts, dout.float())

    expected = gradients()

    def check(result):
        right = [is_close(sums[i].sum(0, dtype=FLOAT), expected[i + 1], 1e-2) for i in range(2)]
        return is_close(result, expected[0], 1e-2) and all(right)

    configs = {f"num_warps={count}": partial(launch, count) for count in (4, 8)}
    return Case(configs, dx, None, gradients, 6 * x.numel(), check=check)


@triton.jit
def group_norm_kernel(x_ptr, out_ptr, weight_ptr, bias_ptr, size, per_channel, channels, eps, BLOCK: tl.constexpr):
    """x is (batch, groups, size) in memory; a group's channels have per_channel elements each."""
    program, group = tl.program_id(0), tl.program_id(1)
    base = (program * tl.num_programs(1) + group).to(tl.int64) * size
    columns = tl.arange(0, BLOCK)
    total, squares = 0.0, 0.0
    for start in range(0, size, BLOCK):
        x = tl.load(x_ptr + base + start + columns, mask=start + columns < size, other=0.0).to(tl.float32)
        total += tl.sum(x)
        squares += tl.sum(x * x)
    mean = total / size
    scale = tl.rsqrt(squares / size - mean * mean + eps)
    for channel in tl.range(group * channels, (group + 1) * channels):
        weight, bias = tl.load(weight_ptr + channel), tl.load(bias_ptr + channel)
        place = base + (channel - group * channels) * per_channel
        for start in range(0, per_channel, BLOCK):
            mask = start + columns < per_channel
            x = tl.load(x_ptr + place + start + columns, mask=mask, other=mean).to(tl.float32)
            tl.store(out_ptr + place + start + columns, (x - mean) * scale * weight + bias, mask=mask)


def group_norm(batch, channels, side, groups):
    x, weight, bias = random(batch, channels, side, side, dtype=HALF), *(random(channels, dtype=HALF) for _ in "wb")
    out = torch.empty_like(x)
    each = channels // groups

    def launch(block, warps):
        group_norm_kernel[batch, groups](
            x, out, weight, bias, each * side * side, side * side, each, 1e-5, BLOCK=block, num_warps=warps
        )

    reference = partial(torch.nn.functional.group_norm, x, groups, weight, bias)
    expected = torch.nn.functional.group_norm(x.float(), groups, weight.float(), bias.float())
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in ((1024, 4), (4096, 8))}
    return Case(configs, out, None, reference, 6 * x.numel(), check=close_to(expected))


@triton.jit
def l2_norm_kernel(x_ptr, out_ptr, scale_ptr, n_rows, eps, D: tl.constexpr, ROWS: tl.constexpr):
    """Short rows, many of them in a tile, through block pointers."""
    first = tl.program_id(0) * ROWS
    x = tl.make_block_ptr(x_ptr, (n_rows, D), (D, 1), (first, 0), (ROWS, D), (1, 0))
    out = tl.make_block_ptr(out_ptr, (n_rows, D), (D, 1), (first, 0), (ROWS, D), (1, 0))
    scales = tl.make_block_ptr(scale_ptr, (n_rows,), (1,), (first,), (ROWS,), (0,))
    wide = tl.load(x, boundary_check=(0, 1)).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(wide * wide, 1) + eps)
    tl.store(out, (wide * scale[:, None]).to(out.dtype.element_ty), boundary_check=(0, 1))
    tl.store(scales, scale, boundary_check=(0,))


def l2_norm(rows, columns):
    x = random(rows, columns)
    out, scales = torch.empty_like(x), torch.empty(rows, device=DEVICE)

    def launch(block, warps):
        l2_norm_kernel[(triton.cdiv(rows, block),)](x, out, scales, rows, 1e-6, D=columns, ROWS=block, num_warps=warps)

    reference = partial(torch.nn.functional.normalize, x, dim=1)
    expected = torch.nn.functional.normalize(x.float(), dim=1)
    configs = {
        f"{block}x{warps}": partial(launch, block, warps) for block, warps in ((16, 4), (32, 4), (64, 8), (16, 1))
    }
    return Case(configs, out, None, reference, 4 * x.numel(), check=close_to(expected))


# ---- softmax and losses


@triton.jit
def softmax_backward_kernel(dy_ptr, y_ptr, dx_ptr, n_rows, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows in pieces: one pass to sum up, one to write."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    offsets = rows[:, None] * n_columns + columns[None, :]
    sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(0, n_columns, BLOCK):
        mask = (rows < n_rows)[:, None] & (columns + start < n_columns)[None, :]
        y = tl.load(y_ptr + offsets + start, mask=mask, eviction_policy="evict_last").to(tl.float32)
        dy = tl.load(dy_ptr + offsets + start, mask=mask).to(tl.float32)
        sums += y * dy
    total = tl.sum(sums, axis=1)
    for start in range(0, n_columns, BLOCK):
        mask = (rows < n_rows)[:, None] & (columns + start < n_columns)[None, :]
        y = tl.load(y_ptr + offsets + start, mask=mask, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dy_ptr + offsets + start, mask=mask).to(tl.float32)
        tl.store(dx_ptr + offsets + start, y * (dy - total[:, None]), mask=mask)


def softmax_backward(rows, columns):
    y, dy = torch.softmax(random(rows, columns).float(), 1).to(HALF), random(rows, columns, dtype=HALF)
    out = torch.empty_like(y)

    def launch(block, pieces, warps):
        softmax_backward_kernel[(triton.cdiv(rows, block),)](
            dy, y, out, rows, columns, ROWS=block, BLOCK=pieces, num_warps=warps
        )

    def reference():
        return torch._softmax_backward_data(dy, y, 1, HALF)

    wide, dwide = y.double(), dy.double()
    expected = wide * (dwide - (wide * dwide).sum(1, keepdim=True))
    tiles = ((1, 1024, 4), (1, 2048, 8), (4, 1024, 8))
    configs = {"x".join(map(str, tile)): partial(launch, *tile) for tile in tiles}
    return Case(configs, out, None, reference, 6 * y.numel(), check=close_to(expected))


@triton.jit
def loss_gradient_kernel(x_ptr, label_ptr, loss_ptr, dx_ptr, stride, n_columns, share, BLOCK: tl.constexpr):
    """Cross entropy and its gradient, the row gone through twice."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    x_ptr += row * stride
    dx_ptr += row * stride
    top, total = float("-inf"), 0.0
    own = tl.load(x_ptr + label).to(tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n_columns, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(x))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher))
        top = higher
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n_columns, other=float("-inf")).to(tl.float32)
        dx = tl.exp(x - top) / total * share
        dx = tl.where(columns == label, dx - share, dx)
        tl.store(dx_ptr + columns, dx, mask=columns < n_columns)
    tl.debug_barrier()
    tl.store(loss_ptr + row, (top + tl.log(total) - own) * share)


def loss_gradient(rows, columns):
    x, out = random(rows, columns), torch.empty(rows, columns, device=DEVICE, dtype=BFLOAT)
    labels, losses = torch.randint(0, columns, (rows,), device=DEVICE), torch.empty(rows, device=DEVICE)

    def launch(block, warps):
        loss_gradient_kernel[(rows,)](x, labels, losses, out, columns, columns, 1 / rows, BLOCK=block, num_warps=warps)

    def gradients():
        wide = x.float().requires_grad_()
        loss = torch.nn.functional.cross_entropy(wide, labels)
        return loss.detach(), torch.autograd.grad(loss, wide)[0]

    def check(result):
        loss, expected = gradients()
        return is_close(result, expected, 1e-2) and is_close(losses.sum(), loss, 1e-4)

    tiles = ((32768, 32), (16384, 16), (4096, 8))
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in tiles}
    return Case(configs, out, None, gradients, 6 * x.numel(), check=check)


@triton.jit
def logsumexp_kernel(x_ptr, label_ptr, loss_ptr, sum_ptr, stride, n_columns, parts, BLOCK: tl.constexpr):
    """One part of a wide row; the first one takes the label's element along."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    x_ptr += row * stride
    columns = part * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row).to(tl.int32)
    x = tl.load(x_ptr + columns, mask=columns < n_columns, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    logsum = top + tl.log(tl.sum(tl.exp(x - top), 0))
    if part == 0:
        loss = 0.0
        if label != -100:
            loss = -tl.load(x_ptr + label).to(tl.float32)
        tl.store(loss_ptr + row, loss)
    tl.store(sum_ptr + row * parts + part, logsum)


def logsumexp(rows, columns, block=65536):
    x, labels = random(rows, columns), torch.randint(0, columns, (rows,), device=DEVICE)
    parts = triton.cdiv(columns, block)
    losses, sums = torch.empty(rows, device=DEVICE), torch.empty(rows, parts, device=DEVICE)

    def launch(warps):
        logsumexp_kernel[rows, parts](x, labels, losses, sums, columns, columns, parts, BLOCK=block, num_warps=warps)

    def check(result):
        expected = torch.nn.functional.cross_entropy(x.float(), labels, reduction="none")
        return is_close(result.logsumexp(1) + losses, expected, 1e-4)

    reference = partial(torch.nn.functional.cross_entropy, x, labels, reduction="none")
    configs = {f"num_warps={count}": partial(launch, count) for count in (32, 16)}
    return Case(configs, sums, None, reference, 2 * x.numel(), check=check)


@triton.jit
def divergence_kernel(x_ptr, y_ptr, loss_ptr, dx_ptr, n_columns, beta, scale, BLOCK: tl.constexpr):
    """Generalised Jensen-Shannon divergence of log-probabilities, and its gradient."""
    row = tl.program_id(0).to(tl.int64) * n_columns
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_columns
        x = tl.load(x_ptr + row + columns, mask=mask, other=float("-inf")).to(tl.float32)
        y = tl.load(y_ptr + row + columns, mask=mask, other=float("-inf")).to(tl.float32)
        q, p = tl.exp(x), tl.exp(y)
        ours = (1 - beta) * q
        mixed = beta * p + ours
        middle = tl.log(mixed)
        loss = beta * p * (y - middle) + ours * (x - middle)
        tl.store(loss_ptr + row + columns, tl.where(mask, loss * scale, 0.0), mask=mask)
        tl.store(dx_ptr + row + columns, scale * ours * (x - middle), mask=mask)


def divergence(rows, columns):
    x, y = (torch.log_softmax(random(rows, columns, dtype=FLOAT), 1) for _ in range(2))
    losses, out = torch.empty_like(x), torch.empty_like(x)

    def launch(block, warps):
        divergence_kernel[(rows,)](x, y, losses, out, columns, 0.3, 1 / rows, BLOCK=block, num_warps=warps)

    def reference():
        q, p = 0.7 * x.exp(), 0.3 * y.exp()
        middle = (p + q).log()
        return torch.stack((p * (y - middle) + q * (x - middle), q * (x - middle))) / rows

    def check(result):
        expected = reference()
        return is_close(losses, expected[0], 1e-4) and is_close(result, expected[1], 1e-4)

    tiles = ((32768, 32), (8192, 16), (2048, 8))
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in tiles}
    return Case(configs, out, None, reference, 16 * x.numel(), check=check)


# ---- narrow types


@triton.jit
def group_fp8_kernel(x_ptr, out_ptr, scale_ptr, size, eps, low, high, BLOCK: tl.constexpr):
    """8-bit floats with a scale for each group of elements, a group a program."""
    group = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < size
    x = tl.load(x_ptr + group * size + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x)), eps) / high
    tl.store(out_ptr + group * size + columns, tl.clamp(x / scale, low, high).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(scale_ptr + group, scale)


def group_fp8(rows, columns, size=128):
    x = random(rows, columns)
    out, scales = torch.empty_like(x, dtype=FP8), torch.empty(rows, columns // size, device=DEVICE)

    def launch(warps):
        group_fp8_kernel[(x.numel() // size,)](x, out, scales, size, 1e-10, -448.0, 448.0, BLOCK=size, num_warps=warps)

    def reference():
        groups = x.view(rows, -1, size).float()
        scale = groups.abs().amax(2, keepdim=True) / 448
        return (groups / scale).to(FP8).view(rows, columns)

    def check(result):
        return is_close(result.float().view(rows, -1, size) * scales[..., None], x.view(rows, -1, size), 0.05)

    configs = {f"num_warps={count}": partial(launch, count) for count in (1, 4)}
    return Case(configs, out, None, reference, 3 * x.numel(), check=check)


@triton.jit
def row_int8_kernel(x_ptr, out_ptr, scale_ptr, n_columns, BLOCK: tl.constexpr):
    """Rows as bytes with a scale each, rounded away from zero at halves."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0.0).to(tl.float32)
    top = tl.maximum(tl.max(tl.abs(x)), 1e-10)
    x = x * (127 / top)
    x = tl.where(x >= 0, tl.floor(x + 0.5), tl.ceil(x - 0.5))
    tl.store(out_ptr + row * n_columns + columns, x.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, top / 127)


def row_int8(rows, columns):
    x = random(rows, columns)
    out, scales = torch.empty_like(x, dtype=torch.int8), torch.empty(rows, device=DEVICE)
    block = triton.next_power_of_2(columns)

    def launch(warps):
        row_int8_kernel[(rows,)](x, out, scales, columns, BLOCK=block, num_warps=warps)

    def reference():
        scale = x.abs().amax(1, keepdim=True) / 127
        return torch.round(x / scale).to(torch.int8)

    def check(result):
        return is_close(result.float() * scales[:, None], x, 0.02)

    configs = {f"num_warps={count}": partial(launch, count) for count in (4, 8, 16)}
    return Case(configs, out, None, reference, 3 * x.numel(), check=check)


@triton.jit
def table_kernel(code_ptr, scale_ptr, table_ptr, out_ptr, n_bytes, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    """Two 4-bit codes a byte, whose values are in a table, GROUP elements to a scale."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_bytes
    codes = tl.load(code_ptr + offsets, mask=mask)
    scale = tl.load(scale_ptr + offsets // (GROUP // 2), mask=mask)
    high = tl.load(table_ptr + (codes >> 4)) * scale
    low = tl.load(table_ptr + (codes & 15)) * scale
    both = tl.interleave(high, low).to(out_ptr.dtype.element_ty)
    places = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    tl.store(out_ptr + places, both, mask=places < 2 * n_bytes)


def table(log2, group=64):
    codes = torch.randint(0, 256, (1 << log2,), device=DEVICE, dtype=torch.uint8)
    values = torch.linspace(-1, 1, 16, device=DEVICE)
    scales = torch.rand(2 * codes.numel() // group, device=DEVICE)
    out = torch.empty(2 * codes.numel(), device=DEVICE, dtype=BFLOAT)

    def launch(block, warps):
        table_kernel[(triton.cdiv(codes.numel(), block),)](
            codes, scales, values, out, codes.numel(), BLOCK=block, GROUP=group, num_warps=warps
        )

    def reference():
        both = torch.stack((codes >> 4, codes & 15), 1).flatten().int()
        return (values[both].view(-1, group) * scales[:, None]).flatten().to(BFLOAT)

    expected = reference()
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in ((512, 4), (1024, 4), (2048, 8))}
    return Case(configs, out, None, reference, 5 * codes.numel(), check=close_to(expected))


@triton.jit
def adamw_kernel(
    weight_ptr, gradient_ptr, mean_ptr, square_ptr, out_ptr, n_elements,
    rate, beta1, beta2, eps, decay, correct1, correct2, BLOCK: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    weight = tl.load(weight_ptr + offsets, mask=mask)
    gradient = tl.load(gradient_ptr + offsets, mask=mask).to(tl.float32)
    mean = tl.load(mean_ptr + offsets, mask=mask)
    square = tl.load(square_ptr + offsets, mask=mask)
    weight *= 1 - rate * decay
    mean = beta1 * mean + (1 - beta1) * gradient
    square = beta2 * square + (1 - beta2) * gradient * gradient
    step = (mean / correct1) / (tl.sqrt_rn(square / correct2) + eps)
    tl.store(out_ptr + offsets, weight - rate * step, mask=mask)
    tl.store(mean_ptr + offsets, mean, mask=mask)
    tl.store(square_ptr + offsets, square, mask=mask)


def adamw(log2):
    n = 1 << log2
    weight, gradient = random(n, dtype=FLOAT), random(n)
    mean, square, out = torch.zeros(n, device=DEVICE), torch.zeros(n, device=DEVICE), torch.empty(n, device=DEVICE)
    numbers = 1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 1e-3

    def launch(block):
        adamw_kernel[(triton.cdiv(n, block),)](weight, gradient, mean, square, out, n, *numbers, BLOCK=block)

    def reference():
        g = gradient.float()
        return weight * (1 - 1e-5) - 1e-3 * (mean / 0.1) / ((square / 1e-3).sqrt() + 1e-8) + 0 * g

    def check(result):  # means and squares are those that the last launch left
        return is_close(result, reference(), 1e-4)

    configs = {f"BLOCK={block}": partial(launch, block) for block in (512, 1024)}
    return Case(configs, out, None, reference, 26 * n, check=check)


# ---- rotations of queries and keys


@triton.jit
def rotate_halves_kernel(
    q_ptr, k_ptr, cos_ptr, sin_ptr, q_out_ptr, k_out_ptr,
    Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """All heads of a token in two tiles, halves of which belong together."""
    token = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D // 2)
    cos = tl.load(cos_ptr + token * D + columns)
    sin = tl.load(sin_ptr + token * D + columns)
    q_places = token * Q_HEADS * D + tl.arange(0, Q_HEADS)[:, None] * D + columns[None, :]
    k_places = token * K_HEADS * D + tl.arange(0, K_HEADS)[:, None] * D + columns[None, :]
    q1 = tl.load(q_ptr + q_places).to(sin.dtype)
    k1 = tl.load(k_ptr + k_places).to(sin.dtype)
    q2 = tl.load(q_ptr + q_places + D // 2).to(sin.dtype)
    k2 = tl.load(k_ptr + k_places + D // 2).to(sin.dtype)
    tl.store(q_out_ptr + q_places, q1 * cos - q2 * sin)
    tl.store(q_out_ptr + q_places + D // 2, q2 * cos + q1 * sin)
    tl.store(k_out_ptr + k_places, k1 * cos - k2 * sin)
    tl.store(k_out_ptr + k_places + D // 2, k2 * cos + k1 * sin)


def angles(tokens, d):
    values = torch.rand(tokens, d // 2, device=DEVICE) * 6
    return values.cos(), values.sin()


def rotate_halves(tokens, heads, key_heads, d=128):
    q, k = random(tokens, heads, d), random(tokens, key_heads, d)
    cos, sin = (torch.cat((part, part), 1).to(BFLOAT) for part in angles(tokens, d))
    out, k_out = torch.empty_like(q), torch.empty_like(k)

    def launch(warps):
        sizes = {"Q_HEADS": heads, "K_HEADS": key_heads, "D": d}
        rotate_halves_kernel[(tokens,)](q, k, cos, sin, out, k_out, **sizes, num_warps=warps)

    def rotated(x):
        a, b = x.float().chunk(2, 2)
        c, s = (part[:, None, : d // 2].float() for part in (cos, sin))
        return torch.cat((a * c - b * s, b * c + a * s), 2)

    def check(result):
        return is_close(result, rotated(q), 1e-2) and is_close(k_out, rotated(k), 1e-2)

    configs = {f"num_warps={count}": partial(launch, count) for count in (4, 8)}
    return Case(configs, out, None, partial(rotated, q), 4 * (q.numel() + k.numel()), check=check)


@triton.jit
def rotate_pairs_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, tokens, heads, D: tl.constexpr, TOKENS: tl.constexpr):
    """Neighbours belong together: a tile of elements and one of their partners, swapped in the address."""
    rows = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    head = tl.program_id(1)
    columns = tl.arange(0, D)
    partners = columns + (columns + 1) % 2 * 2 - 1
    angle = columns // 2
    mask = (rows < tokens)[:, None]
    base = (rows[:, None] * heads + head) * D
    cos = tl.load(cos_ptr + rows[:, None] * (D // 2) + angle[None, :], mask=mask, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptr + rows[:, None] * (D // 2) + angle[None, :], mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + base + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    partner = tl.load(x_ptr + base + partners[None, :], mask=mask, other=0.0).to(tl.float32)
    turned = tl.where(columns % 2 == 0, x * cos - partner * sin, x * cos + partner * sin)
    tl.store(out_ptr + base + columns[None, :], turned, mask=mask)


def rotate_pairs(tokens, heads, d=128):
    x = random(tokens, heads, d)
    cos, sin = angles(tokens, d)
    out = torch.empty_like(x)

    def launch(block, warps):
        rotate_pairs_kernel[triton.cdiv(tokens, block), heads](
            x, cos, sin, out, tokens, heads, D=d, TOKENS=block, num_warps=warps
        )

    def reference():
        a, b = x[..., ::2].float(), x[..., 1::2].float()
        c, s = cos[:, None], sin[:, None]
        return torch.stack((a * c - b * s, b * c + a * s), 3).flatten(2)

    expected = reference()
    configs = {f"{block}x{warps}": partial(launch, block, warps) for block, warps in ((4, 4), (8, 4), (32, 4))}
    return Case(configs, out, None, reference, 4 * x.numel(), check=close_to(expected, 1e-2))


KERNELS = {  # name: what makes the case, its sizes, and sizes for tests
    "swiglu 8192x11008 bf16": (swiglu, (8192, 11008), (3, 11008)),
    "swiglu backward 8192x11008 bf16": (swiglu_backward, (8192, 11008), (3, 11008)),
    "geglu 2^25 bf16": (geglu, (25,), (13,)),
    "add and rms norm 8192x4096 bf16": (add_rms_norm, (8192, 4096), (3, 4096)),
    "rms norm backward 8192x4096 bf16": (rms_norm_backward, (8192, 4096), (13, 4096, 4)),
    "layer norm backward 4096x4096 fp16": (layer_norm_backward, (4096, 4096), (8, 4096, 4)),
    "group norm 16x512x64x64 fp16": (group_norm, (16, 512, 64, 32), (2, 64, 16, 4)),
    "l2 norm 262144x128 bf16": (l2_norm, (262144, 128), (112, 128)),
    "softmax backward 8192x4096 fp16": (softmax_backward, (8192, 4096), (5, 4096)),
    "cross entropy and gradient 2048x128256 bf16": (loss_gradient, (2048, 128256), (2, 40096)),
    "logsumexp 2048x128256 bf16": (logsumexp, (2048, 128256), (2, 128256)),
    "divergence 2048x32000 fp32": (divergence, (2048, 32000), (2, 32000)),
    "fp8 in groups 8192x7168 bf16": (group_fp8, (8192, 7168), (4, 256)),
    "int8 of rows 8192x4096 bf16": (row_int8, (8192, 4096), (4, 4096)),
    "values of 4-bit codes 2^26": (table, (25,), (12,)),
    "adamw 2^25": (adamw, (25,), (12,)),
    "rotation of halves 8192x32x8x128 bf16": (rotate_halves, (8192, 32, 8), (3, 32, 8)),
    "rotation of pairs 8192x32x128 bf16": (rotate_pairs, (8192, 32), (35, 2)),
}
