"""Where a tensor of torch keeps its negative bit, which `z.conj().imag` sets instead of computing."""

_WORD = 8  # bytes
_IMPLEMENTATION_WORDS = 22  # of the C++ object; no more than it has


def find_negative_bit():
    """Which word of a tensor's Python object points to its C++ object, which word of that holds the bit, and the mask
    of the bit; None where that is not plain to see, as on a release of torch that is laid out in another way.

    It is the one bit that all of many tensors with it have set, and none of the others.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch.inference_mode(False), torch.device("cpu"):
        without, having = _samples(torch)
        count = torch.Tensor.__basicsize__ // _WORD
        pointers = [i for i in range(2, count) if all(_words(id(x), count)[i] == x._cdata for x in without + having)]
        if len(pointers) != 1 or any(x.is_neg() for x in without) or not all(x.is_neg() for x in having):
            return None
        zeros = [~word for word in _merged(without, int.__or__)]
        ones = _merged(having, int.__and__)
    marks = [(i, zero & one) for i, (zero, one) in enumerate(zip(zeros, ones, strict=True)) if zero & one]
    if len(marks) != 1 or marks[0][1].bit_count() != 1:
        return None
    return pointers[0], *marks[0]


def _samples(torch):
    """Tensors without and with the bit, alike in everything else: types, shapes, views, gradients."""
    plain = [
        torch.zeros(3 + i, 2, dtype=dtype) for i in range(3) for dtype in (torch.float32, torch.float64, torch.int8)
    ]
    plain += [x.T for x in plain]
    plain += [torch.zeros(4 + i, requires_grad=True) for i in range(4)]
    complex_numbers = [torch.zeros(4 + i, dtype=torch.complex64) for i in range(8)]
    without = [*plain, *complex_numbers, *(z.conj() for z in complex_numbers), *(z.imag for z in complex_numbers)]
    without += [torch._neg_view(torch._neg_view(x)) for x in plain]
    having = [torch._neg_view(x) for x in plain] + [z.conj().imag for z in complex_numbers]
    return without, having + [x.data for x in having] + [x[1:] for x in having]


def _words(address, count):
    from ctypes import c_uint64

    return (c_uint64 * count).from_address(address)


def _merged(tensors, operation):
    """The words of the C++ objects of tensors, combined bit by bit."""
    from functools import reduce

    columns = zip(*(_words(x._cdata, _IMPLEMENTATION_WORDS) for x in tensors), strict=True)
    return [reduce(operation, column) for column in columns]
