"""What an interpreted kernel calls where Python alone would do something else than a kernel does; see `rewrite`."""

import inspect
import operator
import sys

import numpy as np

from ..errors import CompilationError
from ..language import core
from ..language._builtin import for_kernel
from .operations import BoundMethod, run
from .state import current
from .tiles import STORAGE, Tile, Window, element_of

_NUMBERS = (int, float)
DEEPEST = 200  # calls in calls, as in compiled kernels


def fail(message, remedy=None):
    """The error of the compiler, at this place of the kernel."""
    return CompilationError(message, location=current().location(), remedy=remedy)


# ---- values


def value(x):
    """What a name of the host means in a kernel: a constexpr is what it holds."""
    while type(x) is core.constexpr:
        x = x.value
    if type(x) is tuple and any(type(item) is core.constexpr for item in x):
        return tuple(value(item) for item in x)
    return x


def known(x):
    """A compile-time object, constants unwrapped; an object with a tile that is none stays as it is."""
    if type(x) is Tile and x._constant is not None:
        return x._constant
    if isinstance(x, tuple):
        return _map_tuple(known, x)
    return x


def has_tiles(x):
    """Is any part of it known at run time only, or a constant of the language?"""
    if isinstance(x, tuple | list):
        return any(has_tiles(item) for item in x)
    return type(x) is Tile or type(x) is Window


def _is_dynamic(x):
    return type(x) is Tile and x._constant is None


def _map_tuple(function, x):
    items = [function(item) for item in x]
    return type(x)._make(items) if hasattr(x, "_fields") else tuple(items)


def _map_values(function, x):
    """The same, but compile-time fields of an aggregate stay what they are."""
    kept = getattr(type(x), "_constexprs", None)
    if kept is None:
        return _map_tuple(function, x)
    return type(x)._make(item if keep else function(item) for item, keep in zip(x, kept, strict=True))


def assign(x):
    """What a name holds after an assignment, or a function returns: numbers become values of the language."""
    x = value(x)
    if isinstance(x, _NUMBERS):
        return run("=", (x,), {})
    if isinstance(x, tuple):
        return _map_values(assign, x)
    return tuple(map(assign, x)) if type(x) is list else x


def constant(x):
    """The value of a name that is annotated `tl.constexpr`."""
    found = known(value(x))
    if has_tiles(found):
        raise fail(f"a name annotated tl.constexpr needs a compile-time value, not {_describe(found)}")
    return found


def carried(x):
    """What a name holds when an iteration of a loop that assigns it begins: no constant."""
    x = assign(x)
    if type(x) is Tile and x._constant is not None:
        return Tile(x.data, x.dtype)
    if isinstance(x, tuple):
        return _map_values(carried, x)
    return x


def bound(name):
    """Does a local name of the caller hold anything?"""
    return name in sys._getframe(1).f_locals


def _describe(x):
    return f"{x.type}" if isinstance(x, Tile) else repr(x)


# ---- operators


def negated(x):
    return run("not", (x,), {}) if type(x) is Tile else not x


def same(a, b):
    """``a is b``"""
    a, b = known(a), known(b)
    if a is None or b is None:
        return a is b
    if has_tiles(a) or has_tiles(b):
        raise fail("`is` compares compile-time objects", "compare values with `==`")
    return a is b or (type(a) is type(b) and a == b)


def contains(item, container):
    """``item in container``"""
    item, container = known(item), known(container)
    if has_tiles(item) or has_tiles(container):
        raise fail(
            "`in` is decided at compile time, but here are run-time values",
            "compare with each item by `==` and combine the results with `|`",
        )
    return item in container


_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": same,
    "is not": lambda a, b: not same(a, b),
    "in": contains,
    "not in": lambda a, b: not contains(a, b),
}


def compare(left, *rest):
    """``a < b < c``: `rest` has (operator, operand) pairs."""
    result = True
    for text, right in rest:
        one = _COMPARISONS[text](left, right)
        left = right
        if not _is_dynamic(result):
            if not result:
                return result
            result = one
        else:
            result = run("and", (result, one), {})
    return result


def goes_on(name, x):
    """Is the right side of `and` or `or` needed?"""
    if type(x) is not Tile or x._constant is not None:
        return bool(known(x)) == (name == "and")
    return bool(x.shape) or bool(x) == (name == "and")


def both(name, a, b):
    """The result with the right side evaluated."""
    return run(name, (a, b), {}) if _is_dynamic(a) else b


def decided(a):
    """The result where the left side decided."""
    return carried(bool(a)) if _is_dynamic(a) else a


def condition(x):
    return bool(x)


def chosen(x, test):
    """The result of ``x if test else y``: a run-time choice is between values."""
    return carried(x) if _is_dynamic(test) else x


# ---- attributes and calls


def attribute(x, name):
    x = value(x)
    if type(x) is Tile:
        if name in ("dtype", "shape", "type", "numel"):
            return getattr(x, name)
        return run(".", (x, name), {})
    if type(x) is Window:
        return run(".", (x, name), {})
    if isinstance(x, tuple) and name not in (*getattr(x, "_fields", ()), *getattr(x, "_static", ())):
        found = getattr(type(x), name, None)
        if _jit_of(found) is not None:
            return BoundMethod(found, x)
        if isinstance(found, property) and _jit_of(found.fget) is not None:
            return call(found.fget, x)
    try:
        return value(getattr(x, name))
    except AttributeError:
        return x if name == "value" else run(".", (x, name), {})


def method(x, name, /, *args, **keywords):
    return call(attribute(x, name), *args, **keywords)


def _jit_of(function):
    """The jit function that an object is or wraps."""
    for _ in range(8):
        if function is None or isinstance(function, type):
            return None
        if getattr(type(function), "__triton_kind__", None) == "jit":
            return function
        function = getattr(function, "fn", None)
    return None


def _is_language(function):
    return (getattr(function, "__module__", None) or "").startswith("triton.")


# Python's functions that work on tuples of tiles; what gives an iterator gives a tuple.
_ON_TUPLES = {enumerate, zip, reversed, list, tuple}
_ON_VALUES = {abs, all, any, bool, divmod, float, int, max, min, pow, sum}


def call(function, /, *args, **keywords):
    """A call in a kernel."""
    function = value(function)
    if type(function) is BoundMethod:
        args, function = (function.tile, *args), function.function
    jit = _jit_of(function)
    if jit is not None and not _is_language(jit):
        return _call_jit(jit, args, keywords)
    if function is print:
        return print(*args, **keywords)
    if function is isinstance and len(args) == 2:
        return _is_instance(*args)
    if function is getattr and len(args) == 2:
        return attribute(*args)
    if function is len and len(args) == 1:
        return len(args[0])
    if function is core.constexpr:
        return known(value(args[0]))
    is_known = type(function).__hash__ is not None
    if is_known and function in _ON_TUPLES:
        return tuple(function(*map(known, args), **keywords))
    special = is_known and function in _ON_VALUES
    if special and not has_tiles(args):
        return function(*args, **keywords)
    if jit is not None or special or getattr(function, "__triton_builtin__", None) or not callable(function):
        return run(function, args, keywords)
    if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
        with for_kernel(lambda function, args, keywords: call(function, *args, **keywords)):
            return function(*map(value, args), **{name: value(each) for name, each in keywords.items()})
    args, keywords = tuple(map(known, args)), {name: known(each) for name, each in keywords.items()}
    if has_tiles((*args, *keywords.values())) and not _is_own(function):
        return run(function, args, keywords)  # which says what is wrong
    return value(function(*args, **keywords))


def _is_own(function):
    """Debuggers, printers, containers and named tuples that are replaced take whatever there is."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, list | dict | set) or isinstance(owner, tuple) and function.__name__ == "_replace":
        return True
    return (getattr(function, "__module__", None) or "").split(".")[0] in ("pdb", "pprint", "logging", "numpy")


def _is_instance(x, types):
    x = value(x)
    for kind in types if isinstance(types, tuple) else (types,):
        if kind is core.constexpr:
            if not has_tiles(x):
                return True
        elif isinstance(x, Window):
            if issubclass(core.tensor, kind):
                return True
        elif isinstance(x, kind):
            return True
    return False


def _call_jit(jit, args, keywords):
    from .rewrite import interpreted

    function = interpreted(jit)
    try:
        jit.signature.bind(*args, **keywords)
    except TypeError as error:
        raise fail(f"`{jit.__name__}`: {error}") from None
    params = jit.params
    args = [known(x) if i < len(params) and params[i].is_constexpr else value(x) for i, x in enumerate(args)]
    named = {param.name for param in params if param.is_constexpr}
    keywords = {name: known(x) if name in named else value(x) for name, x in keywords.items()}
    run_under_way = current()
    if run_under_way.depth == DEEPEST:
        raise fail(
            f"endless recursion: {jit.__name__} is called in {DEEPEST} calls",
            "write it as a loop; only recursion that tl.constexpr arguments end can be compiled",
        )
    run_under_way.depth += 1
    try:
        return function(*args, **keywords)
    finally:
        run_under_way.depth -= 1


# ---- statements


def check(test, message=""):
    """An `assert`."""
    if not holds(test):
        run(core.device_assert, (test if _is_dynamic(test) else False, message), {})


def holds(test):
    """Is it known that what an assertion says holds? Its message is not evaluated then."""
    return not _is_dynamic(test) and bool(known(test))


class Range:
    """What a loop of run-time integers counts through."""

    is_dynamic = True

    def __init__(self, start, stop=None, step=None):
        if stop is None:
            start, stop = 0, start
        step = 1 if step is None else step
        if not has_tiles(step) and step == 0:
            raise fail("the step of this range is 0", "leave the step out to count by 1")
        self.bounds = run("range", (start, stop, step), {})

    def __iter__(self):
        dtype = self.bounds[0].dtype
        storage = STORAGE[element_of(dtype)]
        for index in range(*(int(bound.numpy()) for bound in self.bounds)):
            yield Tile(np.asarray(index).astype(storage), dtype)


class Items:
    """What a loop that is unrolled goes through."""

    is_dynamic = False

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def _static_range(bounds):
    """The integers of a tl.static_range."""
    found = [known(bound) for bound in (bounds.start, bounds.end, bounds.step)]
    for name, bound in zip(("start", "stop", "step"), found, strict=True):
        if not hasattr(bound, "__index__") or has_tiles(bound):
            raise fail(
                f"`{name}` of tl.static_range must be a compile-time int, not {_describe(bound)}",
                "make it a tl.constexpr parameter, or loop with range(...)",
            )
    if not found[2]:
        raise fail("the step of tl.static_range is 0")
    return range(*found)


_LOOP_OPTIONS = inspect.signature(core.range).parameters.keys() - {"arg1", "arg2", "step"}


def loop(function, /, *args, **keywords):
    """The iterable of a `for` statement that is a call."""
    function = value(function)
    kind = getattr(function, "__triton_kind__", None) if isinstance(function, type) else None
    if function is range:
        if not keywords.keys() <= _LOOP_OPTIONS:
            raise fail("range() takes no keyword arguments", "use tl.range for options")
        if not 1 <= len(args) <= 3:
            raise fail(f"range() takes 1 to 3 arguments, not {len(args)}")
        return Range(*args)
    if kind == "range":
        bounds = function(*args, **keywords)
        return Range(bounds.start, bounds.end, bounds.step)
    if kind == "static_range":
        return Items(_static_range(function(*args, **keywords)))
    return items(call(function, *args, **keywords))


def loop_method(x, name, /, *args, **keywords):
    return loop(attribute(x, name), *args, **keywords)


def items(iterable):
    """The iterable of a `for` statement that is no call."""
    if has_tiles(iterable) and not isinstance(iterable, tuple | list):
        raise fail(
            f"{_describe(iterable)} cannot be iterated over",
            "loop over indices with range(...), or reduce it with tl.sum, tl.max, tl.reduce",
        )
    return Items(iterable)
