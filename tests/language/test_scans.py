"""Prefix combinations along an axis, forwards and backwards."""

import numpy as np
import pytest
from harness import DTYPES, NUMBERS, Array, check, define, random, round_to

SHAPES = [(1,), (2,), (5,), (16,), (96,), (1000,), (4096,), (1, 1), (3, 7), (33, 4), (2, 3, 5), (2, 3, 4, 5)]


def small(shape, dtype="int32", seed=0):
    return round_to(random(shape, "int32", seed, low=0 if DTYPES[dtype].kind == "uint" else -2, high=3).values, dtype)


def backwards(function, x, axis):
    return np.flip(function(np.flip(x, axis), axis), axis)


@pytest.mark.parametrize("shape", SHAPES)
def test_cumsum(shape):
    x = small(shape)
    for axis in range(len(shape)):
        expected = {
            "a": np.cumsum(x.values, axis, dtype=np.int32),
            "b": backwards(lambda v, d: np.cumsum(v, d, dtype=np.int32), x.values, axis),
        }
        check(f"a = tl.cumsum(x, axis={axis})\nb = tl.cumsum(x, axis={axis}, reverse=True)", {"x": x}, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype):
    x = small((5, 20), dtype)
    with np.errstate(over="ignore"):
        sums = np.cumsum(x.values.astype(np.float64), 1)
    bits, kind = DTYPES[dtype].bits, DTYPES[dtype].kind
    wide = dtype if kind == "float" or bits >= 32 else {"int": "int32", "uint": "uint32"}[kind]
    check(f"tl.cumsum(x, 1).to(tl.{wide})", {"x": x}, round_to(sums, wide))


def test_cumsum_in_another_dtype():
    x = np.full(200, 100, np.int8)
    check("tl.cumsum(x, 0, dtype=tl.int64)", {"x": x}, np.cumsum(x, dtype=np.int64))


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4)])
def test_cumprod(shape):
    x = round_to(np.where(random(shape).values > 0, 2.0, 0.5), "float32").values
    for axis in range(len(shape)):
        expected = {"a": np.cumprod(x, axis), "b": backwards(np.cumprod, x, axis)}
        check(f"a = tl.cumprod(x, axis={axis})\nb = tl.cumprod(x, axis={axis}, reverse=True)", {"x": x}, expected)


def test_types_of_products():
    """Narrow integers become 32 bits wide, unless another type is asked for."""
    x = np.full(20, 3, np.int8)
    check("tl.cumprod(x)", {"x": x}, np.cumprod(x, dtype=np.int32))
    check("tl.cumprod(x, 0, dtype=tl.int64)", {"x": x}, np.cumprod(x, dtype=np.int64))
    check("tl.cumprod(x, dtype=tl.float32)", {"x": x[:10]}, np.cumprod(x[:10], dtype=np.float32))


def test_methods():
    x = small((3, 7))
    check("x.cumsum(1)", {"x": x}, np.cumsum(x.values, 1, dtype=np.int32))
    check(
        "x.cumsum(axis=0, reverse=True)", {"x": x}, backwards(lambda v, d: np.cumsum(v, d, dtype=np.int32), x.values, 0)
    )
    check("x.cumprod(-1)", {"x": x}, np.cumprod(x.values, -1, dtype=np.int32))


FUNCTIONS = define("""
    @triton.jit
    def maximum(a, b):
        return tl.maximum(a, b)

    @triton.jit
    def affine(a, b, c, d):
        return a * c, b * c + d

    @triton.jit
    def either(a, b, c, d):
        return a + c, b | d

    @triton.jit
    def last_set(a, set_a, b, set_b):
        return tl.where(set_b, b, a), set_a | set_b

    @triton.jit
    def three(a, b, c, d, e, f):
        return a + d, tl.minimum(b, e), c | f
""")
NAMES = {name: FUNCTIONS[name] for name in ["maximum", "affine", "either", "last_set", "three"]}


@pytest.mark.parametrize("shape", [(1,), (9,), (64,), (100,), (5, 13), (2, 3, 4)])
def test_running_maximum(shape):
    x = random(shape, "float32")
    for axis in range(len(shape)):
        function = np.maximum.accumulate
        expected = {"a": function(x.values, axis), "b": backwards(function, x.values, axis)}
        code = f"a = tl.associative_scan(x, {axis}, maximum)\nb = tl.associative_scan(x, {axis}, maximum, reverse=True)"
        check(code, {"x": x}, expected, names=NAMES)


@pytest.mark.parametrize("num_warps", [1, 2, 4])
@pytest.mark.parametrize("shape", [(3, 48), (48, 24), (100, 3)])
def test_a_running_maximum_begins_with_nan(shape, num_warps):
    """What comes before the first number must not win over it."""
    x = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    x[np.arange(shape[0])[:, None] + np.arange(shape[1]) < 4] = np.nan
    for axis in range(2):
        expected = {
            "a": np.fmax.accumulate(x, axis),
            "b": backwards(np.fmax.accumulate, np.flip(x, axis), axis),
        }
        code = f"a = tl.associative_scan(x, {axis}, maximum)\n"
        code += f"b = tl.associative_scan(tl.flip(x, {axis}), {axis}, maximum, reverse=True)"
        check(code, {"x": x}, expected, names=NAMES, num_warps=num_warps)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(1,), (6,), (33,), (700,), (4, 9), (2, 300)])
def test_a_combination_that_does_not_commute(shape, reverse):
    """h[i] = a[i] * h[i - 1] + b[i] as a scan of affine maps."""
    a = round_to(np.where(random(shape, seed=1).values > 0, 1.0, -1.0), "float32").values
    b = small(shape, "float32", seed=2).values
    axis = len(shape) - 1
    forward = (np.flip(a, axis), np.flip(b, axis)) if reverse else (a, b)
    products, sums = np.empty_like(a), np.empty_like(b)
    p, h = np.ones(shape[:-1], np.float32), np.zeros(shape[:-1], np.float32)
    for i in range(shape[-1]):
        p, h = p * forward[0][..., i], h * forward[0][..., i] + forward[1][..., i]
        products[..., i], sums[..., i] = p, h
    expected = {"p": np.flip(products, axis), "h": np.flip(sums, axis)} if reverse else {"p": products, "h": sums}
    code = f"p, h = tl.associative_scan((a, b), {axis}, affine, reverse={reverse})"
    check(code, {"a": a, "b": b}, expected, names=NAMES)


def in_order(function, operands, axis, reverse):
    """A scan of several arrays as it is defined, with a function of NumPy arrays."""
    rows = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in operands]
    prefixes = [tuple(row[0] for row in rows)]
    for i in range(1, len(rows[0])):
        prefixes.append(function(*prefixes[-1], *(row[i] for row in rows)))
    results = [np.moveaxis(np.array(column), 0, axis) for column in zip(*prefixes, strict=True)]
    return [np.flip(x, axis) if reverse else x for x in results]


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("second", ["v", "tl.flip(v, 1)", "tl.sort(v)"])
@pytest.mark.parametrize("shape", [(12, 12), (24, 12), (96, 1, 4), (5, 12, 3), (1, 24, 12)])
def test_padding_that_comes_first(shape, second, num_warps):
    """Of a reversed scan in several warps, the last rows of the layout; some registers hold padding, others none."""
    v = random(shape, "int32", low=1, high=9).values
    w = {"v": v, "tl.flip(v, 1)": np.flip(v, 1), "tl.sort(v)": np.sort(v)}[second]
    code, expected = [], {}
    for axis in range(len(shape)):
        for name in ["affine", "either"]:
            results = f"p_{name}_{axis}", f"q_{name}_{axis}"
            code.append(f"{', '.join(results)} = tl.associative_scan((v, {second}), {axis}, {name}, reverse=True)")
            with np.errstate(over="ignore"):
                values = in_order(FUNCTIONS[name].fn, (v, w), axis, reverse=True)
            expected |= zip(results, values, strict=True)
    check("\n".join(code), {"v": v}, expected, names=NAMES, num_warps=num_warps)


def test_mixed_dtypes():
    x, s = small((40,), "float32"), random((40,), "int1")
    expected, last = [], None
    for value, flag in zip(x.values, s.values, strict=True):
        last = value if flag or last is None else last
        expected.append(last)
    check(
        "out, _ = tl.associative_scan((x, s), 0, last_set)",
        {"x": x, "s": s},
        np.array(expected, np.float32),
        names=NAMES,
    )


def test_three_at_once():
    x, y, z = small((3, 10)), random((3, 10), "float32"), random((3, 10), "int64")
    expected = {
        "a": np.cumsum(x.values, 1, dtype=np.int32),
        "b": np.minimum.accumulate(y.values, 1),
        "c": np.bitwise_or.accumulate(z.values, 1),
    }
    check("a, b, c = tl.associative_scan((x, y, z), 1, three)", {"x": x, "y": y, "z": z}, expected, names=NAMES)


def test_a_scan_of_a_scan():
    x = small((4, 6))
    expected = np.cumsum(np.cumsum(x.values, 0, dtype=np.int32), 1, dtype=np.int32)
    check("tl.cumsum(tl.cumsum(x, 0), 1)", {"x": x}, expected)


def test_the_whole_is_the_last_of_the_prefixes():
    x = random((129,), "int32")
    with np.errstate(over="ignore"):
        total = np.cumsum(x.values, dtype=np.int32)[-1]
    check("tl.cumsum(x, 0)[128] - tl.sum(x)", {"x": x}, np.asarray(total - total, np.int32))


def test_compaction():
    """The classic use: positions of the elements that stay."""
    x = random((200,), "int32", low=-50, high=50)
    code = """
        keep = x > 0
        place = tl.cumsum(keep.to(tl.int32), 0) - 1
        tl.store(y_ptr + place, x, mask=keep)
        tl.debug_barrier()
        out = tl.load(y_ptr + tl.arange(0, 200))
    """
    kept = x.values[x.values > 0]
    check(
        code,
        {"x": x, "y": np.zeros(200, np.int32)},
        Array(np.append(kept, np.zeros(200 - len(kept), np.int32)), "int32"),
    )
