"""Kernels of thousands of statements: right results, within 2 GB and a minute of CPU time in a process of their own."""

import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from harness import check, random

# name: the statements, given how many; the same statements run in Python, where `load` and `store` are a list's.
PROGRAMS = {
    "arithmetic": lambda n: [f"a = (a * {i + 3}) ^ (b + {i})" for i in range(n)],
    "values that live long": lambda n: [
        *(f"v{i} = load(q, {i % 64}) + {i}" for i in range(n // 2)),
        *(f"a = a * 3 + v{i * 7 % (n // 2)}" for i in range(n // 2)),
    ],
    "stores": lambda n: [f"store(p, {i % 64}, load(q, {i * 5 % 64}) * {i})" for i in range(n)],
    "branches": lambda n: [line for i in range(n // 2) for line in (f"if a > {i * 7 - 9000}:", f"    a = a ^ {i}")],
    "a chain of elif": lambda n: [
        *("if b == -1:", "    a = a + 5"),
        *(line for i in range(n // 12) for line in (f"elif b == {n // 4 - i * 3}:", f"    a = a + {i}")),
        *("else:", "    a = a - 77"),
    ],
    "loops": lambda n: [
        line
        for i in range(n // 3)
        for line in (f"for i in range(b - {i % 5}):", f"    a = a * 3 + i * {i}", "a = a ^ b")
    ],
    "loops in long loops": lambda n: [
        "for k in range(2):",
        *(
            f"    {line}"
            for i in range(n // 4)
            for line in (f"for j in range(b - {i % 3}):", f"    a = a * 5 + j * {i} + k", f"b2 = a ^ {i}", "a = a + b2")
        ),
    ],
    "early returns": lambda n: [
        line
        for i in range(n // 3)
        for line in (f"a = a * 3 + {i}", f"if a == {i}:", f"    store(p, 0, {i})", "    return")
    ],
}
SOURCE = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def load(q, i):
    return tl.load(q + i)

@triton.jit
def store(p, i, value):
    tl.store(p + i, value)

@triton.jit
def kernel(p, q, b):
    a = load(q, 1)
    b = b.to(tl.int64)
{body}
    store(p, 0, a)
    store(p, 1, a + b)

p, q = np.zeros(64, np.int64), np.arange(64, dtype=np.int64) * 3 - 20
kernel[(1,)](p, q, 6, num_warps=1)
print(*p)
"""
pytestmark = pytest.mark.compiled
MASK = (1 << 64) - 1


def signed(value):
    return ((value + (1 << 63)) & MASK) - (1 << 63)


def expected(statements):
    """What Python makes of the statements, wrapped to 64 bits."""

    class Int(int):
        pass

    for name in ("add", "sub", "mul", "xor"):
        for method in (f"__{name}__", f"__r{name}__"):
            function = getattr(int, method)
            setattr(Int, method, lambda a, b, f=function: Int(signed(f(int(a), int(b)))))
    q = [Int(i * 3 - 20) for i in range(64)]
    p = [Int(0)] * 64
    body = textwrap.indent("\n".join(statements), "    ")
    names = {"load": lambda array, i: array[i], "store": lambda array, i, value: array.__setitem__(i, value)}
    text = f"def run(p, q, b):\n    a = load(q, 1)\n{body}\n    store(p, 0, a)\n    store(p, 1, a + b)"
    exec(text, names)
    names["run"](p, q, Int(6))
    return [int(value) for value in p]


def limit_resources():
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # stacks and arrays of libraries are only reserved
    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))


def run(source, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(source)
    return subprocess.run(
        [sys.executable, file], capture_output=True, text=True, cwd=Path.cwd(), preexec_fn=limit_resources
    )


@pytest.mark.host
@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name, tmp_path):
    statements = PROGRAMS[name](4000)
    done = run(SOURCE.replace("{body}", textwrap.indent("\n".join(statements), "    ")), tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [int(word) for word in done.stdout.split()] == expected(statements)


TILES = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def kernel(p, q, n):
    i = tl.arange(0, 64)
    a = tl.load(q + i)
{body}
    tl.store(p + i, a)

p, q = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
kernel[(1,)](p, q, 3, num_warps=1)
for k in range({count}):
    {python}
assert (p == q).all(), (p, q)
"""
TILE_STATEMENTS = {
    "arithmetic": ("a = a * 3 + {k}", "q = q * 3 + k"),
    "copies": (
        "tl.store(p + i, tl.load(q + i) + {k})\na = tl.load(p + i)",
        "last = (q0 := q if k == 0 else q0) + k; q = last",
    ),
    "reductions": ("a = a + tl.sum(a, 0)", "q = q + q.sum(dtype=np.int32)"),
    "loops": ("for _ in range(n):\n    a = a * 5 + {k}", "for _ in range(3): q = q * 5 + k"),
}


@pytest.mark.host
@pytest.mark.parametrize("name", TILE_STATEMENTS)
def test_tiles(name, tmp_path):
    statement, python = TILE_STATEMENTS[name]
    count = 1000
    body = textwrap.indent("\n".join(statement.format(k=k) for k in range(count)), "    ")
    source = TILES.replace("{body}", body).replace("{count}", str(count)).replace("{python}", python)
    done = run(source, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


def test_pieces_of_long_functions_have_enough_stack():
    """On a simulator, where each thread's stack is as large as the code seems to need."""
    x = random((65, 5, 5), "int64", low=0, high=2).values
    looked_up = x[:, :, (np.arange(5) * 3 + 1) % 5]
    both = np.stack([looked_up, looked_up[:, :, ::-1]], -1).reshape(65, 5, 10)
    code = """
        places = (tl.arange(0, 5) * 3 + 1) % 5
        found = tl.gather(x, tl.broadcast_to(places[None, None, :], (65, 5, 5)), 2)
        out = tl.interleave(found, tl.flip(found, 2))[:, :, 5:10]
    """
    check(code, {"x": x}, both[:, :, 5:10])
