"""Nested tuples and lists, and the paths (tuples of indices) to what is in them; names of element types."""

from math import prod

from .language.dtypes import dtype as _dtype


def find_paths_if(items, wanted):
    """The paths to all that is no tuple or list and for which ``wanted(path, value)`` holds, in order."""

    def find(items, path):
        for index, value in enumerate(items):
            inner = (*path, index)
            if isinstance(value, (tuple, list)):
                yield from find(value, inner)
            elif wanted(inner, value):
                yield inner

    return list(find(items, ()))


def get_iterable_path(items, path):
    """What lies at a path."""
    for index in path:
        items = items[index]
    return items


def _find_paths_if_leaf_is_constexpr(items):
    """The paths to the parameters of a signature that are compile-time values."""
    return tuple(find_paths_if(items, lambda _, value: value == "constexpr"))


def _find_paths_if_leaf_is_str(items):
    """The paths to the texts that `native_specialize_impl` has for facts."""
    return tuple(find_paths_if(items, lambda _, value: isinstance(value, str)))


def tuple_create(like, items):
    """A tuple of the type of another one, named fields and all."""
    return getattr(type(like), "_make", type(like))(items)


# ---- element types

_FLOATS = {
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}
_FLOATS |= {
    "half": "fp16",
    "float": "fp32",
    "double": "fp64",
    **{_dtype(name).codegen_name(): name for name in _dtype.FP_TYPES},
}
_BYTES = dict.fromkeys(("float8_e8m0fnu", "float8e8m0fnu", "fp8e8m0fnu", "float4_e2m1fn_x2"), "u8")
_OTHERS = {name: _dtype(name).mangle() for name in (*_dtype.SINT_TYPES, *_dtype.UINT_TYPES)} | {
    "bool": "i1",
    "void": "void",
}

type_canonicalisation_dict = _FLOATS | _OTHERS | _BYTES
type_canonicalisation_dict |= {name: name for name in [*type_canonicalisation_dict.values()]}

BITWIDTH_DICT = {
    _OTHERS.get(name, name): _dtype(name).primitive_bitwidth for name in (*_dtype.FP_TYPES, *_OTHERS) if name != "bool"
}


def canonicalize_dtype(dtype):
    """How a signature spells an element type of torch, of NumPy or of the language: "fp32", "i64"."""
    name = str(dtype).rpartition(".")[2]
    if name not in type_canonicalisation_dict:
        raise TypeError(f"{dtype!r} is no type of elements of kernels")
    return type_canonicalisation_dict[name]


def canonicalize_ptr_dtype(dtype, is_const):
    """The same of a pointer to such elements: "*fp32"; "*kfp32" if nothing is stored through it."""
    return f"*{'k' * bool(is_const)}{canonicalize_dtype(dtype)}"


def get_primitive_bitwidth(dtype):
    """Bits of an element of a type, as signatures spell it."""
    return BITWIDTH_DICT[dtype]


def validate_block_shape(shape):
    """The number of elements of a tile. TypeError or ValueError if its extents are no positive integers."""
    for place, extent in enumerate(shape):
        if not isinstance(extent, int):
            raise TypeError(f"Shape element {place} must have type `constexpr[int]`, got `constexpr[{type(extent)}]`")
        if extent < 1:
            raise ValueError(f"Shape element {place} must be positive, and is {extent}")
    return prod(shape)


__all__ = [
    "BITWIDTH_DICT",
    "canonicalize_dtype",
    "canonicalize_ptr_dtype",
    "find_paths_if",
    "get_iterable_path",
    "get_primitive_bitwidth",
    "tuple_create",
    "type_canonicalisation_dict",
    "validate_block_shape",
]
