"""load and store: masks, other, scalars, strides, gathers, hints. Guards around every result must survive."""

import numpy as np
import pytest
from harness import DTYPES, FP8, NUMBERS, Array, Buffer, check, jit, random

import triton
import triton.language as tl

EVERY = ["int1", *NUMBERS, *FP8]


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("count", [1, 5, 64, 1000])
def test_copy(dtype, count):
    x = random((count,), dtype)
    check("x", {"x": x}, x)


@pytest.mark.parametrize("shape", [(), (1,), (3, 7), (16, 16), (2, 3, 5), (2, 3, 4, 5), (1, 4096), (4096, 1)])
def test_copy_of_every_rank(shape):
    for dtype in ["int8", "float32"]:
        x = random(shape, dtype)
        check("x", {"x": x}, x)


@pytest.mark.parametrize("dtype", [name for name in NUMBERS if "int" in name])
def test_infinities_are_the_ends_of_integers(dtype):
    x, ends = random((8,), dtype), np.iinfo(dtype)
    for sign, end in [("-", ends.min), ("", ends.max)]:
        code = f"i = tl.arange(0, 8)\nout = tl.load(x_ptr + i, mask=i < 5, other={sign}float('inf'))"
        check(code, {"x": x}, np.where(np.arange(8) < 5, x.values, np.array(end, dtype)))


MASKED = jit("""
    def kernel(x, out, count, SIZE: tl.constexpr, OTHER: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(out + i, tl.load(x + i, mask=i < count, other=OTHER), mask=i < count)
""")


@pytest.mark.parametrize("dtype", EVERY[:1] + NUMBERS)
@pytest.mark.parametrize(
    "count, size", [(1, 1), (1, 64), (63, 64), (64, 64), (65, 64), (1000, 128), (1000, 96), (17, 4096)]
)
def test_masks_keep_to_the_array(dtype, count, size):
    x, out = random((count,), dtype), Buffer(random((count,), dtype, seed=9))
    MASKED[(-(-count // size),)](Buffer(x).argument, out.argument, count, size, 0)
    assert (out.host().values == x.values).all()


@pytest.mark.parametrize("dtype", EVERY[:1] + NUMBERS)
def test_other(dtype):
    x, m = random((100,), dtype), random((100,), "int1", seed=5)
    for other in [0, 1, 3]:
        value = np.asarray(other).astype(x.values.dtype)
        check(
            f"tl.load(x_ptr + tl.arange(0, 100), mask=m, other={other})",
            {"x": x, "m": m},
            Array(np.where(m.values, x.values, value), dtype),
        )
    y = random((100,), dtype, seed=7)
    check(
        "tl.load(x_ptr + tl.arange(0, 100), m, y)",
        {"x": x, "m": m, "y": y},
        Array(np.where(m.values, x.values, y.values), dtype),
    )


def test_other_is_converted_and_broadcast():
    x, m = random((4, 6), "float16"), random((4, 6), "int1")
    inputs = {"x": x, "m": m}
    place = "x_ptr + tl.arange(0, 4)[:, None] * 6 + tl.arange(0, 6)"
    infinite = Array(np.where(m.values, x.values, np.float16(-np.inf)), "float16")
    check(f"tl.load({place}, mask=m, other=-float('inf'))", inputs, infinite)
    row = np.arange(6, dtype=np.float32)
    check(
        f"tl.load({place}, mask=m, other=y[None, :])",
        {**inputs, "y": row},
        Array(np.where(m.values, x.values, row.astype(np.float16)), "float16"),
    )


def test_masked_off_loads_read_nothing():
    """Addresses that are masked off may be anything."""
    x = np.arange(8, dtype=np.int32)
    code = "i = tl.arange(0, 8)\nout = tl.load(x_ptr + i.to(tl.int64) * 1000000000000, mask=i < 1, other=-1)"
    check(code, {"x": x}, np.array([0] + [-1] * 7, np.int32))
    check(
        "tl.load(x_ptr + n.to(tl.int64) * 100000000000, mask=n > 5, other=7)", {"x": x, "n": 3}, np.asarray(7, np.int32)
    )


def test_masks_broadcast():
    x = random((4, 6), "float32")
    place = "x_ptr + tl.arange(0, 4)[:, None] * 6 + tl.arange(0, 6)[None, :]"
    rows = np.where((np.arange(4) < 3)[:, None], x.values, np.float32(0))
    check(f"tl.load({place}, mask=tl.arange(0, 4)[:, None] < 3, other=0.)", {"x": x}, rows)
    check(
        f"tl.load({place}, mask=(tl.arange(0, 6) < 2)[None, :], other=0.)",
        {"x": x},
        np.where(np.arange(6) < 2, x.values, np.float32(0)),
    )
    check(f"tl.load({place}, mask=n > 0, other=0.)", {"x": x, "n": 0}, np.zeros((4, 6), np.float32))
    check(f"tl.load({place}, mask=True)", {"x": x}, x)
    check(f"tl.load({place}, mask=None)", {"x": x}, x)


def store(code, shape, dtype="int32", **inputs):
    """Result of a kernel that stores to `out` itself, over an array of -1."""
    out = Buffer(Array(np.full(shape, -1, dtype), dtype))
    names = [f"{name}_ptr" if isinstance(value, np.ndarray) else name for name, value in inputs.items()]
    body = "\n".join("    " + line for line in code.splitlines())
    arguments = [Buffer(value).argument if isinstance(value, np.ndarray) else value for value in inputs.values()]
    jit(f"def kernel(out, {', '.join(names)}):\n{body}")[(1,)](out.argument, *arguments)
    return out.host().values


def test_store_masks():
    for count in [0, 1, 7, 31, 32]:
        result = store("i = tl.arange(0, 32)\ntl.store(out + i, i, mask=i < n)", (32,), n=count)
        assert (result == np.where(np.arange(32) < count, np.arange(32), -1)).all()
    result = store("i = tl.arange(0, 33)\ntl.store(out + i, i, i % 3 == 1)", (33,))
    assert (result == np.where(np.arange(33) % 3 == 1, np.arange(33), -1)).all()


def test_store_broadcasts_value_and_mask():
    place = "i = tl.arange(0, 4)[:, None]\nj = tl.arange(0, 6)[None, :]\n"
    assert (store(place + "tl.store(out + i * 6 + j, 5)", (4, 6)) == 5).all()
    assert (store(place + "tl.store(out + i * 6 + j, j)", (4, 6)) == np.arange(6)).all()
    assert (store(place + "tl.store(out + i * 6 + j, i, mask=j < 6)", (4, 6)) == np.arange(4)[:, None]).all()
    result = store(place + "tl.store(out + i * 6 + j, 7, mask=i < 2)", (4, 6))
    assert (result == np.where(np.arange(4)[:, None] < 2, 7, np.full((4, 6), -1))).all()


def test_scalar_stores():
    assert store("tl.store(out + 3, 9)", (5,)).tolist() == [-1, -1, -1, 9, -1]
    assert store("tl.store(out + n, n, mask=n < 3)", (5,), n=2).tolist() == [-1, -1, 2, -1, -1]
    assert store("tl.store(out + n, n, mask=n < 3)", (5,), n=3).tolist() == [-1] * 5


@pytest.mark.parametrize("stride", [1, 2, 3, 8, -1, -2, 0])
def test_strides(stride):
    x = np.arange(100, dtype=np.int32)
    start = 90 if stride < 0 else 4
    expected = x[start + stride * np.arange(10)]
    check(f"tl.load(x_ptr + {start} + tl.arange(0, 10) * {stride})", {"x": x}, expected)
    check(f"tl.load(x_ptr + {start} + tl.arange(0, 10) * s)", {"x": x, "s": stride}, expected)


def test_matrices_by_their_strides():
    x = np.arange(7 * 9, dtype=np.float32).reshape(7, 9)
    code = "out = tl.load(x_ptr + tl.arange(0, 4)[:, None] * a + tl.arange(0, 5)[None, :] * b)"
    check(code, {"x": x, "a": 9, "b": 1}, x[:4, :5])
    check(code, {"x": x, "a": 1, "b": 9}, x.T[:4, :5])
    check(code, {"x": x, "a": 10, "b": 0}, np.repeat(np.diag(x)[:4, None], 5, 1))
    check(code, {"x": x, "a": 18, "b": 2}, x[:8:2, :9:2])


@pytest.mark.parametrize("n", [0, 5, 16, 32, 33])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_one_row_for_all(n, dtype):
    """The same elements for each row, under masks that rows share; something else for each where these are false."""
    x, y = random((128,), dtype), random((64, 128), dtype, seed=2)
    row, column = "tl.arange(0, 64)[:, None]", "tl.arange(0, 128)[None, :]"
    inside = np.arange(64)[:, None] < n
    for other, value in ("0", 0), ("y", y.values):
        code = f"tl.load(x_ptr + tl.broadcast_to({column}, (64, 128)), mask={row} < n, other={other})"
        check(code, {"x": x, "y": y, "n": n}, Array(np.where(inside, x.values, value).astype(x.values.dtype), dtype))


@pytest.mark.parametrize("index", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_gathers_with_every_index_dtype(index):
    x = random((100,), "float32")
    i = random((64,), index, low=0, high=100)
    check("tl.load(x_ptr + i)", {"x": x, "i": i}, x.values[i.values.astype(np.int64)])


def test_negative_offsets():
    x = np.arange(20, dtype=np.int32)
    check("tl.load(x_ptr + 10 - tl.arange(0, 8))", {"x": x}, x[10 - np.arange(8)])
    check("tl.load(x_ptr + 10 + i)", {"x": x, "i": np.array([-10, -1, 0, 9], np.int8)}, x[[0, 9, 10, 19]])


def test_pointers_to_pointers():
    """An array of addresses, and the arrays behind it."""
    rows = [Buffer(random((8,), "float32", seed=s)) for s in range(3)]
    where = [
        row.argument.__array_interface__["data"][0] if isinstance(row.argument, np.ndarray) else row.argument.data_ptr()
        for row in rows
    ]
    code = """
        row = tl.load(t_ptr + n).to(tl.pointer_type(tl.float32))
        out = tl.load(row + tl.arange(0, 8))
    """
    for n in range(3):
        check(code, {"t": np.array(where, np.int64), "n": n}, rows[n].host())


def test_scatter():
    order = np.random.default_rng(0).permutation(96).astype(np.int32)
    result = store("tl.store(out + tl.load(i_ptr + tl.arange(0, 96)), tl.arange(0, 96))", (96,), i=order)
    assert (result[order] == np.arange(96)).all()


def test_pointers_in_a_loop():
    x = np.arange(60, dtype=np.float32)
    code = """
        place = x_ptr + tl.arange(0, 10)
        out = tl.zeros((10,), tl.float32)
        for k in range(6):
            out += tl.load(place)
            place += 10
    """
    check(code, {"x": x}, x.reshape(6, 10).sum(0))


@pytest.mark.parametrize("hint", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("count, extent", [(4, 8), (8, 48), (16, 16), (32, 64)])
def test_rows_of_pointers_that_a_loop_advances(count, extent, turned, hint):
    """Each row by its own step, or all alike with a hint in between; along rows, and across them."""
    code = f"""
        rows, columns = tl.arange(0, {count})[:, None], tl.arange(0, {extent})[None, :]
        step = tl.load(step_ptr + rows)
        if {turned}:
            rows, columns, step = rows.T, columns.T, step.T
        place = x_ptr + rows * 1024 + columns
        out = tl.zeros(place.shape, tl.int32)
        for _ in range(3):
            if {hint}:
                tl.multiple_of(place, (4, 4))
            out += tl.load(place)
            place += {extent if hint else "step"}
    """
    x = random((count, 1024), "int32", low=0, high=1000)
    rows = np.arange(count, dtype=np.int32)
    steps = extent * (1 + rows % 3 * (not hint))
    columns = steps[:, None, None] * np.arange(3)[:, None] + np.arange(extent)
    sums = x.values[rows[:, None, None], columns].sum(1, np.int32)
    check(code, {"x": x, "step": steps}, sums.T if turned else sums)


def test_aliasing_stores_and_loads_keep_their_order():
    code = """
        i = tl.arange(0, 16)
        tl.store(out + i, i)
        x = tl.load(out + 15 - i)
        tl.store(out + i, x * 2)
        tl.store(out, tl.load(out + 15) + 100)
    """
    assert store(code, (16,)).tolist() == [100] + [2 * (15 - i) for i in range(1, 16)]


def test_a_load_is_not_moved_over_a_store_in_a_loop():
    code = "for i in range(1, 10):\n    tl.store(out + i, tl.load(out + i - 1) + 1)"
    assert store(code, (10,)).tolist() == list(range(-1, 9))


HINTS = [
    'cache_modifier=".ca"', 'cache_modifier=".cg"', 'cache_modifier=".cv"', 'cache_modifier=""',
    'eviction_policy="evict_first"',
    'eviction_policy="evict_last"', 'eviction_policy=""', "volatile=True",
    'mask=None, cache_modifier=".cg", volatile=False',
]  # fmt: skip


@pytest.mark.parametrize("hint", HINTS)
def test_load_hints_change_nothing(hint):
    x = random((40,), "float32")
    check(f"tl.load(x_ptr + tl.arange(0, 40), {hint})", {"x": x}, x)


@pytest.mark.parametrize(
    "hint", ['cache_modifier=".wb"', 'cache_modifier=".cs"', 'cache_modifier=".wt"', 'eviction_policy="evict_last"']
)
def test_store_hints_change_nothing(hint):
    assert (store(f"tl.store(out + tl.arange(0, 8), 3, {hint})", (8,)) == 3).all()


def test_unaligned_arrays():
    """A pointer that is aligned to its element and to nothing more."""
    x = np.arange(41, dtype=np.float32)
    out = np.zeros(41, np.float32)
    kernel = jit("""
        def kernel(x, out):
            i = tl.arange(0, 40)
            tl.store(out + i, tl.load(x + i))
    """)
    if isinstance(Buffer(x).argument, np.ndarray):
        kernel[(1,)](x[1:], out[1:])
        assert (out[1:] == x[1:]).all() and out[0] == 0


@pytest.mark.parametrize(
    "dtype, number, stored",
    [
        ("int32", "0.0", 0),
        ("int32", "-1.0", -1),
        ("int8", "255", -1),
        ("int32", "0xDEADBEEF", 0xDEADBEEF - (1 << 32)),
        ("uint8", "-1", 255),
        ("uint64", "-1", (1 << 64) - 1),
        ("uint64", "(1 << 64) - 1", (1 << 64) - 1),
        ("int64", "-(1 << 63)", -(1 << 63)),
        ("int32", "tl.cast(1 << 40, tl.int32)", 0),
        ("int32", "tl.cast(2.75, tl.int32)", 2),
        ("int1", "2", True),
        ("int32", "True", 1),
    ],
)
def test_numbers_stored_as_integers(dtype, number, stored):
    """What fits, with a sign or without, and what is converted on purpose."""
    code = f"n = {number}\ntl.store(y_ptr, {number})\ntl.store(y_ptr + 1, n)\ntl.debug_barrier()"
    code += "\nout = tl.load(y_ptr + tl.arange(0, 2))"
    expected = np.array([stored, stored], DTYPES[dtype].numpy)
    check(code, {"y": Array(np.zeros_like(expected), dtype)}, Array(expected, dtype))


@pytest.mark.host
def test_offsets_beyond_every_array_compile():
    for code in "x + 9223372036854775808", "x + tl.arange(0, 16) + (1 << 61)", "x - (1 << 62) * 2 - 5":
        jit(f"def kernel(x):\n    tl.store({code}, tl.load({code}))").warmup(np.zeros(16, np.float32), grid=(1,))


@triton.jit
def load_for_quotients(table, number, out, N: tl.constexpr, GROUP: tl.constexpr):
    first = tl.load(number) if number.dtype.is_ptr() else number
    index = first * GROUP + tl.arange(0, N)
    tl.store(out + tl.arange(0, N), tl.load(table + 8 + index // GROUP))


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("group", [16, 64])
@pytest.mark.parametrize("first", [-2, -1, 0, 2])
def test_quotients_of_negative_numbers(first, group, is_loaded):
    """A quotient is rounded toward zero: what begins below it does not divide into whole groups."""
    table, out = Array(np.arange(16, dtype=np.int32), "int32"), Buffer(Array(np.zeros(64, np.int32), "int32"))
    number = Buffer(Array(np.array([first], np.int32), "int32")).argument if is_loaded else first
    load_for_quotients[(1,)](Buffer(table).argument, number, out.argument, 64, group)
    expected = 8 + np.trunc((first * group + np.arange(64)) / group).astype(np.int32)
    assert (out.host().values == expected).all()
