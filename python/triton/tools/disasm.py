"""The machine code of kernels for NVIDIA GPUs as text: ``python -m triton.tools.disasm kernel.cubin [function]``.

It takes cuobjdump of the CUDA toolkit (TRITON_CUOBJDUMP_PATH), or nvdisasm (TRITON_NVDISASM_PATH). What cuobjdump says
becomes a line for each instruction, behind what its second word has for the scheduler::

    Function:kernel
    01:-:2:Y:4      LDG.E R0, desc[UR4][R2.64];

These are the barriers that it waits for, as a mask; the one that says that its operands were read; the one that says
that its result is there; whether another warp had better go on (Y); and for how many cycles this one waits.
"""

import re
import subprocess
import tempfile

from ..compiler.compiled import cuda_tool


def path_to_cuobjdump():
    """The path and the version of cuobjdump. Raises RuntimeError where there is none."""
    path = cuda_tool("cuobjdump")
    if path is None:
        raise RuntimeError("cuobjdump was not found: it is in the CUDA toolkit; TRITON_CUOBJDUMP_PATH says where")
    text = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
    return path, text.rpartition("release ")[2].partition(",")[0]


def extract(file_path, fun=None):
    """The machine code in a file, of one function of it if `fun` names one; by nvdisasm as that writes it.

    Raises RuntimeError where there is neither tool; CalledProcessError where the file is no cubin.
    """
    nvdisasm = cuda_tool("nvdisasm")
    try:
        cuobjdump = path_to_cuobjdump()
    except RuntimeError:
        if fun or not nvdisasm:
            raise
        return subprocess.check_output([nvdisasm, "--print-code", file_path]).decode()
    cuobjdump = cuobjdump[0] if isinstance(cuobjdump, tuple) else cuobjdump
    command = [cuobjdump, *(["-fun", fun] if fun else []), "-sass", file_path]
    return _one_line_each(subprocess.check_output(command).decode())


_WORD = r"/\*\s*0x([0-9a-f]{16})\s*\*/"
_PARTS = re.compile(rf"Function : (\S+)|/\*[0-9a-f]{{4,}}\*/\s+(.*?)\s*;\s*{_WORD}\s*{_WORD}")


def _one_line_each(text):
    lines = []
    for name, instruction, _, word in _PARTS.findall(text):
        lines.append(f"Function:{name}\n" if name else f"{_control(int(word, 16) >> 41)}\t{instruction};\n")
    return "".join(lines)


def _control(bits):
    stall, to_yield, written, read, waits = bits & 15, bits >> 4 & 1, bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63
    barriers = ":".join("-" if each == 7 else str(each) for each in (read, written))
    return f"{f'{waits:02x}' if waits else '--'}:{barriers}:{'-' if to_yield else 'Y'}:{stall:x}"


def get_sass(cubin_asm, fun=None):
    """`extract` of a cubin in memory: ``get_sass(kernel.asm["cubin"])``."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin_asm)
        file.flush()
        return extract(file.name, fun)


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser("python -m triton.tools.disasm", description=__doc__)
    parser.add_argument("file", help="a cubin")
    parser.add_argument("kernel", nargs="?", help="one kernel, instead of all")
    asked = parser.parse_args()
    print(extract(asked.file, asked.kernel))
