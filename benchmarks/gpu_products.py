"""Kernels for gpu.py that tensor cores are busy with: products of matrices, plain, batched and of quantised operands.

The vendor's libraries do the same through torch. Results are checked against products in fp32 of the same values.
"""

from functools import partial

import torch
from gpu_case import DEVICE, Case, by_tile, is_close

import triton
import triton.language as tl

HALF, BFLOAT, FLOAT, INT8 = torch.float16, torch.bfloat16, torch.float32, torch.int8
FP8 = torch.float8_e4m3fn
RESULTS = {FP8: HALF, INT8: torch.int32}  # where they are not of the operands' type
GROUP = 128  # along K, of 4-bit weights with one scale

# rows, columns and depth of a program's tile; warps; stages
TILES = [
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (256, 128, 64, 8, 3),
    (128, 128, 64, 4, 3),
    (128, 128, 64, 8, 4),
    (128, 128, 32, 8, 3),
    (256, 128, 32, 8, 3),
    (64, 128, 64, 4, 4),
    (64, 64, 64, 4, 5),
    (16, 64, 128, 4, 5),
]
# the same for multiply-adds, of products in fp32 that are to be exact
EXACT_TILES = [
    (128, 128, 32, 4, 3),
    (128, 128, 32, 4, 2),
    (128, 128, 16, 8, 3),
    (128, 128, 32, 8, 2),
    (128, 128, 8, 8, 4),
    (128, 64, 16, 4, 3),
    (64, 64, 16, 4, 3),
]


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_column, b_row, b_column, out_row,
    a_batch, b_batch, out_batch,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
    SUM: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Programs go through bands of BAND tiles of rows, so that those at work share operands in the cache."""
    program = tl.program_id(0)
    tiles_down, tiles_across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    band = program // (BAND * tiles_across)
    height = min(tiles_down - band * BAND, BAND)
    inside = program % (BAND * tiles_across)
    first_row = (band * BAND + inside % height) * ROWS
    first_column = inside // height * COLUMNS
    a_ptr += tl.program_id(1) * a_batch
    b_ptr += tl.program_id(1) * b_batch
    out_ptr += tl.program_id(1) * out_batch
    rows = (first_row + tl.arange(0, ROWS)) % m
    columns = (first_column + tl.arange(0, COLUMNS)) % n
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * a_row + depth[None, :] * a_column
    b_ptrs = b_ptr + depth[:, None] * b_row + columns[None, :] * b_column
    sums = tl.zeros((ROWS, COLUMNS), SUM)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptrs, mask=depth[None, :] < k - start, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < k - start, other=0.0)
        sums = tl.dot(a, b, sums, input_precision=PRECISION, out_dtype=SUM)
        a_ptrs += DEPTH * a_column
        b_ptrs += DEPTH * b_row
    rows = first_row + tl.arange(0, ROWS)
    columns = first_column + tl.arange(0, COLUMNS)
    inside_out = (rows < m)[:, None] & (columns < n)[None, :]
    out = sums.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * out_row + columns[None, :], out, mask=inside_out)


def operand(shape, dtype):
    if dtype == INT8:
        return torch.randint(-128, 128, shape, device=DEVICE, dtype=INT8)
    return torch.randn(shape, device=DEVICE).to(dtype)


def matmul(m, n, k, dtype, batch=1, precision="tf32"):
    """Right operands of 8 bits lie along K, the others along N."""
    narrow = dtype in (FP8, INT8)
    a = operand((batch, m, k), dtype)
    b = operand((batch, n, k), dtype).mT if narrow else operand((batch, k, n), dtype)
    out = torch.empty(batch, m, n, device=DEVICE, dtype=RESULTS.get(dtype, dtype))
    other = torch.empty_like(out)
    strides = *a.stride()[1:], *b.stride()[1:], out.stride(1), a.stride(0), b.stride(0), out.stride(0)

    def launch(rows, columns, depth, warps, stages):
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns), batch)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8, "PRECISION": precision}
        sizes["SUM"] = tl.int32 if dtype == INT8 else tl.float32
        matmul_kernel[grid](a, b, out, m, n, k, *strides, **sizes, num_warps=warps, num_stages=stages)

    def reference():
        if dtype == FP8:
            one = torch.ones((), device=DEVICE)
            return torch._scaled_mm(a[0], b[0], one, one, out_dtype=HALF, use_fast_accum=True)
        if dtype == INT8:
            return torch._int_mm(a[0], b[0])
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        return torch.matmul(a, b, out=other) if batch > 1 else torch.matmul(a[0], b[0], out=other[0])

    def check(result):
        torch.backends.cuda.matmul.allow_tf32 = False
        wide = torch.float64 if dtype == INT8 else torch.float32
        return is_close(result, a.to(wide) @ b.to(wide), 4e-3 if precision == "tf32" else 1e-5)

    tiles = TILES if precision == "tf32" else EXACT_TILES
    fits = [t for t in tiles if a.itemsize * t[2] * (t[0] + t[1]) * max(2, t[4] - 1) <= 200 << 10]
    configs = by_tile(launch, fits)
    moved = (a.numel() + b.numel()) * a.itemsize + out.numel() * out.itemsize
    return Case(configs, out, None, reference, moved, check=check)


@triton.jit
def place_of(tile, tiles_down, tiles_across, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BAND: tl.constexpr):
    """The first row and column of a tile; tiles are counted down bands of BAND tiles, which share blocks in the L2."""
    first = tile // (BAND * tiles_across) * BAND
    height = min(tiles_down - first, BAND)
    inside = tile % (BAND * tiles_across)
    return (first + inside % height) * ROWS, inside // height * COLUMNS


@triton.jit
def lines_from(first, count, SIZE: tl.constexpr):
    """The rows or columns of a tile, as one run: 0 stands for what lies behind the last, which is not stored."""
    lines = tl.where(first + tl.arange(0, SIZE) < count, first + tl.arange(0, SIZE), 0)
    return tl.max_contiguous(tl.multiple_of(lines, SIZE), SIZE)


@triton.jit
def persistent_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """As many programs as there are multiprocessors go through the tiles. b is (n, k)."""
    tiles_down, tiles_across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    depth = tl.arange(0, DEPTH)
    for tile in tl.range(tl.program_id(0), tiles_down * tiles_across, tl.num_programs(0), flatten=True):
        first_row, first_column = place_of(tile, tiles_down, tiles_across, ROWS, COLUMNS, BAND)
        rows, columns = lines_from(first_row, m, ROWS), lines_from(first_column, n, COLUMNS)
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        for step in range(tl.cdiv(k, DEPTH)):
            inner = step * DEPTH + depth
            a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=inner[None, :] < k, other=0.0)
            b = tl.load(b_ptr + columns[None, :] * k + inner[:, None], mask=inner[:, None] < k, other=0.0)
            sums = tl.dot(a, b, sums)
        rows, columns = first_row + tl.arange(0, ROWS), first_column + tl.arange(0, COLUMNS)
        mask = (rows < m)[:, None] & (columns < n)[None, :]
        tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def descriptors_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """The same through tensor descriptors that the program makes."""
    a_tiles = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [ROWS, DEPTH])
    b_tiles = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [COLUMNS, DEPTH])
    out_tiles = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [ROWS, COLUMNS])
    tiles_down, tiles_across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    for tile in tl.range(tl.program_id(0), tiles_down * tiles_across, tl.num_programs(0), flatten=True):
        row, column = place_of(tile, tiles_down, tiles_across, ROWS, COLUMNS, BAND)
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        for step in range(tl.cdiv(k, DEPTH)):
            a, b = a_tiles.load([row, step * DEPTH]), b_tiles.load([column, step * DEPTH])
            sums = tl.dot(a, b.T, sums)
        out_tiles.store([row, column], sums.to(out_ptr.dtype.element_ty))


@triton.jit
def one_loop_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """The same in one loop over the steps of all tiles of a program, which begin and end in branches."""
    tiles_down, tiles_across, steps = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS), tl.cdiv(k, DEPTH)
    own = (tiles_down * tiles_across - tl.program_id(0) + tl.num_programs(0) - 1) // tl.num_programs(0)
    tile, step, first_row, first_column = tl.program_id(0) - tl.num_programs(0), -1, 0, 0
    rows, columns, depth = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(own * steps):
        step = tl.where(step == steps - 1, 0, step + 1)
        if step == 0:
            tile += tl.num_programs(0)
            first_row, first_column = place_of(tile, tiles_down, tiles_across, ROWS, COLUMNS, BAND)
            rows, columns = lines_from(first_row, m, ROWS), lines_from(first_column, n, COLUMNS)
        inner = step * DEPTH + depth
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=inner[None, :] < k, other=0.0)
        b = tl.load(b_ptr + columns[None, :] * k + inner[:, None], mask=inner[:, None] < k, other=0.0)
        sums = tl.dot(a, b, sums)
        if step == steps - 1:
            i, j = first_row + tl.arange(0, ROWS), first_column + tl.arange(0, COLUMNS)
            mask = (i < m)[:, None] & (j < n)[None, :]
            tl.store(out_ptr + i[:, None] * n + j[None, :], sums.to(out_ptr.dtype.element_ty), mask=mask)
            sums = tl.zeros((ROWS, COLUMNS), tl.float32)


@triton.jit
def batches_kernel(
    a_ptr, b_ptr, out_ptr, batches, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr
):
    """Products of batches through descriptors of three dimensions."""
    area = size * size
    a_tiles = tl.make_tensor_descriptor(a_ptr, [batches, size, size], [area, size, 1], [1, ROWS, DEPTH])
    b_tiles = tl.make_tensor_descriptor(b_ptr, [batches, size, size], [area, size, 1], [1, DEPTH, COLUMNS])
    out_tiles = tl.make_tensor_descriptor(out_ptr, [batches, size, size], [area, size, 1], [1, ROWS, COLUMNS])
    row, column, batch = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS, tl.program_id(2)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, size, DEPTH):
        a = a_tiles.load([batch, row, start]).reshape(ROWS, DEPTH)
        sums = tl.dot(a, b_tiles.load([batch, start, column]).reshape(DEPTH, COLUMNS), sums)
    out_tiles.store([batch, row, column], sums.to(out_ptr.dtype.element_ty).reshape(1, ROWS, COLUMNS))


def batches_matmul(batches, size):
    a, b = operand((batches, size, size), HALF), operand((batches, size, size), HALF)
    out, other = torch.empty_like(a), torch.empty_like(a)
    give_descriptors_memory()

    def launch(rows, columns, depth, warps, stages):
        grid = (triton.cdiv(size, rows), triton.cdiv(size, columns), batches)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        batches_kernel[grid](a, b, out, batches, size, **sizes, num_warps=warps, num_stages=stages)

    return Case(
        by_tile(launch, [tile for tile in TILES if tile[0] >= 128]), out, None, lambda: torch.bmm(a, b, out=other),
        6 * a.numel(), check=lambda result: is_close(result, a.float() @ b.float()),
    )  # fmt: skip


def give_descriptors_memory():
    """Some compilers keep descriptors in memory that the program gives."""
    if DEVICE == "cuda":
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device=DEVICE, dtype=torch.int8))


def staying_matmul(kernel, size):
    a, b = operand((size, size), HALF), operand((size, size), HALF)
    out, other = (torch.empty(size, size, device=DEVICE, dtype=HALF) for _ in range(2))
    give_descriptors_memory()

    def launch(rows, columns, depth, warps, stages):
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "BAND": 8}
        programs = min(132, triton.cdiv(size, rows) * triton.cdiv(size, columns))
        kernel[(programs,)](a, b, out, size, size, size, **sizes, num_warps=warps, num_stages=stages)

    return Case(
        by_tile(launch, [tile for tile in TILES if tile[0] >= 128]), out, None, lambda: torch.matmul(a, b.T, out=other),
        6 * size * size, check=lambda result: is_close(result, a.float() @ b.float().T),
    )  # fmt: skip


@triton.jit
def int4_kernel(
    a_ptr, b_ptr, scale_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Weights of 4 bits, eight of them along K to a word: b is (k / 8, n), scales are (k / GROUP, n)."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + (depth // 8)[:, None] * n + columns[None, :]
    shifts = (depth % 8 * 4)[:, None]
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0)
        weights = ((tl.load(b_ptrs) >> shifts) & 15) - 8
        scale = tl.load(scale_ptr + start // GROUP * n + columns)
        sums = tl.dot(a, weights.to(tl.float16) * scale[None, :], sums)
        a_ptrs += DEPTH
        b_ptrs += DEPTH // 8 * n
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16), mask=rows[:, None] < m)


def int4_matmul(m, n, k):
    a = operand((m, k), HALF)
    weights = torch.randint(0, 16, (k, n), device=DEVICE, dtype=torch.int32)
    scales = torch.rand(k // GROUP, n, device=DEVICE).to(HALF)
    packed = torch.zeros(k // 8, n, device=DEVICE, dtype=torch.int32)
    for i in range(8):
        packed |= weights[i::8] << 4 * i
    wide = (weights - 8).to(HALF) * scales.repeat_interleave(GROUP, 0)
    out, other = (torch.empty(m, n, device=DEVICE, dtype=HALF) for _ in range(2))

    def launch(rows, columns, depth, warps, stages):
        grid = triton.cdiv(m, rows), triton.cdiv(n, columns)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUP": GROUP}
        int4_kernel[grid](a, packed, scales, out, m, n, k, **sizes, num_warps=warps, num_stages=stages)

    tiles = [(16, 32, 128, 4, 4), (16, 64, 128, 4, 3), (16, 64, 64, 4, 4), (16, 128, 64, 4, 4), (16, 32, 64, 2, 5)]
    configs = by_tile(launch, tiles)
    moved = a.numel() * 2 + packed.numel() * 4 + scales.numel() * 2 + out.numel() * 2
    return Case(
        configs, out, None, lambda: torch.matmul(a, wide, out=other), moved,
        check=lambda result: is_close(result, a.float() @ wide.float()),
    )  # fmt: skip


@triton.jit
def mxfp8_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Both operands lie along K; 32 elements of it share a scale. Extents are multiples of the tile's."""
    tiles_down = m // ROWS
    rows = tl.program_id(0) % tiles_down * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) // tiles_down * COLUMNS + tl.arange(0, COLUMNS)
    depth, groups = tl.arange(0, DEPTH), tl.arange(0, DEPTH // 32)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + columns[None, :] * k + depth[:, None]
    a_scale_ptrs = a_scale_ptr + rows[:, None] * (k // 32) + groups[None, :]
    b_scale_ptrs = b_scale_ptr + columns[:, None] * (k // 32) + groups[None, :]
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(0, k, DEPTH):
        a_scale, b_scale = tl.load(a_scale_ptrs), tl.load(b_scale_ptrs)
        sums = tl.dot_scaled(tl.load(a_ptrs), a_scale, "e4m3", tl.load(b_ptrs), b_scale, "e4m3", sums)
        a_ptrs += DEPTH
        b_ptrs += DEPTH
        a_scale_ptrs += DEPTH // 32
        b_scale_ptrs += DEPTH // 32
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def mxfp8_matmul(size):
    a, b = (torch.randn(size, size, device=DEVICE).to(FP8) for _ in range(2))
    scales = [torch.randint(125, 130, (size, size // 32), device=DEVICE, dtype=torch.uint8) for _ in range(2)]
    wide = [
        (x.float() * torch.exp2(s.float() - 127).repeat_interleave(32, 1)).to(BFLOAT)
        for x, s in zip((a, b), scales, strict=True)
    ]
    out = torch.empty(size, size, device=DEVICE, dtype=HALF)
    other = torch.empty(size, size, device=DEVICE, dtype=BFLOAT)

    def launch(rows, columns, depth, warps, stages):
        grid = (size // rows * (size // columns),)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
        arguments = a, scales[0], b, scales[1], out, size, size, size
        mxfp8_kernel[grid](*arguments, **sizes, num_warps=warps, num_stages=stages)

    tiles = [
        (128, 128, 64, 8, 3),
        (128, 128, 128, 8, 3),
        (128, 256, 64, 8, 3),
        (128, 128, 64, 4, 3),
        (128, 64, 128, 4, 3),
    ]
    configs = by_tile(launch, tiles)
    moved = 2 * a.numel() + 2 * scales[0].numel() + 2 * out.numel()
    return Case(
        configs, out, None, lambda: torch.matmul(wide[0], wide[1].T, out=other), moved,
        check=lambda result: is_close(result, wide[0].float() @ wide[1].float().T),
    )  # fmt: skip


def _cases():
    names = {HALF: "fp16", BFLOAT: "bf16", FP8: "fp8", FLOAT: "tf32"}
    squares = [(HALF, 512), (HALF, 1000), (HALF, 1024), (HALF, 2048), (HALF, 4096), (HALF, 8192)]
    for dtype, size in [*squares, (BFLOAT, 4096), (BFLOAT, 8192), (FP8, 4096), (FP8, 8192), (FLOAT, 4096)]:
        yield f"matmul {size}x{size}x{size} {names[dtype]}", partial(matmul, size, size, size, dtype)
    yield "matmul 4096x4096x4096 fp32", partial(matmul, 4096, 4096, 4096, FLOAT, precision="ieee")
    for m, n, k in ((16, 4096, 4096), (128, 4096, 14336)):
        yield f"matmul {m}x{n}x{k} fp16", partial(matmul, m, n, k, HALF)
    yield "matmul 4096x4096x4096 int8", partial(matmul, 4096, 4096, 4096, INT8)
    yield "matmul 64 of 512x512x512 fp16", partial(matmul, 512, 512, 512, HALF, batch=64)
    yield "persistent matmul 4096x4096x4096 fp16", partial(staying_matmul, persistent_kernel, 4096)
    yield "persistent matmul 4096x4096x4096 fp16 in one loop", partial(staying_matmul, one_loop_kernel, 4096)
    yield "descriptors matmul 4 of 2048x2048x2048 fp16", partial(batches_matmul, 4, 2048)
    for size in (4096, 8192):
        yield f"descriptors matmul {size}x{size}x{size} fp16", partial(staying_matmul, descriptors_kernel, size)
    yield "matmul 16x4096x4096 fp16 and int4", partial(int4_matmul, 16, 4096, 4096)
    yield "matmul 4096x4096x4096 mxfp8", partial(mxfp8_matmul, 4096)


CASES = dict(_cases())
