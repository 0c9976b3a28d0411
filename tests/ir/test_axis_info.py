"""The axis analysis against enumeration: random index arithmetic is run, and every claim checked on what came out."""

import random
import re

import numpy as np
import pytest

from triton import _C

from .interpreter import POISON, Interpreter, Undefined, byte_width

CLAIM = re.compile(
    r"\^ (parameter|result|argument)(?: of region 1,)? (\d+): contiguity \[(.*)\], divisibility \[(.*)\], "
    r"constancy \[(.*?)\], apart \[(.*?)\](, not negative)?(?:, constant (-?\d+))?"
)


class Claim:
    def __init__(self, match):
        self.contiguity, self.divisibility, self.constancy, self.apart = (
            [int(x) for x in match[i].split(",")] for i in (3, 4, 5, 6)
        )
        self.not_negative, self.constant = bool(match[7]), match[8] and int(match[8])


def claims_of(text):
    """name -> Claim, read from the annotated IR."""
    claims, names, args = {}, [], []
    for line in _C._axis_info(text).splitlines():
        match = CLAIM.search(line)
        if match:
            name = (names if match[1] == "result" else args)[int(match[2])]
            claims[name] = Claim(match)
            continue
        names = re.findall(r"%[\w.]+", line.split(" = ")[0]) if " = " in line else []
        inner = line.split("(", 1)[1] if "^(" in line or line.startswith(("kernel", "func")) else ""
        args = re.findall(r"(%[\w.]+):", inner)
    return claims


def groups(array, axis, size):
    array = np.moveaxis(array, axis, 0)
    return [array[i : i + size] for i in range(0, array.shape[0], size)]


def check(claim, value, unit):
    """Asserts each claim about one tile (or scalar)."""
    array = np.array(value, dtype=object)
    if array.ndim == 0:
        array = array.reshape(1)
    for axis in range(array.ndim):
        for group in groups(array, axis, claim.contiguity[axis]):
            steps = (np.arange(len(group)) * unit).reshape(-1, *[1] * (array.ndim - 1))
            assert np.all(group == group[0] + steps), ("contiguity", axis)
            assert np.all(group[0] % claim.divisibility[axis] == 0), ("divisibility", axis)
        for group in groups(array, axis, claim.constancy[axis]):
            assert np.all(group == group[0]), ("constancy", axis)
        assert np.all(np.diff(array, axis=axis) % claim.apart[axis] == 0), ("apart", axis)
    if claim.constant is not None:
        assert (array == claim.constant).all(), "constant"
    if claim.not_negative and unit == 1:
        assert (array >= 0).all(), "sign"


def run(text, args, program=(0, 0, 0)):
    """All values that the names took, and their types; None when the run says nothing (undefined, or overflow)."""
    interpreter = Interpreter(text, program=program, grid=(8, 8, 8), steps=2000)
    interpreter.trace = {}
    types = {}

    class Recording(dict):
        def __setitem__(self, name, type):
            types[name] = type
            dict.__setitem__(self, name, type)

    function = next(iter(interpreter.functions.values()))
    values, known = {}, Recording()
    for (name, type), arg in zip(function.params, args, strict=True):
        values[name] = arg
        known[name] = type
        interpreter.trace[name] = [arg]
    try:
        interpreter.run(function.body, values, known)
    except Undefined:
        return None
    return interpreter.trace, types


def check_program(text, argument_lists):
    claims = claims_of(text)
    checked = 0
    for args in argument_lists:
        traced = run(text, args, (random.randrange(8), 0, 0))
        if not traced:
            continue
        trace, types = traced
        flat = [x for name in trace for value in trace[name] for x in np.array(value, dtype=object).flat]
        if any(x is POISON or abs(x) > 1 << 24 for x in flat):
            continue
        # The analysis takes scalars of unknown sign to be not negative.
        scalars = [n for n in trace if not types[n].shape and n in claims and claims[n].not_negative]
        if any(x < 0 for name in scalars for x in trace[name]):
            continue
        for name, claim in claims.items():
            for value in trace.get(name, []):
                element = types[name].element
                unit = byte_width(element[1].element) if isinstance(element, tuple) else 1
                checked += 1
                try:
                    check(claim, value, unit)
                except AssertionError as error:
                    raise AssertionError(f"{error} of {name} = {value}\n{args}\n{_C._axis_info(text)}") from None
    return checked


# ---- random programs


class Generator:
    WIDTH = {"i8": 8, "i32": 32, "i64": 64}

    def __init__(self):
        self.lines, self.count = [], 0
        self.values = []  # (name, element, shape)
        self.indent = "  "

    def emit(self, op, operands, element, shape, attrs=""):
        name = f"%{self.count}"
        self.count += 1
        text = f"tile<{''.join(f'{n}x' for n in shape)}{element}>" if shape else element
        self.lines.append(f"{self.indent}{name} = {op} {', '.join(operands)}{attrs} : {text}")
        self.values.append((name, element, shape))
        return name

    def pick(self, want=lambda element, shape: True):
        found = [v for v in self.values if want(v[1], v[2])]
        return random.choice(found[-12:] if random.random() < 0.8 else found) if found else None

    def constant(self, element, shape, value):
        return self.emit("constant", [], element, shape, f" {{value = {value}}}")

    def number(self):
        return random.choice([0, 1, 2, 3, 4, 7, 8, 12, 15, 16, 32, 64, -1, -8, -16])

    def partner(self, element, shape):
        """A value of this type: an existing one, a splat or a constant."""
        other = self.pick(lambda e, s: (e, s) == (element, shape))
        choice = random.random()
        if other and choice < 0.5:
            return other[0]
        scalar = self.pick(lambda e, s: e == element and not s)
        if scalar and choice < 0.8:
            return self.emit("splat", [scalar[0]], element, shape) if shape else scalar[0]
        return self.constant(element, shape, self.number())

    def arithmetic(self):
        name, element, shape = self.pick(lambda e, s: e in ("i32", "i64"))
        op = random.choice(
            [
                "add",
                "add",
                "add",
                "sub",
                "mul",
                "div_s",
                "div_s",
                "div_u",
                "rem_s",
                "rem_s",
                "rem_u",
                "and",
                "or",
                "xor",
                "shl",
                "shr_s",
                "shr_u",
                "min_s",
                "max_s",
                "min_u",
                "max_u",
            ]
        )
        if op in ("mul", "shl", "shr_s", "shr_u"):
            limit = [0, 1, 2, 3, 4, 6, 8, 16] if op == "mul" else [0, 1, 2, 3, 4]
            other = self.constant(element, shape, random.choice(limit))
        elif op == "and" and random.random() < 0.7:
            other = self.constant(element, shape, random.choice([7, 15, 31, -8, -16, 3, 12]))
        else:
            other = self.partner(element, shape)
        operands = [name, other]
        if op in ("add", "and", "mul", "min_s") and random.random() < 0.3:
            operands.reverse()
        self.emit(op, operands, element, shape)

    def compare(self):
        name, element, shape = self.pick(lambda e, s: e in ("i32", "i64"))
        op = random.choice(["lt_s", "le_s", "gt_s", "ge_s", "lt_u", "le_u", "gt_u", "ge_u", "eq", "ne"])
        operands = [name, self.partner(element, shape)]
        random.shuffle(operands)
        self.emit(op, operands, "i1", shape)

    def select(self):
        condition = self.pick(lambda e, s: e == "i1")
        if condition:
            shape = condition[2]
            self.emit("select", [condition[0], self.partner("i32", shape), self.partner("i32", shape)], "i32", shape)

    def cast(self):
        name, element, shape = self.pick(lambda e, s: e in ("i8", "i32", "i64", "i1"))
        wider = [e for e in self.WIDTH if self.WIDTH[e] > self.WIDTH.get(element, 1)]
        narrower = [e for e in self.WIDTH if self.WIDTH[e] < self.WIDTH.get(element, 1)]
        if wider and (not narrower or random.random() < 0.6):
            self.emit(random.choice(["ext_s", "ext_u"]), [name], random.choice(wider), shape)
        elif narrower:
            self.emit("trunc", [name], random.choice(narrower), shape)

    def addptr(self):
        offset = self.pick(lambda e, s: e in ("i32", "i64"))
        pointer = self.pick(lambda e, s: e.startswith("ptr") and s == offset[2])
        if not pointer or random.random() < 0.3:
            scalar = self.pick(lambda e, s: e.startswith("ptr") and not s)
            splat = self.emit("splat", [scalar[0]], scalar[1], offset[2]) if offset[2] else scalar[0]
            pointer = (splat, scalar[1], offset[2])
        self.emit("addptr", [pointer[0], offset[0]], pointer[1], offset[2])

    def range(self):
        start = random.choice([0, 0, 0, 4, 16, -8, 3])
        extent = random.choice([4, 8, 16, 12, 32, 6, 1])
        self.emit("range", [], "i32", (extent,), f" {{start = {start}, end = {start + extent}}}")

    def shape(self):
        name, element, shape = self.pick(lambda e, s: s and np.prod(s) <= 256)
        kind = random.choice(["expand", "broadcast", "reshape", "permute", "slice", "cat", "join", "split", "extract"])
        rank = len(shape)
        if kind == "expand" and rank < 3:
            axis = random.randint(0, rank)
            self.emit("expand_dims", [name], element, (*shape[:axis], 1, *shape[axis:]), f" {{axis = {axis}}}")
        elif kind == "broadcast" and 1 in shape:
            self.emit("broadcast", [name], element, tuple(random.choice([4, 8, 6]) if n == 1 else n for n in shape))
        elif kind == "reshape":
            count = int(np.prod(shape))
            rows = random.choice([n for n in (1, 2, 3, 4, 8, 16) if count % n == 0])
            self.emit(
                "reshape", [name], element, random.choice([(rows, count // rows), (count,), (rows, 1, count // rows)])
            )
        elif kind == "permute":
            order = random.sample(range(rank), rank)
            self.emit("permute", [name], element, tuple(shape[i] for i in order), f" {{order = {order}}}")
        elif kind == "slice":
            strides = [random.choice([1, 1, 2, -1]) for _ in shape]
            extents = [random.randint(1, max(1, n // abs(s))) for n, s in zip(shape, strides, strict=True)]
            spans = [(e - 1) * abs(s) for e, s in zip(extents, strides, strict=True)]
            offsets = [
                random.randint(0, n - 1 - span) + (span if s < 0 else 0)
                for n, span, s in zip(shape, spans, strides, strict=True)
            ]
            if random.random() < 0.5 and rank == 1 and shape[0] >= 8:
                extents, strides, offsets = [shape[0] - 4], [1], [4]
            self.emit("slice", [name], element, tuple(extents), f" {{offsets = {offsets}, strides = {strides}}}")
        elif kind in ("cat", "join"):
            other = self.pick(lambda e, s: (e, s) == (element, shape))[0]
            axis = random.randrange(rank)
            if kind == "cat":
                result = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
                self.emit("cat", [name, other], element, result, f" {{axis = {axis}}}")
            elif rank < 3:
                self.emit("join", [name, other], element, (*shape, 2))
        elif kind == "split" and shape[-1] == 2:
            names = [f"%{self.count}", f"%{self.count + 1}"]
            self.count += 2
            result = shape[:-1]
            text = f"tile<{''.join(f'{n}x' for n in result)}{element}>" if result else element
            self.lines.append(f"{self.indent}{', '.join(names)} = split {name} : {text}, {text}")
            self.values += [(n, element, result) for n in names]
        elif kind == "extract":
            axis = random.randrange(rank)
            index = self.constant("i32", (), random.randrange(shape[axis]))
            self.emit("extract", [name, index], element, shape[:axis] + shape[axis + 1 :], f" {{axis = {axis}}}")

    def loop(self):
        """A loop that carries a tile and changes it."""
        if self.indent != "  ":
            return
        name, element, shape = self.pick(lambda e, s: e == "i32" or e.startswith("ptr"))
        bounds = [self.constant("i32", (), n) for n in (random.choice([0, 4, 16, 3]), random.choice([8, 20]))]
        step = self.constant("i32", (), random.choice([1, 4, 16]))
        type = f"tile<{''.join(f'{n}x' for n in shape)}{element}>" if shape else element
        result, index, carried = (f"%{self.count + i}" for i in range(3))
        self.count += 3
        head = f"{result} = for {', '.join([*bounds, step, name])} : {type}"
        self.lines.append(f"{self.indent}{head} {{ ^({index}: i32, {carried}: {type}):")
        outside, self.indent = list(self.values), "    "
        self.values += [(index, "i32", ()), (carried, element, shape)]
        for _ in range(random.randint(1, 4)):
            self.step()
        if element == "i32":
            self.emit("add", [carried, self.partner("i32", shape)], "i32", shape)
        else:
            self.emit("addptr", [carried, self.partner("i32", shape)], element, shape)
        yielded = self.values[-1][0]
        self.indent = "  "
        self.lines += [f"    yield {yielded}", "  }"]
        self.values = [*outside, (result, element, shape)]

    def step(self):
        random.choice(
            [self.arithmetic] * 8
            + [self.compare, self.select, self.cast, self.addptr, self.shape, self.shape]
            + [self.range, self.loop]
        )()

    def program(self):
        params = [("%p", "ptr<f32>", 16), ("%q", "ptr<f16>", 4), ("%a", "i32", 16), ("%b", "i32", 4), ("%c", "i32", 1)]
        self.values = [(name, type, ()) for name, type, _ in params]
        self.emit("program_id", [], "i32", (), " {axis = 0}")
        for _ in range(2):
            self.range()
        for _ in range(random.randint(4, 14)):
            self.step()
        head = ", ".join(f"{name}: {type} {{divisibility = [{d}]}}" for name, type, d in params)
        return f"kernel @k({head}) {{\n" + "\n".join(self.lines) + "\n  return\n}\n"


def arguments():
    return [
        16 * random.randrange(1, 64), 4 * random.randrange(1, 64), 16 * random.randrange(8),
        4 * random.randrange(8), random.randrange(40),
    ]  # fmt: skip


def fuzz(seed, programs):
    random.seed(seed)
    checked = 0
    for _ in range(programs):
        text = Generator().program()
        assert _C._verify(text) is None, _C._verify(text)
        checked += check_program(text, [arguments() for _ in range(4)])
    return checked


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed):
    assert fuzz(seed, 60) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_programs(seed):
    fuzz(seed, 500)


# ---- what kernels rely on


def claim_of(body, name, params="%p: ptr<f32> {divisibility = [16]}, %n: i32 {divisibility = [16]}, %m: i32"):
    return claims_of(f"kernel @k({params}) {{\n{body}\n  return\n}}\n")[name]


PROLOGUE = """
  %pid = program_id {axis = 0} : i32
  %c64 = constant {value = 64} : i32
  %start = mul %pid, %c64 : i32
  %base = splat %start : tile<64xi32>
  %range = range {start = 0, end = 64} : tile<64xi32>
  %offsets = add %base, %range : tile<64xi32>
  %bound = splat %n : tile<64xi32>
  %any = splat %m : tile<64xi32>
"""


@pytest.mark.parametrize(
    "line, contiguity, divisibility, constancy",
    [
        ("%x = add %offsets, %any : tile<64xi32>", 64, 1, 1),
        ("%x = rem_s %offsets, %bound : tile<64xi32>", 16, 16, 1),
        ("%x = rem_s %offsets, %any : tile<64xi32>", 1, 1, 1),
        ("%x = div_s %offsets, %bound : tile<64xi32>", 1, 1, 16),
        ("%x = lt_s %offsets, %bound : tile<64xi1>", 1, 1, 16),
        ("%x = ge_s %offsets, %bound : tile<64xi1>", 1, 1, 16),
        ("%x = gt_s %bound, %offsets : tile<64xi1>", 1, 1, 16),
        ("%x = le_s %offsets, %bound : tile<64xi1>", 1, 1, 1),
        ("%x = lt_s %offsets, %any : tile<64xi1>", 1, 1, 1),
        ("%x = ext_s %offsets : tile<64xi64>", 64, 64, 1),
        ("%x = hint %any {contiguity = [8], divisibility = [32]} : tile<64xi32>", 8, 32, 64),
    ],
)
def test_one_dimension(line, contiguity, divisibility, constancy):
    claim = claim_of(PROLOGUE + line, "%x")
    assert (claim.contiguity, claim.divisibility, claim.constancy) == ([contiguity], [divisibility], [constancy])


def test_rows_of_a_matrix():
    body = """
  %r = range {start = 0, end = 16} : tile<16xi32>
  %c = range {start = 0, end = 32} : tile<32xi32>
  %r2 = expand_dims %r {axis = 1} : tile<16x1xi32>
  %c2 = expand_dims %c {axis = 0} : tile<1x32xi32>
  %s = splat %n : tile<16x1xi32>
  %rs = mul %r2, %s : tile<16x1xi32>
  %rb = broadcast %rs : tile<16x32xi32>
  %cb = broadcast %c2 : tile<16x32xi32>
  %o = add %rb, %cb : tile<16x32xi32>
  %ps = splat %p : tile<16x32xptr<f32>>
  %x = addptr %ps, %o : tile<16x32xptr<f32>>
"""
    claim = claim_of(body, "%x")
    assert claim.contiguity == [1, 32] and claim.divisibility[1] == 16 and claim.constancy == [1, 1]


def test_a_pointer_that_a_loop_advances():
    body = (
        PROLOGUE
        + """
  %ps = splat %p : tile<64xptr<f32>>
  %x0 = addptr %ps, %offsets : tile<64xptr<f32>>
  %zero = constant {value = 0} : i32
  %step = splat %c64 : tile<64xi32>
  %x = for %zero, %n, %c64, %x0 : tile<64xptr<f32>> { ^(%i: i32, %inner: tile<64xptr<f32>>):
    %next = addptr %inner, %step : tile<64xptr<f32>>
    yield %next
  }
"""
    )
    assert claim_of(body, "%inner").contiguity == [64] and claim_of(body, "%inner").divisibility == [16]
    assert claim_of(body, "%i").divisibility == [64]
