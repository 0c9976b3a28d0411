"""`tl.device_print` of interpreted kernels and of those on a CPU: a scalar as a number, a tile as NumPy prints it."""

import numpy as np

from .evaluate import cast
from .tiles import STORAGE


def write(program, attributes, elements, values):
    """What an interpreted kernel prints: the values of one operation."""
    unsigned = attributes.get("unsigned_mask", 0)
    arrays = [value["address"] if element == "ptr" else value for element, value in zip(elements, values, strict=True)]
    kinds = [(element, unsigned >> number & 1) for number, element in enumerate(elements)]
    _write(program, attributes["message"], attributes.get("hex"), kinds, arrays)


def write_bytes(program, message, is_hex, values):
    """The same of a compiled kernel: values are (element, is_unsigned, shape, bytes)."""
    arrays = [
        np.frombuffer(content, np.int64 if element == "ptr" else STORAGE[element]).reshape(shape)
        for element, _, shape, content in values
    ]
    _write(program, message, is_hex, [value[:2] for value in values], arrays)


def _write(program, message, is_hex, kinds, arrays):
    program = f"pid ({', '.join(map(str, program))})"
    if not arrays:
        print(f"{program}{message}")
    for number, ((element, is_unsigned), array) in enumerate(zip(kinds, arrays, strict=True)):
        label = f"(operand {number}) " if len(arrays) > 1 else ""
        head = f"{program}{'' if array.ndim else ' idx ()'}{message}{label}"
        print(f"{head}{_text(array, element, is_hex, is_unsigned, len(head))}")


def _text(array, element, is_hex, is_unsigned, indent):
    """Lines after the first begin below the bracket; `np.set_printoptions` says how wide they are, and of how many
    elements a tile is shown whole."""
    if is_hex or element == "ptr":
        bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)
        return np.array2string(bits, prefix=" " * indent, formatter={"int": f"0x{{:0{2 * array.itemsize}x}}".format})
    if element[0] in "fb":
        array = array if array.dtype.kind == "f" else cast(array, element, "f32")
    elif is_unsigned and element != "i1":
        array = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)
    if array.ndim:
        return np.array2string(array, prefix=" " * indent)
    return _number(array[()]) if element != "i1" else str(int(array))


def _number(value):
    """The shortest decimal that reads back to a float; a whole number as one."""
    number = value.item()
    if isinstance(number, float) and number and number.is_integer() and abs(number) < 1e16:
        return str(int(number))
    return str(value).removesuffix(".0")
