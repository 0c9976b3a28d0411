"""Kernels of thousands of statements on GPUs: how much work compilers are asked for, and that ptxas takes the code."""

import pytest
from gpu_kernels import assemble, compile_ir

HEAD = "kernel @f(%p: ptr<i64>, %b: i64) {\n  %zero = constant {value = 0}: i64\n"


def chain(count):
    """%a0, %a1, ...: each from the one before, in a way that nothing simplifies."""
    lines = [HEAD, "  %a0 = load %p: i64\n"]
    for i in range(count):
        lines.append(f"  %c{i} = constant {{value = {2 * i + 3}}}: i64\n  %m{i} = mul %a{i}, %c{i}: i64\n")
        lines.append(f"  %a{i + 1} = xor %m{i}, %b: i64\n")
    return "".join(lines) + f"  store %p, %a{count}\n  return\n}}\n"


@pytest.mark.parametrize("statements, effort", [(1000, 4), (4000, 4), (8000, 1), (16000, 0)])
def test_effort(statements, effort):
    assert compile_ir(chain(statements), 90, 1).effort == effort


def test_code_made_without_optimisation():
    """LLVM's passes are left out before those of the driver are."""
    compiled = compile_ir(chain(2500), 90, 1)
    assert compiled.effort == 4
    assert assemble(compiled, 90).spills == 0
    assert compiled.count(r"\bmul\.lo\.s64\b|\bmul\.lo\.u64\b|\bmul\.lo\.b64\b") == 2500
