"""What only NVIDIA GPUs have; `libdevice`, whose functions are the same on every target, is found here as well."""

from ....runtime.jit import jit
from ... import core, target_info
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
def globaltimer():
    """Nanoseconds of a clock that all multiprocessors share, an ``int64`` scalar (PTX ``%globaltimer``)."""
    return core.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=core.int64, is_pure=False, pack=1)


@jit
def smid():
    """The number of the multiprocessor that runs the program, an ``int32`` scalar (PTX ``%smid``)."""
    return core.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=core.int32, is_pure=True, pack=1)


@jit
def gdc_wait():
    """Wait until the kernel before this one in the stream has ended (option ``launch_pdl``; PTX ``griddepcontrol``), as
    it always has on a CPU and in the simulator."""
    if target_info.current_target().backend == "cuda":
        core.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], dtype=core.int32, is_pure=False, pack=1)


@jit
def gdc_launch_dependents():
    """Let the next kernel in the stream start, one launched with the option ``launch_pdl``; what this one writes may be
    read after `gdc_wait` there. On a CPU and in the simulator it starts when this one has ended."""
    if target_info.current_target().backend == "cuda":
        core.inline_asm_elementwise(
            "griddepcontrol.launch_dependents; // $0", "=r", [], dtype=core.int32, is_pure=False, pack=1
        )


def __getattr__(name: str):
    if name == "libdevice":
        from .. import libdevice

        return libdevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
