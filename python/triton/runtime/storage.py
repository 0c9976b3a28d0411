"""The memory that arrays are views of."""

import sys


def storage(array):
    """Addresses where the memory begins and ends that an array of NumPy or torch is a view of; None where it does not
    say so."""
    if hasattr(array, "untyped_storage"):
        whole = array.untyped_storage()
        return whole.data_ptr(), whole.data_ptr() + whole.nbytes()
    numpy = sys.modules["numpy"]
    while isinstance(array.base, numpy.ndarray):
        array = array.base
    if not array.flags.forc:
        return None
    begin = array.__array_interface__["data"][0]
    return begin, begin + array.nbytes
