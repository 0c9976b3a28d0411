"""12: convolutions as products of matrices, with look-up tables: forward and both gradients, in two languages."""

# %% [markdown]
# # 12. Convolutions
#
# A convolution slides a small window of weights over an image:
#
# $$y_{n,k,p,q} = \sum_{c,r,s} x_{n,c,\,p \cdot t + r,\,q \cdot t + s} \cdot w_{k,c,r,s}$$
#
# with n images of c channels, k filters of r times s weights each, and a stride t. Read it once more: for each
# (n, p, q) and each k there is a sum over (c, r, s). That is a product of matrices, whose first one
# nobody has: its row (n, p, q) has the elements of x under the window. This lesson
#
# - multiplies such a matrix without making it: addresses come from **look-up tables**,
# - gets the gradients for data and for weights from the same kernel, with other tables,
# - writes the kernel twice, in Python and in Triton-C.

# %%
import numpy as np
import torch
from torch.nn.functional import pad

import triton
import triton.c
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = triton.runtime.driver.active.get_current_target().backend == "cpu"  # and not the simulator of a GPU

# %% [markdown]
# ## Two tables
#
# The place of $x_{n,c,h,w}$ in memory is $n \cdot CHW + c \cdot HW + h \cdot W + w$. With $h = p \cdot t + r$ and
# $w = q \cdot t + s$ this falls into two parts. One depends on (n, p, q) only, the other on (c, r, s) only:
#
# $$(n \cdot CHW + p \cdot t \cdot W + q \cdot t) + (c \cdot HW + r \cdot W + s)$$
#
# So an element of the matrix lies at `a + rows[m] + columns[k]`, and both tables are computed once for all
# images of a size. Windows that reach over the edge would break it: an address has no idea of edges. The
# image is given a border of zeros instead, which costs little.
#
# ## The kernel
#
# It is the matrix product of lesson 3, but for the addresses of `a` and of the result's rows. The table's next
# entries are loaded on the way.


# %%
@triton.jit
def gathered_product_kernel(
    a, rows, columns, b, out, out_rows, M, N, K, b_k, b_n, out_n,
    TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * TM + tl.arange(0, TM)
    n = tl.program_id(1) * TN + tl.arange(0, TN)
    k = tl.arange(0, TK)
    pa = a + tl.load(rows + m, mask=m < M, other=0)[:, None]
    pb = b + k[:, None] * b_k + n * b_n
    total = tl.zeros((TM, TN), tl.float32)
    for first in range(0, K, TK):
        inside = k < K - first
        column = tl.load(columns + first + k, mask=inside, other=0)
        x = tl.load(pa + column, mask=(m < M)[:, None] & inside, other=0)
        y = tl.load(pb, mask=inside[:, None] & (n < N), other=0)
        total = tl.dot(x, y, total)
        pb += TK * b_k
    place = tl.load(out_rows + m, mask=m < M, other=0)[:, None] + n * out_n
    tl.store(out + place, total, mask=(m < M)[:, None] & (n < N))


# %% [markdown]
# The same in Triton-C, the language that Triton had first (lesson 13 is about it). `? :` with a tile in front
# is a masked load, and `@` a masked store.

# %%
gathered_product_c = triton.c.compile("""
const tunable int TM = {64, 32, 128};
const tunable int TN = {64, 32, 128};
const tunable int TK = {32, 16};

kernel void gathered_product(float *a, int *rows, int *columns, float *b, float *out, int *out_rows,
                             int M, int N, int K, int b_k, int b_n, int out_n) {
  int m[TM] = get_global_range(0);
  int n[TN] = get_global_range(1);
  int k[TK] = 0 ... TK;
  int row[TM] = m < M ? *(rows + m) : 0;
  float *pa[TM, 1] = a + row[:, newaxis];
  float *pb[TK, TN] = b + k[:, newaxis] * b_k + n * b_n;
  float total[TM, TN] = 0;
  for (int first = 0; first < K; first += TK) {
    bool inside[TK] = k < K - first;
    int column[TK] = inside ? *(columns + first + k) : 0;
    float x[TM, TK] = (m < M)[:, newaxis] && inside ? *(pa + column) : 0;
    float y[TK, TN] = inside[:, newaxis] && n < N ? *pb : 0;
    total = dot(x, y, total);
    pb += TK * b_k;
  }
  bool kept[TM, TN] = (m < M)[:, newaxis] && n < N;
  int place[TM] = m < M ? *(out_rows + m) : 0;
  @kept *(out + place[:, newaxis] + n * out_n) = total;
}
""")

# %% [markdown]
# ## Tables for the three products
#
# The forward pass multiplies (n, p, q) x (c, r, s) with the weights, (c, r, s) x k.
#
# **The gradient for data** sends each dy back to where it came from: $dx_{n,c,h,w}$ sums dy over all k, r and s
# for which $h = p \cdot t + r - \mathrm{padding}$, and so on. That is a convolution too: of dy, with $t - 1$ zeros
# between its elements and a border around, with weights that are turned by 180 degrees and have c and k exchanged.
#
# **The gradient for weights** sums over images and places,
#
# $$dw_{k,c,r,s} = \sum_{n,p,q} dy_{n,k,p,q} \cdot x_{n,c,\,p \cdot t + r,\,q \cdot t + s}$$
#
# The matrix of x is the one of the forward pass, transposed: rows and columns exchange their tables.


# %%
def table(*terms):
    """The sums of all combinations: terms are (extent, stride), the last one runs fastest."""
    total = np.zeros(1, np.int64)
    for extent, stride in terms:
        total = (total[:, None] + np.arange(extent) * stride).ravel()
    assert total.max() < 2**31
    return torch.from_numpy(total.astype(np.int32)).to(DEVICE)


TABLES: dict = {}


def window_tables(shape, filter_shape, stride):
    """Rows (n, p, q) and columns (c, r, s) of an image that has its border already."""
    key = (shape, filter_shape, stride)
    if key not in TABLES:
        (n, c, h, w), (r, s) = shape, filter_shape
        p, q = (h - r) // stride + 1, (w - s) // stride + 1
        rows = table((n, c * h * w), (p, stride * w), (q, stride))
        TABLES[key] = rows, table((c, h * w), (r, w), (s, 1)), (p, q)
    return TABLES[key]


def place_table(n, channels, p, q):
    """Where the (n, p, q) of a result with so many channels lie."""
    key = (n, channels, p, q)
    if key not in TABLES:
        TABLES[key] = table((n, channels * p * q), (p, q), (q, 1))
    return TABLES[key]


def tiles_for(m, n):
    if ON_CPU:
        return dict(TM=32, TN=32, TK=32, num_warps=4)
    wide = 128 if m * n >= 128 * 128 * 64 else 64
    return dict(TM=wide, TN=min(wide, max(triton.next_power_of_2(n), 16)), TK=32, num_warps=8 if wide == 128 else 4)


def product(language, a, rows, columns, b, strides, out, out_rows, out_n):
    """out[out_rows[m] + n * out_n] = sum over k of a[rows[m] + columns[k]] * b[k, n]."""
    m, n, k = len(rows), out.numel() // len(rows), len(columns)
    arguments = a, rows, columns, b, out, out_rows, m, n, k, *strides, out_n
    tiles = tiles_for(m, n)
    if language == "C":
        gathered_product_c(*arguments, size=("M", "N"), **tiles)
    else:
        grid = triton.cdiv(m, tiles["TM"]), triton.cdiv(n, tiles["TN"])
        gathered_product_kernel[grid](*arguments, **tiles)
    return out


def convolve(x, w, stride=1, padding=0, language="Python"):
    """y, for x of shape (n, c, h, w) and w of shape (k, c, r, s)."""
    k, c, r, s = w.shape
    x = pad(x, [padding] * 4).contiguous()
    rows, columns, (p, q) = window_tables(tuple(x.shape), (r, s), stride)
    y = torch.empty(len(x), k, p, q, device=x.device)
    return product(language, x, rows, columns, w, (1, c * r * s), y, place_table(len(x), k, p, q), p * q)


def gradient_of_data(dy, w, shape, stride=1, padding=0, language="Python"):
    """dx, of a forward pass whose x had this shape."""
    (n, _, height, width), (k, _, r, s) = shape, w.shape
    # As large as a stride of 1 would have made it, and a border of what the window reaches over.
    spread = dy.new_zeros(n, k, height + 2 * padding - r + 1, width + 2 * padding - s + 1)
    spread[:, :, ::stride, ::stride] = dy
    border = [s - 1 - padding] * 2 + [r - 1 - padding] * 2
    turned = w.flip(2, 3).transpose(0, 1).contiguous()
    return convolve(pad(spread, border), turned, language=language)


def gradient_of_weights(dy, x, filter_shape, stride=1, padding=0, language="Python"):
    """dw, for filters of this shape (r, s)."""
    n, k, p, q = dy.shape
    r, s = filter_shape
    x = pad(x, [padding] * 4).contiguous()
    x_rows, x_columns, _ = window_tables(tuple(x.shape), (r, s), stride)
    c = x.shape[1]
    dw = torch.empty(k, c, r, s, device=x.device)
    by_place = dy.permute(0, 2, 3, 1).contiguous()  # (n, p, q) x k
    return product(language, x, x_columns, x_rows, by_place, (k, 1), dw, place_table(1, k, c * r, s), c * r * s)


# %% [markdown]
# ## For torch


# %%
class Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, stride, padding, language):
        ctx.save_for_backward(x, w)
        ctx.options = stride, padding, language
        return convolve(x, w, stride, padding, language)

    @staticmethod
    def backward(ctx, *gradients):
        (dy,), (x, w), options = gradients, ctx.saved_tensors, ctx.options
        dx = gradient_of_data(dy, w, x.shape, *options)
        dw = gradient_of_weights(dy, x, w.shape[2:], *options)
        return dx, dw, None, None, None


def conv2d(x, w, stride=1, padding=0, language="Python"):
    return Convolution.apply(x, w, stride, padding, language)


# %% [markdown]
# ## Does it work?
#
# Odd sizes, a stride, and a filter that is not square. On a GPU with tensor cores, products of fp32 are
# computed in tf32, which keeps about three digits of each factor.


# %%
def relative(result, expected):
    return ((result - expected).abs().max() / expected.abs().max()).item()


def check():
    torch.manual_seed(0)
    errors = {}
    for n, c, h, w, k, r, s, stride, padding in [(2, 5, 13, 17, 7, 3, 3, 1, 1), (1, 8, 20, 15, 6, 3, 5, 2, 1)]:
        x = torch.randn(n, c, h, w, device=DEVICE)
        filters = torch.randn(k, c, r, s, device=DEVICE) / (c * r * s) ** 0.5
        theirs = [tensor.double().requires_grad_() for tensor in (x, filters)]
        expected = torch.nn.functional.conv2d(theirs[0], theirs[1], stride=stride, padding=padding)
        dy = torch.randn_like(expected).float()
        expected.backward(dy.double())
        for language in ("Python", "C"):
            ours = [tensor.clone().requires_grad_() for tensor in (x, filters)]
            y = conv2d(ours[0], ours[1], stride, padding, language)
            y.backward(dy)
            pairs = {"y": (y, expected), "dx": (ours[0].grad, theirs[0].grad), "dw": (ours[1].grad, theirs[1].grad)}
            for name, pair in pairs.items():
                error = relative(*pair)
                errors[f"convolution {name} in {language}, stride {stride}"] = error
                print(f"{name} in {language}, stride {stride}: largest relative difference to torch {error:.1e}")
                assert error < (1e-5 if ON_CPU else 5e-3)
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?
#
# The layers of a small ResNet. torch calls cuDNN on a GPU and oneDNN on a CPU, which know special algorithms for
# filters of 3 x 3; ours is the plain product. Two operations, a product and a sum, for each pair.

# %%
LAYERS = [(56, 64, 64), (28, 128, 128), (14, 256, 256), (7, 512, 512)]  # height and width, channels, filters
PROVIDERS = {"triton": "in Python", "c": "in Triton-C", "torch": "torch"}


@triton.testing.perf_report(
    [
        triton.testing.Benchmark(
            x_names=["size", "channels", "filters"],
            x_vals=LAYERS[2:] if ON_CPU else LAYERS,
            line_arg="provider",
            line_vals=list(PROVIDERS),
            line_names=list(PROVIDERS.values()),
            ylabel="GFLOP/s",
            plot_name=f"12-convolutions-{way}",
            args={"way": way, "images": 1 if ON_CPU else 16},
        )
        for way in ("forward", "data", "weights")
    ]
)
def benchmark(images, size, channels, filters, way, provider):
    x = torch.randn(images, channels, size, size, device=DEVICE)
    w = torch.randn(filters, channels, 3, 3, device=DEVICE)
    dy = torch.randn(images, filters, size, size, device=DEVICE)
    language = "C" if provider == "c" else "Python"
    theirs = lambda mask: torch.ops.aten.convolution_backward(  # noqa: E731
        dy, x, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1, mask
    )
    call = {
        ("forward", False): lambda: convolve(x, w, 1, 1, language),
        ("forward", True): lambda: torch.nn.functional.conv2d(x, w, padding=1),
        ("data", False): lambda: gradient_of_data(dy, w, x.shape, 1, 1, language),
        ("data", True): lambda: theirs((True, False, False)),
        ("weights", False): lambda: gradient_of_weights(dy, x, (3, 3), 1, 1, language),
        ("weights", True): lambda: theirs((False, True, False)),
    }[way, provider == "torch"]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    operations = 2 * images * size * size * filters * channels * 9 * 1e-9
    return tuple(operations / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    if not ON_CPU:
        torch.backends.cudnn.allow_tf32 = True
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Images whose channels lie next to each other (n, h, w, c) need other tables, and nothing else. Are they faster?
# - A dilated convolution takes every other element under the window. Which table changes?
# - The sum for dw is long and the result small: let several programs share it, each with a part of (n, p, q), and add
#   up with atomics.
