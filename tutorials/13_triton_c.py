"""13: Triton-C, kernels in a language like C: tiles, broadcasting, predicates, tunable constants."""

# %% [markdown]
# # 13. Triton-C
#
# Before Triton was a part of Python it was a language of its own, described by Tillet, Kung and Cox in 2019: C,
# with tiles for values. That language is here as well. It goes through the same compiler as kernels in Python and gives
# the same code, so this lesson is short: it is about how things are *said*. The whole language is in
# [docs/triton-c.md](../docs/triton-c.md).

# %%
import torch

import triton
import triton.c
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = DEVICE.type == "cpu"

# %% [markdown]
# ## A first kernel
#
# `float v[N]` is a tile of N floats; N is a constant when the kernel is compiled. An instance of the kernel asks for
# *its part* of the indices along an axis with `get_global_range`, which is what `tl.program_id(0) * N +
# tl.arange(0, N)` says in Python. `*p` loads from a tile of pointers, `*p = v` stores, and `@mask` in front of a
# statement runs it for the elements where the mask holds.
#
# `tunable` names the values that a constant may have. A launch chooses one by name, and otherwise gets the first.

# %%
axpy = triton.c.compile("""
const tunable int N = {1024, 4096};

kernel void axpy(float a, const float *x, float *y, int size) {
  int i[N] = get_global_range(0);
  @(i < size) {
    float v[N] = *(x + i);
    *(y + i) = a * v + *(y + i);
  }
}
""")

# %% [markdown]
# How many instances does a launch need? So many that their ranges cover all elements, and Triton-C knows how long a
# range is. So one only says how far each axis goes, by a number or by the name of a parameter:
#
# ```python
# axpy(2.0, x, y, len(x), size="size")
# axpy[(triton.cdiv(len(x), 4096),)](2.0, x, y, len(x), N=4096)     # the same by hand
# ```
#
# ## Broadcasting
#
# Shapes meet as in NumPy: the shorter one gets ones in front, and ones are repeated. `newaxis` puts a one elsewhere.
# With a tile in front, `condition ? a : b` chooses element by element, and memory is read only where it counts: the
# line with `? *p : 0` is a masked load.

# %%
softmax = triton.c.compile("""
const tunable int ROWS = {4, 1};
const tunable int COLUMNS = {1024};

kernel void softmax(const float *x, float *y, int n_rows, int n_columns) {
  int r[ROWS] = get_global_range(0);
  int c[COLUMNS] = 0 ... COLUMNS;
  bool inside[ROWS, COLUMNS] = (r < n_rows)[:, newaxis] && c < n_columns;
  const float *p[ROWS, COLUMNS] = x + r[:, newaxis] * n_columns + c;
  float v[ROWS, COLUMNS] = inside ? *p : -1e30;
  float e[ROWS, COLUMNS] = exp(v - max(v, 1)[:, newaxis]);
  @inside *(y + r[:, newaxis] * n_columns + c) = e / sum(e, 1)[:, newaxis];
}
""")

# %% [markdown]
# ## A product of matrices
#
# This is the listing that the paper begins with, for matrices that lie in rows. Functions are inlined, and may take
# tiles of any shape: `relu` below does not say which. As in C, declarations say types, numbers are converted
# silently, and `/` of integers truncates.

# %%
SOURCE = """
const tunable int TM = {32, 64, 128};
const tunable int TN = {32, 64, 128};
const tunable int TK = {32, 64};

float relu(float x) { return x > 0 ? x : 0; }

// C = relu(A * B)
kernel void matmul(const half *a, const half *b, half *c, int M, int N, int K) {
  int m[TM] = get_global_range(0);
  int n[TN] = get_global_range(1);
  int k[TK] = 0 ... TK;
  const half *pa[TM, TK] = a + m[:, newaxis] * K + k;
  const half *pb[TK, TN] = b + k[:, newaxis] * N + n;
  float C[TM, TN] = 0;
  for (int left = K; left > 0; left -= TK) {
    half A[TM, TK] = (m < M)[:, newaxis] && k < left ? *pa : 0;
    half B[TK, TN] = (k < left)[:, newaxis] && n < N ? *pb : 0;
    C += dot(A, B);
    pa += TK;
    pb += TK * N;
  }
  @((m < M)[:, newaxis] && n < N) *(c + m[:, newaxis] * N + n) = relu(C);
}
"""
matmul = triton.c.compile(SOURCE)
matmul.size = ("M", "N")  # for all launches

# %% [markdown]
# ## Which tiles?
#
# `kernel.tunables` is the list of names and values, and `kernel.configs()` has a `triton.Config` for each choice: what
# lesson 3 gave to `@triton.autotune` by hand. Launches of what comes back are as before.

# %%
tuned = triton.autotune(matmul.configs(num_warps=4)[:: 4 if ON_CPU else 1], key=["M", "N", "K"])(matmul)


def multiply(a, b, autotuned=False):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=torch.float16, device=a.device)
    if autotuned:
        tuned[matmul.grid("M", "N")](a, b, c, m, n, k)
    else:
        matmul(a, b, c, m, n, k)
    return c


# %% [markdown]
# ## The same code
#
# Here is `axpy` in Python. What the compiler makes of both are the same operations; `asm` has the text of every
# stage, as of every compiled kernel. Where there is no device, `python -m triton.c file.tc --emit ptx` writes it.


# %%
@triton.jit
def axpy_kernel(a: tl.float32, x, y, size: tl.int32):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    mask = i < size
    v = tl.load(x + i, mask=mask)
    target = y + i
    tl.store(target, a * v + tl.load(y + i, mask=mask), mask=mask)


def operations(kernel):
    """Of the tile IR, which is what both front ends make."""
    x = torch.zeros(16, device=DEVICE)
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.debug = False  # with TRITON_DEBUG=1 there are checks as well
        lines = kernel.warmup(2.0, x, x, 16, grid=(1,)).asm["ttir"].splitlines()[1:]
    return sorted(line.partition("=")[2].split()[0] for line in lines if " = " in line)


# %% [markdown]
# ## Does it work?


# %%
def check():
    torch.manual_seed(0)
    errors = {}
    x, y = torch.randn(2, 100_000, device=DEVICE)
    expected = 2 * x + y
    axpy(2.0, x, y, len(x), size="size")
    errors["axpy in Triton-C"] = (y - expected).abs().max().item()

    x = torch.randn(301, 781, device=DEVICE)
    out = torch.empty_like(x)
    softmax(x, out, *x.shape, size="n_rows")
    errors["softmax in Triton-C"] = (out - torch.softmax(x, 1)).abs().max().item()

    a, b = (torch.randn(150, 150, device=DEVICE, dtype=torch.float16) / 150**0.25 for _ in range(2))
    expected = torch.relu(a.float() @ b.float())
    errors["product in Triton-C"] = (multiply(a, b) - expected).abs().max().item()
    for name, error in errors.items():
        print(f"{name}: largest difference to torch {error:.1e}")
        assert error < (5e-3 if "product" in name else 1e-5)
    assert operations(axpy) == operations(axpy_kernel)
    print(f"axpy in Triton-C and in Python: the same {len(operations(axpy))} operations")
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?

# %%
PROVIDERS = {"triton": "Triton-C", "torch": "torch"}


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"],
        x_vals=[128, 256, 512] if ON_CPU else [512 * i for i in range(1, 9)],
        line_arg="provider",
        line_vals=list(PROVIDERS),
        line_names=list(PROVIDERS.values()),
        ylabel="GFLOP/s",
        plot_name="13-triton-c",
        args={},
    )
)
def benchmark(size, provider):
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.float16) for _ in range(2))
    call = {"triton": lambda: multiply(a, b, autotuned=True), "torch": lambda: torch.relu(a @ b)}[provider]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    return tuple(2e-9 * size**3 / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Leave a `:` out, or a semicolon, or misspell a name: what does the compiler say?
# - Launch `axpy(..., debug=True)` with a `size` that is too large.
# - Write `leaky_relu(float x, float slope)`, and choose between the two functions with a tunable.
