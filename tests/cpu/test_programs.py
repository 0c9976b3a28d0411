"""Random programs of tile IR, with memory, loops and branches, against an interpreter on NumPy.

All values are i32 (wrapping) or i1, so results are exact. Arrays are distinct, but loads and stores within one overlap
at random, and values live across them: what is checked above all is that nothing moves where it may not.
"""

import random

import numpy as np
import pytest

from triton import _C

WORDS = 4096
SHAPES = [(5,), (16,), (33,), (4, 8), (3, 17), (2, 3, 4), (64,), (16, 16), (20, 33)]
BINARY = ["add", "sub", "mul", "xor", "min_s", "max_s", "div_u"]


def tile_type(element, shape):
    return f"tile<{'x'.join(map(str, shape))}x{element}>" if shape else element


class Var:
    def __init__(self, name, element, shape):
        self.name, self.element, self.shape = name, element, shape

    @property
    def type(self):
        return tile_type(self.element, self.shape)


def compute(name, a, b):
    if name == "div_u":
        return (np.asarray(a).view(np.uint32) // np.asarray(b).view(np.uint32)).view(np.int32)
    functions = {
        "or": np.bitwise_or,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "xor": np.bitwise_xor,
        "min_s": np.minimum,
        "max_s": np.maximum,
    }
    return functions[name](a, b)


class Generator:
    """Writes a program as text lines, and as closures over an environment of values and memory."""

    def __init__(self, seed, size):
        self.random = random.Random(seed)
        self.count, self.size = 0, size

    # Each emit_* appends text to `lines` and a function (env, memory) -> None to `steps`.
    def fresh(self, element, shape):
        self.count += 1
        return Var(f"%v{self.count}", element, tuple(shape))

    def define(self, block, text, element, shape, function, *operands):
        result = self.fresh(element, shape)
        names = [o.name for o in operands]
        block.lines.append(f"{result.name} = {text} : {result.type}")
        block.steps.append(lambda env, memory: env.__setitem__(result.name, function(*[env[n] for n in names])))
        block.vars.append(result)
        return result

    def pick(self, block, element="i32", shape=None, rank=None):
        found = [
            v
            for v in block.scope()
            if v.element == element
            and (shape is None or v.shape == tuple(shape))
            and (rank is None or len(v.shape) == rank)
        ]
        if not found:
            return None
        recent = found[-6:]
        return self.random.choice(recent if self.random.random() < 0.6 else found)

    def constant(self, block, value, shape=()):
        return self.define(
            block,
            f"constant {{value = {value}}}",
            "i32",
            shape,
            lambda: np.full(shape, value, np.int32) if shape else np.int32(value),
        )

    def operand(self, block, shape):
        return self.pick(block, "i32", shape) or self.constant(block, self.random.randint(-99, 99), shape)

    def offsets(self, block, shape, order=None):
        """Row-major offsets; with `order`, as if the dimensions lay in memory in that order."""
        total, order = None, order or list(range(len(shape)))
        for axis, extent in enumerate(shape):
            x = self.define(
                block,
                f"range {{start = 0, end = {extent}}}",
                "i32",
                (extent,),
                lambda extent=extent: np.arange(extent, dtype=np.int32),
            )
            behind = order[order.index(axis) + 1 :]
            stride = int(np.prod([shape[i] for i in behind]))
            if stride != 1:
                x = self.binary(block, "mul", x, self.constant(block, stride, (extent,)))
            for other in range(len(shape)):
                if other != axis:
                    x = self.expand(block, x, other)
            if x.shape != shape:
                x = self.broadcast(block, x, shape)
            total = x if total is None else self.binary(block, "add", total, x)
        return total

    def binary(self, block, name, a, b):
        if name == "div_u":  # by an odd number
            b = self.binary(block, "or", b, self.constant(block, 1, b.shape))
        return self.define(block, f"{name} {a.name}, {b.name}", "i32", a.shape, lambda x, y: compute(name, x, y), a, b)

    def expand(self, block, x, axis):
        shape = x.shape[:axis] + (1,) + x.shape[axis:]
        return self.define(
            block, f"expand_dims {x.name} {{axis = {axis}}}", "i32", shape, lambda v: np.expand_dims(v, axis), x
        )

    def broadcast(self, block, x, shape):
        return self.define(block, f"broadcast {x.name}", x.element, shape, lambda v: np.broadcast_to(v, shape), x)

    def splat(self, block, x, shape):
        if not shape:
            return x
        return self.define(block, f"splat {x.name}", x.element, shape, lambda v: np.full(shape, v), x)

    def mask(self, block, shape):
        a, b = self.operand(block, shape), self.operand(block, shape)
        return self.define(block, f"lt_s {a.name}, {b.name}", "i1", shape, lambda x, y: np.less(x, y), a, b)

    def pointers(self, block, shape):
        """A pointer tile into one of the arrays, and the variable with its element offsets."""
        array = self.random.randrange(3)
        start = self.constant(block, self.random.choice([0, 0, 3, 8, 100]))
        order = self.random.sample(range(len(shape)), len(shape)) if self.random.random() < 0.4 else None
        offsets = (
            self.binary(block, "add", self.offsets(block, shape, order), self.splat(block, start, shape))
            if shape
            else start
        )
        self.count += 1
        base, pointer = f"%base{self.count}", f"%pointer{self.count}"
        kind = tile_type("ptr<i32>", shape)
        if shape:
            block.lines.append(f"{base} = splat %array{array} : {kind}")
            block.lines.append(f"{pointer} = addptr {base}, {offsets.name} : {kind}")
        else:
            block.lines.append(f"{pointer} = addptr %array{array}, {offsets.name} : {kind}")
        return array, pointer, offsets

    def load(self, block):
        shape = self.random.choice([(), *SHAPES])
        array, pointer, offsets = self.pointers(block, shape)
        result = self.fresh("i32", shape)
        if self.random.random() < 0.5:
            mask, other = self.mask(block, shape), self.operand(block, shape)
            block.lines.append(f"{result.name} = load {pointer}, {mask.name}, {other.name} : {result.type}")
            block.steps.append(
                lambda env, memory: env.__setitem__(
                    result.name,
                    np.where(env[mask.name], memory[array][env[offsets.name]], env[other.name]).astype(np.int32)[()],
                )
            )
        else:
            block.lines.append(f"{result.name} = load {pointer} : {result.type}")
            block.steps.append(
                lambda env, memory: env.__setitem__(result.name, memory[array][env[offsets.name]].copy())
            )
        block.vars.append(result)

    def store(self, block):
        value = self.pick(block, "i32")
        if value is None:
            return
        array, pointer, offsets = self.pointers(block, value.shape)
        if self.random.random() < 0.4:
            mask = self.mask(block, value.shape)
            block.lines.append(f"store {pointer}, {value.name}, {mask.name}")

            def step(env, memory):
                keep = np.asarray(env[mask.name])
                at, what = np.asarray(env[offsets.name]), np.broadcast_to(env[value.name], keep.shape)
                memory[array][at[keep]] = what[keep]
        else:
            block.lines.append(f"store {pointer}, {value.name}")

            def step(env, memory):
                memory[array][env[offsets.name]] = env[value.name]

        block.steps.append(step)

    def shape_op(self, block):
        x = self.pick(block, "i32")
        if x is None or not x.shape or np.prod(x.shape) > 1000:
            return
        rank, r = len(x.shape), self.random
        kind = r.choice(["permute", "reshape", "join", "split", "slice", "extract", "gather", "cat", "broadcast"])
        if kind == "permute":
            order = r.sample(range(rank), rank)
            shape = tuple(x.shape[i] for i in order)
            self.define(
                block, f"permute {x.name} {{order = {order}}}", "i32", shape, lambda v: np.transpose(v, order), x
            )
        elif kind == "reshape":
            total = int(np.prod(x.shape))
            choices = [(total,), (1, total), (total, 1)]
            choices += [(d, total // d) for d in (2, 3, 4, 8) if total % d == 0]
            shape = r.choice(choices)
            self.define(block, f"reshape {x.name}", "i32", shape, lambda v: np.reshape(v, shape), x)
        elif kind == "join":
            y = self.operand(block, x.shape)
            self.define(
                block, f"join {x.name}, {y.name}", "i32", (*x.shape, 2), lambda a, b: np.stack([a, b], -1), x, y
            )
        elif kind == "split" and x.shape[-1] == 2:
            a, b = self.fresh("i32", x.shape[:-1]), self.fresh("i32", x.shape[:-1])
            block.lines.append(f"{a.name}, {b.name} = split {x.name} : {a.type}, {b.type}")
            block.steps.append(
                lambda env, memory: env.update({a.name: env[x.name][..., 0], b.name: env[x.name][..., 1]})
            )
            block.vars += [a, b]
        elif kind == "slice":
            offsets, strides, shape = [], [], []
            for extent in x.shape:
                offsets.append(r.randrange(extent))
                strides.append(r.choice([1, 1, 2, 3]))
                shape.append(r.randint(1, (extent - 1 - offsets[-1]) // strides[-1] + 1))
            index = tuple(slice(o, o + (n - 1) * s + 1, s) for o, s, n in zip(offsets, strides, shape, strict=True))
            text = f"slice {x.name} {{offsets = {offsets}, strides = {strides}}}"
            self.define(block, text, "i32", tuple(shape), lambda v: v[index], x)
        elif kind == "extract":
            axis = r.randrange(rank)
            at = self.constant(block, r.randrange(x.shape[axis]))
            self.define(
                block,
                f"extract {x.name}, {at.name} {{axis = {axis}}}",
                "i32",
                x.shape[:axis] + x.shape[axis + 1 :],
                lambda v, i: np.take(v, i, axis),
                x,
                at,
            )
        elif kind == "gather":
            axis = r.randrange(rank)
            index = self.operand(block, x.shape)
            extent = self.constant(block, x.shape[axis], x.shape)
            index = self.define(
                block,
                f"rem_u {index.name}, {extent.name}",
                "i32",
                x.shape,
                lambda a, b: (np.asarray(a).view(np.uint32) % np.asarray(b).view(np.uint32)).view(np.int32),
                index,
                extent,
            )
            self.define(
                block,
                f"gather {x.name}, {index.name} {{axis = {axis}}}",
                "i32",
                x.shape,
                lambda v, i: np.take_along_axis(v, i, axis),
                x,
                index,
            )
        elif kind == "cat":
            y = self.operand(block, x.shape)
            axis = r.randrange(rank)
            shape = x.shape[:axis] + (2 * x.shape[axis],) + x.shape[axis + 1 :]
            if np.prod(shape) > 600:
                return
            self.define(
                block,
                f"cat {x.name}, {y.name} {{axis = {axis}}}",
                "i32",
                shape,
                lambda a, b: np.concatenate([a, b], axis),
                x,
                y,
            )
        elif kind == "broadcast" and rank < 3 and np.prod(x.shape) < 100:
            axis, extent = r.randint(0, rank), r.choice([2, 5, 16])
            x = self.expand(block, x, axis)
            shape = x.shape[:axis] + (extent,) + x.shape[axis + 1 :]
            self.broadcast(block, x, shape)

    def reduce(self, block):
        x = self.pick(block, "i32")
        if x is None or not x.shape:
            return
        axis, name = self.random.randrange(len(x.shape)), self.random.choice(["add", "max_s", "xor", "argmax"])
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        if name == "argmax":
            self.argmax(block, x, axis, shape)
            return
        result = self.fresh("i32", shape)
        block.lines.append(
            f"{result.name} = reduce {x.name} {{axis = {axis}}} : {result.type} {{ ^(%a{self.count}: i32, "
            f"%b{self.count}: i32): %c{self.count} = {name} %a{self.count}, %b{self.count} : i32\n"
            f"yield %c{self.count} }}"
        )
        functions = {"add": np.add, "max_s": np.maximum, "xor": np.bitwise_xor}
        block.steps.append(
            lambda env, memory: env.__setitem__(result.name, functions[name].reduce(env[x.name], axis, dtype=np.int32))
        )
        block.vars.append(result)

    def argmax(self, block, x, axis, shape):
        where = self.offsets(block, x.shape)
        best, at = self.fresh("i32", shape), self.fresh("i32", shape)
        n = self.count
        block.lines.append(
            f"{best.name}, {at.name} = reduce {x.name}, {where.name} {{axis = {axis}}} : {best.type}, {at.type} {{ "
            f"^(%a{n}: i32, %i{n}: i32, %b{n}: i32, %j{n}: i32): %g{n} = gt_s %a{n}, %b{n} : i1\n"
            f"%e{n} = eq %a{n}, %b{n} : i1\n%l{n} = lt_s %i{n}, %j{n} : i1\n%f{n} = and %e{n}, %l{n} : i1\n"
            f"%t{n} = or %g{n}, %f{n} : i1\n%x{n} = select %t{n}, %a{n}, %b{n} : i32\n"
            f"%y{n} = select %t{n}, %i{n}, %j{n} : i32\nyield %x{n}, %y{n} }}"
        )

        def step(env, memory):
            index = np.expand_dims(np.argmax(env[x.name], axis), axis)
            env[best.name] = np.take_along_axis(env[x.name], index, axis).squeeze(axis)[()]
            env[at.name] = np.take_along_axis(env[where.name], index, axis).squeeze(axis)[()]

        block.steps.append(step)
        block.vars += [best, at]

    def scan(self, block):
        x = self.pick(block, "i32")
        if x is None or not x.shape:
            return
        axis, reverse = self.random.randrange(len(x.shape)), self.random.random() < 0.5
        result = self.fresh("i32", x.shape)
        n, name = self.count, self.random.choice(["add", "max_s"])
        block.lines.append(
            f"{result.name} = scan {x.name} {{axis = {axis}{', reverse = 1' * reverse}}} : {result.type} {{ "
            f"^(%a{n}: i32, %b{n}: i32): %c{n} = {name} %a{n}, %b{n} : i32\nyield %c{n} }}"
        )
        function = {"add": np.add, "max_s": np.maximum}[name]

        def step(env, memory):
            v = np.flip(env[x.name], axis) if reverse else env[x.name]
            v = function.accumulate(v, axis, dtype=np.int32)
            env[result.name] = np.flip(v, axis) if reverse else v

        block.steps.append(step)
        block.vars.append(result)

    def dot(self, block):
        x = self.pick(block, "i32", rank=2)
        if x is None:
            return
        y = self.define(
            block, f"permute {x.name} {{order = [1, 0]}}", "i32", x.shape[::-1], lambda v: np.transpose(v), x
        )
        m = x.shape[0]
        if m > 40:
            return
        z = self.operand(block, (m, m))
        self.define(
            block,
            f"dot {x.name}, {y.name}, {z.name}",
            "i32",
            (m, m),
            lambda a, b, c: (a.astype(np.int64) @ b + c).astype(np.int32),
            x,
            y,
            z,
        )

    def condition(self, block):
        x = self.operand(block, ())
        y = self.constant(block, self.random.randint(-50, 50))
        return self.define(block, f"lt_s {x.name}, {y.name}", "i1", (), lambda a, b: a < b, x, y)

    def carried(self, block):
        """Types that a loop or branch passes on, with values for them."""
        values = [self.pick(block, "i32") for _ in range(self.random.randint(0, 3))]
        return [v for v in values if v is not None]

    def branch(self, block, depth):
        condition, values = self.condition(block), self.carried(block)
        results = [self.fresh("i32", v.shape) for v in values]
        regions = []
        for _ in range(2):
            inner = Block(block)
            self.body(inner, depth + 1)
            yields = [self.operand(inner, v.shape) for v in values]
            inner.lines.append(f"yield {', '.join(y.name for y in yields)}")
            regions.append((inner, yields))
        names = ", ".join(r.name for r in results)
        block.lines.append(
            f"{names + ' = ' if names else ''}if {condition.name}{' : ' if names else ''}"
            f"{', '.join(r.type for r in results)} {{"
        )
        block.lines += regions[0][0].lines + ["} {"] + regions[1][0].lines + ["}"]

        def step(env, memory):
            inner, yields = regions[0 if env[condition.name] else 1]
            for s in inner.steps:
                s(env, memory)
            env.update(zip([r.name for r in results], [env[y.name] for y in yields], strict=True))

        block.steps.append(step)
        block.vars += results

    def loop(self, block, depth):
        values = self.carried(block)
        trips = self.random.randint(0, 3)
        bounds = [self.constant(block, c) for c in (0, 2 * trips, 2)]
        index = self.fresh("i32", ())
        args = [self.fresh("i32", v.shape) for v in values]
        results = [self.fresh("i32", v.shape) for v in values]
        inner = Block(block)
        inner.vars += [index, *args]
        self.body(inner, depth + 1)
        yields = [self.operand(inner, v.shape) for v in values]
        names = ", ".join(r.name for r in results)
        parameters = ", ".join(f"{v.name}: {v.type}" for v in [index, *args])
        block.lines.append(
            f"{names + ' = ' if names else ''}for {', '.join(v.name for v in bounds + values)}"
            f"{' : ' if names else ''}{', '.join(r.type for r in results)} {{ ^({parameters}):"
        )
        block.lines += [*inner.lines, f"yield {', '.join(y.name for y in yields)}", "}"]

        def step(env, memory):
            current = [env[v.name] for v in values]
            for i in range(trips):
                env[index.name] = np.int32(2 * i)
                env.update(zip([a.name for a in args], current, strict=True))
                for s in inner.steps:
                    s(env, memory)
                current = [env[y.name] for y in yields]
            env.update(zip([r.name for r in results], current, strict=True))

        block.steps.append(step)
        block.vars += results

    def body(self, block, depth=0):
        kinds = ["binary"] * 5 + ["load"] * 3 + ["store"] * 2 + ["shape"] * 4 + ["reduce"] * 2 + ["scan", "dot"]
        kinds += ["branch", "loop", "loop"] if depth < 3 else []
        for _ in range(self.random.randint(2, self.size)):
            kind = self.random.choice(kinds)
            if kind == "binary":
                x = self.pick(block, "i32")
                if x is not None:
                    self.binary(block, self.random.choice(BINARY), x, self.operand(block, x.shape))
            elif kind == "shape":
                self.shape_op(block)
            elif kind in ("branch", "loop"):
                getattr(self, kind)(block, depth)
            else:
                getattr(self, kind)(block)

    def program(self):
        block = Block(None)
        for _ in range(3):
            self.load(block)
        self.body(block)
        for value in [v for v in block.vars if v.element == "i32"][-6:]:
            base = self.random.randrange(3)
            offsets = self.offsets(block, value.shape) if value.shape else self.constant(block, 0)
            self.count += 1
            a, b = f"%base{self.count}", f"%pointer{self.count}"
            kind = tile_type("ptr<i32>", value.shape)
            block.lines.append(
                f"{a} = splat %array{base} : {kind}" if value.shape else f"{a} = hint %array{base} : {kind}"
            )
            block.lines.append(f"{b} = addptr {a}, {offsets.name} : {kind}")
            block.lines.append(f"store {b}, {value.name}")
            block.steps.append(
                lambda env, memory, base=base, value=value, offsets=offsets: memory[base].__setitem__(
                    env[offsets.name], env[value.name]
                )
            )
        text = "\n".join(block.lines)
        parameters = ", ".join(f"%array{i}: ptr<i32> {{divisibility = [16]}}" for i in range(3))
        return f"kernel @random({parameters}) {{\n{text}\nreturn\n}}\n", block.steps


class Block:
    def __init__(self, outer):
        self.outer, self.lines, self.steps, self.vars = outer, [], [], []

    def scope(self):
        return (self.outer.scope() if self.outer else []) + self.vars


def check(seed, size, passes=False):
    text, steps = Generator(seed, size).program()
    rng = np.random.default_rng(seed)
    memory = [rng.integers(-60, 60, WORDS).astype(np.int32) for _ in range(3)]
    arrays = [m.copy() for m in memory]
    env = {}
    with np.errstate(over="ignore"):
        for step in steps:
            step(env, memory)
    _C._run_cpu(text, arrays, (1, 1, 1), passes)
    for i in range(3):
        if not np.array_equal(arrays[i], memory[i]):
            at = np.flatnonzero(arrays[i] != memory[i])
            raise AssertionError(f"seed {seed}, array {i}: {len(at)} words differ, first at {at[0]}\n{text}")


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    check(seed, 6 + seed % 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 4000))
def test_many_random_programs(seed):
    check(seed, 6 + seed % 25)
