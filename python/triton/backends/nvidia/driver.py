"""The driver of NVIDIA GPUs, and how types of signatures are spelled in C."""

from ...runtime.cuda import CUDADriver as CudaDriver
from ...runtime.cuda import CUDAUtils as CudaUtils


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


__all__ = ["CudaDriver", "CudaUtils", "ty_to_cpp"]
