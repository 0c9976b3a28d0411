"""Random programs in Triton-C and NumPy: `python tests/fuzz/campaign.py c-programs` compares as many as one likes.

A program is made as text and, at the same time, as functions that do with NumPy what C means. `--show SEED` prints one.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import Array, Buffer  # noqa: E402

import triton.c  # noqa: E402

INTS = {
    "bool": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
}
FLOATS = {"half": np.float16, "float": np.float32, "double": np.float64}
TYPES = {name: np.dtype(kind) for name, kind in (INTS | FLOATS).items()}
NAMES = {kind: name for name, kind in TYPES.items()}
KEYS = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "bool": "int1"}  # in the harness
BOOL, INT = TYPES["bool"], TYPES["int"]


# ---- what C means ---------------------------------------------------------------------------------------------------


def promoted(dtype):
    return INT if dtype.kind in "biu" and dtype.itemsize < 4 else dtype


def common(a, b):
    """The usual arithmetic conversions."""
    a, b = promoted(a), promoted(b)
    if "f" in (a.kind, b.kind):
        return a if b.kind != "f" else b if a.kind != "f" else max(a, b, key=lambda each: each.itemsize)
    if a.itemsize != b.itemsize:
        return max(a, b, key=lambda each: each.itemsize)
    return a if a.kind == "u" else b


def convert(value, dtype):
    if dtype == BOOL:
        return value != 0
    return value.astype(dtype)


def quotient(a, b):
    """Truncated; of positive divisors."""
    if a.dtype.kind == "u":
        return a // b
    return np.where(a >= 0, a // b, -(-a // b)).astype(a.dtype)


def shifted(a, b, left):
    return (a << b if left else a >> b).astype(a.dtype)


ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply}
BITWISE = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
COMPARISONS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


# ---- expressions ----------------------------------------------------------------------------------------------------


class Expression:
    """`source`, and what it is: the elements in a state, their type, and their shape."""

    def __init__(self, source, dtype, shape, value):
        self.source, self.dtype, self.shape, self.value = source, np.dtype(dtype), tuple(shape), value


class State:
    """Of a running program: variables by name, and what is in the arrays."""

    def __init__(self, variables, arrays):
        self.variables, self.arrays = variables, arrays


class Leave(Exception):
    """A `break`, `continue` or `return`."""

    def __init__(self, how):
        self.how = how


def binary(op, a, b):
    shape = np.broadcast_shapes(a.shape, b.shape)
    source = f"({a.source} {op} {b.source})"
    if op in ("&&", "||"):
        join = np.logical_and if op == "&&" else np.logical_or
        return Expression(source, BOOL, shape, lambda s: join(a.value(s) != 0, b.value(s) != 0))
    if op in ("<<", ">>"):
        dtype = promoted(a.dtype)
        return Expression(
            source, dtype, shape, lambda s: shifted(a.value(s).astype(dtype), b.value(s).astype(dtype), op == "<<")
        )
    dtype = BOOL if op in BITWISE and a.dtype == b.dtype == BOOL else common(a.dtype, b.dtype)
    function = {**ARITHMETIC, **BITWISE, **COMPARISONS}.get(op)

    def value(s):
        x, y = a.value(s).astype(dtype), b.value(s).astype(dtype)
        if op == "/":
            return quotient(x, y)
        if op == "%":
            return (x - quotient(x, y) * y).astype(dtype)
        return function(x, y)

    return Expression(source, BOOL if op in COMPARISONS else dtype, shape, value)


def cast(dtype, a):
    return Expression(f"({NAMES[dtype]}){a.source}", dtype, a.shape, lambda s: convert(a.value(s), dtype))


def choose(c, a, b):
    dtype = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
    shape = np.broadcast_shapes(c.shape, a.shape, b.shape)

    def value(s):
        condition = c.value(s) != 0
        if not np.ndim(condition):  # one side runs
            return convert((a if condition else b).value(s), dtype)
        return np.where(condition, convert(a.value(s), dtype), convert(b.value(s), dtype))

    return Expression(f"({c.source} ? {a.source} : {b.source})", dtype, shape, value)


def constant(number, dtype):
    text = {"double": f"{number!r}d", "float": f"{number!r}f", "half": f"{number!r}h"}.get(
        NAMES[dtype], str(int(number))
    )
    if dtype in (BOOL, INT) or dtype.kind == "f":
        text = {True: "true", False: "false"}[bool(number)] if dtype == BOOL else text
        return Expression(f"({text})", dtype, (), lambda s: np.asarray(number, dtype))
    return cast(dtype, Expression(f"({int(number)})", INT, (), lambda s: np.asarray(number, INT)))


def limit_of(count, state):
    """How often a loop runs."""
    return int(count) if count.isdigit() else int(state.variables["n"]) + (count == "n + 1")


# ---- programs -------------------------------------------------------------------------------------------------------


class Generator:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        rows, columns = self.pick([2, 4, 8, 5]), self.pick([4, 8, 16, 6])
        self.rows, self.columns = rows, columns
        self.shapes = [(), (columns,), (rows, 1), (rows, columns)]
        self.variables = {}  # name to (dtype, shape)
        self.constant_names = set()
        self.arrays = []
        self.functions = []
        self.number = 0
        self.masked = self.loops = 0

    def pick(self, items):
        return items[self.random.integers(len(items))]

    def chance(self, probability):
        return self.random.random() < probability

    def name(self, prefix):
        self.number += 1
        return f"{prefix}{self.number}"

    # ---- expressions

    def leaf(self, shapes):
        fitting = [name for name, (_, shape) in self.variables.items() if shape in shapes]
        if fitting and self.chance(0.8):
            name = self.pick(fitting)
            dtype, shape = self.variables[name]
            return Expression(name, dtype, shape, lambda s: s.variables[name])
        dtype = TYPES[self.pick(list(TYPES))]
        if dtype.kind == "f":
            return constant(float(self.random.integers(-20, 21)) / 4, dtype)
        return constant(int(self.random.integers(0 if dtype.kind in "bu" else -5, 2 if dtype == BOOL else 100)), dtype)

    def expression(self, depth, shapes=None):
        """Of one of the shapes; any below the largest is one of them, too."""
        shapes = shapes or self.shapes
        if depth <= 0 or self.chance(0.15):
            return self.leaf(shapes)
        once = ["logic", "choose", "choose", "cast", "unary", "call", "load", "reduce", "extremum", "builtin"]
        once += ["reduce_axis", "product"]
        kind = self.pick(["arithmetic"] * 5 + ["integer"] * 3 + ["compare"] * 2 + once)
        return getattr(self, f"make_{kind}")(depth - 1, shapes)

    def integer(self, depth, shapes):
        for _ in range(20):
            candidate = self.expression(depth, shapes)
            if candidate.dtype.kind in "biu":
                return candidate
        return constant(3, INT)

    def pair(self, depth, shapes):
        """Where an integer meets a half, it is small enough to be converted without two roundings."""
        a, b = self.expression(depth, shapes), self.expression(depth, shapes)
        if TYPES["half"] in (a.dtype, b.dtype):
            a, b = (cast(TYPES["float"], x) if x.dtype.kind in "iu" and x.dtype.itemsize > 1 else x for x in (a, b))
        return a, b

    def make_arithmetic(self, depth, shapes):
        return binary(self.pick(list(ARITHMETIC)), *self.pair(depth, shapes))

    def make_integer(self, depth, shapes):
        a, b = self.integer(depth, shapes), self.integer(depth, shapes)
        op = self.pick(["/", "%", "<<", ">>", *BITWISE])
        if op in ("/", "%"):
            b = binary("+", binary("&", b, constant(7, INT)), constant(1, INT))
        if op in ("<<", ">>"):
            b = binary("&", b, constant(7, INT))
        return binary(op, a, b)

    def make_compare(self, depth, shapes):
        return binary(self.pick(list(COMPARISONS)), *self.pair(depth, shapes))

    def make_logic(self, depth, shapes):
        return binary(self.pick(["&&", "||"]), self.expression(depth, shapes), self.expression(depth, shapes))

    def make_choose(self, depth, shapes):
        condition = self.expression(depth, shapes)
        self.masked += 1
        a, b = self.pair(depth, shapes)
        self.masked -= 1
        return choose(condition, a, b)

    def make_cast(self, depth, shapes):
        a = self.expression(depth, shapes)
        to = TYPES[self.pick(list(TYPES))]
        if a.dtype.kind == "f" and to.kind in "iu":
            to = TYPES[self.pick(list(FLOATS))]  # what does not fit may be anything
        if a.dtype.kind in "iu" and to == TYPES["half"]:
            to = TYPES["float"]
        return cast(to, a)

    def make_unary(self, depth, shapes):
        op = self.pick("-~!+")
        a = self.integer(depth, shapes) if op == "~" else self.expression(depth, shapes)
        if op == "!":
            return Expression(f"(!{a.source})", BOOL, a.shape, lambda s: a.value(s) == 0)
        dtype = a.dtype if op == "~" and a.dtype == BOOL else promoted(a.dtype)
        function = {"-": np.negative, "~": np.invert, "+": np.positive}[op]
        return Expression(f"({op} {a.source})", dtype, a.shape, lambda s: function(a.value(s).astype(dtype)))

    def make_extremum(self, depth, shapes):
        a, b = self.pair(depth, shapes)
        largest = self.chance(0.5)
        dtype = common(a.dtype, b.dtype)
        function = np.fmax if largest else np.fmin
        source = f"{'fmax' if largest else 'fmin'}({a.source}, {b.source})"
        shape = np.broadcast_shapes(a.shape, b.shape)
        return Expression(source, dtype, shape, lambda s: function(a.value(s).astype(dtype), b.value(s).astype(dtype)))

    def make_load(self, depth, shapes):
        """Of an array at a place that is in it for every index."""
        if not self.arrays:
            return self.leaf(shapes)
        index = self.integer(depth, shapes)
        name, dtype, size = self.pick(self.arrays)
        place = binary("&", index, constant(size - 1, INT))
        pointer = f"{name}[{place.source}]" if self.chance(0.5) else f"*({name} + {place.source})"
        return Expression(f"({pointer})", dtype, place.shape, lambda s: s.arrays[name][place.value(s).astype(np.int64)])

    def make_reduce(self, depth, shapes):
        """Not under a mask, where elements may be anything; integers only, for the order of sums is the compiler's."""
        tiles = [name for name, (dtype, shape) in self.variables.items() if len(shape) == 1 and dtype.kind in "iu"]
        if self.masked or not tiles:
            return self.leaf(shapes)
        name = self.pick(tiles)
        dtype = self.variables[name][0]
        how = self.pick(["sum", "max", "min"])
        narrow = dtype.itemsize < 4
        result = (TYPES["uint32"] if how == "sum" and dtype.kind == "u" else INT) if narrow else dtype
        return Expression(
            f"{how}({name}, 0)", result, (), lambda s: getattr(s.variables[name].astype(result), how)(dtype=result)
            if how == "sum" else getattr(s.variables[name].astype(result), how)()
        )  # fmt: skip

    def make_builtin(self, depth, shapes):
        how = self.pick(["abs", "cdiv", "turned"])
        if how == "abs":
            a = self.expression(depth, shapes)
            dtype = promoted(a.dtype)
            return Expression(f"abs({a.source})", dtype, a.shape, lambda s: np.abs(a.value(s).astype(dtype)))
        if how == "cdiv":  # of numbers that are small enough to be added up, and positive
            a, b = (
                binary("+", binary("&", self.integer(depth, shapes), constant(63, INT)), constant(1, INT))
                for _ in range(2)
            )
            dtype, shape = common(a.dtype, b.dtype), np.broadcast_shapes(a.shape, b.shape)

            def up(s):
                return (-(-a.value(s).astype(np.int64) // b.value(s).astype(np.int64))).astype(dtype)

            return Expression(f"cdiv({a.source}, {b.source})", dtype, shape, up)
        name = self.tile(shapes)
        if name is None:
            return self.leaf(shapes)
        dtype, shape = self.variables[name]
        source = self.pick(
            [f"trans(trans({name}))", f"reshape({name}, {shape[0]}, {shape[1]})", f"trans({name}, 0, 1)"]
        )
        return Expression(f"({source})", dtype, shape, lambda s: s.variables[name])

    def tile(self, shapes, kinds="biuf"):
        """The name of a variable with rows and columns, if one may be used here, or None."""
        whole = (self.rows, self.columns)
        names = [name for name, (dtype, shape) in self.variables.items() if shape == whole and dtype.kind in kinds]
        return self.pick(names) if names and whole in shapes and not self.masked else None

    def make_reduce_axis(self, depth, shapes):
        """Of rows or of columns; a result of rows lies across, as a column."""
        name = self.tile(shapes, "iu")
        if name is None:
            return self.leaf(shapes)
        dtype = self.variables[name][0]
        how, axis = self.pick(["sum", "max", "min"]), int(self.random.integers(2))
        narrow = dtype.itemsize < 4
        result = (TYPES["uint32"] if how == "sum" and dtype.kind == "u" else INT) if narrow else dtype

        def value(s):
            reduced = getattr(np, how)(s.variables[name].astype(result), axis=axis).astype(result)
            return reduced[:, None] if axis else reduced

        source = f"{how}({name}, {axis})" + ("[:, newaxis]" if axis else "")
        return Expression(source, result, (self.rows, 1) if axis else (self.columns,), value)

    def make_product(self, depth, shapes):
        """Of small whole numbers, whose sums are exact in any order: of a tile and another one turned, row by row."""
        a, b = self.tile(shapes, "biu"), self.tile(shapes, "biu")
        if a is None:
            return self.leaf(shapes)
        kind, total = self.pick([("half", "float"), ("float", "float"), ("double", "double")])
        few = [f"(({kind})({name} & 7))" for name in (a, b)]

        def value(s):
            x, y = (s.variables[name].astype(np.int64) & 7 for name in (a, b))
            return (
                (x.astype(np.float64) @ y.astype(np.float64).T).sum(1, dtype=np.float64)[:, None].astype(TYPES[total])
            )

        return Expression(f"(sum(dot({few[0]}, trans({few[1]})), 1)[:, newaxis])", TYPES[total], (self.rows, 1), value)

    def make_call(self, depth, shapes):
        if not self.functions:
            return self.leaf(shapes)
        name, parameters, result, body = self.pick(self.functions)
        given = []
        for dtype in parameters:
            a = self.expression(depth, shapes)
            if a.dtype.kind == "f" and dtype.kind in "iu":
                a = binary("<", a, constant(1.0, TYPES["float"]))
            if dtype == TYPES["half"] and a.dtype.kind in "iu":
                a = cast(TYPES["float"], a)
            given.append(a)

        def value(s):
            inner = {
                f"a{i}": convert(a.value(s), dtype) for i, (a, dtype) in enumerate(zip(given, parameters, strict=True))
            }
            return convert(body.value(State(inner, s.arrays)), result)

        source = f"{name}({', '.join(a.source for a in given)})"
        shape = np.broadcast_shapes(*[a.shape for a in given], body.shape)
        return Expression(source, result, shape, value)

    # ---- statements: text, and a function of the state and of a mask

    def fitted(self, expression, dtype):
        """To be assigned to a variable: what C leaves open is not asked for."""
        if expression.dtype.kind == "f" and dtype.kind in "iu":
            return binary("<", expression, constant(0.5, TYPES["float"]))
        if expression.dtype.kind in "iu" and dtype == TYPES["half"]:
            return cast(TYPES["float"], expression)
        return expression

    def shapes_within(self, shape):
        """What broadcasts to a shape."""
        return [each for each in self.shapes if len(each) <= len(shape) and np.broadcast_shapes(each, shape) == shape]

    def declare(self, depth):
        dtype, shape = TYPES[self.pick(list(TYPES))], self.pick(self.shapes)
        value = self.fitted(self.expression(depth, self.shapes_within(shape)), dtype)
        name = self.name("v")
        self.variables[name] = dtype, shape
        extents = f"[{', '.join(map(str, shape))}]" if shape else ""

        def run(s, mask):
            s.variables[name] = np.broadcast_to(convert(value.value(s), dtype), shape)

        return f"{NAMES[dtype]} {name}{extents} = {value.source};", run

    def assign(self, depth, mask_shape):
        names = [
            name
            for name, (_, shape) in self.variables.items()
            if name not in self.constant_names and (mask_shape is None or self._fits(mask_shape, shape))
        ]
        if not names:
            return self.declare(depth)
        name = self.pick(names)
        dtype, shape = self.variables[name]
        value = self.expression(depth, self.shapes_within(shape))
        op = self.pick(["", "", "+", "-", "*"])
        old = Expression(name, dtype, shape, lambda s: s.variables[name])
        whole = value
        if op:
            if TYPES["half"] in (dtype, value.dtype):
                value = cast(TYPES["half"], binary("<", value, constant(1, INT)))
            if dtype.kind in "iu" and value.dtype.kind == "f":
                value = binary(">", value, constant(1, INT))
            whole = binary(op, old, value)
        else:
            whole = value = self.fitted(value, dtype)
        if whole.dtype.kind == "f" and dtype.kind in "iu":
            whole = value = self.fitted(value, dtype)
            op = ""
        if dtype == TYPES["half"] and whole.dtype.kind in "iu":
            whole = value = self.fitted(whole, dtype)
            op = ""

        def run(s, mask):
            new = np.broadcast_to(convert(whole.value(s), dtype), shape)
            s.variables[name] = new if mask is None else np.where(mask, new, s.variables[name])

        return f"{name} {op}= {value.source};", run

    @staticmethod
    def _fits(inner, outer):
        try:
            return np.broadcast_shapes(inner, outer) == outer
        except ValueError:
            return False

    def block(self, depth, mask_shape, leaves=None):
        """Statements in braces; variables that they declare end with them."""
        outer = dict(self.variables)
        statements = [self.statement(depth, mask_shape) for _ in range(self.random.integers(1, 4))]
        if leaves and self.chance(0.6):
            condition = self.expression(1, [()])
            how = self.pick(leaves)
            statements.insert(self.random.integers(len(statements) + 1), self.leaving(condition, how))
        self.variables = outer

        def run(s, mask):
            for _, each in statements:
                each(s, mask)

        return "{\n" + "\n".join(text for text, _ in statements) + "\n}", run

    def leaving(self, condition, how):
        # It may stand before declarations that the condition must not use, so it uses none.
        names = [name for name in self.variables if name in condition.source]
        if names:
            condition = binary("<", Expression("n", INT, (), lambda s: s.variables["n"]), constant(3, INT))

        def run(s, mask):
            if condition.value(s) != 0:
                raise Leave(how)

        return f"if ({condition.source}) {how};", run

    def branch(self, depth, mask_shape):
        condition = self.expression(2, [()])
        then, run_then = self.block(depth - 1, mask_shape)
        other, run_other = self.block(depth - 1, mask_shape) if self.chance(0.6) else ("", None)

        def run(s, mask):
            if condition.value(s) != 0:
                run_then(s, mask)
            elif run_other:
                run_other(s, mask)

        return f"if ({condition.source}) {then}" + (f" else {other}" if other else ""), run

    def loop(self, depth, mask_shape):
        name = self.name("i")
        count = self.pick(["n", "3", "n + 1", "2"])
        header, numbers = self.pick([
            (f"int {name} = 0; {name} < {count}; {name}++", lambda k: range(k)),
            (f"int {name} = 1; {name} <= {count}; {name} += 2", lambda k: range(1, k + 1, 2)),
            (f"int {name} = {count}; {name} > 0; {name}--", lambda k: range(k, 0, -1)),
            (f"int {name} = 0; {name} != {count}; ++{name}", lambda k: range(k)),
        ])  # fmt: skip
        self.variables[name] = INT, ()
        self.constant_names.add(name)
        masked, self.masked = self.masked, self.masked
        # A name that the loop may count with is not assigned to in it, for it could go on for ever.
        body, run_body = self.block(depth - 1, mask_shape, ["break", "continue"] if mask_shape is None else None)
        self.masked = masked
        del self.variables[name]

        def run(s, mask):
            for number in numbers(limit_of(count, s)):
                s.variables[name] = np.asarray(number, np.int32)
                try:
                    run_body(s, mask)
                except Leave as leave:
                    if leave.how == "break":
                        break

        if self.chance(0.3):  # what counts comes first, so that `continue` does not leave it out
            return self.counting(name, count, body), self.counted(name, count, run_body)
        return f"for ({header}) {body}", run

    @staticmethod
    def counting(name, count, body):
        return f"{{\nint {name} = 0;\nwhile ({name} < {count}) {{\n{name} += 1;\n{body[2:]}\n}}"

    @staticmethod
    def counted(name, count, run_body):
        def run(s, mask):
            for number in range(limit_of(count, s)):
                s.variables[name] = np.asarray(number + 1, np.int32)
                try:
                    run_body(s, mask)
                except Leave as leave:
                    if leave.how == "break":
                        break

        return run

    def predicate(self, depth, mask_shape):
        condition = self.expression(
            2, [shape for shape in self.shapes if shape and (mask_shape is None or self._fits(shape, mask_shape))]
        )
        if not condition.shape:
            return self.assign(depth, mask_shape)
        shape = condition.shape if mask_shape is None else np.broadcast_shapes(condition.shape, mask_shape)
        self.masked += 1
        body, run_body = self.block(depth - 1, shape)
        self.masked -= 1

        def run(s, mask):
            holds = condition.value(s) != 0
            run_body(s, holds if mask is None else holds & mask)

        return f"@({condition.source}) {body}", run

    def statement(self, depth, mask_shape=None):
        kind = self.pick(["declare"] * 3 + ["assign"] * 4 + ["branch", "loop", "predicate"])
        if depth <= 0 and kind in ("branch", "loop", "predicate"):
            kind = "assign"
        if kind == "declare":
            return self.declare(3)
        return self.assign(3, mask_shape) if kind == "assign" else getattr(self, kind)(depth, mask_shape)

    # ---- the whole

    def function(self):
        """Elementwise: one expression of its parameters."""
        parameters = [TYPES[self.pick(list(TYPES))] for _ in range(self.random.integers(1, 4))]
        result = TYPES[self.pick(list(TYPES))]
        self.variables = {f"a{i}": (dtype, ()) for i, dtype in enumerate(parameters)}
        self.masked += 1  # no reductions
        body = self.fitted(self.expression(2, [()]), result)
        self.masked -= 1
        name = self.name("g")
        declared = ", ".join(f"{NAMES[dtype]} a{i}" for i, dtype in enumerate(parameters))
        self.variables = {}
        entry = name, parameters, result, body
        return f"{NAMES[result]} {name}({declared}) {{ return {body.source}; }}", entry


class Program:
    """A program, its arguments, and what its variables are in the end."""

    def __init__(self, seed):
        generator = self.generator = Generator(seed)
        random = generator.random
        self.inputs = {}
        for number in range(2):
            dtype = TYPES[generator.pick(list(TYPES))]
            values = random.integers(-50, 100, 64) if dtype.kind != "f" else random.integers(-200, 200, 64) / 8
            self.inputs[f"p{number}"] = values.astype(dtype)
        texts = []
        for _ in range(random.integers(0, 3)):
            text, entry = generator.function()
            texts.append(text)
            generator.functions.append(entry)
        generator.arrays = [(name, values.dtype, len(values)) for name, values in self.inputs.items()]
        self.n = int(random.integers(0, 5))
        generator.variables = {"n": (INT, ()), "r": (INT, (generator.rows, 1)), "c": (INT, (generator.columns,))}
        generator.constant_names |= set(generator.variables)
        statements = [generator.statement(3) for _ in range(random.integers(3, 9))]
        self.outputs = {
            name: kind for name, kind in generator.variables.items() if name not in generator.constant_names
        }
        self.runs = [run for _, run in statements]
        self.text = self._text(texts, [text for text, _ in statements])

    def _text(self, functions, statements):
        rows, columns = self.generator.rows, self.generator.columns
        parameters = [f"{NAMES[values.dtype]} *{name}" for name, values in self.inputs.items()] + ["int n"]
        parameters += [f"{NAMES[dtype]} *out_{name}" for name, (dtype, _) in self.outputs.items()]
        lines = [*functions, f"kernel void f({', '.join(parameters)}) {{"]
        lines += [
            f"int r_[{rows}] = 0 ... {rows}, r[{rows}, 1] = r_[:, newaxis], c[{columns}] = 0 ... {columns};",
            *statements,
        ]
        place = {0: "out_{0}[0]", 1: "*(out_{0} + c)", 2: f"*(out_{{0}} + r * {columns} + c)"}
        for name, (_, shape) in self.outputs.items():
            target = "*(out_{0} + r)" if len(shape) == 2 and shape[1] == 1 else place[len(shape)]
            lines.append(f"{target.format(name)} = {name};")
        return "\n".join([*lines, "}"])

    def expected(self):
        rows, columns = self.generator.rows, self.generator.columns
        state = State(
            {
                "n": np.asarray(self.n, np.int32),
                "r": np.arange(rows, dtype=np.int32)[:, None],
                "c": np.arange(columns, dtype=np.int32),
            },
            self.inputs,
        )
        with np.errstate(all="ignore"):
            for run in self.runs:
                run(state, None)
        return {name: state.variables[name] for name in self.outputs}

    def actual(self):
        inputs = [
            Buffer(Array(values, KEYS.get(NAMES[values.dtype], NAMES[values.dtype]))) for values in self.inputs.values()
        ]
        outputs = {
            name: Buffer(Array(np.zeros(shape or (1,), dtype), KEYS.get(NAMES[dtype], NAMES[dtype])))
            for name, (dtype, shape) in self.outputs.items()
        }
        arguments = [each.argument for each in inputs] + [self.n] + [each.argument for each in outputs.values()]
        triton.c.compile(self.text)[(1,)](*arguments, enable_fp_fusion=False)
        return {name: each.host().values for name, each in outputs.items()}


def execute(program):
    """ "agrees", or what differs."""
    expected = program.expected()
    try:
        actual = program.actual()
    except triton.OutOfResources:
        return "OutOfResources"
    except Exception as error:
        return f"differs: {type(error).__name__}: {error}\n{program.text}"
    for name, value in expected.items():
        wanted, got = np.asarray(value).reshape(-1), actual[name].reshape(-1)
        same = (wanted == got) | ((wanted != wanted) & (got != got))
        if not same.all():
            at = int(np.argmin(same))
            return f"differs: {name} at {at}: {got[at]!r}, not {wanted[at]!r}, n = {program.n}\n{program.text}"
    return "agrees"


def prepare():
    """Nothing that each process should not do for itself."""


def outcomes(seed, targets, begin):
    """Yields what comes of a program on each target."""
    for target in targets:
        begin(target)
        os.environ["TRITON_TARGET"] = target
        yield execute(Program(seed))


def script(seed, target):
    """What shows the failure of a program."""
    return f"# TRITON_TARGET={target} python tests/fuzz/programs_c.py --show {seed}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, metavar="SEED", required=True)
    program = Program(parser.parse_args().show)
    print(program.text)
    print(execute(program).splitlines()[0])


if __name__ == "__main__":
    main()
