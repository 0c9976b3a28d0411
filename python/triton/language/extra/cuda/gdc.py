"""Launches that begin before the kernel before them ends (PTX `griddepcontrol`)."""

from ....runtime.jit import jit
from ... import core, target_info


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
