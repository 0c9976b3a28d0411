"""Tensors of torch from C: where they keep their negative bit, which `z.conj().imag` sets instead of computing, and the
functions of torch's stable C interface that say where their memory lies."""

_WORD = 8  # bytes
_LENGTHS = 22, 23, 24  # in words, of the C++ object in one release or another; the bit is in the last one
_ATTEMPTS = 3
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
)


def find_negative_bit():
    """Which word of a tensor's Python object points to its C++ object, which word of that holds the bit, and the mask
    of the bit; None where that is not plain to see, as on a release of torch that is laid out in another way.

    It is the one bit that all of many tensors with it have set, and none of the others. Where tensors lie, and what
    they point to, is a matter of chance, and may look like such a bit once, but not again.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch.inference_mode(False):
        for _ in range(_ATTEMPTS):
            without, having = zip(*_pairs(torch), strict=True)
            if any(x.is_neg() for x in without) or not all(x.is_neg() for x in having):
                return None
            pointer, bit = _pointer(torch, without + having), _difference(without, having)
            if pointer and bit is not None:
                return pointer, bit // (8 * _WORD), 1 << bit % (8 * _WORD)
    return None


def find_functions(pointer, word):
    """Addresses of functions that take a tensor and fill in its address, its dtype, and kind and number of its device
    (torch/csrc/inductor/aoti_torch/c/shim.h); the numbers of kinds that mean the CPU and CUDA; the bits that a tensor
    with memory of its own may have set in the word with the negative one; and the dtypes with their numbers. None where
    torch has not all of that, or says something else of a tensor in another way.

    :param pointer: the word of the Python object, which is the tensor as C++ knows it: a pointer and no more.
    :param word: that of the C++ object; both as `find_negative_bit` found them.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    if torch.version.hip:
        return None
    with _disable_current_modes(), torch.inference_mode(False):
        try:
            return _functions(torch, pointer, word)
        except (OSError, AttributeError):
            return None


def _functions(torch, pointer, word):
    import ctypes
    import os

    library = ctypes.CDLL("libtorch_cpu.so", os.RTLD_NOLOAD | os.RTLD_NOW)
    names = "data_ptr", "dtype", "device_type", "device_index"
    functions = [getattr(library, f"aoti_torch_get_{name}") for name in names]
    cpu, cuda = library.aoti_torch_device_type_cpu(), library.aoti_torch_device_type_cuda()

    def ask(x):
        tensor, answers = ctypes.c_void_p(id(x) + pointer * _WORD), []
        for name, function in zip(names, functions, strict=True):
            answer = (ctypes.c_void_p if name == "data_ptr" else ctypes.c_int32)()
            if function(tensor, ctypes.byref(answer)):
                return None
            answers.append(answer.value)
        return answers

    if not _is_a_pointer(torch, torch.zeros(1, device="cpu")):
        return None
    plain, dtypes = _plain_bits(torch), []
    for dtype in (getattr(torch, name) for name in _DTYPES if hasattr(torch, name)):
        x = torch.empty(4, dtype=dtype, device="cpu")[1:]
        bits, answers = _word(x._cdata + word * _WORD), ask(x)
        if bits != torch._C._dispatch_keys(x).raw_repr() or bits & ~plain:
            return None
        if not answers or answers[0] != x.data_ptr() or answers[2] != cpu:
            return None
        dtypes.append((str(dtype), answers[1]))
    if len({number for _, number in dtypes}) != len(dtypes):
        return None
    return *(ctypes.cast(function, ctypes.c_void_p).value for function in functions), cpu, cuda, plain, dtypes


def _plain_bits(torch):
    """What calls are dispatched by, of tensors in the memory of a CPU or of a CUDA device that are nothing else."""
    keys = [getattr(torch._C.DispatchKey, name) for name in ("CUDA", "AutogradCUDA", "AutocastCUDA")]
    bits = torch._C._dispatch_keys(torch.empty(1, device="cpu")).raw_repr()
    for key in keys:
        bits |= torch._C.DispatchKeySet(key).raw_repr()
    return bits


def _is_a_pointer(torch, x):
    """Whether a tensor as C++ knows it, whose address is what these functions take, points to its C++ object."""
    from ctypes import PYFUNCTYPE, c_char_p, c_void_p, py_object, pythonapi

    get_name = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
    get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
    (capsule,) = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors([x])
    is_one = _word(get_pointer(capsule, get_name(capsule))) == x._cdata
    torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs([capsule])
    return is_one


def _pairs(torch):
    """Tensors without and with the bit, by turns, alike in everything else: types, shapes, views, gradients."""
    dtypes = torch.float32, torch.float64, torch.int8
    for i in range(9):
        plain = torch.zeros(3 + i, 2, dtype=dtypes[i % 3], device="cpu", requires_grad=i == 3)
        for x in (plain, plain.T, plain[1:]):
            negative = torch._neg_view(x)
            yield x, negative
            yield torch._neg_view(negative), negative.data
        z = torch.zeros(4 + i, dtype=torch.complex64, device="cpu")
        yield z, z.conj().imag
        yield z.conj(), z.conj().imag[1:]
        yield z.imag, z.conj().imag.data


def _pointer(torch, tensors):
    """The number of the word that points to the C++ object; None if there is not one."""
    size = torch.Tensor.__basicsize__ // _WORD
    found = [i for i in range(2, size) if all(_word(id(x) + i * _WORD) == x._cdata for x in tensors)]
    return found[0] if len(found) == 1 else None


def _difference(without, having):
    """The number of the one bit of the C++ object that tells them apart; None if there is not one. What lies behind the
    object is not looked at: it is longer where the bit is not found."""
    from functools import reduce

    for length in _LENGTHS:
        ones = reduce(int.__and__, (_word(x._cdata, length) for x in having))
        mark = ones & ~reduce(int.__or__, (_word(x._cdata, length) for x in without))
        if mark:
            return mark.bit_length() - 1 if mark.bit_count() == 1 else None
    return None


def _word(address, count=1):
    """What lies there, as a number of so many words."""
    from ctypes import string_at

    return int.from_bytes(string_at(address, count * _WORD), "little")
