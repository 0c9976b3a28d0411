"""What compiles for NVIDIA GPUs, and the tools of the CUDA toolkit that may be there."""

from functools import cache

from ...errors import PTXASError
from ..compiler import CUDABackend
from ..compiler import Options as CUDAOptions


def min_dot_size(target):
    """A function of two types that gives the least (M, N, K) of a product on tensor cores: any extent will do."""
    return lambda lhs_type, rhs_type: (1, 1, 1)


def get_ptxas(arch=None):
    """The path of ptxas, as `knobs.nvidia.ptxas`; None where there is none."""
    from ...knobs import nvidia

    return nvidia.ptxas


def _path_to_binary(binary):
    """The path of a program of the CUDA toolkit, and its release: ("/usr/local/cuda/bin/nvdisasm", "12.9").

    Raises RuntimeError where there is none.
    """
    from ...compiler.compiled import cuda_tool
    from ...knobs import NvidiaTool

    path = cuda_tool(binary)
    if path is None:
        place = f"TRITON_{binary.upper()}_PATH says where"
        raise RuntimeError(f"{binary} was not found: it is in the CUDA toolkit; {place}")
    return path, NvidiaTool(path).version


@cache
def get_ptxas_version(arch=None):
    """What ``ptxas --version`` says. Raises RuntimeError where there is no ptxas."""
    import subprocess

    ptxas = get_ptxas(arch)
    if ptxas is None:
        raise RuntimeError("ptxas was not found: it is in the CUDA toolkit; TRITON_PTXAS_PATH says where")
    return subprocess.run([ptxas, "--version"], check=True, capture_output=True, text=True).stdout


def ptx_get_version(cuda_version):
    """The version of PTX, 88 for 8.8, that a release of the CUDA toolkit ("12.9") takes.

    By the release notes of the PTX ISA manual CUDA 11, 12 and 13 have 7, 8 and 9 and the release's number, but 12.6
    had that of 12.5.
    """
    major, minor = map(int, cuda_version.split(".")[:2])
    if not 11 <= major <= 13:
        raise ValueError(f"CUDA {cuda_version}: the version of its PTX is not known")
    return 10 * (major - 4) + minor - (major == 12 and minor > 5)


def sm_arch_from_capability(capability):
    """How NVIDIA's tools call a compute capability: 90 is "sm_90a", 80 is "sm_80"."""
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


__all__ = [
    "CUDABackend",
    "CUDAOptions",
    "PTXASError",
    "get_ptxas",
    "get_ptxas_version",
    "min_dot_size",
    "ptx_get_version",
    "sm_arch_from_capability",
]
