"""Mistakes in names, control flow, calls and syntax: message, place and remedy."""

import os
import traceback

import pytest
from plain_python import load_module

import triton
import triton.language as tl
from triton import _C

PRELUDE = """import math
from functools import partial
import numpy as np
import triton
import triton.language as tl

COUNT = 5
OPTIONS = {"a": 1}
ARRAY = np.zeros(3)

@triton.jit
def helper(a, b: tl.constexpr, *, scale=1):
    return a + b * scale

@triton.jit
def ping(x):
    return pong(x)

@triton.jit
def pong(x):
    return ping(x)

@triton.jit
def two_types(x):
    if x > 0:
        return 1
    return 1.5

@triton.jit
def perhaps(x):
    if x > 0:
        return x

@triton.jit
def wrong(x):
    return x + missing

@triton.jit(noinline=True)
def wrong_apart(x):
    return x + missing

def host(x):
    return x

@triton.jit
def kernel(p, n, f, B: tl.constexpr):
"""

# code (the mistake is marked by §), message, part of the remedy
CASES = [
    # names
    ("§undefined_thing", "name `undefined_thing` is not defined", "assign it, import it"),
    ("hlper = 1\n§helpr(n, 1)", "name `helpr` is not defined", "did you mean `helper`?"),
    ("§b", "name `b` is not defined", "did you mean `B`?"),
    ("x = §y\ny = 1", "`y` is not defined here: it is used before it is assigned", "assign it first"),
    ("§COUNT", "cannot access global variable `COUNT` from a kernel: it is a plain int", "`COUNT: tl.constexpr = ...`"),
    ("§OPTIONS['a']", "cannot access global variable `OPTIONS` from a kernel: it is a plain dict", "tl.constexpr"),
    (
        "§ARRAY",
        "cannot access global variable `ARRAY` from a kernel: it is a plain ndarray",
        "pass it to the kernel as an argument",
    ),
    ("§tl.laod(p)", "the module triton.language has no attribute `laod`", "did you mean `load`?"),
    ("§B.foo", "the constexpr 16 has no attribute `foo`", None),
    ("x = n\ndel x\n§x", "`x` was deleted", "remove the `del`"),
    (
        "if n > 0:\n    x = 1\n§x",
        "`x` may be undefined here: it is assigned on one side only of the `if` in line",
        "before the `if`",
    ),
    (
        "for i in range(n):\n    x = i\nfor i in range(n):\n    x = §x + 1",
        "`x` may be undefined here: it is assigned only in the loop in line",
        "before the loop",
    ),
    (
        "for i in range(n):\n    x = i\nwhile §x < 9:\n    x += 1",
        "`x` may be undefined here: it is assigned only in the loop in line",
        "before the loop",
    ),
    (
        "if n > 3:\n    for i in range(n):\n        x = i\n§x",
        "`x` may be undefined here: it is assigned only in the loop in line",
        "before the loop",
    ),
    (
        "for i in range(n):\n    if n > i:\n        x = i\n§x",
        "`x` is not defined here: it is used before it is assigned",
        None,
    ),
    (
        "if n > 0:\n    x = tl.arange(0, 4)\nelse:\n    x = 0\n§x",
        "Mismatched type for x: it is int32[4] or int32 here",
        ".to(...)",
    ),
    (
        "x = 0\nfor i in range(n):\n    x = 1.0\n§x",
        "Mismatched type for x: it is int32 before the loop in line",
        "two names",
    ),
    # loops
    (
        "x = 0\nfor i in range(n):\n    §x += 1.5",
        "loop-carried variable `x` changes its type: it is int32 before the loop and fp32 after an",
        "tl.int32",
    ),
    (
        "x = 0.0\nwhile n > x:\n    §x = x + tl.zeros((4,), tl.float32)",
        "it is fp32 before the loop and fp32[4] after",
        "tl.zeros(shape, dtype)",
    ),
    (
        "x = None\nfor i in range(n):\n    if x is None:\n        x = i\n    §x = i",
        "it is None before the loop and int32 after",
        "instead of None",
    ),
    (
        "§while (x := n) > 0:\n    break\nelse:\n    pass",
        "a `while` with both `:=` in its test and an `else`",
        "in the body",
    ),
    ("for i in §range(f):\n    pass", "the bounds of a range are ints, not fp32", ".to(tl.int32)"),
    ("for i in §range(0, n, 0):\n    pass", "the step of this range is 0", None),
    ("for i in §range(1, 2, 3, 4):\n    pass", "range() takes 1 to 3 arguments, not 4", None),
    ("for i in §tl.range(0, n, stages=2):\n    pass", "`tl.range` has no parameter `stages`", "num_stages"),
    (
        "for i in §tl.static_range(n):\n    pass",
        "`stop` of tl.static_range must be a compile-time int, not int32",
        "tl.constexpr",
    ),
    (
        "for i in §tl.static_range(10**9):\n    pass",
        "the kernel unrolls into more than 131072 iterations",
        "range(...)",
    ),
    ("for i in §tl.arange(0, 4):\n    pass", "int32[4] cannot be iterated over", "tl.sum"),
    ("for i in §n:\n    pass", "int32 cannot be iterated over", "range(...)"),
    # assignment
    ("x = tl.arange(0, 4)\n§x[0] = 1", "elements cannot be assigned", "tl.where"),
    ("§p.x = 1", "attributes cannot be assigned", "assign to a name"),
    ("§a, b, c = (1, 2)", "not enough values to unpack (expected 3, got 2)", None),
    ("a, §*b = (1, 2)", "starred assignment targets are not supported", "x[1:]"),
    ("x = [a for a, §*b in ((1, 2),)]", "starred assignment targets are not supported", "x[1:]"),
    ("§a, b = n", "cannot unpack non-iterable value: int32 into 2 names", "tl.split"),
    ("x = [a + b for a, b in §(1, 2)]", "cannot unpack non-iterable value", None),
    ("x = §not (0, n)", "`not` does not work on a tuple of 2", "len(x) == 0"),
    # expressions
    ("§1 // 0", "evaluating this at compile time raised ZeroDivisionError", None),
    ("§(1, 2)[2]", "index 2 is out of range: the tuple has 2 items", None),
    ("§(1, 2)[n]", "a tuple of 2 is indexed at compile time, but the index is int32", "tl.static_range"),
    ("§(n, 2) + 1", "`+` does not take a tuple of 2 and the constexpr 1", None),
    ("§n is p", "`is` compares compile-time objects, not int32 and pointer<fp32>", "`==`"),
    ("§n in (1, 2)", "`in` is decided at compile time", "`|`"),
    ("§2 ** 10 ** 9", "the result of this `**` is too large", None),
    ("x = §f'{n}'", "an f-string is made at compile time, but this is int32", "tl.device_print"),
    (
        "x = §n if n > 0 else tl.arange(0, 4)",
        "Ternary expression with dynamic condition has inconsistent types: int32 and int32[4]",
        "tl.where",
    ),
    ("assert B == 3, §B // 0", "evaluating this at compile time raised ZeroDivisionError", None),
    ("§tl.static_assert(B == 3, f'not {B}')", "static assertion failed: not 16", None),
    ("§x = 2 ** 70", "does not fit into 64 bits", None),
    # calls
    ("§n()", "int32 cannot be called", None),
    (
        "x = [i for i in §range(n)]",
        "a range outside of a `for` statement is one of compile-time ints, not of int32",
        "`for`",
    ),
    (
        "§print('a', n, 'b')",
        "a print in a kernel takes one text, the first argument, not the string 'b'",
        "for each text",
    ),
    ("§partial(host)(n)", "the function functools.partial(<function host at 0x", "@triton.jit"),
    ("§type(n)", "`type` is a Python function and runs at compile time, but gets int32", "isinstance(x, tl.tensor)"),
    ("§tl.float32(n)", "a dtype cannot be called", ".to(dtype)"),
    ("§helper[(1,)](n, 1)", "a kernel cannot launch the function helper on a grid", "call it like a function"),
    ("§helper(n)", "`helper` lacks its argument `b`", None),
    ("§helper(n, 1, 2)", "`helper` takes 2 positional arguments, but 3 are given", None),
    ("§helper(n, 1, scal=2)", "`helper` has no parameter `scal`", "did you mean `scale`?"),
    ("§helper(n, 1, a=2)", "`helper` gets two values for its parameter `a`", "remove one"),
    ("§tl.store(p)", "`tl.store` lacks its argument `value`", None),
    ("§tl.load(pointr=p)", "`tl.load` has no parameter `pointr`", "did you mean `pointer`?"),
    ("helper(n, §**n)", "`**` takes a compile-time dict, not int32", None),
    ("§math.sqrt(f)", "`sqrt` is a Python function and runs at compile time, but gets fp32", "use tl.sqrt"),
    ("§host(n)", "`host` is a Python function and runs at compile time, but gets int32", "@triton.jit"),
    ("§min(tl.arange(0, 4))", "min() takes two or more values", "tl.min(x)"),
    # syntax
    ("x = §lambda a: a", "`lambda` cannot be compiled", "@triton.jit"),
    ("§try:\n    pass\nexcept Exception:\n    pass", "`try` cannot be compiled", "do not raise"),
    ("§with p:\n    pass", "`with` cannot be compiled", "context managers"),
    ("§raise ValueError", "`raise` cannot be compiled", "tl.device_assert"),
    ("§import os", "`import` inside a kernel cannot be compiled", "top of the file"),
    ("§def g():\n    pass", "a nested function in a kernel cannot be compiled", "@triton.jit"),
    ("§global COUNT", "`global` cannot be compiled", "return the value"),
    ("x = §{1, 2}", "a set cannot be compiled", "tuple"),
    ("§match n:\n    case 1:\n        pass", "`match` cannot be compiled", "`if`"),
    ("§yield n", "`yield` cannot be compiled", "tuple"),
    ("§return n", "the kernel `kernel` returns int32, but nobody gets it", "tl.store"),
]


def compile_body(code, tmp_path):
    source = PRELUDE + "".join(f"    {line}\n" for line in code.split("\n"))
    module = load_module(tmp_path, source)
    return _C._frontend(module.kernel, (("*fp32", 16), ("i32", 1), ("fp32", 1), tl.constexpr(16)))


def build(code, tmp_path):
    with pytest.raises(triton.CompilationError) as caught:
        compile_body(code, tmp_path)
    return caught.value


@pytest.mark.parametrize("code, message, remedy", CASES, ids=[case[0].replace("§", "")[-40:] for case in CASES])
def test_mistake(code, message, remedy, tmp_path):
    before = code.split("§")[0]
    error = build(code.replace("§", ""), tmp_path)
    assert message in error.message
    place = (PRELUDE.count("\n") + 1 + before.count("\n"), len(before.split("\n")[-1]) + 5)
    assert (error.line, error.column) == place
    assert not remedy or remedy in error.remedy


@pytest.mark.parametrize(
    "code, name", [("for i in range(n):\n    x = i\nx", "x"), ("for i in range(n):\n    pass\ni", "i")]
)
def test_strictness_about_loops_that_may_not_run(code, name, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_STRICT", "1")
    error = build(code, tmp_path)
    assert error.message.startswith(f"`{name}` may be undefined here: it is assigned only in the loop in line")
    assert "before the loop" in error.remedy
    monkeypatch.setenv("TRITON_STRICT", "0")
    compile_body(code, tmp_path)


def test_recursion_shows_the_cycle(tmp_path):
    error = build("ping(n)", tmp_path)
    assert error.message == "endless recursion: ping -> pong -> ping"
    assert [call[3] for call in error.call_chain] == ["ping", "kernel"]
    assert "loop" in error.remedy


def test_call_chain(tmp_path):
    error = build("x = wrong(n)", tmp_path)
    assert (
        error.message == "name `missing` is not defined"
        and error.line == PRELUDE.split("\n").index("def wrong(x):") + 2
    )
    assert [(call[1], call[3]) for call in error.call_chain] == [(PRELUDE.count("\n") + 1, "kernel")]
    apart = build("x = wrong_apart(n)", tmp_path)
    assert apart.message == error.message and apart.notes[-1][1] == PRELUDE.count("\n") + 1
    assert apart.notes[-1][3] == "in call to 'wrong_apart' here"


def test_returns_that_differ(tmp_path):
    error = build("two_types(n)", tmp_path)
    assert error.message.startswith("Inconsistent return types: `two_types` returns fp32 here, but int32 in line ")
    assert len(error.notes) == 1 and ".to(...)" in error.remedy
    error = build("perhaps(n)", tmp_path)
    text = "Inconsistent return types: `perhaps` returns int32 here, but may also end without a `return`"
    assert error.message == text


def test_both_places_of_a_change(tmp_path):
    error = build("x = 0\nfor i in range(n):\n    x += f", tmp_path)
    first = PRELUDE.count("\n") + 1
    assert error.line == first + 2
    assert [(note[1], note[3]) for note in error.notes] == [(first, "int32 here"), (first + 1, "the loop")]


def test_an_exception_is_the_cause(tmp_path):
    error = build("x = int('seven')", tmp_path)
    assert error.message.startswith("evaluating this at compile time raised ValueError: invalid literal")
    assert isinstance(error.__cause__, ValueError)


def test_what_is_no_exception_of_the_program_is_its_own_cause(tmp_path):
    """Programs look for the reason in the cause; a traceback does not show it twice."""
    error = build("x = tl.arange(0, 4).expand_dims(-3)", tmp_path)
    assert error.__cause__ is error and "invalid axis -3" in str(error.__cause__)
    assert "".join(traceback.format_exception(error)).count("invalid axis -3") == 1
    for code in ("tl.static_assert(False)", "x = not (1, 2)"):
        error = build(code, tmp_path)
        assert isinstance(error, triton.compiler.errors.CompilationError) and error.__cause__ is None
    error = build("tl.topk(tl.arange(0, 4), 9)", tmp_path)
    assert error.__cause__ is error
    error = build("x = tl.zeros((32, 32), tl.float8e5)\ntl.dot(x, x, max_num_imprecise_acc=64)", tmp_path)
    assert str(error.__cause__) == "max_num_imprecise_acc (64) must be <= K (32)"


@pytest.mark.parametrize("message", [", 'odd'", ", msg=f'{B} is odd'", ""])
def test_an_assertion_looks_at_its_condition_once(message, tmp_path, capsys):
    error = build(f"tl.static_assert(tl.static_print('looked') is not None{message})", tmp_path)
    assert error.message.startswith("static assertion failed") and capsys.readouterr().out == "looked\n"
    compile_body("tl.static_assert(tl.static_print('held') is None, msg=f'{B // 0}')", tmp_path)
    assert capsys.readouterr().out == "held\n"


def test_a_notebook_shows_an_error_once(tmp_path):
    """With the frames of the program, in IPython's own way for exceptions that say how they look."""
    code = compile("raise error", "a_cell", "exec")
    shell = compile(
        "exec(code, {'error': error})", os.path.join(os.sep, "IPython", "core", "interactiveshell.py"), "exec"
    )
    with pytest.raises(triton.CompilationError) as raised:
        exec(shell, {"code": code, "error": build("x = missing", tmp_path)})
    lines = raised.value._render_traceback_()
    assert sum("name `missing` is not defined" in line for line in lines) == 1
    assert any("a_cell" in line for line in lines) and not any("interactiveshell" in line for line in lines)
    assert lines[0] == "Traceback (most recent call last):" and not any("\n" in line for line in lines)
    cause = build("x = int('seven')", tmp_path)._render_traceback_()
    assert any(line.startswith("ValueError: invalid literal") for line in cause)


def test_interruption_is_no_mistake():
    def interrupt():
        raise KeyboardInterrupt

    @triton.jit
    def kernel(n):
        interrupt()

    with pytest.raises(KeyboardInterrupt):
        _C._frontend(kernel, (("i32", 1),))


@pytest.mark.parametrize("signature", [(), (("i32",),), (("i7", 1),), (3,), ("*fp32", 16), ((None, None),), ([[[]]],)])
def test_bad_signatures(signature):
    @triton.jit
    def kernel(n):
        tl.store(n, n)

    with pytest.raises((triton.CompilationError, TypeError)):
        _C._frontend(kernel, signature)


def test_deep_code_compiles(tmp_path):
    for code in ("x = n" + " + n" * 800, "x = " + "-" * 300 + "n", "if n == 1: return\n" * 300):
        module = load_module(tmp_path, PRELUDE + "".join(f"    {line}\n" for line in code.split("\n")))
        _C._frontend(module.kernel, (("*fp32", 16), ("i32", 1), ("fp32", 1), tl.constexpr(16)))
