"""The kernels of the tutorials on GPUs: ptxas takes them, everything stays in registers, accesses are wide, and there
are no more barriers than data flow asks for."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from gpu_kernels import assemble, compile_kernel

import triton.language as tl

pytest.importorskip("torch")
TUTORIALS = Path(__file__).parents[2] / "tutorials"
F32, F16, I32 = ("*fp32", 16), ("*fp16", 16), ("*i32", 16)
N, FLOAT = ("i32", 16), ("fp32", 1)


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
    one = tl.constexpr(1)  # the strides of rows that lie in one piece
    entries = [F16, F16, F16, N, N, N, N, one, N, one, N, one]
    constants = {**chosen.kwargs, "ACTIVATION": None}
    compiled = compile_kernel(module.matmul_kernel.fn, *entries, sm=sm, num_warps=chosen.num_warps, **constants)
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)
