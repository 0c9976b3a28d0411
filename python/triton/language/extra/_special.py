"""Functions of libdevice that libm lacks, in the language.

What is hard to keep accurate is computed in ``float64`` and rounded to the type of the argument.
"""

from ...runtime.jit import jit
from .. import core
from ..core import constexpr
from ._libm import cbrt, copysign, erfc, exp10, hypot, ldexp, log1p, log10, logb, pow, rint, round, tan, tanh

HALF_ROOT_PI = constexpr(0.8862269254527580)  # sqrt(pi) / 2
ROOT_PI = constexpr(1.7724538509055160)
ROOT_TWO = constexpr(1.4142135623730951)
PI = constexpr(3.141592653589793)

# ---- classes of floats


@jit
def isnan(x):
    """Whether `x` is a NaN, as ``int1``."""
    return x != x


@jit
def isinf(x):
    """Whether `x` is an infinity, as ``int1``."""
    return core.abs(x) == float("inf")


@jit
def isfinited(x):
    """Whether `x` is neither an infinity nor a NaN, as ``int1``."""
    return core.abs(x) < float("inf")


@jit
def finitef(x):
    """Whether `x` is neither an infinity nor a NaN, as ``int1``."""
    return core.abs(x) < float("inf")


@jit
def signbit(x):
    """Whether the sign of `x` is minus, that of zeros and NaNs included, as ``int1``."""
    if x.dtype.primitive_bitwidth == 64:
        return x.to(core.int64, bitcast=True) < 0
    else:
        return x.to(core.float32).to(core.int32, bitcast=True) < 0


@jit
def saturatef(x):
    """`x` clamped to 0 and 1; NaN gives 0."""
    return core.minimum(core.maximum(x, 0.0), 1.0)


@jit
def ilogb(x):
    """The exponent of `x` to base 2 as ``int32``: the smallest one for 0 and NaN, the largest for infinities."""
    usual = (x != 0) & isfinited(x)
    exponent = core.where(usual, logb(core.where(usual, x, 1.0)), 0.0).to(core.int32)
    return core.where(usual, exponent, core.where(isinf(x), 2147483647, -2147483648))


# ---- rounding


@jit
def nearbyint(x):
    """The nearest integral value, the even one of two."""
    return rint(x)


@jit
def llrint(x):
    """The nearest integer, the even one of two, as ``int64``."""
    return rint(x).to(core.int64)


@jit
def llround(x):
    """The nearest integer, of two the one farther from 0, as ``int64``."""
    return round(x).to(core.int64)


@jit
def fmod(x, y):
    """The remainder of ``x / y`` with the sign of `x`."""
    return x % y


@jit
def scalbn(x, n):
    """`x` times 2 to the power of the integer `n`."""
    return ldexp(x, n)


# ---- the fast versions, which here are the ordinary ones


@jit
def fast_sinf(x):
    """Sine of `x` radians."""
    return core.sin(x)


@jit
def fast_cosf(x):
    """Cosine of `x` radians."""
    return core.cos(x)


@jit
def fast_tanf(x):
    """Tangent of `x` radians."""
    return tan(x)


@jit
def fast_tanhf(x):
    """Hyperbolic tangent."""
    return tanh(x)


@jit
def fast_expf(x):
    """e to the power of `x`."""
    return core.exp(x)


@jit
def fast_exp10f(x):
    """10 to the power of `x`."""
    return exp10(x)


@jit
def fast_logf(x):
    """Natural logarithm."""
    return core.log(x)


@jit
def fast_log2f(x):
    """Logarithm to base 2."""
    return core.log2(x)


@jit
def fast_log10f(x):
    """Logarithm to base 10."""
    return log10(x)


@jit
def fast_powf(x, y):
    """`x` to the power of `y`."""
    return pow(x, y)


@jit
def fast_dividef(x, y):
    """``x / y``."""
    return core.fdiv(x, y)


# ---- roots and norms


@jit
def rsqrt_rn(x):
    """One divided by the square root, rounded to the nearest."""
    if x.dtype.primitive_bitwidth == 64:
        return core.div_rn(1.0, core.sqrt_rn(x))
    else:
        return core.div_rn(1.0, core.sqrt_rn(x.to(core.float64))).to(x.dtype)


@jit
def rcbrt(x):
    """One divided by the cube root."""
    return 1 / cbrt(x)


@jit
def rhypot(x, y):
    """``1 / sqrt(x * x + y * y)``."""
    return 1 / hypot(x, y)


@jit
def norm3d(x, y, z):
    """``sqrt(x * x + y * y + z * z)``, without overflow in between."""
    return hypot(hypot(x, y), z)


@jit
def rnorm3d(x, y, z):
    """``1 / sqrt(x * x + y * y + z * z)``."""
    return 1 / norm3d(x, y, z)


@jit
def norm4d(x, y, z, w):
    """``sqrt(x * x + y * y + z * z + w * w)``, without overflow in between."""
    return hypot(hypot(x, y), hypot(z, w))


@jit
def rnorm4d(x, y, z, w):
    """``1 / sqrt(x * x + y * y + z * z + w * w)``."""
    return 1 / norm4d(x, y, z, w)


@jit
def rcp64h(x):
    """A coarse ``1 / x`` of ``float64``: the low 32 bits of the result are zero."""
    bits = (1.0 / x).to(core.int64, bitcast=True)
    return ((bits >> 32) << 32).to(core.float64, bitcast=True)


# ---- trigonometry of multiples of pi


@jit
def _turn(x):
    """The nearest quarter turn to ``pi * x``, numbered from 0 to 3, and the angle from there, in radians."""
    x -= 2 * rint(0.5 * x)  # exactly: whole turns, of which a large number is nothing else
    quarters = rint(2 * x)
    return core.where(quarters < 0, quarters + 4, quarters), (x - quarters * 0.5) * PI


@jit
def sinpi(x):
    """Sine of ``pi * x``, exact at integers and halves: at an integer, zero with the sign of `x`."""
    number, angle = _turn(x)
    is_odd = (number == 1) | (number == 3)
    size = core.where(is_odd, core.cos(angle), core.sin(angle))
    signed = core.where(number >= 2, -size, size)
    return core.where((angle == 0) & ~is_odd, copysign(angle, x), signed)


@jit
def cospi(x):
    """Cosine of ``pi * x``, exact at integers and halves: half-way between two integers, positive zero."""
    number, angle = _turn(x)
    is_odd = (number == 1) | (number == 3)
    size = core.where(is_odd, core.sin(angle), core.cos(angle))
    signed = core.where((number == 1) | (number == 2), -size, size)
    return core.where((angle == 0) & is_odd, core.abs(angle), signed)


# ---- the error function and its relatives


@jit
def _erfcx(x):
    """`erfcx` of ``float64``."""
    # Up to 2: exp(x^2) * erfc(x), with the rounding error of x^2 made good.
    near = core.minimum(x, 2.0)
    square = near * near
    square_error = core.fma(near, near, -square)
    small = core.exp(square) * (1 + square_error) * erfc(near)
    # Beyond: the continued fraction of Laplace, from the inside out; 60 levels are enough from 2 on.
    far = core.maximum(x, 2.0)
    tail = far
    for level in range(60, 0, -1):
        tail = far + (0.5 * level) / tail
    return core.where(x < 2.0, small, core.where(x != x, x, 1 / (tail * ROOT_PI)))


@jit
def erfcx(x):
    """The scaled complementary error function, ``exp(x * x) * erfc(x)``."""
    return _erfcx(x.to(core.float64)).to(x.dtype)


@jit
def normcdf(x):
    """The distribution function of the standard normal distribution."""
    wide = x.to(core.float64)
    # The argument of erfc with its rounding error, which matters far out.
    argument = wide * -0.7071067811865476
    error = core.fma(wide, -0.7071067811865476, -argument) + wide * 4.833646656726457e-17
    slope = core.exp(-argument * argument) / HALF_ROOT_PI
    corrected = 0.5 * (erfc(argument) - core.where(core.abs(argument) < 27.0, slope * error, 0.0))
    return corrected.to(x.dtype)


@jit
def _erfinv_near(x):
    """`erfinv` of ``float64`` up to one half: three terms of the series, then Newton's method."""
    z = HALF_ROOT_PI * x
    y = z * (1 + z * z * (1 / 3 + z * z * (7 / 30)))
    for _ in range(4):
        y -= (core.erf(y) - x) * HALF_ROOT_PI * core.exp(y * y)
    return y


@jit
def _erfcinv_far(tail):
    """The `y` with ``erfc(y) == tail``, for a ``float64`` `tail` up to one half: Newton's method on the logarithm."""
    # Winitzki's approximation, good to two parts in a thousand.
    log_tail = core.log(tail)
    curve = log_tail + log1p(1 - tail)
    middle = 4.330746750799873 + 0.5 * curve
    y = core.sqrt(core.sqrt(middle * middle - curve / 0.147) - middle)
    for _ in range(5):
        scaled = _erfcx(y)
        y += (core.log(scaled) - y * y - log_tail) * HALF_ROOT_PI * scaled
    return core.where(tail == 0, float("inf"), y)


@jit
def erfinv(x):
    """The inverse of `erf`: NaN outside of -1 to 1."""
    wide = x.to(core.float64)
    size = core.abs(wide)
    far = _erfcinv_far(core.minimum(core.maximum(1 - size, 0.0), 0.5))
    far = core.where(wide < 0, -far, far)
    result = core.where(size <= 0.5, _erfinv_near(core.minimum(core.maximum(wide, -0.5), 0.5)), far)
    return core.where(size <= 1, result, float("nan")).to(x.dtype)


@jit
def _erfcinv(y):
    """`erfcinv` of ``float64``."""
    far = _erfcinv_far(core.minimum(core.maximum(core.minimum(y, 2 - y), 0.0), 0.5))
    far = core.where(y > 1, -far, far)
    near = _erfinv_near(core.minimum(core.maximum(1 - y, -0.5), 0.5))
    result = core.where(core.abs(1 - y) <= 0.5, near, far)
    return core.where((y >= 0) & (y <= 2), result, float("nan"))


@jit
def erfcinv(x):
    """The inverse of `erfc`: NaN outside of 0 to 2."""
    return _erfcinv(x.to(core.float64)).to(x.dtype)


@jit
def normcdfinv(x):
    """The inverse of `normcdf`: NaN outside of 0 to 1."""
    return (-ROOT_TWO * _erfcinv(2 * x.to(core.float64))).to(x.dtype)


# ---- modified Bessel functions


@jit
def _bessel_i(x, order: constexpr):
    """The modified Bessel function of the first kind of a ``float64`` that is not negative, for order 0 or 1."""
    # Up to 30 the power series, whose terms are all positive.
    near = core.minimum(x, 30.0)
    quarter = near * near * 0.25
    term = near * 0 + 1
    series = term
    for k in range(1, 90):
        term = term * quarter / (k * (k + order)).to(core.float64)
        series += term
    if order == 1:
        series = series * near * 0.5
    # Beyond, Hankel's asymptotic series, which is long enough there.
    far = core.maximum(x, 30.0)
    term = far * 0 + 1
    asymptotic = term
    for k in range(1, 30):
        odd = (2 * k - 1).to(core.float64)
        term = term * (odd * odd - 4 * order * order) / (8 * far * k)
        asymptotic += term
    root = core.exp(0.5 * far)
    large = asymptotic * root / core.sqrt(2 * PI * far) * root
    return core.where(x <= 30.0, series, core.where(x == float("inf"), x, core.where(x != x, x, large)))


@jit
def cyl_bessel_i0(x):
    """The modified Bessel function of the first kind, order 0."""
    return _bessel_i(core.abs(x.to(core.float64)), 0).to(x.dtype)


@jit
def cyl_bessel_i1(x):
    """The modified Bessel function of the first kind, order 1."""
    wide = x.to(core.float64)
    size = _bessel_i(core.abs(wide), 1)
    return core.where(wide < 0, -size, size).to(x.dtype)
