"""Arrays that a kernel must not read as they lie in memory, or that have none: refused by name, on every target."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.host


@triton.jit
def copy(source, target, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(target + index, tl.load(source + index, mask=index < n), mask=index < n)


@triton.jit
def nothing(x):
    pass


@triton.jit
def first_tile(source, target):
    target.store([0], source.load([0]))


def message(array, launch=lambda array: copy[(1,)](array, torch.zeros(16), 16, BLOCK=16)):
    with pytest.raises(ValueError) as error:
        launch(array)
    assert error.value.__cause__ is None and error.value.__context__ is None
    return str(error.value)


# ---- views that are computed when they are read

NEGATIVE = (
    "its negative bit is set (it is a view like the imaginary part of a conjugate), so its memory holds the opposite "
    "of its elements; pass its .resolve_neg()"
)


def negative_views():
    numbers = torch.arange(1.0, 17.0)
    complex_numbers = torch.complex(numbers, numbers)
    return {
        "of torch": torch._neg_view(numbers),
        "imaginary part of a conjugate": complex_numbers.conj().imag,
        "a part of it": complex_numbers.conj().imag[3:],
        "its data": complex_numbers.conj().imag.data,
        "as a parameter": torch.nn.Parameter(torch._neg_view(numbers)),
        "of integers": torch._neg_view(torch.arange(16)),
        "of halves": torch._neg_view(numbers.half()),
    }


@pytest.mark.parametrize("which", negative_views())
def test_negative_views(which):
    array = negative_views()[which]
    assert message(array) == "copy() argument 'source': " + NEGATIVE
    target = torch.zeros(16, dtype=array.dtype)
    copy[(1,)](array.resolve_neg(), target, len(array), BLOCK=16)
    assert torch.equal(target[: len(array)], array)


def test_negative_views_in_inference_mode():
    with torch.inference_mode():
        array = torch._neg_view(torch.arange(16.0))
        assert message(array) == "copy() argument 'source': " + NEGATIVE


def test_negative_views_after_the_first_launch():
    array, target = torch.arange(16.0), torch.zeros(16)
    for _ in range(3):
        copy[(1,)](array, target, 16, BLOCK=16)
        copy[(1,)](torch._neg_view(torch._neg_view(array)), target, 16, BLOCK=16)
        assert torch.equal(target, array)
        assert "negative bit" in message(torch._neg_view(array))
    assert "argument 'target': its negative bit" in message(
        torch._neg_view(target), lambda target: copy[(1,)](array, target, 16, BLOCK=16)
    )


def test_negative_views_inside_of_other_arguments():
    negative = torch._neg_view(torch.arange(16.0))
    assert message((1, negative), nothing[(1,)]) == "nothing() argument 'x[1]': " + NEGATIVE
    wrapper = triton.reinterpret(negative, tl.int32)
    assert message(wrapper, nothing[(1,)]) == "nothing() argument 'x': " + NEGATIVE
    nothing[(1,)](wrapper.resolve_neg())
    target = TensorDescriptor.from_tensor(torch.zeros(16), [16])
    text = message(TensorDescriptor.from_tensor(negative, [16]), lambda source: first_tile[(1,)](source, target))
    assert text.startswith("first_tile() argument 'source[0]': its negative bit is set")


ASKING = """
import torch, triton, triton.runtime.torch_bits
triton.runtime.torch_bits.find_negative_bit = lambda: {}
@triton.jit
def nothing(x):
    pass
nothing[(1,)](torch.zeros(4))
try:
    nothing[(1,)](torch._neg_view(torch.zeros(4)))
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("answer", ["None", "1 // 0", "('no', 'numbers')"])
def test_torch_is_asked_where_the_bit_is_not_found(answer, tmp_path):
    script = tmp_path / "asking.py"
    script.write_text(ASKING.format(answer))
    out = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout
    assert out == f"nothing() argument 'x': {NEGATIVE}\n"


def test_the_bit_is_found_where_torch_is():
    from triton.runtime.torch_bits import find_negative_bit

    assert find_negative_bit() is not None
    with FakeTensorMode():
        assert find_negative_bit() is not None
    with torch.device("meta"), torch.inference_mode():
        assert find_negative_bit() is not None


def test_the_bit_is_found_in_longer_objects(monkeypatch):
    from triton.runtime import torch_bits

    found = torch_bits.find_negative_bit()
    monkeypatch.setattr(torch_bits, "_LENGTHS", (found[1] - 1, found[1], found[1] + 1))
    assert torch_bits.find_negative_bit() == found
    monkeypatch.setattr(torch_bits, "_LENGTHS", (found[1],))
    assert torch_bits.find_negative_bit() is None


@triton.jit
def twice(x, y, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(y + at, (tl.load(x + at).to(tl.float32) * 2).to(y.dtype.element_ty))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "int64", "uint16", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("kind", [torch.Tensor, torch.nn.Parameter])
def test_tensors_lie_where_torch_says(dtype, kind, device):
    dtype = getattr(torch, dtype)
    x, y = (torch.arange(64, device=device).to(dtype) for _ in range(2))
    grad = dtype.is_floating_point
    view = torch.nn.Parameter(x[16:32], requires_grad=grad) if kind is torch.nn.Parameter else x[16:32]
    twice[(1,)](view, y[32:], 16)
    assert y[32:48].tolist() == (x[16:32] * 2).tolist() and y[48:].tolist() == list(range(48, 64))
    x.set_(torch.arange(100, 200, device=device).to(dtype)[:64])
    twice[(1,)](x[:16], y, 16)
    assert y[:16].tolist() == ((100 + torch.arange(16)).to(dtype) * 2).tolist()


def test_functions_of_torch_are_found():
    from triton.runtime.torch_bits import find_functions, find_negative_bit

    words = find_negative_bit()[:2]
    *functions, cpu, cuda, plain, dtypes = find_functions(*words)
    assert len(set(functions)) == 4 and cpu != cuda and plain and len(dtypes) >= 13
    assert find_functions(*words) == (*functions, cpu, cuda, plain, dtypes)


ODD_TENSORS = """
import torch, triton, triton.runtime.torch_bits
{patch}
@triton.jit
def nothing(x):
    pass
plain = torch.zeros(4, 4)
nothing[(1,)](plain)
nothing[(1,)](torch.zeros(0))
for odd in (plain.to_sparse(), plain.to_sparse_csr(), plain.to_mkldnn(), plain.to("meta"), plain.to(torch.complex64),
            torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8)):
    try:
        nothing[(1,)](odd)
    except (TypeError, ValueError) as error:
        print(error)
    else:
        print("taken")
"""


def test_odd_tensors_are_refused_alike_where_torch_has_no_functions(tmp_path):
    script, outputs = tmp_path / "odd.py", []
    for patch in ("", "triton.runtime.torch_bits.find_functions = lambda pointer, word: None"):
        script.write_text(ODD_TENSORS.format(patch=patch))
        outputs.append(
            subprocess.run([sys.executable, "-W", "ignore", script], check=True, capture_output=True, text=True)
        )
    assert outputs[0].stdout == outputs[1].stdout and outputs[0].stderr == outputs[1].stderr
    assert len(outputs[0].stdout.splitlines()) == 6 and "taken" not in outputs[0].stdout


BEFORE = """
import {first}, {second}, triton.runtime.torch_bits
found = triton.runtime.torch_bits.find_negative_bit
triton.runtime.torch_bits.find_negative_bit = lambda: print("looked for") or found()
@triton.jit
def nothing(x):
    pass
@triton.jit
def other(x):
    pass
print("kernels are there")
import torch
nothing[(1,)](torch.zeros(4))
other[(1,)](torch.zeros(4))
"""


@pytest.mark.parametrize("first, second", [("torch", "triton"), ("triton", "triton")])
def test_the_bit_is_looked_for_before_the_first_launch_if_torch_is_there(first, second, tmp_path):
    script = tmp_path / "before.py"
    script.write_text(BEFORE.format(first=first, second=second))
    out = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout.splitlines()
    assert out == (["looked for", "kernels are there"] if first == "torch" else ["kernels are there", "looked for"])


# ---- no memory


def freed(array):
    array.untyped_storage().resize_(0)
    return array


def part_of_freed():
    whole = torch.zeros(100)
    part = whole[16:32]
    freed(whole)
    return part


def fake():
    with FakeTensorMode():
        return torch.zeros(16)


class Wrapper(torch.Tensor):
    """What libraries make for tensors that are computed elsewhere."""

    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (16,), dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("never")


class Address:
    def __init__(self, address, shape=None):
        self.address, self.dtype = address, "float32"
        if shape is not None:
            self.shape = shape
            self.stride = lambda: (1,) * len(shape)

    def data_ptr(self):
        return self.address


class Interface:
    def __init__(self, address, shape):
        self.interface = {"data": (address, False), "typestr": "<f4", "shape": shape, "version": 3}

    @property
    def __array_interface__(self):
        return self.interface


NOWHERE = "it has no memory that a kernel could read or write: "
NOT_HERE = "that is fake, functional, or inside of a transformation (torch.func)"
MISSING = {
    "freed": (lambda: freed(torch.zeros(16)), "its storage was freed (resized to 0 bytes)"),
    "a part of freed": (part_of_freed, "its storage was freed (resized to 0 bytes)"),
    "freed parameter": (lambda: torch.nn.Parameter(freed(torch.zeros(16))), "its storage was freed"),
    "fake": (fake, f"it is a FakeTensor {NOT_HERE}"),
    "functional": (lambda: torch._to_functional_tensor(torch.zeros(16)), f"it is a Tensor {NOT_HERE}"),
    "zeros of autograd": (lambda: torch._efficientzerotensor((16,)), f"it is a Tensor {NOT_HERE}"),
    "a wrapper": (Wrapper, f"it is a Wrapper {NOT_HERE}"),
    "an object": (lambda: Address(0, (16,)), "its address is 0x0"),
    "an object of unknown extent": (lambda: Address(0), "its address is 0x0"),
    "an interface": (lambda: Interface(0, (16,)), "its address is 0x0"),
    "another low address": (lambda: Address(4096, (16,)), "its address is 0x1000"),
    "meta": (lambda: torch.zeros(16, device="meta"), "it is on the device 'meta'; pass an array on the CPU or"),
    "sparse": (lambda: torch.ones(16).to_sparse(), "its layout is torch.sparse_coo; pass the dense arrays that"),
    "sparse rows": (lambda: torch.ones(4, 4).to_sparse_csr(), "its layout is torch.sparse_csr; pass the dense"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(16)]), "a nested tensor is many arrays; pass its"),
    "opaque": (lambda: torch.ones(16).to_mkldnn(), "its layout is torch._mkldnn; pass the dense arrays that"),
}


@pytest.mark.parametrize("which", MISSING)
@pytest.mark.filterwarnings("ignore")
def test_arrays_without_memory(which, capfd):
    make, words = MISSING[which]
    text = message(make())
    assert text.startswith(f"copy() argument 'source': {NOWHERE}{words}")
    assert "\n" not in text and "frame #" not in text
    assert "nothing() argument 'x[1][0]': " + NOWHERE in message((2, (make(),)), nothing[(1,)])


@pytest.mark.parametrize("transform", ["vmap", "grad"])
def test_arrays_of_a_transformation(transform):
    def launch(x):
        nothing[(1,)](x)
        return x.sum()

    text = message(torch.ones(4, 4), getattr(torch.func, transform)(launch))
    assert text == f"nothing() argument 'x': {NOWHERE}it is a Tensor {NOT_HERE}"


def test_quantized_arrays():
    array = torch.quantize_per_tensor(torch.ones(16), 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"copy\(\) argument 'source': arrays of dtype torch.qint8 are not supported"):
        copy[(1,)](array, torch.zeros(16), 16, BLOCK=16)


def test_empty_arrays_need_no_memory():
    target = torch.zeros(16)
    empty = [torch.zeros(0), freed(torch.zeros(16))[:0], Address(0, (0,)), Interface(0, (3, 0)), np.zeros((0, 3))]
    for array in [*empty, torch.zeros(4, 0, 4)]:
        copy[(1,)](array, target, 0, BLOCK=16)
    assert not target.any()


def test_a_warmup_needs_no_memory():
    for array in (freed(torch.zeros(16)), Address(0, (16,)), torch.zeros(16, device="meta")):
        assert copy.warmup(array, torch.zeros(16), 16, BLOCK=16, grid=(1,)).metadata.name == "copy"


def test_memory_that_came_back():
    array = torch.zeros(16)
    freed(array)
    message(array)
    array.untyped_storage().resize_(64)
    array.copy_(torch.arange(16.0))
    target = torch.zeros(16)
    copy[(1,)](array, target, 16, BLOCK=16)
    assert torch.equal(target, torch.arange(16.0))


def test_nothing_is_printed_about_ordinary_arrays(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy[(1,)](torch.zeros(16), torch.zeros(16), 16, BLOCK=16)
    assert capfd.readouterr() == ("", "")
