"""`Tile`, what the names of an interpreted kernel hold, and `Window`, which `tl.make_block_ptr` gives."""

import numpy as np

from ..errors import CompilationError
from ..language import core
from ..language._builtin import compute_for_kernel
from ..language.dtypes import block_type
from ..language.tensors import add_operators

POINTER = np.dtype([("address", np.int64), ("array", np.int32)])
"""A pointer: its address, and the number of the launch's array that it belongs to (-1: of none that is known)."""

# How elements lie in arrays, by the names of tile IR. Floats that NumPy does not have are their codes.
STORAGE = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f8e4m3": np.dtype(np.uint8),
    "f8e5m2": np.dtype(np.uint8),
    "f8e4m3b15": np.dtype(np.uint8),
    "f8e4m3b8": np.dtype(np.uint8),
    "f8e5m2b16": np.dtype(np.uint8),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "ptr": POINTER,
}
_ELEMENTS = {
    "int1": "i1",
    "fp8e4nv": "f8e4m3",
    "fp8e5": "f8e5m2",
    "fp8e4b15": "f8e4m3b15",
    "fp8e4b8": "f8e4m3b8",
    "fp8e5b16": "f8e5m2b16",
    "fp16": "f16",
    "bf16": "bf16",
    "fp32": "f32",
    "fp64": "f64",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def element_of(dtype):
    """What tile IR calls the elements of a dtype of the language."""
    return "ptr" if dtype.is_ptr() else _ELEMENTS[dtype.name]


class Tile(core.tensor):
    """A tile, or a scalar (of shape ``()``), with its elements.

    ``data`` is a NumPy array: of the type's own where NumPy has it, of the bits for bfloat16 and floats of 8 bits, and
    of (address, array) for pointers. ``numpy()`` is a copy of the values. `_constant` is the number that the compiler
    would know already, or None.
    """

    __triton_kind__ = "tile"
    __slots__ = ("data", "dtype", "shape", "_constant")

    def __init__(self, data, dtype, constant=None):
        self.data, self.dtype, self.shape, self._constant = data, dtype, data.shape, constant

    @property
    def type(self):
        return block_type(self.dtype, self.shape) if self.shape else self.dtype

    @property
    def numel(self):
        return self.data.size

    @property
    def T(self):  # noqa: N802
        return core_operation("T", self)

    def numpy(self):
        """The values: floats that NumPy does not have as float32, pointers as addresses."""
        from .evaluate import cast

        if self.dtype.is_ptr():
            return self.data["address"].copy()
        element = element_of(self.dtype)
        if self.dtype.is_floating() and STORAGE[element].kind != "f":
            return cast(self.data, element, "f32")
        if self.dtype.is_int_unsigned() and element != "i1":
            return self.data.view(f"u{self.data.dtype.itemsize}").copy()
        return self.data.copy()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return operate(".", self, name)
        except CompilationError as error:
            if not compute_for_kernel():
                raise
            raise AttributeError(error.message) from None  # which Python asks for

    def __bool__(self):
        if self._constant is not None:
            return bool(self._constant)
        return bool(operate("if", self).data)

    def __index__(self):
        if self._constant is None:
            raise TypeError(f"a compile-time integer is needed here, and this is {self.type} at run time")
        return self._constant.__index__()

    def __int__(self):
        return int(self.numpy())

    def __float__(self):
        return float(self.numpy())

    def __len__(self):
        if not self.shape:
            raise TypeError(f"a scalar has no length, and this is {self.type}")
        return self.shape[0]

    def __iter__(self):
        raise TypeError("a tile cannot be iterated over: loop over indices, or reduce it")

    def __hash__(self):
        return id(self)

    def __getitem__(self, index):
        return operate("[]", self, *(index if isinstance(index, tuple) else (index,)))

    def __setitem__(self, index, value):
        raise TypeError(
            "elements cannot be assigned: tiles and tuples are values; choose elements with tl.where(condition, new, "
            "old), or write to memory with tl.store"
        )

    def __str__(self):
        return str(self.numpy())

    def __format__(self, spec):
        return format(self._constant if self._constant is not None else self.numpy()[()], spec)

    def __repr__(self):
        values = np.array2string(self.numpy(), separator=", ", prefix="tile(")
        return f"tile({values}, {self.dtype})"


class Window(core.block_pointer):
    """A block pointer: `_items` are base, shape, strides and offsets, tiles each or tuples of them."""

    __triton_kind__ = "window"
    __slots__ = ("_items", "block_shape", "order")

    def __init__(self, items, block_shape, order):
        self._items, self.block_shape, self.order = items, block_shape, order

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return operate(".", self, name)

    def __repr__(self):
        base, shape, strides, offsets = self._items
        return f"window({self.block_shape} at {offsets} of an array {shape}, strides {strides}, {base.dtype})"


def operate(operation, *operands):
    """An operation that the compiler knows, on operands of any kind."""
    from .operations import run

    return run(operation, operands, {})


def core_operation(name, tile):
    return operate(".", tile, name)


add_operators(Tile, operate)
