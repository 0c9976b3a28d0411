"""Launches in the handler of a signal that comes while another launch is under way."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.host

KERNELS = """
import sys, signal
import numpy as np
import {imports}

@triton.jit
def first(x, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(x + index, tl.load(x + index, mask=index < n) + 1, mask=index < n)

@triton.jit
def second(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 5)
"""

NOTHING_NEW = """
class Watch:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(f"{name} is imported by the first launch")

import _ast  # what Python itself keeps ready
sys.meta_path.insert(0, Watch())
x = np.zeros(16, np.float32)
first[(1,)](x, 16, **meta)
assert (x == 1).all()
"""

EVERYWHERE = """
handled = []

def handler(*args):
    signal.setitimer(signal.ITIMER_REAL, 0)
    y = np.zeros(16, np.float32)
    handled.append(0)
    second[(1,)](y, **meta)
    assert (y == 5).all()
    handled[-1] = 1

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, {delay})
x = np.zeros(16, np.float32)
for n in (16, 8, 4, 2, 1):
    first[(1,)](x, n, **meta)
while not handled:
    pass
assert handled == [1] and x.tolist() == [5, 4, 3, 3, 2, 2, 2, 2] + [1] * 8, (handled, x)
"""


PLAIN = "meta = {'BLOCK': 16}"
TUNED = """
meta = {}
configs = [triton.Config({"BLOCK": 16}, num_warps=warps) for warps in (1, 2)]
first, second = (triton.autotune(configs, [], reset_to_zero=["x"], warmup=1, rep=1)(each) for each in (first, second))
"""


def run(tmp_path, text, imports="triton, triton.language as tl", prelude=PLAIN):
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS.format(imports=imports) + prelude + text)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("imports", ["triton, triton.language as tl", "triton; tl = triton.language"])
def test_the_first_launch_imports_nothing(tmp_path, imports):
    run(tmp_path, NOTHING_NEW, imports)


@pytest.mark.parametrize("milliseconds", [0.1, 1, 3, 10, 30])
def test_a_launch_in_a_handler(tmp_path, milliseconds):
    run(tmp_path, EVERYWHERE.format(delay=milliseconds / 1000))


def test_the_first_launch_of_a_tuned_kernel_imports_nothing(tmp_path):
    run(tmp_path, NOTHING_NEW, prelude=TUNED)
