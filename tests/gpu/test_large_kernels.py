"""Large kernels on GPUs. Of thousands of statements: how much work compilers are asked for. Of large tiles: how long
the code is. ptxas takes it."""

import re
import time

import numpy as np
import pytest
from gpu_kernels import assemble, column_sums, compile_ir, compile_kernel, softmax_rows, vector_add

import triton
import triton.language as tl

HEAD = "kernel @f(%p: ptr<i64>, %b: i64) {\n  %zero = constant {value = 0}: i64\n"


def chain(count):
    """%a0, %a1, ...: each from the one before, in a way that nothing simplifies."""
    lines = [HEAD, "  %a0 = load %p: i64\n"]
    for i in range(count):
        lines.append(f"  %c{i} = constant {{value = {2 * i + 3}}}: i64\n  %m{i} = mul %a{i}, %c{i}: i64\n")
        lines.append(f"  %a{i + 1} = xor %m{i}, %b: i64\n")
    return "".join(lines) + f"  store %p, %a{count}\n  return\n}}\n"


@pytest.mark.parametrize("statements, effort", [(1000, 4), (4000, 4), (8000, 1), (16000, 1), (31000, 0)])
def test_effort(statements, effort):
    assert compile_ir(chain(statements), 90, 1).effort == effort


def gather(count):
    """So many loads, from places that a product each says."""
    lines = [HEAD, "  %a0 = load %p: i64\n"]
    for i in range(count):
        lines.append(f"  %c{i} = constant {{value = {3 * i + 5}}}: i64\n  %m{i} = mul %b, %c{i}: i64\n")
        lines.append(f"  %q{i} = addptr %p, %m{i}: ptr<i64>\n  %x{i} = load %q{i}: i64\n")
        lines.append(f"  %a{i + 1} = xor %a{i}, %x{i}: i64\n")
    return "".join(lines) + f"  store %p, %a{count}\n  return\n}}\n"


def test_long_code_is_optimised():
    """ptxas takes ten times as long where it is not."""
    compiled = compile_ir(gather(3000), 90, 1)
    assert compiled.count(r"\bld\.global") == 3001
    assert compiled.count(";") < 3.1 * 3000
    assert assemble(compiled, 90).spills == 0


def test_time_for_long_code_is_linear():
    def seconds(count):
        def once():
            start = time.process_time()
            compile_ir(gather(count), 90, 1)
            return time.process_time() - start

        return min(once() for _ in range(3))

    assert seconds(4000) < 25 * seconds(500)  # 60 times where each sum is compared with all before it


F32, I32 = ("*fp32", 16), ("i32", 16)
LARGE = {
    # kernel, arguments, constants; loops over strips, barriers, at most so many instructions and bytes of arrays
    "elementwise": (vector_add, [F32, F32, F32, I32], {"BLOCK": 1 << 18}, 1, 0, 250, 0),
    "rows in a warp": (softmax_rows, [F32, F32, I32, I32], {"ROWS": 256, "COLS": 512}, 1, 0, 500, 0),
    "long rows": (softmax_rows, [F32, F32, I32, I32], {"ROWS": 1, "COLS": 1 << 17}, 5, 2, 900, 8192),
    "columns": (column_sums, [F32, F32, I32], {"ROWS": 1024, "COLS": 128}, 3, 1, 200, 16),
}


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", LARGE)
def test_large_tiles_are_loops_over_strips(name, sm):
    """Elements of a thread: 256 to 2048. Without strips there would be two or three instructions for each."""
    kernel, arguments, constants, loops, barriers, most, stack = LARGE[name]
    compiled = compile_kernel(kernel, *arguments, sm=sm, **constants)
    assert (compiled.count(r"@%p\d+ bra"), compiled.count(r"\bbar\.sync\b")) == (loops, barriers)
    assert compiled.count(";") <= most
    resources = assemble(compiled, sm)
    assert resources.spills == 0 and resources.registers <= 80 and resources.stack <= stack


@pytest.mark.parametrize("block, strips", [(16384, False), (32768, True)])
def test_tiles_of_128_registers_stay_whole(block, strips):
    compiled = compile_kernel(vector_add, F32, F32, F32, I32, BLOCK=block)
    assert bool(re.search(r"(?m)^strip", compiled.llir)) == strips
    assert compiled.count(r"\bst\.global") == (8 if strips else 32)


@triton.jit
def shared_offsets(a, b, c, n, stride, K: tl.constexpr, DEPTH: tl.constexpr):
    """Offsets that are each used twice by the next one: 2^DEPTH ways lead to the first."""
    i, j, k = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :], tl.arange(0, K)
    acc = tl.zeros((64, 64), tl.float32)
    for step in range(n):
        x, y = (step * K + k)[:, None] * stride, (step + k)[:, None] * stride
        for _ in tl.static_range(DEPTH):
            x, y = x + y, x - y
        acc = tl.dot(tl.load(a + i * K + k[None, :]), tl.load(b + x + y + j), acc)
    tl.store(c + i * 64 + j, acc)


@pytest.mark.parametrize("sm", [80, 90])
def test_offsets_that_many_ways_lead_to(sm):
    arguments = ("*fp16", 16), ("*fp16", 16), F32, I32, I32
    compiled = compile_kernel(shared_offsets, *arguments, sm=sm, K=32, DEPTH=40)
    assert compiled.count(";") < 5000


@triton.jit
def shared_loads_offsets(a, b, n, DEPTH: tl.constexpr):
    total = tl.zeros((128,), tl.float32)
    for k in tl.range(0, n, num_stages=2):
        o = k
        p = k + 1
        for _ in tl.static_range(DEPTH):
            o, p = o + p, o - p
        x = tl.load(a + o + p * 3 + tl.arange(0, 128))
        total += x / tl.sum(x)
    tl.store(b + tl.arange(0, 128), total)


def test_loads_ahead_that_many_ways_lead_to():
    compiled = compile_kernel(shared_loads_offsets, F32, F32, I32, sm=90, DEPTH=60)
    assert compiled.count(";") < 5000


@triton.jit
def two_sums(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    first, second = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for step in range(n):
        x = tl.load(a + i * K + k[None, :] + step * K)
        y = tl.load(b + k[:, None] * N + j + step * K)
        first = tl.dot(x, y, first)
        second = tl.maximum(second, first)
    tl.store(c + i * N + j, first + second)


@pytest.mark.parametrize("sm, columns, strips", [(80, 64, False), (80, 128, True), (90, 128, True)])
def test_sums_that_do_not_fit_the_registers_are_strips(sm, columns, strips):
    """What the loop carries is 256 registers of the only warp, or 512."""
    arguments = ("*fp16", 16), ("*fp16", 16), F32, I32
    compiled = compile_kernel(two_sums, *arguments, sm=sm, num_warps=1, M=64, N=columns, K=32)
    assert bool(re.search(r"(?m)^strip", compiled.llir)) == strips and "wgmma" not in compiled.ptx
    if strips:
        assert compiled.effort == 4 and compiled.count(";") < 3000
        assert assemble(compiled, sm).spills == 0


@triton.jit
def turned_sums(a, b, c, n, K: tl.constexpr):
    i, j, k = tl.arange(0, 128)[:, None], tl.arange(0, 128)[None, :], tl.arange(0, K)
    sums, largest = tl.zeros((128, 128), tl.float32), tl.zeros((128, 128), tl.float32)
    for _ in range(n):
        sums = tl.dot(tl.load(a + i * K + k[None, :]), tl.load(b + k[:, None] * 128 + j), sums)
        largest = tl.maximum(largest, tl.trans(sums))
    tl.store(c + i * 128 + j, sums + largest)


@pytest.mark.parametrize("target, strips", [("sim:80", True), ("sim:75", False)])
def test_strips_are_left_where_shared_memory_does_not_suffice(target, strips, monkeypatch):
    """What strips exchange crosses it, here 64 KiB beside the operands."""
    monkeypatch.setenv("TRITON_TARGET", target)
    a, b = (np.random.default_rng(0).integers(-2, 3, shape).astype(np.float16) for shape in [(128, 32), (32, 128)])
    c = np.zeros((128, 128), np.float32)
    compiled = turned_sums[(1,)](a, b, c, 2, 32, num_warps=1)
    once = a.astype(np.float32) @ b.astype(np.float32)
    assert bool(re.search(r"(?m)^strip", compiled.asm["llir"])) == strips
    np.testing.assert_array_equal(c, 2 * once + np.maximum(0, np.maximum(once.T, 2 * once.T)))


@triton.jit
def sums_by_steps(q_ptr, k_ptr, v_ptr, state_ptr, out_ptr, n, D: tl.constexpr, E: tl.constexpr):
    head, features, columns = tl.program_id(1), tl.arange(0, D), tl.program_id(0) * 32 + tl.arange(0, 32)
    row = n * 2 + head
    q_ptrs, k_ptrs = q_ptr + row * D + features, k_ptr + row * D + features
    v_ptrs, out_ptrs = v_ptr + row * E + columns, out_ptr + row * E + columns
    place = head.to(tl.int64) * D * E + features[:, None] * E + columns[None, :]
    state = tl.load(state_ptr + place)
    for _ in range(0, n):
        q, k = tl.load(q_ptrs).to(tl.float32), tl.load(k_ptrs).to(tl.float32)
        state += k[:, None] * tl.load(v_ptrs).to(tl.float32)[None, :]
        tl.store(out_ptrs, tl.sum(state * q[:, None], 0).to(out_ptr.dtype.element_ty))
        v_ptrs += 2 * E
        out_ptrs += 2 * E


def test_a_shared_offset_that_nothing_follows():
    """The offset of two pointers of a loop is read again from local memory, as the last thing before it is used."""
    halves, floats = ("*bf16", 16), ("*fp32", 16)
    compiled = compile_kernel(
        sums_by_steps, halves, halves, halves, floats, halves, ("i32", 1), num_warps=1, D=128, E=128
    )
    assert assemble(compiled, 90).spills == 0


@triton.jit
def blocks_of_keys(q_ptr, k_ptr, out_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    rows, features = tl.arange(0, 16), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + features[None, :])
    largest = tl.full((16,), float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        keys = tl.make_block_ptr(k_ptr, (D, n), (1, D), (0, start), (D, BLOCK), (0, 1))
        scores = tl.dot(q, tl.load(keys, boundary_check=(0, 1)))
        largest = tl.maximum(largest, tl.max(scores, 1))
    tl.store(out_ptr + rows, largest)


def test_indices_of_64_bits_do_not_make_strips():
    """A warp copies 64 rows of 128; where they lie it finds out for each copy."""
    compiled = compile_kernel(
        blocks_of_keys, ("*fp16", 16), ("*fp16", 16), F32, I32, sm=90, num_warps=1, D=128, BLOCK=64
    )
    assert not re.search(r"(?m)^strip", compiled.llir) and assemble(compiled, 90).spills == 0
