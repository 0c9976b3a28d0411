"""Arguments of a launch: how they are bound, and what is said when they do not fit."""

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def fill(out, n, value, BLOCK: tl.constexpr = 16):
    index = tl.arange(0, BLOCK)
    tl.store(out + index, value, mask=index < n)


@triton.jit
def keyword_only(out, *, value):
    tl.store(out, value)


@triton.jit
def three_defaults(out, a=2, b=3, c=4):
    tl.store(out, a * 100 + b * 10 + c)


def filled(*args, **kwargs):
    out = np.zeros(16, np.float32)
    fill[(1,)](out, *args, **kwargs)
    return out.tolist()


def test_positions_keywords_and_defaults_bind_alike():
    expected = [7.0] * 5 + [0.0] * 11
    assert filled(5, 7.0) == expected
    assert filled(5, 7.0, 16) == expected
    assert filled(value=7.0, n=5) == expected
    assert filled(5, BLOCK=16, value=7.0) == expected
    arguments = {"n": 5, "value": 7.0}
    assert filled(**arguments) == expected


def test_keyword_only_parameters():
    out = np.zeros(1, np.float32)
    keyword_only[(1,)](out, value=3.0)
    assert out[0] == 3


def test_defaults_of_run_time_parameters():
    out = np.zeros(1, np.int32)
    three_defaults[(1,)](out, 1, c=7)
    assert out[0] == 137


def test_keywords_need_not_be_interned():
    expected = filled(5, 7.0)
    name = "".join(["va", "lue"])
    assert filled(5, **{name: 7.0}) == expected


def test_launch_options_are_no_parameters():
    compiled = fill.warmup(np.zeros(16, np.float32), 5, 7.0, num_warps=8, num_stages=2, grid=(1,))
    assert compiled.metadata.num_warps == 8
    assert compiled.metadata.num_stages == 2
    assert filled(5, 7.0, num_ctas=1, maxnreg=128, stream=0, enable_fp_fusion=True) == filled(5, 7.0)


@triton.jit
def own_stages(out, num_stages: tl.constexpr):
    tl.store(out, num_stages)


def test_a_parameter_named_like_an_option_gets_the_value_too():
    out = np.zeros(1, np.int32)
    compiled = own_stages[(1,)](out, num_stages=2)
    assert out[0] == 2
    assert compiled.metadata.num_stages == 2


OUT = np.zeros(16, np.float32)


@pytest.mark.parametrize(
    "launch, message",
    [
        (
            lambda: fill[(1,)](OUT),
            "fill() missing 2 required positional arguments: 'n' and 'value'; pass fill[grid](..., n=..., value=...)",
        ),
        (
            lambda: fill[(1,)](OUT, 5),
            "fill() missing 1 required positional argument: 'value'; pass fill[grid](..., value=...)",
        ),
        (
            lambda: fill[(1,)](),
            "fill() missing 3 required positional arguments: 'out', 'n', and 'value'; "
            "pass fill[grid](..., out=..., n=..., value=...)",
        ),
        (
            lambda: fill[(1,)](OUT, 1, 2, 3, 4),
            "fill() takes from 3 to 4 positional arguments but 5 were given: it has (out, n, value, BLOCK)",
        ),
        (
            lambda: keyword_only[(1,)](OUT, 1),
            "keyword_only() takes 1 positional argument but 2 were given: it has (out)",
        ),
        (
            lambda: keyword_only[(1,)](OUT),
            "keyword_only() missing 1 required keyword-only argument: 'value'; pass keyword_only[grid](..., value=...)",
        ),
        (lambda: fill[(1,)](OUT, 5, 7.0, out=OUT), "fill() got multiple values for argument 'out': pass it once"),
        (
            lambda: fill[(1,)](OUT, 5, 7.0, BLOK=16),
            "fill() got an unexpected keyword argument 'BLOK'; did you mean 'BLOCK'?",
        ),
        (
            lambda: fill[(1,)](OUT, 5, 7.0, num_warp=16),
            "fill() got an unexpected keyword argument 'num_warp'; did you mean 'num_warps'?",
        ),
        (lambda: fill[(1,)](OUT, 5, 7.0, zzz=1), "fill() got an unexpected keyword argument 'zzz'"),
        (lambda: fill.run(OUT, 5, 7.0), "fill.run() needs the keyword argument 'grid'"),
    ],
)
def test_wrong_calls(launch, message):
    with pytest.raises(TypeError) as error:
        launch()
    assert str(error.value) == message


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_warps": 3}, "fill(): option num_warps=3: it must be a power of 2"),
        ({"num_warps": 0}, "fill(): option num_warps=0: it must be a power of 2"),
        ({"num_stages": -1}, "fill(): option num_stages=-1: it cannot be negative"),
        ({"num_warps": 4.0}, "fill(): option num_warps=4.0: it must be an integer"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises((TypeError, ValueError)) as error:
        filled(5, 7.0, **options)
    assert str(error.value) == message
    assert isinstance(error.value, (TypeError, AssertionError))  # asserted by the public API


def test_calling_without_a_grid():
    with pytest.raises(RuntimeError, match=r"cannot call @triton.jit'd function 'fill' outside .* fill\[grid\]"):
        fill(OUT, 5, 7.0)


def test_many_parameters():
    """More than fit in the buffers that a launch has on the stack."""
    count = 70
    namespace = {"triton": triton, "tl": tl}
    names = ", ".join(f"a{i}" for i in range(count))
    source = f"@triton.jit\ndef many(out, {names}):\n    tl.store(out, {' + '.join(names.split(', '))})\n"
    many = define(source, "many", namespace)
    out = np.zeros(1, np.int32)
    many[(1,)](out, *range(2, count + 2))
    assert out[0] == sum(range(2, count + 2))


def define(source, name, namespace):
    """A kernel from a text, found by linecache like a notebook's."""
    import linecache

    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


@triton.jit
def meta_style(out, n, **META):
    index = tl.arange(0, META["BLOCK"])
    tl.store(out + index, META["VALUE"], mask=index < n)


def test_meta_is_a_mapping_of_the_other_keywords():
    out = np.zeros(16, np.float32)
    compiled = meta_style[lambda META: (META["BLOCK"] // 16,)](out, 5, BLOCK=16, VALUE=2.5, num_warps=2)
    assert out.tolist() == [2.5] * 5 + [0.0] * 11
    assert compiled.metadata.constants["META"] == {"BLOCK": 16, "VALUE": 2.5, "num_warps": 2}
    meta_style[(1,)](out, 5, VALUE=3.5, BLOCK=8)
    assert out.tolist() == [3.5] * 5 + [0.0] * 11


def test_the_target_variable_may_change_between_launches(monkeypatch, target):
    """It is looked for among the variables of the environment only when these changed."""
    if target != "cpu":
        pytest.skip("it is changed here")

    @triton.jit
    def nothing(x):
        pass

    def runs_on():
        return nothing.warmup(3, grid=(1,)).metadata.target.backend

    for _ in range(2):
        monkeypatch.setenv("TRITON_TARGET", "sim:80")
        assert runs_on() == "sim"
        monkeypatch.setenv("TRITON_TARGET", "cpu")
        assert runs_on() == "cpu"
        monkeypatch.delenv("TRITON_TARGET")
        assert runs_on() in ("cpu", "cuda")
        monkeypatch.setenv("SOMETHING_ELSE", "1")
        monkeypatch.setenv("TRITON_TARGET", "sim:90")
        assert runs_on() == "sim"
        monkeypatch.delenv("SOMETHING_ELSE")
        assert runs_on() == "sim"
        monkeypatch.delenv("TRITON_TARGET")
        monkeypatch.setenv("TRITON_TARGET", "cpu")
