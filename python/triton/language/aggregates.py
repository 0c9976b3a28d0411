"""Values of several parts in kernels: `aggregate` makes a class of them."""

import sys
from types import FunctionType

from ._builtin import compute_for_kernel, for_kernel, place_of
from .compile_time import constexpr
from .tensors import add_operators, tensor

_VARIABLE_KEYWORDS = 0x08  # of code flags
_RUN_BY_PYTHON = {"__init__", "__post_init__", "__new__", "__repr__", "__str__", "__hash__", "__class_getitem__"}


class Placeholder(tensor):
    """Stands for a run-time value of the kernel while an `__init__` runs. What is done with it, the kernel does."""

    __slots__ = ("_index", "_compute")

    def __init__(self, index, compute):
        self._index, self._compute = index, compute  # whose number it is

    def __getattribute__(self, name):
        return object.__getattribute__(self, name) if name.startswith("_") else _operate(".", self, name)

    def __getitem__(self, index):
        return _operate("[]", self, *(index if isinstance(index, tuple) else (index,)))

    def __call__(self, *args, **keywords):  # a method
        return _compute(self, args, keywords)

    def __iter__(self):
        raise TypeError("a run-time value cannot be iterated over")

    def __bool__(self):
        raise TypeError(
            "this condition is known when the kernel runs, and Python decides while it is compiled: choose with "
            "tl.where, or in a @triton.jit function that is called here"
        )

    def __hash__(self):
        return self._index

    def __repr__(self):
        return "<run-time value>"


def _compute(operation, args, keywords):
    compute = compute_for_kernel()
    if compute is None:
        raise RuntimeError("this is a run-time value of a kernel that is not being compiled any more")
    return compute(operation, args, keywords)


def _operate(text, *operands):
    return _compute(text, operands, {})


add_operators(Placeholder, _operate)


def run_for_kernel(compute, function, args, keywords):
    """A call by a kernel that is compiled; `compute` builds what is done with its run-time values."""

    def at_place(operation, args, keywords):
        frame = sys._getframe(1)
        while frame.f_back and (frame.f_globals.get("__name__") or "").partition(".")[0] == "triton":
            frame = frame.f_back
        return compute(operation, args, keywords, place_of(frame))

    with for_kernel(at_place):
        return function(*args, **keywords)


class _AggregateType(type):
    """Its classes run `__init__` on a draft, an empty tuple with attributes, and make the object of what that has."""

    def __call__(cls, *args, **kwargs):
        draft = tuple.__new__(cls)
        code = getattr(cls.__init__, "fn", cls.__init__).__code__
        for name in ("_semantic", "_generator"):  # of the public compiler, which passes them where they are asked for
            given = kwargs.pop(name, None)
            if name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                kwargs[name] = given
        cls.__init__(draft, *args, **kwargs)
        if post := getattr(cls, "__post_init__", None):
            post(draft)
        given = vars(draft)
        missing = [field for field in cls._fields if field not in given]
        unknown = [field for field in given if field not in cls._fields]
        if missing or unknown:
            what = f"does not assign {missing[0]!r}" if missing else f"assigns {unknown[0]!r}, which is not annotated"
            raise TypeError(f"{cls.__name__}.__init__ {what}")
        return cls._of_values(given[field] for field in cls._fields)


class Aggregate(tuple, metaclass=_AggregateType):
    """What the classes of `aggregate` have in common: a tuple whose items have names, like a named tuple."""

    __slots__ = ()
    _fields, _field_defaults, _constexprs = (), {}, ()

    def __init__(self, *args, **kwargs):
        cls = type(self)
        if len(args) > len(cls._fields):
            raise TypeError(f"{cls.__name__} takes {len(cls._fields)} values, but {len(args)} are given")
        given = dict(zip(cls._fields, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{cls.__name__} gets {name!r} twice")
            given[name] = value
        missing = [name for name in cls._fields if name not in given and name not in cls._field_defaults]
        if missing:
            raise TypeError(f"{cls.__name__} needs {missing[0]!r}, too")
        given = cls._field_defaults | given
        kinds = zip(cls._fields, cls._constexprs, strict=True)
        vars(self).update({name: cls._wrapped(name, given[name], kind) for name, kind in kinds})

    @classmethod
    def _make(cls, items):
        return tuple.__new__(cls, items)

    @classmethod
    def _of_values(cls, items):
        return cls._make(map(cls._wrapped, cls._fields, items, cls._constexprs))

    @classmethod
    def _wrapped(cls, name, item, is_constexpr):
        """The item of a field as the host sees it."""
        if not is_constexpr or isinstance(item, constexpr | Placeholder):
            return _wrapped(item)
        if getattr(type(item), "__triton_kind__", None) == "tile":  # of the interpreter
            if item._constant is None:
                raise TypeError(
                    f"field {name!r} of a {cls.__name__} is a tl.constexpr, which cannot be a run-time value ({item})"
                )
            item = item._constant
        return constexpr(item)

    def _replace(self, **fields):
        for name in fields:
            if name not in self._fields:
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
        return self._of_values(
            fields.get(name, item) for name, item in zip(self._fields, tuple.__iter__(self), strict=True)
        )

    def __setattr__(self, name, value):
        if tuple.__len__(self):
            raise AttributeError(
                f"cannot assign to field {name!r} on immutable aggregate {type(self).__name__}: "
                "tl.aggregate_replace makes a changed copy"
            )
        vars(self)[name] = value

    def __reduce__(self):
        return type(self)._make, (tuple(tuple.__iter__(self)),)

    def __repr__(self):
        items = zip(self._fields, tuple.__iter__(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={item!r}' for name, item in items)})"


class _Field:
    """A field of an object; a draft has it among its attributes, which come first."""

    def __init__(self, name, place):
        self.name, self.place = name, place

    def __get__(self, made, owner=None):
        if made is None:
            return self
        if tuple.__len__(made):
            return tuple.__getitem__(made, self.place)
        raise AttributeError(f"{owner.__name__}.__init__ has not assigned {self.name!r} yet")


def aggregate(cls):
    """Decorator: a class whose objects kernels make, pass to functions and return.

    Fields are the annotated names, those of the aggregate that it inherits from first; they hold values of kernels,
    tuples, compile-time values and other aggregates, and do not change (`aggregate_replace` makes a changed copy).
    Methods, properties and operators are decorated with ``@triton.jit``, or run on compile-time values with
    ``@triton.constexpr_function``. An ``__init__``, and a ``__post_init__`` behind it, is run while the kernel is
    compiled: it assigns every field, and may look at compile-time arguments. Functions of the language that it calls,
    ``@triton.jit`` functions and operators compute in the kernel. ::

        @triton.aggregate
        class Pair:
            first: tl.tensor
            scale: tl.constexpr = 1

            @triton.jit
            def scaled(self):
                return self.first * self.scale
    """
    for base in cls.__bases__:
        if base is not object and not issubclass(base, Aggregate):
            raise TypeError(f"Aggregates can only inherit from other aggregates, not from {base.__name__}")
    own = _own_annotations(cls)
    kinds, defaults = {}, {}
    for base in reversed(cls.__mro__[1:]):
        kinds |= dict(zip(getattr(base, "_fields", ()), getattr(base, "_constexprs", ()), strict=True))
        defaults |= getattr(base, "_field_defaults", {})
    kinds |= {name: _is_constexpr(annotation) for name, annotation in own.items()}
    defaults |= {name: vars(cls)[name] for name in own if name in vars(cls)}
    static = tuple(
        name for base in cls.__mro__ for name, value in vars(base).items() if isinstance(value, staticmethod)
    )
    for name, value in list(vars(cls).items()):
        if name not in own:
            _prepare(cls, name, value)
    names = {name: _Field(name, place) for place, name in enumerate(kinds)}
    names |= {"_fields": tuple(kinds), "_field_defaults": defaults, "_constexprs": tuple(kinds.values())}
    names |= {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")} | {"_static": static}
    if own and "__init__" not in vars(cls):  # that of a parent cannot know them
        names["__init__"] = Aggregate.__init__
    made = _AggregateType(cls.__name__, (cls,) if issubclass(cls, Aggregate) else (cls, Aggregate), names)
    made.__triton_aggregate__ = made.__init__ is not Aggregate.__init__ or hasattr(made, "__post_init__") or None
    return made


def _own_annotations(cls):
    if "__annotations__" in vars(cls) or not any("__annotate" in name for name in vars(cls)):
        return vars(cls).get("__annotations__", {})
    return cls.__annotations__  # which Python 3.14 makes when it is asked for


def _is_constexpr(annotation):
    if isinstance(annotation, str):
        return "constexpr" in annotation
    return getattr(annotation, "__triton_kind__", None) == "constexpr"


def _wrapped(item):
    """The compile-time values of a tuple are `tl.constexpr`."""
    if isinstance(item, tuple) and not isinstance(item, Aggregate):
        items = [constexpr(each) if isinstance(each, bool | int | float | str) else _wrapped(each) for each in item]
        return item._make(items) if hasattr(item, "_make") else tuple(items)
    return item


def _prepare(cls, name, value):
    """A method that is plain Python becomes one of kernels, where it may be passed what only a kernel knows; an
    operator, which Python looks up in the class, calls its function there."""
    from ..runtime.jit import JITFunction, jit

    function = getattr(value, "__func__", getattr(value, "fget", value))
    is_plain = isinstance(function, FunctionType) and function.__name__ != "<lambda>"
    if is_plain and name not in _RUN_BY_PYTHON and not function.__code__.co_flags & _VARIABLE_KEYWORDS:
        function.fn = jit(function)
    elif isinstance(value, JITFunction) and name.startswith("__"):
        setattr(cls, name, value.fn if name in _RUN_BY_PYTHON else _operator(value))


def _operator(function):
    def operate(*operands):
        from ..interpreter.frames import call

        return call(function, *operands)

    operate.fn, operate.__module__ = function, function.__module__  # whose changes make other kernels
    return operate
