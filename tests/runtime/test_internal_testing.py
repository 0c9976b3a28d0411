"""The helpers that public test suites import."""

import numpy as np
import pytest

import triton
import triton.language as tl

helpers = pytest.importorskip("triton._internal_testing", reason="torch is not installed")


@triton.jit
def copy(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@pytest.mark.parametrize("dtype", [*helpers.dtypes_with_bfloat16, "bool", "float8e5"])
def test_values_go_there_and_back(dtype, device):
    x = helpers.numpy_random(64, dtype)
    arguments = [helpers.to_triton(array, device, dtype) for array in (x, np.zeros_like(x))]
    copy[(1,)](*arguments, BLOCK=64)
    y = helpers.unwrap_tensor(arguments[1]).cpu().numpy() if "8e" in dtype else helpers.to_numpy(arguments[1])
    assert (x == y).all() and (dtype not in helpers.integral_dtypes or (x != 0).all())


def test_names():
    assert helpers.str_to_triton_dtype("float8_e4m3fn") == tl.float8e4nv
    assert helpers.torch_dtype_name(tl.bfloat16) == "bfloat16"
    with pytest.raises(TypeError, match="not a dtype"):
        helpers.torch_dtype_name(3)


def test_target(target):
    assert helpers.is_cuda() == target.startswith("cuda")
    assert not helpers.is_interpreter() and not helpers.is_hip() and helpers.get_arch()
