"""Where a tensor of torch keeps its negative bit, which `z.conj().imag` sets instead of computing."""

_WORD = 8  # bytes
_LENGTHS = 22, 23, 24  # in words, of the C++ object in one release or another; the bit is in the last one
_ATTEMPTS = 3


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
