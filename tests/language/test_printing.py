"""Prints and assertions, while compiling and while running."""

import re

import numpy as np
import pytest
from harness import Buffer, check, jit

import triton

X = np.array([10, -20, 30], np.int32)


def printed(capfd, code, inputs, **options):
    """The lines that running code over whole arrays prints."""
    capfd.readouterr()
    check(f"{code}\nout = tl.zeros((1,), tl.int32)", inputs, np.zeros(1, np.int32), once=True, **options)
    return capfd.readouterr().out.splitlines()


def as_lines(line):
    """A printed value as one line for each element, which is how a GPU prints it; a CPU prints a tile as NumPy does."""
    head, bracket, tile = line.partition("[")
    return [head + item for item in re.findall(r"[^][ ]+", tile)] if bracket else [line]


def elements(capfd, code, inputs, **options):
    text = re.sub(r"\n +", " ", "\n".join(printed(capfd, code, inputs, **options)))
    return [one for line in text.splitlines() for one in as_lines(line)]


PRINTS = [
    ('tl.device_print("x is", x)', ["10", "-20", "30"]), ('tl.device_print("x is ", x * 2)', ["20", "-40", "60"]),
    pytest.param('print("x is", x)', ["10", "-20", "30"], marks=pytest.mark.compiled),
    ('tl.device_print("n is", n)', ["7"]),
    ('tl.device_print("f is", f)', ["1.50*"]),
    ('tl.device_print("big", u)', ["4294967295"]), ('tl.device_print("b", x > 0)', ["1|True", "0|False", "1|True"]),
    ('tl.device_print("just text")', [""]), ('tl.device_print("hex", n, hex=True)', ["0x0*7"]),
]  # fmt: skip


@pytest.mark.parametrize("code, values", PRINTS)
def test_device_print(capfd, code, values):
    """Each element comes with the program, the text and the value."""
    inputs = {"x": X, "n": 7, "f": 1.5, "u": np.array(2**32 - 1, np.uint32)}
    prefix = re.search('"(.*?)"', code)[1].strip()
    lines = elements(capfd, code, inputs)
    assert len(lines) == len(values)
    for line, value in zip(lines, values, strict=True):
        assert prefix in line and re.search(rf"\(0, 0, 0\).*{prefix}.*({value})$", line), line


def test_device_print_of_several_values(capfd):
    lines = elements(capfd, 'tl.device_print("both", x, x + 1)', {"x": X})
    assert sorted(int(line.split()[-1]) for line in lines) == sorted([10, -20, 30, 11, -19, 31])


def in_host_memory(target):
    return target in ("cpu", "interpret")


def test_the_form_of_a_line(capfd, target):
    """The program, the index as wide as the last one, the text, the value."""
    x = np.arange(12, dtype=np.int32)
    lines = printed(capfd, 'tl.device_print("", n, n)', {"n": 7})
    assert lines == ["pid (0, 0, 0) idx (): (operand 0) 7", "pid (0, 0, 0) idx (): (operand 1) 7"]
    for name in ("tl.device_print", "print")[: 1 if target == "interpret" else 2]:
        assert printed(capfd, f'{name}("just text")', {}) == ["pid (0, 0, 0) just text"]
    assert printed(capfd, 'print("d\u00e9j\u00e0 vu")', {}) == ["d\u00e9j\u00e0 vu"]
    lines = elements(capfd, 'tl.device_print("at ", x_ptr + tl.arange(0, 2))', {"x": x})
    first, second = (
        int(re.fullmatch(r"pid \(0, 0, 0\) (idx \([01]\) )?at: (0x[0-9a-f]{16})", line)[2], 16) for line in lines
    )
    assert second - first == 4
    if in_host_memory(target):
        return
    lines = printed(capfd, 'tl.device_print("x", x)', {"x": x})
    assert sorted(lines) == sorted(f"pid (0, 0, 0) idx ({i:2}) x: {i}" for i in range(12))
    lines = printed(capfd, 'tl.device_print("m", x)', {"x": x[:6].reshape(2, 3)})
    assert len(lines) == 6 and all(" idx (1, 2) " in line for line in lines if line.endswith(" 5"))


TILES = {
    "numbers": np.array([[1.5, -2], [1e-3, 300]], np.float32),
    "wide": np.arange(60, dtype=np.int64) * 1000,
    "small": np.array([1e-30, 2.5, np.nan, -np.inf]),
    "half": np.array([0.1, 65504], np.float16),
    "flags": np.array([True, False]),
    "unsigned": np.array([255, 1], np.uint8),
    "deep": np.arange(24, dtype=np.int16).reshape(2, 3, 4),
    "large": np.arange(2000, dtype=np.int32),
}


@pytest.mark.parametrize("name", TILES)
def test_a_tile_is_printed_as_numpy_prints_it(capfd, target, name):
    if not in_host_memory(target):
        pytest.skip("a GPU prints element by element")
    lines = printed(capfd, f'tl.device_print("{name}", x)', {"x": TILES[name]})
    head = f"pid (0, 0, 0) {name}: "
    assert "\n".join(lines) == head + np.array2string(TILES[name], prefix=head)


def test_tiles_that_numpy_has_no_words_for(capfd, target):
    if not in_host_memory(target):
        pytest.skip("a GPU prints element by element")
    code = 'tl.device_print("x", x.to(tl.bfloat16), (x * 2).to(tl.float8e5))'
    head = "pid (0, 0, 0) x: (operand "
    lines = [head + "0) [0.10009766 2.        ]", head + "1) [0.1875 4.    ]"]
    assert printed(capfd, code, {"x": np.array([0.1, 2], np.float32)}) == lines
    code = 'tl.device_print("h", x, hex=True)'
    x = np.array([[1], [-1]], np.int16)
    assert printed(capfd, code, {"x": x}) == ["pid (0, 0, 0) h: [[0x0001]", " " * 18 + "[0xffff]]"]
    with np.printoptions(threshold=4, edgeitems=1):
        assert printed(capfd, 'tl.device_print("x", x)', {"x": np.arange(9)}) == ["pid (0, 0, 0) x: [0 ... 8]"]


def test_device_print_of_every_program(capfd):
    lines = printed(capfd, 'tl.device_print("id", tl.program_id(0) * 10 + tl.program_id(1))', {}, grid=(3, 2))
    assert sorted(int(line.split()[-1]) for line in lines) == [0, 1, 10, 11, 20, 21]
    assert any("(2, 1, 0)" in line for line in lines)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
def test_device_print_of_every_dtype(capfd, dtype):
    lines = elements(capfd, 'tl.device_print("v", x)', {"x": np.array([1, 2], dtype)})
    assert [float(line.split()[-1]) for line in lines] == [1, 2]


def test_device_print_of_floats_has_the_shortest_digits(capfd, target):
    if not in_host_memory(target):
        pytest.skip("what a GPU prints, the driver formats")
    texts = ["10", "100", "123456", "10000000000", "0.1", "0.33333334", "1e-07", "0.0002", "1e+16", "16777216"]
    texts += ["999999.9", "0", "-0", "nan", "-inf"]
    cases = [("float32", text) for text in texts]
    cases += [("float64", "0.30000000000000004"), ("float64", "5e-324"), ("float16", "65504")]
    for dtype, text in cases:
        lines = printed(capfd, 'tl.device_print("v", x)', {"x": np.array(text, dtype)})
        assert lines[0].split()[-1] == text


def test_static_print(capfd):
    code = """
        tl.static_print("shape", x.shape, x.dtype)
        tl.static_print(f"C is {C} of {x.dtype}", C + 1, sep="|")
        print("numel", x.numel)
        tl.static_print(x, x + 1.0)
    """
    names = {"C": triton.language.constexpr(5)}
    text = "\n".join(
        printed(capfd, re.sub(r"\n +", "\n", code).strip(), {"x": np.zeros((2, 3), np.float32)}, names=names)
    )
    assert "shape" in text and "C is 5 of fp32|6" in text and "numel 6" in text
    tile = "fp32[constexpr[2], constexpr[3]]"
    assert f"{tile} {tile}" in text


def test_static_print_prints_once_a_compilation(capfd):
    kernel = jit("def kernel(out, C: tl.constexpr):\n    tl.static_print('compiling', C)\n    tl.store(out, C)\n")
    out = Buffer(np.zeros(1, np.int32))
    capfd.readouterr()
    for _ in range(3):
        kernel[(4,)](out.argument, 5)
    kernel[(4,)](out.argument, 6)
    assert capfd.readouterr().out.splitlines() == ["compiling 5", "compiling 6"]


def test_static_assert():
    check(
        'tl.static_assert(x.shape[0] == 3)\ntl.static_assert(C > 2, "too small")\nout = x',
        {"x": X},
        X,
        names={"C": triton.language.constexpr(5)},
    )
    with pytest.raises(triton.CompilationError, match="too small"):
        check('tl.static_assert(x.shape[0] > 3, "too small")\nout = x', {"x": X}, X)


def test_assert_that_a_constant_decides():
    """It is for the program that comes by, as one of run-time values is."""
    code = 'assert x.shape[0] > 3, f"shape is {x.shape}"\nout = x'
    check(code, {"x": X}, X)
    with pytest.raises(Exception, match="shape is .*3"):
        check(code, {"x": X}, X, debug=True)


@pytest.mark.parametrize(
    "code", ['tl.device_assert(x > -50, "low")', 'assert tl.max(x) < 100, "low"', "tl.device_assert(n == 7)"]
)
def test_device_assert_that_holds(code):
    check(f"{code}\nout = x", {"x": X, "n": 7}, X, debug=True)


FAILURES = [
    'tl.device_assert(x > 0, "negative here")',
    'tl.device_assert(n < 5, "negative here")',
    'assert tl.min(x) > 0, "negative here"',
]


@pytest.mark.parametrize("code", FAILURES)
def test_device_assert_that_fails(code):
    """The launch raises, says the message and the line, and the next launch works."""
    with pytest.raises(Exception, match="negative here") as error:
        check(f"{code}\nout = x", {"x": X, "n": 7}, X, debug=True)
    assert not isinstance(error.value, (triton.CompilationError, AssertionError)) or "kernel" in str(error.value)
    check("x + 1", {"x": X}, X + 1)


def test_device_assert_is_left_out_without_debug():
    check('tl.device_assert(x > 0, "negative here")\nout = x', {"x": X}, X)


def test_device_assert_under_a_mask():
    code = 'tl.device_assert(x > 0, "negative here", mask=tl.arange(0, 3) != 1)\nout = x'
    check(code, {"x": X}, X, debug=True)


def test_only_some_programs_fail():
    kernel = jit("""
        def kernel(out):
            i = tl.program_id(0)
            tl.device_assert(i != 57, "program 57")
            tl.store(out + i, i)
    """)
    out = Buffer(np.zeros(100, np.int32))
    with pytest.raises(Exception, match="program 57"):
        kernel[(100,)](out.argument, debug=True)
    kernel[(100,)](out.argument, debug=False)
    assert (out.host().values == np.arange(100)).all()


def test_debug_checks_bounds_of_integers():
    x = np.array([2**31 - 1, 5, 7], np.int32)
    with pytest.raises(Exception, match="(?i)overflow"):
        check("x + 1", {"x": x}, x, debug=True)
    check("x + 0", {"x": x}, x, debug=True)
