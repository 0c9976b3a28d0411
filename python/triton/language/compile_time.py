"""Compile-time values on the host's side: `constexpr`, `constexpr_function`, and the annotation `const`."""

from functools import update_wrapper
from types import MethodType

from .dtypes import base_type, tuple_type
from .tensors import base_value


class const:
    """As the annotation of a pointer parameter: nothing is stored through it, and the compiler refuses to."""


class constexpr_type(base_type):
    """The type of a compile-time value: the value itself. That of a tuple equals the tuple of its items' types."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        if isinstance(other, tuple_type) and isinstance(self.value, tuple):
            return list(other.types) == [constexpr_type(unwrap(item)) for item in self.value]
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self):
        return hash((constexpr_type, self.value))

    def __repr__(self):
        return f"constexpr_type[{self.value!r}]"


class constexpr:
    """A value that is known while a kernel is compiled.

    As an annotation, ``BLOCK: tl.constexpr`` makes a parameter a compile-time one: each value of it compiles
    its own kernel. As an object, ``tl.constexpr(4)`` wraps a value: a global that is used in a kernel must be
    one. It does not change; a name that is bound to another one makes another kernel. Operators work on the
    wrapped value and wrap the result. In a kernel, a run-time value stays what it is.
    """

    __triton_kind__ = "constexpr"
    __slots__ = ("value",)

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        _keep(self, value)

    def __setattr__(self, name, value):
        if name == "value":
            raise AttributeError(
                f"the value of {self!r} cannot be assigned: kernels are compiled with it. "
                "Bind the name to another one, NAME = tl.constexpr(...), for which they are compiled anew"
            )
        super().__setattr__(name, value)

    def __reduce__(self):
        return type(self), (self.value,)

    @property
    def type(self):
        return constexpr_type(self.value)

    def __repr__(self):
        return f"constexpr[{self.value!r}]"

    def __str__(self):
        return str(self.value)

    def __format__(self, spec):
        return format(self.value, spec)

    def __hash__(self):
        return hash(self.value)

    def __bool__(self):
        return bool(self.value)

    def __index__(self):
        return self.value.__index__()

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return map(constexpr, self.value)

    def __contains__(self, item):
        return unwrap(item) in self.value

    def __call__(self, *args, **kwargs):
        return self.value(*args, **kwargs)

    def __getitem__(self, index):
        return constexpr(self.value[unwrap(index)])

    def logical_and(self, other):
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other):
        return constexpr(self.value or unwrap(other))


_keep = constexpr.value.__set__


def unwrap(value):
    """The value inside a constexpr; any other value as it is."""
    return value.value if isinstance(value, constexpr) else value


def _wrap(result):
    """What an operator or a function gives: a compile-time value is wrapped, a run-time one is what it is."""
    return result if _has_run_time_values(result) else constexpr(result)


def _has_run_time_values(value):
    return isinstance(value, base_value) or isinstance(value, tuple) and any(map(_has_run_time_values, value))


def _add_operators():
    """Give constexpr every operator of Python, on the wrapped values."""
    import operator

    def unary(function):
        return lambda self: constexpr(function(self.value))

    def binary(function):
        return lambda self, other: _wrap(function(self.value, unwrap(other)))

    def reflected(function):
        return lambda self, other: _wrap(function(unwrap(other), self.value))

    for name in ("neg", "pos", "invert", "abs"):
        setattr(constexpr, f"__{name}__", unary(getattr(operator, name)))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(constexpr, f"__{name}__", binary(getattr(operator, name)))
    arithmetic = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor matmul"
    for name in arithmetic.split():
        function = getattr(operator, name)
        name = name.rstrip("_")
        setattr(constexpr, f"__{name}__", binary(function))
        setattr(constexpr, f"__r{name}__", reflected(function))


_add_operators()


class constexpr_function:
    """Decorator: a Python function that kernels may call on compile-time values.

    While a kernel is compiled, Python runs the function on the unwrapped arguments, and the result is a
    compile-time value of the kernel. On the host it is called as always; wrapped arguments, and objects of
    `triton.aggregate`, give a wrapped result.
    """

    __triton_kind__ = "constexpr_function"

    def __init__(self, fn):
        update_wrapper(self, fn)
        self.fn, self._text = fn, None

    @property
    def src(self):
        """The text of the function from its ``def`` on."""
        from ..runtime.source import KernelSource, read_lines

        return self._text or KernelSource(self.fn, known=read_lines(self.fn)).text

    def _unsafe_update_src(self, text):
        """Run `text`, a definition of the same name, from now on: for tests that make functions out of templates."""
        defined = {}
        exec(text, self.fn.__globals__, defined)
        self._text, self.fn.__code__ = text, defined[self.fn.__name__].__code__

    @property
    def cache_key(self):
        """A text that is another one when the function's text is, or what it uses; the same in every process."""
        from ..runtime.dependencies import value_text

        return value_text(self)

    def __call__(self, *args, **kwargs):
        result = self.fn(*map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()})
        wrapped = any(isinstance(x, constexpr) or hasattr(x, "_of_values") for x in (*args, *kwargs.values()))
        return _wrap(unwrap(result)) if wrapped else result

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)


_unwrap_if_constexpr = constexpr_function(unwrap)  # under this name in kernels of other libraries
