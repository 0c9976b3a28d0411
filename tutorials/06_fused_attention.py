"""06: attention, fused, forward and backward. Products that follow each other, a softmax in pieces, recomputation."""

# %% [markdown]
# # 6. Fused attention
#
# For each head, attention takes matrices of n queries, n keys and n values, d columns each, and gives every query
# an average of the values:
#
# $$O = P\,V, \qquad P = \mathrm{softmax}(\sigma\, Q K^\top) \text{ row by row}, \qquad \sigma = 1/\sqrt d.$$
#
# *Causal* attention lets a query see only the keys that do not come after it: $P_{ij} = 0$ for $j > i$.
#
# P has n × n elements. At n = 16384 that is half a gigabyte of fp16 for each head, while Q, K, V and O have a few
# megabytes. So the aim is never to write P down: the second product takes it, tile by tile, as the first one
# makes it. This lesson is about
#
# - a **softmax in pieces**, for rows that are never there as a whole,
# - **two products in a row**, with the tile between them kept in registers,
# - loops in **two parts**, so that most tiles need no mask,
# - a backward pass that **computes again** what would be expensive to keep.
#
# The algorithm is that of Dao, *FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning*,
# 2023; the running softmax is due to Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018.

# %%
import contextlib
import math

import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
TARGET = triton.runtime.driver.active.get_current_target()
ON_CPU = TARGET.backend == "cpu"  # and neither on a GPU nor in the simulator of one
HAS_FP8 = not ON_CPU and TARGET.arch >= 89

# %% [markdown]
# ## A softmax in pieces
#
# A program has a block of queries, and meets the keys block by block. For each of its rows it remembers
#
# - `largest`, the largest score m so far,
# - `total`, the sum of $e^{s_j - m}$ over the scores s so far,
# - `o`, the sum of $e^{s_j - m}\, v_j$: a row of the result that has yet to be divided by `total`.
#
# When a block of scores has a larger maximum m', then what is there refers to the wrong one. Multiplying both sums by
# $e^{m - m'}$ puts that right, and then the new block's terms are added. At first m is -∞ and the factor 0, which is
# just as well, since there is nothing to correct.
#
# Two details. Hardware has an instruction for $2^x$ and none for $e^x$, so we measure scores in powers of two:
# $e^{\sigma s} = 2^{s \cdot \sigma \log_2 e}$, and the factor is known before the loop. And of the row we keep one
# number for later, the logarithm of its whole sum, `largest + log2(total)`; subtracted from a score, it gives the
# probability itself.
#
# ## A loop in two parts
#
# Where causal attention crosses the diagonal, and behind the last key, scores have to be masked. All other blocks are
# whole, and a comparison and a selection for each of their elements would be wasted. So `attend` is the loop over
# some blocks of keys, and the kernel calls it twice: without masks, and with them. `MASKED` and `CAUSAL` are known at
# compile time, and what they exclude does not exist in the code.


# %%
@triton.jit
def attend(
    o, total, largest, q, k_ptr, v_ptr, n, v_row, v_column, rows, first, end, exponent,
    D: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """o, total and largest with the keys from `first` to `end` added."""
    depth = tl.arange(0, D)
    for start in range(first, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + columns[:, None] * D + depth[None, :]
        v_ptrs = v_ptr + columns[:, None] * v_row + depth[None, :] * v_column
        if MASKED:
            k = tl.load(k_ptrs, mask=columns[:, None] < n, other=0.0)
            v = tl.load(v_ptrs, mask=columns[:, None] < n, other=0.0)
        else:
            k = tl.load(k_ptrs)
            v = tl.load(v_ptrs)
        scores = tl.dot(q, k.T)
        if MASKED:
            visible = columns[None, :] < n
            if CAUSAL:
                visible = visible & (columns[None, :] <= rows[:, None])
            scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1) * exponent)
        p = tl.exp2(scores * exponent - new[:, None])
        correction = tl.exp2(largest - new)
        total = total * correction + tl.sum(p, axis=1)
        o = tl.dot(p.to(v.dtype), v, o * correction[:, None])
        largest = new
    return o, total, largest


# %% [markdown]
# `p.to(v.dtype)`: the second product takes its operands in the type of the first. In 16 bits p stays in
# the registers of a GPU: that the result of one product can be an operand of the next without moving is what makes the
# fusion pay.
#
# ## Forward
#
# Blocks of queries along the first axis of the grid, heads along the second. In the causal case a later block has
# more keys to see, and the longest work should begin first, so the blocks are taken from the end.


# %%
@triton.jit
def block_of_queries(CAUSAL: tl.constexpr):
    return tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)


@triton.jit
def forward_kernel(
    o_ptr, logsum_ptr, q_ptr, k_ptr, v_ptr, n, v_row, v_column, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    begin = block_of_queries(CAUSAL) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * n  # many heads of many rows do not fit into 32 bits
    rows = begin + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, D)
    offsets = rows[:, None] * D + depth[None, :]
    q = tl.load(q_ptr + head * D + offsets, mask=rows[:, None] < n, other=0.0)
    o = tl.zeros((BLOCK_M, D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)

    end = min(begin + BLOCK_M, n) if CAUSAL else n  # of the keys that these queries see
    whole = (begin if CAUSAL else n) // BLOCK_N * BLOCK_N  # up to here in blocks that all of them see
    k_ptr += head * D
    v_ptr += head * D
    exponent = scale * 1.4426950408889634  # log2(e)
    o, total, largest = attend(
        o, total, largest, q, k_ptr, v_ptr, n, v_row, v_column, rows, 0, whole, exponent,
        D, BLOCK_N, CAUSAL, MASKED=False,
    )  # fmt: skip
    o, total, largest = attend(
        o, total, largest, q, k_ptr, v_ptr, n, v_row, v_column, rows, whole, end, exponent,
        D, BLOCK_N, CAUSAL, MASKED=True,
    )  # fmt: skip

    o = o / total[:, None]
    tl.store(o_ptr + head * D + offsets, o.to(o_ptr.dtype.element_ty), mask=rows[:, None] < n)
    tl.store(logsum_ptr + head + rows, largest + tl.log2(total), mask=rows < n)


# %% [markdown]
# ## Backward
#
# Given the gradient dO, the chain rule says
#
# $$dV = P^\top dO, \qquad dP = dO\,V^\top, \qquad dS = P \circ (dP - \delta), \qquad
#   dQ = \sigma\, dS\, K, \qquad dK = \sigma\, dS^\top Q.$$
#
# δ comes from the softmax: row by row it is $\sum_j P_{ij}\, dP_{ij}$. That sum goes over all keys, but since dP is a
# product it equals $\sum_c O_{ic}\, dO_{ic}$, which needs no key at all. One small kernel computes δ for all rows.
#
# P is needed again, and was never stored. With the logarithms of the sums it takes one product and one
# exponential to get any tile of it back: $P = 2^{\sigma \log_2 e\, Q K^\top - \mathrm{logsum}}$. Computing it again is
# cheaper than reading it would be.
#
# dK and dV are sums over queries, dQ is one over keys. A single kernel would have to add one of them across
# programs, as in lesson 5. Two kernels with a loop in either direction make P twice but need no atomics, and so give
# the same digits every time:
#
# - `keys_kernel` has a block of keys and goes through the queries. It works on **transposed** tiles,
#   $S^\top = K Q^\top$: then $P^\top$ and $dS^\top$, which are computed, are the left operands of the products for dV
#   and dK, and a tensor core takes a left operand from registers.
# - `queries_kernel` has a block of queries and goes through the keys, just as the forward pass does.
#
# Queries behind the last one need no mask for the scores: Q, dO and δ are loaded as zeros there, so they add nothing,
# whatever their probabilities. Keys behind the last one need it in `queries_kernel`, where a probability might be too
# large for fp32; in `keys_kernel` they are rows of a result that is not stored.


# %%
@triton.jit
def delta_kernel(delta_ptr, o_ptr, do_ptr, total_rows, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    offsets = rows[:, None] * D + tl.arange(0, D)[None, :]
    mask = rows[:, None] < total_rows
    o = tl.load(o_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, axis=1), mask=rows < total_rows)


@triton.jit
def gather_queries(
    dk, dv, k, v, q_ptr, do_ptr, logsum_ptr, delta_ptr, n, columns, first, end, exponent,
    D: tl.constexpr, BLOCK_M: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """dk and dv with what the queries from `first` to `end` add; masked: those that do not see all of the keys."""
    depth = tl.arange(0, D)
    for start in range(first, end, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        offsets = rows[:, None] * D + depth[None, :]
        q = tl.load(q_ptr + offsets, mask=rows[:, None] < n, other=0.0)
        do = tl.load(do_ptr + offsets, mask=rows[:, None] < n, other=0.0)
        logsum = tl.load(logsum_ptr + rows, mask=rows < n, other=0.0)
        delta = tl.load(delta_ptr + rows, mask=rows < n, other=0.0)
        p = tl.exp2(tl.dot(k, q.T) * exponent - logsum[None, :])
        if MASKED:
            p = tl.where(columns[:, None] <= rows[None, :], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, do.T) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def keys_kernel(
    dk_ptr, dv_ptr, q_ptr, k_ptr, v_ptr, do_ptr, logsum_ptr, delta_ptr, n, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    tl.static_assert(BLOCK_N % BLOCK_M == 0, "the first query after a block of keys begins a block of queries")
    begin = tl.program_id(0) * BLOCK_N
    head = tl.program_id(1).to(tl.int64) * n
    columns = begin + tl.arange(0, BLOCK_N)
    offsets = head * D + columns[:, None] * D + tl.arange(0, D)[None, :]
    k = tl.load(k_ptr + offsets, mask=columns[:, None] < n, other=0.0)
    v = tl.load(v_ptr + offsets, mask=columns[:, None] < n, other=0.0)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)

    q_ptr += head * D
    do_ptr += head * D
    logsum_ptr += head
    delta_ptr += head
    exponent = scale * 1.4426950408889634
    whole = 0
    if CAUSAL:  # the first queries that see any of these keys are those beside them, and they do not see all
        whole = begin + BLOCK_N
        dk, dv = gather_queries(
            dk, dv, k, v, q_ptr, do_ptr, logsum_ptr, delta_ptr, n, columns, begin, min(whole, n), exponent,
            D, BLOCK_M, MASKED=True,
        )  # fmt: skip
    dk, dv = gather_queries(
        dk, dv, k, v, q_ptr, do_ptr, logsum_ptr, delta_ptr, n, columns, whole, n, exponent, D, BLOCK_M, MASKED=False
    )

    mask = columns[:, None] < n
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=mask)
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gather_keys(
    dq, q, do, logsum, delta, k_ptr, v_ptr, n, rows, first, end, exponent,
    D: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """dq with what the keys from `first` to `end` add."""
    depth = tl.arange(0, D)
    for start in range(first, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        offsets = columns[:, None] * D + depth[None, :]
        if MASKED:
            k = tl.load(k_ptr + offsets, mask=columns[:, None] < n, other=0.0)
            v = tl.load(v_ptr + offsets, mask=columns[:, None] < n, other=0.0)
        else:
            k = tl.load(k_ptr + offsets)
            v = tl.load(v_ptr + offsets)
        p = tl.exp2(tl.dot(q, k.T) * exponent - logsum[:, None])
        if MASKED:
            visible = columns[None, :] < n
            if CAUSAL:
                visible = visible & (columns[None, :] <= rows[:, None])
            p = tl.where(visible, p, 0.0)
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def queries_kernel(
    dq_ptr, q_ptr, k_ptr, v_ptr, do_ptr, logsum_ptr, delta_ptr, n, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    begin = block_of_queries(CAUSAL) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * n
    rows = begin + tl.arange(0, BLOCK_M)
    offsets = head * D + rows[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + offsets, mask=rows[:, None] < n, other=0.0)
    do = tl.load(do_ptr + offsets, mask=rows[:, None] < n, other=0.0)
    logsum = tl.load(logsum_ptr + head + rows, mask=rows < n, other=0.0)
    delta = tl.load(delta_ptr + head + rows, mask=rows < n, other=0.0)
    dq = tl.zeros((BLOCK_M, D), tl.float32)

    end = min(begin + BLOCK_M, n) if CAUSAL else n
    whole = (begin if CAUSAL else n) // BLOCK_N * BLOCK_N
    k_ptr += head * D
    v_ptr += head * D
    exponent = scale * 1.4426950408889634
    dq = gather_keys(
        dq, q, do, logsum, delta, k_ptr, v_ptr, n, rows, 0, whole, exponent, D, BLOCK_N, CAUSAL, MASKED=False
    )
    dq = gather_keys(
        dq, q, do, logsum, delta, k_ptr, v_ptr, n, rows, whole, end, exponent, D, BLOCK_N, CAUSAL, MASKED=True
    )
    tl.store(dq_ptr + offsets, (dq * scale).to(dq_ptr.dtype.element_ty), mask=rows[:, None] < n)


# %% [markdown]
# ## Sizes
#
# On a GPU registers and shared memory decide. With 128 queries, 64 keys and d = 128 the forward pass has sums of
# 128 × 128 and scores of 128 × 64 in fp32, which over the 256 threads of 8 warps makes 96 registers for each thread, of
# the 255 that it can have. `keys_kernel` has two tiles of sums and two of scores: with 128 keys and 64 queries 192
# registers. That fits where a tensor core reads both operands from shared memory (compute capability 9.0); elsewhere
# operands pass through registers too, and there are 64 keys. In shared memory lie the block that a program has,
# and several of the blocks that it meets: at d = 128 these have to be smaller on GPUs with 100 KB of it or less. On a
# CPU what counts is that the tiles of a step fit into the cache next to a core.
#
# On compute capability 9.0 the tensor cores serve four warps at a time, a warpgroup, and of a program's two warpgroups
# the compiler lets one multiply while the other computes exponentials. They wait for each other once in a step, so
# there the forward pass takes 128 keys in a step, for which registers suffice.


# %%
def is_short_of_shared_memory(d):
    return d > 64 and TARGET.arch not in (80, 90, 100)


def sizes_forward(d):
    """For the forward pass: what `sizes_by_queries` says, but for more keys where warpgroups take turns."""
    sizes = sizes_by_queries(d)
    return sizes | dict(BLOCK_N=128) if d > 64 and TARGET.arch == 90 else sizes


def sizes_by_queries(d):
    """For a kernel whose programs have a block of queries each."""
    if ON_CPU:
        return dict(BLOCK_M=64, BLOCK_N=128)
    queries, keys = (64, 32) if is_short_of_shared_memory(d) else (128, 64)
    return dict(BLOCK_M=queries, BLOCK_N=keys, num_warps=queries // 16, num_stages=3)


def sizes_by_keys(d):
    if ON_CPU:
        return dict(BLOCK_M=64, BLOCK_N=128)
    queries = 32 if is_short_of_shared_memory(d) else 64
    keys = 128 if d <= 64 or TARGET.arch == 90 else 64
    return dict(BLOCK_M=queries, BLOCK_N=keys, num_warps=8, num_stages=2)


# %% [markdown]
# ## The wrappers
#
# Tensors have the shape (..., n, d), one piece of memory each; all dimensions in front of the last two are heads.
#
# In fp8 the forward pass has a condition of its own. In 16 bits a tensor core takes the right operand of a product
# along its rows or along its columns; in 8 bits it wants neighbours along the dimension that is summed over,
# which for V are the keys. Keeping V that way in memory spares the kernel from turning every tile, so V's strides
# are arguments. Gradients in fp8 would be too coarse; there is no backward pass for it.


# %%
def attention_forward(q, k, v, scale, causal):
    """Returns o, and the logarithms, to base 2, of the sums of each row. v may have any strides in its last two
    dimensions."""
    n, d = q.shape[-2:]
    heads = q.numel() // (n * d)
    o = torch.empty(q.shape, dtype=torch.float16 if q.element_size() == 1 else q.dtype, device=q.device)
    logsum = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    sizes = sizes_forward(d)
    grid = (triton.cdiv(n, sizes["BLOCK_M"]), heads)
    forward_kernel[grid](o, logsum, q, k, v, n, *v.stride()[-2:], scale, D=d, CAUSAL=causal, **sizes)
    return o, logsum


def attention_backward(do, q, k, v, o, logsum, scale, causal):
    """Returns the gradients dq, dk and dv."""
    n, d = q.shape[-2:]
    heads = q.numel() // (n * d)
    dq, dk, dv, delta = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), torch.empty_like(logsum)
    delta_kernel[(triton.cdiv(heads * n, 64),)](delta, o, do, heads * n, D=d, BLOCK=64)
    sizes = sizes_by_keys(d)
    grid = (triton.cdiv(n, sizes["BLOCK_N"]), heads)
    keys_kernel[grid](dk, dv, q, k, v, do, logsum, delta, n, scale, D=d, CAUSAL=causal, **sizes)
    sizes = sizes_by_queries(d)
    grid = (triton.cdiv(n, sizes["BLOCK_M"]), heads)
    queries_kernel[grid](dq, q, k, v, do, logsum, delta, n, scale, D=d, CAUSAL=causal, **sizes)
    return dq, dk, dv


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale):
        o, logsum = attention_forward(q, k, v, scale, causal)
        ctx.save_for_backward(q, k, v, o, logsum)
        ctx.scale, ctx.causal = scale, causal
        return o

    @staticmethod
    def backward(ctx, *gradients):
        (do,), (q, k, v, o, logsum) = gradients, ctx.saved_tensors
        return *attention_backward(do.contiguous(), q, k, v, o, logsum, ctx.scale, ctx.causal), None, None


def attention(q, k, v, causal=False, scale=None):
    assert q.shape == k.shape == v.shape, f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return Attention.apply(q.contiguous(), k.contiguous(), v.contiguous(), causal, scale)


def in_fp8(q, k, v):
    """q, k and v in fp8, v with its keys next to each other."""
    q, k, v = (x.to(torch.float8_e4m3fn) for x in (q, k, v.mT))
    return q.contiguous(), k.contiguous(), v.contiguous().mT


# %% [markdown]
# ## Does it work?
#
# The yardstick is the formula in fp64, and beside it what torch's `scaled_dot_product_attention` is off by in the same
# type. A length that no block divides has its turn, too.


# %%
def results(function, q, k, v, do):
    """The output of a function of q, k and v, and the gradients of the three."""
    inputs = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    out = function(*inputs)
    out.backward(do.to(out.dtype))
    return out.detach(), *(x.grad for x in inputs)


def reference(q, k, v, causal):
    """Attention by the formula, in fp64."""
    scores = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return scores.softmax(-1) @ v.double()


def relative(result, expected):
    return ((result.double() - expected).abs().max() / expected.abs().max()).item()


def check():
    torch.manual_seed(0)
    errors = {}
    for dtype in [torch.float16, torch.bfloat16] + [torch.float32] * ON_CPU:
        for n, d, causal in ((128, 64, False), (203, 64, True), (203, 32, False)):
            q, k, v, do = (torch.randn(1, 2, n, d, device=DEVICE).to(dtype) for _ in range(4))
            expected = results(lambda q, k, v, c=causal: reference(q, k, v, c), q, k, v, do)
            ours = results(lambda q, k, v, c=causal: attention(q, k, v, c), q, k, v, do)
            torchs = results(
                lambda q, k, v, c=causal: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=c),
                q,
                k,
                v,
                do,
            )
            name = f"{'causal ' * causal}attention, {n} x {d}, {str(dtype).removeprefix('torch.')}"
            theirs = [relative(a, e) for a, e in zip(torchs, expected, strict=True)]
            mine = [relative(a, e) for a, e in zip(ours, expected, strict=True)]
            print(f"{name}: largest relative errors of o, dq, dk, dv", *(f"{error:.1e}" for error in mine), end="; ")
            print("torch's", *(f"{error:.1e}" for error in theirs))
            assert all(a <= 4 * b + 1e-5 for a, b in zip(mine, theirs, strict=True))
            errors[name] = max(mine)
    if HAS_FP8:
        for causal in (False, True):
            q, k, v = in_fp8(*(torch.randn(1, 2, 200, 64, device=DEVICE) for _ in range(3)))
            out, _ = attention_forward(q, k, v, 1 / math.sqrt(64), causal)
            error = relative(out, reference(q.float(), k.float(), v.float(), causal))
            name = f"{'causal ' * causal}attention, 200 x 64, fp8"
            print(f"{name}: largest relative error {error:.1e}")
            assert error < 2**-4  # probabilities have three bits behind the point
            errors[name] = error
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?
#
# The unit is 10¹² operations a second. Forward there are two products of 2·n²·d operations for each head, half of them
# with causal attention; backward there are five, and what is computed twice counts once. On a GPU torch has more
# than one implementation to choose from, and we ask for them by name.

# %%
UNIT, SCALE = ("G", 1e-9) if ON_CPU else ("T", 1e-12)
BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
PROVIDERS = {"triton": "these kernels"}
PROVIDERS |= {"torch": "torch"} if ON_CPU else {"flash": "torch, flash", "cudnn": "torch, cuDNN"}
PROVIDERS |= {"fp8": "these kernels, fp8"} if HAS_FP8 else {}


def torch_attention(provider, q, k, v, causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = sdpa_kernel(getattr(SDPBackend, BACKENDS[provider])) if provider in BACKENDS else contextlib.nullcontext()
    with chosen:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


@triton.testing.perf_report(
    [
        triton.testing.Benchmark(
            x_names=["n"],
            x_vals=[256, 512, 1024, 2048] if ON_CPU else [1024 * 2**i for i in range(5)],
            line_arg="provider",
            line_vals=list(providers),
            line_names=list(providers.values()),
            ylabel=f"{UNIT}FLOP/s",
            plot_name=f"06-attention-{way}{'-causal' * causal}-{d}",
            args={"d": d, "causal": causal, "way": way},
        )
        for d in ((64,) if ON_CPU else (64, 128))
        for way in ("forward", "backward")
        for causal in (False, True)
        for providers in [{key: PROVIDERS[key] for key in PROVIDERS if key != "fp8" or way == "forward"}]
    ]
)
def benchmark(n, d, causal, way, provider):
    batch, heads = (1, 8) if ON_CPU else (max(1, 16384 // n), 2048 // d)
    dtype = torch.float32 if ON_CPU else torch.float16
    q, k, v, do = (torch.randn(batch, heads, n, d, device=DEVICE).to(dtype) for _ in range(4))
    if way == "backward":
        for x in (q, k, v):
            x.requires_grad_()
    if provider == "fp8":
        q, k, v = in_fp8(q, k, v)

    def forward():
        if provider == "fp8":
            return attention_forward(q, k, v, 1 / math.sqrt(d), causal)[0]
        return attention(q, k, v, causal) if provider == "triton" else torch_attention(provider, q, k, v, causal)

    call = forward
    if way == "backward":
        out = forward()
        call = lambda: torch.autograd.grad(out, (q, k, v), do, retain_graph=True)  # noqa: E731
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    products = (2 if way == "forward" else 5) / (2 if causal else 1)
    operations = products * 2 * batch * heads * n * n * d * SCALE
    return tuple(operations / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Let several heads of queries share one head of keys and values, as many language models do. Which line changes in
#   the forward pass, and what has to be added up in the backward pass?
# - Replace the causal mask by a window: a query sees the last 256 keys only. Where do the loops begin then?
# - Add $-c\,|i - j|$ to the scores before the softmax. What does that change in the backward pass?
# - Time other sizes with the autotuner of lesson 3. What is best at d = 64, and at d = 128?
