"""Tensors of microscaling formats on the host, for tests and references (OCP Microscaling Formats 1.0): numbers of 4
bits (e2m1) and scales that are powers of two (e8m0). They need torch."""

import torch

# The magnitudes of e2m1, by code: one bit of mantissa, two of exponent.
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_BIAS, _NAN = 127, 255  # of e8m0


class _Codes:
    """``data``: a byte each; None until `random` fills it, of what was made of a `size` alone."""

    def __init__(self, data=None, size=None, device=None):
        if data is None and size is None:
            raise ValueError(f"{type(self).__name__} needs data, or a size to be filled by random()")
        self.device = data.device if data is not None and device is None else device
        self.size = tuple(data.shape) if data is not None else size
        self.data = None if data is None else self._encode(torch.as_tensor(data, device=self.device))


class MXFP4Tensor(_Codes):
    """Numbers of 4 bits. ``data`` has a code a byte: sign, two bits of exponent, one of mantissa.

    :param data: a tensor of floats, which are rounded to the nearest (ties to even); what is too large becomes 6.
    :param size: without `data`, the shape, to be filled by `random`.
    """

    @staticmethod
    def _encode(values):
        magnitudes = torch.tensor(_MAGNITUDES, dtype=torch.float64, device=values.device)
        wide = values.double()
        if wide.isnan().any():
            raise ValueError("e2m1 has no NaN")
        size = wide.abs().clamp(max=_MAGNITUDES[-1])
        middles = (magnitudes[1:] + magnitudes[:-1]) / 2
        low, high = torch.searchsorted(middles, size), torch.searchsorted(middles, size, right=True)
        code = torch.where(low != high, low + low % 2, low)  # on a middle: the even code of both
        return (code | wide.signbit().long() << 3).to(torch.uint8)

    def random(self):
        """Fill it with codes that are all equally likely; returns itself."""
        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype):
        """The numbers as floats of a dtype of torch, exactly."""
        table = torch.tensor([*_MAGNITUDES, *(-each for each in _MAGNITUDES)], dtype=dtype, device=self.data.device)
        return table[self.data.long()]

    def to_packed_tensor(self, dim):
        """Two codes a byte along `dim`, the first of each pair in the low bits; an odd extent gets one more 0."""
        assert -self.data.ndim <= dim < self.data.ndim, f"a tensor of {self.data.ndim} dimensions has none {dim}"
        data = self.data.movedim(dim, -1)
        if data.shape[-1] % 2:
            data = torch.nn.functional.pad(data, (0, 1))
        return (data[..., 0::2] | data[..., 1::2] << 4).movedim(-1, dim).contiguous()

    def unpack_packed_tensor(self, packed_tensor, dim, original_shape):
        """The codes, one a byte, of what `to_packed_tensor` gave for a tensor of `original_shape`."""
        packed = packed_tensor.movedim(dim, -1)
        data = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
        return data.movedim(-1, dim).narrow(dim, 0, original_shape[dim]).contiguous()


class MXScaleTensor(_Codes):
    """Scales that are powers of two: ``data`` has the exponent and 127 in a byte; 255 is NaN.

    :param data: a tensor of floats: of each the largest power of two that is not larger, and NaN of what is not
        positive.
    :param size: without `data`, the shape, to be filled by `random`.
    """

    @staticmethod
    def _encode(values):
        wide = values.double()
        exponent = torch.frexp(wide)[1] - 1
        code = (exponent + _BIAS).clamp(0, _NAN - 1)
        return torch.where((wide > 0) & wide.isfinite(), code, _NAN).to(torch.uint8)

    def random(self, low=None, high=None):
        """Fill it with powers of two from `low` to `high` (all there are, unless said); returns itself."""
        first = 0 if low is None else max(0, _exponent(low) + _BIAS)
        last = _NAN - 1 if high is None else min(_NAN - 1, _exponent(high) + _BIAS)
        self.data = torch.randint(first, last + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype):
        """The scales as floats of a dtype of torch."""
        return fp8e8m0_to_float32(self.data).to(dtype)


def fp8e8m0_to_float32(scale):
    """The scales in a tensor of bytes, ``uint8`` or ``int8``, as float32."""
    data = scale.view(torch.uint8).int()
    scales = torch.ldexp(torch.ones_like(data, dtype=torch.float64), data - _BIAS)
    return torch.where(data == _NAN, float("nan"), scales).float()


def _exponent(number):
    from math import frexp

    return frexp(number)[1] - 1
