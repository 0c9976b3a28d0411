"""What the steps of a random program do. Each function here tries to add one step to a Generator's program."""

import math

import numpy as np
from generate import FLOATS, Reference, join_errors, rounded
from harness import DTYPES, INTS, Array, converted, promoted, ulp


def convert(x, dtype):
    """The value in another dtype, as the language promotes operands."""
    if x.dtype == dtype:
        return x
    if x.exact:
        return Reference(converted(Array(x.values, x.dtype), dtype).values, dtype)
    return rounded(x.wide, dtype, x.error)


def compatible(g, x, test):
    """A value that passes a test and broadcasts with `x`."""

    def fits(y):
        try:
            return test(y) and math.prod(np.broadcast_shapes(x.shape, y.shape)) <= 4096
        except ValueError:
            return False

    return g.find(fits)


def is_number(x):
    return x.number


def is_exact_number(x):
    return x.number and x.exact


def is_exact_int(x):
    return x.exact and x.dtype in INTS


def sum_error(x, y, _):
    return join_errors(x.error, y.error)


def product_error(x, y, _):
    if x.exact and y.exact:
        return None
    return np.abs(x.wide) * y.bound + np.abs(y.wide) * x.bound + x.bound * y.bound


ARITHMETIC = {"+": (np.add, sum_error), "-": (np.subtract, sum_error), "*": (np.multiply, product_error)}


def combine(operator, x, y, dtype):
    function, error = ARITHMETIC[operator]
    x, y = convert(x, dtype), convert(y, dtype)
    if x.kind != "float":
        return Reference(function(x.values, y.values), dtype)
    result, inexact = function(x.wide, y.wide), error(x, y, None)
    if operator != "*" and x.terms + y.terms:
        inexact = inexact + (x.terms + y.terms) * ulp(result, dtype)
    return rounded(result, dtype, inexact)


def arithmetic(g):
    i = g.find(is_number)
    j = None if i is None else compatible(g, g.values[i], is_number)
    if j is None:
        return
    operator = g.pick(list(ARITHMETIC))
    dtype = promoted(g.values[i].dtype, g.values[j].dtype)
    g.add(f"{{0}} {operator} {{1}}", [i, j], lambda _, x, y: combine(operator, x, y, dtype))


def with_a_literal(g):
    """A weak number: an integer with any dtype, a float with floats."""
    i = g.find(is_number)
    if i is None:
        return
    x = g.values[i]
    literal = g.pick([0.5, 2.0, -1.25, 3.0]) if x.kind == "float" and g.chance(0.5) else g.integer(0, 100)
    operator, swapped = g.pick(list(ARITHMETIC)), g.chance(0.5)
    code = f"{literal} {operator} {{0}}" if swapped else f"{{0}} {operator} {literal}"

    def compute(_, x):
        number = Reference(np.asarray(literal).astype(DTYPES[x.dtype].values), x.dtype)
        return combine(operator, number, x, x.dtype) if swapped else combine(operator, x, number, x.dtype)

    g.add(code, [i], compute)


def true_division(g):
    i = g.find(is_number)
    j = None if i is None else compatible(g, g.values[i], is_exact_number)
    if j is None:
        return
    both = promoted(g.values[i].dtype, g.values[j].dtype)
    dtype = "float64" if both == "float64" else "float32"

    def compute(_, x, y):
        x, y = convert(x, dtype), convert(y, dtype)
        divisor = np.where(y.wide == 0, 3, y.wide)
        quotient = x.wide / divisor
        return rounded(quotient, dtype, x.bound / np.abs(divisor) + 2 * ulp(quotient, dtype))

    if {g.values[i].kind, g.values[j].kind} == {"int", "uint"}:
        return
    g.add("{0} / tl.where({1} == 0, 3, {1})", [i, j], compute)


def integer_division(g):
    i = g.find(is_exact_int)
    j = None if i is None else compatible(g, g.values[i], lambda y: is_exact_int(y) and y.kind == g.values[i].kind)
    if j is None:
        return
    dtype, operator = promoted(g.values[i].dtype, g.values[j].dtype), g.pick(["//", "%"])

    def compute(_, x, y):
        x, y = np.broadcast_arrays(convert(x, dtype).values, convert(y, dtype).values)
        y = np.where((y == 0) | (y.astype(object) == -1), 7, y).astype(y.dtype)
        pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))  # Python's integers do not wrap
        quotients = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
        remainders = [a - q * b for (a, b), q in zip(pairs, quotients, strict=True)]
        result = quotients if operator == "//" else remainders
        return Reference(np.array(result, x.dtype).reshape(x.shape), dtype)

    avoid = "({1} == 0)" if DTYPES[dtype].kind == "uint" else "(({1} == 0) | ({1} == -1))"
    cast = f".to(tl.{dtype})"
    g.add(f"{{0}}{cast} {operator} tl.where({avoid}, 7, {{1}}{cast})", [i, j], compute)


def bits(g):
    i = g.find(is_exact_int)
    j = None if i is None else compatible(g, g.values[i], is_exact_int)
    if j is None:
        return
    operator = g.pick(["&", "|", "^", "<<", ">>"])
    dtype = promoted(g.values[i].dtype, g.values[j].dtype)
    width = DTYPES[dtype].bits

    def compute(_, x, y):
        x, y = convert(x, dtype).values, convert(y, dtype).values
        if operator in "<<>>":
            y = y & y.dtype.type(width - 1)
        functions = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift}
        return Reference(functions.get(operator, np.right_shift)(x, y), dtype)

    left = f"{{0}}.to(tl.{dtype})"
    right = f"({{1}}.to(tl.{dtype}) & {width - 1})" if operator in ("<<", ">>") else "{1}"
    g.add(f"{left} {operator} {right}", [i, j], compute)


def unary(g):
    name = g.pick(["-", "abs", "~", "floor", "ceil"])
    if name == "~":
        i = g.find(lambda x: x.exact and (x.dtype in INTS or x.dtype == "int1"))
    elif name in ("floor", "ceil"):
        i = g.find(lambda x: x.exact and x.dtype in ("float32", "float64"))
    else:
        i = g.find(is_number)
    if i is None:
        return
    code = {"-": "-{0}", "abs": "tl.abs({0})", "~": "~{0}"}.get(name, f"tl.{name}({{0}})")
    functions = {"-": np.negative, "abs": np.abs, "~": np.invert, "floor": np.floor, "ceil": np.ceil}
    g.add(code, [i], lambda _, x: Reference(functions[name](x.values), x.dtype, x.error))


erf, tanh = np.vectorize(math.erf, otypes=[np.float64]), np.tanh
# code, the function, the largest slope, units in the last place of its result
FUNCTIONS = [
    ("tl.exp(-tl.abs({0}))", lambda x: np.exp(-np.abs(x)), 1, 3), ("tl.sin({0})", np.sin, 1, 3),
    ("tl.cos({0})", np.cos, 1, 3), ("tl.erf({0})", erf, 1.2, 4),
    ("tl.sigmoid({0})", lambda x: 1 / (1 + np.exp(-x)), 0.25, 6),
    ("tl.extra.libdevice.tanh({0})", tanh, 1, 4),
    ("tl.sqrt(tl.abs({0}) + 1)", lambda x: np.sqrt(np.abs(x) + 1), 0.5, 3),
    ("tl.log(tl.abs({0}) + 1)", lambda x: np.log(np.abs(x) + 1), 1, 3),
    ("tl.log2(tl.abs({0}) + 1)", lambda x: np.log2(np.abs(x) + 1), 1.5, 3),
    ("tl.rsqrt(tl.abs({0}) + 1)", lambda x: 1 / np.sqrt(np.abs(x) + 1), 0.5, 3),
    ("tl.exp2(tl.minimum({0}, 5.0))", lambda x: np.exp2(np.fmin(x, 5)), 23, 4),
]  # fmt: skip


def mathematics(g):
    i = g.find(lambda x: x.dtype in FLOATS)
    if i is None:
        return
    code, function, slope, ulps = g.pick(FUNCTIONS)

    def compute(_, x):
        inside = ulp(np.abs(x.wide) + 1, x.dtype)  # rounding of what the function is given
        result = function(x.wide)
        return rounded(result, x.dtype, slope * (x.bound + inside) + ulps * ulp(result, x.dtype))

    g.add(code, [i], compute)


def comparison(g):
    i = g.find(is_exact_number)
    j = None if i is None else compatible(g, g.values[i], is_exact_number)
    if j is None:
        return
    operator = g.pick(["<", "<=", ">", ">=", "==", "!="])
    functions = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
    dtype = promoted(g.values[i].dtype, g.values[j].dtype)

    def compute(_, x, y):
        x, y = convert(x, dtype).values, convert(y, dtype).values
        return Reference(functions.get(operator, np.not_equal)(x, y), "int1")

    g.add(f"{{0}} {operator} {{1}}", [i, j], compute)


def logic(g):
    i = g.find(lambda x: x.dtype == "int1")
    j = None if i is None else compatible(g, g.values[i], lambda y: y.dtype == "int1")
    if j is None:
        return
    operator = g.pick("&|^")
    functions = {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor}
    g.add(f"{{0}} {operator} {{1}}", [i, j], lambda _, x, y: Reference(functions[operator](x.values, y.values), "int1"))


def where(g):
    c = g.find(lambda x: x.dtype == "int1")
    i = None if c is None else compatible(g, g.values[c], is_number)
    j = None if i is None else compatible(g, g.values[i], is_number)
    if j is None:
        return
    dtype = promoted(g.values[i].dtype, g.values[j].dtype)
    try:
        np.broadcast_shapes(*(g.values[k].shape for k in (c, i, j)))
    except ValueError:
        return

    def compute(_, condition, x, y):
        x, y = convert(x, dtype), convert(y, dtype)
        error = None if x.exact and y.exact else np.where(condition.values, x.bound, y.bound)
        return Reference(np.where(condition.values, x.values, y.values), dtype, error)

    g.add("tl.where({0}, {1}, {2})", [c, i, j], compute)


def extremes(g):
    i = g.find(is_number)
    j = None if i is None else compatible(g, g.values[i], is_number)
    if j is None:
        return
    name, dtype = g.pick(["minimum", "maximum"]), promoted(g.values[i].dtype, g.values[j].dtype)
    function = {"minimum": np.fmin, "maximum": np.fmax}[name]

    def compute(_, x, y):
        x, y = convert(x, dtype), convert(y, dtype)
        error = None if x.exact and y.exact else np.maximum(*np.broadcast_arrays(x.bound, y.bound))
        return Reference(function(x.values, y.values), dtype, error)

    g.add(f"tl.{name}({{0}}, {{1}})", [i, j], compute)


def cast(g):
    i = g.find()
    x = g.values[i]
    dtype = g.pick(["int1", *INTS, *FLOATS, *FLOATS, "float8e4nv", "float8e5"])
    kind = DTYPES[dtype].kind
    if not x.exact and kind != "float":
        return
    if x.kind == "float" and kind in ("int", "uint"):
        if x.dtype.startswith("float8"):
            return
        low, high = (-100.0, 100.0) if kind == "int" else (0.0, 100.0)

        def compute(_, x):
            inside = np.fmax(np.fmin(x.values, x.values.dtype.type(high)), x.values.dtype.type(low))
            return Reference(converted(Array(inside, x.dtype), dtype).values, dtype)

        g.add(f"tl.maximum(tl.minimum({{0}}, {high}), {low}).to(tl.{dtype})", [i], compute)
    else:
        g.add(f"{{0}}.to(tl.{dtype})", [i], lambda _, x: convert(x, dtype))


def relabel(g):
    """The same bits with the other signedness."""
    i = g.find(is_exact_int)
    if i is not None:
        dtype = g.values[i].dtype
        other = dtype.removeprefix("u") if dtype[0] == "u" else "u" + dtype
        view = DTYPES[other].numpy
        g.add(f"{{0}}.to(tl.{other}, bitcast=True)", [i], lambda _, x: Reference(x.values.view(view), other))


def program_id(g):
    g.add("tl.program_id(0)", [], lambda pid: Reference(np.asarray(pid, np.int32), "int32"))


def loop(g):
    """A value carried through a few iterations."""
    i = g.find(is_number)
    if i is None:
        return
    count = g.integer(0, 4)
    kind = g.pick(["range", "tl.static_range", "tl.range"])
    if g.values[i].kind == "float":
        body, body_steps = "{out} * 0.5 + {0}", [("*", 0.5), ("+", None)]
    else:
        body, body_steps = "{out} * 3 - {0}", [("*", 3), ("-", None)]

    def compute(_, x):
        value = x
        for _ in range(count):
            for operator, literal in body_steps:
                number = x if literal is None else Reference(np.asarray(literal).astype(x.values.dtype), x.dtype)
                value = combine(operator, value, number, x.dtype)
        return value

    g.add(f"{{out}} = {{0}}\nfor i in {kind}({count}):\n    {{out}} = {body}", [i], compute)


def branch(g):
    c = g.find(lambda x: x.dtype == "int1" and x.shape == ())
    i = g.find(is_number)
    if c is None or i is None:
        return

    def compute(_, condition, x):
        return combine("+", x, x, x.dtype) if condition.values else Reference(np.negative(x.values), x.dtype, x.error)

    if g.chance(0.5):
        g.add("({1} + {1}) if {0} else -{1}", [c, i], compute)
    else:
        g.add("if {0}:\n    {out} = {1} + {1}\nelse:\n    {out} = -{1}", [c, i], compute)


def _register():
    import moved_operations
    import program_operations
    import tile_operations

    simple = [arithmetic, arithmetic, with_a_literal, true_division, integer_division, bits, unary, mathematics]
    simple += [comparison, logic, where, extremes, cast, cast, relabel, program_id, loop, branch]
    whole = tile_operations.OPERATIONS + program_operations.OPERATIONS + moved_operations.OPERATIONS
    return 2 * simple + whole


OPERATIONS = _register()
