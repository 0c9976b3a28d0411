"""What of the language works on the host: dtypes, compile-time values, stubs."""

import copy
import inspect
import pickle
import subprocess
import sys

import pytest

import triton.language as tl
from triton import _C

DTYPES = {
    "int1": 1, "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "float8e4nv": 8, "float8e5": 8, "float8e4b15": 8,
    "float8e4b8": 8, "float8e5b16": 8, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64,
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name):
    dtype = getattr(tl, name)
    assert repr(dtype) == f"triton.language.{name}"
    assert dtype.primitive_bitwidth == DTYPES[name] and dtype.itemsize == max(DTYPES[name] // 8, 1)
    assert dtype == tl.dtype(str(dtype)) and hash(dtype) == hash(tl.dtype(str(dtype)))
    assert dtype.is_floating() == ("float" in name) and dtype.is_int() == ("int" in name)
    assert dtype.is_int_signed() == (name.startswith("int") and name != "int1")
    assert dtype.scalar is dtype and not dtype.is_ptr() and not dtype.is_block()
    assert sum(dtype != getattr(tl, other) for other in DTYPES) == len(DTYPES) - 1


def test_limits_of_integers():
    assert tl.int8.get_int_min_value() == -128 and tl.int8.get_int_max_value() == 127
    assert tl.uint16.get_int_min_value() == 0 and tl.uint16.get_int_max_value() == 65535


def test_unknown_dtype():
    with pytest.raises(ValueError, match="no element type is called 'fp31'; there are: int8"):
        tl.dtype("fp31")


def test_pointer_types():
    pointer = tl.pointer_type(tl.float16)
    assert pointer.element_ty == tl.float16 and pointer.is_ptr() and pointer.primitive_bitwidth == 64
    assert pointer == tl.pointer_type(tl.float16) != tl.pointer_type(tl.float16, const=True)
    assert tl.str_to_ty("*kfp16") == tl.pointer_type(tl.float16, const=True) and tl.str_to_ty("u8") == tl.uint8
    with pytest.raises(TypeError, match="a pointer points to a tl.dtype"):
        tl.pointer_type(3)


def test_block_types():
    tile = tl.block_type(tl.int32, [4, tl.constexpr(8)])
    assert tile.shape == (4, 8) and tile.numel == 32 and tile.scalar == tl.int32 and tile.nbytes == 128
    assert tile.is_block() and tile == tl.block_type(tl.int32, (4, 8))


def test_constexpr_operators():
    c = tl.constexpr(7)
    assert isinstance(c + 1, tl.constexpr) and (c + 1).value == 8 and (1 - c).value == -6
    assert (c // 2).value == 3 and (-c % 4).value == 1 and (2**c).value == 128 and (c / 2).value == 3.5
    assert (c & 3).value == 3 and (c << 1).value == 14 and (~c).value == -8 and (c > 3).value is True
    assert bool(c == 7) and not bool(c != 7) and int(c) == 7 and list(range(c))[-1] == 6 and f"{c:03}" == "007"
    assert [10, 20][tl.constexpr(1)] == 20 and tl.constexpr((1, 2))[1].value == 2 and tl.constexpr(c).value == 7
    assert tl.constexpr(lambda x: x + 1)(2) == 3 and {c: "key"}[tl.constexpr(7)] == "key"


def test_constexprs_do_not_change():
    c = tl.constexpr((7, "x"))
    with pytest.raises(
        AttributeError, match=r"value of constexpr\[\(7, 'x'\)\] cannot be assigned: kernels are compiled"
    ):
        c.value = 8
    for same in (copy.copy(c), copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert isinstance(same, tl.constexpr) and same.value == (7, "x")


def test_constexpr_functions():
    @tl.constexpr_function
    def double(x):
        return 2 * x

    assert double(4) == 8 and double(tl.constexpr(4)).value == 8 and double.__name__ == "double"


def stubs():
    from triton.language.extra import cuda, libdevice

    for module in (tl, tl.math, tl.target_info, libdevice, cuda):
        for name, value in vars(module).items():
            if hasattr(value, "__triton_builtin__"):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


# These mean something on the host too; and one takes any keywords, so that the walker itself calls it.
ON_THE_HOST = {"aggregate_replace", "current_target", "is_cuda", "is_hip", "cuda_capability_geq"}


@pytest.mark.parametrize("stub", stubs())
def test_stubs_document_themselves(stub):
    """Each has a docstring and a signature, and says where it works when it is called elsewhere."""
    assert stub.__doc__ and stub.__doc__.rstrip().endswith((".", "`", "::", "``"))
    if stub.__name__ in ON_THE_HOST:
        return
    count = len([p for p in inspect.signature(stub).parameters.values() if p.default is p.empty and p.kind == 1])
    with pytest.raises(RuntimeError, match=f"tl.{stub.__triton_builtin__} was called by the Python interpreter"):
        stub(*range(count))


def test_every_stub_has_a_row():
    from pathlib import Path

    rows = Path(__file__).parents[2] / "csrc/frontend/builtins.def"
    text = rows.read_text()
    functions = {name for name, *_, traits, _ in _C._operations() if "function" in traits}
    names = {stub.values[0].__triton_builtin__ for stub in stubs()} - {"aggregate_replace"}
    # behind tl.map_elementwise, tl.atomic_poll and tl.make_tensor_descriptor
    hidden = (tl.reduction.map_elements, tl.programs.nanoseconds, tl.descriptor.promised_multiples)
    names |= {stub.__triton_builtin__ for stub in hidden}
    assert functions < names and all(f"BUILTIN({name}, " in text for name in names - functions)
    assert text.count("\nBUILTIN(") == len(names - functions)


def test_methods():
    for function in (tl.cast, tl.reshape, tl.permute, tl.trans, tl.sum, tl.max, tl.argmax, tl.exp, tl.sqrt, tl.sort):
        assert hasattr(tl.tensor, function.__name__)
    with pytest.raises(TypeError, match="exists only inside a kernel"):
        tl.tensor(1)


def test_import_needs_no_parser():
    """Importing reads no source and loads no NumPy."""
    code = "import sys, triton.language; assert not {'ast', 'inspect', 'numpy', 'difflib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)
