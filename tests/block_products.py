"""Products of blocks of two matrices, and what they have to be; for tests of the language and of what is compiled."""

import numpy as np

import triton
import triton.language as tl


def window(x, row, column, rows, columns):
    """The elements of a matrix from there on, and zeros where there are none."""
    seen = np.zeros((rows, columns))
    top, left = max(row, 0), max(column, 0)
    part = x[top : max(row + rows, 0), left : max(column + columns, 0)]
    seen[top - row : top - row + part.shape[0], left - column : left - column + part.shape[1]] = part
    return seen


@triton.jit
def product(
    a_ptr, b_ptr, out_ptr, m, n, k, row, column, first,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, B_IS_TURNED: tl.constexpr, B_BY: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [ROWS, DEPTH])
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    if B_BY == "block pointer":
        if B_IS_TURNED:
            block = tl.make_block_ptr(b_ptr, (n, k), (k, 1), (column, first), (COLUMNS, DEPTH), (1, 0))
        else:
            block = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (first, column), (DEPTH, COLUMNS), (1, 0))
    elif B_IS_TURNED:
        b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [COLUMNS, DEPTH])
    else:
        b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [DEPTH, COLUMNS])
    sums = tl.zeros((ROWS, COLUMNS), out_ptr.dtype.element_ty)
    for start in range(first, k, DEPTH):
        x = a.load([row, start])
        if B_BY == "block pointer":
            y = tl.load(block, boundary_check=(0, 1), padding_option="zero")
            block = tl.advance(block, (0, DEPTH) if B_IS_TURNED else (DEPTH, 0))
        elif B_BY == "pointers":
            deep, wide = start + tl.arange(0, DEPTH), column + columns
            inside = (deep[:, None] >= 0) & (deep[:, None] < k) & (wide[None, :] >= 0) & (wide[None, :] < n)
            places = wide[None, :] * k + deep[:, None] if B_IS_TURNED else deep[:, None] * n + wide[None, :]
            y = tl.load(b_ptr + places, mask=inside, other=0)
        else:
            y = b.load([column, start] if B_IS_TURNED else [start, column])
        if B_IS_TURNED and B_BY != "pointers":
            y = y.T
        sums = tl.dot(x, y, sums)
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], sums)


def expected_product(a, b, tile, place):
    """Of a, (m, k), and b, (n, k): the sums of a tile there, from the first depth on."""
    (rows, columns, depth), (row, column, first) = tile, place
    sums = np.zeros((rows, columns))
    for start in range(first, a.shape[1], depth):
        sums += window(a, row, start, rows, depth) @ window(b, column, start, columns, depth).T
    return sums


@triton.jit
def tiles_in_one_loop(
    a, b, m, n, k, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BY: tl.constexpr, STAGES: tl.constexpr
):
    """A program goes through its tiles in one loop over all their steps; each begins and ends in a branch."""
    down, steps = tl.cdiv(m, BM), tl.cdiv(k, BK)
    tiles = down * tl.cdiv(n, BN)
    mine = tiles // tl.num_programs(0)
    if tl.program_id(0) < tiles % tl.num_programs(0):
        mine += 1
    tile, step, row, column = tl.program_id(0) - tl.num_programs(0), -1, 0, 0
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    if BY == "descriptor":
        of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
        of_b = tl.make_tensor_descriptor(b, [k, n], [n, 1], [BK, BN])
    sums = tl.zeros((BM, BN), c.dtype.element_ty)
    for _ in tl.range(0, steps * mine, num_stages=STAGES):
        step = tl.where(step == steps - 1, 0, step + 1)
        if step == 0:
            tile += tl.num_programs(0)
            row, column = tile % down * BM, tile // down * BN
            rows = tl.where(row + tl.arange(0, BM) < m, row + tl.arange(0, BM), 0)
            columns = column + tl.arange(0, BN)
        if BY == "descriptor":
            x, y = of_a.load([row, step * BK]), of_b.load([step * BK, column])
        else:
            left = k - step * BK
            x = tl.load(a + rows[:, None] * k + step * BK + depth, mask=depth[None, :] < left, other=0.0)
            inside = (depth[:, None] < left) & (columns[None, :] < n)
            y = tl.load(b + (step * BK + depth[:, None]) * n + columns, mask=inside, other=0.0)
        sums = tl.dot(x, y, sums)
        if step == steps - 1:
            i, j = (row + tl.arange(0, BM))[:, None], (column + tl.arange(0, BN))[None, :]
            tl.store(c + i * n + j, sums, mask=(i < m) & (j < n))
            sums = tl.zeros((BM, BN), c.dtype.element_ty)


@triton.jit
def product_of_triangle(
    a, b, n, k, c, BRANCH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    """tril(a) b: tl.where takes what lies above the diagonal, in each step or in a branch of those that meet it."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, k, BK, num_stages=STAGES):
        depth = start + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + depth[None, :])
        if not BRANCH:
            x = tl.where(depth[None, :] <= rows[:, None], x, 0.0)
        elif start + BK > tl.program_id(0) * BM:
            x = tl.where(depth[None, :] > rows[:, None], 0.0, x)
        sums = tl.dot(x, tl.load(b + depth[:, None] * n + columns[None, :]), sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


WAYS = ["for", "while", "down", "sum", "bits", "two", "unrolled", "where"]
BRANCHES = ["branch", "sides", "turns", "within"]
AHEAD = ["ahead", "ahead moved on", "ahead by index", "ahead masked", "ahead by block"]


@triton.jit
def product_in_a_way(
    a, b, n, k, c, WAY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr = None
):
    """The same product, of whole tiles, by loops that are written differently."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    of_a = a + rows[:, None] * k + depth[None, :]
    of_b = b + depth[:, None] * n + columns[None, :]
    sums = tl.zeros((BM, BN), c.dtype.element_ty)
    if WAY == "while":
        start = 0
        while start < k:
            sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            of_a += BK
            of_b += BK * n
            start += BK
    elif WAY == "down":
        for left in range(k, 0, -BK):
            mask = depth < left
            x = tl.load(of_a, mask=mask[None, :], other=0.0)
            sums = tl.dot(x, tl.load(of_b, mask=mask[:, None], other=0.0), sums)
            of_a += BK
            of_b += BK * n
    elif WAY == "two":
        for _ in range(0, k, 2 * BK):
            sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            sums = tl.dot(tl.load(of_a + BK), tl.load(of_b + BK * n), sums)
            of_a += 2 * BK
            of_b += 2 * BK * n
    elif WAY == "unrolled":
        for _ in tl.range(0, k, BK, loop_unroll_factor=2):
            sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            of_a += BK
            of_b += BK * n
    elif WAY == "branch":
        for start in range(0, k, BK):
            if start % (2 * BK) == 0:
                sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            else:
                sums += tl.dot(tl.load(of_a), tl.load(of_b), out_dtype=sums.dtype)
            of_a += BK
            of_b += BK * n
    elif WAY == "sides":
        for start in range(0, k, BK):
            place = start + depth
            if start < k // 2:
                x = tl.load(a + rows[:, None] * k + place[None, :])
                sums = tl.dot(x, tl.load(b + place[:, None] * n + columns[None, :]), sums)
            else:
                y = tl.load(b + place[:, None] * n + columns[None, :], mask=place[:, None] < k, other=0.0)
                sums += tl.dot(tl.load(of_a), y, out_dtype=sums.dtype)
            of_a += BK
    elif WAY == "turns":
        for start in range(0, k, BK):
            if start % (2 * BK) == 0:
                sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            if start % (2 * BK) != 0:
                sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            of_a += BK
            of_b += BK * n
    elif WAY == "within":
        for start in range(0, k, BK):
            if start < k - BK:
                x = tl.load(of_a)
                if start % (2 * BK) == 0:
                    sums = tl.dot(x, tl.load(of_b), sums)
                else:
                    y = tl.load(of_b)
                    sums = tl.dot(x, y, sums)
            else:
                sums = tl.dot(tl.load(of_a), tl.load(of_b), sums)
            of_a += BK
            of_b += BK * n
    elif WAY == "ahead":
        x, y = tl.load(of_a), tl.load(of_b)
        for _ in range(BK, k, BK):
            of_a += BK
            of_b += BK * n
            next_x, next_y = tl.load(of_a), tl.load(of_b)
            sums = tl.dot(x, y, sums)
            x, y = next_x, next_y
        sums = tl.dot(x, y, sums)
    elif WAY == "ahead moved on":
        x, y = tl.load(of_a), tl.load(of_b)
        of_a += BK
        of_b += BK * n
        for _ in range(BK, k, BK):
            sums = tl.dot(x, y, sums)
            x, y = tl.load(of_a), tl.load(of_b)
            of_a += BK
            of_b += BK * n
        sums = tl.dot(x, y, sums)
    elif WAY == "ahead by index":
        x, y = tl.load(of_a), tl.load(of_b)
        for start in range(BK, k, BK):
            next_x = tl.load(a + rows[:, None] * k + (start + depth)[None, :])
            next_y = tl.load(b + (start + depth)[:, None] * n + columns[None, :])
            sums = tl.dot(x, y, sums)
            x, y = next_x, next_y
        sums = tl.dot(x, y, sums)
    elif WAY == "ahead masked":
        x = tl.load(of_a, mask=depth[None, :] < k, other=0.0)
        y = tl.load(of_b, mask=depth[:, None] < k, other=0.0)
        for step in range(0, tl.cdiv(k, BK)):
            sums = tl.dot(x, y, sums)
            of_a += BK
            of_b += BK * n
            x = tl.load(of_a, mask=depth[None, :] < k - (step + 1) * BK, other=0.0)
            y = tl.load(of_b, mask=depth[:, None] < k - (step + 1) * BK, other=0.0)
    elif WAY == "ahead by block":
        block = tl.make_block_ptr(a, (n, k), (k, 1), (tl.program_id(0) * BM, 0), (BM, BK), (1, 0))
        x, y = tl.load(block, boundary_check=(1,), padding_option="zero"), tl.load(of_b)
        for _ in range(BK, k, BK):
            block = tl.advance(block, (0, BK))
            of_b += BK * n
            next_x, next_y = tl.load(block, boundary_check=(1,), padding_option="zero"), tl.load(of_b)
            sums = tl.dot(x, y, sums)
            x, y = next_x, next_y
        sums = tl.dot(x, y, sums)
    else:
        for start in range(0, k, BK):
            x, y = tl.load(of_a), tl.load(of_b)
            if WAY == "sum":
                sums += tl.dot(x, y, out_dtype=sums.dtype)
            elif WAY == "bits":
                sums = tl.dot(x.to(tl.float16, bitcast=True), y.to(tl.float16, bitcast=True), sums)
            elif WAY == "where":
                x = tl.where((depth < k - start)[None, :], x, 0.0)
                sums = tl.dot(x, tl.where((depth < k - start)[:, None], y, 0.0), sums)
            else:
                sums = tl.dot(x, y, sums)
            of_a += BK
            of_b += BK * n
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def picked_steps(a, b, n, k, picked, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    """A product without the steps of K that a table leaves out; of those with a 2, a counts twice."""
    rows, columns, depth = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, k, BK, num_stages=STAGES):
        kind = tl.load(picked + start // BK)
        if kind != 0:
            place = start + depth
            x = tl.load(a + rows[:, None] * k + place[None, :], mask=place[None, :] < k, other=0.0)
            if kind == 2:
                x += x
            y = tl.load(b + place[:, None] * n + columns[None, :], mask=place[:, None] < k, other=0.0)
            sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)
