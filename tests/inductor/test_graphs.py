"""Graphs that torch.compile makes kernels of, beside the same program without it. `-m slow` is all of them."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; the extra `test` has it")
from torch_graphs import GRADIENTS, GRAPHS, Inputs, compiled_by_us  # noqa: E402

QUICK = {"chain", "softmax", "layer_norm", "cumulative_sums", "scattering", "norm_and_softmax_backward"}


def cases(graphs):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in graphs]


def compare(function, arguments, **tolerance):
    """Run the function with and without the compiler on copies of the arguments, which it may change."""
    copies = [argument.clone(memory_format=torch.preserve_format) for argument in arguments]
    copies = [kept_view(argument, copy) for argument, copy in zip(arguments, copies, strict=True)]
    result = compiled_by_us(function, *copies)
    expected = function(*arguments)
    torch.testing.assert_close(result, expected, equal_nan=True, **tolerance)
    torch.testing.assert_close(copies, list(arguments), **tolerance)


def kept_view(argument, copy):
    """A copy that lies in memory as the argument does, its offset included."""
    if argument.storage_offset() == 0 and argument.is_contiguous():
        return copy
    storage = argument.untyped_storage().clone()
    empty = torch.empty(0, dtype=argument.dtype, device=argument.device)
    return empty.set_(storage, argument.storage_offset(), argument.shape, argument.stride())


@pytest.mark.parametrize("name", cases(GRAPHS))
def test_graph(name, device):
    function, inputs, tolerance = GRAPHS[name]
    compare(function, inputs(Inputs(device)), **tolerance)


@pytest.mark.parametrize("name", cases(GRADIENTS))
def test_gradients(name, device):
    function, inputs, tolerance = GRADIENTS[name]
    arguments = [each.requires_grad_() if each.is_floating_point() else each for each in inputs(Inputs(device))]
    wanted = [each for each in arguments if each.requires_grad]

    def gradients(run):
        outputs = run()
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        weights = [torch.linspace(-1, 1, each.numel(), device=device).view_as(each) for each in outputs]
        return torch.autograd.grad(outputs, wanted, weights)

    result = gradients(lambda: compiled_by_us(function, *arguments))
    torch.testing.assert_close(result, gradients(lambda: function(*arguments)), **tolerance)


def test_there_are_enough():
    assert len(GRAPHS) + len(GRADIENTS) >= 40


# ---- extents that change


@pytest.mark.slow
def test_dynamic_extents(device):
    def function(x, y):
        return torch.softmax(x + y, -1), (x * y).sum(0), x.relu().mean()

    compiled = torch.compile(function, dynamic=True)
    for rows in (5, 16, 64, 128, 1, 1000):
        for columns in (7, 48, 1500):
            make = Inputs(device)
            x, y = make.normal(rows, columns), make.normal(columns)
            torch.testing.assert_close(compiled(x, y), function(x, y), rtol=1e-4, atol=1e-4)


# ---- random numbers, which are others than without the compiler


@pytest.mark.slow
def test_dropout(device):
    x = Inputs(device).positive(200, 300)

    def function(x):
        return F.dropout(x, 0.25) * 3

    torch.manual_seed(1)
    result = compiled_by_us(function, x)
    kept = result != 0
    torch.testing.assert_close(result[kept], (x / 0.75 * 3)[kept])
    assert abs(kept.float().mean() - 0.75) < 0.01
    torch.manual_seed(1)
    assert (compiled_by_us(function, x) == result).all()
    assert (compiled_by_us(function, x) != result).any()


@pytest.mark.slow
def test_random_numbers(device):
    def function(x):
        return torch.rand_like(x), torch.randn_like(x), torch.randint(-5, 5, x.shape, device=x.device) + 0

    uniform, normal, number = compiled_by_us(function, torch.empty(300, 400, device=device))
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert number.min() == -5 and number.max() == 4 and abs(number.float().mean() + 0.5) < 0.05


F = torch.nn.functional
