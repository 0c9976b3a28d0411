"""Arrays as arguments: of which libraries, of which types, on which devices."""

import gc
import sys
import weakref

import numpy as np
import pytest
import torch

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def nothing(x):
    pass


@triton.jit
def copy(source, target, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    mask = index < n
    tl.store(target + index, tl.load(source + index, mask=mask), mask=mask)


def type_of(array):
    return nothing.warmup(array, grid=(1,)).metadata.signature["x"]


NUMPY_TYPES = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "longlong": "i64",
    "intp": "i64",
}
TORCH_TYPES = {name: kind for name, kind in NUMPY_TYPES.items() if name not in ("longlong", "intp")} | {
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_types(name):
    assert type_of(np.zeros(4, name)) == "*" + NUMPY_TYPES[name]


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_torch_types(name):
    dtype = getattr(torch, name)
    assert type_of(torch.zeros(4, dtype=dtype)) == "*" + TORCH_TYPES[name]
    assert type_of(dtype) == "*" + TORCH_TYPES[name]
    assert type_of(triton.MockTensor(dtype)) == "*" + TORCH_TYPES[name]


def test_numpy_dtypes_stand_for_arrays_in_warmups():
    compiled = nothing.warmup(np.dtype("float32"), grid=(1,))
    assert compiled.metadata.signature["x"] == "*fp32"
    assert compiled.metadata.divisibility["x"] == 16


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(4, np.complex64),
        np.zeros(4, np.longdouble),
        np.zeros(4, object),
        np.zeros(4, ">f4"),
        np.zeros(4, "S3"),
        np.zeros(4, "M8[s]"),
        np.zeros(4, [("a", "f4")]),
        torch.zeros(4, dtype=torch.complex64),
    ],
    ids=lambda array: str(array.dtype),
)
def test_unsupported_types(array):
    with pytest.raises(TypeError) as error:
        nothing[(1,)](array)
    assert str(error.value) == (
        f"nothing() argument 'x': arrays of dtype {array.dtype} are not supported; convert it to bool, int8 "
        "to int64, uint8 to uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, "
        "float8_e4m3fnuz or float8_e5m2fnuz"
    )
    with pytest.raises(TypeError, match=r"argument 'x\[1\]': arrays of dtype"):
        nothing[(1,)]((1, array))


class Wrapped:
    """An array behind one protocol only."""

    def __init__(self, array, **attributes):
        self.array = array
        self.__dict__.update(attributes)


class DataPointer(Wrapped):
    def data_ptr(self):
        return self.array.ctypes.data


class Interface(Wrapped):
    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class CudaInterface(Wrapped):
    @property
    def __cuda_array_interface__(self):
        return self.array.__array_interface__


class Dlpack(Wrapped):
    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)


class OldDlpack(Wrapped):
    def __dlpack__(self, stream=None):
        return self.array.__dlpack__(stream=stream)


class Subclass(np.ndarray):
    pass


@pytest.mark.parametrize(
    "wrap",
    [
        lambda array: array,
        lambda array: array.view(Subclass),
        torch.from_numpy,
        lambda array: torch.nn.Parameter(torch.from_numpy(array)),
        lambda array: DataPointer(array, dtype="float32"),
        lambda array: DataPointer(array, dtype=torch.float32, device=torch.device("cpu")),
        lambda array: DataPointer(array, dtype=tl.float32),
        Interface,
        Dlpack,
        OldDlpack,
    ],
)
def test_every_protocol_reaches_the_memory(wrap):
    source = np.arange(16, dtype=np.float32)
    target = np.zeros(16, np.float32)
    copy[(1,)](wrap(source), wrap(target), 16, BLOCK=16)
    assert (target == source).all()


def test_the_kernel_sees_the_data_pointer():
    source = np.arange(32, dtype=np.float32)
    target = np.zeros(4, np.float32)
    copy[(1,)](source[10:20:3], target, 4, BLOCK=4)
    assert target.tolist() == [10, 11, 12, 13]
    copy[(1,)](torch.from_numpy(source)[5::2], target, 4, BLOCK=4)
    assert target.tolist() == [5, 6, 7, 8]


def test_requires_grad():
    source, target = torch.arange(4.0, requires_grad=True), torch.zeros(4)
    copy[(1,)](source, target, 4, BLOCK=4)
    assert torch.equal(source.detach(), target)


def test_empty_arrays():
    for array in (np.zeros(0), torch.zeros(0)):
        nothing[(1,)](array)


def test_reinterpret():
    source = torch.tensor([0x3C, 0x40, 0x44], dtype=torch.uint8)
    target = torch.zeros(3, dtype=torch.float8_e5m2)
    view = triton.reinterpret(source, tl.float8e5)
    assert type_of(view) == "*fp8e5"
    copy[(1,)](view, target, 3, BLOCK=4)
    assert target.float().tolist() == [1, 2, 4]
    assert triton.reinterpret(view, source.dtype) is source
    assert view.new_empty((3, 4)).shape == (3, 4) and view.new_empty((3,)).dtype == tl.float8e5
    assert view.data.dtype == source.dtype
    view.data = view.data[1:]
    copy[(1,)](view, target, 2, BLOCK=4)
    assert target.float().tolist() == [2, 4, 4] and view.shape == (2,)
    array = np.array([0x3C00, 0x4000], np.uint16)
    copy[(1,)](triton.reinterpret(array, tl.float16), target.float(), 2, BLOCK=2)
    with pytest.raises(TypeError):
        triton.reinterpret(3, tl.float16)


def test_misaligned_elements():
    array = np.frombuffer(bytearray(64), np.uint8)[1:33].view(np.float32)
    with pytest.raises(ValueError, match="no multiple of its element size, 4 bytes; pass a copy"):
        nothing[(1,)](array)


# ---- devices


@pytest.mark.parametrize(
    "array",
    [
        DataPointer(np.zeros(4), dtype=torch.float64, device=torch.device("cuda", 1)),
        DataPointer(np.zeros(4), dtype=torch.float64, device="cuda:1"),
    ],
)
def test_arrays_on_a_gpu(array, target):
    with pytest.raises(ValueError) as error:
        nothing[(1,)](array)
    assert str(error.value) == (
        f"nothing() argument 'x': it is on cuda:1 and cannot be accessed from the target '{target}' (TRITON_TARGET); "
        "pass an array that is on the CPU"
    )


def test_cuda_array_interface(target):
    with pytest.raises(ValueError, match=f"it is on cuda:0 and cannot be accessed from the target '{target}'"):
        nothing[(1,)](CudaInterface(np.zeros(4)))


def test_mixed_devices():
    host, device = np.zeros(4), CudaInterface(np.zeros(4))
    with pytest.raises(ValueError) as error:
        copy[(1,)](host, device, 4, BLOCK=4)
    assert str(error.value) == (
        "copy() argument 'target': it is on cuda:0, but argument 'source' is on cpu; all arrays of a launch must be on "
        "one device"
    )


# ---- arrays that must not be written


@triton.jit
def scale_in_place(x, y, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    pointers = x + index
    for _ in range(n):
        tl.store(pointers, tl.load(pointers) + tl.load(y + index))
        pointers += BLOCK


def read_only(array):
    array.flags.writeable = False
    return array


def test_stores_to_read_only_arrays():
    target = read_only(np.zeros(4, np.float32))
    with pytest.raises(ValueError) as error:
        copy[(1,)](np.ones(4, np.float32), target, 4, BLOCK=4)
    assert str(error.value) == (
        "copy() argument 'target': the array is read-only, and the kernel stores to it; "
        "pass a copy, or make it writeable"
    )
    assert not target.any()


def test_loads_from_read_only_arrays():
    target = np.zeros(4, np.float32)
    for source in (read_only(np.ones(4, np.float32)), np.broadcast_to(np.float32(1), 4)[:1]):
        copy[(1,)](source, target, 1, BLOCK=4)
        assert target[0] == 1


def test_stores_through_pointers_that_a_loop_carries():
    y = read_only(np.ones(4, np.float32))
    x = np.zeros(8, np.float32)
    scale_in_place[(1,)](x, y, 2, BLOCK=4)
    assert x.tolist() == [1.0] * 8
    with pytest.raises(ValueError, match=r"scale_in_place\(\) argument 'x': the array is read-only"):
        scale_in_place[(1,)](read_only(x), y, 2, BLOCK=4)


def test_read_only_through_other_protocols():
    array = read_only(np.zeros(4, np.float32))
    for wrap in (Interface, Dlpack):
        with pytest.raises(ValueError, match="read-only"):
            copy[(1,)](np.ones(4, np.float32), wrap(array), 4, BLOCK=4)


# ---- lifetimes


@pytest.mark.parametrize(
    "make", [np.zeros, torch.zeros, lambda n: Interface(np.zeros(n)), lambda n: Dlpack(np.zeros(n))]
)
def test_no_reference_to_an_array_is_kept(make):
    array = make(4)
    before = sys.getrefcount(array)
    nothing[(1,)](array)
    nothing.run(array, grid=(1,))
    nothing.warmup((array, 2), grid=(1,))
    with pytest.raises(TypeError):
        nothing[(1,)](array, zzz=1)
    with pytest.raises(TypeError):
        nothing[(1,)]((array, []))
    assert sys.getrefcount(array) == before
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None


def test_constants_are_kept_once():
    value = "a string of its own" + str(id(object()))
    nothing[(1,)](value)
    before = sys.getrefcount(value)
    for _ in range(10):
        nothing[(1,)](value)
    assert sys.getrefcount(value) == before
