"""Objects that behave badly as arguments: an exception, never a crash."""

import ctypes
import random

import numpy as np
import pytest
import torch

import triton
import triton.language as tl


@triton.jit
def nothing(x):
    pass


@triton.jit
def several(a, b, c: tl.constexpr, *rest, d=None, **META):
    pass


class Raises:
    """Every attribute that may be looked at raises."""

    def _raise(self, *args, **kwargs):
        raise RuntimeError("no")

    data_ptr = _raise
    dtype = property(_raise)
    device = property(_raise)
    __array_interface__ = property(_raise)
    __dlpack__ = _raise
    __index__ = _raise
    __eq__ = _raise
    __hash__ = _raise
    __repr__ = _raise


class Interface:
    def __init__(self, value):
        self.value = value

    @property
    def __array_interface__(self):
        return self.value


class Dlpack:
    def __init__(self, result):
        self.result = result

    def __dlpack__(self, **kwargs):
        return self.result


class Pointer:
    def __init__(self, address, dtype="float32", device="cpu"):
        self.address, self.dtype, self.device = address, dtype, device

    def data_ptr(self):
        return self.address


class Meta(type):
    def __getattribute__(cls, name):
        if name.startswith("__triton") or name in ("data_ptr", "__dlpack__"):
            raise RuntimeError("no")
        return super().__getattribute__(name)


class OddClass(metaclass=Meta):
    pass


class BadIndex:
    def __index__(self):
        return "text"


class LyingIndex:
    def __index__(self):
        raise KeyError("index")


class BadKind:
    __triton_kind__ = 5


class ConstexprLike:
    """Claims to be a constexpr, and holds itself."""

    __triton_kind__ = "constexpr"

    @property
    def value(self):
        return self


class NoValue:
    __triton_kind__ = "constexpr"


def capsule(name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(1, name, None)


NAME = b"something else"
ODD = [
    Raises(),
    Interface(None),
    Interface({}),
    Interface({"data": 5, "typestr": "<f4"}),
    Interface({"data": (5,), "typestr": "<f4"}),
    Interface({"data": ("a", False), "typestr": "<f4"}),
    Interface({"data": (-1, False), "typestr": "<f4"}),
    Interface({"data": (2**70, False), "typestr": "<f4"}),
    Interface({"data": (16, False), "typestr": ""}),
    Interface({"data": (16, False), "typestr": "<f44444"}),
    Interface({"data": (16, False), "typestr": 7}),
    Interface({"data": (16, False)}),
    Dlpack(None),
    Dlpack(5),
    Dlpack(capsule(NAME)),
    Pointer("address"),
    Pointer(None),
    Pointer(-1),
    Pointer(2**64),
    Pointer(16, dtype=None),
    Pointer(16, dtype="complex64"),
    Pointer(16, dtype=Raises()),
    Pointer(16, device=None),
    Pointer(16, device="cuda:99999999999999999999"),
    Pointer(16, device=Raises()),
    Pointer(16, device="\udcff"),
    OddClass(),
    BadIndex(),
    LyingIndex(),
    BadKind(),
    ConstexprLike(),
    NoValue(),
    torch.zeros(4, device="meta"),
    torch.zeros(4).to_sparse(),
    object(),
    type,
    ...,
    NotImplemented,
    slice(3),
    range(3),
    {1},
    b"bytes",
    memoryview(b"bytes"),
    np.zeros(3, "U4"),
    np.datetime64("2020-01-01"),
    np.complex64(1),
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_each(number):
    for argument in (ODD[number], (1, ODD[number]), tl.constexpr(ODD[number])):
        for launch in (nothing[(0,)], lambda x: nothing.warmup(x, grid=(1,)), lambda x: several[(0,)](1, 2, x, x, d=x)):
            try:
                launch(argument)
            except Exception as error:
                assert not isinstance(error, (SystemError, triton.InternalError)), error


def test_random_calls():
    """Any number of anything, under any name."""
    arrays = [np.zeros(8), np.zeros((2, 2), np.float32)[::-1], torch.zeros(3), torch.ones(2, dtype=torch.bfloat16)]
    numbers = [0, 1, -1, 16, 2**31, 2**63, 2**64, 2**100, 0.5, float("nan"), True, np.int8(-3), np.float16(2)]
    others = [None, "text", (), (1, (2, (3, None))), tl.float32, tl.constexpr(4), torch.float32, nothing, len]
    values = 8 * (arrays + numbers + others) + ODD
    names = ["a", "b", "c", "d", "e", "x", "rest", "META", *triton._C.launch_options()]
    grids = [1, (0,), (1, 2), [1], lambda meta: (1,), lambda meta: meta["a"], -1, None, "grid", 0.5, ()]
    source = random.Random(1)
    kernels = [nothing, several]
    launched = 0
    for _ in range(2000):
        kernel = source.choice(kernels)
        args = source.choices(values, k=source.randrange(5))
        kwargs = {name: source.choice(values) for name in source.sample(names, source.randrange(4))}
        try:
            kernel[source.choice(grids)](*args, **kwargs)
            launched += 1
        except Exception as error:
            assert not isinstance(error, (SystemError, triton.InternalError)), error
    assert launched > 20


def test_options_without_a_truth():
    with pytest.raises(ValueError, match="truth value of an array"):
        nothing[(1,)](2, warmup=np.zeros(3))
    with pytest.raises(TypeError, match="must be hashable"):
        nothing[(1,)](2, debug=np.zeros(3))


def test_kernels_that_are_not_initialised():
    from triton._C import Kernel

    bare = Kernel.__new__(Kernel)
    for use in (
        lambda: bare[(1,)],
        lambda: bare.run(1, grid=(1,)),
        lambda: bare.warmup(1),
        lambda: Kernel("name", [5], None),
        lambda: Kernel("name", (), None),
        lambda: Kernel(1, [], None),
        lambda: nothing.__init__(nothing.fn),
    ):
        with pytest.raises((TypeError, AttributeError)):
            use()
    assert bare.variants() == []
    nothing[(1,)](2)


def test_types_of_the_extension_cannot_be_made():
    from triton import _C

    with pytest.raises(TypeError):
        _C.Launcher()
    with pytest.raises(TypeError):
        _C.compile(nothing, [], {}, "cpu")
    with pytest.raises(triton.CompilationError):
        _C.compile(nothing, (("*wrong", 16),), {}, "cpu", True)


def test_a_compiled_kernel_without_code_says_so():
    from triton.compiler import CompiledKernel

    empty = CompiledKernel.__new__(CompiledKernel)
    uses = [
        lambda: empty.run(*[None] * 9),
        lambda: empty.fn,
        lambda: empty.info,
        lambda: empty.n_regs,
        lambda: empty.metadata,
        lambda: empty.asm,
        lambda: empty[(1,)](),
        empty._init_handles,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="has no code"):
            use()
    for arguments in [(), (nothing, {}, "func @f() {"), (nothing, {"target": "cpu"}, "nonsense"), (1, {}, "")]:
        with pytest.raises((TypeError, ValueError, KeyError, triton.CompilationError)):
            CompiledKernel.__new__(CompiledKernel)._restore(*arguments)
