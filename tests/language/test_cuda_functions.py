"""Functions of `tl.extra.cuda` that PTX has an instruction for, on every target."""

import numpy as np
import pytest
from harness import Array, check

FLOATS = [0.0, -0.0, 1.0, -1.5, 3e-39, -1e-30, 3.4e38, np.inf, -np.inf, np.nan, 2.0**-126, -7.25]


def bits(x):
    return x.view(np.uint32)


@pytest.mark.parametrize("rounding", ["rn", "rna"])
def test_rounding_to_tf32(rounding):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**32, 1000, dtype=np.uint32)
    x[:200] = x[:200] & ~np.uint32(0x1FFF) | 0x1000  # ties
    x = np.append(x.view(np.float32), np.float32(FLOATS))
    half = 0x1000 if rounding == "rna" else 0xFFF + (bits(x) >> 13 & 1)
    expected = np.where(np.isfinite(x), (bits(x) + half) & 0xFFFFE000, bits(x)).astype(np.uint32)
    check(f"tl.extra.cuda.round_f32_to_tf32(x, {rounding!r})", {"x": x}, expected.view(np.float32))


@pytest.mark.parametrize("which", ["min", "max"])
@pytest.mark.parametrize("nan", [False, True])
def test_magnitudes_with_signs(which, nan):
    x, y = (each.ravel() for each in np.meshgrid(np.float32(FLOATS), np.float32(FLOATS)))
    own = {("min", True): np.minimum, ("min", False): np.fmin, ("max", True): np.maximum, ("max", False): np.fmax}
    magnitudes = own[which, nan](np.abs(x), np.abs(y))
    expected = np.copysign(magnitudes, np.where(np.signbit(x) ^ np.signbit(y), -1, 1)).astype(np.float32)
    check(f"tl.extra.cuda.{which}_{'nan_' * nan}xorsign_abs_f32(x, y)", {"x": x, "y": y}, Array(expected, "float32"))
    if nan:
        code = f"tl.extra.cuda.{which}_xorsign_abs_f32(x, y, tl.PropagateNan.ALL)"
        check(code, {"x": x, "y": y}, Array(expected, "float32"))
