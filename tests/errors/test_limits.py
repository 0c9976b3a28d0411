"""Programs that are too long, too deep or too large: an error or a result in reasonable time, never a crash."""

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAMS = {
    "long sum": "x = n\n" + "x = x + " + " + ".join(["n"] * 900),
    "deep sum": "x = " + "(" * 80 + "n" + " + 1)" * 80,
    "long product of tiles": "t = tl.arange(0, 64)\n" + "t = t * 3 + n\n" * 400 + "x = tl.sum(t)",
    "many statements": "x = n\n" + "\n".join(f"v{i} = x + {i}\nx = v{i} * 2" for i in range(1500)),
    "many stores": "x = n\n" + "\n".join(f"tl.store(p, n + {i})" for i in range(500)),
    "deep branches": "x = n\n" + "".join("    " * i + f"if x > {i}:\n" for i in range(18)) + "    " * 18 + "x += 1",
    "a chain of elif": "x = n\n"
    + "if n == 0:\n    x = 1\n"
    + "".join(f"elif n == {i}:\n    x = {i}\n" for i in range(1, 300)),
    "deep loops": "x = n\n"
    + "".join("    " * i + f"for i{i} in range(1):\n" for i in range(18))
    + "    " * 18
    + "x += 1",
    "a long unrolled loop": "x = n\nfor i in tl.static_range(3000):\n    x += i",
    "an endless unrolled loop": "x = n\nfor i in tl.static_range(1 << 40):\n    x += i",
    "an unrolled loop of unrolled loops": "x = n\nfor i in tl.static_range(2000):\n"
    "    for j in tl.static_range(2000):\n        x += j",
    "recursion of constants": "x = down(n, 5000)",
    "doubling recursion of constants": "x = double(n, 40)",
    "a large tile": "x = tl.sum(tl.zeros((1 << 20,), tl.int32)) + n",
    "a tile that is too large": "x = tl.sum(tl.zeros((1 << 21,), tl.int32)) + n",
    "many dimensions": f"x = tl.sum(tl.zeros({(1,) * 16}, tl.int32)) + n",
    "too many dimensions": f"x = tl.sum(tl.zeros({(1,) * 17}, tl.int32)) + n",
    "a long tuple": f"t = ({'n, ' * 2000})\nx = t[1999]",
    "a deep tuple": "t = " + "(" * 60 + "n" + ",)" * 60 + "\nx = t" + "[0]" * 60,
    "tuples that double": "t = (n, n)\n" + "t = t + t\n" * 40 + "x = t[0]",
    "a large number": "x = n + (1 << 100000) % 7",
    "a number without end": "x = n + 9 ** 9 ** 9",
    "a large dot": "a = tl.zeros((512, 512), tl.float32) + n\nx = tl.sum(tl.dot(a, a)).to(tl.int32)",
    "a wide reduction": "x = tl.max(tl.arange(0, 1 << 20)) + n",
    "tuples of tuples that double": "t = (n, n)\n" + "t = (t, t)\n" * 40 + "x = n",
    "constant tuples that double": "t: tl.constexpr = (1, 2)\n" + "t: tl.constexpr = (t, t)\n" * 40 + "x = n",
    "tuples that double in calls": "x = doubled((n, n), 40)",
    "tuples in tuples": "t = (n,)\n" + "t = (t,)\n" * 3000 + "x = n",
    "numbers that square": "a: tl.constexpr = 12345\n" + "a: tl.constexpr = a * a\n" * 40 + "x = n + a % 7",
    "powers of powers": "a: tl.constexpr = 12345\n" + "a: tl.constexpr = a ** 9999\n" * 4 + "x = n + a % 7",
    "strings that double": "a: tl.constexpr = 'ab'\n" + "a: tl.constexpr = a + a\n" * 40 + "x = n",
    "formatted strings that double": "a: tl.constexpr = 'ab'\n" + "a: tl.constexpr = f'{a}{a}'\n" * 40 + "x = n",
    "calls that double": "x = twice(n, 17)",
    "more operations than fit": "x = n\n"
    "for i in tl.static_range(300):\n    for j in tl.static_range(300):\n        x = (x * 3) ^ (i * j)",
    "a sort of many": "x = tl.max(tl.sort(tl.arange(0, 16384))) + n",
}
SOURCE = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def down(x, N: tl.constexpr):
    if N == 0:
        return x
    else:
        return down(x + 1, N - 1)

@triton.jit
def double(x, N: tl.constexpr):
    if N == 0:
        return x
    else:
        return double(x, N - 1) + double(x + 1, N - 1)

@triton.jit
def doubled(t, N: tl.constexpr):
    if N == 0:
        return t
    else:
        return doubled((t, t), N - 1)

@triton.jit
def twice(x, N: tl.constexpr):
    if N == 0:
        return x * 3
    else:
        return twice(x, N - 1) ^ twice(x + N, N - 1)

@triton.jit
def kernel(p, n):
{body}
    tl.store(p, x)

try:
    kernel[(1,)](np.zeros(1, np.int32), 2)
    print("ran")
except triton.errors.InternalError:
    raise
except Exception as error:
    print(type(error).__name__, error)
"""


TOO_LARGE = {  # of these the message
    "tuples of tuples that double": "a tuple of more than 65536 items",
    "constant tuples that double": "a tuple of more than 65536 items",
    "tuples that double in calls": "a tuple of more than 65536 items",
    "tuples in tuples": "tuples in tuples, more than 256 deep",
    "numbers that square": "the result of this `*` is too large",
    "powers of powers": "the result of this `**` is too large",
    "strings that double": "the result of this `+` is too large",
    "formatted strings that double": "this string is too large",
    "calls that double": "more than",
    "more operations than fit": "the kernel has more than 200000 operations",
}


def limit_resources():
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # whose own memory is more than that
        resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_crash(name, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(SOURCE.replace("{body}", textwrap.indent(PROGRAMS[name], "    ")))
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=600, cwd=Path.cwd(), preexec_fn=limit_resources
    )
    assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
    if name in TOO_LARGE:
        assert TOO_LARGE[name] in done.stdout and "program.py:" in done.stdout and "^" in done.stdout
