"""One kernel in Triton-C and in Python: the same PTX but for names and places."""

import re

import pytest

import triton
import triton.c
import triton.language as tl
from triton.compiler import ASTSource


def add_c():
    return """
kernel void kernel_(float *x, float *y, float *out, int size) {
    int i[256] = get_global_range(0);
    @(i < size) *(out + i) = *(x + i) + *(y + i);
}"""


@triton.jit
def add_kernel(x, y, out, size):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    mask = i < size
    target = out + i
    tl.store(target, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def softmax_c():
    return """
kernel void kernel_(float *x, float *y, int out, int size) {
    int row = get_program_id(0), i[512] = 0 ... 512;
    float v[512] = i < size ? *(x + row * out + i) : -1e30;
    float e[512] = exp(v - max(v, 0));
    @(i < size) *(y + row * out + i) = e / sum(e, 0);
}"""


@triton.jit
def softmax_kernel(x, y, out, size):
    row, i = tl.program_id(0), tl.arange(0, 512)
    mask = i < size  # C looks at the condition first
    v = tl.load(x + row * out + i, mask=mask, other=-1e30)
    e = tl.exp(v - tl.max(v, axis=0))
    target = y + row * out + i
    tl.store(target, e / tl.sum(e, axis=0), mask=mask)


def matmul_c():
    return """
kernel void kernel_(half *a, half *b, float *c, int k) {
    int m[64] = get_global_range(0), n[64] = get_global_range(1), r[32] = 0 ... 32;
    float C[64, 64] = 0;
    half *pa[64, 32] = a + m[:, newaxis] * k + r, *pb[32, 64] = b + r[:, newaxis] + n * k;
    for (int i = 0; i < k; i += 32) {
        half A[64, 32] = r < k - i ? *pa : 0;
        half B[32, 64] = r[:, newaxis] < k - i ? *pb : 0;
        C = dot(A, B, C);
        pa += 32;
        pb += 32;
    }
    *(c + m[:, newaxis] * 1024 + n) = C;
}"""


@triton.jit
def matmul_kernel(a, b, c, k):
    m = tl.program_id(0) * 64 + tl.arange(0, 64)
    n = tl.program_id(1) * 64 + tl.arange(0, 64)
    r = tl.arange(0, 32)
    total = tl.zeros((64, 64), tl.float32)
    pa, pb = a + m[:, None] * k + r, b + r[:, None] + n * k
    for i in range(0, k, 32):
        x = tl.load(pa, mask=r < k - i, other=0.0)
        y = tl.load(pb, mask=r[:, None] < k - i, other=0.0)
        total = tl.dot(x, y, total)
        pa += 32
        pb += 32
    tl.store(c + m[:, None] * 1024 + n, total)


def branches_c():
    return """
kernel void kernel_(int *x, int *y, int out, int n) {
    int i[128] = 0 ... 128;
    if (n < 0)
        return;
    int v[128] = *(x + i);
    if (n > 10) v = v * 2; else v = v - n;
    for (int j = 0; j < n; j++) v += j;
    *(y + i) = v;
}"""


@triton.jit
def branches_kernel(x, y, out, n):
    i = tl.arange(0, 128)
    if n < 0:
        return
    v = tl.load(x + i)
    if n > 10:  # noqa: SIM108
        v = v * 2
    else:
        v = v - n
    for j in range(n):
        v += j
    tl.store(y + i, v)


CASES = {
    "add": (add_kernel, add_c, ("*fp32", "*fp32", "*fp32", "i32")),
    "softmax": (softmax_kernel, softmax_c, ("*fp32", "*fp32", "i32", "i32")),
    "matmul": (matmul_kernel, matmul_c, ("*fp16", "*fp16", "*fp32", "i32")),
    "branches": (branches_kernel, branches_c, ("*i32", "*i32", "i32", "i32")),
}


def ptx(kernel, types, target):
    signature = dict(zip(kernel.arg_names, types, strict=True))
    attrs = {(number,): [("tt.divisibility", 16)] for number, kind in enumerate(types) if kind.startswith("*")}
    return triton.compile(ASTSource(kernel, signature, attrs=attrs), target).asm["ptx"]


def plain(text, name):
    """The code alone: without places, debugging sections and the name of the kernel."""
    code = text.split("\t.file\t")[0].split(".section")[0].replace(name, "kernel")
    lines = (line.split("//")[0].rstrip() for line in code.splitlines())
    return [line for line in lines if line and not re.match(r"\s*\.loc|\$L__(tmp|func)\w*:", line)]


@pytest.mark.host
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("name", CASES)
def test_the_same_ptx(name, target):
    python, source, types = CASES[name]
    in_c = triton.c.compile(source())
    assert plain(ptx(in_c, types, target), in_c.__name__) == plain(ptx(python, types, target), python.__name__)
