"""TRITON_KERNEL_DUMP and TRITON_KERNEL_OVERRIDE: stages of kernels in files, to be read, or changed and used.

A kernel's files lie in a folder of its hash, which the dump shows: to try a change, copy it to TRITON_OVERRIDE_DIR,
edit `<name>.ttir` or `<name>.ptx`, and run again with TRITON_KERNEL_OVERRIDE=1.
"""

from .. import knobs
from ..runtime.cache import get_dump_manager, get_override_manager


def apply(compiled):
    """What was asked for, to a kernel that was just compiled or found."""
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
    from hashlib import sha256

    hash = compiled.hash
    manager = get_override_manager(hash)
    for stage in compiled._stages():
        path = manager.get_file(f"{compiled.name}.{stage}")
        if path is not None:
            with open(path) as file:
                text = file.read()
            compiled._override(stage, text, path)
            hash = sha256(f"{hash} {stage} {text}".encode()).hexdigest()
    compiled.hash = hash
