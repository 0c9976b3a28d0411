"""Programs of torch whose compiled form is full of kernels: GRAPHS is name to (function, its arguments).

The arguments are made by a function of `Inputs`; where the result is a tuple, all of its parts are compared.
"""

import torch
import torch.nn.functional as F

GRAPHS = {}


def compiled_by_us(function, *arguments, **options):
    """Result of the function as torch.compile has it, in which there has to be a kernel."""
    from torch._inductor.utils import run_and_get_code

    result, code = run_and_get_code(torch.compile(function, **options), *arguments)
    assert any("async_compile.triton(" in text or "@triton.jit" in text for text in code), "\n".join(code)
    return result


class Inputs:
    """Tensors on a device, always the same ones."""

    def __init__(self, device):
        self.device, self.generator = device, torch.Generator().manual_seed(0)

    def normal(self, *shape, dtype=torch.float32):
        return torch.randn(shape, generator=self.generator).to(dtype).to(self.device)

    def positive(self, *shape, dtype=torch.float32):
        return (torch.rand(shape, generator=self.generator) + 0.1).to(dtype).to(self.device)

    def integers(self, low, high, *shape, dtype=torch.int64):
        return torch.randint(low, high, shape, generator=self.generator).to(dtype).to(self.device)

    def flags(self, *shape):
        return self.integers(0, 2, *shape).to(torch.bool)


def graph(inputs, **tolerance):
    """Decorator: a graph of the function's name."""

    def register(function):
        GRAPHS[function.__name__] = function, inputs, tolerance
        return function

    return register


# ---- element by element


@graph(lambda make: (make.normal(1000, 37), make.normal(1000, 37)))
def chain(x, y):
    return torch.relu(x + y) * 2 + y.sin() - x / (y.abs() + 1)


@graph(lambda make: (make.normal(64, 1, 33), make.normal(17, 1), make.normal(33)))
def broadcast(x, y, z):
    return x * y + z, x.expand(64, 17, 33) - z


@graph(lambda make: (make.normal(5000),), rtol=1e-5, atol=1e-5)
def activations(x):
    return F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.elu(x), F.hardswish(x), F.softplus(x)


@graph(lambda make: (make.normal(3000), make.positive(3000)), rtol=1e-4, atol=1e-5)
def functions(x, y):
    first = x.exp(), y.log1p(), x.tanh(), x.erf(), y.pow(x), torch.atan2(x, y), y.rsqrt(), x.sigmoid()
    return *first, x.sinh(), x.atan(), y.log2(), y.log10(), x.expm1(), torch.hypot(x, y), torch.copysign(y, x)


@graph(lambda make: (make.positive(3000) * 3,), rtol=1e-4, atol=1e-5)
def special_functions(x):
    return torch.lgamma(x), torch.erfc(x), torch.special.erfinv(x / 4), torch.acosh(x + 1), torch.asin(x / 4)


@graph(lambda make: (make.integers(-100, 100, 999), make.integers(1, 9, 999)))
def integers(x, y):
    return (
        x // y,
        x % y,
        torch.fmod(x, y),
        x & y,
        x | y,
        x ^ y,
        x << 2,
        x >> 1,
        ~x,
        x.abs(),
        torch.sign(x),
        torch.gcd(x, y),
    )


@graph(lambda make: (make.normal(500, 3), make.normal(500, 3), make.flags(500, 3)))
def choices(x, y, mask):
    first = torch.where(mask & (x > y), x, -y), x.clamp(-0.5, 0.5), torch.maximum(x, y), torch.minimum(x, y)
    return *first, x.masked_fill(mask, 7.0), x.isnan() | mask, torch.logical_xor(mask, x < 0), x.nan_to_num()


@graph(
    lambda make: (make.normal(300, dtype=torch.float16), make.normal(300), make.integers(-9, 9, 300, dtype=torch.int32))
)
def mixed_types(half, single, number):
    return half + single, half * number, (single + number).to(torch.bfloat16), half.double() * 2, number.to(torch.uint8)


@graph(
    lambda make: (make.normal(64, 96, dtype=torch.bfloat16), make.normal(96, dtype=torch.bfloat16)),
    rtol=2e-2,
    atol=2e-2,
)
def bfloat16(x, y):
    return F.silu(x) * y + x, (x * y).sum(-1), torch.softmax(x, -1)


@graph(lambda make: (make.normal(777, dtype=torch.float64), make.positive(777, dtype=torch.float64)))
def float64(x, y):
    return x.sin() * y.log(), (x - y).mean(), x.exp() / y


@graph(lambda make: (make.normal(200) * 20, make.integers(0, 255, 200, dtype=torch.uint8)))
def conversions(x, y):
    return (
        x.to(torch.int8),
        x.long(),
        x.to(torch.int32).float(),
        y.float() / 255,
        y.to(torch.int16) - 300,
        x > 0,
        x.bool(),
    )


@graph(
    lambda make: (
        make.normal(64, 100).t(),
        make.normal(100, 64)[:, ::2],
        make.normal(101, 67)[1:, 3:].contiguous()[:, :32],
    )
)
def strides(x, y, z):
    return x[:, :32] + y * z, (x.t() @ x).relu().t() + 1


@graph(lambda make: (make.normal(1001)[1:], make.normal(2, 501)[1, 1:]))
def misaligned(x, y):
    return x.sin() + 1, x[:500] * y, y.sum()


@graph(lambda make: (make.normal(50, 40), make.normal(50, 40)))
def in_place(x, y):
    x.add_(y).mul_(2)
    y[3:7] = x[:4] - 1
    return x.relu(), y.sum(0)


# ---- reductions


@graph(lambda make: (make.normal(130, 70, 9),))
def sums(x):
    return x.sum(), x.sum(0), x.mean(1), x.sum((0, 2)), x.sum(-1, keepdim=True), x.abs().sum(1).sqrt()


@graph(lambda make: (make.normal(90, 301),))
def extremes(x):
    return x.amax(0), x.amin(1), x.max(1), x.min(0), x.argmax(1), x.argmin(), x.max()


@graph(lambda make: (make.normal(90, 301),))
def extremes_with_nan(x):
    x = torch.where(x > 2.5, float("nan"), x)
    return x.amax(1), x.max(1).values, x.nansum(0), x.isnan().any(0), x.isfinite().all(1)


@graph(lambda make: (make.normal(80, 500) + 100,), rtol=1e-4, atol=1e-4)
def variance(x):
    return x.var(1), x.std(0), torch.var_mean(x, 1, correction=0), x.var()


@graph(lambda make: (make.positive(40, 60) + 0.4, make.flags(40, 60)), rtol=1e-4, atol=1e-5)
def products(x, mask):
    return x.prod(1), mask.any(), mask.all(1), mask.sum(0), x.norm(dim=1), torch.logsumexp(x, 0), (x > 1).float().mean()


@graph(lambda make: (make.normal(200, 333), make.normal(30, 5000)), rtol=1e-4, atol=1e-6)
def softmax(x, y):
    return torch.softmax(x, -1), torch.log_softmax(x, 0), torch.softmax(y * 3, 1), F.softmin(x, 1)


@graph(
    lambda make: (make.normal(60, 257), make.normal(257), make.normal(257), make.normal(9, 3000)), rtol=1e-4, atol=1e-5
)
def layer_norm(x, weight, bias, y):
    return F.layer_norm(x, (257,), weight, bias), F.layer_norm(y, (3000,)), F.rms_norm(x, (257,), weight)


@graph(lambda make: (make.normal(4, 12, 9, 9), make.normal(12), make.normal(12)), rtol=1e-4, atol=1e-5)
def group_and_batch_norm(x, weight, bias):
    mean, variance = torch.zeros_like(weight), torch.ones_like(weight)
    return (
        F.group_norm(x, 3, weight, bias),
        F.batch_norm(x, mean, variance, weight, bias, training=True),
        mean,
        variance,
    )


@graph(lambda make: (make.normal(1 << 18),), rtol=1e-4, atol=1e-3)
def large_reduction(x):
    return x.sum(), x.max(), (x * x).mean(), x.argmax()


@graph(lambda make: (make.normal(20000, 5),), rtol=1e-4, atol=1e-3)
def tall_reduction(x):
    return x.sum(0), x.amax(0), x.var(0)


@graph(lambda make: (make.normal(64, 1000), make.integers(0, 1000, 64)))
def cross_entropy(x, classes):
    return F.cross_entropy(x, classes), F.cross_entropy(x, classes, label_smoothing=0.1), F.nll_loss(x, classes)


@graph(lambda make: (make.normal(16, 8, 40), make.normal(40)))
def reduction_then_more(x, y):
    centred = x - x.mean(-1, keepdim=True)
    return (centred / (centred.norm(dim=-1, keepdim=True) + 1e-5)) * y + x.amax(1, keepdim=True)


# ---- scans and sorting


@graph(lambda make: (make.normal(30, 200), make.integers(-3, 4, 40, 70)), rtol=1e-4, atol=1e-4)
def cumulative_sums(x, y):
    return x.cumsum(1), x.cumsum(0), y.cumsum(1), torch.flip(x, (1,)).cumsum(1)


@graph(lambda make: (make.positive(30, 50) + 0.5,), rtol=1e-4, atol=1e-4)
def cumulative_others(x):
    return x.cumprod(1), x.cummax(1), x.cummin(0), x.logcumsumexp(1)


@graph(lambda make: (make.normal(3, 5000),), rtol=1e-4, atol=1e-3)
def long_scan(x):
    return x.cumsum(-1) / 10


@graph(lambda make: (make.normal(20, 60), make.integers(0, 9, 20, 64)))
def sorting(x, y):
    return x.sort(1), y.sort(dim=1, stable=True), x.sort(1, descending=True).values, x.argsort(1)


# ---- indexing


@graph(lambda make: (make.normal(50, 30), make.integers(0, 50, 20), make.integers(0, 30, 50, 4)))
def gathering(x, rows, columns):
    return (
        x[rows],
        x.index_select(0, rows),
        x.gather(1, columns),
        x[rows, 3],
        x[rows[:, None], columns[:20]],
        x.take(rows),
    )


@graph(lambda make: (make.normal(40, 8), make.integers(0, 10, 40), make.normal(10, 8)), rtol=1e-4, atol=1e-4)
def scattering(x, rows, into):
    indices = rows[:, None].expand(40, 8)
    first = torch.zeros(10, 8, device=x.device).scatter_add(0, indices, x), into.index_add(0, rows, x)
    return *first, into.index_put((rows,), x, accumulate=True), into.scatter_reduce(0, indices, x, "amax")


@graph(lambda make: (make.normal(100, 24), make.integers(0, 100, 6, 7), make.integers(0, 100, 6, 7)))
def embedding(table, indices, others):
    return F.embedding(indices, table) * 2 + F.embedding(others, table), F.one_hot(indices, 100).sum(1)


@graph(lambda make: (make.normal(1000) * 3, torch.linspace(-4, 4, 33, device=make.device)))
def buckets(x, boundaries):
    return torch.bucketize(x, boundaries), torch.bucketize(x, boundaries, right=True) + 1


@graph(lambda make: (make.normal(60, 60), make.flags(60)))
def masks(x, mask):
    return (
        x.tril() + x.triu(2),
        x.diagonal().sum(),
        torch.where(mask[:, None], x, 0.0),
        x * torch.eye(60, device=x.device),
    )


# ---- shapes


@graph(lambda make: (make.normal(20, 7), make.normal(20, 11), make.integers(0, 9, 20, 2)))
def concatenation(x, y, z):
    return torch.cat([x * 2, y, z.float()], 1), torch.stack([x, x + 1], 1), torch.cat([x, x.relu()]).sum(0)


@graph(lambda make: (make.normal(3, 10, 12),))
def padding(x):
    first = F.pad(x, (1, 2, 3, 0), value=5.0), F.pad(x, (2, 2), mode="reflect"), F.pad(x, (1, 3), mode="replicate")
    return *first, x.roll((2, -3), (0, 2)), x.flip(1, 2)


@graph(lambda make: (make.normal(2, 3, 17, 19),))
def pooling(x):
    first = (
        F.max_pool2d(x, 3, 2),
        F.avg_pool2d(x, 2),
        F.adaptive_avg_pool2d(x, 4),
        F.max_pool2d(x, 2, return_indices=True),
    )
    return *first, F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)


@graph(lambda make: (make.normal(2, 3, 8, 9),), rtol=1e-4, atol=1e-5)
def resizing(x):
    return (
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, (12, 13), mode="bilinear"),
        F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
    )


@graph(lambda make: (make.normal(6, 5, 4),))
def rearranging(x):
    first = x.permute(2, 0, 1).reshape(4, 30), x.repeat(2, 1, 3), x.unfold(1, 3, 1).sum(-1), x.tile(2)
    return *first, x.unsqueeze(1).expand(6, 2, 5, 4).flatten(0, 1) + 1, x.view(30, 4).t().contiguous()


# ---- larger pieces


@graph(lambda make: (make.normal(32, 48), make.normal(64, 48), make.normal(64)), rtol=1e-4, atol=1e-4)
def linear(x, weight, bias):
    return F.gelu(F.linear(x, weight, bias)) + 1, (x @ weight.t()).softmax(-1)


@graph(
    lambda make: (make.normal(2, 4, 33, 16), make.normal(2, 4, 33, 16), make.normal(2, 4, 33, 16)), rtol=1e-4, atol=1e-5
)
def attention(q, k, v):
    scores = q @ k.transpose(-1, -2) / 4
    mask = torch.ones(33, 33, device=q.device, dtype=torch.bool).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


@graph(lambda make: (make.normal(2, 30, 4, 16), torch.arange(30, device=make.device)), rtol=1e-4, atol=1e-5)
def rotary(x, positions):
    angles = positions[:, None] / 10000 ** (torch.arange(0, 16, 2, device=x.device) / 16)
    cosines, sines = angles.cos()[None, :, None], angles.sin()[None, :, None]
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack([first * cosines - second * sines, first * sines + second * cosines], -1).flatten(-2)


@graph(lambda make: (make.normal(50), make.normal(50), make.normal(50), make.positive(50)))
def adam(parameter, gradient, mean, square):
    mean = mean * 0.9 + gradient * 0.1
    square = square * 0.999 + gradient * gradient * 0.001
    return parameter - 1e-3 * mean / (square.sqrt() + 1e-8), mean, square


# ---- gradients: of functions in GRADIENTS they are compared, for all floating-point arguments

GRADIENTS = {}


def gradient_graph(inputs, **tolerance):
    """Decorator: a graph whose gradients are wanted."""

    def register(function):
        GRADIENTS[function.__name__] = function, inputs, tolerance
        return function

    return register


@gradient_graph(lambda make: (make.normal(40, 30), make.normal(30)))
def chain_backward(x, y):
    return torch.tanh(x * y) + F.gelu(x) * y.sigmoid()


@gradient_graph(lambda make: (make.normal(40, 65), make.normal(65), make.normal(65)), rtol=1e-4, atol=1e-4)
def norm_and_softmax_backward(x, weight, bias):
    return torch.softmax(F.layer_norm(x, (65,), weight, bias), -1)


@gradient_graph(
    lambda make: (make.normal(30, 12), make.normal(20, 12), make.integers(0, 30, 9), make.integers(0, 20, 9)),
    rtol=1e-4,
    atol=1e-5,
)
def embedding_backward(table, classes, indices, wanted):
    return F.cross_entropy(F.embedding(indices, table) @ classes.t(), wanted)


@gradient_graph(lambda make: (make.normal(2, 3, 10, 10), make.normal(3)), rtol=1e-4, atol=1e-4)
def pooling_backward(x, scale):
    return F.max_pool2d(x, 2) * scale[:, None, None], F.avg_pool2d(x, 3).cumsum(-1)


@gradient_graph(lambda make: (make.normal(6, 5), make.normal(7, 5), make.integers(0, 13, 20)))
def indexing_backward(x, y, rows):
    return torch.cat([x, y.exp()])[rows].amax(1), (x.sum(0) * y).var(1)
