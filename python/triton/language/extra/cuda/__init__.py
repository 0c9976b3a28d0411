"""What only NVIDIA GPUs have; `libdevice`, whose functions are the same on every target, is found here as well."""

from .gdc import gdc_launch_dependents, gdc_wait
from .utils import (
    convert_custom_float8_sm70,
    convert_custom_float8_sm80,
    globaltimer,
    max_nan_xorsign_abs_f32,
    max_xorsign_abs_f32,
    min_nan_xorsign_abs_f32,
    min_xorsign_abs_f32,
    num_threads,
    num_warps,
    round_f32_to_tf32,
    smid,
)

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "max_nan_xorsign_abs_f32",
    "max_xorsign_abs_f32",
    "min_nan_xorsign_abs_f32",
    "min_xorsign_abs_f32",
    "num_threads",
    "num_warps",
    "round_f32_to_tf32",
    "smid",
]


def __getattr__(name: str):
    if name == "libdevice":
        from .. import libdevice

        return libdevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
