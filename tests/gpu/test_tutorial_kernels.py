"""The kernels of the tutorials on GPUs: ptxas takes them, everything stays in registers, accesses are wide, and there
are no more barriers than data flow asks for."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from gpu_kernels import assemble, compile_ir, compile_kernel, ir

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

pytest.importorskip("torch")
TUTORIALS = Path(__file__).parents[2] / "tutorials"
F32, F16, BF16, FP8, I32 = (("*" + name, 16) for name in ("fp32", "fp16", "bf16", "fp8e4nv", "i32"))
N, FLOAT, ONE = ("i32", 16), ("fp32", 1), tl.constexpr(1)


def tutorial(number):
    (path,) = TUTORIALS.glob(f"{number}_*.py")
    sys.path.insert(0, str(TUTORIALS))
    try:
        return importlib.import_module(path.stem)
    finally:
        sys.path.remove(str(TUTORIALS))


def softmax_rows(block):
    return "02", "softmax_row_kernel", [F32, F32, N, N, N], {"BLOCK_SIZE": block}


def softmax(block):
    return "02", "softmax_kernel", [F32, F32, N, N, N, N], {"BLOCK_SIZE": block, "STAGES": 4}


def layer_norm(block):
    return "05", "forward_kernel", [F16, F32, F32, F16, F16, F16, N, FLOAT], {"BLOCK_SIZE": block}


def layer_norm_backward(block, locked):
    entries = [F16, F32, F32, I32, F16, F16, F16, F32, F32, N, N]
    return "05", "backward_kernel", entries, {"LOCKED": locked, "BLOCK_SIZE": block}


# name: tutorial, kernel, arguments, constants; warps, barriers
CASES = {
    "vector add": (("01", "add_kernel", [F32, F32, F32, N], {"BLOCK_SIZE": 1024}), 4, 0),
    "softmax of 1024, a row a program": (softmax_rows(1024), 4, 2),
    "softmax of 8192, a row a program": (softmax_rows(8192), 8, 2),
    "softmax of 1024": (softmax(1024), 8, 2),
    "softmax of 8192": (softmax(8192), 8, 2),
    "dropout": (("04", "dropout_kernel", [F32, F32, N, FLOAT, N], {"BLOCK_SIZE": 1024}), 4, 0),
    "layer norm of 1024": (layer_norm(1024), 4, 2),
    "layer norm of 8192": (layer_norm(8192), 8, 2),
    "backward with atomics": (layer_norm_backward(1024, False), 4, 2),
    "backward with a lock": (layer_norm_backward(1024, True), 4, None),
}


@pytest.mark.parametrize("sm", [75, 80, 90])
@pytest.mark.parametrize("name", CASES)
def test_in_registers(name, sm):
    (number, kernel, entries, constants), warps, barriers = CASES[name]
    compiled = compile_kernel(getattr(tutorial(number), kernel), *entries, sm=sm, num_warps=warps, **constants)
    if barriers is not None:
        assert compiled.count(r"\bbar\.sync\b") == barriers
    if "backward" not in name:
        narrow = [line for line in re.findall(r"\b(?:ld|st)\.global\S*", compiled.ptx) if "v4" not in line]
        assert len(narrow) <= 2, narrow  # means and deviations of rows
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("config", range(7))
def test_matrix_product(config, sm, monkeypatch):
    module = tutorial("03")
    monkeypatch.setattr(module, "ON_CPU", False)
    chosen = module.configurations()[config]
    entries = [F16, F16, F16, N, N, N, N, ONE, N, ONE, N, ONE]  # rows that lie in one piece
    text = ir(module.matmul_kernel.fn, *entries, ACTIVATION=None, **chosen.kwargs)
    compiled = compile_ir(text, sm, chosen.num_warps, num_stages=chosen.num_stages, pipeline=True)
    assert compiled.count(r"\bwgmma\.mma_async" if sm == 90 else r"\bmma\.sync")
    assert compiled.count(r"\bcp\.async\.cg") == compiled.count(r"\bcp\.async\.c[ag]")  # 16 bytes each
    assert not compiled.count(r"\bld\.global\b")
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)


def test_matrix_product_of_rows_that_begin_anywhere():
    """Elements come one by one through registers, and sums leave too few to keep those of the next step there."""
    any_number = ("i32", 1)
    entries = [F16, F16, F16, *[any_number] * 4, ONE, any_number, ONE, any_number, ONE]
    sizes = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    text = ir(tutorial("03").matmul_kernel.fn, *entries, ACTIVATION=None, **sizes)
    compiled = compile_ir(text, 90, 4, num_stages=3, pipeline=True)
    (loop,) = re.findall(r" = for .*?^  \}", compiled.ttgir, re.MULTILINE | re.DOTALL)
    assert loop.count(" load ") == 2 and "xf16" not in loop.partition("{ ^(")[0]
    assert assemble(compiled, 90).spills < 300  # of 950, of which 118 were read back in each step


@triton.jit
def product_of_rows_that_wrap(a, b, c, n, stride, SIZE: tl.constexpr, STEP: tl.constexpr):
    rows = (tl.program_id(0) * SIZE + tl.arange(0, SIZE)) % n
    columns = (tl.program_id(1) * SIZE + tl.arange(0, SIZE)) % n
    step, sums = tl.arange(0, STEP), tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, n, STEP):
        x = tl.load(a + rows[:, None] * stride + start + step[None, :], step[None, :] < n - start, other=0)
        y = tl.load(b + (start + step[:, None]) * stride + columns[None, :], step[:, None] < n - start, other=0)
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * stride + columns[None, :], sums.to(tl.float16))


def test_columns_are_spread_behind_their_conversion():
    """As one row they take 8 registers of a thread, and as a tile that comes out of shared memory 64."""
    any_number = ("i32", 1)
    text = ir(product_of_rows_that_wrap, F16, F16, F16, any_number, any_number, SIZE=128, STEP=64)
    compiled = compile_ir(text, 90, 4, num_stages=3, pipeline=True)
    converted = re.findall(r"= convert_layout .*: tile<(\d+)x128xi32>", compiled.ttgir)
    assert converted and set(converted) == {"1"}
    assert assemble(compiled, 90).spills < 300


def attention(kernel, type, sm, d, causal, monkeypatch):
    """A kernel of the lesson with the sizes that it has on such a GPU."""
    module = tutorial("06")
    monkeypatch.setattr(module, "ON_CPU", False)
    monkeypatch.setattr(module, "TARGET", GPUTarget("cuda", sm, 32))
    by_kernel = {"keys_kernel": module.sizes_by_keys, "forward_kernel": module.sizes_forward}
    sizes = by_kernel.get(kernel, module.sizes_by_queries)(d)
    strides = (ONE, N) if type is FP8 else (N, ONE)
    out = F16 if type is FP8 else type
    entries = {
        "forward_kernel": [out, F32, type, type, type, N, *strides, FLOAT],
        "keys_kernel": [type, type, type, type, type, type, F32, F32, N, FLOAT],
        "queries_kernel": [type, type, type, type, type, F32, F32, N, FLOAT],
    }[kernel]
    warps, stages = sizes.pop("num_warps"), sizes.pop("num_stages")
    text = ir(getattr(module, kernel), *entries, D=d, CAUSAL=causal, **sizes)
    return compile_ir(text, sm, warps, num_stages=stages, pipeline=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize(
    "kernel, type, sm",
    [
        (kernel, type, sm)
        for type, sm in ((F16, 80), (BF16, 80), (F16, 86), (F16, 90), (BF16, 90))
        for kernel in ("forward_kernel", "keys_kernel", "queries_kernel")
    ]
    + [("forward_kernel", FP8, sm) for sm in (89, 90)],
    ids=lambda value: value[0][1:] if isinstance(value, tuple) else str(value),
)
def test_attention(kernel, type, sm, d, causal, monkeypatch):
    """Products on tensor cores, of tiles that are copied ahead and, on sm_90 in 16 bits, of what is in registers and
    stays there; and nothing spills."""
    compiled = attention(kernel, type, sm, d, causal, monkeypatch)
    on_tensor_cores = compiled.count(r"\bwgmma\.mma_async") if sm == 90 else compiled.count(r"\bmma\.sync")
    assert on_tensor_cores and compiled.count(r"\bcp\.async\.c[ag]")
    assert not compiled.count(r"\bfma\.rn\.bf?16") and not compiled.count(r"\bmma\.sync" if sm == 90 else "wgmma")
    loops = re.findall(r" = for .*?^  \}", compiled.ttgir, re.MULTILINE | re.DOTALL)
    assert len(loops) == (1 if kernel == "keys_kernel" and not causal else 2)
    if type is not FP8:  # each loop has all of the memory that the one before had
        assert not any(re.search(r"\bload\b", loop) for loop in loops)
    if type is not FP8 and sm == 90:
        assert not any("convert_layout" in loop for loop in loops)
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)


def test_delta_of_attention():
    kernel = tutorial("06").delta_kernel
    compiled = compile_kernel(kernel, F32, F16, F16, N, sm=90, D=128, BLOCK=64)
    assert all("v4" in line for line in re.findall(r"\bld\.global\S*", compiled.ptx))
    used = assemble(compiled, 90)
    assert (used.stack, used.spills) == (0, 0)
