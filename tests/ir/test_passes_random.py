"""Each pass on random programs: what the program does must not change, and a second run must find nothing to do."""

import random

import numpy as np
import pytest

from triton import _C

from .generator import CELLS, Generator
from .interpreter import POISON, Interpreter, Undefined, same

PASSES = ["canonicalize", "cse", "dce", "unroll", "combine", "licm", "induction", "pipeline"]
BASES = {"%p": 1 << 12, "%q": 1 << 16}


def run(text, seed, steps):
    """Final memory and effects of one program instance; None when it has no meaning."""
    random.seed(seed)
    memory = {}
    for i in range(CELLS):
        memory[BASES["%p"] + 4 * i] = random.randint(-4, 40)
        memory[BASES["%q"] + 4 * i] = float(random.randint(-8, 8)) / 4
    args = [BASES["%p"], BASES["%q"], random.randint(-3, 20), random.choice([0, 1, 16, 64]), random.uniform(-2, 2)]
    args[-1] = _C._eval_scalar("float_cast", "f64", "f32", args[-1])
    interpreter = Interpreter(text, memory, program=(random.randrange(4), 0, 0), grid=(4, 1, 1), steps=steps)
    try:
        interpreter.call(*args)
    except Undefined:
        return None
    prints = [effect for effect in interpreter.effects if isinstance(effect[0], str)]
    return memory, prints


def agree(before, after):
    if after is None:
        return False
    for address, value in before[0].items():
        if not same(value, after[0][address]):
            return False
    if len(before[1]) != len(after[1]):
        return False
    return all(a == b or "POISON" in repr(a) or "nan" in repr(a) for a, b in zip(before[1], after[1], strict=True))


def check(text, passes):
    """How many (pass, input) pairs were compared."""
    results = {name: _C._run_pass(text, name) for name in passes}
    for name, result in results.items():
        # (What induction rebuilds may show it more, once simplified: the pipeline sees to that.)
        assert name == "induction" or _C._run_pass(result, name) == result, (
            f"{name} is not done after one run:\n{text}\n{result}"
        )
    compared = 0
    for seed in range(3):
        before = run(text, seed, 20000)
        if before is None:
            continue
        for name, result in results.items():
            after = run(result, seed, 200000)
            assert agree(before, after), f"{name} changed what this does:\n{text}\ninto:\n{result}\n{seed}"
            compared += 1
    return compared


def fuzz(seed, programs):
    compared = 0
    for i in range(programs):
        random.seed(seed * 1_000_000 + i)
        text = Generator().program()
        assert _C._verify(text) is None, _C._verify(text)
        compared += check(text, PASSES)
    return compared


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    assert fuzz(seed, 25) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_programs(seed):
    fuzz(seed, 100)


def test_a_sum_of_products_that_became_a_dot():
    """On small numbers, whose sums are exact in any order."""
    text = """
func @f(%a: tile<4x8xf32>, %b: tile<8x4xf32>) -> (tile<4x4xf32>) {
  %0 = expand_dims %a {axis = 2} : tile<4x8x1xf32>
  %1 = broadcast %0 : tile<4x8x4xf32>
  %2 = expand_dims %b {axis = 0} : tile<1x8x4xf32>
  %3 = broadcast %2 : tile<4x8x4xf32>
  %4 = fmul %3, %1 : tile<4x8x4xf32>
  %5 = reduce %4 {axis = 1} : tile<4x4xf32> { ^(%x: f32, %y: f32):
    %sum = fadd %x, %y : f32
    yield %sum
  }
  return %5
}
"""
    after = _C._run_pass(text, "combine")
    assert "dot" in after
    random.seed(0)
    a, b = (np.array([float(random.randint(-9, 9)) for _ in range(32)], dtype=object) for _ in range(2))
    args = a.reshape(4, 8), b.reshape(8, 4)
    assert same(Interpreter(text).call(*args)[0], Interpreter(after).call(*args)[0])


def test_poison_may_become_anything():
    assert same(POISON, 3) and not same(3, POISON)
