"""The bases of all drivers, under the names that code written for the public API imports from here; and how launchers
that such code builds take descriptors apart: ours are one step in C (csrc/python/bind.c)."""

import re
from collections.abc import Callable

from .._utils import find_paths_if, tuple_create
from ..runtime.driver_base import DriverBase, GPUDriver

Benchmarker = Callable  # with the parameters of `triton.testing.do_bench`


def _is_descriptor(kind):
    return isinstance(kind, str) and kind.startswith("tensordesc")


def decompose_descriptor(descriptor):
    """The parameters of a kernel that a descriptor becomes: its array, extents, strides and options, and once more the
    extents and strides, which the kernel may read."""
    lengths = *descriptor.shape, *descriptor.strides
    options = descriptor.padding == "nan", descriptor.round_f32_to_tf32
    return [descriptor.base, *lengths, *options, *lengths]


def _descriptor_types(kind, meta, with_meta):
    element, block = re.match(r"tensordesc(?:_\w+)?<(\w+)\[([^]]*)\]", kind).groups()
    stated = re.search(r"input_rank=(\d+)", kind)
    rank = int(stated[1]) if stated else block.count(",") + 1
    lengths = ["i32"] * rank + ["i64"] * rank
    return [with_meta, *lengths] if meta is not None else [f"*{element}", *["i64"] * (2 * rank), "i1", "i1", *lengths]


def expand_signature(signature, tensordesc_meta, descriptor_type):
    """The types of a kernel's parameters for a signature with descriptors, those in tuples too.

    :param tensordesc_meta: for each descriptor, in order, what its hardware's descriptor is made with, or None where it
        is taken apart; empty for none.
    :param descriptor_type: the type of a parameter that is such a descriptor.
    """
    metas = iter(tensordesc_meta or ())

    def expand(kinds):
        for kind in kinds:
            if isinstance(kind, tuple):
                yield tuple(expand(kind))
            elif _is_descriptor(kind):
                yield from _descriptor_types(kind, next(metas, None), descriptor_type)
            else:
                yield kind

    return list(expand(signature))


def wrap_handle_tensordesc_impl(launcher, signature, tensordesc_meta, make_tensordesc_arg):
    """A launcher, whose last parameter is the list of arguments, that takes descriptors apart before it calls another.

    :param signature: types of arguments by name or number.
    :param make_tensordesc_arg: of a descriptor, its entry of `tensordesc_meta` and the launcher's other arguments: the
        parameters of the kernel.
    """
    kinds = tuple(signature.values())
    if not find_paths_if(kinds, lambda _, kind: _is_descriptor(kind)):
        return launcher

    def launch(*others):
        *others, arguments = others
        metas = iter(tensordesc_meta or ())

        def expand(kinds, values):
            for kind, value in zip(kinds, values, strict=True):
                if isinstance(kind, tuple):
                    made = list(expand(kind, value))
                    yield tuple_create(value, made) if len(made) == len(value) else tuple(made)
                elif _is_descriptor(kind):
                    yield from make_tensordesc_arg(value, next(metas, None), others)
                else:
                    yield value

        return launcher(*others, list(expand(kinds, arguments)))

    return launch


__all__ = [
    "Benchmarker",
    "DriverBase",
    "GPUDriver",
    "decompose_descriptor",
    "expand_signature",
    "wrap_handle_tensordesc_impl",
]
