"""Arithmetic and conversions of libdevice with a direction of rounding, in the language.

The suffixes: ``_rn`` to the nearest, ties to the even one; ``_rz`` toward zero; ``_rd`` down; ``_ru`` up.

Operations in the language round to the nearest. The error of a sum, a product, a quotient or a root can be computed
exactly (Boldo and Muller, *Exact and approximated error of the FMA*, 2011, and the literature there); its sign says
whether the result must move to its neighbour. ``float32`` takes the detour over ``float64``, where products are exact
and nothing underflows. Errors of ``float64`` below the smallest number are taken for zero.
"""

from ...runtime.jit import jit
from .. import core
from ..compile_time import constexpr_function
from ..core import constexpr
from ._libm import clz, rint, trunc

# ---- neighbours


@constexpr_function
def _bits_dtype(element):
    return core.get_int_dtype(element.primitive_bitwidth, True)


@jit
def _away_from_zero(x):
    """The neighbour of `x` that is farther from zero; infinities and NaNs stay."""
    bits = x.to(_bits_dtype(x.dtype), bitcast=True)
    return core.where(core.abs(x) < float("inf"), (bits + 1).to(x.dtype, bitcast=True), x)


@jit
def _toward_zero(x):
    """The neighbour of `x` that is nearer to zero, for an `x` that is neither zero nor NaN."""
    bits = x.to(_bits_dtype(x.dtype), bitcast=True)
    return (bits - 1).to(x.dtype, bitcast=True)


@jit
def _smallest(x):
    """The smallest positive number of the type of `x`."""
    one = core.full(x.shape, 1, _bits_dtype(x.dtype))
    return one.to(x.dtype, bitcast=True)


@jit
def _next_up(x):
    """The smallest number above `x`; infinity and NaN stay."""
    moved = core.where(x > 0, _away_from_zero(x), _toward_zero(x))
    moved = core.where(x == 0, _smallest(x), moved)
    return core.where((x != x) | (x == float("inf")), x, moved)


@jit
def _next_down(x):
    """The largest number below `x`; minus infinity and NaN stay."""
    return -_next_up(-x)


@jit
def nextafter(x, y):
    """The neighbour of `x` in the direction of `y`, in the type of `x`."""
    y = core.to_tensor(y).to(x.dtype)
    moved = core.where(x < y, _next_up(x), _next_down(x))
    return core.where(x == y, y, core.where((x != x) | (y != y), x + y, moved))


@jit
def _directed(nearest, is_above, is_below, mode: constexpr):
    """`nearest`, or its neighbour; `is_above` says where the exact value is above it, `is_below` where below."""
    if mode == "rd":
        return core.where(is_below, _next_down(nearest), nearest)
    elif mode == "ru":
        return core.where(is_above, _next_up(nearest), nearest)
    elif mode == "rz":
        too_far = ((nearest > 0) & is_below) | ((nearest < 0) & is_above)
        return core.where(too_far, _toward_zero(nearest), nearest)
    else:
        return nearest


# ---- arithmetic


@jit
def _sum_error(a, b, total):
    """``a + b - total`` for the rounded `total`, exactly (Knuth's two-sum)."""
    from_b = total - a
    error = (a - (total - from_b)) + (b - from_b)
    # A finite sum that overflowed is nearer to zero than the infinity it was rounded to.
    overflowed = (core.abs(total) == float("inf")) & (core.abs(a) < float("inf")) & (core.abs(b) < float("inf"))
    return core.where(overflowed, -total, error)


@jit
def _add(x, y, mode: constexpr):
    total = x + y
    error = _sum_error(x, y, total)
    return _directed(total, error > 0, error < 0, mode)


@jit
def _mul(x, y, mode: constexpr):
    product = x * y
    if product.dtype == core.float32:
        exact = x.to(core.float64) * y.to(core.float64)
        return _directed(product, exact > product, exact < product, mode)
    else:
        error = core.fma(x, y, -product)
        return _directed(product, error > 0, error < 0, mode)


@jit
def _div(x, y, mode: constexpr):
    quotient = core.div_rn(x, y)
    if quotient.dtype == core.float32:
        rest = x.to(core.float64) - quotient.to(core.float64) * y.to(core.float64)
    else:
        rest = core.fma(-quotient, y, x)
    return _directed(
        quotient, ((rest > 0) & (y > 0)) | ((rest < 0) & (y < 0)), ((rest < 0) & (y > 0)) | ((rest > 0) & (y < 0)), mode
    )


@jit
def _sqrt(x, mode: constexpr):
    root = core.sqrt_rn(x)
    if root.dtype == core.float32:
        rest = x.to(core.float64) - root.to(core.float64) * root.to(core.float64)
    else:
        rest = core.fma(-root, root, x)
    return _directed(root, rest > 0, rest < 0, mode)


@jit
def _fma(x, y, z, mode: constexpr):
    nearest = core.fma(x, y, z)
    if nearest.dtype == core.float32:
        product = x.to(core.float64) * y.to(core.float64)
        addend = z.to(core.float64)
        total = product + addend
        rest = _sum_error(product, addend, total)
        is_above = (total > nearest) | ((total == nearest) & (rest > 0))
        is_below = (total < nearest) | ((total == nearest) & (rest < 0))
        return _directed(nearest, is_above, is_below, mode)
    else:
        product = x * y
        product_error = core.fma(x, y, -product)
        low = z + product_error
        low_error = _sum_error(z, product_error, low)
        high = product + low
        rest = ((high - nearest) + _sum_error(product, low, high)) + low_error
        return _directed(nearest, rest > 0, rest < 0, mode)


# ---- conversions


@jit
def _narrowed(x, mode: constexpr):
    """``float64`` to ``float32``."""
    nearest = x.to(core.float32)
    return _directed(nearest, x > nearest, x < nearest, mode)


@jit
def _integral(x, mode: constexpr):
    if mode == "rn":
        return rint(x)
    elif mode == "rz":
        return trunc(x)
    elif mode == "rd":
        return core.floor(x)
    else:
        return core.ceil(x)


@jit
def _to_integer(x, dtype: constexpr, mode: constexpr):
    """A float as an integer; out of range the nearest there is, and 0 for NaN."""
    whole = _integral(x, mode)
    smallest: constexpr = dtype.get_int_min_value()
    largest: constexpr = dtype.get_int_max_value()
    inside = (whole >= float(smallest)) & (whole < float(largest + 1))
    result = core.where(inside, whole, 0.0).to(dtype)
    result = core.where(whole >= float(largest + 1), core.full((), largest, dtype), result)
    return core.where(whole < float(smallest), core.full((), smallest, dtype), result)


@jit
def _from_integer(x, dtype: constexpr, mode: constexpr):
    """An integer as a float: the leading bits exactly, moved away from zero if bits were lost and the mode says so."""
    if mode == "rn":
        return x.to(dtype)
    else:
        if x.dtype.is_int_signed():
            negative = x < 0
            magnitude = core.where(negative, -x.to(core.int64), x.to(core.int64)).to(core.uint64)
        else:
            negative = x != x
            magnitude = x.to(core.uint64)
        digits: constexpr = dtype.fp_mantissa_width + 1
        lost_bits = core.maximum(64 - digits - clz(magnitude), 0).to(core.uint64)
        leading = (magnitude >> lost_bits) << lost_bits
        size = leading.to(dtype)
        if mode == "rd":
            away = negative & (leading != magnitude)
        elif mode == "ru":
            away = (negative == 0) & (leading != magnitude)
        else:
            away = negative & (negative == 0)
        size = core.where(away, _away_from_zero(size), size)
        return core.where(negative, -size, size)
