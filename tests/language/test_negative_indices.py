"""Quotients and remainders are rounded toward zero, so that groups of neighbours break where indices are negative. What
only a launch's numbers can tell is told at the launch: code that takes whole groups runs where nothing is negative."""

import importlib.util
import random

import numpy as np
import pytest
from harness import Array, Buffer, define

import triton
import triton.language as tl
from triton.compiler import ASTSource

SOURCE = '''
import triton
import triton.language as tl

@triton.jit
def by_divisor(table, out, rows, N: tl.constexpr, GROUP: tl.constexpr):
    """The sign is that of a divisor, as in a product whose rows of tiles go in groups."""
    pid = tl.program_id(0)
    size = min(rows - pid, 5) * 2 - 1
    index = 15 // size * 16 + tl.arange(0, N)
    tl.store(out + (pid * 2) * N + tl.arange(0, N), tl.load(table + 256 + index % GROUP))
    tl.store(out + (pid * 2 + 1) * N + tl.arange(0, N), tl.load(table + 256 + index // GROUP))

@triton.jit
def by_start(table, out, rows, N: tl.constexpr, GROUP: tl.constexpr):
    """The sign is that of a difference, as of rows that are counted from the last one."""
    pid = tl.program_id(0)
    index = (rows - 1 - pid) * 16 + tl.arange(0, N)
    tl.store(out + (pid * 2) * N + tl.arange(0, N), tl.load(table + 256 + index % GROUP))
    tl.store(out + (pid * 2 + 1) * N + tl.arange(0, N), tl.load(table + 256 + index // GROUP))
'''
N = 64


@pytest.fixture
def kernels(tmp_path):
    """Kernels that are not compiled yet, from a new module each time."""
    path = tmp_path / "negative_indices.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("negative_indices", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return {"by_divisor": module.by_divisor, "by_start": module.by_start}

    return load


def expected(name, rows, grid, group):
    pid = np.arange(grid)[:, None]
    if name == "by_divisor":
        sizes = np.minimum(rows - pid, 5) * 2 - 1
        starts = np.trunc(15 / sizes).astype(int) * 16
    else:
        starts = (rows - 1 - pid) * 16
    index = starts + np.arange(N)
    return 256 + np.stack([np.fmod(index, group), np.trunc(index / group).astype(int)], 1).reshape(-1)


def launch(kernel, rows, grid, group):
    """The compiled kernel; what it stored must be right."""
    table = Buffer(Array(np.arange(1024, dtype=np.int32), "int32"))
    out = Buffer(Array(np.zeros(2 * grid * N, np.int32), "int32"))
    compiled = kernel[(grid,)](table.argument, out.argument, rows, N, group)
    name = kernel.fn.__name__
    assert (out.host().values == expected(name, rows, grid, group)).all(), (name, rows, grid, group)
    return compiled


def takes_whole_groups(compiled):
    return "whole" in compiled.asm["ttir"]


@pytest.mark.parametrize("name", ["by_divisor", "by_start"])
@pytest.mark.parametrize("group", [16, 64])
@pytest.mark.parametrize("order", [(4, 7), (7, 4), (7, 4, 7, 4)])
def test_launches_side_by_side(kernels, name, group, order, target):
    """Four rows are enough for four programs; the fifth one divides by a negative number, or starts below zero."""
    kernel = kernels()[name]
    for grid in order:
        compiled = launch(kernel, 4, grid, group)
        if target != "interpret":
            assert takes_whole_groups(compiled) == (grid == 4)
    if target != "interpret":
        assert len(kernel.variants()) == 2


@pytest.mark.parametrize("name", ["by_divisor", "by_start"])
def test_many_launches(kernels, name, target):
    kernel = kernels()[name]
    choose = random.Random(1)
    for _ in range(60):
        rows, grid = choose.choice([2, 3, 4, 5, 9, 12]), choose.randint(1, 14)
        compiled = launch(kernel, rows, grid, 16)
        if target != "interpret":
            assert takes_whole_groups(compiled) == (grid <= rows)


@pytest.mark.parametrize("name", ["by_divisor", "by_start"])
def test_code_from_disk(kernels, name, target, tmp_path, monkeypatch):
    if target == "interpret":
        pytest.skip("nothing is compiled")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TRITON_CACHE_SIZE", raising=False)
    monkeypatch.delenv("TRITON_VERIFY", raising=False)
    for grid, is_there in [(4, False), (7, False), (7, True), (4, True)]:
        compiled = launch(kernels()[name], 4, grid, 16)
        assert compiled.info["cached"] == is_there and takes_whole_groups(compiled) == (grid == 4)
    kernel = kernels()[name]
    for grid in (4, 7):
        compiled = launch(kernel, 4, grid, 16)
        assert compiled.info["cached"] and takes_whole_groups(compiled) == (grid == 4)


@pytest.mark.parametrize("name", ["by_divisor", "by_start"])
def test_warmups_take_for_granted_that_no_divisor_is_negative(kernels, name, target):
    if target == "interpret":
        pytest.skip("nothing is compiled")
    kernel = kernels()[name]
    table = Buffer(Array(np.arange(1024, dtype=np.int32), "int32"))
    compiled = kernel.warmup(table.argument, table.argument, 4, N, 16, grid=(7,))
    assert takes_whole_groups(compiled) == (name == "by_divisor")
    for grid in (7, 4):
        assert takes_whole_groups(launch(kernel, 4, grid, 16)) == (grid == 4)


OTHER_WIDTH = """
@triton.jit
def kernel(table, out, a{}, b):
    r = tl.arange(0, 64)
    index = {} + r
    tl.store(out + r, tl.load(table + 256 + index % 16))
    tl.store(out + 64 + r, tl.load(table + 256 + index // 16))
"""


@pytest.mark.parametrize(
    "annotation, start, a, b",
    [
        ("", "a.to(tl.int32)", 2**32 - 32, 2),
        ("", "a.to(tl.int64)", 2**64 - 32, 2),
        (": tl.uint32", "a.to(tl.int32)", 2**32 - 32, 2),
        (": tl.uint8", "a.to(tl.int8)", 2**8 - 32, 2),
        ("", "(a * b).to(tl.uint32).to(tl.int64) - (65536 + 32)", 65536, 65537),
    ],
)
def test_a_start_that_is_negative_in_another_width(annotation, start, a, b, target):
    """In the one that it came in, it is not."""
    table = Buffer(Array(np.arange(1024, dtype=np.int32), "int32"))
    out = Buffer(Array(np.zeros(128, np.int32), "int32"))
    define(OTHER_WIDTH.format(annotation, start))["kernel"][(1,)](table.argument, out.argument, a, b)
    index = np.arange(64) - 32
    assert (out.host().values == 256 + np.concatenate([np.fmod(index, 16), np.trunc(index / 16)])).all()


@triton.jit
def both(table, out, rows, before, N: tl.constexpr):
    """A start below zero does not take from the other tile what its divisor proves."""
    pid = tl.program_id(0)
    first = 15 // (min(rows - pid, 5) * 2 - 1) * 16 + tl.arange(0, N)
    second = (pid - before) * 16 + tl.arange(0, N)
    tl.store(out + pid * N + tl.arange(0, N), tl.load(table + 256 + first % 16) + tl.load(table + 256 + second % 16))


def test_facts_of_their_own(target):
    table = Buffer(Array(np.arange(1024, dtype=np.int32), "int32"))
    for before, grid, marks in [(0, 4, 2), (1, 4, 1), (0, 7, 1), (1, 7, 0)]:
        out = Buffer(Array(np.zeros(grid * N, np.int32), "int32"))
        compiled = both[(grid,)](table.argument, out.argument, 4, before, N)
        pid, column = np.arange(grid)[:, None], np.arange(N)
        first = np.trunc(15 / (np.minimum(4 - pid, 5) * 2 - 1)).astype(int) * 16 + column
        second = (pid - before) * 16 + column
        assert (out.host().values == (512 + np.fmod(first, 16) + np.fmod(second, 16)).ravel()).all()
        if target != "interpret":
            assert compiled.asm["ttir"].count("whole") == marks


@pytest.mark.host
def test_run_refuses_what_may_be_negative(kernels):
    kernel = kernels()["by_divisor"]
    signature = {"table": "*i32", "out": "*i32", "rows": "i32", "N": "constexpr", "GROUP": "constexpr"}
    compiled = triton.compile(ASTSource(kernel, signature, {"N": N, "GROUP": 16}))
    table, out = np.arange(1024, dtype=np.int32), np.zeros(2 * 4 * N, np.int32)

    def run(rows):
        compiled.run(4, 1, 1, 0, None, None, None, None, None, table, out, rows, N, 16)

    run(4)
    assert (out == expected("by_divisor", 4, 4, 16)).all()
    with pytest.raises(ValueError, match="compiled to divide no negative index, which is not certain for these"):
        run(-4)
