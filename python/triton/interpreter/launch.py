"""A launch: the arguments become tiles, and the kernel's function is called once for each point of the grid."""

import sys

import numpy as np

from ..compiler.compiler import describe
from ..errors import UnsupportedError, launch_error
from ..language.elements import str_to_ty
from . import debugger, printing
from .memory import Array, Memory, pointer_to
from .operations import kernel_frames, place
from .rewrite import interpreted
from .state import state
from .tiles import STORAGE, Tile, element_of

_MEANT = ("debug", "sanitize_overflow", "num_warps")  # the options that the language looks at


class Run:
    """One launch: what the operations of a kernel ask for besides their operands."""

    def __init__(self, kernel, options, grid, arrays):
        self.kernel, self.options, self.grid = kernel, options, grid
        self.options_key = tuple(options.get(name) for name in _MEANT)
        self.program, self.depth = (0, 0, 0), 0
        self.memory = Memory(arrays, self.error)

    def location(self):
        """Where the program is, as exceptions of the compiler take it."""
        names = ("file", "function", "line", "column", "end_line", "end_column")
        return {**dict(zip(names, place(), strict=True)), "caller": None}

    def error(self, kind, text):
        """The exception for a program that went wrong, in the words of compiled kernels."""
        where = ", called at ".join(f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in kernel_frames())
        text = f"{where}: {text}" if where else text
        return launch_error(self.kernel.__name__, kind, f"{text}, in program {self.program}")

    def print(self, attributes, elements, values):
        printing.write(self.program, attributes, elements, values)


def launch(kernel, signature, options, slots, ranges, read_only, on_cuda, grid):
    """Run a kernel on its grid. `signature` has an entry for each parameter, `slots` the words of those that are known
    at run time only, `ranges` begin and end of the memory of each pointer among them."""
    if on_cuda:
        raise UnsupportedError(
            f"kernel '{kernel.__name__}' cannot be interpreted on arrays of a GPU",
            remedy="copy them to the CPU first: x.cpu()",
        )
    arguments = _Arguments(slots, ranges, read_only)
    positional, named = [], {}
    for param, entry in zip(kernel.params, signature, strict=True):
        value = arguments.read(entry, param.name)
        if param.kind == 2:  # *args
            positional.extend(value)
        elif param.kind == 4:  # **META
            named.update(value)
        elif param.kind == 3:
            named[param.name] = value
        else:
            positional.append(value)
    run = Run(kernel, describe(kernel, signature, options, "cpu", False), grid, arguments.arrays)
    function = interpreted(kernel)
    outer, hook = getattr(state, "run", None), sys.breakpointhook
    state.run = run
    if hook is sys.__breakpointhook__:
        sys.breakpointhook = debugger.stop
    try:
        for z in range(grid[2]):
            for y in range(grid[1]):
                for x in range(grid[0]):
                    run.program = (x, y, z)
                    function(*positional, **named)
    finally:
        state.run, sys.breakpointhook = outer, hook
        run.memory.close()


class _Arguments:
    """Entries of a signature to what the kernel's function gets."""

    def __init__(self, slots, ranges, read_only):
        self.slots, self.ranges, self.read_only = slots, ranges, read_only
        self.next, self.arrays = 0, []

    def read(self, entry, name):
        if hasattr(type(entry), "__triton_kind__"):  # tl.constexpr
            return entry.value
        if type(entry) is tuple:
            return self.value(str_to_ty(entry[0]), name)
        items = [self.read(item, f"{name}_{i}") for i, item in enumerate(entry)]
        return type(entry)(*items) if isinstance(entry, tuple) else tuple(items)

    def value(self, dtype, name):
        word = self.slots[self.next]
        self.next += 1
        if not dtype.is_ptr():
            storage = STORAGE[element_of(dtype)]
            content = np.frombuffer(word.to_bytes(8, "little")[: storage.itemsize], storage)
            return Tile(content.reshape(()), dtype)
        begin, end = self.ranges[2 * len(self.arrays) : 2 * len(self.arrays) + 2]
        known = end - begin < 1 << 62  # else the array did not say where it ends
        self.arrays.append(Array(name, begin, end if known else begin, bool(self.read_only[self.next - 1])))
        return Tile(pointer_to(word, len(self.arrays) - 1 if known else -1), dtype)
