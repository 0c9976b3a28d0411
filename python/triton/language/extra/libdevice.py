"""The functions of libdevice: what the core of the language has no operation for.

Functions that libm has too are calls of the target's library; the others are written in the language, so that they
mean the same on every target. All work element by element; operands are broadcast.
"""

# ruff: noqa: F401
from .. import math as _math
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
