"""Tile IR of the frontend as objects to walk over, for programs that analyse kernels before they are compiled.

Names of operations are those that such programs know: the dialect `scf` for control flow, `tt` for all else. The
structure is that of tile IR (docs/design.md, section 4), where each region is one block.
"""

_CONTROL = {"for": "scf.for", "while": "scf.while", "if": "scf.if", "condition": "scf.condition"}
_ASSEMBLY = {"inline_asm": True, "inline_asm_effect": False}  # is it pure?


class Value:
    """A value of the program, known by its number."""

    def __init__(self, number):
        self._number = number

    def id(self):
        return self._number


class Block:
    """The operations of a region, and its arguments."""

    def __init__(self, number, arguments, parent):
        self._number, self._arguments, self._parent = number, arguments, parent

    def id(self):
        return self._number

    def get_num_arguments(self):
        return len(self._arguments)

    def get_argument(self, index):
        return Value(self._arguments[index])

    def get_parent(self):
        """The region; its only block has its number."""
        return Value(self._number)

    def get_parent_op_name(self):
        return self._parent


class Operation:
    """An operation, with what it uses, gives and contains."""

    def __init__(self, name, operands, results, attributes, regions, block):
        self._name, self._operands, self._results = name, operands, results
        self._attributes, self._regions, self._block = attributes, regions, block

    def get_name(self):
        return self._name

    def get_num_operands(self):
        return len(self._operands)

    def get_operand(self, index):
        return Value(self._operands[index])

    def get_num_results(self):
        return len(self._results)

    def get_result(self, index):
        return Value(self._results[index])

    def get_num_regions(self):
        return len(self._regions)

    def get_region(self, index):
        return Value(self._regions[index])

    def get_block(self):
        """The block that it stands in; None for the module."""
        return self._block

    def _attribute(self, name):
        return self._attributes.get(name)

    get_str_attr = get_flat_symbol_ref_attr = get_bool_attr = get_int_attr = _attribute


class Module:
    """The kernel and the functions that it calls without inlining them."""

    def __init__(self, functions, text):
        self._functions, self._text = functions, text

    def walk(self, visit):
        """Call `visit` with every operation, those inside of another one before it, the module last."""
        inside = Block(0, (), None)
        for name, (number, arguments, operations) in self._functions:
            body = Block(number, arguments, "tt.func")
            for operation in operations:
                _walk(operation, body, visit)
            visit(Operation("tt.func", (), (), {"sym_name": name}, (number,), inside))
        visit(Operation("builtin.module", (), (), {}, (0,), None))

    def verify(self):
        """Always true: the frontend has verified what it made, or raised."""
        return True

    def get_entry_func_name(self):
        return self._functions[0][0]

    def __str__(self):
        return self._text


def _walk(operation, block, visit):
    name, operands, results, callee, regions = operation
    full_name = _full_name(name, block)
    for number, arguments, operations in regions:
        inner = Block(number, arguments, full_name)
        for each in operations:
            _walk(each, inner, visit)
    attributes = {"callee": callee} if callee else {"pure": _ASSEMBLY[name]} if name in _ASSEMBLY else {}
    numbers = tuple(region[0] for region in regions)
    visit(Operation(full_name, operands, results, attributes, numbers, block))


def _full_name(name, block):
    if name == "yield":
        parent = block.get_parent_op_name()
        return f"{parent}.return" if parent in ("tt.reduce", "tt.scan") else "scf.yield"
    if name in _ASSEMBLY:
        return "tt.elementwise_inline_asm"
    return _CONTROL.get(name, f"tt.{name}")


class ir:  # noqa: N801
    """The names that such programs look for in ``triton._C.libtriton.ir``."""

    module, operation, block, value = Module, Operation, Block, Value

    class context:  # noqa: N801
        """What they build modules in; here a module is by itself."""

    @staticmethod
    def load_dialects(context):
        """There is one dialect, and it is always there."""
