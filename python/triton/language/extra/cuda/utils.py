"""How many threads run a program, where, and when: what PTX has special registers for."""

from ....runtime.jit import jit
from ... import core
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
