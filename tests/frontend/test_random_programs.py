"""Programs made at random, of every statement that changes control, against Python."""

import random

import pytest
from plain_python import build, interpret, kernel_of, launch, load_module, plain

NAMES = ["a", "b", "c", "d"]


class Writer:
    """Writes a function of a, b, c whose loops all end and whose numbers stay small."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.loops = 0

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def atom(self):
        return self.random.choice([*NAMES, *NAMES, "1", "2", "5", "0", "-3"])

    def expression(self, depth=2):
        choice = self.random.random()
        if depth == 0 or choice < 0.3:
            return self.atom()
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        if choice < 0.7:
            return f"({a} {self.random.choice('+-&|^')} {b})"
        if choice < 0.8:
            return f"({a} * 3)"
        if choice < 0.9:
            return f"({a} if {self.condition(1)} else {b})"
        return self.random.choice([f"min({a}, {b})", f"max({a}, {b})"])

    def condition(self, depth=2):
        choice = self.random.random()
        if depth == 0 or choice < 0.6:
            operator = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
            text = f"{self.expression(1)} {operator} {self.expression(1)}"
            if self.random.random() < 0.1:
                text += f" < {self.atom()}"
            return f"({text})"
        if choice < 0.7:
            return f"(not {self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)} {self.random.choice(['and', 'or'])} {self.condition(depth - 1)})"

    def assign(self, depth):
        name = self.random.choice(NAMES)
        choice = self.random.random()
        if choice < 0.3:
            self.line(depth, f"{name} {self.random.choice('+-|&^')}= {self.expression(1)}")
        elif choice < 0.4:
            other = self.random.choice([n for n in NAMES if n != name])  # CPython 3.11.2 keeps the first of two
            self.line(depth, f"{name}, {other} = {self.expression(1)}, {self.expression(1)}")
        elif choice < 0.5:
            self.line(depth, f"{name} = inner({self.expression(1)}, {self.atom()})")
        else:
            self.line(depth, f"{name} = ({self.expression()}) & 1023")

    def branch(self, depth, in_loop, budget):
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, in_loop, budget)
        if self.random.random() < 0.3:
            self.line(depth, f"elif {self.condition()}:")
            self.block(depth + 1, in_loop, budget)
        if self.random.random() < 0.5:
            self.line(depth, "else:")
            self.block(depth + 1, in_loop, budget)

    def loop(self, depth, in_loop, budget):
        self.loops += 1
        name = f"i{self.loops}"
        choice = self.random.random()
        if choice < 0.5:
            bounds = self.random.choice(["0, 4", "3, -2, -1", "1, (a & 3) + 2", "0, 9, (b & 1) + 2", "(c & 7)"])
            self.line(depth, f"for {name} in range({bounds}):")
        elif choice < 0.65:
            bounds = self.random.choice(["3", "1, 6, 2", "2, -1, -1"])
            self.line(depth, f"for {name} in tl.static_range({bounds}):")
        else:
            self.line(depth, f"{name} = 0")
            test = "True" if self.random.random() < 0.3 else self.condition(1)
            self.line(depth, f"while {test}:")
            self.line(depth + 1, f"{name} += 1")
            self.line(depth + 1, f"if {name} > 4:")
            self.line(depth + 2, "break")
        if self.random.random() < 0.5:
            self.line(depth + 1, f"{self.random.choice(NAMES)} += {name}")
        self.block(depth + 1, True, budget)
        if self.random.random() < 0.15:
            self.line(depth, "else:")
            self.block(depth + 1, in_loop, budget)

    def statement(self, depth, in_loop, budget):
        choice = self.random.random()
        if budget and choice < 0.3:
            self.branch(depth, in_loop, budget - 1)
        elif budget and choice < 0.5:
            self.loop(depth, in_loop, budget - 1)
        elif in_loop and choice < 0.58:
            self.line(depth, self.random.choice(["break", "continue"]))
        elif choice < 0.65 and depth > 1:
            self.line(depth, f"return {self.result()}")
        else:
            self.assign(depth)

    def result(self):
        return "a, b & 15, c, d ^ 1" if self.random.random() < 0.5 else "a, b, c, d"

    def block(self, depth, in_loop, budget):
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, in_loop, budget)

    def program(self):
        for name, parameters in ("inner", "a, b"), ("main", "a, b, c"):
            self.lines += ["", "", "@triton.jit", f"def {name}({parameters}):"]
            if name == "inner":
                self.line(1, "if a > b:")
                self.line(2, "return (a - b) & 1023")
                self.line(1, "return a")
                continue
            self.line(1, "d = 4")
            for _ in range(self.random.randint(3, 6)):
                self.statement(1, False, 3)
            self.line(1, f"return {self.result()}")
        return "import triton\nimport triton.language as tl" + "\n".join(self.lines) + "\n"


def wrapped(value):
    return (value + 2**31) % 2**32 - 2**31


def compare(seed, tmp_path):
    source = Writer(seed).program()
    main = load_module(tmp_path, source, f"program{seed}").main
    inputs = [(3, 0, 2), (-1, 5, 7), (0, 0, 0), (12, -7, 1), (100, 1, 4)]
    text = build(main, *inputs[0])
    kernel = kernel_of(main)
    for args in inputs:
        expected = tuple(wrapped(x) for x in plain(main)(*args))
        result = interpret(text, args, 4)
        assert result == expected, f"seed {seed}, {args}: {result} instead of {expected}\n{source}\n{text}"
        compiled = launch(kernel, args, 4)
        assert compiled == expected, f"seed {seed}, {args}: {compiled} instead of {expected}\n{source}\n{text}"


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_random_programs(start, tmp_path):
    for seed in range(start, start + 25):
        compare(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_more_random_programs(start, tmp_path):
    for seed in range(start, start + 100):
        compare(seed, tmp_path)
