"""05: layer normalisation, forward and backward. Sums across programs with locks and atomics; autograd.

Runs without torch too, on NumPy arrays.
"""

# %% [markdown]
# # 5. Layer normalisation
#
# For each row x of a matrix, layer normalisation computes
#
# $$\hat x = \frac{x - \mathrm{mean}(x)}{\sqrt{\mathrm{var}(x) + \epsilon}}, \qquad y = \hat x \cdot w + b$$
#
# with a weight w and a bias b for each column. The forward pass is like softmax, one row a program. New
# here is the backward pass: the gradients of w and b are sums **over all rows**, and thus over all
# programs. We shall see
#
# - how programs add to the same place: with atomic operations, or under a lock,
# - how to make a `torch.autograd.Function` of two kernels.

# %%
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

import triton
import triton.language as tl

HAS_TORCH = find_spec("torch") is not None  # NumPy arrays do, on the CPU
if TYPE_CHECKING or HAS_TORCH:
    import torch

DEVICE: Any = triton.runtime.driver.active.get_active_torch_device() if HAS_TORCH else None
ON_CPU = not HAS_TORCH or DEVICE.type == "cpu"
PROCESSORS = triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]

# %% [markdown]
# ## Forward
#
# Everything is computed in fp32, whatever type the arrays have; loads and stores convert. The variance
# is taken from the differences to the mean, not as E[x²] - E[x]², which loses all digits when the mean
# is large. Masked lanes have to stay zero *after* the subtraction, hence the `tl.where`. Mean and 1/σ
# are kept for the backward pass.


# %%
@triton.jit
def forward_kernel(y_ptr, mean_ptr, rstd_ptr, x_ptr, w_ptr, b_ptr, n_columns, epsilon, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=mask, other=0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_columns
    centered = tl.where(mask, x - mean, 0)
    rstd = 1 / tl.sqrt(tl.sum(centered * centered, axis=0) / n_columns + epsilon)
    w = tl.load(w_ptr + columns, mask=mask)
    b = tl.load(b_ptr + columns, mask=mask)
    tl.store(y_ptr + row * n_columns + columns, centered * rstd * w + b, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


# %% [markdown]
# ## Backward
#
# Given the gradient dy, with $\hat x$ from above and $s = w \cdot dy$:
#
# $$dx = \frac{1}{\sigma}\bigl(s - \mathrm{mean}(s) - \hat x \cdot \mathrm{mean}(\hat x \cdot s)\bigr), \qquad
#   dw = \sum_{\mathrm{rows}} dy \cdot \hat x, \qquad db = \sum_{\mathrm{rows}} dy$$
#
# dx stays inside the row. For dw and db a program first sums over its own rows, in registers. In the
# end a handful of programs hold partial sums which all belong into the same two vectors:
#
# - **Atomics.** `tl.atomic_add` adds each element without being interrupted between its reading and its
#   writing.
# - **A lock.** An integer, 0 when free. `tl.atomic_cas(lock, 0, 1)` writes 1 if it finds 0, and returns
#   what it found, so whoever gets 0 back owns the lock and all others try again. The owner may use
#   plain loads and stores; then `tl.atomic_xchg(lock, 0)` opens the door. The barrier before it makes
#   sure that all of the program's stores are done.
#
# Atomics need one operation for each element, a lock one for all of them: it is worth it when there is
# much to update and few who want to, as on a CPU. On a GPU hundreds of programs would stand in line, while
# its memory can add at many places at a time. Either way the partial sums are added in the order in which
# programs get there, so the last digit may change from run to run.
#
# The weights are read again for every row: they come from a cache, and keeping them would cost registers,
# which dw and db take already.


# %%
@triton.jit
def backward_kernel(
    dx_ptr, dw_ptr, db_ptr, lock_ptr,
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr,
    n_rows, n_columns, LOCKED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_columns
    dw = tl.zeros((BLOCK_SIZE,), tl.float32)
    db = tl.zeros((BLOCK_SIZE,), tl.float32)
    share = tl.cdiv(n_rows, tl.num_programs(0))
    first = tl.program_id(0) * share
    for row in range(first, min(first + share, n_rows)):
        offsets = row * n_columns + columns
        x = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=mask, other=0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0)
        slope = tl.load(w_ptr + columns, mask=mask, other=0).to(tl.float32) * dy
        common = tl.sum(slope, axis=0) / n_columns
        along = tl.sum(normal * slope, axis=0) / n_columns
        tl.store(dx_ptr + offsets, (slope - common - normal * along) * rstd, mask=mask)
        dw += dy * normal
        db += dy

    if LOCKED:
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
        tl.store(dw_ptr + columns, tl.load(dw_ptr + columns, mask=mask) + dw, mask=mask)
        tl.store(db_ptr + columns, tl.load(db_ptr + columns, mask=mask) + db, mask=mask)
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)
    else:
        tl.atomic_add(dw_ptr + columns, dw, mask=mask)
        tl.atomic_add(db_ptr + columns, db, mask=mask)


# %% [markdown]
# ## The wrappers
#
# They take torch tensors or, on the CPU, NumPy arrays; only making new arrays differs. The sums need
# arrays of zeros to begin with, in fp32.


# %%
def empty_like(x) -> Any:
    return np.empty_like(x) if isinstance(x, np.ndarray) else torch.empty_like(x)


def zeros(extent, like, dtype="float32") -> Any:
    if isinstance(like, np.ndarray):
        return np.zeros(extent, dtype)
    return torch.zeros(extent, dtype=getattr(torch, dtype), device=like.device)


def warps_for(block):
    """So many that the tiles of a row fit into the registers of their threads."""
    return min(max(block // 1024, 4), 16)


def layer_norm_forward(x, w, b, epsilon=1e-5):
    """Returns y, and mean and 1/σ of each row."""
    n_rows, n_columns = x.shape
    y, mean, rstd = empty_like(x), zeros(n_rows, x), zeros(n_rows, x)
    block = triton.next_power_of_2(n_columns)
    forward_kernel[(n_rows,)](y, mean, rstd, x, w, b, n_columns, epsilon, BLOCK_SIZE=block, num_warps=warps_for(block))
    return y, mean, rstd


def layer_norm_backward(dy, x, w, mean, rstd, locked=ON_CPU):
    """Returns the gradients dx, dw and db."""
    n_rows, n_columns = x.shape
    dx, dw, db = empty_like(x), zeros(n_columns, x), zeros(n_columns, x)
    lock = zeros(1, x, "int32")
    block = triton.next_power_of_2(n_columns)
    warps = warps_for(block)
    programs = min(n_rows, PROCESSORS if ON_CPU else PROCESSORS * 16 // warps)
    backward_kernel[(programs,)](
        dx, dw, db, lock, dy, x, w, mean, rstd, n_rows, n_columns, LOCKED=locked, BLOCK_SIZE=block, num_warps=warps
    )
    return dx, dw, db


# %% [markdown]
# ## For torch
#
# An autograd function says what to keep between the passes, and gives one gradient for each input
# (`None` for ε).

# %%
if HAS_TORCH:

    class LayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b, epsilon):
            rows = x.contiguous().view(-1, x.shape[-1])
            y, mean, rstd = layer_norm_forward(rows, w, b, epsilon)
            ctx.save_for_backward(rows, w, mean, rstd)
            return y.view_as(x)

        @staticmethod
        def backward(ctx, *gradients):
            (dy,), (rows, w, mean, rstd) = gradients, ctx.saved_tensors
            dx, dw, db = layer_norm_backward(dy.contiguous().view_as(rows), rows, w, mean, rstd)
            return dx.view_as(dy), dw.to(w.dtype), db.to(w.dtype), None

    def layer_norm(x, w, b, epsilon=1e-5):
        return LayerNorm.apply(x, w, b, epsilon)


# %% [markdown]
# ## Does it work?
#
# First against the formulas, in fp64 with NumPy. A lock that does not lock and an atomic that is none
# would show in dw.


# %%
def reference(x, w, b, dy, epsilon=1e-5):
    x, w, b, dy = (array.astype(np.float64) for array in (x, w, b, dy))
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    normal = (x - x.mean(axis=1, keepdims=True)) * rstd
    slope = w * dy
    dx = slope - slope.mean(axis=1, keepdims=True) - normal * (normal * slope).mean(axis=1, keepdims=True)
    return normal * w + b, dx * rstd, (dy * normal).sum(axis=0), dy.sum(axis=0)


def to_device(array) -> Any:
    return torch.from_numpy(array).to(DEVICE) if HAS_TORCH else array


def to_numpy(array) -> Any:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def relative(result, expected):
    return float(np.abs(to_numpy(result) - expected).max() / np.abs(expected).max())


def check():
    random = np.random.default_rng(0)
    n_rows, n_columns = 1151, 1000
    x, dy = (random.standard_normal((n_rows, n_columns), dtype=np.float32) for _ in range(2))
    w, b = (random.random(n_columns, dtype=np.float32) for _ in range(2))
    expected = reference(x, w, b, dy)
    x, w, b, dy = map(to_device, (x, w, b, dy))
    errors = {}
    for how in ("lock", "atomics"):
        y, mean, rstd = layer_norm_forward(x, w, b)
        results = y, *layer_norm_backward(dy, x, w, mean, rstd, locked=how == "lock")
        for name, result, right in zip(("y", "dx", "dw", "db"), results, expected, strict=True):
            errors[f"layer norm {name}, {how}"] = relative(result, right)
    for name, error in errors.items():
        print(f"{name}: largest relative error {error:.1e}")
        assert error < 1e-5

    if HAS_TORCH:
        inputs = [tensor.clone().requires_grad_() for tensor in (x, w, b)]
        layer_norm(inputs[0], inputs[1], inputs[2]).backward(dy)
        others = [tensor.clone().requires_grad_() for tensor in (x, w, b)]
        torch.nn.functional.layer_norm(others[0], (n_columns,), weight=others[1], bias=others[2]).backward(dy)
        pairs = zip(inputs, others, strict=True)
        error = max(relative(ours.grad, to_numpy(theirs.grad)) for ours, theirs in pairs)
        print(f"gradients through autograd: largest relative difference to torch {error:.1e}")
        assert error < 1e-5
        errors["layer norm, autograd"] = error
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?
#
# Bytes moved per second once more: the forward pass reads and writes the matrix once; the backward pass
# reads two matrices and writes one. Everybody makes a new array for the result, so beyond some size part
# of the time is the system's, which has to find memory for it.

# %%
PROVIDERS = {"triton": "these kernels"}
PROVIDERS |= {"torch": "torch"} if HAS_TORCH else {}
PROVIDERS |= {"numpy": "NumPy"} if ON_CPU else {}


@triton.testing.perf_report(
    [
        triton.testing.Benchmark(
            x_names=["columns"],
            x_vals=[256, 512, 1000, 1024, 2048, 4096] if ON_CPU else [512 * i for i in range(2, 32, 2)],
            line_arg="provider",
            line_vals=list(providers),
            line_names=list(providers.values()),
            ylabel="GB/s",
            plot_name=f"05-layer-norm-{way}",
            args={"rows": 4096, "way": way},
        )
        for way in ("forward", "backward")
        for providers in [{key: PROVIDERS[key] for key in PROVIDERS if key != "numpy" or way == "forward"}]
    ]
)
def benchmark(rows, columns, way, provider):
    random = np.random.default_rng(0)
    x, dy = (to_device(random.standard_normal((rows, columns), dtype=np.float32)) for _ in range(2))
    w, b = (to_device(random.random(columns, dtype=np.float32)) for _ in range(2))
    _, mean, rstd = layer_norm_forward(x, w, b)
    call = {
        ("forward", "triton"): lambda: layer_norm_forward(x, w, b),
        ("forward", "torch"): lambda: torch.layer_norm(x, (columns,), w, b),
        ("forward", "numpy"): lambda: layer_norm_numpy(to_numpy(x), to_numpy(w), to_numpy(b)),
        ("backward", "triton"): lambda: layer_norm_backward(dy, x, w, mean, rstd),
        ("backward", "torch"): lambda: torch.ops.aten.native_layer_norm_backward(
            dy, x, (columns,), mean[:, None], rstd[:, None], w, b, (True, True, True)
        ),
    }[way, provider]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    gigabytes = (2 if way == "forward" else 3) * rows * columns * 4e-9
    return tuple(gigabytes / (milliseconds * 1e-3) for milliseconds in (median, slow, fast))


def layer_norm_numpy(x, w, b, epsilon=1e-5):
    centered = x - x.mean(axis=1, keepdims=True)
    return centered / np.sqrt((centered * centered).mean(axis=1, keepdims=True) + epsilon) * w + b


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Give each program a row of its own in a larger buffer and add those up with a second kernel: no
#   lock, no atomics, and the same digits every time.
# - Start many more programs than there are processors. From when on do locks hurt? And atomics?
# - Compute mean and variance in one pass over the row, by Welford's method with `tl.reduce` and three
#   values.
