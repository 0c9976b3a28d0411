"""The driver of NVIDIA GPUs; how types of signatures are spelled in C, and where a C compiler finds the driver's header
and library, for programs that build what `triton.tools.compile` wrote."""

import os

from ...runtime.cuda import CUDADriver as CudaDriver
from ...runtime.cuda import CUDAUtils as CudaUtils


def _folders_of_toolkits():
    import shutil

    compiler = shutil.which("nvcc")
    above = compiler and os.path.dirname(os.path.dirname(os.path.realpath(compiler)))
    asked = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), above, "/usr/local/cuda"]
    return [folder for folder in dict.fromkeys(asked) if folder]


include_dirs = [
    folder
    for each in _folders_of_toolkits()
    if os.path.exists(os.path.join(folder := os.path.join(each, "include"), "cuda.h"))
]
"""Folders with ``cuda.h``, of the CUDA toolkits that are installed here."""


def libcuda_dirs():
    """Folders with the driver's library. Raises RuntimeError where there is none."""
    import subprocess

    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    try:
        known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, errors="replace").stdout
        folders += [os.path.dirname(line.split()[-1]) for line in known.splitlines() if "libcuda.so" in line]
    except OSError:
        pass  # a system without it has a loader that looks elsewhere
    found = [folder for folder in dict.fromkeys(folders) if os.path.exists(os.path.join(folder, "libcuda.so.1"))]
    if not found:
        raise RuntimeError("no NVIDIA driver: libcuda.so.1 was not found; LD_LIBRARY_PATH may say where it is")
    return found


def library_dirs():
    """The same, by the name that has libraries of the public package, too."""
    return libcuda_dirs()


def ty_to_cpp(ty):
    """The type in C of a parameter of a kernel: "i32" is ``int32_t``, and "*fp32" an address, ``CUdeviceptr``."""
    if ty[0] == "*":
        return "CUdeviceptr"
    floats = {"fp16": "double", "bf16": "double", "fp32": "double", "f32": "double", "fp64": "double"}
    ints = {f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)}
    names = ints | floats | {"i1": "int8_t", "u1": "uint8_t"}
    if ty not in names:
        raise ValueError(f"no parameter has the type {ty!r}; there are: {', '.join(names)} and * of these")
    return names[ty]


__all__ = ["CudaDriver", "CudaUtils", "include_dirs", "libcuda_dirs", "library_dirs", "ty_to_cpp"]
