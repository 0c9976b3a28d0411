"""Rounded arithmetic and conversions under their names in libdevice; `_rounding` holds what they do."""

from ...runtime.jit import jit
from .. import core
from ._rounding import _add, _div, _fma, _from_integer, _mul, _narrowed, _sqrt, _to_integer


@jit
def add_rn(x, y):
    """``x + y``, rounded to the nearest."""
    return _add(x, y, "rn")


@jit
def add_rz(x, y):
    """``x + y``, rounded toward zero."""
    return _add(x, y, "rz")


@jit
def add_rd(x, y):
    """``x + y``, rounded down."""
    return _add(x, y, "rd")


@jit
def add_ru(x, y):
    """``x + y``, rounded up."""
    return _add(x, y, "ru")


@jit
def sub_rn(x, y):
    """``x - y``, rounded to the nearest."""
    return _add(x, -y, "rn")


@jit
def sub_rz(x, y):
    """``x - y``, rounded toward zero."""
    return _add(x, -y, "rz")


@jit
def sub_rd(x, y):
    """``x - y``, rounded down."""
    return _add(x, -y, "rd")


@jit
def sub_ru(x, y):
    """``x - y``, rounded up."""
    return _add(x, -y, "ru")


@jit
def mul_rn(x, y):
    """``x * y``, rounded to the nearest."""
    return _mul(x, y, "rn")


@jit
def mul_rz(x, y):
    """``x * y``, rounded toward zero."""
    return _mul(x, y, "rz")


@jit
def mul_rd(x, y):
    """``x * y``, rounded down."""
    return _mul(x, y, "rd")


@jit
def mul_ru(x, y):
    """``x * y``, rounded up."""
    return _mul(x, y, "ru")


@jit
def div_rz(x, y):
    """``x / y``, rounded toward zero."""
    return _div(x, y, "rz")


@jit
def div_rd(x, y):
    """``x / y``, rounded down."""
    return _div(x, y, "rd")


@jit
def div_ru(x, y):
    """``x / y``, rounded up."""
    return _div(x, y, "ru")


@jit
def rcp_rn(x):
    """``1 / x``, rounded to the nearest."""
    return _div(core.full((), 1, x.dtype), x, "rn")


@jit
def rcp_rz(x):
    """``1 / x``, rounded toward zero."""
    return _div(core.full((), 1, x.dtype), x, "rz")


@jit
def rcp_rd(x):
    """``1 / x``, rounded down."""
    return _div(core.full((), 1, x.dtype), x, "rd")


@jit
def rcp_ru(x):
    """``1 / x``, rounded up."""
    return _div(core.full((), 1, x.dtype), x, "ru")


@jit
def sqrt_rz(x):
    """Square root, rounded toward zero."""
    return _sqrt(x, "rz")


@jit
def sqrt_rd(x):
    """Square root, rounded down."""
    return _sqrt(x, "rd")


@jit
def sqrt_ru(x):
    """Square root, rounded up."""
    return _sqrt(x, "ru")


@jit
def fma_rn(x, y, z):
    """``x * y + z``, rounded once, to the nearest."""
    return _fma(x, y, z, "rn")


@jit
def fma_rz(x, y, z):
    """``x * y + z``, rounded once, toward zero."""
    return _fma(x, y, z, "rz")


@jit
def fma_rd(x, y, z):
    """``x * y + z``, rounded once, down."""
    return _fma(x, y, z, "rd")


@jit
def fma_ru(x, y, z):
    """``x * y + z``, rounded once, up."""
    return _fma(x, y, z, "ru")


@jit
def double2float_rn(x):
    """``float64`` to ``float32``, rounded to the nearest."""
    return _narrowed(x, "rn")


@jit
def double2float_rz(x):
    """``float64`` to ``float32``, rounded toward zero."""
    return _narrowed(x, "rz")


@jit
def double2float_rd(x):
    """``float64`` to ``float32``, rounded down."""
    return _narrowed(x, "rd")


@jit
def double2float_ru(x):
    """``float64`` to ``float32``, rounded up."""
    return _narrowed(x, "ru")


@jit
def float2int_rn(x):
    """``float32`` to ``int32``, rounded to the nearest."""
    return _to_integer(x, core.int32, "rn")


@jit
def float2int_rz(x):
    """``float32`` to ``int32``, rounded toward zero."""
    return _to_integer(x, core.int32, "rz")


@jit
def float2int_rd(x):
    """``float32`` to ``int32``, rounded down."""
    return _to_integer(x, core.int32, "rd")


@jit
def float2int_ru(x):
    """``float32`` to ``int32``, rounded up."""
    return _to_integer(x, core.int32, "ru")


@jit
def float2uint_rn(x):
    """``float32`` to ``uint32``, rounded to the nearest."""
    return _to_integer(x, core.uint32, "rn")


@jit
def float2uint_rz(x):
    """``float32`` to ``uint32``, rounded toward zero."""
    return _to_integer(x, core.uint32, "rz")


@jit
def float2uint_rd(x):
    """``float32`` to ``uint32``, rounded down."""
    return _to_integer(x, core.uint32, "rd")


@jit
def float2uint_ru(x):
    """``float32`` to ``uint32``, rounded up."""
    return _to_integer(x, core.uint32, "ru")


@jit
def float2ll_rn(x):
    """``float32`` to ``int64``, rounded to the nearest."""
    return _to_integer(x, core.int64, "rn")


@jit
def float2ll_rz(x):
    """``float32`` to ``int64``, rounded toward zero."""
    return _to_integer(x, core.int64, "rz")


@jit
def float2ll_rd(x):
    """``float32`` to ``int64``, rounded down."""
    return _to_integer(x, core.int64, "rd")


@jit
def float2ll_ru(x):
    """``float32`` to ``int64``, rounded up."""
    return _to_integer(x, core.int64, "ru")


@jit
def float2ull_rn(x):
    """``float32`` to ``uint64``, rounded to the nearest."""
    return _to_integer(x, core.uint64, "rn")


@jit
def float2ull_rz(x):
    """``float32`` to ``uint64``, rounded toward zero."""
    return _to_integer(x, core.uint64, "rz")


@jit
def float2ull_rd(x):
    """``float32`` to ``uint64``, rounded down."""
    return _to_integer(x, core.uint64, "rd")


@jit
def float2ull_ru(x):
    """``float32`` to ``uint64``, rounded up."""
    return _to_integer(x, core.uint64, "ru")


@jit
def double2int_rn(x):
    """``float64`` to ``int32``, rounded to the nearest."""
    return _to_integer(x, core.int32, "rn")


@jit
def double2int_rz(x):
    """``float64`` to ``int32``, rounded toward zero."""
    return _to_integer(x, core.int32, "rz")


@jit
def double2int_rd(x):
    """``float64`` to ``int32``, rounded down."""
    return _to_integer(x, core.int32, "rd")


@jit
def double2int_ru(x):
    """``float64`` to ``int32``, rounded up."""
    return _to_integer(x, core.int32, "ru")


@jit
def double2uint_rn(x):
    """``float64`` to ``uint32``, rounded to the nearest."""
    return _to_integer(x, core.uint32, "rn")


@jit
def double2uint_rz(x):
    """``float64`` to ``uint32``, rounded toward zero."""
    return _to_integer(x, core.uint32, "rz")


@jit
def double2uint_rd(x):
    """``float64`` to ``uint32``, rounded down."""
    return _to_integer(x, core.uint32, "rd")


@jit
def double2uint_ru(x):
    """``float64`` to ``uint32``, rounded up."""
    return _to_integer(x, core.uint32, "ru")


@jit
def double2ll_rn(x):
    """``float64`` to ``int64``, rounded to the nearest."""
    return _to_integer(x, core.int64, "rn")


@jit
def double2ll_rz(x):
    """``float64`` to ``int64``, rounded toward zero."""
    return _to_integer(x, core.int64, "rz")


@jit
def double2ll_rd(x):
    """``float64`` to ``int64``, rounded down."""
    return _to_integer(x, core.int64, "rd")


@jit
def double2ll_ru(x):
    """``float64`` to ``int64``, rounded up."""
    return _to_integer(x, core.int64, "ru")


@jit
def double2ull_rn(x):
    """``float64`` to ``uint64``, rounded to the nearest."""
    return _to_integer(x, core.uint64, "rn")


@jit
def double2ull_rz(x):
    """``float64`` to ``uint64``, rounded toward zero."""
    return _to_integer(x, core.uint64, "rz")


@jit
def double2ull_rd(x):
    """``float64`` to ``uint64``, rounded down."""
    return _to_integer(x, core.uint64, "rd")


@jit
def double2ull_ru(x):
    """``float64`` to ``uint64``, rounded up."""
    return _to_integer(x, core.uint64, "ru")


@jit
def int2float_rn(x):
    """``int32`` to ``float32``, rounded to the nearest."""
    return _from_integer(x, core.float32, "rn")


@jit
def int2float_rz(x):
    """``int32`` to ``float32``, rounded toward zero."""
    return _from_integer(x, core.float32, "rz")


@jit
def int2float_rd(x):
    """``int32`` to ``float32``, rounded down."""
    return _from_integer(x, core.float32, "rd")


@jit
def int2float_ru(x):
    """``int32`` to ``float32``, rounded up."""
    return _from_integer(x, core.float32, "ru")


@jit
def int2double_rn(x):
    """``int32`` to ``float64``, exactly."""
    return _from_integer(x, core.float64, "rn")


@jit
def uint2float_rn(x):
    """``uint32`` to ``float32``, rounded to the nearest."""
    return _from_integer(x, core.float32, "rn")


@jit
def uint2float_rz(x):
    """``uint32`` to ``float32``, rounded toward zero."""
    return _from_integer(x, core.float32, "rz")


@jit
def uint2float_rd(x):
    """``uint32`` to ``float32``, rounded down."""
    return _from_integer(x, core.float32, "rd")


@jit
def uint2float_ru(x):
    """``uint32`` to ``float32``, rounded up."""
    return _from_integer(x, core.float32, "ru")


@jit
def uint2double_rn(x):
    """``uint32`` to ``float64``, exactly."""
    return _from_integer(x, core.float64, "rn")


@jit
def ll2float_rn(x):
    """``int64`` to ``float32``, rounded to the nearest."""
    return _from_integer(x, core.float32, "rn")


@jit
def ll2float_rz(x):
    """``int64`` to ``float32``, rounded toward zero."""
    return _from_integer(x, core.float32, "rz")


@jit
def ll2float_rd(x):
    """``int64`` to ``float32``, rounded down."""
    return _from_integer(x, core.float32, "rd")


@jit
def ll2float_ru(x):
    """``int64`` to ``float32``, rounded up."""
    return _from_integer(x, core.float32, "ru")


@jit
def ll2double_rn(x):
    """``int64`` to ``float64``, rounded to the nearest."""
    return _from_integer(x, core.float64, "rn")


@jit
def ll2double_rz(x):
    """``int64`` to ``float64``, rounded toward zero."""
    return _from_integer(x, core.float64, "rz")


@jit
def ll2double_rd(x):
    """``int64`` to ``float64``, rounded down."""
    return _from_integer(x, core.float64, "rd")


@jit
def ll2double_ru(x):
    """``int64`` to ``float64``, rounded up."""
    return _from_integer(x, core.float64, "ru")


@jit
def ull2float_rn(x):
    """``uint64`` to ``float32``, rounded to the nearest."""
    return _from_integer(x, core.float32, "rn")


@jit
def ull2float_rz(x):
    """``uint64`` to ``float32``, rounded toward zero."""
    return _from_integer(x, core.float32, "rz")


@jit
def ull2float_rd(x):
    """``uint64`` to ``float32``, rounded down."""
    return _from_integer(x, core.float32, "rd")


@jit
def ull2float_ru(x):
    """``uint64`` to ``float32``, rounded up."""
    return _from_integer(x, core.float32, "ru")


@jit
def ull2double_rn(x):
    """``uint64`` to ``float64``, rounded to the nearest."""
    return _from_integer(x, core.float64, "rn")


@jit
def ull2double_rz(x):
    """``uint64`` to ``float64``, rounded toward zero."""
    return _from_integer(x, core.float64, "rz")


@jit
def ull2double_rd(x):
    """``uint64`` to ``float64``, rounded down."""
    return _from_integer(x, core.float64, "rd")


@jit
def ull2double_ru(x):
    """``uint64`` to ``float64``, rounded up."""
    return _from_integer(x, core.float64, "ru")
