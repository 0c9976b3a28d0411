"""Kernels for programs without Python."""

import triton
import triton.language as tl


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.arange(0, BLOCK)
    mask = index < columns
    values = tl.load(x + row * columns + index, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + index, powers / tl.sum(powers, axis=0), mask=mask)


@triton.jit
def matmul(c, a, b, m, n, k, stride, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c of m x n is a of m x k times b of k x n; `stride` is that between the elements of a row, 1."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    steps = tl.arange(0, K)
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = (rows[:, None] < m) & (start + steps[None, :] < k)
        right = (start + steps[:, None] < k) & (columns[None, :] < n)
        x = tl.load(a + rows[:, None] * k + (start + steps[None, :]) * stride, mask=left, other=0.0)
        y = tl.load(b + (start + steps[:, None]) * n + columns[None, :] * stride, mask=right, other=0.0)
        sums = tl.dot(x, y, sums, input_precision="ieee")
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :] * stride, sums, mask=inside)


@triton.jit
def checked(x, scale, double, small, stream, half):
    tl.device_assert(scale < 10, "scale is too large")
    tl.store(x, scale * 2)
    tl.store(x + 1, double.to(tl.float32))
    tl.store(x + 2, small.to(tl.float32))
    tl.store(x + 3, stream.to(tl.float32))
    tl.store(x + 4, half.to(tl.float32))


@triton.jit
def prints(x):
    tl.device_print("x", tl.load(x))
