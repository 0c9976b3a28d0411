"""Compilations and launches side by side, the pool after a fork, and results that do not depend on threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from triton import _C

from .build import Kernel

GRID = """
kernel @add(%x: ptr<i32>, %o: ptr<i32>, %k: i32) {
  %pid = program_id {axis = 0} : i32
  %y = program_id {axis = 1} : i32
  %z = program_id {axis = 2} : i32
  %nx = num_programs {axis = 0} : i32
  %ny = num_programs {axis = 1} : i32
  %zy = mul %z, %ny : i32
  %row = add %zy, %y : i32
  %rows = mul %row, %nx : i32
  %number = add %rows, %pid : i32
  %size = constant {value = 33} : i32
  %start = mul %number, %size : i32
  %r = range {start = 0, end = 33} : tile<33xi32>
  %starts = splat %start : tile<33xi32>
  %offsets = add %starts, %r : tile<33xi32>
  %xs = splat %x : tile<33xptr<i32>>
  %xp = addptr %xs, %offsets : tile<33xptr<i32>>
  %v = load %xp : tile<33xi32>
  %ks = splat %k : tile<33xi32>
  %sum = add %v, %ks : tile<33xi32>
  %os = splat %o : tile<33xptr<i32>>
  %op = addptr %os, %offsets : tile<33xptr<i32>>
  store %op, %sum
  return
}
"""


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (1, 5, 3), (3, 4, 5), (1000, 3, 1), (1, 1, 2000)])
def test_grids(grid):
    count = int(np.prod(grid)) * 33
    x, out = np.arange(count, dtype=np.int32), np.zeros(count, np.int32)
    _C._run_cpu(GRID, [x, out, 5], grid)
    np.testing.assert_array_equal(out, x + 5)


def test_empty_grids():
    out = np.zeros(33, np.int32)
    for grid in [(0, 1, 1), (1, 0, 1), (1, 1, 0)]:
        _C._run_cpu(GRID, [out.copy(), out, 5], grid)
    assert not out.any()


def test_compilations_and_launches_at_the_same_time():
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for i in range(12):
                a = rng.standard_normal((7 + seed, 33 + i)).astype("f")
                k = Kernel()
                x = k.load(a)
                out = k.run(k.op("exp", k.op("fadd", x, x)))
                np.testing.assert_allclose(out, np.exp(a + a), rtol=1e-6)
                b, c = np.arange(33 * 500, dtype=np.int32), np.zeros(33 * 500, np.int32)
                _C._run_cpu(GRID, [b, c, seed], (500, 1, 1))
                np.testing.assert_array_equal(c, b + seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


SCRIPT = """
import os, sys
import numpy as np
from triton import _C
from tests.cpu.test_threads import GRID

def launch():
    x, out = np.arange(33 * 3000, dtype=np.int32), np.zeros(33 * 3000, np.int32)
    for _ in range(3):
        _C._run_cpu(GRID, [x, out, 5], (3000, 1, 1))
    return (out == x + 5).all()

assert launch()
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if launch() else 1)
    assert os.waitpid(child, 0)[1] == 0
assert launch()
"""


@pytest.mark.parametrize("threads", ["1", "2", "4"])
def test_launches_after_a_fork(threads):
    environment = {**os.environ, "TRITON_CPU_THREADS": threads}
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment, timeout=600)
