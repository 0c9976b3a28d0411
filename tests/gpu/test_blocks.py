"""Blocks of arrays that a GPU of compute capability 9.0 copies by one instruction, in the simulator: what products read
through descriptors and block pointers."""

import numpy as np
import pytest
from block_products import expected_product, product, window
from gpu_kernels import assemble, compile_ir, ir
from synchronised import Case

import triton
import triton.language as tl


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("TRITON_TARGET", "sim:90")


def numbers(*shape, dtype=np.float16):
    return np.random.default_rng(shape).integers(-4, 5, shape).astype(dtype)


def launch_product(m, n, k, tile, place=(0, 0, 0), turned=True, dtype=np.float16, warps=4, stages=3):
    a, b = numbers(m, k, dtype=dtype), numbers(n, k, dtype=dtype)
    out = np.zeros(tile[:2], np.int32 if dtype == np.int8 else np.float32)
    given = b if turned else np.ascontiguousarray(b.T)
    arguments = a, given, out, m, n, k, *place, *tile, turned, "descriptor"
    kernel = product[(1,)](*arguments, num_warps=warps, num_stages=stages)
    np.testing.assert_array_equal(out, expected_product(a, b, tile, place))
    return kernel.asm["ttgir"]


def copies_blocks(*args, **options):
    return "tensor_copy" in launch_product(*args, **options)


@pytest.mark.parametrize(
    "m, n, k, tile, place, turned",
    [
        (64, 64, 256, (64, 64, 64), (0, 0, 0), True),
        (100, 72, 208, (64, 32, 64), (64, 64, 0), True),  # beyond the edges of all dimensions
        (100, 72, 208, (64, 64, 32), (-24, -7, -40), True),  # and in front of them
        (70, 80, 80, (64, 128, 16), (0, -16, -8), False),
        (64, 256, 64, (64, 256, 128), (0, 0, 0), False),  # in panels
        (128, 64, 48, (128, 64, 128), (1, 3, 0), True),
    ],
)
@pytest.mark.parametrize("seed", ["0", "7"])
def test_products(m, n, k, tile, place, turned, seed, monkeypatch):
    monkeypatch.setenv("TRITON_SIM_SEED", seed)
    assert copies_blocks(m, n, k, tile, place, turned)


def test_more_warps_and_bytes():
    assert copies_blocks(128, 128, 256, (128, 128, 64), warps=8)
    assert copies_blocks(64, 64, 256, (64, 64, 128), dtype=np.int8, stages=4)


def test_what_is_not_copied_as_a_block():
    assert not copies_blocks(64, 64, 64, (32, 64, 64))  # no tile for warpgroups
    assert not copies_blocks(64, 64, 68, (64, 64, 64))  # rows that begin within 16 bytes
    assert copies_blocks(64, 64, 72, (64, 64, 64))
    assert not copies_blocks(64, 64, 64, (64, 64, 64), stages=1)
    assert not copies_blocks(128, 128, 512, (128, 128, 256), stages=2)  # no memory for a second block


@pytest.mark.parametrize(
    "tile, dtype, warps",
    [
        ((128, 16, 128), np.float16, 2),  # no warpgroup
        ((128, 64, 16), np.int8, 16),  # steps shorter than those of its products
    ],
)
def test_what_is_not_is_copied_ahead_all_the_same(tile, dtype, warps):
    text = launch_product(128, 64, 256, tile, dtype=dtype, warps=warps, turned=dtype == np.int8)
    assert "tensor_copy" not in text and "async_copy" in text and " = load " not in text


@triton.jit
def of_nothing(a_ptr, out_ptr, m, k, steps, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [ROWS, DEPTH])
    sums = tl.zeros((ROWS, ROWS), tl.float32)
    for step in range(steps):
        x = a.load([0, step * DEPTH])
        sums = tl.dot(x, x.T, sums)
    rows = tl.arange(0, ROWS)
    tl.store(out_ptr + rows[:, None] * ROWS + rows[None, :], sums)


def test_an_array_without_rows_has_other_code():
    a, out = numbers(64, 128), np.ones((64, 64), np.float32)
    filled = of_nothing[(1,)](a, out, 64, 128, 2, 64, 64)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ a.T.astype(np.float32))
    empty = of_nothing[(1,)](a, out, 0, 128, 2, 64, 64)
    np.testing.assert_array_equal(out, 0)
    assert "tensor_copy" in filled.asm["ttgir"] and "tensor_copy" not in empty.asm["ttgir"]


@triton.jit
def of_known_extents(a_ptr, out_ptr, steps, M: tl.constexpr, DEPTH: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, 2 * DEPTH], [2 * DEPTH, 1], [64, DEPTH])
    sums = tl.zeros((64, 64), tl.float32)
    for step in range(steps):
        x = a.load([0, step * DEPTH])
        sums = tl.dot(x, x.T, sums)
    rows = tl.arange(0, 64)
    tl.store(out_ptr + rows[:, None] * 64 + rows[None, :], sums)


def test_extents_that_are_constants():
    a, out = numbers(64, 128), np.ones((64, 64), np.float32)
    for rows, copies in ((64, True), (40, True), (0, False), (-1, False)):
        kernel = of_known_extents[(1,)](a, out, 2, rows, 64)
        seen = window(a[: max(rows, 0)], 0, 0, 64, 128)
        np.testing.assert_array_equal(out, seen @ seen.T)
        assert ("tensor_copy" in kernel.asm["ttgir"]) == copies


@triton.jit
def tiles_in_turn(a_ptr, b_ptr, out_ptr, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """One program for all tiles; the barriers begin again with each."""
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [ROWS, DEPTH])
    b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [COLUMNS, DEPTH])
    out = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [ROWS, COLUMNS])
    for tile in range(tl.cdiv(m, ROWS) * tl.cdiv(n, COLUMNS)):
        row, column = tile % tl.cdiv(m, ROWS) * ROWS, tile // tl.cdiv(m, ROWS) * COLUMNS
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, k, DEPTH):
            sums = tl.dot(a.load([row, start]), b.load([column, start]).T, sums)
        out.store([row, column], sums)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    keys = tl.make_tensor_descriptor(k_ptr, [n, D], [D, 1], [KEYS, D])
    values = tl.make_block_ptr(v_ptr, (n, D), (D, 1), (0, 0), (KEYS, D), (1, 0))
    q = tl.load(q_ptr + rows[:, None] * D + columns[None, :])
    most = tl.full((ROWS,), -1e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, D), tl.float32)
    for start in range(0, n, KEYS):
        scores = tl.dot(q, keys.load([start, 0]).T)
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        shrink = tl.exp(most - larger)
        total = total * shrink + tl.sum(weights, 1)
        value = tl.load(values, boundary_check=(0, 1), padding_option="zero")
        sums = tl.dot(weights.to(tl.float16), value, sums * shrink[:, None])
        values = tl.advance(values, (KEYS, 0))
        most = larger
    tl.store(out_ptr + rows[:, None] * D + columns[None, :], sums / total[:, None])


@triton.jit
def attention_of_heads(
    q_ptr, k_ptr, v_ptr, out_ptr, head, row, n, heads, CHECKED: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """By block pointers to the arrays of a head, keys turned as they are made."""
    batch, inner = tl.program_id(1) // heads, tl.program_id(1) % heads
    base = batch.to(tl.int64) * heads * head + inner.to(tl.int64) * head
    queries = tl.make_block_ptr(q_ptr + base, (n, D), (row, 1), (tl.program_id(0) * ROWS, 0), (ROWS, D), (1, 0))
    out = tl.make_block_ptr(out_ptr + base, (n, D), (row, 1), (tl.program_id(0) * ROWS, 0), (ROWS, D), (1, 0))
    keys = tl.make_block_ptr(k_ptr + base, (D, n), (1, row), (0, 0), (D, KEYS), (0, 1))
    values = tl.make_block_ptr(v_ptr + base, (n, D), (row, 1), (0, 0), (KEYS, D), (1, 0))
    q = tl.load(queries)
    total, sums = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS, D), tl.float32)
    for _ in range(0, n, KEYS):
        weights = tl.exp(tl.dot(q, tl.load(keys, boundary_check=CHECKED)))
        total += tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), tl.load(values, boundary_check=CHECKED), sums)
        keys, values = tl.advance(keys, (0, KEYS)), tl.advance(values, (KEYS, 0))
    tl.store(out, sums / total[:, None])


def launch_heads(checked, keys=128, heads=3, n=384, rows=64):
    q, k, v = (numbers(2, heads, n, 64) / 16 for _ in range(3))
    scores = np.exp(q.astype(np.float32) @ k.astype(np.float32).swapaxes(2, 3))
    expected = scores / scores.sum(-1, keepdims=True) @ v.astype(np.float32)
    out = np.zeros(q.shape, np.float32)
    arrays = [x.astype(np.float16) for x in (q, k, v)]
    grid = n // rows, 2 * heads
    kernel = attention_of_heads[grid](*arrays, out, n * 64, 64, n, heads, checked, 64, rows, keys)
    np.testing.assert_allclose(out, expected, rtol=1e-2, atol=1e-2)
    return kernel.asm["ttgir"].count("tensor_copy")


@pytest.mark.parametrize("checked", [(), (0,), (1,), (0, 1)])
def test_arrays_behind_a_parameter(checked):
    assert launch_heads(checked) == 6


def test_a_warpgroup_with_little_to_copy_does_so_while_it_multiplies():
    """Not where that costs registers which another program could have: of 64 rows."""
    assert launch_heads((), keys=64, rows=128) == 0
    assert launch_heads((), keys=64) == 6


def test_code_for_launches_with_tensor_maps():
    array, number = ("*fp16", 16), ("i32", 16)
    entries = [array, array, array, ("*fp32", 16), number, number, number, ("i32", 1)]
    text = ir(attention_of_heads, *entries, CHECKED=(), D=64, ROWS=64, KEYS=128)
    compiled = compile_ir(text, 90, 4, pipeline=True, maps=True)
    assert compiled.count(r"cp\.async\.bulk\.tensor\.3d") == 6
    assemble(compiled, 90)
    text = ir(attention, array, array, array, ("*fp32", 16), number, D=64, ROWS=64, KEYS=128)
    compiled = compile_ir(text, 90, 4, pipeline=True, maps=True)
    assert compiled.count(r"cp\.async\.bulk\.tensor\.2d") == 6
    assemble(compiled, 90)


@triton.jit
def of_windows(
    a_ptr, out_ptr, front, row, deep, k, steps, CHECKED: tl.constexpr, TURNED: tl.constexpr, ROWS: tl.constexpr
):
    if TURNED:
        block = tl.make_block_ptr(a_ptr + front, (k, 64), (1, row), (deep, 0), (32, ROWS), (0, 1))
    else:
        block = tl.make_block_ptr(a_ptr + front, (64, k), (row, 1), (0, deep), (ROWS, 32), (1, 0))
    sums = tl.zeros((ROWS, ROWS), tl.float32)
    for _ in range(steps):
        x = tl.load(block, boundary_check=CHECKED, padding_option="zero" if CHECKED else "")
        x = x.T if TURNED else x
        sums = tl.dot(x, x.T, sums)
        block = tl.advance(block, (32, 0) if TURNED else (0, 32))
    rows = tl.arange(0, ROWS)
    tl.store(out_ptr + rows[:, None] * ROWS + rows[None, :], sums)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "passed, front, row, deep, checked, copies",
    [
        (0, 0, 128, 0, True, True),
        (0, 128 * 8, 128, 0, True, True),
        (0, 128 * 8 + 32, 128, 32, False, True),
        (0, 128 * 8 + 4, 128, 0, False, False),  # begins within 16 bytes
        (16, -128 * 8, 128, 0, True, False),  # in front of what is passed
        (16, 0, 128, -32, False, False),  # in front of the array, where nobody checks
        (16, 0, 128, -32, True, True),
        (0, 0, 124, 0, False, False),  # rows begin within 16 bytes
    ],
)
def test_windows_behind_a_parameter(passed, front, row, deep, checked, copies, turned):
    """Rows of the array that is passed are 128 elements, and there are enough of them around the window."""
    whole, out = numbers(96, 128), np.zeros((64, 64), np.float32)
    steps, k = 3, 96 - 8
    kernel = of_windows[(1,)](
        whole[passed:], out, front, row, deep, k, steps, ((0 if turned else 1),) if checked else (), turned, 64
    )
    flat, expected = whole.reshape(-1).astype(np.float32), np.zeros((64, 64))
    for step in range(steps):
        j = deep + 32 * step + np.arange(32)
        x = flat[passed * 128 + front + np.arange(64)[:, None] * row + j]
        x = np.where((j >= 0) & (j < k), x, 0) if checked else x
        expected += x @ x.T
    np.testing.assert_array_equal(out, expected)
    assert ("tensor_copy" in kernel.asm["ttgir"]) == copies


@triton.jit
def of_batches(
    a_ptr, b_ptr, out_ptr, batches, m, n, k, first,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Descriptors of three and four dimensions; batches that there are not are zeros."""
    a = tl.make_tensor_descriptor(a_ptr, [batches, m, k], [m * k, k, 1], [1, ROWS, DEPTH])
    b = tl.make_tensor_descriptor(b_ptr, [1, batches, n, k], [batches * n * k, n * k, k, 1], [1, 1, COLUMNS, DEPTH])
    batch = tl.program_id(0) + first
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        x = a.load([batch, 0, start]).reshape(ROWS, DEPTH)
        y = b.load([0, batch, 0, start]).reshape(COLUMNS, DEPTH)
        sums = tl.dot(x, y.T, sums)
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tl.store(out_ptr + (tl.program_id(0) * ROWS + rows[:, None]) * COLUMNS + columns[None, :], sums)


@pytest.mark.parametrize("first", [0, -2, 1])
@pytest.mark.parametrize("m, n, k", [(64, 64, 192), (40, 70, 200)])
def test_more_dimensions(m, n, k, first):
    a, b, out = numbers(3, m, k), numbers(3, n, k), np.ones((4, 64, 64), np.float32)
    kernel = of_batches[(4,)](a, b, out, 3, m, n, k, first, 64, 64, 64)
    for i in range(4):
        batch, expected = i + first, np.zeros((64, 64))
        if 0 <= batch < 3:
            size = min(m, 64), min(n, 64)
            expected[: size[0], : size[1]] = (a[batch].astype(np.float32) @ b[batch].T.astype(np.float32))[:64, :64]
        np.testing.assert_array_equal(out[i], expected)
    assert kernel.asm["ttgir"].count("tensor_copy") == (6 if first >= 0 else 0)  # launches do not prove places in front


def case_of_tiles():
    a, b = numbers(128, 128), numbers(64, 128)
    expected = a.astype(np.float32) @ b.T.astype(np.float32)
    return tiles_in_turn, (a, b, np.zeros((128, 64), np.float32), 128, 64, 128), (64, 64, 64), (1,), expected


def case_of_attention():
    q, k, v = (numbers(384, 64) / 8 for _ in range(3))
    scores = q.astype(np.float32) @ k.T.astype(np.float32)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float32)
    out = np.zeros((384, 64), np.float32)
    return attention, (*(x.astype(np.float16) for x in (q, k, v)), out, 384), (64, 128, 128), (3,), expected


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("make", [case_of_tiles, case_of_attention])
def test_each_synchronisation_is_needed(make, warps):
    """Waits for blocks among them; with eight warps attention's warpgroups take turns."""
    kernel, arguments, constants, grid, expected = make()
    place = next(i for i, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.dtype == np.float32)
    compiled = kernel[grid](*arguments, *constants, num_warps=warps, num_stages=3)
    np.testing.assert_allclose(arguments[place], expected, rtol=1e-2, atol=1e-2)
    assert compiled.asm["ttgir"].count("tensor_copy") >= 4
    case = Case.of_text(compiled.asm["ttir"], arguments, {place: expected}, (*grid, 1, 1)[:3], within=1e-2)
    case.check_each(warps, 90)


@triton.jit
def weighted_values(q, k, v, out, lengths, SIZE: tl.constexpr):
    """(q k') v over a sequence whose length is loaded."""
    length, lines = tl.load(lengths), tl.arange(0, SIZE)
    keys = tl.make_block_ptr(k, (SIZE, length), (1, SIZE), (0, 0), (SIZE, SIZE), (0, 1))
    values = tl.make_block_ptr(v, (length, SIZE), (SIZE, 1), (0, 0), (SIZE, SIZE), (1, 0))
    queries = tl.load(q + lines[:, None] * SIZE + lines[None, :])
    sums = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, length, SIZE):
        scores = tl.dot(queries, tl.load(keys, boundary_check=(1,), padding_option="zero"))
        sums = tl.dot(scores.to(tl.float16), tl.load(values, boundary_check=(0,), padding_option="zero"), sums)
        keys, values = tl.advance(keys, (0, SIZE)), tl.advance(values, (SIZE, 0))
    tl.store(out + lines[:, None] * SIZE + lines[None, :], sums)


def test_blocks_of_loaded_extents_are_copied_row_by_row():
    """The launch can make no tensor map of them: both operands go by asynchronous copies, as without maps."""
    q, k, v = numbers(64, 64), numbers(150, 64), numbers(150, 64)
    out = np.zeros((64, 64), np.float32)
    kernel = weighted_values[(1,)](q, k, v, out, np.array([150], np.int32), 64, num_warps=4, num_stages=3)
    np.testing.assert_array_equal(out, (q.astype(np.float32) @ k.T.astype(np.float32)) @ v.astype(np.float32))
    loop = kernel.asm["ttgir"].split("= for ")[1]
    assert loop.count("async_copy") == 2
    assert "smem_store" not in loop and "tensor_copy" not in loop
