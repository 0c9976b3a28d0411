"""Kernels as IR text, built line by line, and run against arrays.

k = Kernel()
x = k.load(array)                   # a tile of the array's shape
y = k.op("fadd", x, x)              # the result has the first operand's type
out = k.run(y)                      # a new array
"""

import numpy as np

from triton import _C

ELEMENTS = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}
STORAGE = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f8e4m3": np.uint8,
    "f8e5m2": np.uint8,
    "f8e4m3b15": np.uint8,
    "f8e4m3b8": np.uint8,
    "f8e5m2b16": np.uint8,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
}


def tile(element, shape):
    """The spelling of a type: the element itself when the shape is empty."""
    return f"tile<{'x'.join(map(str, shape))}x{element}>" if len(shape) else element


class Value:
    def __init__(self, name, element, shape):
        self.name, self.element, self.shape = name, element, tuple(shape)

    @property
    def type(self):
        return tile(self.element, self.shape)


class Kernel:
    def __init__(self):
        self.lines, self.parameters, self.arguments, self.count = [], [], [], 0

    def line(self, text):
        self.lines.append(text)

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def new(self, text, element, shape):
        value = Value(self.fresh(), element, shape)
        self.line(f"{value.name} = {text} : {value.type}")
        return value

    def op(self, name, *operands, element=None, shape=None, attrs=""):
        first = operands[0]
        names = ", ".join(v.name for v in operands)
        element = element or (operands[1].element if name == "select" else first.element)
        return self.new(f"{name} {names} {attrs}", element, first.shape if shape is None else shape)

    def constant(self, value, element="i32", shape=()):
        return self.new(f"constant {{value = {value}}}", element, shape)

    def parameter(self, argument, element=None):
        """A parameter: an array as a pointer, a number as a scalar of `element`."""
        name = f"%p{len(self.parameters)}"
        if isinstance(argument, np.ndarray):
            element = element or ELEMENTS[argument.dtype.name]
            self.parameters.append(f"{name}: ptr<{element}>")
            value = Value(name, f"ptr<{element}>", ())
        else:
            self.parameters.append(f"{name}: {element}")
            value = Value(name, element, ())
        self.arguments.append(argument)
        return value

    def splat(self, value, shape):
        return self.op("splat", value, shape=shape) if len(shape) else value

    def offsets(self, shape, strides=None):
        """i32 offsets of a tile's elements, row-major unless `strides` says otherwise."""
        if not shape:
            return self.constant(0)
        total = None
        for axis, extent in enumerate(shape):
            stride = int(np.prod(shape[axis + 1 :])) if strides is None else strides[axis]
            x = self.new(f"range {{start = 0, end = {extent}}}", "i32", (extent,))
            if stride != 1:
                x = self.op("mul", x, self.splat(self.constant(stride), (extent,)))
            for other in range(len(shape)):
                if other != axis:
                    x = self.op(
                        "expand_dims",
                        x,
                        shape=x.shape[:other] + (1,) + x.shape[other:],
                        attrs=f"{{axis = {other}}}",
                    )
            if x.shape != tuple(shape):
                x = self.op("broadcast", x, shape=shape)
            total = x if total is None else self.op("add", total, x)
        return total

    def pointers(self, base, shape, strides=None):
        if not shape:
            return base
        return self.op("addptr", self.splat(base, shape), self.offsets(shape, strides))

    def load(self, array, element=None):
        array = np.array(array)
        base = self.parameter(array, element)
        pointers = self.pointers(base, array.shape)
        return self.op("load", pointers, element=base.element[4:-1])

    def store(self, value, array=None):
        """Stores a tile to an array (a new one unless given), row-major."""
        if array is None:
            array = np.zeros(value.shape or (1,), STORAGE[value.element])
        base = self.parameter(array, value.element)
        self.line(f"store {self.pointers(base, value.shape).name}, {value.name}")
        return array

    def text(self):
        lines = "\n".join("  " + line for line in self.lines)
        return f"kernel @test({', '.join(self.parameters)}) {{\n{lines}\n  return\n}}\n"

    def launch(self, grid=(1, 1, 1), passes=False):
        return _C._run_cpu(self.text(), self.arguments, grid, passes)

    def run(self, *values):
        """Stores the values, launches, and gives back the arrays."""
        arrays = [self.store(value) for value in values]
        self.launch()
        arrays = [a if v.shape else a[0] for a, v in zip(arrays, values, strict=True)]
        return arrays[0] if len(arrays) == 1 else arrays
