"""A slow, plain interpreter of tile IR text: what the passes must not change.

Tiles are NumPy arrays of Python numbers, scalars Python numbers, pointers addresses. Scalar semantics are those of
`_eval_scalar`; what that leaves unspecified becomes POISON, which spreads, so that a comparison can skip it.
"""

import itertools
import re

import numpy as np

from triton import _C

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
WIDTHS |= {"f8e4m3": 8, "f8e5m2": 8, "f8e4m3b15": 8, "f8e4m3b8": 8, "f8e5m2b16": 8}


class Poison:
    def __repr__(self):
        return "POISON"


POISON = Poison()


class Undefined(Exception):
    """The program does what has no meaning: branches on POISON, touches memory that is not there."""


class Type:
    def __init__(self, element, shape=()):
        self.element, self.shape = element, shape

    def __repr__(self):
        return f"tile<{''.join(f'{n}x' for n in self.shape)}{self.element}>" if self.shape else str(self.element)


class Op:
    def __init__(self, name, results, operands, attrs, types, regions):
        self.name, self.results, self.operands = name, results, operands
        self.attrs, self.types, self.regions = attrs, types, regions


class Function:
    def __init__(self, name, params, body):
        self.name, self.params, self.body = name, params, body


class Parser:
    def __init__(self, text):
        self.tokens = []
        for line, content in enumerate(text.splitlines()):
            content = content.split("//")[0]
            for match in re.finditer(r'"(?:\\.|[^"\\])*"|->|[%@][\w.]+|-?\w[\w.]*(?:(?<=e)[+-]\d+)?|\S', content):
                self.tokens.append((match[0], line))
        self.tokens.append(("", -1))
        self.at = 0

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][0]

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1][0]

    def accept(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def expect(self, token):
        assert self.accept(token), (token, self.tokens[self.at : self.at + 5])

    def type(self):
        word = self.next()
        if word == "ptr":
            self.expect("<")
            pointee = self.type()
            if self.accept(","):
                self.next()
            self.expect(">")
            return Type(("ptr", pointee))
        if word == "tile":
            self.expect("<")
            *shape, element = self.next().split("x")
            if element in ("ptr", "tile"):
                self.at -= 1
                self.tokens[self.at] = (element, 0)
                inner = self.type().element
            else:
                inner = element
            self.expect(">")
            return Type(inner, tuple(map(int, shape)))
        return Type(word)

    def types(self):
        result = [self.type()]
        while self.accept(","):
            result.append(self.type())
        return result

    def attrs(self):
        attrs = {}
        if self.peek() == "{" and self.peek(2) == "=" and self.peek(1)[0] != "%":
            self.next()
            while not self.accept("}"):
                key = self.next()
                self.expect("=")
                if self.accept("["):
                    attrs[key] = []
                    while not self.accept("]"):
                        attrs[key].append(int(self.next()))
                        self.accept(",")
                else:
                    attrs[key] = self.next()
                self.accept(",")
        return attrs

    def args(self):
        args = []
        self.expect("(")
        while not self.accept(")"):
            name = self.next()
            self.expect(":")
            args.append((name, self.type()))
            self.attrs()
            self.accept(",")
        return args

    def region(self):
        self.expect("{")
        args = []
        if self.accept("^"):
            args = self.args()
            self.expect(":")
        ops = []
        while not self.accept("}"):
            ops.append(self.op())
        return args, ops

    def op(self):
        results = []
        if self.peek().startswith("%"):
            results.append(self.next())
            while self.accept(","):
                results.append(self.next())
            self.expect("=")
        line = self.tokens[self.at][1]
        name, operands = self.next(), []
        while self.peek().startswith("%") and self.tokens[self.at][1] == line:
            operands.append(self.next())
            if not self.accept(","):
                break
        attrs = self.attrs()
        types = self.types() if self.accept(":") else []
        regions = []
        while self.peek() == "{":
            regions.append(self.region())
        return Op(name, results, operands, attrs, types, regions)

    def functions(self):
        functions = {}
        while self.peek():
            assert self.next() in ("kernel", "func")
            name = self.next()
            params = self.args()
            if self.accept("->"):
                while not self.accept(")"):
                    self.next()
            self.expect("{")
            body = []
            while not self.accept("}"):
                body.append(self.op())
            functions[name] = Function(name, params, ([], body))
        return functions


def number(text, element):
    """A constant: the shortest text of a float names it among those of its type only."""
    if element[0] not in "fb":
        return int(text)
    value = float(text)
    if element == "f64" or value in (float("inf"), float("-inf")):
        return value
    return _C._eval_scalar("float_cast", "f64", element, value)


def scalar_op(name, source, target, operands):
    if any(x is POISON for x in operands):
        if name != "select" or operands[0] is POISON:
            return POISON
        return operands[1] if operands[0] else operands[2]
    if name == "select" and isinstance(source, tuple):
        return operands[1] if operands[0] else operands[2]
    if isinstance(source, tuple) and name in ("eq", "ne"):
        return int((operands[0] == operands[1]) == (name == "eq"))
    if name in ("ptr_to_int", "int_to_ptr") or (name == "bitcast" and isinstance(source, tuple)):
        return operands[0]
    result = _C._eval_scalar(name, source, target, *operands)
    return POISON if result is None else result


def byte_width(element):
    return 8 if isinstance(element, tuple) else (WIDTHS[element] + 7) // 8


class Interpreter:
    """`memory` maps addresses to values; `grid` and `program` are what num_programs and program_id give."""

    def __init__(self, text, memory=None, program=(0, 0, 0), grid=(1, 1, 1), steps=100000):
        self.functions = Parser(text).functions()
        self.memory = {} if memory is None else memory
        self.program, self.grid = program, grid
        self.steps = steps
        self.effects = []
        self.trace = None  # name -> list of values, when set

    def call(self, *args, name=None):
        function = self.functions[name] if name else next(iter(self.functions.values()))
        values, types = {}, {}
        for (param, type), arg in zip(function.params, args, strict=True):
            values[param], types[param] = arg, type
        return self.run(function.body, values, types)

    def run(self, region, values, types):
        for op in region[1]:
            self.steps -= 1
            if self.steps < 0:
                raise Undefined("too many steps")
            operands = [values[x] for x in op.operands]
            if op.name in ("yield", "return", "condition"):
                return operands
            results = self.evaluate(op, operands, [types[x] for x in op.operands], values, types)
            for name, type, result in zip(op.results, op.types, results, strict=True):
                values[name], types[name] = result, type
                if self.trace is not None:
                    self.trace.setdefault(name, []).append(result)
        return []

    def enter(self, region, args, values, types):
        for (name, type), arg in zip(region[0], args, strict=True):
            values[name], types[name] = arg, type
            if self.trace is not None:
                self.trace.setdefault(name, []).append(arg)
        return self.run(region, values, types)

    def evaluate(self, op, operands, operand_types, values, types):
        method = getattr(self, "op_" + op.name, None)
        if method:
            result = method(op, operands, operand_types, values, types)
            return result if isinstance(result, list) else [result]
        source, target = operand_types[-1].element, op.types[0].element
        function = lambda *x: scalar_op(op.name, source, target, x)  # noqa: E731
        if op.types[0].shape:
            return [np.frompyfunc(function, len(operands), 1)(*operands)]
        return [function(*operands)]

    # ---- constants, indices, shape

    def op_constant(self, op, operands, operand_types, values, types):
        return filled(op.types[0].shape, number(op.attrs["value"], op.types[0].element))

    def op_range(self, op, *_):
        return np.array([*range(int(op.attrs["start"]), int(op.attrs["end"]))], dtype=object)

    def op_program_id(self, op, *_):
        return self.program[int(op.attrs["axis"])]

    def op_num_programs(self, op, *_):
        return self.grid[int(op.attrs["axis"])]

    def op_splat(self, op, operands, *_):
        return filled(op.types[0].shape, operands[0])

    def op_expand_dims(self, op, operands, *_):
        return np.expand_dims(operands[0], int(op.attrs["axis"]))

    def op_broadcast(self, op, operands, *_):
        return np.broadcast_to(operands[0], op.types[0].shape)

    def op_reshape(self, op, operands, *_):
        return operands[0].reshape(op.types[0].shape)

    def op_permute(self, op, operands, *_):
        return operands[0].transpose(op.attrs["order"])

    def op_join(self, op, operands, *_):
        result = np.empty(op.types[0].shape, dtype=object)
        result[..., 0], result[..., 1] = operands
        return result

    def op_split(self, op, operands, *_):
        return [operands[0][..., 0], operands[0][..., 1]]

    def op_cat(self, op, operands, *_):
        return np.concatenate(operands, axis=int(op.attrs["axis"]))

    def op_slice(self, op, operands, *_):
        index = [
            [first + i * stride for i in range(extent)]
            for first, stride, extent in zip(op.attrs["offsets"], op.attrs["strides"], op.types[0].shape, strict=True)
        ]
        return operands[0][np.ix_(*index)]

    def op_extract(self, op, operands, operand_types, *_):
        extent = operand_types[0].shape[int(op.attrs["axis"])]
        if operands[1] is POISON or not 0 <= operands[1] < extent:
            raise Undefined("index")
        return np.take(operands[0], operands[1], axis=int(op.attrs["axis"]))

    def op_gather(self, op, operands, operand_types, *_):
        axis = int(op.attrs["axis"])
        for index in operands[1].flat:
            if index is POISON or not 0 <= index < operand_types[0].shape[axis]:
                raise Undefined("index")
        return np.take_along_axis(operands[0], operands[1].astype(int), axis)

    def op_hint(self, op, operands, *_):
        return operands[0]

    def op_assume(self, op, operands, *_):
        if operands[0] is POISON or not operands[0]:
            raise Undefined("assume")
        return []

    # ---- memory

    def op_addptr(self, op, operands, operand_types, *_):
        width = byte_width(operand_types[0].element[1].element)
        bits = WIDTHS[operand_types[1].element]
        add = lambda p, i: POISON if p is POISON or i is POISON else p + width * (-i if bits == 1 else i)  # noqa: E731
        return np.frompyfunc(add, 2, 1)(*operands) if op.types[0].shape else add(*operands)

    def access(self, address, mask):
        if mask is POISON:
            raise Undefined("mask")
        if not mask:
            return False
        if address is POISON or address not in self.memory:
            raise Undefined("address")
        return True

    def op_load(self, op, operands, *_):
        pointer, mask, other = operands + [1, POISON][len(operands) - 1 :] if len(operands) < 3 else operands
        load = lambda p, m, o: self.memory[p] if self.access(p, m) else o  # noqa: E731
        if not op.types[0].shape:
            return load(pointer, mask, other)
        shape = op.types[0].shape
        mask = mask if len(operands) > 1 else filled(shape, 1)
        other = other if len(operands) > 2 else filled(shape, POISON)
        return np.frompyfunc(load, 3, 1)(pointer, mask, other)

    def op_store(self, op, operands, operand_types, *_):
        shape = operand_types[0].shape
        arrays = [np.broadcast_to(filled((), x) if not shape else x, shape).flat for x in operands]
        if len(arrays) == 2:
            arrays.append(itertools.repeat(1))
        for address, value, mask in zip(*arrays, strict=False):
            if self.access(address, mask):
                self.memory[address] = value
                self.effects.append((address, value))
        return []

    # ---- tiles as a whole

    def op_reduce(self, op, operands, operand_types, values, types):
        axis = int(op.attrs["axis"])
        arrays = [np.moveaxis(x, axis, 0) for x in operands]
        results = [np.empty(arrays[0].shape[1:], dtype=object) for _ in operands]
        for place in np.ndindex(arrays[0].shape[1:]):
            columns = [x[(slice(None), *place)] for x in arrays]
            total = [c[0] for c in columns]
            for i in range(1, len(columns[0])):
                total = self.enter(op.regions[0], total + [c[i] for c in columns], values, types)
            for result, item in zip(results, total, strict=True):
                result[place] = item
        return results if op.types[0].shape else [x[()] for x in results]

    def op_scan(self, op, operands, operand_types, values, types):
        axis = int(op.attrs["axis"])
        arrays = [np.moveaxis(x, axis, 0) for x in operands]
        results = [np.empty(arrays[0].shape, dtype=object) for _ in operands]
        steps = range(arrays[0].shape[0])
        for place in np.ndindex(arrays[0].shape[1:]):
            total = None
            for i in reversed(steps) if op.attrs.get("reverse") == "1" else steps:
                item = [x[(i, *place)] for x in arrays]
                total = item if total is None else self.enter(op.regions[0], total + item, values, types)
                for result, value in zip(results, total, strict=True):
                    result[(i, *place)] = value
        return [np.moveaxis(x, 0, axis) for x in results]

    def op_dot(self, op, operands, operand_types, *_):
        a, b, c = operands
        element, result = operand_types[0].element, op.types[0].element
        widen = ("ext_s" if element[0] == "i" else "float_cast") if element != result else None
        add, mul = ("add", "mul") if element[0] == "i" else ("fadd", "fmul")
        total = c.copy()
        for place in np.ndindex(c.shape):
            *batch, i, j = place
            for k in range(a.shape[-1]):
                pair = [a[(*batch, i, k)], b[(*batch, k, j)]]
                if widen:
                    pair = [scalar_op(widen, element, result, [x]) for x in pair]
                product = scalar_op(mul, result, result, pair)
                total[place] = scalar_op(add, result, result, [total[place], product])
        return total

    # ---- effects and control

    def op_print(self, op, operands, *_):
        self.effects.append(("print", op.attrs["message"], *map(repr, operands)))
        return []

    def op_assert(self, op, operands, *_):
        masked = len(operands) % 2 == 0  # condition [mask] [first, second]
        checked = np.where(operands[1], operands[0], 1) if masked else operands[0]
        if any(x is POISON for x in np.array(checked, dtype=object).flat):
            raise Undefined("assert")
        if not np.all(checked):
            self.effects.append(("assert",))
        return []

    def op_barrier(self, *_):
        return []

    def op_call(self, op, operands, *_):
        return self.call(*operands, name=re.sub('"', "", "@" + op.attrs["callee"].strip('"')))

    def op_for(self, op, operands, operand_types, values, types):
        lower, upper, step, *carried = operands
        if POISON in (lower, upper, step) or step <= 0:
            raise Undefined("bounds")
        for i in range(lower, upper, step):
            carried = self.enter(op.regions[0], [i, *carried], values, types)
        return list(carried)

    def op_while(self, op, operands, operand_types, values, types):
        while True:
            go_on = self.enter(op.regions[0], operands, values, types)[0]
            if go_on is POISON:
                raise Undefined("condition")
            if not go_on:
                return list(operands)
            operands = self.enter(op.regions[1], operands, values, types)

    def op_if(self, op, operands, operand_types, values, types):
        if operands[0] is POISON:
            raise Undefined("condition")
        return list(self.run(op.regions[0 if operands[0] else 1], values, types))


def filled(shape, value):
    if not shape:
        return value
    result = np.empty(shape, dtype=object)
    result.fill(value)
    return result


def same(before, after, nan_bits=False):
    """Whether `after` may stand for `before`: equal, or anything where `before` is unspecified."""
    if isinstance(before, np.ndarray) and before.shape:
        return before.shape == after.shape and all(
            same(x, y, nan_bits) for x, y in zip(before.flat, after.flat, strict=True)
        )
    if before is POISON:
        return True
    if isinstance(before, float):
        if before != before:
            return after != after and (not nan_bits or np.signbit(before) == np.signbit(after))
        return before == after and np.signbit(before) == np.signbit(after)
    return before == after
