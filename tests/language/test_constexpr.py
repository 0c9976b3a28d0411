"""What is decided while a kernel is compiled."""

import textwrap
from collections import namedtuple

import numpy as np
import pytest
from harness import Buffer, check, jit

import triton
import triton.language as tl

X = np.arange(1, 9, dtype=np.int32)

EXPRESSIONS = [
    "C + 1", "C * 2 - 3", "C // 4", "C % 4", "C ** 2", "-C", "C << 2", "C >> 1", "C & 6", "C | 8", "C ^ 5", "~C",
    "abs(-C)",
    "min(C, 3)", "max(C, 3, 99)", "int(C / 2)", "len((1, 2, C))", "C if C > 3 else 0", "(C > 3) + 0", "not C",
    "C == 7 and 5",
    "C or 4", "C < 10 < 20", "int(F * 4)", "round(F * 3)", "len(S)", "int(S == 'abc')", "(1, 2, 3)[C - 6]", "(C, C)[0]",
    "int('abc' in S)", "T[1]", "len(T)", "sum(T)", "T[-1] + T[0]", "int(N is None)", "int(isinstance(C, int))",
    "divmod(C, 4)[1]",
    "int(bool(C))", "int(str(C) == '7')", "[1, 2, C][2]", "C.bit_length()", "{'a': 5}['a']",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression):
    values = {"C": 7, "F": 2.5, "S": "abc", "T": (3, 4, 5), "N": None}
    names = {name: tl.constexpr(value) for name, value in values.items()}
    check(f"x + ({expression})", {"x": X}, X + int(eval(expression, values)), names=names)


def test_constants_choose_branches_that_would_not_compile():
    source = """
        def kernel(out, KIND: tl.constexpr):
            if KIND == "int":
                value = 3
            elif KIND == "tile":
                value = tl.arange(0, 4)
            else:
                value = does_not_exist + 1
            tl.store(out + tl.arange(0, 4), value)
    """
    for kind, expected in [("int", [3] * 4), ("tile", [0, 1, 2, 3])]:
        out = Buffer(np.zeros(4, np.int32))
        jit(source)[(1,)](out.argument, kind)
        assert out.host().values.tolist() == expected


@pytest.mark.parametrize("value", [1, 7, -3, 0, True, 2**40, 1.5, "sum", None, (1, 2), tl.float16])
def test_kinds_of_constants(value):
    source = "def kernel(out, C: tl.constexpr, D: tl.constexpr):\n    tl.static_assert(C == D)\n    tl.store(out, 1)\n"
    out = Buffer(np.zeros(1, np.int32))
    jit(source)[(1,)](out.argument, value, value)
    assert out.host().values[0] == 1


def test_dtypes_are_constants():
    kernel = jit("""
        def kernel(x, out, DTYPE: tl.constexpr):
            i = tl.arange(0, 8)
            y = tl.load(x + i).to(DTYPE)
            tl.static_assert(y.dtype == DTYPE)
            if DTYPE.is_floating():
                y = y / 2
            tl.store(out + i, y)
    """)
    for dtype, expected in [(tl.float32, X / 2), (tl.int32, X), (tl.float64, X / 2)]:
        out = Buffer(np.zeros(8, np.float64))
        kernel[(1,)](Buffer(X).argument, out.argument, dtype)
        assert (out.host().values == expected).all()


def test_dtype_of_pointers_and_tiles():
    code = """
        tl.static_assert(x_ptr.dtype.element_ty == tl.float16)
        tl.static_assert(x.dtype == tl.float16 and x.type.scalar == tl.float16)
        tl.static_assert(x.dtype.primitive_bitwidth == 16 and x.dtype.is_floating() and not x.dtype.is_int())
        tl.static_assert(x_ptr.dtype.is_ptr() and n.dtype == tl.int32 and f.dtype == tl.float32)
        tl.static_assert(x.dtype != tl.bfloat16 and x.dtype in (tl.float16, tl.float32))
        tl.static_assert(tl.float16 == x.dtype)
        tl.static_assert(x.shape == (4,) and x.numel == 4)
        out = tl.zeros(x.shape, x_ptr.dtype.element_ty)
    """
    check(code, {"x": np.ones(4, np.float16), "n": 2, "f": 1.5}, np.zeros(4, np.float16))


ARGUMENTS = [
    (1, "int32"), (5, "int32"), (-(2**31), "int32"), (2**31, "int64"), (2**40, "int64"), (-(2**31) - 1, "int64"),
    (2**63, "uint64"), (1.5, "float32"), (True, "int1"), (np.int64(3), "int32"), (np.uint16(3), "int32"),
    (np.int64(2**40), "int64"), (np.float32(1.5), "float32"), (np.float64(1.5), "float32"), (np.bool_(True), "int1"),
]  # fmt: skip


@pytest.mark.parametrize("value, dtype", ARGUMENTS)
def test_dtypes_of_scalar_arguments(value, dtype):
    """The first dtype that holds an integer, float32 for every float; NumPy's scalars count as Python's."""
    kernel = jit(
        f"def kernel(out, v):\n    tl.static_assert(v.dtype == tl.{dtype}, str(v.dtype))\n    tl.store(out, v)\n"
        if value != 1 or isinstance(value, (bool, np.generic))
        else "def kernel(out, v):\n    tl.store(out, v)\n"
    )
    out = Buffer(np.zeros(1, {"uint64": np.uint64, "int64": np.int64}.get(dtype, np.float64)))
    kernel[(1,)](out.argument, value)
    assert out.host().values[0] == value


def test_one_is_a_constant_by_specialisation():
    """A stride of 1 is known while compiling; a parameter that must not be specialised is not."""
    kernel = jit("def kernel(out, n):\n    tl.store(out + tl.arange(0, n + 1), 3)\n")
    out = Buffer(np.zeros(2, np.int32))
    kernel[(1,)](out.argument, 1)
    assert out.host().values.tolist() == [3, 3]


def test_annotated_names_stay_constants():
    check("N: tl.constexpr = 4\nM: tl.constexpr = N * 2\nout = tl.arange(0, M)", {}, np.arange(8, dtype=np.int32))
    check("n = 4\nm = n * 2\nout = tl.arange(0, m)", {}, np.arange(8, dtype=np.int32))


def test_constexpr_objects_on_the_host():
    c = tl.constexpr(5)
    assert c + 1 == 6 and c.value == 5 and bool(c == 5)


def test_run_time_values_stay_what_they_are():
    check("c = tl.constexpr(n)\nout = x * c + tl.constexpr(x)", {"x": X, "n": 5}, X * 6)


def test_shapes_from_tuples_of_constants():
    names = {"SHAPE": tl.constexpr((2, 3))}
    check("tl.zeros(SHAPE, tl.int32) + SHAPE[1]", {}, np.full((2, 3), 3, np.int32), names=names)
    check("tl.zeros([SHAPE[0], SHAPE[1] * 2], tl.int32)", {}, np.zeros((2, 6), np.int32), names=names)


def test_meta_of_the_first_release():
    """**META is a mapping of the launch's keywords, known while compiling."""
    kernel = jit("""
        def kernel(x, out, n, **META):
            SIZE = META["SIZE"]
            i = tl.program_id(0) * META["SIZE"] + tl.arange(0, SIZE)
            mask = i < n
            y = tl.load(x + i, mask=mask)
            if META["DOUBLE"]:
                y = y * 2
            tl.store(out + i, y, mask=mask)
    """)
    for double in [False, True]:
        out = Buffer(np.zeros(8, np.int32))
        kernel[lambda meta: (triton.cdiv(8, meta["SIZE"]),)](Buffer(X).argument, out.argument, 8, SIZE=3, DOUBLE=double)
        assert (out.host().values == X * (1 + double)).all()


@pytest.mark.host
def test_keywords_of_other_names():
    with pytest.raises(TypeError, match=r"JIT functions do not support \*\*kwargs: .*'kernel' that \*\*options"):
        jit("""
            def kernel(x, **options):
                tl.store(x, options["value"])
        """)


def test_a_matrix_product_of_the_first_release():
    kernel = jit("""
        def kernel(A, B, C, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, **META):
            BLOCK_M, BLOCK_N, BLOCK_K = META["BLOCK_M"], META["BLOCK_N"], META["BLOCK_K"]
            pid = tl.program_id(0)
            pid_m, pid_n = pid // (N // BLOCK_N), pid % (N // BLOCK_N)
            rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
            rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
            rk = tl.arange(0, BLOCK_K)
            A = A + (rm[:, None] * stride_am + rk[None, :] * stride_ak)
            B = B + (rk[:, None] * stride_bk + rn[None, :] * stride_bn)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(K, 0, -BLOCK_K):
                a = tl.load(A)
                b = tl.load(B)
                acc += tl.dot(a, b)
                A += BLOCK_K * stride_ak
                B += BLOCK_K * stride_bk
            C = C + (rm[:, None] * stride_cm + rn[None, :] * stride_cn)
            tl.store(C, acc)
    """)
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-3, 4, shape).astype(np.float32) for shape in [(64, 48), (48, 32)])
    out = Buffer(np.zeros((64, 32), np.float32))
    strides = (48, 1, 32, 1, 32, 1)
    kernel[(4 * 2,)](
        Buffer(a).argument, Buffer(b).argument, out.argument, 64, 32, 48, *strides, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16
    )
    assert (out.host().values == a @ b).all()


@triton.jit
def mixed(offsets: tl.constexpr, n: tl.constexpr, STEP: tl.constexpr):
    tl.static_assert(STEP == 4)
    return offsets * n + tl.arange(0, STEP)


@triton.jit
def calls_mixed(out_ptr, n):
    four = 4
    tl.store(out_ptr + tl.arange(0, 4), mixed(tl.arange(0, 4), n, four))


def test_values_for_constexpr_parameters_of_functions():
    """A function that is called from a kernel takes tiles and scalars there, too; a constant stays one."""
    out = Buffer(np.zeros(4, np.int32))
    calls_mixed[(1,)](out.argument, 10)
    assert out.host().values.tolist() == [0, 11, 22, 33]


def test_attributes_that_there_are():
    code = """
        tl.static_assert(hasattr(x, "shape") and hasattr(x, "sum") and not hasattr(x, "mean"))
        tl.static_assert(hasattr(pair, "left") and not hasattr(pair, "middle") and hasattr((x, 1), "index"))
        tl.static_assert(hasattr(tl, "dot") and not hasattr(tl, "dots") and not hasattr(N, "shape"))
        out = x
    """
    left_and_right = namedtuple("left_and_right", "left right")
    x = np.arange(4, dtype=np.int32)
    names = {"make": left_and_right, "N": tl.constexpr(3)}
    check("pair = make(x, 2)" + textwrap.dedent(code), {"x": x}, x, names=names)


def test_named_tuples_are_replaced():
    code = """
        pair = make(x, 2)
        other = pair._replace(right=x + 5)
        for _ in range(2):
            other = other._replace(left=other.left + 1)
        out = other.left * pair.right + other.right
    """
    x = np.arange(4, dtype=np.int32)
    names = {"make": namedtuple("left_and_right", "left right")}
    check(textwrap.dedent(code), {"x": x}, (x + 2) * 2 + x + 5, names=names)
    with pytest.raises(triton.CompilationError if not triton.knobs.runtime.interpret else ValueError, match="middle"):
        check("out = make(x, 2)._replace(middle=x)", {"x": x}, x, names=names)


def test_types_of_constants_and_tuples():
    code = """
        N: tl.constexpr = 3
        n = 3
        pair: tl.constexpr = (3, (4, 5))
        tl.static_assert(pair.type == tl.constexpr_type((3, (4, 5))) and tl.constexpr_type((3, (4, 5))) == pair.type)
        tl.static_assert(pair.type != tl.constexpr_type((3, 4)) and pair.type != tl.constexpr_type(3))
        tl.static_assert(N.type == tl.constexpr_type(3) and isinstance("text".type, tl.constexpr_type))
        tl.static_assert(n.type == tl.int32 and (n, x).type == tl.tuple_type([tl.int32, x.type]))
        out = x
    """
    x = np.arange(4, dtype=np.int32)
    check(textwrap.dedent(code), {"x": x}, x)


@triton.jit
def annotate(x, n):
    total: tl.constexpr = n + 1
    tl.store(x, total)


@pytest.mark.compiled
def test_a_run_time_value_that_is_annotated_constexpr(monkeypatch):
    """It is what it is, and that is said."""
    x = Buffer(np.zeros(1, np.int32))
    with pytest.warns(UserWarning, match="annotated tl.constexpr, but the value is known at run time only, int32"):
        annotate[(1,)](x.argument, 41)
    assert x.host().values[0] == 42
    monkeypatch.setenv("TRITON_STRICT", "1")
    with pytest.raises(triton.CompilationError, match="annotated tl.constexpr"):
        triton.jit(annotate.fn)[(1,)](x.argument, 7)


def test_the_message_of_a_static_assertion_that_holds_is_not_evaluated():
    kernel = jit("""
        def kernel(out, n, N: tl.constexpr):
            tl.static_assert(N == 4, f"run-time value {n}")
            tl.static_assert(n.dtype == tl.int32, 1 // 0)
            assert N == 4, undefined
            tl.store(out, n)
    """)
    out = Buffer(np.zeros(1, np.int32))
    kernel[(1,)](out.argument, 7, 4)
    assert out.host().values == 7
    with pytest.raises(triton.CompilationError):
        kernel[(1,)](out.argument, 7, 5)


@pytest.mark.compiled
def test_names_that_are_declared_first():
    kernel = jit("""
        def kernel(out, n):
            y: tl.constexpr
            z: tl.constexpr
            x, (y, z) = 3, (4, (1, 2))
            tl.static_assert(x.dtype == tl.int32 and y.type == tl.constexpr_type(4) and z.type == (1, 2).type)
            tl.store(out + tl.arange(0, y), x)
            if (y := y + 4) != 8:
                tl.static_assert(False)
            tl.store(out + 4 + tl.arange(0, y), n)
            y = n
            tl.store(out + 12, y)
    """)
    out = Buffer(np.zeros(13, np.int32))
    kernel[(1,)](out.argument, 7)
    assert out.host().values.tolist() == [3] * 4 + [7] * 9
