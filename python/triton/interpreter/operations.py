"""What an operation means: the compiler builds its tile IR for operands of these types, which is remembered.

The key of an operation is all that its IR depends on: the operation, types of tiles, and compile-time operands. Names
that functions given to it use (the combine function of a reduction) are compared each time, as a launch does.
"""

import sys

from .. import _C
from ..language import core, debug
from ..language._builtin import place_of
from . import evaluate
from .state import current
from .tiles import Tile, Window

codes = set()
"""The code objects of interpreted functions: how their frames are told from others."""


def kernel_frames():
    """The frames of interpreted functions, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code in codes:
            yield frame
        frame = frame.f_back


def place():
    """Where the program is: (file, function, line, column, end line, end column), columns in bytes."""
    frame = next(kernel_frames(), None)
    if frame is None:
        return "", "", 0, 0, 0, 0
    return place_of(frame)


class _Operation:
    """The IR of an operation as a program of `evaluate`, and what its results are."""

    def __init__(self, functions, structure, used_names, keep):
        self.program = evaluate.Program(functions, "operation")
        self.structure, self.used_names, self.keep = structure, used_names, keep

    def is_current(self):
        for space, name, value in self.used_names:
            now = space.cell_contents if name is None else space.get(name, self)
            if now is not value:
                return False
        return True


_operations = {}


def run(operation, args, keywords):
    """The result of an operation (see `TraceRequest` in frontend.h) on tiles, tuples and compile-time objects."""
    values, keep = [], []
    key = (current().options_key, _key(operation, values, keep), _key(args, values, keep))
    if operation is debug.static_print:  # once at each place
        key += place()
    if keywords:
        key += (tuple((name, _key(value, values, keep)) for name, value in keywords.items()),)
    found = _operations.get(key)
    if found is None or not found.is_current():
        found = _trace(current().options, operation, args, keywords, keep)
        _operations[key] = found
    results = iter(found.program.run(values))
    return _build(found.structure, results)


def _trace(options, operation, args, keywords, keep):
    used_names = []
    functions, structure = _C.trace_operation(operation, args, keywords, place(), options, used_names)
    return _Operation(functions, structure, used_names, keep)


def _key(value, values, keep):
    """The part of a key that an operand is; the data of tiles goes to `values`, objects known by address to `keep`."""
    kind = type(value)
    if kind is Tile:
        if value._constant is not None:
            return Tile, value.dtype, repr(value._constant)
        values.append(value.data)
        return Tile, value.dtype, value.shape
    if kind is int or kind is str or kind is bool or value is None:
        return kind, value
    if kind is float:
        return float, repr(value)
    if isinstance(value, tuple | list):
        return kind, tuple([_key(item, values, keep) for item in value])
    if kind is Window:
        items = tuple([_key(item, values, keep) for item in value._items])
        return Window, value.block_shape, value.order, items
    if kind is slice:
        return slice, *(_key(part, values, keep) for part in (value.start, value.stop, value.step))
    if isinstance(value, core.dtype):
        return kind, repr(value)
    keep.append(value)
    return kind, id(value)


def _build(structure, results):
    """The result that the compiler described, with the data that was computed."""
    kind = structure[0]
    if kind == "value":
        _, dtype, _, constant = structure
        return Tile(next(results), dtype, constant)
    if kind == "object":
        return structure[1]
    if kind == "tuple":
        items = [_build(item, results) for item in structure[2]]
        return tuple(items) if structure[1] is None else structure[1]._make(items)
    if kind == "window":
        return Window(tuple(_build(item, results) for item in structure[3]), structure[1], structure[2])
    return BoundMethod(structure[1], _build(structure[2], results))


class BoundMethod:
    """A function of the language with the tile whose method it is."""

    def __init__(self, function, tile):
        self.function, self.tile = function, tile

    def __call__(self, *args, **keywords):
        from .frames import call

        return call(self.function, self.tile, *args, **keywords)
