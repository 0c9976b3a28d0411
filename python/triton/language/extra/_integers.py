"""Integers and bits of libdevice, in the language."""

from ...runtime.jit import jit
from .. import core
from ._libm import popc


@jit
def ffs(x):
    """The place of the lowest one bit, counted from 1; 0 if there is none. An ``int32``."""
    lowest = x & -x
    return core.where(x == 0, 0, popc(lowest - 1) + 1)


@jit
def _swap_bits(x, mask: core.constexpr, distance: core.constexpr):
    """Exchanges the bits in `mask` with those `distance` above."""
    return ((x >> distance) & mask) | ((x & mask) << distance)


@jit
def brev(x):
    """The bits of an integer of 32 or 64 bits in reverse order."""
    if x.dtype.primitive_bitwidth == 64:
        bits = x.to(core.uint64, bitcast=True)
        bits = _swap_bits(bits, 0x5555555555555555, 1)
        bits = _swap_bits(bits, 0x3333333333333333, 2)
        bits = _swap_bits(bits, 0x0F0F0F0F0F0F0F0F, 4)
        bits = _swap_bits(bits, 0x00FF00FF00FF00FF, 8)
        bits = _swap_bits(bits, 0x0000FFFF0000FFFF, 16)
        return ((bits >> 32) | (bits << 32)).to(x.dtype, bitcast=True)
    else:
        bits = x.to(core.uint32, bitcast=True)
        bits = _swap_bits(bits, 0x55555555, 1)
        bits = _swap_bits(bits, 0x33333333, 2)
        bits = _swap_bits(bits, 0x0F0F0F0F, 4)
        bits = _swap_bits(bits, 0x00FF00FF, 8)
        return ((bits >> 16) | (bits << 16)).to(x.dtype, bitcast=True)


@jit
def byte_perm(x, y, s):
    """Four of the eight bytes of `x` (0 to 3) and `y` (4 to 7), picked by the low four hexadecimal digits of `s`."""
    both = x.to(core.uint32).to(core.uint64) | (y.to(core.uint32).to(core.uint64) << 32)
    picks = core.to_tensor(s).to(core.uint64)
    result = both * 0
    for i in core.static_range(4):
        result |= ((both >> (((picks >> (4 * i)) & 7) * 8)) & 0xFF) << (8 * i)
    return result.to(core.uint32).to(x.dtype)


@jit
def mul24(x, y):
    """The product of the low 24 bits of two 32-bit integers, with their sign if the type has one."""
    return ((x << 8) >> 8) * ((y << 8) >> 8)


@jit
def sad(x, y, z):
    """``abs(x - y) + z``, of 32-bit integers."""
    return (core.maximum(x, y) - core.minimum(x, y)) + z


@jit
def hadd(x, y):
    """The average of two 32-bit integers, rounded down, without overflow in between."""
    return ((x.to(core.int64) + y.to(core.int64)) >> 1).to(x.dtype)


@jit
def rhadd(x, y):
    """The average of two 32-bit integers, rounded up, without overflow in between."""
    return ((x.to(core.int64) + y.to(core.int64) + 1) >> 1).to(x.dtype)


# Bits of one type read as another.


@jit
def int_as_float(x):
    """The bits of an ``int32`` as ``float32``."""
    return x.to(core.int32).to(core.float32, bitcast=True)


@jit
def uint_as_float(x):
    """The bits of a ``uint32`` as ``float32``."""
    return x.to(core.uint32).to(core.float32, bitcast=True)


@jit
def float_as_int(x):
    """The bits of a ``float32`` as ``int32``."""
    return x.to(core.float32).to(core.int32, bitcast=True)


@jit
def float_as_uint(x):
    """The bits of a ``float32`` as ``uint32``."""
    return x.to(core.float32).to(core.uint32, bitcast=True)


@jit
def longlong_as_double(x):
    """The bits of an ``int64`` as ``float64``."""
    return x.to(core.int64).to(core.float64, bitcast=True)


@jit
def double_as_longlong(x):
    """The bits of a ``float64`` as ``int64``."""
    return x.to(core.float64).to(core.int64, bitcast=True)


@jit
def hiloint2double(hi, lo):
    """The ``float64`` whose high and low 32 bits are those of `hi` and `lo`."""
    high = hi.to(core.uint32).to(core.uint64) << 32
    return (high | lo.to(core.uint32).to(core.uint64)).to(core.float64, bitcast=True)


@jit
def double2loint(x):
    """The low 32 bits of a ``float64``, as ``int32``."""
    return double_as_longlong(x).to(core.int32)


@jit
def double2hiint(x):
    """The high 32 bits of a ``float64``, as ``int32``."""
    return (double_as_longlong(x) >> 32).to(core.int32)
