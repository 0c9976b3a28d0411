"""Kernels of flash-linear-attention (`pip install fla-core einops`), where it is installed, and the same in torch."""

import os

import pytest

torch = pytest.importorskip("torch")
if os.environ["TRITON_TARGET"].startswith("sim"):
    pytest.skip("it takes the target for a device of torch", allow_module_level=True)
pytest.importorskip("fla.ops", reason="flash-linear-attention is not installed")

import torch.nn.functional as F  # noqa: E402
from fla.modules.l2norm import l2norm  # noqa: E402
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule  # noqa: E402
from fla.ops.gla import fused_recurrent_gla  # noqa: E402
from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla  # noqa: E402
from fla.ops.utils import chunk_local_cumsum  # noqa: E402


@pytest.fixture(autouse=True)
def seed(device):
    torch.manual_seed(0)


def tensors(device, *shapes):
    return [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]


def gradients(output, weights, inputs):
    return torch.autograd.grad((output * weights).sum(), inputs, retain_graph=True)


def test_l2norm(device):
    (x,) = tensors(device, (4, 16, 64))
    expected, weights = F.normalize(x, dim=-1), torch.randn(4, 16, 64, device=device)
    found = l2norm(x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    pairs = zip(gradients(found, weights, [x]), gradients(expected, weights, [x]), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_sums_within_chunks(device):
    (gates,) = tensors(device, (2, 128, 4))
    expected = gates.view(2, 2, 64, 4).cumsum(2).view(2, 128, 4)
    torch.testing.assert_close(chunk_local_cumsum(gates, 64), expected, atol=1e-4, rtol=1e-4)


def recurrence(q, k, v, decay):
    """Linear attention with a decay: of each head, or of each of its features."""
    state = torch.zeros(*k[:, 0].shape, v.shape[-1], device=q.device)
    outputs = []
    for t in range(q.shape[1]):
        step = decay[:, t].exp()
        state = state * (step[..., None] if step.dim() == 3 else step[..., None, None])
        state = state + k[:, t, :, :, None] * v[:, t, :, None, :]
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * q.shape[-1] ** -0.5, state))
    return torch.stack(outputs, 1)


@pytest.mark.parametrize("function", [fused_recurrent_gla, fused_recurrent_simple_gla, chunk_simple_gla])
def test_gated_linear_attention(function, device):
    q, k, v = tensors(device, *[(1, 64, 2, 32)] * 3)
    per_feature = function is fused_recurrent_gla
    (gates,) = tensors(device, (1, 64, 2, 32) if per_feature else (1, 64, 2))
    decay = F.logsigmoid(gates)
    found, _ = function(q, k, v, decay)
    expected, weights = recurrence(q, k, v, decay), torch.randn(1, 64, 2, 32, device=device)
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=2e-3)
    inputs = [q, k, v, gates]
    pairs = zip(gradients(found, weights, inputs), gradients(expected, weights, inputs), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, atol=5e-3, rtol=5e-3)


def test_gated_delta_rule(device):
    q, k, v = tensors(device, *[(1, 128, 2, 32)] * 3)
    k, beta, decay = F.normalize(k, dim=-1), torch.rand(1, 128, 2, device=device), torch.randn(1, 128, 2, device=device)
    decay = F.logsigmoid(decay)
    with torch.no_grad():
        step_by_step, _ = fused_recurrent_gated_delta_rule(q, k, v, decay, beta=beta)
        in_chunks, _ = chunk_gated_delta_rule(q, k, v, decay, beta)
    torch.testing.assert_close(in_chunks, step_by_step, atol=2e-3, rtol=2e-3)
