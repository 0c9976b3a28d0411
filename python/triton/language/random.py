"""Random numbers that depend on a seed and a counter only: Philox-4x32-10.

Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC'11. A counter of 128 bits is
mixed with a key of 64 bits in ten rounds; every counter gives four words of 32 bits. Programs that use
different offsets draw independent numbers, in any order and on any target the same.
"""

from ..runtime.jit import jit
from . import core
from .compile_time import constexpr_function
from .core import constexpr

__all__ = [
    "pair_uniform_to_normal",
    "philox",
    "philox_impl",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "uint32_to_uniform_float",
    "uint_to_uniform_float",
]

N_ROUNDS_DEFAULT: constexpr = constexpr(10)

# Multipliers of the two halves, and the Weyl sequences that step the key (the golden ratio and sqrt(3) - 1).
_MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
_KEY_STEPS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}


@constexpr_function
def _multipliers(element):
    return _MULTIPLIERS[element.primitive_bitwidth]


@constexpr_function
def _key_steps(element):
    return _KEY_STEPS[element.primitive_bitwidth]


@constexpr_function
def _unsigned(element):
    """The unsigned integer type as wide as `element`, 32 bits at least."""
    return core.uint64 if element.primitive_bitwidth == 64 else core.uint32


@jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """`n_rounds` rounds of Philox on the counter ``(c0, c1, c2, c3)`` with the key ``(k0, k1)``.

    All are unsigned, of 32 bits (Philox-4x32) or 64 bits (Philox-4x64).
    """
    first: constexpr = _multipliers(c0.dtype)[0]
    second: constexpr = _multipliers(c0.dtype)[1]
    step0: constexpr = _key_steps(c0.dtype)[0]
    step1: constexpr = _key_steps(c0.dtype)[1]
    a = core.full((), first, c0.dtype)
    b = core.full((), second, c0.dtype)
    for _ in core.static_range(n_rounds):
        high0 = core.umulhi(a, c0)
        high1 = core.umulhi(b, c2)
        c1, c3, c0, c2 = b * c2, a * c0, high1 ^ c1 ^ k0, high0 ^ c3 ^ k1
        k0 = k0 + core.full((), step0, c0.dtype)
        k1 = k1 + core.full((), step1, c0.dtype)
    return c0, c1, c2, c3


@jit
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four random words for the counter ``(c0, c1, c2, c3)``, keyed by the 64 bits of `seed`.

    Counters of 64 bits give words of 64 bits.
    """
    word: constexpr = _unsigned(core.to_tensor(c0).dtype)
    key = core.to_tensor(seed)
    core.static_assert(key.dtype.is_int(), f"the seed must be an integer, not {key.dtype}")
    key = key.to(core.uint64)
    c0 = core.to_tensor(c0).to(word)
    c1 = core.to_tensor(c1).to(word)
    c2 = core.to_tensor(c2).to(word)
    c3 = core.to_tensor(c3).to(word)
    if word.primitive_bitwidth == 32:
        return philox_impl(c0, c1, c2, c3, key.to(core.uint32), (key >> 32).to(core.uint32), n_rounds)
    else:
        return philox_impl(c0, c1, c2, c3, key, key * 0, n_rounds)


@jit
def randint4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four tiles of random ``uint32``, of the shape of `offset`.

    :param seed: an integer; its 64 bits are the key.
    :param offset: an integer or a tile of them, the counter: up to 64 bits. One `randint4x` costs as much as
        one `randint`, so use all four where you can.
    """
    counter = core.to_tensor(offset)
    zero = (counter * 0).to(core.uint32)
    if counter.dtype.primitive_bitwidth > 32:
        wide = counter.to(core.uint64)
        return philox(seed, wide.to(core.uint32), (wide >> 32).to(core.uint32), zero, zero, n_rounds)
    else:
        return philox(seed, counter.to(core.uint32), zero, zero, zero, n_rounds)


@jit
def randint(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Random ``uint32`` of the shape of `offset`; parameters as for `randint4x`."""
    first, second, third, fourth = randint4x(seed, offset, n_rounds)
    return first


@jit
def uint_to_uniform_float(x):
    """Random integers of 32 or 64 bits as ``float32``, uniform in [0, 1)."""
    # The sign folds onto the magnitude (~bits is -bits - 1), and the scale is the largest with (2^31 - 1) * scale < 1.
    if x.dtype.primitive_bitwidth == 32:
        bits = x.to(core.int32, bitcast=True)
        scale: constexpr = 4.6566127342e-10
    else:
        bits = x.to(core.int64, bitcast=True)
        scale: constexpr = 1.0842020432385337e-19
    magnitude = core.where(bits < 0, ~bits, bits)
    return magnitude.to(core.float32) * scale


@jit
def uint32_to_uniform_float(x):
    """The older name of `uint_to_uniform_float`."""
    return uint_to_uniform_float(x)


@jit
def rand(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Random ``float32`` of the shape of `offset`, uniform in [0, 1); parameters as for `randint4x`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@jit
def rand4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four tiles of random ``float32``, uniform in [0, 1); parameters as for `randint4x`."""
    a, b, c, d = randint4x(seed, offset, n_rounds)
    return (
        uint_to_uniform_float(a),
        uint_to_uniform_float(b),
        uint_to_uniform_float(c),
        uint_to_uniform_float(d),
    )


@jit
def pair_uniform_to_normal(u1, u2):
    """Two independent numbers, uniform in [0, 1), as two standard normal ones (Box and Muller, 1958)."""
    radius = core.sqrt(-2.0 * core.log(core.maximum(u1, 1.0e-7)))
    angle = 6.283185307179586 * u2
    return radius * core.cos(angle), radius * core.sin(angle)


@jit
def randn(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Random standard normal ``float32`` of the shape of `offset`; parameters as for `randint4x`."""
    a, b, c, d = randint4x(seed, offset, n_rounds)
    first, second = pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))
    return first


@jit
def randn4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four tiles of random standard normal ``float32``; parameters as for `randint4x`."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    first, second = pair_uniform_to_normal(a, b)
    third, fourth = pair_uniform_to_normal(c, d)
    return first, second, third, fourth
