# ruff: noqa: F401
"""Everything of the language that the compiler itself implements, under one name: ``tl.core``."""

from builtins import slice, tuple  # these are Python's own

from ._builtin import builtin, is_builtin, must_use_result
from .aggregates import aggregate as _aggregate
from .compile_time import _unwrap_if_constexpr, const, constexpr, constexpr_function, constexpr_type
from .compound import aggregate_replace
from .creation import arange, cast, cat, full, to, to_tensor
from .debug import (
    assume,
    debug_barrier,
    device_assert,
    device_print,
    inline_asm_elementwise,
    max_constancy,
    max_contiguous,
    multiple_of,
    static_assert,
    static_print,
)
from .dtypes import base_type, block_type, dtype, pointer_type, tuple_type
from .elements import (
    TRITON_MAX_TENSOR_NUMEL,
    bfloat16,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float8e8m0fnu,
    float16,
    float32,
    float64,
    get_int_dtype,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    str_to_ty,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from .extern import dispatch, extern, extern_elementwise
from .linalg import dot
from .math import *  # noqa: F403
from .memory import (
    advance,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    load,
    make_block_ptr,
    store,
)
from .programs import condition, num_programs, program_id, range, static_range
from .reduction import associative_scan, histogram, reduce
from .shape import (
    broadcast,
    broadcast_to,
    expand_dims,
    gather,
    item,
    join,
    permute,
    reshape,
    split,
    trans,
    view,
)
from .tensors import base_value, block_pointer, tensor

CONSTEXPR_0 = constexpr(0)

TRITON_BUILTIN = "__triton_builtin__"
"""The attribute that marks what the compiler implements."""


def _unwrap_shape(shape):
    """A shape, itself or its extents wrapped as compile-time values, as a list of ints."""
    return [_unwrap_if_constexpr.fn(extent) for extent in _unwrap_if_constexpr.fn(shape)]


def _constexpr_to_value(value):
    """What a compile-time value wraps; anything else as it is."""
    return _unwrap_if_constexpr.fn(value)
