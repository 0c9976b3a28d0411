# ruff: noqa: F401
"""The language of kernels: what a function decorated with ``@triton.jit`` may use, usually as ``tl``.

Builtins of the compiler live in one module a subject (`memory`, `math`, `shape`, ...) and together in `core`;
what is written in the language itself is in `standard` and `random`.
"""

from functools import partial

from . import core, extra, math, operators, random, semantic, standard, target_info
from .core import *  # noqa: F403
from .descriptor import *  # noqa: F403
from .microscaling import *  # noqa: F403
from .random import *  # noqa: F403
from .standard import *  # noqa: F403


class _Method:
    """A function that is written in the language, as a method: Python binds its own functions only."""

    def __init__(self, function):
        self.function = function

    def __get__(self, made, owner=None):
        return self.function if made is None else partial(self.function, made)


def _add_methods():
    """Give `tensor` what takes a tensor first: the builtins marked so, and the standard functions."""
    for function in vars(core).values():
        if getattr(function, "__triton_method__", False):
            setattr(core.tensor, function.__name__, function)
    names = "argmax argmin atomic_poll cdiv cumprod cumsum flip max min ravel reduce_or sigmoid softmax sort squeeze"
    for name in [*names.split(), "sum", "topk", "unsqueeze", "xor_sum"]:
        setattr(core.tensor, name, _Method(getattr(standard, name)))
    for name in ["add", "and", "floordiv", "lshift", "mod", "mul", "or", "rshift", "sub", "truediv", "xor"]:
        setattr(core.tensor, f"__{name}__", _Method(getattr(operators, f"__{name}__")))
    core.tensor.advance = core.advance  # as the public API has it, whose block pointers are tensors
    for name in ("load", "store", "advance"):
        setattr(core.block_pointer, name, getattr(core, name))


_add_methods()

# What is written in the language, and has its name in `core` as well.
_NAMES = "atomic_poll dot_scaled expect_zero load_tensor_descriptor make_tensor_descriptor map_elementwise"
for _name in [*_NAMES.split(), "store_tensor_descriptor", "tensor_descriptor", "tensor_descriptor_base"]:
    setattr(core, _name, globals()[_name])


def _load(name):
    if name == "libdevice":  # loaded when it is asked for, like tl.extra.libdevice
        return extra.libdevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from .extra import libdevice
else:
    __getattr__ = _load  # a type checker would take every name
