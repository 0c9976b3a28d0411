"""Tensor descriptors, made in the kernel and on the host, against NumPy's slices."""

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@pytest.fixture
def arrays(target):
    """Makes arguments of NumPy arrays, and NumPy arrays of arguments."""
    if not target.startswith("cuda"):
        return (lambda x: x), (lambda x: x)
    import torch

    return (lambda x: torch.from_numpy(x).cuda()), (lambda x: x.cpu().numpy())


@triton.jit
def plus_one(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    """A block of x, and of what lies beyond its edges, into a larger y."""
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN], padding_option=PADDING)
    y = tl.make_tensor_descriptor(y_ptr, shape=[M + 8, N + 8], strides=[N + 8, 1], block_shape=[BM, BN])
    tl.static_assert(isinstance(x, tl.tensor_descriptor) and x.dtype == tl.float32)
    tl.static_assert(isinstance(x, tl.tensor_descriptor_base) and not isinstance(x_ptr, tl.core.tensor_descriptor_base))
    tl.static_assert(x.block_shape[0] == BM and x.block_type == tl.block_type(tl.float32, [BM, BN]))
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    y.store([row, column], x.load([row, column]) + 1)


@pytest.mark.parametrize("padding, beyond", [("zero", 1), ("nan", np.nan)])
@pytest.mark.parametrize("block", [(16, 16), (8, 64)])
def test_edges(padding, beyond, block, arrays):
    argument, result = arrays
    m, n = 37, 45
    x = np.random.default_rng(0).random((m, n), np.float32)
    y = argument(np.full((m + 8, n + 8), -7, np.float32))
    plus_one[(3, 3)](argument(x), y, m, n, *block, padding)
    expected = np.full((m + 8, n + 8), -7, np.float32)
    expected[: 3 * block[0], : 3 * block[1]] = beyond
    part = expected[: min(m, 3 * block[0]), : min(n, 3 * block[1])]
    part[:] = x[: part.shape[0], : part.shape[1]] + 1
    np.testing.assert_array_equal(result(y), expected)


@pytest.mark.compiled
def test_what_a_descriptor_is_called(arrays):
    @triton.jit
    def kernel(x_ptr, N):
        x = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [16, 32])
        x + 1

    with pytest.raises(triton.CompilationError, match=r"a tensor_descriptor \(block_shape=\(16, 32\), padding_opt"):
        kernel[(1,)](arrays[0](np.zeros((32, 32), np.float32)), 32)


@triton.jit(noinline=True)
def describe(x_ptr, M, N, BM: tl.constexpr):
    return tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, 16])


@triton.jit(noinline=True)
def move(x, y, row):
    y.store([row, 0], x.load([row, 0]) * 2)


@triton.jit
def through_functions(x_ptr, y_ptr, M, N, BM: tl.constexpr):
    x, y = describe(x_ptr, M, N, BM), describe(y_ptr, M, N, BM)
    for row in range(0, M, BM):
        move(x, y, row)


@pytest.mark.compiled
def test_functions_that_are_not_inlined(arrays):
    """They take descriptors and give them back, the shape of the block known behind the call."""
    argument, result = arrays
    x, y = np.random.default_rng(2).random((32, 16), np.float32), argument(np.zeros((32, 16), np.float32))
    through_functions[(1,)](argument(x), y, 32, 16, 8)
    np.testing.assert_array_equal(result(y), x * 2)


@triton.jit
def copy_blocks(x, y):
    row = tl.program_id(0) * x.block_shape[0]
    y.store([row, 0], x.load([row, 0]))


def test_made_on_the_host(arrays):
    argument, result = arrays
    x, y = np.random.default_rng(1).random((32, 16), np.float32), argument(np.zeros((32, 16), np.float32))
    descriptors = [TensorDescriptor.from_tensor(array, [8, 16]) for array in (argument(x), y)]
    for rows in (8, 16):  # as the pre_hook of a configuration does
        for descriptor in descriptors:
            descriptor.block_shape = [rows, 16]
        y[:] = 0
        copy_blocks[(32 // rows,)](*descriptors)
        assert (result(y) == x).all()


@triton.jit
def gather_blocks(x, y, rows_ptr, COUNT: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, COUNT))
    y.scatter(x.gather(rows, 0), rows, 0)


def test_loads_that_round_to_tf32(arrays):
    """To 10 bits of mantissa, the nearest, ties to even; what is not finite stays."""
    argument, result = arrays
    bits = np.random.default_rng(4).integers(0, 1 << 32, (16, 16), np.uint32)
    bits[0, :10] = [
        0x7F800000,
        0xFF800000,
        0x7FFFFFFF,
        0xFF800001,
        0x3F801000,
        0x3F803000,
        0x3F801001,
        0x80000000,
        0x7F7FFFFF,
        0x1800,
    ]
    nearest = (bits + np.uint32(0xFFF) + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)
    expected = np.where(bits & 0x7F800000 == 0x7F800000, bits, nearest)
    assert expected[0, 4:8].tolist() == [0x3F800000, 0x3F804000, 0x3F802000, 0x80000000]
    x, rows = argument(bits.view(np.float32)), argument(np.arange(16, dtype=np.int32))
    for block, kernel, more in (([8, 16], copy_blocks, ()), ([1, 16], gather_blocks, (rows, 16))):
        y = argument(np.zeros((16, 16), np.float32))
        source = TensorDescriptor.from_tensor(x, block, round_f32_to_tf32=True)
        kernel[(2,)](source, TensorDescriptor.from_tensor(y, block), *more)
        np.testing.assert_array_equal(result(y).view(np.uint32), expected)
    with pytest.raises(ValueError, match="round_f32_to_tf32 is for arrays of float32, and .* are .*int32"):
        TensorDescriptor.from_tensor(rows, [8], round_f32_to_tf32=True)


@triton.jit
def matmul(a, b, c, K, BK: tl.constexpr):
    row, column = tl.program_id(0) * 32, tl.program_id(1) * 32
    total = tl.zeros((32, 32), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([column, k]).T, total, input_precision="ieee")
    c.store([row, column], total.to(c.dtype))


def test_matmul(arrays):
    argument, result = arrays
    rng = np.random.default_rng(2)
    a, b = rng.random((50, 70), np.float32), rng.random((40, 70), np.float32)
    c = argument(np.zeros((50, 40), np.float32))
    matmul[(2, 2)](*(TensorDescriptor.from_tensor(x, [32, 32]) for x in (argument(a), argument(b), c)), 70, 32)
    np.testing.assert_allclose(result(c), a @ b.T, rtol=1e-5)


@triton.jit
def move_rows(x_ptr, y_ptr, rows_ptr, M, N, COUNT: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, 16])
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [1, 16])
    rows = tl.load(rows_ptr + tl.arange(0, COUNT))
    y.scatter(x.gather(rows, 32), rows, 32)


def test_gather_and_scatter(arrays):
    argument, result = arrays
    x = np.random.default_rng(3).random((20, 40), np.float32)
    rows = np.array([3, 5, 19, 25, 0, -1, 7, 8], np.int32)
    y = argument(np.zeros_like(x))
    move_rows[(1,)](argument(x), y, argument(rows), 20, 40, len(rows))
    expected = np.zeros_like(x)
    inside = rows[(rows >= 0) & (rows < 20)]
    expected[inside, 32:] = x[inside, 32:]
    np.testing.assert_array_equal(result(y), expected)


@triton.jit
def atomics(x_ptr, value_ptr, N, STEP: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [N], [1], [16])
    value = tl.load(value_ptr + tl.arange(0, 16))
    if STEP == 0:
        x.atomic_add([8], value)
    elif STEP == 1:
        x.atomic_max([0], value)
    elif STEP == 2:
        x.atomic_min([4], value)
    elif STEP == 3:
        x.atomic_and([0], value)
    elif STEP == 4:
        x.atomic_or([0], value)
    elif STEP == 5:
        x.atomic_xor([16], value)
    else:
        tl.store_tensor_descriptor(x, [16], tl.load_tensor_descriptor(x, [-4]))


def test_atomics(arrays):
    argument, result = arrays
    value = np.arange(1, 17, dtype=np.int32)
    x = argument(np.arange(20, dtype=np.int32))
    expected = np.arange(20, dtype=np.int32)
    expected[8:] += value[:12]
    expected[:16] = np.maximum(expected[:16], value)
    expected[4:20] = np.minimum(expected[4:20], value)
    expected[:16] &= value
    expected[:16] |= value
    expected[16:] ^= value[:4]
    expected[16:] = 0
    for step in range(7):
        atomics[(1,)](x, argument(value), 20, step)
    np.testing.assert_array_equal(result(x), expected)


@triton.jit
def wrong(x_ptr, n, CASE: tl.constexpr):
    if CASE == "stride":
        tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 2], [4, 4])
    elif CASE == "unknown stride":
        tl.make_tensor_descriptor(x_ptr, [4, 4], [4, n], [4, 4])
    elif CASE == "row":
        tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 1], [4, 2])
    elif CASE == "rank":
        tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 1], [4])
    elif CASE == "padding":
        tl.make_tensor_descriptor(x_ptr, [4], [1], [4], padding_option="one")
    x = tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 1], [4, 4])
    if CASE == "offsets":
        x.load([0])
    elif CASE == "value":
        x.store([0, 0], tl.zeros((2, 4), tl.float32))
    elif CASE == "order":
        x.atomic_max([0, 0], tl.zeros((4, 4), tl.float32))


@pytest.mark.parametrize(
    "case, message",
    [
        ("stride", "tl.make_tensor_descriptor: .*the last stride must be 1"),
        ("unknown stride", "tl.make_tensor_descriptor: .*the last stride must be 1, and known to be"),
        ("row", "Descriptor block shape must have at least 16 bytes in the last dimension, which is 2 here"),
        ("rank", "the block has other dimensions than the array"),
        ("padding", "padding_option is"),
        ("offsets", "tl.load: .*one offset for each dimension"),
        ("order", "atomic_min and atomic_max of a descriptor take integers, fp16 and bf16"),
        ("value", r"the value has the shape \(2, 4\), and the block \(4, 4\)"),
    ],
)
def test_mistakes(case, message, arrays):
    with pytest.raises(triton.CompilationError, match=message):
        wrong[(1,)](arrays[0](np.zeros(16, np.float32)), 3, case)


@pytest.mark.parametrize(
    "shape, strides, block, padding, message",
    [
        ([], [], [], "zero", "0 dimensions"),
        ([4, 4], [4, 1], [4], "zero", "differ in length"),
        ([4, 4], [1, 4], [4, 4], "zero", "the last stride is 4"),
        ([4], [1], [4], "one", "padding is 'one'"),
    ],
)
def test_mistakes_on_the_host(shape, strides, block, padding, message):
    with pytest.raises(ValueError, match=message):
        TensorDescriptor(np.zeros(16, np.float32), shape, strides, block, padding)
