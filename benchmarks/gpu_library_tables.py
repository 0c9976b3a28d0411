"""Kernels for gpu.py as libraries write them, which a table leads: products of arrays whose addresses it has, or of the
steps that it picks; a hash table; and the largest of each row, in tiles of rows."""

import torch
from gpu_case import DEVICE, Case, by_tile
from gpu_library_lists import INT32, integers
from gpu_library_rows import FLOAT, HALF, close_to, random
from gpu_products import give_descriptors_memory

import triton
import triton.language as tl


@triton.jit
def arrays_kernel(
    a_ptrs, b_ptrs, out_ptrs, extents_ptr, arrays,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Programs that stay and go through the tiles of all products; descriptors are made of addresses and (m, n, k)."""
    tile, done = tl.program_id(0), 0
    for i in range(arrays):
        m, n = tl.load(extents_ptr + 3 * i), tl.load(extents_ptr + 3 * i + 1)
        k = tl.load(extents_ptr + 3 * i + 2)
        across = tl.cdiv(n, COLUMNS)
        count = tl.cdiv(m, ROWS) * across
        if tile < done + count:
            kind: tl.constexpr = tl.pointer_type(tl.float16)
            a = tl.make_tensor_descriptor(tl.load(a_ptrs + i).to(kind), [m, k], [k, 1], [ROWS, DEPTH])
            b = tl.make_tensor_descriptor(tl.load(b_ptrs + i).to(kind), [n, k], [k, 1], [COLUMNS, DEPTH])
            out = tl.make_tensor_descriptor(tl.load(out_ptrs + i).to(kind), [m, n], [n, 1], [ROWS, COLUMNS])
            while tile < done + count:
                row, column = (tile - done) // across * ROWS, (tile - done) % across * COLUMNS
                sums = tl.zeros((ROWS, COLUMNS), tl.float32)
                for start in range(0, k, DEPTH):
                    sums = tl.dot(a.load([row, start]), b.load([column, start]).T, sums)
                out.store([row, column], sums.to(tl.float16))
                tile += tl.num_programs(0)
        done += count


def arrays(count, m, n, k):
    a, b = random(count, m, k, dtype=HALF), random(count, n, k, dtype=HALF)
    out, other = (torch.empty(count, m, n, device=DEVICE, dtype=HALF) for _ in range(2))
    addresses = [torch.tensor([x[i].data_ptr() for i in range(count)], device=DEVICE) for x in (a, b, out)]
    extents = torch.tensor([m, n, k] * count, device=DEVICE, dtype=INT32)
    give_descriptors_memory()

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        arrays_kernel[(132,)](*addresses, extents, count, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (64, 128, 64, 4, 4)]
    moved = 2 * (a.numel() + b.numel() + out.numel())
    expected = a.float() @ b.float().mT
    return Case(
        by_tile(launch, tiles), out, None, lambda: torch.bmm(a, b.mT, out=other), moved, check=close_to(expected, 1e-2)
    )


@triton.jit
def picked_kernel(
    a_ptr, b_ptr, out_ptr, picked_ptr, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr
):
    """A product that leaves out the steps of K in which picked_ptr (rows of tiles, steps) has a zero."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + columns[None, :]
    steps = k // DEPTH
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for step in range(steps):
        if tl.load(picked_ptr + tl.program_id(0) * steps + step) != 0:
            sums = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), sums)
        a_ptrs += DEPTH
        b_ptrs += DEPTH * n
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def picked(size, rows=128, depth=64):
    """Half of a's blocks, at random."""
    a, b = random(size, size, dtype=HALF), random(size, size, dtype=HALF)
    out, other = torch.empty_like(a), torch.empty_like(a)
    table = integers(2, size // rows, size // depth)
    sparse = a * table.repeat_interleave(rows, 0).repeat_interleave(depth, 1).to(HALF)

    def launch(columns, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        grid = size // rows, size // columns
        picked_kernel[grid](a, b, out, table, size, size, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(128, 4, 3), (128, 8, 3), (128, 8, 4), (64, 4, 4)]
    expected = sparse.float() @ b.float()
    return Case(
        by_tile(launch, tiles), out, None, lambda: torch.matmul(sparse, b, out=other), 6 * a.numel(),
        check=close_to(expected, 1e-2),
    )  # fmt: skip


@triton.jit
def insert_kernel(keys_ptr, table_ptr, place_ptr, n, CAPACITY: tl.constexpr, BLOCK: tl.constexpr):
    """Each key looks on until it has a place in the table, whose free ones are -1; behind it swap those with one."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    key = tl.load(keys_ptr + offsets, mask=inside, other=-1)
    slot = ((key.to(tl.uint32) * 2654435761) >> 7).to(tl.int32) & (CAPACITY - 1)
    place = tl.where(inside, -1, 0)
    while tl.min(place, 0) < 0:
        looks = place < 0
        target = tl.where(looks, slot, CAPACITY + tl.arange(0, BLOCK))
        old = tl.atomic_cas(table_ptr + target, tl.full((BLOCK,), -1, tl.int32), tl.where(looks, key, -1))
        place = tl.where(looks & ((old == -1) | (old == key)), slot, place)
        slot = (slot + 1) & (CAPACITY - 1)
    tl.store(place_ptr + offsets, place, mask=inside)


def insert(log):
    n, capacity = 1 << log, 4 << log
    keys = integers(1 << 30, n)
    table = torch.empty(capacity + 4096, device=DEVICE, dtype=INT32)
    place = torch.empty(n, device=DEVICE, dtype=INT32)

    def launch(block, warps):
        table.fill_(-1)
        insert_kernel[(triton.cdiv(n, block),)](keys, table, place, n, CAPACITY=capacity, BLOCK=block, num_warps=warps)

    def are_there(found):
        return bool((table[found.long()] == keys).all())

    blocks = [(128, 2), (256, 4), (512, 4)]
    return Case(by_tile(launch, blocks), place, None, lambda: torch.unique(keys), 12 * n, check=are_there)


@triton.jit
def largest_kernel(x_ptr, out_ptr, n_rows, COLUMNS: tl.constexpr, TOP: tl.constexpr, ROWS: tl.constexpr):
    """The TOP largest of each row, in order."""
    rows, columns, first = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, TOP)
    inside = rows[:, None] < n_rows
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + rows[:, None] * TOP + first[None, :], tl.topk(x, TOP), mask=inside)


def largest(rows, columns, top):
    x = random(rows, columns, dtype=FLOAT)
    out = torch.empty(rows, top, device=DEVICE, dtype=FLOAT)

    def launch(block, warps):
        largest_kernel[(triton.cdiv(rows, block),)](x, out, rows, columns, top, block, num_warps=warps)

    blocks = [(1, 1), (4, 1), (8, 4), (16, 4), (32, 4)]
    return Case(
        by_tile(launch, blocks), out, lambda: x.topk(top)[0], lambda: x.topk(top), 4 * (x.numel() + out.numel())
    )


KERNELS = {
    "8 arrays 1024x2048x2048 fp16": (arrays, (8, 1024, 2048, 2048), (3, 144, 136, 72)),
    "picked steps 4096x4096x4096 fp16": (picked, (4096,), (256,)),
    "hash table 2^20": (insert, (20,), (10,)),
    "largest 8 of 131072x128": (largest, (131072, 128, 8), (37, 128, 8)),
}
