"""The pass manager: its switches, and how long the machine-independent passes take."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triton import _C

TEXT = """
func @f(%x: i32) -> (i32) {
  %zero = constant {value = 0} : i32
  %y = add %x, %zero : i32
  return %y
}
"""


def messages(program, **switches):
    """What a program writes to standard error with variables of the environment set."""
    env = {**os.environ, **switches}
    return subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True).stderr


def run(switch):
    return messages(f"from triton import _C; _C._run_pass({TEXT!r}, 'pipeline')", TRITON_DUMP=switch)


def test_dump_after_one_pass():
    dump = run("after:dce")
    assert dump.startswith("// after dce\nfunc @f(%x: i32)") and dump.count("// after") == 1
    assert "add" not in dump


def test_dump_after_all_passes_that_changed_something():
    dump = run("after:all")
    assert [line for line in dump.splitlines() if line.startswith("//")] == ["// after canonicalize", "// after dce"]


def test_dump_of_the_result():
    assert run("after:opt").count("// after opt") == 1
    assert run("after:select_dot") == run("") == ""  # a pass of another target


KERNEL = """
kernel @copy(%in: ptr<f32>, %out: ptr<f32>) {
  %i = range {start = 0, end = 128} : tile<128xi32>
  %p = splat %in : tile<128xptr<f32>>
  %q = splat %out : tile<128xptr<f32>>
  %from = addptr %p, %i : tile<128xptr<f32>>
  %to = addptr %q, %i : tile<128xptr<f32>>
  %x = load %from : tile<128xf32>
  store %to, %x
  return
}
"""


def test_passes_of_a_gpu_are_dumped_too():
    program = f"from triton import _C; _C._run_gpu_passes({KERNEL!r})"
    assert messages(program, TRITON_DUMP="after:assign_layouts").startswith("// after assign_layouts\n#0 = layout<128>")
    assert messages(program, TRITON_DUMP="after:gpu").startswith("// after gpu\n#0 = layout<128>")


@pytest.mark.parametrize(
    "switch, question",
    [("after:assing_layouts", "did you mean 'after:assign_layouts'? "), ("after:xyzzy", ""), ("before:dce", "")],
)
def test_dump_after_an_unknown_pass(monkeypatch, switch, question):
    monkeypatch.setenv("TRITON_DUMP", switch)
    names = "carried_loads, block_copies, .*, inline_calls, .*, refuse_assembly, .*all, opt, gpu, cpu$"
    message = re.escape(f"TRITON_DUMP={switch}: there is no such pass\n{question}it can be after: ")
    with pytest.raises(ValueError, match=message + names):
        _C._run_gpu_passes(KERNEL)


def test_times_of_passes():
    program = f"from triton import _C; _C._compile_gpu({KERNEL!r}, pipeline=True)"
    lines = messages(program, TRITON_TIMING="1").splitlines()
    assert re.fullmatch(r"// opt passes of copy: \d+\.\d{3} ms", lines[0])
    assert re.fullmatch(r"//   carried_loads +\d+\.\d{3} ms, \d of [1-9] runs changed something", lines[1])
    second = [line.startswith("// gpu passes of copy: ") for line in lines].index(True)
    names = [line.split()[1] for line in lines[second + 1 :]]
    assert names[0] == "inline_calls" and names[-1] == "stagger"


def test_unknown_pass():
    with pytest.raises(ValueError, match="there is no pass 'vectorize'"):
        _C._run_pass(TEXT, "vectorize")


def test_malformed_input_is_refused():
    with pytest.raises(ValueError, match=r"\^ takes 2 operands, not 1"):
        _C._run_pass("func @f(%x: i32) -> (i32) {\n  %y = add %x : i32\n  return %y\n}\n", "dce")


def shortest(work):
    best = float("inf")
    for _ in range(20):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def test_a_matrix_product_takes_less_time_than_a_short_loop_of_pythons(monkeypatch):
    """Two milliseconds or so, on any machine; parsing, verifying and printing besides."""
    monkeypatch.setenv("TRITON_VERIFY", "0")
    text = (Path(__file__).parent / "pipeline" / "matmul.tt").read_text().partition("// expected")[0]
    ours, loop = shortest(lambda: _C._run_pass(text, "pipeline")), shortest(lambda: sum(i & 3 for i in range(50_000)))
    assert ours < loop, (ours, loop)


def chain_of_floats(count):
    lines = ["func @f(%a0: f32) -> (f32) {"]
    for i in range(count):
        lines += [f"  %c{i} = constant {{value = {i}.5}} : f32", f"  %a{i + 1} = fadd %a{i}, %c{i} : f32"]
    return "\n".join([*lines, f"  return %a{count}", "}"])


def nested_branches(count):
    lines = ["func @f(%c: i1, %x: i32) -> (i32) {"]
    for i in range(count):
        lines += [f"%r{i} = if %c : i32 {{", f"%y{i} = add %x, %x : i32"]
    lines += ["yield %x"]
    for i in range(count):
        lines += ["} {", "yield %x", "}", f"yield %r{count - 1 - i}"]
    return "\n".join([*lines[:-1], "return %r0", "}"])


def test_time_of_cse_is_linear(monkeypatch):
    """Sixteen times the program takes 20 times as long, parsing and printing included; with hashes whose low bits are
    alike it was 70 times."""

    def seconds(count):
        text = chain_of_floats(count)
        return min(timed(text) for _ in range(3))

    def timed(text):
        start = time.process_time()
        _C._run_pass(text, "cse")
        return time.process_time() - start

    monkeypatch.setenv("TRITON_VERIFY", "0")
    assert seconds(16000) < 40 * seconds(1000)


def test_text_of_nested_branches_is_linear():
    short, long = (_C._parse_print(nested_branches(count)) for count in (200, 2000))
    assert len(long) < 13 * len(short)
    assert _C._parse_print(long) == long


def test_text_that_is_nested_too_deeply():
    with pytest.raises(ValueError, match=r"^\d+:\d+: this is nested too deeply$"):
        _C._parse_print(nested_branches(50_000))
