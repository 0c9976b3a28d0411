"""Tile IR on NumPy arrays, operation by operation. Elementwise ones are computed by the folds of the table of
operations (`_C.evaluate_elements`), so that there is one rule for each; shapes, memory and control flow are done here.

In the region of a reduction or scan a scalar may be an array of any shape: many combinations are computed at once.
"""

import time

import numpy as np

from .. import _C
from .state import current
from .tiles import POINTER, STORAGE


class Program:
    """The functions of a module, compiled to steps; `run` calls the entry."""

    def __init__(self, functions, entry):
        self.functions = {name: _Region(region, self) for name, region in functions.items()}
        self.entry = self.functions[entry]

    def run(self, arguments):
        return self.entry.run({}, arguments)


class _Region:
    """Operations in a row. `run` binds the arguments and returns the operands of the terminator."""

    def __init__(self, region, program):
        arguments, operations = region
        self.arguments = [number for number, _ in arguments]
        self.steps = []
        self.has_control = False
        for name, operands, results, attributes, regions in operations:
            inner = [_Region(each, program) for each in regions]
            self.has_control |= name in ("for", "while", "if", "call")
            numbers = [number for number, _ in operands]
            if name in ("yield", "return", "condition"):
                self.results = numbers
                continue
            types = [type for _, type in operands]
            step = _Operation(name, types, [type for _, type in results], attributes, inner, program)
            make = _MAKERS.get(name, _make_elementwise)
            self.steps.append((make(step), numbers, [number for number, _ in results], bool(inner)))

    def run(self, values, arguments):
        for number, argument in zip(self.arguments, arguments, strict=True):
            values[number] = argument
        for function, operands, results, has_regions in self.steps:
            inputs = [values[number] for number in operands]
            outputs = function(values, *inputs) if has_regions else function(*inputs)
            if len(results) == 1 and type(outputs) is not list:
                values[results[0]] = outputs
            else:
                for number, output in zip(results, outputs or (), strict=True):
                    values[number] = output
        return [values[number] for number in self.results]


class _Operation:
    """An operation as the compiler describes it; types are (element, shape, bytes)."""

    def __init__(self, name, operands, results, attributes, regions, program):
        self.name, self.operands, self.results = name, operands, results
        self.attributes, self.regions, self.program = attributes, regions, program

    @property
    def element(self):
        """Of the result."""
        return self.results[0][0]

    @property
    def shape(self):
        return self.results[0][1]


# ---- elements


def _whole(array, shape):
    """What the compiler's loop reads: contiguous, one element or all."""
    return np.ascontiguousarray(array if array.size == 1 or array.shape == shape else np.broadcast_to(array, shape))


def elementwise(name, arrays, elements, target, symbol=None, rounding=None):
    """An elementwise operation of tile IR on arrays whose elements are of these types."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    result = np.empty(shape, STORAGE[target])
    operands = tuple((element, _whole(array, shape)) for element, array in zip(elements, arrays, strict=True))
    _C.evaluate_elements(name, operands, (target, result), symbol, rounding)
    return result


def cast(array, source, target):
    """Floats as floats of another type."""
    return array if source == target else elementwise("float_cast", (array,), (source,), target)


def _make_elementwise(op):
    elements, target = [type[0] for type in op.operands], op.element
    symbol, rounding = op.attributes.get("symbol"), op.attributes.get("rounding")
    return lambda *arrays: elementwise(op.name, arrays, elements, target, symbol, rounding)


def _make_comparison(op):
    if op.operands[0][0] != "ptr":
        return _make_elementwise(op)
    return lambda a, b: (a["address"] == b["address"]) == (op.name == "eq")


def _bitcast(op):
    storage = STORAGE[op.element]
    return lambda x: x if x.dtype == storage else np.ascontiguousarray(x).reshape(x.shape).view(storage)


def pointers(addresses, arrays=-1):
    """Pointers of addresses into the array of these numbers."""
    addresses = np.asarray(addresses)
    result = np.empty(addresses.shape, POINTER)
    result["address"], result["array"] = addresses, arrays
    return result


def _addptr(op):
    _, _, size = op.operands[0]
    scale = -size if op.operands[1][0] == "i1" else size

    def add(pointer, offset):
        distance = offset.astype(np.int64) * scale
        return pointers(pointer["address"] + distance, np.broadcast_to(pointer["array"], distance.shape))

    return add


def _constant(op):
    value, element, shape = op.attributes["value"], op.element, op.shape
    if STORAGE[element].kind == "f" or element[0] == "i":
        scalar = np.asarray(value).astype(STORAGE[element])
    else:
        scalar = cast(np.asarray(value, np.float64), "f64", element)
        if np.isinf(value):  # which a cast to a type that saturates does not give
            scalar = np.asarray((0x80 if value < 0 else 0) | 0x7C, np.uint8) if element == "f8e5m2" else scalar
    result = np.broadcast_to(scalar, shape)
    return lambda: result


# ---- shapes


def _slice(op):
    places = zip(op.attributes["offsets"], op.attributes["strides"], op.shape, strict=True)
    index = np.ix_(*(offset + stride * np.arange(extent) for offset, stride, extent in places))
    return lambda x: x[index]


def _extract(op):
    axis = op.attributes["axis"]

    def extract(x, index):
        if not 0 <= index < x.shape[axis]:
            raise current().error("access", f"index {index} of a tile whose extent is {x.shape[axis]} there")
        return x.take(int(index), axis)

    return lambda x, index: np.asarray(extract(x, index))


def _gather(op):
    axis = op.attributes["axis"]
    extent = op.operands[0][1][axis]
    return lambda x, index: np.take_along_axis(x, np.clip(index.astype(np.int64), 0, extent - 1), axis)


# ---- combinations


def _vectors(op):
    """The region as a function of lists of arrays, computed for all their elements."""
    region = op.regions[0]
    if not region.has_control:
        return lambda values, arrays: region.run(values, arrays)

    def one_by_one(values, arrays):
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        results = [np.empty(shape, array.dtype) for array in arrays[: len(arrays) // 2]]
        for place in np.ndindex(shape):
            for result, item in zip(results, region.run(values, [a[place + (...,)] for a in arrays]), strict=True):
                result[place] = item
        return results

    return one_by_one


def _reduce(op):
    axis, combine = op.attributes["axis"], _vectors(op)

    def reduce(values, *tiles):
        arrays = [np.moveaxis(tile, axis, 0) for tile in tiles]
        while (count := len(arrays[0])) > 1:
            half = count // 2
            combined = combine(values, [a[:half] for a in arrays] + [a[half : 2 * half] for a in arrays])
            shapes = [(half, *a.shape[1:]) for a in arrays]
            combined = [np.broadcast_to(c, shape) for c, shape in zip(combined, shapes, strict=True)]
            arrays = [np.concatenate([c, a[2 * half :]]) for c, a in zip(combined, arrays, strict=True)]
        return [array[0, ...] for array in arrays]

    return reduce


def _scan(op):
    axis, combine, reverse = op.attributes["axis"], _vectors(op), op.attributes.get("reverse")

    def scan(values, *tiles):
        arrays = [np.moveaxis(tile, axis, 0)[:: -1 if reverse else 1] for tile in tiles]
        distance = 1
        while distance < len(arrays[0]):
            combined = combine(values, [a[:-distance] for a in arrays] + [a[distance:] for a in arrays])
            combined = [np.broadcast_to(c, a[distance:].shape) for c, a in zip(combined, arrays, strict=True)]
            arrays = [np.concatenate([a[:distance], c]) for c, a in zip(combined, arrays, strict=True)]
            distance *= 2
        return [np.moveaxis(array[:: -1 if reverse else 1], 0, axis) for array in arrays]

    return scan


def _dot(op):
    (left, _, _), (right, _, _), (target, _, _) = op.operands
    wide = "f32" if target in ("f16", "bf16") else target

    def widen(x, element):
        return x.astype(STORAGE[wide]) if element[0] == "i" else cast(x, element, wide)

    def dot(a, b, c):
        product = np.matmul(widen(a, left), widen(b, right))
        return cast(widen(c, target) + product, wide, target) if target[0] != "i" else c + product

    return dot


def _histogram(op):
    (bins,) = op.shape

    def histogram(x, mask=None):
        counted = x[(x >= 0) & (x < bins) & (True if mask is None else mask)]
        return np.bincount(counted.astype(np.int64), minlength=bins).astype(np.int32)

    return histogram


# ---- memory


def _load(op):
    element = op.element
    return lambda pointer, mask=None, other=None: current().memory.load(pointer, element, mask, other)


def _store(op):
    element = op.operands[1][0]
    return lambda pointer, value, mask=None: current().memory.store(pointer, element, value, mask) or []


_NEW_VALUES = {"max": "max_s", "min": "min_s"}


def _atomic(op):
    element, kind = op.element, op.attributes["kind"]
    if kind == "load":
        return lambda pointer, value, mask=None: current().memory.load(pointer, element, mask, None)
    name = _NEW_VALUES.get(kind, kind)

    def change(old, value):
        return value if kind in ("xchg", "store") else elementwise(name, (old, value), (element, element), element)

    return lambda pointer, value, mask=None: current().memory.update(pointer, element, change, (value,), mask)


def _compare_and_swap(op):
    element = op.element

    def change(old, compare, value):
        bits = f"u{old.dtype.itemsize}"
        same = np.ascontiguousarray(old).view(bits) == np.ascontiguousarray(compare).view(bits)
        return np.where(same, value, old)

    return lambda pointer, compare, value: current().memory.update(pointer, element, change, (compare, value), None)


# ---- effects


def _print(op):
    elements = [type[0] for type in op.operands]
    return lambda *values: current().print(op.attributes, elements, values) or []


def _assert(op):
    kinds = {"bounds": "access", "overflow": "overflow", "division": "division"}
    kind, message = kinds.get(op.attributes.get("kind"), "assertion"), op.attributes.get("message", "")
    masked, shown = len(op.operands) % 2 == 0, len(op.operands) >= 3

    def check(condition, *rest):
        wrong = ~condition & rest[0] if masked else ~condition
        if not wrong.any():
            return []
        text = message
        if shown:
            first = np.unravel_index(int(np.flatnonzero(wrong)[0]), wrong.shape)
            for place, value in enumerate(rest[-2:]):
                text = text.replace(f"{{{place}}}", str(int(np.broadcast_to(value, wrong.shape)[first])))
        elif kind == "assertion":
            text = f"assertion failed: {message}" if message else "assertion failed"
        raise current().error(kind, text)

    return check


def _assume(op):
    def check(condition):
        if not condition:
            raise current().error("assertion", "tl.assume was told what does not hold")
        return []

    return check


def _refuse(op):
    def refuse(*operands):
        from ..errors import UnsupportedError

        raise UnsupportedError(
            "inline assembly cannot be interpreted: it is PTX, for a GPU",
            location=current().location(),
            remedy="run the kernel on a GPU, without TRITON_INTERPRET",
        )

    return refuse


# ---- control


def _for(op):
    (body,) = op.regions

    def loop(values, lower, upper, step, *carried):
        carried = list(carried)
        for index in range(int(lower), int(upper), int(step)):
            carried = body.run(values, [np.asarray(index, lower.dtype), *carried])
        return carried

    return loop


def _while(op):
    test, body = op.regions

    def loop(values, *carried):
        carried = list(carried)
        while test.run(values, carried)[0]:
            carried = body.run(values, carried)
        return carried

    return loop


def _if(op):
    first, second = op.regions
    return lambda values, condition: (
        (first if condition else second).run(values, [])
        if op.results or condition
        else (second.run(values, []) if second.steps else [])
    )


def _call(op):
    name, functions = op.attributes["callee"], op.program.functions
    return lambda *arguments: list(functions[name].run({}, arguments))


_MAKERS = {
    "constant": _constant,
    "range": lambda op: lambda: np.arange(op.attributes["start"], op.attributes["end"], dtype=np.int32),
    "program_id": lambda op: lambda: np.asarray(current().program[op.attributes["axis"]], np.int32),
    "num_programs": lambda op: lambda: np.asarray(current().grid[op.attributes["axis"]], np.int32),
    "eq": _make_comparison,
    "ne": _make_comparison,
    "select": lambda op: lambda condition, a, b: np.where(condition, a, b),
    "bitcast": _bitcast,
    "ptr_to_int": lambda op: lambda x: x["address"],
    "int_to_ptr": lambda op: pointers,
    "addptr": _addptr,
    "splat": lambda op: lambda x: np.broadcast_to(x, op.shape),
    "expand_dims": lambda op: lambda x: np.expand_dims(x, op.attributes["axis"]),
    "broadcast": lambda op: lambda x: np.broadcast_to(x, op.shape),
    "reshape": lambda op: lambda x: x.reshape(op.shape),
    "permute": lambda op: lambda x: x.transpose(op.attributes["order"]),
    "join": lambda op: lambda a, b: np.stack([a, b], -1),
    "split": lambda op: lambda x: [x[..., 0], x[..., 1]],
    "cat": lambda op: lambda a, b: np.concatenate([a, b], op.attributes["axis"]),
    "slice": _slice,
    "extract": _extract,
    "gather": _gather,
    "hint": lambda op: lambda x: x,
    "assume": _assume,
    "load": _load,
    "store": _store,
    "atomic_rmw": _atomic,
    "atomic_cas": _compare_and_swap,
    "reduce": _reduce,
    "scan": _scan,
    "dot": _dot,
    "histogram": _histogram,
    "inline_asm": _refuse,
    "inline_asm_effect": _refuse,
    "print": _print,
    "assert": _assert,
    "clock": lambda op: lambda: np.asarray(time.monotonic_ns()),
    "barrier": lambda op: lambda: [],
    "for": _for,
    "while": _while,
    "if": _if,
    "call": _call,
}
