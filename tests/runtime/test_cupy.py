"""The kernels of the tutorials on CuPy arrays."""

import importlib.util
import sys
from pathlib import Path

import pytest

import triton

cupy = pytest.importorskip("cupy")
TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"


@pytest.fixture(autouse=True)
def on_cuda(target):
    if not target.startswith("cuda"):
        pytest.skip("for --target cuda")
    cupy.random.seed(0)


def lesson(name):
    """A tutorial as a module; its wrappers are for torch, its kernels for everyone."""
    path = next(TUTORIALS.glob(f"{name}*.py"))
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


def random(*shape, dtype="float32"):
    return (cupy.random.random(shape, dtype="float32") - 0.5).astype(dtype)


def strides(array):
    return [stride // array.itemsize for stride in array.strides]


def difference(a, b):
    return float(abs(a.astype("float64") - b.astype("float64")).max())


def test_vector_add():
    x, y = random(98_432), random(98_432)
    out = cupy.empty_like(x)
    lesson("01").add_kernel[(triton.cdiv(x.size, 1024),)](x, y, out, x.size, BLOCK_SIZE=1024)
    assert difference(out, x + y) == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_softmax(persistent):
    x = random(1823, 781) * 20
    out = cupy.empty_like(x)
    (rows, columns), module = x.shape, lesson("02")
    arguments = out, x, strides(out)[0], strides(x)[0]
    if persistent:
        module.softmax_kernel[(264,)](*arguments, rows, columns, BLOCK_SIZE=1024, STAGES=4, num_warps=8)
    else:
        module.softmax_row_kernel[(rows,)](*arguments, columns, BLOCK_SIZE=1024)
    powers = cupy.exp((x - x.max(1, keepdims=True)).astype("float64"))
    assert difference(out, powers / powers.sum(1, keepdims=True)) < 1e-6


@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_product(transposed):
    a, b = random(203, 129, dtype="float16"), random(129, 77, dtype="float16")
    if transposed:
        b = cupy.asfortranarray(b)
    out, module = cupy.empty((203, 77), "float16"), lesson("03")

    def grid(meta):
        return (triton.cdiv(203, meta["BLOCK_M"]) * triton.cdiv(77, meta["BLOCK_N"]),)

    module.matmul_kernel[grid](
        a, b, out, 203, 77, 129, *strides(a), *strides(b), *strides(out), ACTIVATION=module.leaky_relu
    )
    product = a.astype("float64") @ b.astype("float64")
    assert difference(out, cupy.where(product >= 0, product, 0.01 * product)) < 4e-3
    assert len(module.matmul_kernel.configs_timings) > 1


def test_dropout():
    x = random(10_000) + 1
    out, again = cupy.empty_like(x), cupy.empty_like(x)
    for result in (out, again):
        lesson("04").dropout_kernel[(triton.cdiv(x.size, 1024),)](x, result, x.size, 0.25, 123, BLOCK_SIZE=1024)
    kept = out != 0
    assert difference(out, again) == 0
    assert difference(out, cupy.where(kept, x / 0.75, 0)) < 1e-6
    assert 0.73 < float(kept.mean()) < 0.77


@pytest.mark.parametrize("locked", [True, False])
def test_layer_norm(locked):
    rows, columns = 300, 1000
    x, w, b, dy = random(rows, columns), random(columns), random(columns), random(rows, columns)
    y, dx, dw, db = cupy.empty_like(x), cupy.empty_like(x), cupy.zeros_like(w), cupy.zeros_like(b)
    mean, rstd, lock = cupy.empty(rows, "float32"), cupy.empty(rows, "float32"), cupy.zeros(1, "int32")
    module = lesson("05")
    module.forward_kernel[(rows,)](y, mean, rstd, x, w, b, columns, 1e-5, BLOCK_SIZE=1024)
    module.backward_kernel[(132,)](
        dx, dw, db, lock, dy, x, w, mean, rstd, rows, columns, LOCKED=locked, BLOCK_SIZE=1024
    )
    x, dy = x.astype("float64"), dy.astype("float64")
    scale = 1 / cupy.sqrt(x.var(1, keepdims=True) + 1e-5)
    normal = (x - x.mean(1, keepdims=True)) * scale
    slope = w * dy
    expected = slope - slope.mean(1, keepdims=True) - normal * (normal * slope).mean(1, keepdims=True)
    assert difference(y, normal * w + b) < 1e-5
    assert difference(dx, expected * scale) < 1e-4
    assert difference(dw, (dy * normal).sum(0)) < 1e-3
    assert difference(db, dy.sum(0)) < 1e-3
