"""No constant reaches an instruction that widens 8-bit floats: of one that it finds late, ptxas makes garbage.

That instruction is what conversions become, and on sm_90 products by mma.sync. ptxas is late where a load under a
predicate has the constant's register, or a choice or a loop has to be seen through.
"""

import re

import pytest
from gpu_kernels import compile_kernel

import triton
import triton.language as tl

WIDENS = re.compile(r"cvt\.rn\.f16x2\.e[45]m[23]x2|mma\.sync\.\S+\.e[45]m[23]\.")
PASSES_ON = re.compile(r"(mov|prmt|shr|shl|bfe|and|or|xor|selp|cvt\.[us](16|32)\.[us](16|32|8))\b")


def instructions(ptx):
    """Name and operands of each; a list in braces is one operand."""
    for line in ptx.splitlines():
        found = re.fullmatch(r"\s*(?:@!?\S+ )?([a-z][\w.:]*)\s+(.*);", line)
        if found and not found[1].startswith(("ret", "bra", "bar")):
            yield found[1], re.findall(r"\{[^}]*\}|\[[^]]*\]|[^\s,{}[\]]+", found[2])


def registers(operands):
    return re.findall(r"%\w+", " ".join(operands))


def constant_registers(ptx):
    """Those that are given a constant somewhere, or what is made of nothing else."""
    found, before = set(), None
    while len(found) != before:
        before = len(found)
        for name, (to, *sources) in instructions(ptx):
            if name.startswith("selp"):
                is_constant = any(found.issuperset(registers([x])) for x in sources[:2])
            else:
                is_constant = PASSES_ON.match(name) and found.issuperset(registers(sources))
            if is_constant:
                found.update(registers([to]))
    return found


def widened_constants(ptx):
    constants = constant_registers(ptx)
    for name, (_, *sources) in instructions(ptx):
        if WIDENS.match(name):
            operands = registers(sources[:2] if name.startswith("mma") else sources)
            yield from (f"{name} of {x}" for x in operands if x in constants)


@triton.jit
def masked(x_ptr, y_ptr, rows, ROWS: tl.constexpr):
    i, j = tl.arange(0, 2 * ROWS)[:, None], tl.arange(0, 128)[None, :]
    x = tl.load(x_ptr + i * 128 + j, mask=i < rows, other=1)
    tl.store(y_ptr + i * 128 + j, x.to(tl.float32))


@triton.jit
def masked_by_a_constant(x_ptr, y_ptr, rows, ROWS: tl.constexpr):
    masked(x_ptr, y_ptr, ROWS, ROWS)


@triton.jit
def masked_bytes(x_ptr, y_ptr, rows, ROWS: tl.constexpr):
    i, j = tl.arange(0, 2 * ROWS)[:, None], tl.arange(0, 128)[None, :]
    x = tl.load(x_ptr.to(tl.pointer_type(tl.uint8)) + i * 128 + j, mask=i < rows, other=0x38)
    tl.store(y_ptr + i * 128 + j, x.to(x_ptr.dtype.element_ty, bitcast=True).to(tl.float32))


@triton.jit
def chosen(x_ptr, y_ptr, rows, ROWS: tl.constexpr):
    i, j = tl.arange(0, 2 * ROWS)[:, None], tl.arange(0, 128)[None, :]
    x = tl.load(x_ptr + i * 128 + j)
    one = tl.full(x.shape, 1, tl.float32).to(x.dtype)
    tl.store(y_ptr + i * 128 + j, tl.where(i < rows, x, one).to(tl.float32))


@triton.jit
def carried(x_ptr, y_ptr, rows, ROWS: tl.constexpr):
    places = tl.arange(0, 2 * ROWS)[:, None] * 128 + tl.arange(0, 128)[None, :]
    x = tl.full(places.shape, 1, tl.float32).to(x_ptr.dtype.element_ty)
    for k in range(rows):
        tl.store(y_ptr + k * 4096 + places, x.to(tl.float32))
        x = tl.load(x_ptr + k * 4096 + places)


@triton.jit
def short_product(x_ptr, y_ptr, rows, ROWS: tl.constexpr):
    """Its operands are zeros beyond K, and loads of other numbers begin with zeros too."""
    k = tl.arange(0, 16)
    x_places = tl.arange(0, 2 * ROWS)[:, None] * 16 + k[None, :]
    y_places = tl.arange(0, 2 * ROWS)[:, None] * 32 + tl.arange(0, 32)[None, :]
    sums = tl.zeros((2 * ROWS, 32), tl.float32)
    for step in range(rows):
        x = tl.load(x_ptr + step * 512 + x_places)
        y = tl.load(y_ptr + step * 1024 + y_places, mask=y_places < rows, other=0)
        sums = tl.dot(x, tl.trans(x), sums) + y
    tl.store(y_ptr + y_places, sums)


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp8e5"])
@pytest.mark.parametrize(
    "kernel",
    [masked, masked_by_a_constant, masked_bytes, chosen, carried, short_product],
    ids=lambda kernel: kernel.__name__,
)
def test_no_constant_is_widened(kernel, dtype):
    ptx = compile_kernel(kernel, (f"*{dtype}", 16), ("*fp32", 16), ("i32", 16), num_warps=8, ROWS=16).ptx
    assert WIDENS.search(ptx)
    assert list(widened_constants(ptx)) == []
