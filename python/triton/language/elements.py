"""The element types by name, and how signatures spell types."""

from .dtypes import _INTS, _SHORT, dtype, pointer_type

TYPE_CHECKING = False

void = dtype("void")
if TYPE_CHECKING:  # to a type checker ``tl.float32`` is also the type of what has it: ``def kernel(x: tl.float32)``
    from .tensors import tensor

    class _type_of_elements(dtype, type): ...

    class _element(tensor, metaclass=_type_of_elements): ...

    class int1(_element): ...

    class int8(_element): ...

    class int16(_element): ...

    class int32(_element): ...

    class int64(_element): ...

    class uint8(_element): ...

    class uint16(_element): ...

    class uint32(_element): ...

    class uint64(_element): ...

    class float8e5(_element): ...

    class float8e4nv(_element): ...

    class float8e4b15(_element): ...

    class float8e4b8(_element): ...

    class float8e5b16(_element): ...

    class float8e8m0fnu(_element): ...

    class float16(_element): ...

    class bfloat16(_element): ...

    class float32(_element): ...

    class float64(_element): ...

else:
    int1 = dtype("int1")
    int8 = dtype("int8")
    int16 = dtype("int16")
    int32 = dtype("int32")
    int64 = dtype("int64")
    uint8 = dtype("uint8")
    uint16 = dtype("uint16")
    uint32 = dtype("uint32")
    uint64 = dtype("uint64")
    float8e5 = dtype("fp8e5")
    float8e4nv = dtype("fp8e4nv")
    float8e4b15 = dtype("fp8e4b15")
    float8e4b8 = dtype("fp8e4b8")
    float8e5b16 = dtype("fp8e5b16")
    float8e8m0fnu = dtype("fp8e8m0fnu")
    float16 = dtype("fp16")
    bfloat16 = dtype("bf16")
    float32 = dtype("fp32")
    float64 = dtype("fp64")
pi32_t = pointer_type(int32)

TRITON_MAX_TENSOR_NUMEL = 1048576
"""The most elements that one tile may have."""

_TYPES = {"i1": int1, "u1": int1, "void": void, "B": int1}
_TYPES.update({short: dtype(name) for name, short in _SHORT.items()})
_TYPES.update({name: dtype(name) for name in dtype.FP_TYPES})


def str_to_ty(name: str, c=None):
    """The type that a signature calls `name`: ``"*fp32"`` is a pointer, ``"*ki8"`` a read-only one."""
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if const else 1 :]), const=const)
    if name not in _TYPES:
        raise ValueError(f"no signature spells a type {name!r}; there are: {', '.join(_TYPES)} and * of these")
    return _TYPES[name]


# How torch, NumPy and Python call what has another name here.
_ELSEWHERE = {
    "bool": "int1",
    "bool_": "int1",
    "float": "float32",
    "int": "int32",
    "float8_e4m3fn": "float8e4nv",
    "float8_e5m2": "float8e5",
    "float8_e4m3fnuz": "float8e4b8",
    "float8_e5m2fnuz": "float8e5b16",
    "float8_e8m0fnu": "float8e8m0fnu",
}


def _of_other_libraries(value):
    """Of a dtype of torch, NumPy or Python: how it is spelled there, and how in kernels; None for anything else."""
    text = getattr(value, "__name__", None) or str(value)
    own = text.rpartition(".")[2]
    own = _ELSEWHERE.get(own, own)
    library = (value if isinstance(value, type) else type(value)).__module__.partition(".")[0]
    if library not in ("torch", "numpy", "builtins") or not isinstance(globals().get(own), dtype):
        return None
    return (text if "." in text or library == "builtins" else f"{library}.{text}"), f"tl.{own}"


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of so many bits."""
    if bitwidth == 1:
        return int1
    name = f"{'' if signed else 'u'}int{bitwidth}"
    if name not in _INTS:
        raise ValueError(f"there is no {'signed' if signed else 'unsigned'} integer type of {bitwidth} bits")
    return dtype(name)
