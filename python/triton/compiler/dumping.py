"""TRITON_KERNEL_DUMP, TRITON_KERNEL_OVERRIDE and `Config(ir_override=)`: stages of kernels in files, to be read, or
changed and used.

A kernel's files lie in a folder of its hash, which the dump shows: to try a change, copy it to TRITON_OVERRIDE_DIR,
edit `<name>.ttir` or `<name>.ptx`, and run again with TRITON_KERNEL_OVERRIDE=1.
"""

from .. import knobs
from ..errors import UnsupportedError
from ..runtime.cache import get_dump_manager, get_override_manager


def apply(compiled, file=None):
    """What was asked for, to a kernel that was just compiled or found; `file` is its launch option ``ir_override``."""
    if file is not None:
        _override_with(compiled, file)
    if knobs.compilation.override:
        _override(compiled)
    if knobs.compilation.dump_ir:
        _dump(compiled)


def _dump(compiled):
    manager = get_dump_manager(compiled.hash)
    for stage in compiled._stages():
        if stage != "cubin":  # that takes a GPU
            manager.put(compiled._text(stage), f"{compiled.name}.{stage}", binary=False)


def _override(compiled):
    manager = get_override_manager(compiled.hash)
    paths = {stage: manager.get_file(f"{compiled.name}.{stage}") for stage in compiled._stages()}
    for stage, path in paths.items():
        if path is not None:
            _replace(compiled, stage, path)


def _override_with(compiled, file):
    """A file whose name ends in the stage that it has the text of."""
    stage, stages = file.rpartition(".")[2], list(compiled._stages())
    if stage not in stages:
        raise UnsupportedError(
            f"ir_override={file!r}: the name of the file has to end in the stage that it stands for, and a kernel for "
            f"{compiled.info['target']} has {', '.join(stages)}"
        )
    _replace(compiled, stage, file)


def _replace(compiled, stage, path):
    from hashlib import sha256

    with open(path) as file:
        text = file.read()
    compiled._override(stage, text, path)
    compiled.hash = sha256(f"{compiled.hash} {stage} {text}".encode()).hexdigest()
