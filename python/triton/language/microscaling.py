"""Products of matrices in microscaling formats (OCP Microscaling Formats 1.0), written in the language.

Narrow elements share a scale in groups along K: 32 elements a power of two (e8m0), or 16 an fp8e4nv number.
"""

from ..runtime.jit import jit
from . import core
from .compile_time import constexpr_function
from .core import constexpr
from .standard import interleave
from .target_info import cuda_capability_geq

__all__ = [
    "dot_scaled",
]

# What operands of each format are multiplied as, and the types that they may come in.
_WIDE = {"e2m1": "bf16", "e4m3": "bf16", "e5m2": "bf16", "bf16": "bf16", "fp16": "fp16"}
_TYPES = {
    "e2m1": ("uint8", "int8"),
    "e4m3": ("fp8e4nv", "uint8", "int8"),
    "e5m2": ("fp8e5", "uint8", "int8"),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
}


@constexpr_function
def _check_format(name, format, dtype):
    if format not in _TYPES:
        raise ValueError(f"{name}_format is {format!r}, and must be one of {', '.join(map(repr, _TYPES))}")
    if dtype.name not in _TYPES[format]:
        raise ValueError(f"{name} has elements of type {dtype}, and in the format {format} must be {_TYPES[format][0]}")


@constexpr_function
def _check_extents(lhs, rhs):
    if lhs != rhs:
        raise ValueError(f"lhs has {lhs} elements along K, and rhs {rhs}")


@constexpr_function
def _product_type(lhs_format, rhs_format):
    return core.float16 if "fp16" in (_WIDE[lhs_format], _WIDE[rhs_format]) else core.bfloat16


@constexpr_function
def _swapped(rank):
    """The order of dimensions in which the last two are exchanged."""
    return (*range(rank - 2), rank - 1, rank - 2)


@constexpr_function
def _group(shape, scale_shape):
    """How many elements share a scale."""
    size = shape[-1] // max(scale_shape[-1], 1)
    if tuple(shape[:-1]) != tuple(scale_shape[:-1]) or size * scale_shape[-1] != shape[-1] or size not in (16, 32):
        raise ValueError(
            f"scales of shape {tuple(scale_shape)} for elements of shape {tuple(shape)}: one for 32, or 16"
        )
    return size


@jit
def _from_e2m1(bits):
    """Numbers of four bits, in fp32: sign, two of the exponent, one of the mantissa; 0, 0.5, 1, 1.5, 2, 3, 4 or 6."""
    low, high = bits & 15, bits >> 4
    return interleave(_from_nibble(low), _from_nibble(high))


@jit
def _from_nibble(nibble):
    # A digit for each magnitude, in hexadecimal: twice the number.
    doubled = (0xC8643210 >> ((nibble & 7).to(core.uint32) * 4)) & 15
    value = doubled.to(core.float32) * 0.5
    return core.where((nibble & 8) != 0, -value, value)


@jit
def _from_e2m1_in_pairs(bits):
    """The same in bf16, for instructions on two at once.

    Exponent and mantissa in their places are numbers with the least exponents that bf16 has, where those below the
    normal range are the same fractions.
    """
    word = bits.to(core.uint32)
    magnitudes = (word * ((1 << 6) + (1 << 18))) & 0x01C001C0
    pair = magnitudes | ((word * ((1 << 12) + (1 << 24))) & 0x80008000)
    low, high = pair.to(core.uint16), (pair >> 16).to(core.uint16)
    both = interleave(low.to(core.bfloat16, bitcast=True), high.to(core.bfloat16, bitcast=True))
    return both * core.full((), 2.0**126, core.bfloat16)


@jit
def _unpacked(x, format: constexpr, dtype: constexpr):
    """The elements, those along the last dimension, in `dtype`: fp32, or bf16 if it holds them all."""
    if format == "e2m1":
        bits = x.to(core.uint8, bitcast=True)
        return _from_e2m1(bits) if dtype == core.float32 else _from_e2m1_in_pairs(bits)
    elif format == "e4m3":
        return x.to(core.float8e4nv, bitcast=True).to(dtype)
    elif format == "e5m2":
        return x.to(core.float8e5, bitcast=True).to(dtype)
    else:
        return x.to(dtype)


@jit
def _scale_value(scale, dtype: constexpr):
    """An e8m0 exponent (255 is NaN), or a number, in `dtype`, fp32 or bf16: they have exponents alike."""
    if scale.dtype == core.uint8 or scale.dtype == core.int8:
        exponent = scale.to(core.uint8, bitcast=True).to(core.uint32)
        bits = core.where(exponent == 0, 1 << 22, exponent << 23)  # the least one is below the normal range
        return core.where(exponent == 255, float("nan"), bits.to(core.float32, bitcast=True)).to(dtype)
    else:
        return scale.to(dtype)


@constexpr_function
def _with_groups(shape, group):
    return (*shape[:-1], shape[-1] // group, group)


@jit
def _scaled(values, scale):
    """Rows along K times the scales of their groups."""
    if scale is None:
        return values
    else:
        group: constexpr = _group(values.shape, scale.shape)
        parts = core.reshape(values, _with_groups(values.shape, group))
        return core.reshape(parts * core.expand_dims(_scale_value(scale, values.dtype), -1), values.shape)


@jit
def _operand(x, scale, format: constexpr, k_pack: constexpr, dtype: constexpr):
    """The operand ``[.., rows, K]`` in `dtype`, of one whose bytes lie so.

    A product of two numbers in bf16 that is rounded to bf16 is the same whether it is computed in fp32 or not.
    """
    in_pairs: constexpr = dtype == core.bfloat16 and cuda_capability_geq(9, 0)
    wide: constexpr = core.bfloat16 if in_pairs else core.float32
    if k_pack:
        values = _unpacked(x, format, wide)
    else:
        order: constexpr = _swapped(len(x.shape))
        values = core.permute(_unpacked(core.permute(x, order), format, wide), order)
    return _scaled(values, scale).to(dtype)


@jit
def dot_scaled(
    lhs,
    lhs_scale,
    lhs_format: constexpr,
    rhs,
    rhs_scale,
    rhs_format: constexpr,
    acc=None,
    fast_math: constexpr = False,
    lhs_k_pack: constexpr = True,
    rhs_k_pack: constexpr = True,
    out_dtype: constexpr = core.float32,
):
    """The product of matrices whose groups of elements along K have scales of their own, plus `acc`.

    `lhs` is ``[M, K]`` and `rhs` ``[K, N]``, both perhaps behind a batch dimension. Each format is ``"e2m1"``
    (``uint8`` with two elements, the first in the low half), ``"e4m3"``, ``"e5m2"`` (floats of 8 bits, or their bytes),
    ``"bf16"`` or ``"fp16"``. Operands are multiplied by their scales, rounded to ``bfloat16`` (``float16`` if a format
    is that), and multiplied as `dot` does.

    :param lhs_scale: ``[M, K / 32]`` exponents, ``uint8``: e8m0, 127 is one and 255 is NaN; or ``[M, K / 16]`` numbers,
        ``float8e4nv``. None: no scale.
    :param rhs_scale: the same for `rhs`: ``[N, K / 32]`` or ``[N, K / 16]``.
    :param acc: what is added, of the result's shape and type; zero if None.
    :param fast_math: permission to lose NaN in scales; it is not made use of.
    :param lhs_k_pack: elements of e2m1 that share a byte are neighbours along K; else along M.
    :param rhs_k_pack: elements of e2m1 that share a byte are neighbours along K; else along N.
    """
    _check_format("lhs", lhs_format, lhs.dtype)
    _check_format("rhs", rhs_format, rhs.dtype)
    dtype: constexpr = _product_type(lhs_format, rhs_format)
    order: constexpr = _swapped(len(rhs.shape))
    # Elements of other formats share no bytes.
    a = _operand(lhs, lhs_scale, lhs_format, lhs_k_pack or lhs_format != "e2m1", dtype)
    b = _operand(core.permute(rhs, order), rhs_scale, rhs_format, rhs_k_pack or rhs_format != "e2m1", dtype)
    _check_extents(a.shape[-1], b.shape[-1])
    return core.dot(a, core.permute(b, order), acc, out_dtype=out_dtype)
