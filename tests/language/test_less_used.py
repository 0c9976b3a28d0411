"""Functions that few kernels need, and that the files of this folder cover everything the language has."""

import re
from pathlib import Path

import numpy as np
import pytest
from harness import Array, check, random

import triton.language as tl


def functions():
    """The public functions of triton.language: builtins, and what is written in the language."""
    for name in dir(tl):
        function = getattr(tl, name)
        if not name.startswith("_") and (
            hasattr(function, "__triton_builtin__") or getattr(function, "__triton_kind__", "") == "jit"
        ):
            yield name


def test_every_function_is_tested():
    """atomic_max and its like are in a table by their last word."""
    text = "".join(file.read_text() for file in Path(__file__).parent.glob("*.py"))
    names = list(functions())
    assert len(names) > 90
    assert not [name for name in names if not re.search(rf"\b(atomic_)?{name.removeprefix('atomic_')}\b", text)]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_squeeze_and_unsqueeze(shape):
    x = random(shape, "int32").values
    for axis in range(len(shape) + 1):
        check(f"tl.unsqueeze(x, {axis})", {"x": x}, np.expand_dims(x, axis))
        check(f"tl.squeeze(x, {axis})", {"x": np.expand_dims(x, axis)}, x)
        check(f"x.squeeze({axis - len(shape) - 1})", {"x": np.expand_dims(x, axis)}, x)


def test_item():
    check("x.item()", {"x": np.array([7])}, np.asarray(7))
    check(
        "tl.item(tl.sum(x, axis=1, keep_dims=True)) + 1", {"x": np.ones((1, 5), np.float32)}, np.asarray(6, np.float32)
    )


@pytest.mark.parametrize("dtype", ["int32", "uint64", "int1"])
def test_reduce_or(dtype):
    x = random((5, 33), dtype).values
    x = x & random((5, 33), dtype, seed=1).values & random((5, 33), dtype, seed=2).values
    check("tl.reduce_or(x, axis=1)", {"x": x}, Array(np.bitwise_or.reduce(x, 1), dtype))
    check("x.reduce_or(axis=0, keep_dims=True)", {"x": x}, Array(np.bitwise_or.reduce(x, 0, keepdims=True), dtype))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("size", [1, 2, 16, 128])
def test_bitonic_merge(size, descending):
    """What first rises and then falls becomes sorted."""
    values = np.sort(random((3, size), "int32").values)
    half = size // 2
    x = np.concatenate([values[:, half:], values[:, :half][:, ::-1]], axis=1)
    expected = values[:, ::-1] if descending else values
    check(f"tl.bitonic_merge(x, descending={descending})", {"x": x}, expected)


def test_arithmetic_by_name():
    x, y = random((50,), "int32", seed=1).values, random((50,), "int32", seed=2).values
    check("tl.add(x, y) + tl.sub(x, y)", {"x": x, "y": y}, x + x)
    check("tl.mul(x, y, sanitize_overflow=False)", {"x": x, "y": y}, x * y)
    check("tl.math.mul(tl.math.add(x, 1), y)", {"x": x, "y": y}, (x + 1) * y)


def test_logical_functions():
    x, y = np.array([0, 1, 0, 5]), np.array([0, 0, 2, 3])
    check("tl.logical_and(x, y)", {"x": x, "y": y}, (x != 0) & (y != 0))
    check("tl.logical_or(x, y)", {"x": x, "y": y}, (x != 0) | (y != 0))


def test_to_tensor():
    check("tl.to_tensor(3)", {}, np.asarray(3, np.int32))
    check("tl.to_tensor(2.5).to(tl.float16)", {}, np.asarray(2.5, np.float16))
    check("tl.to_tensor(True)", {}, np.asarray(True))
    check("tl.to_tensor(x)", {"x": np.arange(4)}, np.arange(4))


def test_pieces_of_random():
    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    bits = words.view(np.int32)
    expected = np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    check("tl.uint_to_uniform_float(x)", {"x": words}, expected)
    check("tl.uint32_to_uniform_float(x)", {"x": words}, expected)
    u, v = np.array([0.0, 0.25, 0.99], np.float32), np.array([0.5, 0.125, 0.0], np.float32)
    radius, angle = np.sqrt(-2 * np.log(np.maximum(u.astype(np.float64), 1e-7))), 2 * np.pi * v.astype(np.float64)
    expected = {"a": (radius * np.cos(angle)).astype(np.float32), "b": (radius * np.sin(angle)).astype(np.float32)}
    check("a, b = tl.pair_uniform_to_normal(x, y)", {"x": u, "y": v}, expected, rtol=1e-5, atol=1e-5)


def test_philox_rounds_of_64_bits():
    """Philox-4x64: one round, by hand."""
    m0, m1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
    c, k = [5, 6, 7, 8], [9, 10]
    a, b = m0 * c[0], m1 * c[2]
    words = [(b >> 64) ^ c[1] ^ k[0], b % 2**64, (a >> 64) ^ c[3] ^ k[1], a % 2**64]
    inputs = {f"c{i}": np.array([value], np.uint64) for i, value in enumerate(c)}
    inputs |= {f"k{i}": np.array([value], np.uint64) for i, value in enumerate(k)}
    expected = {f"r{i}": np.array([word], np.uint64) for i, word in enumerate(words)}
    check("r0, r1, r2, r3 = tl.philox_impl(c0, c1, c2, c3, k0, k1, 1)", inputs, expected)


def test_isinstance_of_tensors():
    check("x if isinstance(x, tl.tensor) else -x", {"x": np.arange(4)}, np.arange(4))
    check("x if isinstance(C, tl.constexpr) else -x", {"x": np.arange(4)}, np.arange(4), names={"C": tl.constexpr(1)})
    check("x * 2 if isinstance(x, tl.tensor) and x.dtype.is_int() else x", {"x": np.arange(4)}, np.arange(4) * 2)


def test_type_of_a_tile():
    code = """
        tl.static_assert(x.type == tl.block_type(tl.int64, [4, 2]))
        tl.static_assert(x.type.scalar == tl.int64 and n.type == tl.int32)
        tl.static_assert(x_ptr.type == tl.pointer_type(tl.int64))
        tl.static_assert(tl.get_int_dtype(16, False) == tl.uint16)
        out = x
    """
    check(code, {"x": np.arange(8).reshape(4, 2), "n": 3}, np.arange(8).reshape(4, 2))


@pytest.mark.parametrize(
    "name", ["add", "and", "floordiv", "lshift", "mod", "mul", "or", "rshift", "sub", "truediv", "xor"]
)
def test_operators_by_name(name):
    x, y = random((8,), "int32").values & 1023, np.arange(1, 9, dtype=np.int32)
    dtype = np.float32 if name == "truediv" else np.int32
    check(
        f"x.__{name}__(y)", {"x": x, "y": y}, getattr(x, f"__{name}__")(y).astype(dtype), ulps=2 * (name == "truediv")
    )
    check("x.__lshift__(4).to(tl.int8).__rshift__(4)", {"x": x}, (x << 4).astype(np.int8) >> 4)
