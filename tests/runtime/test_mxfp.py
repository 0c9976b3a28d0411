"""Tensors of microscaling formats on the host: `triton.tools.mxfp`."""

import pytest

torch = pytest.importorskip("torch")

from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor, fp8e8m0_to_float32  # noqa: E402

pytestmark = pytest.mark.host
VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def test_every_number_of_four_bits():
    tensor = MXFP4Tensor(torch.cat([VALUES, -VALUES]))
    assert tensor.data.tolist() == list(range(16))
    assert torch.equal(tensor.to(torch.float32), torch.cat([VALUES, -VALUES]))
    assert tensor.to(torch.bfloat16).dtype == torch.bfloat16


def test_every_scale():
    scale = torch.arange(256, dtype=torch.uint8)
    expected = [2.0 ** (code - 127) for code in range(255)]
    for bytes_ in (scale, scale.view(torch.int8)):
        assert fp8e8m0_to_float32(bytes_)[:255].tolist() == expected and fp8e8m0_to_float32(bytes_)[255].isnan()
    with pytest.raises(AssertionError, match="none 2"):
        MXFP4Tensor(size=(4, 4)).random().to_packed_tensor(dim=2)


def test_rounding_to_nearest_even():
    middles = (VALUES[1:] + VALUES[:-1]) / 2
    even = [0, 2, 2, 4, 4, 6, 6]
    assert MXFP4Tensor(middles).data.tolist() == even
    assert MXFP4Tensor(-middles).data.tolist() == [8 + code for code in even]
    assert MXFP4Tensor(middles - 1e-3).data.tolist() == list(range(7))
    assert MXFP4Tensor(middles + 1e-3).data.tolist() == list(range(1, 8))
    assert MXFP4Tensor(torch.tensor([1e30, -float("inf")])).to(torch.float32).tolist() == [6, -6]
    with pytest.raises(ValueError, match="e2m1 has no NaN"):
        MXFP4Tensor(torch.tensor([float("nan")]))


@pytest.mark.parametrize("shape, dim", [((4, 6), 1), ((4, 6), 0), ((5, 7), 1), ((5, 7), 0), ((3, 4, 5), -1)])
def test_packing(shape, dim):
    tensor = MXFP4Tensor(size=shape).random()
    packed = tensor.to_packed_tensor(dim)
    assert packed.shape[dim] == (shape[dim] + 1) // 2
    assert torch.equal(tensor.unpack_packed_tensor(packed, dim, shape), tensor.data)
    first = tensor.data.select(dim, 0) | tensor.data.select(dim, 1) << 4
    assert torch.equal(packed.select(dim, 0), first)


def test_scales():
    values = torch.tensor([1.0, 1.99, 2.0, 2.0**-127, 2.0**127, 0.0, -1.0, float("nan"), float("inf")])
    tensor = MXScaleTensor(values)
    assert tensor.data.tolist() == [127, 127, 128, 0, 254, 255, 255, 255, 255]
    assert tensor.to(torch.float32)[:5].tolist() == [1, 1, 2, 2.0**-127, 2.0**127]
    assert tensor.to(torch.float32)[5:].isnan().all()
    drawn = MXScaleTensor(size=(1000,)).random(low=1 / 128, high=2.0).to(torch.float32)
    assert set(drawn.tolist()) == {2.0**exponent for exponent in range(-7, 2)}
    for kind in (MXScaleTensor, MXFP4Tensor):
        with pytest.raises(ValueError, match="needs data, or a size"):
            kind()
