"""04: dropout that stores no mask. Random numbers in a kernel, and why a counter is better than a state."""

# %% [markdown]
# # 4. Dropout without a mask
#
# Dropout sets each element to zero with probability p and divides the others by 1 - p, so that the
# expected value stays. The backward pass has to drop the *same* elements. The usual way is to store a
# mask as large as the input and to keep the random generator's state safe. We need neither:
#
# - `tl.rand(seed, offsets)` is a **counter-based** generator (Philox). Element `i` of the stream `seed`
#   is a pure function of `(seed, i)`; there is no state that programs would have to share,
# - so the backward pass does not *remember* the mask, it computes it again, from one integer.

# %%
import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = DEVICE.type == "cpu"

# %% [markdown]
# ## The kernel
#
# `tl.rand` gives fp32 numbers, uniform in [0, 1). Which program computes an element, and how large its
# tile is, has no influence on the number: only the offset has.


# %%
@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


BLOCK_SIZE = 8192 if ON_CPU else 1024


def dropout(x, p, seed, out=None):
    x = x.contiguous()
    out = torch.empty_like(x) if out is None else out
    n = x.numel()
    dropout_kernel[(triton.cdiv(n, BLOCK_SIZE),)](x, out, n, p, seed, BLOCK_SIZE=BLOCK_SIZE)
    return out


# %% [markdown]
# ## For training
#
# Dropout is linear in its input once the mask is fixed, so the gradient passes through the very same
# kernel. All that the forward pass leaves behind are two numbers.


# %%
class SeededDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return dropout(x, p, seed)

    @staticmethod
    def backward(ctx, *gradients):
        return dropout(gradients[0], ctx.p, ctx.seed), None, None


# %% [markdown]
# ## Does it work?
#
# Randomness has to be checked by its properties: the same seed drops the same elements and another seed
# drops others; the fraction that is kept is near 1 - p; what is kept is scaled exactly; and the
# gradient is zero just where the output is.


# %%
def check():
    torch.manual_seed(0)
    p, n = 0.3, 100_003
    x = torch.rand(n, device=DEVICE) + 1  # no zeros, so that a zero in the output was dropped
    out = dropout(x, p, seed=123)
    kept = out != 0
    assert torch.equal(out, dropout(x, p, seed=123)), "the same seed has to drop the same elements"
    assert not torch.equal(out, dropout(x, p, seed=512)), "another seed has to drop others"

    share = kept.float().mean().item()
    deviation = (p * (1 - p) / n) ** 0.5
    off = abs(share - (1 - p))
    print(f"dropout of {n:,}, p = {p}: kept {share:.4f}, {off / deviation:.1f} standard deviations off")
    assert off < 5 * deviation

    error = (out - torch.where(kept, x / (1 - p), 0)).abs().max().item()
    print(f"scaling: largest difference to torch {error:.1e}")
    assert error < 1e-6

    x.requires_grad_()
    (gradient,) = torch.autograd.grad(SeededDropout.apply(x, p, 123).sum(), x)
    assert torch.equal(gradient != 0, kept), "the gradient has to pass where the value passed"
    print("gradient: passes exactly where the value passed")
    return {"dropout, share kept": off, "dropout, scaling": error}


if __name__ == "__main__":
    check()

# %% [markdown]
# A small one to look at:

# %%
if __name__ == "__main__":
    x = torch.randn(8, device=DEVICE)
    print(" input:", *(f"{value:7.3f}" for value in x.tolist()))
    for seed in (1, 1, 2):
        print(f"seed {seed}:", *(f"{value:7.3f}" for value in dropout(x, 0.5, seed).tolist()))

# %% [markdown]
# ## How fast is it?
#
# Ten rounds of Philox are some work, on a CPU more than the memory traffic. torch draws its random
# numbers on a CPU one after another, because its generator has a state; ours needs to wait for nobody.


# %%
@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"],
        x_vals=[2**i for i in (range(12, 23, 2) if ON_CPU else range(14, 27))],
        x_log=True,
        line_arg="provider",
        line_vals=["triton", "torch"],
        line_names=["this kernel", "torch.dropout"],
        xlabel="elements",
        ylabel="10⁹ elements/s",
        plot_name="04-dropout",
        args={"p": 0.3},
    )
)
def benchmark(size, p, provider):
    x = torch.randn(size, device=DEVICE)
    out = torch.empty_like(x)
    call = {
        "triton": lambda: dropout(x, p, 7, out),
        "torch": lambda: torch.dropout(x, p, train=True),
    }[provider]
    median, fast, slow = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
    return tuple(size * 1e-6 / milliseconds for milliseconds in (median, slow, fast))


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - `tl.rand4x` gives four numbers for the price of one. Let each lane handle four elements.
# - Make it work on the rows of a matrix, with a seed for each row.
# - Drop blocks of 32 neighbours together. What do you pass to `tl.rand`?
