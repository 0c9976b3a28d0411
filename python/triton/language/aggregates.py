"""Values of several parts in kernels: `aggregate` makes a class of them."""

from collections import namedtuple

_OF_PYTHON = (
    "__dict__",
    "__weakref__",
    "__annotations__",
    "__annotate__",
    "__annotate_func__",
    "__init__",
    "__module__",
)


class _Scratch:
    """What an `__init__` of a program assigns attributes to."""


class Placeholder:
    """Stands for a run-time value of the kernel while an `__init__` runs; it can be passed on, and nothing else."""

    def __init__(self, index):
        self.index = index


def aggregate(cls):
    """Decorator: a class whose objects kernels make, pass to functions and return.

    Fields are the annotated names; they hold values of kernels, tuples, compile-time values and other aggregates, and
    do not change (`aggregate_replace` makes a changed copy). Methods are decorated with ``@triton.jit``. An
    ``__init__`` is run while the kernel is compiled: it assigns every field, and may look at compile-time arguments. ::

        @triton.aggregate
        class Pair:
            first: tl.tensor
            scale: tl.constexpr

            @triton.jit
            def scaled(self):
                return self.first * self.scale
    """
    annotations = getattr(cls, "__annotations__", {})
    fields = list(annotations)
    base = namedtuple(cls.__name__, fields)
    names = {name: value for name, value in vars(cls).items() if name not in (*_OF_PYTHON, *fields)}
    names["_constexprs"] = tuple(_is_constexpr(each) for each in annotations.values())
    own = cls.__dict__.get("__init__")
    if own is not None:
        names |= {"__new__": _constructor(cls.__name__, getattr(own, "fn", own), fields), "__triton_aggregate__": True}
    elif defaults := [vars(cls)[name] for name in fields if name in vars(cls)]:
        base = namedtuple(cls.__name__, fields, defaults=defaults)
    return type(cls.__name__, (base,), {**names, "__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__})


def _is_constexpr(annotation):
    if isinstance(annotation, str):
        return "constexpr" in annotation
    return getattr(annotation, "__triton_kind__", None) == "constexpr"


def _constructor(name, init, fields):
    def __new__(cls, *args, **kwargs):  # noqa: N807
        made = _Scratch()
        init(made, *args, **kwargs)
        missing = [field for field in fields if field not in vars(made)]
        unknown = [field for field in vars(made) if field not in fields]
        if missing or unknown:
            what = f"does not assign {missing[0]!r}" if missing else f"assigns {unknown[0]!r}, which is not annotated"
            raise TypeError(f"{name}.__init__ {what}")
        return tuple.__new__(cls, [vars(made)[field] for field in fields])

    return __new__
