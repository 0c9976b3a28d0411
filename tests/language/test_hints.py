"""Promises to the compiler, and options that ask for something a target may ignore: no value changes."""

import numpy as np
import pytest
from harness import Buffer, check, jit, random

X = np.arange(64, dtype=np.int32)

HINTS = [
    "tl.multiple_of(x_ptr, 16)", "tl.multiple_of(x_ptr, (16,))", "x_ptr.multiple_of(4)", "tl.max_contiguous(x_ptr, 1)",
]  # fmt: skip


@pytest.mark.parametrize("hint", HINTS)
def test_hints_on_pointers(hint):
    check(f"tl.load({hint} + tl.arange(0, 64))", {"x": X}, X)


OFFSETS = [
    "tl.multiple_of(n, 8) + tl.arange(0, 16)", "tl.max_contiguous(n + tl.arange(0, 16), 16)",
    "tl.max_contiguous(tl.multiple_of(n + tl.arange(0, 16), 16), 16)",
    "tl.multiple_of(tl.max_contiguous(n + tl.arange(0, 16), (16,)), (8,))",
    "n + tl.arange(0, 16) // tl.max_constancy(tl.zeros((16,), tl.int32) + 4, 16) * 4",
    "(n + tl.arange(0, 16)).multiple_of(16).max_contiguous(16)",
]  # fmt: skip


@pytest.mark.parametrize("offsets", OFFSETS)
def test_hints_on_offsets(offsets):
    expected = X[16 + np.arange(16) // 4 * 4] if "constancy" in offsets else X[16:32]
    check(f"tl.load(x_ptr + ({offsets}))", {"x": X, "n": 16}, expected)


def test_hints_of_several_dimensions():
    code = """
        i = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
        i = tl.max_contiguous(tl.multiple_of(i, (8, 8)), (1, 8))
        out = tl.load(x_ptr + i)
    """
    check(code, {"x": X}, X.reshape(8, 8))


@pytest.mark.parametrize("wrapped", ["i % n", "tl.where(i < n, i, 0)", "tl.minimum(i, n - 1)"])
@pytest.mark.parametrize("n", [57, 13])
def test_promises_of_indices_that_wrap(wrapped, n):
    """Public kernels promise runs as long as the tile. Rows of an odd length have no room for what is past their end:
    every access is exact, and none leaves the array."""
    code = f"""
        i = tl.arange(0, 64)
        i = tl.max_contiguous(tl.multiple_of({wrapped}, 64), 64)
        rows = tl.arange(0, 8)
        out = tl.load(x_ptr + rows[:, None] * n + i[None, :])
    """
    i = np.arange(64)
    column = {"i %": i % n, "tl.": np.where(i < n, i, 0 if "where" in wrapped else n - 1)}[wrapped[:3]]
    x = np.arange(8 * n, dtype=np.float32).reshape(8, n)
    check(code, {"x": x, "n": n}, x[:, column])


def test_hints_as_statements():
    """They are about the name; also in a loop, where a name from outside of it stays what it is."""
    code = """
        i = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
        tl.max_contiguous(tl.multiple_of(i, (8, 8)), (1, 8))
        tl.multiple_of(n, 8)
        out = tl.zeros((8, 8), tl.int32)
        for k in range(2):
            tl.multiple_of(n, 8)
            offset = k * n
            tl.multiple_of(offset, 8)
            out += tl.load(x_ptr + (i + offset) % 64)
    """
    check(code, {"x": X, "n": 16}, (X + np.roll(X, -16)).reshape(8, 8))


@pytest.mark.parametrize("condition", ["n > 0", "n % 16 == 0", "n >= 16 and n < 32", "True"])
def test_assume(condition):
    check(f"tl.assume({condition})\nout = tl.load(x_ptr + n + tl.arange(0, 16))", {"x": X, "n": 16}, X[16:32])


OPTIONS = [
    {"num_warps": 1}, {"num_warps": 8}, {"num_stages": 1}, {"num_stages": 5}, {"num_ctas": 1}, {"num_ctas": 4},
    {"num_warps": 4, "num_stages": 3},
    {"enable_fp_fusion": False}, {"maxnreg": 64},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*num_ctas=4 is not done")
@pytest.mark.parametrize("options", OPTIONS)
def test_launch_options(options):
    check("x * 2", {"x": X}, X * 2, **options)


@pytest.mark.parametrize("shape", [(64,), (63,), (1,), (7, 9)])
def test_a_barrier_changes_nothing(shape):
    x = random(shape, "int32")
    check("y = x + 1\ntl.debug_barrier()\nout = y * 2", {"x": x}, (x.values + np.int32(1)) * np.int32(2))


SIZES = [1, 2, 3, 4, 8, 12, 15, 16, 17, 31, 32, 48, 100, 1024, 1000]


@pytest.mark.parametrize("size", SIZES)
def test_specialisation_by_divisibility_is_only_an_optimisation(size):
    """Sizes of every class, over aligned and unaligned arrays, through one kernel."""
    x = np.arange(2100, dtype=np.int32)
    out = np.zeros(2100, np.int32)
    for shift in [0, 1, 2, 4]:
        out[:] = -1
        COPY[(2,)](as_argument(x[shift:]), as_argument(out[shift:]), size, 1024)
        expected = np.full(2100, -1, np.int32)
        expected[shift : shift + 2 * size] = x[shift : shift + 2 * size] * 3
        assert (out == expected).all()


def as_argument(array):
    if isinstance(Buffer(array).argument, np.ndarray):
        return array
    pytest.skip("the target does not read host memory")


COPY = jit("""
    def kernel(x, out, n, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        place = tl.program_id(0) * n + i
        tl.store(out + place, tl.load(x + place, mask=i < n) * 3, mask=i < n)
""")


@pytest.mark.parametrize("keyword", ["do_not_specialize", "do_not_specialize_on_alignment"])
def test_do_not_specialize(keyword):
    import triton

    space = {}
    source = """
        def kernel(x, out, n):
            i = tl.arange(0, 64)
            tl.store(out + i, tl.load(x + i) * n)
    """
    from harness import define

    space = define(source)
    kernel = triton.jit(space["kernel"], **{keyword: ["n", "x"]})
    for n in [1, 8, 16, 17]:
        out = Buffer(np.zeros(64, np.int32))
        kernel[(1,)](Buffer(X).argument, out.argument, n)
        assert (out.host().values == X * n).all()
