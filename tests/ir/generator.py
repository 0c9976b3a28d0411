"""Random tile IR programs that mean something: typed, in bounds, and visible in what they write to memory."""

import random

CELLS = 64  # elements behind each pointer parameter
POINTERS = {"%p": "i32", "%q": "f32"}
INTS, FLOATS = ("i1", "i8", "i32", "i64"), ("f32", "f16")
WIDTH = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "f16": 16, "f32": 32}
FLOAT_OPS = ["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax", "fmin_nan", "fmax_nan", "fneg", "fabs", "floor", "fma"]
INT_OPS = [
    "add",
    "add",
    "sub",
    "mul",
    "mulhi_u",
    "div_s",
    "div_u",
    "rem_s",
    "rem_u",
    "and",
    "or",
    "xor",
    "shl",
    "shr_s",
    "shr_u",
]
INT_OPS += ["min_s", "min_u", "max_s", "max_u", "abs_s"]
SHAPES = [(), (), (4,), (6,), (1,), (4, 2), (1, 4), (4, 1), (2, 3)]
COMPARISONS = [f"{c}_{s}" for c in ("lt", "le", "gt", "ge") for s in "su"] + ["eq", "ne"]


def type_text(element, shape):
    return f"tile<{''.join(f'{n}x' for n in shape)}{element}>" if shape else element


class Generator:
    def __init__(self):
        self.lines, self.count, self.depth = [], 0, 0
        self.values = []  # (name, element, shape)

    # ---- pieces

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def line(self, text):
        self.lines.append("  " * (self.depth + 1) + text)

    def emit(self, op, operands, element, shape, attrs=""):
        name = self.name()
        self.line(f"{name} = {op} {', '.join(operands)}{attrs} : {type_text(element, shape)}")
        self.values.append((name, element, shape))
        return name

    def constant(self, element, shape=(), value=None):
        if value is None:
            value = random.choice([0, 1, 2, 3, 4, 8, 16, -1, -2, 63, 64, 7, -8])
        if element == "i1":
            value &= 1
        text = value if element in INTS else random.choice([0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 3.0, float(value)])
        return self.emit("constant", [], element, shape, f" {{value = {text}}}")

    def pick(self, want=lambda element, shape: True):
        found = [v for v in self.values if want(v[1], v[2])]
        return random.choice(found[-10:] if random.random() < 0.7 else found) if found else None

    def any_of(self, element, shape):
        """A value of this type, made if need be."""
        found = self.pick(lambda e, s: (e, s) == (element, shape))
        choice = random.random()
        if found and choice < 0.6:
            return found[0]
        scalar = self.pick(lambda e, s: (e, s) == (element, ()))
        if shape and scalar and choice < 0.8:
            return self.emit("splat", [scalar[0]], element, shape)
        narrow = self.pick(
            lambda e, s: (
                e == element and len(s) == len(shape) and all(a in (1, b) for a, b in zip(s, shape, strict=True))
            )
        )
        if shape and narrow and narrow[2] != shape and choice < 0.9:
            return self.emit("broadcast", [narrow[0]], element, shape)
        return self.constant(element, shape)

    # ---- operations

    def arithmetic(self):
        name, element, shape = self.pick(lambda e, s: e in INTS + FLOATS)
        if element in FLOATS:
            op = random.choice(FLOAT_OPS)
            count = {"fneg": 1, "fabs": 1, "floor": 1, "fma": 3}.get(op, 2)
            if op == "fma" and element != "f32":
                return
        else:
            op = random.choice(INT_OPS)
            count = 1 if op == "abs_s" else 2
        operands = [name] + [self.any_of(element, shape) for _ in range(count - 1)]
        random.shuffle(operands)
        self.emit(op, operands, element, shape)

    def compare(self):
        name, element, shape = self.pick(lambda e, s: e in INTS + FLOATS)
        ops = COMPARISONS if element in INTS else ["feq", "fne", "flt", "fle", "fgt", "fge"]
        operands = [name, self.any_of(element, shape)]
        random.shuffle(operands)
        self.emit(random.choice(ops), operands, "i1", shape)

    def select(self):
        name, element, shape = self.pick(lambda e, s: e in INTS + FLOATS)
        operands = [name, self.any_of(element, shape)]
        random.shuffle(operands)
        self.emit("select", [self.any_of("i1", shape), *operands], element, shape)

    def cast(self):
        name, element, shape = self.pick(lambda e, s: e in INTS + FLOATS)
        target = random.choice([e for e in INTS + FLOATS if e != element])
        if element in INTS and target in INTS:
            op = random.choice(["ext_s", "ext_u"]) if WIDTH[target] > WIDTH[element] else "trunc"
        elif element in INTS:
            op = random.choice(["int_to_float_s", "int_to_float_u"])
        else:
            op = "float_cast" if target in FLOATS else random.choice(["float_to_int_s", "float_to_int_u"])
        self.emit(op, [name], target, shape)

    def range(self):
        start, extent = random.choice([0, 0, 4, -3]), random.choice([4, 6, 1])
        self.emit("range", [], "i32", (extent,), f" {{start = {start}, end = {start + extent}}}")

    def shape(self):
        name, element, shape = self.pick(lambda e, s: s and e in INTS + FLOATS)
        rank = len(shape)
        kind = random.choice(["expand", "broadcast", "reshape", "permute", "slice", "cat", "join", "split", "extract"])
        if kind == "expand" and rank < 3:
            axis = random.randint(0, rank)
            self.emit("expand_dims", [name], element, (*shape[:axis], 1, *shape[axis:]), f" {{axis = {axis}}}")
        elif kind == "broadcast" and 1 in shape:
            self.emit("broadcast", [name], element, tuple(random.choice([2, 4]) if n == 1 else n for n in shape))
        elif kind == "reshape":
            n = 1
            for extent in shape:
                n *= extent
            rows = random.choice([d for d in (1, 2, 4) if n % d == 0])
            to = random.choice([(n,), (rows, n // rows), (1, n), (n, 1), (rows, 1, n // rows)])
            self.emit("reshape", [name], element, to)
        elif kind == "permute":
            order = random.sample(range(rank), rank)
            self.emit("permute", [name], element, tuple(shape[i] for i in order), f" {{order = {order}}}")
        elif kind == "slice":
            strides = [random.choice([1, 1, 2, -1]) for _ in shape]
            extents = [random.randint(1, max(1, n // abs(s))) for n, s in zip(shape, strides, strict=True)]
            offsets = []
            for n, e, s in zip(shape, extents, strides, strict=True):
                span = (e - 1) * abs(s)
                offsets.append(random.randint(0, n - 1 - span) + (span if s < 0 else 0))
            self.emit("slice", [name], element, tuple(extents), f" {{offsets = {offsets}, strides = {strides}}}")
        elif kind in ("cat", "join"):
            other = self.any_of(element, shape)
            axis = random.randrange(rank)
            if kind == "join" and rank < 3:
                self.emit("join", [name, other], element, (*shape, 2))
            elif kind == "cat" and shape[axis] <= 4:
                to = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
                self.emit("cat", [name, other], element, to, f" {{axis = {axis}}}")
        elif kind == "split" and shape[-1] == 2:
            names, type = [self.name(), self.name()], type_text(element, shape[:-1])
            self.line(f"{', '.join(names)} = split {name} : {type}, {type}")
            self.values += [(n, element, shape[:-1]) for n in names]
        elif kind == "extract":
            axis = random.randrange(rank)
            index = self.constant("i32", (), random.randrange(shape[axis]))
            self.emit("extract", [name, index], element, shape[:axis] + shape[axis + 1 :], f" {{axis = {axis}}}")

    def pointer(self, shape):
        """A pointer (tile) that stays in the parameter's memory, and its pointee."""
        param, pointee = random.choice(list(POINTERS.items()))
        offset = self.any_of("i32", shape)
        bound = self.constant("i32", shape, CELLS // 2)
        offset = self.emit("rem_u", [offset, bound], "i32", shape)
        pointer = self.emit("splat", [param], f"ptr<{pointee}>", shape) if shape else param
        for _ in range(random.choice([1, 1, 2])):
            pointer = self.emit("addptr", [pointer, offset], f"ptr<{pointee}>", shape)
            offset = self.constant("i32", shape, random.choice([0, 1, 8, 16]))
        return pointer, pointee

    def load(self):
        shape = random.choice(SHAPES)
        pointer, pointee = self.pointer(shape)
        operands = [pointer]
        if random.random() < 0.5:
            operands.append(self.any_of("i1", shape))
            if random.random() < 0.7:
                operands.append(self.any_of(pointee, shape))
        attrs = " {volatile = 1}" if random.random() < 0.1 else ""
        self.emit("load", operands, pointee, shape, attrs)

    def store(self):
        shape = random.choice(SHAPES)
        pointer, pointee = self.pointer(shape)
        operands = [pointer, self.any_of(pointee, shape)]
        if random.random() < 0.4:
            operands.append(self.any_of("i1", shape))
        self.line(f"store {', '.join(operands)}")

    def effect(self):
        name, element, shape = self.pick(lambda e, s: e in INTS)
        if random.random() < 0.5:
            self.line(f'print {name} {{message = "x"}}')
        else:
            self.line(f'assert {self.any_of("i1", shape)} {{message = "y"}}')

    def reduce(self):
        name, element, shape = self.pick(lambda e, s: s and e in INTS[1:])
        axis, scan = random.randrange(len(shape)), random.random() < 0.3
        result, a, b, c = (self.name() for _ in range(4))
        to = shape if scan else shape[:axis] + shape[axis + 1 :]
        attrs = f"axis = {axis}" + (", reverse = 1" if scan and random.random() < 0.5 else "")
        op = random.choice(["add", "min_s", "max_u", "xor", "or"])
        self.line(
            f"{result} = {'scan' if scan else 'reduce'} {name} {{{attrs}}} : {type_text(element, to)} "
            f"{{ ^({a}: {element}, {b}: {element}):"
        )
        self.line(f"  {c} = {op} {a}, {b} : {element}")
        self.line(f"  yield {c}")
        self.line("}")
        self.values.append((result, element, to))

    def dot(self):
        m, k, n = (random.choice([1, 2, 3]) for _ in range(3))
        a, b, c = self.any_of("i8", (m, k)), self.any_of("i8", (k, n)), self.any_of("i32", (m, n))
        self.emit("dot", [a, b, c], "i32", (m, n))

    def combined(self):
        """What the combine pass looks for: a product that is added to something, a choice by a load's mask."""
        if random.random() < 0.5:
            zero = self.constant("i32", (2, 2), 0)
            product = self.emit("dot", [self.any_of("i8", (2, 3)), self.any_of("i8", (3, 2)), zero], "i32", (2, 2))
            operands = [product, self.any_of("i32", (2, 2))]
            random.shuffle(operands)
            self.emit("add", operands, "i32", (2, 2))
            return
        shape = random.choice(SHAPES)
        (pointer, pointee), mask = self.pointer(shape), self.any_of("i1", shape)
        early = self.any_of(pointee, shape)
        operands = [pointer, mask] + ([self.any_of(pointee, shape)] if random.random() < 0.5 else [])
        loaded = self.emit("load", operands, pointee, shape)
        if random.random() < 0.3:
            self.store()
        late = early if random.random() < 0.7 else self.any_of(pointee, shape)
        self.emit("select", [mask, loaded, late], pointee, shape)

    # ---- control

    def block(self, steps, results):
        """A region's content: some steps, then what it yields, of the given types."""
        outside = list(self.values)
        self.depth += 1
        for _ in range(steps):
            self.step()
        names = [self.any_of(e, s) for e, s in results]
        self.line(f"yield {', '.join(names)}".rstrip())
        self.depth -= 1
        self.values = outside

    def result_types(self):
        return [random.choice(self.values)[1:] for _ in range(random.randint(0, 3))]

    def plain_types(self):
        return [(e, s) for e, s in self.result_types() if e in INTS + FLOATS]

    def branch(self):
        condition, types = self.any_of("i1", ()), self.plain_types()
        names = [self.name() for _ in types]
        head = f"{', '.join(names)} = " if names else ""
        tail = f" : {', '.join(type_text(*t) for t in types)}" if names else ""
        self.line(f"{head}if {condition}{tail} {{")
        self.block(random.randint(0, 4), types)
        self.line("} {")
        if types or random.random() < 0.5:
            self.block(random.randint(0, 4), types)
        self.line("}")
        self.values += [(n, *t) for n, t in zip(names, types, strict=True)]

    def loop(self):
        types = self.plain_types()
        if random.random() < 0.5:
            types.append(
                (random.choice([f"ptr<{e}>" for e in POINTERS.values()]), random.choice([(4,), (6,), (4, 2), ()]))
            )
        inits = []
        for element, shape in types:
            if element.startswith("ptr"):
                param = next(p for p, e in POINTERS.items() if f"ptr<{e}>" == element)
                base = self.emit("splat", [param], element, shape) if shape else param
                offset = self.constant("i32", shape, random.randrange(8))
                inits.append(self.emit("addptr", [base, offset], element, shape))
            else:
                inits.append(self.any_of(element, shape))
        results, args = [self.name() for _ in types], [self.name() for _ in types]
        index, bounds = self.name(), [self.constant("i32", (), n) for n in (random.choice([0, 0, 1, -2, 5]), 5)]
        step = self.constant("i32", (), random.choice([1, 1, 2, 3, 7]))
        head = f"{', '.join(results)} = " if results else ""
        tail = f" : {', '.join(type_text(*t) for t in types)}" if results else ""
        attrs = random.choice(["", "", f" {{unroll = {random.choice([1, 2, 3, 8])}}}"])
        carried = "".join(f", {a}: {type_text(*t)}" for a, t in zip(args, types, strict=True))
        self.line(f"{head}for {', '.join([*bounds, step, *inits])}{attrs}{tail} {{ ^({index}: i32{carried}):")
        outside = list(self.values)
        self.values += [(index, "i32", ())] + [(a, *t) for a, t in zip(args, types, strict=True)]
        self.depth += 1
        for _ in range(random.randint(1, 4)):
            self.step()
        yields = [self.next_value(a, e, s) for a, (e, s) in zip(args, types, strict=True)]
        self.line(f"yield {', '.join(yields)}".rstrip())
        self.depth -= 1
        self.line("}")
        self.values = outside + [(n, *t) for n, t in zip(results, types, strict=True)]

    def next_value(self, arg, element, shape):
        """What a loop yields for one that it carries: often its own sum with something."""
        choice = random.random()
        if element.startswith("ptr"):
            step = self.constant("i32", (), random.choice([1, 2]))
            offset = self.emit("splat", [step], "i32", shape) if shape else step
            if random.random() < 0.7:
                pointee = element[4:-1]
                value = self.emit("load", [arg], pointee, shape)
                if random.random() < 0.5:
                    self.line(f"store {arg}, {self.any_of(pointee, shape)}")
                del value
            return self.emit("addptr", [arg, offset], element, shape)
        if choice < 0.15:
            return arg
        if choice < 0.6 and element in INTS:
            return self.emit(random.choice(["add", "sub"]), [arg, self.any_of(element, shape)], element, shape)
        return self.any_of(element, shape)

    def while_loop(self):
        """Counts down from a small number, whatever else it does."""
        types = self.plain_types()[:2]
        inits = [self.constant("i32", (), random.randint(0, 3))] + [self.any_of(*t) for t in types]
        types = [("i32", ()), *types]
        results, first, second = ([self.name() for _ in types] for _ in range(3))
        text = ", ".join(type_text(*t) for t in types)
        lists = [", ".join(f"{a}: {type_text(*t)}" for a, t in zip(x, types, strict=True)) for x in (first, second)]
        self.line(f"{', '.join(results)} = while {', '.join(inits)} : {text} {{ ^({lists[0]}):")
        outside = list(self.values)
        self.values = outside + [(a, *t) for a, t in zip(first, types, strict=True)]
        self.depth += 1
        if random.random() < 0.3:
            self.step()
        condition = self.emit("gt_s", [first[0], self.constant("i32", (), 0)], "i1", ())
        self.line(f"condition {condition}")
        self.depth -= 1
        self.line(f"}} {{ ^({lists[1]}):")
        self.values = outside + [(a, *t) for a, t in zip(second, types, strict=True)]
        self.depth += 1
        for _ in range(random.randint(0, 3)):
            self.step()
        one = self.constant("i32", (), 1)
        yields = [self.emit("sub", [second[0], one], "i32", ())]
        yields += [self.next_value(a, e, s) for a, (e, s) in zip(second[1:], types[1:], strict=True)]
        self.line(f"yield {', '.join(yields)}")
        self.depth -= 1
        self.line("}")
        self.values = outside + [(n, *t) for n, t in zip(results, types, strict=True)]

    def step(self):
        steps = [self.arithmetic] * 6 + [self.compare, self.select, self.cast, self.range, self.shape, self.shape]
        steps += [self.load, self.load, self.store, self.reduce, self.dot, self.combined]
        if random.random() < 0.1:
            steps = [self.effect]
        if self.depth < 3 and random.random() < 0.25:
            steps = [self.branch, self.loop, self.while_loop]
        random.choice(steps)()

    def program(self, steps=12):
        params = [*((p, f"ptr<{e}>") for p, e in POINTERS.items()), ("%a", "i32"), ("%b", "i32"), ("%x", "f32")]
        self.values = [("%a", "i32", ()), ("%b", "i32", ()), ("%x", "f32", ())]
        self.emit("program_id", [], "i32", (), " {axis = 0}")
        self.range()
        self.load()
        for _ in range(random.randint(3, steps)):
            self.step()
        self.store()
        self.store()
        # Whatever is left over is seen, too.
        for name, element, _ in random.sample(self.values, min(len(self.values), 8)):
            if element in INTS + FLOATS:
                self.line(f'print {name} {{message = "{name[1:]}"}}')
        head = ", ".join(f"{name}: {type}" for name, type in params)
        return f"kernel @k({head}) {{\n" + "\n".join(self.lines) + "\n  return\n}\n"
