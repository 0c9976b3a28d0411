"""How many threads run a program, where, and when: what PTX has special registers for; and instructions of its own."""

from ....runtime.jit import jit
from ... import core, math
from ..._builtin import builtin, outside


@builtin
def num_warps() -> int:
    """The warps that run a program, known at compile time: the option ``num_warps`` of the launch."""
    outside()


@jit
def num_threads():
    """The threads that run a program, known at compile time: 32 a warp."""
    return num_warps() * 32


@jit
def convert_custom_float8_sm80(arg, dst_ty: core.constexpr, fp_downcast_rounding: core.constexpr = None):
    """``arg.to(dst_ty)``, of which one is ``tl.float8e4b15``."""
    return arg.to(dst_ty, fp_downcast_rounding)


convert_custom_float8_sm70 = convert_custom_float8_sm80


@jit
def globaltimer():
    """Nanoseconds of a clock that all multiprocessors share, an ``int64`` scalar (PTX ``%globaltimer``)."""
    return core.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=core.int64, is_pure=False, pack=1)


@jit
def smid():
    """The number of the multiprocessor that runs the program, an ``int32`` scalar (PTX ``%smid``)."""
    return core.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=core.int32, is_pure=True, pack=1)


@jit
def round_f32_to_tf32(x, rounding: core.constexpr):
    """A ``float32`` to the nearest that has 10 bits of mantissa: of two the even one (``"rn"``), or the one that is
    away from zero (``"rna"``)."""
    core.static_assert(rounding == "rn" or rounding == "rna", 'rounding must be "rn" or "rna"')
    bits = x.to(core.uint32, bitcast=True)
    half = 0x1000 if rounding == "rna" else 0xFFF + ((bits >> 13) & 1)
    finite = (bits & 0x7F800000) != 0x7F800000
    return core.where(finite, (bits + half) & 0xFFFFE000, bits).to(core.float32, bitcast=True)


@jit
def _with_signs(magnitude, a, b):
    """A ``float32`` that is negative where one of two others is."""
    signs = (a.to(core.uint32, bitcast=True) ^ b.to(core.uint32, bitcast=True)) & 0x80000000
    return (magnitude.to(core.uint32, bitcast=True) & 0x7FFFFFFF | signs).to(core.float32, bitcast=True)


@jit
def min_xorsign_abs_f32(a, b, propagate_nan: core.constexpr = math.PropagateNan.NONE):
    """The smaller magnitude of two ``float32``, negative where one of them is."""
    return _with_signs(math.minimum(core.abs(a), core.abs(b), propagate_nan), a, b)


@jit
def max_xorsign_abs_f32(a, b, propagate_nan: core.constexpr = math.PropagateNan.NONE):
    """The larger magnitude of two ``float32``, negative where one of them is."""
    return _with_signs(math.maximum(core.abs(a), core.abs(b), propagate_nan), a, b)


@jit
def min_nan_xorsign_abs_f32(a, b):
    """`min_xorsign_abs_f32`, and NaN where one of them is."""
    return min_xorsign_abs_f32(a, b, math.PropagateNan.ALL)


@jit
def max_nan_xorsign_abs_f32(a, b):
    """`max_xorsign_abs_f32`, and NaN where one of them is."""
    return max_xorsign_abs_f32(a, b, math.PropagateNan.ALL)
