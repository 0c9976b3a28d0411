"""The machine code of kernels for NVIDIA GPUs as text: ``python -m triton.tools.disasm kernel.cubin [function]``.

It takes cuobjdump or nvdisasm of the CUDA toolkit (TRITON_CUOBJDUMP_PATH, TRITON_NVDISASM_PATH).
"""

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
    """The machine code in a file, of one function of it if `fun` names one: SASS as the tool writes it.

    Raises RuntimeError where there is neither tool; CalledProcessError where the file is no cubin.
    """
    cuobjdump, nvdisasm = cuda_tool("cuobjdump"), cuda_tool("nvdisasm")
    if cuobjdump:
        command = [cuobjdump, "-sass", *(["-fun", fun] if fun else []), file_path]
    elif nvdisasm and not fun:
        command = [nvdisasm, "--print-code", file_path]
    else:
        raise RuntimeError("cuobjdump was not found: it is in the CUDA toolkit; TRITON_CUOBJDUMP_PATH says where")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


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
