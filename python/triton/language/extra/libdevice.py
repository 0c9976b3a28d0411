"""The functions of libdevice: what the core of the language has no operation for.

Functions that libm has too are calls of the target's library; the others are written in the language, so that they
mean the same on every target. All work element by element; operands are broadcast.
"""

# ruff: noqa: F401
from types import FunctionType as _FunctionType

from .. import math as _math
from .._builtin import is_builtin as _is_builtin
from ..math import abs as fabs
from ..math import div_rn, fma
from ..math import maximum as fmax
from ..math import maximum as max
from ..math import minimum as fmin
from ..math import minimum as min
from ._integers import *  # noqa: F403
from ._libm import *  # noqa: F403
from ._rounded import *  # noqa: F403
from ._rounding import nextafter
from ._special import *  # noqa: F403

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..math import *  # noqa: F403
globals().update({name: value for name, value in vars(_math).items() if hasattr(value, "__triton_function__")})


def _own(name, function):
    """The function as one of this module, where `inspect` and `pickle` look for it: a copy of `tl.math`'s own."""
    if function.__module__ == _math.__name__:
        copy = _FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
        copy.__dict__.update(vars(function))
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__doc__, copy.__annotations__, copy.__qualname__ = function.__doc__, function.__annotations__, name
        function = copy
    function.__module__ = __name__
    return function


def _is_of_kernels(value):
    return _is_builtin(value) or getattr(type(value), "__triton_kind__", None) == "jit"


globals().update({name: _own(name, value) for name, value in globals().items() if _is_of_kernels(value)})
