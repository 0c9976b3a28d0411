"""make_block_ptr and advance: bounds checks and padding on every side."""

import itertools

import numpy as np
import pytest
from harness import Array, Buffer, check, jit, random

import triton
import triton.language as tl

X = np.arange(13 * 17, dtype=np.float32).reshape(13, 17) + 1
POINTER = (
    "tl.make_block_ptr(x_ptr, shape=(13, 17), strides=(17, 1), offsets=({}, {}), block_shape=({}, {}), order=(1, 0))"
)


def window(array, row, column, rows, columns, padding=0.0, checked=(0, 1)):
    """The block of an array, with padding where it leaves the array."""
    i, j = np.arange(row, row + rows)[:, None], np.arange(column, column + columns)[None, :]
    inside = np.ones((rows, columns), bool)
    if 0 in checked:
        inside = inside & (i >= 0) & (i < array.shape[0])
    if 1 in checked:
        inside = inside & (j >= 0) & (j < array.shape[1])
    flat = np.clip(i * array.shape[1] + j, 0, array.size - 1)
    return np.where(inside, array.ravel()[flat], np.array(padding, array.dtype))


@pytest.mark.parametrize("block", [(1, 1), (4, 8), (3, 5), (13, 17)])
def test_load_inside(block):
    check(f"tl.load({POINTER.format(0, 0, *block)})", {"x": X}, X[: block[0], : block[1]])


@pytest.mark.parametrize(
    "row, column", [(0, 0), (10, 0), (0, 12), (10, 12), (-2, -3), (13, 0), (0, 17), (50, 50), (-8, 5)]
)
@pytest.mark.parametrize("padding", ["", "zero", "nan"])
def test_boundary_check_and_padding(row, column, padding):
    option = f', padding_option="{padding}"' if padding else ""
    value = np.nan if padding == "nan" else 0.0
    code = f"tl.load({POINTER.format(row, column, 8, 8)}, boundary_check=(0, 1){option})"
    check(code, {"x": X}, window(X, row, column, 8, 8, value))


@pytest.mark.parametrize("checked", [(0,), (1,), (0, 1), (1, 0)])
def test_only_the_named_dimensions_are_checked(checked):
    row, column = (10, 2) if checked == (0,) else (2, 13)
    code = f"tl.load({POINTER.format(row, column, 6, 6)}, boundary_check={checked})"
    check(code, {"x": X}, window(X, row, column, 6, 6, checked=checked))


def test_one_dimension_without_tuples():
    code = "p = tl.make_block_ptr(x_ptr, (n), (1), (n - 13), (8), (0))\nout = tl.load(tl.advance(p, (2)))"
    check(code, {"x": np.arange(20, dtype=np.int32), "n": 20}, np.arange(9, 17, dtype=np.int32))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "float16", "bfloat16", "float64", "int1"])
def test_dtypes(dtype):
    x = random((5, 7), dtype)
    code = "tl.load(tl.make_block_ptr(x_ptr, (5, 7), (7, 1), (1, 2), (8, 8), (1, 0)), boundary_check=(0, 1))"
    check(code, {"x": x}, Array(window(x.values, 1, 2, 8, 8), dtype))


def test_strides_and_orders():
    check("tl.load(tl.make_block_ptr(x_ptr, (17, 13), (1, 17), (2, 3), (4, 5), (0, 1)))", {"x": X}, X.T[2:6, 3:8])
    check("tl.load(tl.make_block_ptr(x_ptr, (7, 17), (34, 1), (0, 0), (7, 8), (1, 0)))", {"x": X}, X[::2, :8])


def test_rank_1_and_3():
    x = np.arange(60, dtype=np.int32)
    code = "tl.load(tl.make_block_ptr(x_ptr, (60,), (1,), (55,), (16,), (0,)), boundary_check=(0,))"
    check(code, {"x": x}, np.concatenate([x[55:], np.zeros(11, np.int32)]))
    code = """
        block = tl.make_block_ptr(x_ptr, (3, 4, 5), (20, 5, 1), (1, 2, 3), (2, 2, 2), (2, 1, 0))
        out = tl.load(block, boundary_check=(0, 1, 2))
    """
    check(code, {"x": x}, x.reshape(3, 4, 5)[1:3, 2:4, 3:5])


def test_run_time_shapes_and_offsets():
    code = "tl.load(tl.make_block_ptr(x_ptr, (m, n), (n, 1), (r, c), (4, 4), (1, 0)), boundary_check=(0, 1))"
    for r, c in itertools.product([0, 11], [0, 15]):
        check(code, {"x": X, "m": 13, "n": 17, "r": r, "c": c}, window(X, r, c, 4, 4))


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_advance(steps):
    code = f"""
        block = {POINTER.format(1, 0, 3, 4)}
        for k in range({steps}):
            block = tl.advance(block, (2, 3))
        out = tl.load(block, boundary_check=(0, 1))
    """
    check(code, {"x": X}, window(X, 1 + 2 * steps, 3 * steps, 3, 4))
    check(
        code.replace("tl.advance(block, (2, 3))", "block.advance((2, 3))"),
        {"x": X},
        window(X, 1 + 2 * steps, 3 * steps, 3, 4),
    )


def test_advance_by_a_run_time_step():
    code = f"block = tl.advance({POINTER.format(0, 0, 4, 4)}, (n, -n))\nout = tl.load(block, boundary_check=(0, 1))"
    check(code, {"x": X, "n": 3}, window(X, 3, -3, 4, 4))


STORE = jit("""
    def kernel(out, m, n, row, column, R: tl.constexpr, C: tl.constexpr):
        block = tl.make_block_ptr(out, (m, n), (n, 1), (row, column), (R, C), (1, 0))
        value = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :] + 1
        tl.store(block, value.to(tl.float32), boundary_check=(0, 1))
""")


@pytest.mark.parametrize("row, column", [(0, 0), (9, 0), (0, 12), (9, 12), (-2, -3), (13, 17), (40, 0)])
@pytest.mark.parametrize("rows, columns", [(8, 8), (5, 6)])
def test_store_keeps_inside(row, column, rows, columns):
    out = Buffer(np.zeros((13, 17), np.float32))
    STORE[(1,)](out.argument, 13, 17, row, column, rows, columns)
    expected = np.zeros((13, 17), np.float32)
    for i, j in itertools.product(range(rows), range(columns)):
        if 0 <= row + i < 13 and 0 <= column + j < 17:
            expected[row + i, column + j] = i * columns + j + 1
    assert (out.host().values == expected).all()


def test_a_tiled_copy():
    kernel = jit("""
        def kernel(x, out, m, n, R: tl.constexpr, C: tl.constexpr):
            offsets = (tl.program_id(0) * R, tl.program_id(1) * C)
            source = tl.make_block_ptr(x, (m, n), (n, 1), offsets, (R, C), (1, 0))
            target = tl.make_block_ptr(out, (m, n), (n, 1), offsets, (R, C), (1, 0))
            tl.store(target, tl.load(source, boundary_check=(0, 1)), boundary_check=(0, 1))
    """)
    for rows, columns in [(4, 4), (16, 16), (3, 7)]:
        out = Buffer(np.zeros_like(X))
        kernel[(-(-13 // rows), -(-17 // columns))](Buffer(X).argument, out.argument, 13, 17, rows, columns)
        assert (out.host().values == X).all()


def test_passes_through_a_function():
    source = """
        @triton.jit
        def row(block, K: tl.constexpr):
            return tl.load(tl.advance(block, (K, 0)), boundary_check=(0, 1))

        @triton.jit
        def kernel(x, out):
            block = tl.make_block_ptr(x, (13, 17), (17, 1), (0, 0), (1, 17), (1, 0))
            tl.store(out + tl.arange(0, 17)[None, :], row(block, 5) + row(block, 7))
    """
    out = Buffer(np.zeros(17, np.float32))
    jit(source)[(1,)](Buffer(X).argument, out.argument)
    assert (out.host().values == X[5] + X[7]).all()


@triton.jit
def halve(x_ptr, y_ptr, N: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (N,), (1,), (0,), (N,), (0,))
    y = tl.make_block_ptr(y_ptr, (N,), (1,), (0,), (N,), (0,))
    tl.store(y, (tl.load(x) / 2).to(y.dtype.element_ty))  # of tiles, whose elements are meant


def test_type_of_what_a_block_pointer_points_to():
    x, y = Buffer(np.arange(8, dtype=np.float32)), Buffer(np.zeros(8, np.float16))
    halve[(1,)](x.argument, y.argument, 8)
    assert (y.host().values == np.arange(8) / 2).all()


def test_methods():
    """A block pointer is loaded from, stored to and moved as other pointers are."""
    kernel = jit("""
        def kernel(x, out):
            source = tl.make_block_ptr(x, (8,), (1,), (0,), (4,), (0,)).advance((4,))
            target = tl.make_block_ptr(out, (6,), (1,), (0,), (4,), (0,)).advance((4,))
            target.store(source.load(), boundary_check=(0,))
    """)
    out = Buffer(np.full(8, -1, np.int32))
    kernel[(1,)](Buffer(np.arange(8, dtype=np.int32)).argument, out.argument)
    assert out.host().values.tolist() == [-1, -1, -1, -1, 4, 5, -1, -1]


@pytest.mark.host
def test_methods_are_there_to_be_asked_for():
    """The public API's block pointers are tensors."""
    assert tl.tensor.advance is tl.advance and tl.tensor.store is tl.store
    block_pointer = tl.core.block_pointer
    assert (block_pointer.load, block_pointer.store, block_pointer.advance) == (tl.load, tl.store, tl.advance)
