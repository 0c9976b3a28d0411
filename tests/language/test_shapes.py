"""Operations that move elements and compute nothing."""

import itertools

import numpy as np
import pytest
from harness import FP8, NUMBERS, Array, check, random

ALL = ["int1", *NUMBERS, *FP8]


def numbered(shape, dtype=np.int32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


RESHAPES = [
    ((1,), (1, 1)), ((12,), (3, 4)), ((3, 4), (12,)), ((6, 4), (4, 6)), ((2, 3, 4), (6, 4)), ((2, 3, 4), (4, 3, 2)),
    ((96,), (2, 3, 4, 4)), ((4096,), (64, 64)), ((64, 64), (1, 4096)), ((5, 7), (7, 5)), ((2, 3, 4, 5), (120,)),
    ((16, 16), (4, 4, 4, 4)), ((33,), (3, 11)), ((3, 11), (33, 1)), ((1, 1, 1), (1,)), ((8, 1, 4), (1, 32)),
]  # fmt: skip


@pytest.mark.parametrize("before, after", RESHAPES)
def test_reshape(before, after):
    x = numbered(before)
    check(f"tl.reshape(x, {after})", {"x": x}, x.reshape(after))
    check(f"x.reshape({', '.join(map(str, after))})", {"x": x}, x.reshape(after))


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_moves_unchanged(dtype):
    x = random((6, 4), dtype)
    check("tl.reshape(x, (3, 8))", {"x": x}, Array(x.values.reshape(3, 8), dtype))
    check("tl.trans(x)", {"x": x}, Array(x.values.T, dtype))
    check("tl.broadcast_to(x[:, None, :], (6, 2, 4))", {"x": x}, Array(np.repeat(x.values[:, None], 2, 1), dtype))
    check("tl.join(x, x)", {"x": x}, Array(np.stack([x.values] * 2, -1), dtype))


def test_other_spellings_of_reshape():
    x = numbered((4, 6))
    check("tl.view(x, (8, 3))", {"x": x}, x.reshape(8, 3))
    check("x.view(8, 3)", {"x": x}, x.reshape(8, 3))
    check("tl.ravel(x)", {"x": x}, x.ravel())
    check("x.ravel()", {"x": x}, x.ravel())
    check("tl.reshape(x, 8, 3)", {"x": x}, x.reshape(8, 3))
    check("x.reshape([8, 3])", {"x": x}, x.reshape(8, 3))


def test_reshape_computed_values():
    """Values that exist only as an expression, not in memory."""
    check("tl.reshape(tl.arange(0, 12) * 3, (3, 4))", {}, (numbered(12) * 3).reshape(3, 4))
    check("tl.reshape(tl.reshape(tl.arange(0, 12), (3, 4)) + 1, (2, 6))", {}, numbered((2, 6)) + 1)
    code = "tl.reshape(tl.trans(tl.reshape(tl.arange(0, 12), (3, 4))), (12,))"
    check(code, {}, numbered((3, 4)).T.ravel())


@pytest.mark.parametrize("shape, axes", [((4,), [0, 1, -1, -2]), ((3, 5), [0, 1, 2, -1, -3]), ((2, 3, 4), [0, 3, -2])])
def test_expand_dims(shape, axes):
    x = numbered(shape)
    for axis in axes:
        check(f"tl.expand_dims(x, {axis})", {"x": x}, np.expand_dims(x, axis))
        check(f"x.expand_dims({axis})", {"x": x}, np.expand_dims(x, axis))


def test_expand_several_dims():
    x = numbered((3, 5))
    check("tl.expand_dims(x, (0, 2))", {"x": x}, np.expand_dims(x, (0, 2)))
    check("tl.expand_dims(x, [0, -1])", {"x": x}, np.expand_dims(x, (0, -1)))


BROADCASTS = [
    ((1,), (7,)), ((3, 1), (3, 5)), ((1, 5), (3, 5)), ((1, 1), (4, 6)), ((2, 1, 4), (2, 3, 4)), ((1, 3, 1), (2, 3, 4)),
    ((5,), (5,)), ((1, 1, 1, 1), (2, 3, 4, 5)), ((1, 1), (64, 64)), ((4096,), (4096,)),
]  # fmt: skip


@pytest.mark.parametrize("before, after", BROADCASTS)
def test_broadcast_to(before, after):
    x = numbered(before)
    check(f"tl.broadcast_to(x, {after})", {"x": x}, np.broadcast_to(x, after))
    check(f"x.broadcast_to({', '.join(map(str, after))})", {"x": x}, np.broadcast_to(x, after))


def test_broadcast_a_scalar():
    check("tl.broadcast_to(n, (3, 5))", {"n": 9}, np.full((3, 5), 9, np.int32))
    check("tl.broadcast_to(x, (4,))", {"x": np.asarray(2.5)}, np.full(4, 2.5))


def test_broadcast_two():
    x, y = numbered((3, 1)), numbered((1, 5))
    both = np.broadcast_arrays(x, y)
    check("a, b = tl.broadcast(x, y)", {"x": x, "y": y}, {"a": both[0], "b": both[1]})


PAIRS = [
    ((), (4,)), ((1,), (4,)), ((4,), (4,)), ((3, 1), (1, 5)), ((3, 5), (5,)), ((3, 5), (1, 5)), ((2, 3, 1), (4,)),
    ((2, 1, 4), (3, 1)), ((1, 1), (7,)), ((2, 3, 4, 1), (1, 3, 1, 5)), ((1,), ()), ((3, 4, 5), (4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("left, right", PAIRS)
def test_operands_broadcast(left, right):
    x, y = numbered(left), numbered(right) * 100
    check("x + y", {"x": x, "y": y}, x + y)
    check("y - x", {"x": x, "y": y}, y - x)


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_permute(rank):
    x = numbered((2, 3, 4, 5)[:rank])
    for order in itertools.permutations(range(rank)):
        expected = np.transpose(x, order)
        check(f"tl.permute(x, {order})", {"x": x}, expected)
        check(f"tl.permute(x, {', '.join(map(str, order))})", {"x": x}, expected)


def test_transpose():
    x, y = numbered((3, 5)), numbered((2, 3, 4))
    check("tl.trans(x)", {"x": x}, x.T)
    check("x.T", {"x": x}, x.T)
    check("x.trans()", {"x": x}, x.T)
    check("tl.trans(x, 1, 0)", {"x": x}, x.T)
    check("tl.trans(tl.trans(x))", {"x": x}, x)
    check("tl.trans(y, (2, 0, 1))", {"y": y}, y.transpose(2, 0, 1))
    check("tl.trans(y, 0, 2, 1)", {"y": y}, y.transpose(0, 2, 1))
    check("y.permute(-1, 0, 1)", {"y": y}, y.transpose(2, 0, 1))


@pytest.mark.parametrize("shape", [(1,), (8,), (5,), (3, 7), (2, 3, 4)])
def test_join_and_split(shape):
    x, y = numbered(shape), -numbered(shape)
    both = np.stack([x, y], -1)
    check("tl.join(x, y)", {"x": x, "y": y}, both)
    check("a, b = tl.split(x)", {"x": both}, {"a": x, "b": y})
    check("a, b = x.split()", {"x": both}, {"a": x, "b": y})
    check("a, b = tl.split(tl.join(x, y) * 2)", {"x": x, "y": y}, {"a": x * 2, "b": y * 2})


def test_join_scalars_and_split_to_scalars():
    check("tl.join(a, b)", {"a": 3, "b": 4}, np.array([3, 4], np.int32))
    check("a, b = tl.split(x)", {"x": np.array([5, 6])}, {"a": np.asarray(5), "b": np.asarray(6)})


def test_join_indices():
    x, zeros = random((65, 1), "int8").values, np.zeros(65, np.int32)
    check("v = tl.argmax(x, axis=1)\nout = tl.join(v, v)", {"x": x}, np.stack([zeros, zeros], -1))
    code = "v = tl.argmax(x, axis=1)\nw = tl.interleave(v, v)\nout, pair = tl.argmax(w, axis=0), tl.join(w, w)"
    check(code, {"x": x}, {"out": np.asarray(0, np.int32), "pair": np.zeros((130, 2), np.int32)})


def test_join_broadcasts():
    x = numbered((4,))
    check("tl.join(x, 7)", {"x": x}, np.stack([x, np.full(4, 7, np.int32)], -1))


@pytest.mark.parametrize("shape", [(1,), (6,), (3, 5), (2, 2, 2)])
def test_interleave(shape):
    x, y = numbered(shape), -numbered(shape)
    expected = np.stack([x, y], -1).reshape(*shape[:-1], 2 * shape[-1])
    check("tl.interleave(x, y)", {"x": x, "y": y}, expected)


@pytest.mark.parametrize("left, right", [((4,), (4,)), ((3,), (3,)), ((96,), (96,)), ((1,), (1,))])
def test_cat(left, right):
    x, y = numbered(left), -numbered(right)
    out = np.concatenate([x, y])
    check("tl.sort(tl.cat(x, y, can_reorder=True))", {"x": x, "y": y}, np.sort(out))
    check("tl.cat(x, y)", {"x": x, "y": y}, out)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_along_a_dimension(dim):
    x, y = numbered((4, 6)), -numbered((4, 6))
    check(f"tl.cat(x, y, dim={dim})", {"x": x, "y": y}, np.concatenate([x, y], dim))


def test_shape_is_known_at_compile_time():
    x = numbered((3, 5))
    check("tl.full((x.shape[1], x.shape[0]), len(x.shape), tl.int32)", {"x": x}, np.full((5, 3), 2, np.int32))
    check("tl.zeros(x.shape, x.dtype) + x.numel", {"x": x}, np.full((3, 5), 15, np.int32))
    check("tl.reshape(x, (x.shape[0] * x.shape[1],))", {"x": x}, x.ravel())
    check("M, N = x.shape\nout = tl.full((N, M), N, tl.int32)", {"x": x}, np.full((5, 3), 5, np.int32))
    check("tl.zeros((x.shape[0],) + x.shape[1:], tl.int32)", {"x": x}, np.zeros((3, 5), np.int32))
