"""Runs a @triton.jit function of scalars three times: its tile IR in the interpreter, compiled, and as plain Python."""

import importlib.util
import types

import numpy as np
from ir.interpreter import Interpreter

import triton
import triton.language as tl
from triton import _C

OUT = 1 << 20  # the address of the results


class PlainLanguage:
    """What of triton.language scalar functions use, in plain Python."""

    constexpr = staticmethod(lambda value: value)
    range = staticmethod(lambda *bounds, **_: range(*bounds))
    static_range = range
    int32 = int64 = None


def plain(function):
    """The Python function behind a jit function, with every name that it uses made plain as well."""
    fn = function.fn
    scope = dict(fn.__globals__)
    for name, value in scope.items():
        if isinstance(value, triton.JITFunction):
            if value is not function and name in fn.__code__.co_names:
                scope[name] = plain(value)
        elif isinstance(value, tl.constexpr):
            scope[name] = value.value
    made = types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__ = fn.__kwdefaults__
    scope["tl"] = PlainLanguage
    if scope.get(fn.__name__) is function:
        scope[fn.__name__] = made
    return made


@triton.jit
def store_all(out, results):
    if isinstance(results, tuple):
        for i, x in enumerate(results):
            tl.store(out + i, x)
    else:
        tl.store(out, results)


def kernel_of(function):
    @triton.jit
    def kernel(out, *args):
        store_all(out, function(*args))

    return kernel


def entry(arg):
    if isinstance(arg, tl.constexpr):
        return arg
    return ("fp64" if isinstance(arg, float) else "i1" if isinstance(arg, bool) else "i32", 1)


def build(function, *args):
    """The tile IR of a kernel that stores what the function returns."""
    element = "*fp64" if any(isinstance(arg, float) for arg in args) else "*i64"
    return _C._frontend(kernel_of(function), ((element, 8), [entry(arg) for arg in args]))


def interpret(text, args, count):
    memory = {OUT + 8 * i: None for i in range(16)}
    run_time = [arg for arg in args if not isinstance(arg, tl.constexpr)]
    Interpreter(text, memory).call(OUT, *map(lambda x: int(x) if isinstance(x, bool) else x, run_time))
    return tuple(memory[OUT + 8 * i] for i in range(count))


def launch(kernel, args, count):
    """What the compiled kernel computes."""
    out = np.zeros(16, np.int64)
    kernel[(1,)](out, *args)
    return tuple(map(int, out[:count]))


def check(function, *inputs):
    """Compares the two, and the compiled kernel, on every tuple of arguments; types must be the same in each."""
    text = build(function, *inputs[0])
    kernel = kernel_of(function)
    for args in inputs:
        expected = plain(function)(*[arg.value if isinstance(arg, tl.constexpr) else arg for arg in args])
        expected = expected if isinstance(expected, tuple) else (expected,)
        result = interpret(text, args, len(expected))
        assert result == expected, f"{args}: {result} instead of {expected}\n{text}"
        assert launch(kernel, args, len(expected)) == expected, (args, text)
    return text


def load_module(tmp_path, source, name="program"):
    path = tmp_path / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
