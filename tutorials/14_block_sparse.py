"""14: block-sparse products and softmax: work only where a pattern has blocks, by look-up tables; sparse attention."""

# %% [markdown]
# # 14. Block-sparse products
#
# Attention compares every position of a text with every other. For a long text most of these comparisons could be left
# out: with neighbours and with a few chosen positions one gets far. *Which* are kept is a pattern; if it is made of
# blocks of 16 or 32 positions, then each block is a tile, and a kernel does the tiles that are there.
#
# This lesson has the three steps of attention on such a pattern:
#
# - a product of dense matrices whose **result** is sparse: $S = Q K^T$, where the pattern has blocks,
# - the **softmax** of the rows of a sparse matrix,
# - a product of a **sparse and a dense** matrix: $O = S V$.

# %%
import numpy as np
import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CPU = triton.runtime.driver.active.get_current_target().backend == "cpu"  # and not the simulator of a GPU

# %% [markdown]
# ## The pattern, and its tables
#
# A pattern is a matrix of zeros and ones, an entry for each block. The blocks that are there are stored one behind the
# other, row by row. What a kernel needs to know is best computed once, in tables:
#
# - `rows` and `columns`: where each block lies; the first kernel has a program for each block.
# - `starts`: where the blocks of each row of blocks begin; the other two have a program for each row of blocks and go
#   through its blocks. Rows may have different numbers of them, and `tl.load` of a loop's bounds is all it takes.


# %%
class Pattern:
    def __init__(self, blocks, size):
        """:param blocks: a matrix of bools; a block has size times size elements."""
        blocks = np.asarray(blocks, bool)
        rows, columns = np.nonzero(blocks)
        starts = np.concatenate([[0], np.cumsum(blocks.sum(1))])
        self.size, self.extent, self.count = size, len(blocks) * size, len(rows)
        self.longest = int(blocks.sum(1).max())
        self.rows, self.columns, self.starts = (
            torch.from_numpy(table.astype(np.int32)).to(DEVICE) for table in (rows, columns, starts)
        )
        self.dense = torch.from_numpy(np.kron(blocks, np.ones((size, size), bool))).to(DEVICE)


def local_pattern(extent, size, neighbours=2, every=8):
    """Blocks around the diagonal, and whole columns of blocks now and then."""
    place = np.arange(extent // size)
    near = np.abs(place[:, None] - place) <= neighbours
    return Pattern(near | (place % every == 0), size)


# %% [markdown]
# ## Dense times dense, where the pattern has blocks
#
# It is a product of matrices as in lesson 3, except that the tables say which tile a program computes. The third axis
# of the grid is the batch: one program id for each head of each text.


# %%
@triton.jit
def sparse_result_kernel(
    out, a, b, rows, columns, count, extent, depth, scale, SIZE: tl.constexpr, TK: tl.constexpr
):  # fmt: skip
    block, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, SIZE)
    m = tl.load(rows + block) * SIZE + i
    n = tl.load(columns + block) * SIZE + i
    k = tl.arange(0, TK)
    a += head * extent * depth
    b += head * extent * depth
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for first in range(0, depth, TK):
        inside = first + k < depth
        x = tl.load(a + m[:, None] * depth + first + k, mask=inside, other=0)
        y = tl.load(b + n[None, :] * depth + (first + k)[:, None], mask=inside[:, None], other=0)
        total = tl.dot(x, y, total)
    out += (head * count + block) * SIZE * SIZE
    tl.store(out + i[:, None] * SIZE + i, total * scale)


def sparse_result(a, b, pattern, scale=1.0):
    """The blocks of scale * a bᵀ; a and b are (heads, extent, depth)."""
    heads, extent, depth = a.shape
    out = torch.empty(heads, pattern.count, pattern.size, pattern.size, dtype=a.dtype, device=a.device)
    sparse_result_kernel[(pattern.count, heads)](
        out, a, b, pattern.rows, pattern.columns, pattern.count, extent, depth, scale,
        SIZE=pattern.size, TK=min(64, triton.next_power_of_2(depth)),
    )  # fmt: skip
    return out


# %% [markdown]
# ## Softmax of sparse rows
#
# What is not there counts as minus infinity: it adds nothing to the sum. A row of blocks fits into no tile of a fixed
# shape, for its length differs, so the program goes through its blocks twice, as lesson 6 does with the keys: once for
# the maximum and the sum, correcting the sum when the maximum grows, and once to write.


# %%
@triton.jit
def sparse_softmax_kernel(out, x, starts, count, SIZE: tl.constexpr):
    row, head = tl.program_id(0), tl.program_id(1)
    first, end = tl.load(starts + row), tl.load(starts + row + 1)
    i = tl.arange(0, SIZE)
    place = i[:, None] * SIZE + i
    x += head * count * SIZE * SIZE
    out += head * count * SIZE * SIZE
    largest = tl.full((SIZE,), float("-inf"), tl.float32)
    total = tl.zeros((SIZE,), tl.float32)
    for block in range(first, end):
        value = tl.load(x + block * SIZE * SIZE + place).to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, axis=1))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(value - larger[:, None]), axis=1)
        largest = larger
    for block in range(first, end):
        value = tl.load(x + block * SIZE * SIZE + place).to(tl.float32)
        tl.store(out + block * SIZE * SIZE + place, tl.exp(value - largest[:, None]) / total[:, None])


def sparse_softmax(x, pattern):
    """Of each row of the sparse matrix whose blocks are in x."""
    out = torch.empty_like(x)
    grid = (pattern.extent // pattern.size, len(x))
    sparse_softmax_kernel[grid](out, x, pattern.starts, pattern.count, SIZE=pattern.size)
    return out


# %% [markdown]
# ## Sparse times dense
#
# The loop goes through the blocks of a row; the table of columns says which rows of the dense matrix meet a block. Each
# trip multiplies a block with a tile as wide as `TN`.


# %%
@triton.jit
def sparse_times_dense_kernel(
    out, x, b, columns, starts, count, extent, depth, SIZE: tl.constexpr, TN: tl.constexpr
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    first, end = tl.load(starts + row), tl.load(starts + row + 1)
    i = tl.arange(0, SIZE)
    n = tl.program_id(2) * TN + tl.arange(0, TN)
    x += head * count * SIZE * SIZE
    b += head * extent * depth
    total = tl.zeros((SIZE, TN), tl.float32)
    for block in range(first, end):
        k = tl.load(columns + block) * SIZE + i
        left = tl.load(x + block * SIZE * SIZE + i[:, None] * SIZE + i)
        right = tl.load(b + k[:, None] * depth + n, mask=n < depth, other=0)
        total = tl.dot(left, right, total)
    out += head * extent * depth
    tl.store(out + (row * SIZE + i)[:, None] * depth + n, total, mask=n < depth)


def sparse_times_dense(x, b, pattern):
    """The product of the sparse matrix whose blocks are in x with b, (heads, extent, depth)."""
    heads, extent, depth = b.shape
    out = torch.empty_like(b)
    wide = min(64, triton.next_power_of_2(depth))
    grid = (extent // pattern.size, heads, triton.cdiv(depth, wide))
    sparse_times_dense_kernel[grid](
        out, x, b, pattern.columns, pattern.starts, pattern.count, extent, depth, SIZE=pattern.size, TN=wide
    )
    return out


# %% [markdown]
# ## Attention on a pattern


# %%
def sparse_attention(q, k, v, pattern):
    """softmax(q kᵀ / √depth) v, where the pattern has blocks; all are (heads, extent, depth)."""
    scores = sparse_result(q, k, pattern, q.shape[-1] ** -0.5)
    return sparse_times_dense(sparse_softmax(scores, pattern), v, pattern)


def dense_attention(q, k, v, pattern):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=pattern.dense)


# %% [markdown]
# ## Does it work?
#
# Beside torch, which computes everything and then throws away what the pattern leaves out. Each step alone first, so
# that a mistake has a name.


# %%
def blocks_of(dense, pattern):
    """The blocks that a pattern has of dense matrices."""
    heads, extent, _ = dense.shape
    count = extent // pattern.size
    tiles = dense.view(heads, count, pattern.size, count, pattern.size).transpose(2, 3)
    return tiles[:, pattern.rows.long(), pattern.columns.long()].contiguous()


def check():
    torch.manual_seed(0)
    errors = {}
    for size, extent, depth in [(16, 256, 64), (32, 192, 40)]:
        pattern = local_pattern(extent, size, 1, 4)
        q, k, v = torch.randn(3, 2, extent, depth, device=DEVICE)
        scores = (q @ k.transpose(1, 2)) * depth**-0.5
        masked = torch.softmax(scores.masked_fill(~pattern.dense, float("-inf")), -1)
        results = {
            "sparse result": (sparse_result(q, k, pattern, depth**-0.5), blocks_of(scores, pattern)),
            "sparse softmax": (
                sparse_softmax(blocks_of(scores, pattern).contiguous(), pattern),
                blocks_of(masked, pattern),
            ),
            "sparse times dense": (sparse_times_dense(blocks_of(masked, pattern).contiguous(), v, pattern), masked @ v),
            "sparse attention": (sparse_attention(q, k, v, pattern), dense_attention(q, k, v, pattern)),
        }
        for name, (result, expected) in results.items():
            error = ((result - expected).abs().max() / expected.abs().max()).item()
            errors[f"{name}, blocks of {size}"] = error
            print(f"{name}, blocks of {size}: largest relative difference to torch {error:.1e}")
            assert error < (1e-5 if ON_CPU else 5e-3)
    return errors


if __name__ == "__main__":
    check()

# %% [markdown]
# ## How fast is it?
#
# The sparse result costs as much as there are blocks, so the longer the text, the larger the part that is saved.
# torch's attention on a mask computes all of it.

# %%
PROVIDERS = {"triton": "block-sparse", "torch": "torch, with a mask"}


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["extent"],
        x_vals=[256, 512, 1024] if ON_CPU else [1024, 2048, 4096, 8192],
        line_arg="provider",
        line_vals=list(PROVIDERS),
        line_names=list(PROVIDERS.values()),
        ylabel="ms",
        plot_name="14-block-sparse-attention",
        args={"heads": 2 if ON_CPU else 16, "depth": 64},
    )
)
def benchmark(heads, extent, depth, provider):
    dtype = torch.float32 if ON_CPU else torch.float16
    q, k, v = torch.randn(3, heads, extent, depth, device=DEVICE).to(dtype)
    pattern = local_pattern(extent, 32)
    attention = {"triton": sparse_attention, "torch": dense_attention}[provider]
    return triton.testing.do_bench(lambda: attention(q, k, v, pattern), quantiles=[0.5, 0.2, 0.8])


if __name__ == "__main__":
    benchmark.run(print_data=True, save_path="out")

# %% [markdown]
# ## Try it
#
# - Make one kernel of the three: a program for each row of blocks that keeps its scores, as lesson 6 does.
# - A text is read from left to right: leave out blocks above the diagonal, and mask the upper half of those on it.
# - The gradient of `sparse_times_dense` needs the transposed pattern. Which tables does it take?
