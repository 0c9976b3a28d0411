"""`tl.device_print`: the lines that a compiled kernel prints."""

import sys

import numpy as np

from .evaluate import cast
from .tiles import STORAGE


def write(program, attributes, elements, values):
    """A line for each element of each value: program, index, message and value."""
    message, unsigned = attributes["message"], attributes.get("unsigned_mask", 0)
    head = f"pid ({', '.join(map(str, program))})"
    if not values:
        print(f"{head}{message}")
    for number, (element, array) in enumerate(zip(elements, values, strict=True)):
        label = f"(operand {number}) " if len(values) > 1 else ""
        for place in np.ndindex(array.shape):
            index = ", ".join(f"{i:{len(str(n - 1))}}" for i, n in zip(place, array.shape, strict=True))
            text = _text(array[place + (...,)], element, attributes.get("hex"), unsigned >> number & 1)
            sys.stdout.write(f"{head} idx ({index}){message}{label}{text}\n")


def _text(value, element, is_hex, is_unsigned):
    storage = STORAGE[element]
    if element == "ptr":
        value, storage, is_hex = value["address"], np.dtype(np.int64), True
    bits = int.from_bytes(value.tobytes(), "little")
    if is_hex:
        return f"0x{bits:0{2 * storage.itemsize}x}"
    if element[0] not in "fb":
        return str(bits if is_unsigned or element == "i1" else int(value))
    number = value if storage.kind == "f" else cast(value, element, "f32")
    return f"{float(number):g}"
