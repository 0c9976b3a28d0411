"""PTX of whole kernels: ptxas takes it, and it has the properties that make it fast. No GPU is needed."""

import re
from types import SimpleNamespace

import pytest
from assembling import unused
from block_products import AHEAD, BRANCHES, WAYS, product_in_a_way, product_of_triangle, tiles_in_one_loop
from gpu_kernels import (
    add_rows,
    assemble,
    batched_matmul,
    cast,
    column_sums,
    compile_ir,
    compile_kernel,
    cumsum,
    ir,
    layer_norm,
    matmul,
    scans_of_columns,
    scatter_add,
    softmax,
    softmax_rows,
    sort,
    transpose,
    transpose_twice,
    vector_add,
    weighted_sums,
)

import triton
import triton.language as tl
from triton import _C
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice

SMS = [80, 90]
WIDE_LOAD, WIDE_STORE = r"\bld\.global[\w.:]*\.v4\.b32", r"\bst\.global[\w.:]*\.v4\.b32"
LOAD, STORE = r"\bld(\.volatile)?\.global", r"\bst(\.volatile)?\.global"
BARRIER = r"\bbar\.sync\b"
SHARED_LOAD, SHARED_STORE = r"\bld\.shared\.v4\.b32", r"\bst\.shared\.v4\.b32"


def pointer(dtype, aligned=16):
    return (f"*{dtype}", aligned)


def integer(divisibility=16):
    return ("i32", divisibility)


# name: kernel, arguments, constants, warps; 16-byte loads and stores, other ones, barriers, conversions of layouts
F32, F16, I32 = pointer("fp32"), pointer("fp16"), pointer("i32")
CASES = {
    "vector add": (vector_add, [F32, F32, F32, integer()], {"BLOCK": 1024}, 4, (4, 2, 0, 0), 0, 0),
    "vector add of any length": (vector_add, [F32, F32, F32, integer(1)], {"BLOCK": 1024}, 4, (4, 2, 14, 7), 0, 0),
    "vector add of halves": (vector_add, [F16, F16, F16, integer()], {"BLOCK": 1024}, 4, (2, 1, 0, 0), 0, 0),
    "softmax of 1024": (softmax, [F32, F32, integer(), integer()], {"BLOCK": 1024}, 4, (2, 2, 0, 0), 2, 0),
    "softmax of 781": (softmax, [F32, F32, integer(1), integer(1)], {"BLOCK": 1024}, 4, (0, 0, 8, 8), 2, 0),
    "softmax in a warp": (softmax, [F32, F32, integer(), integer()], {"BLOCK": 1024}, 1, (8, 8, 0, 0), 0, 0),
    "softmax of 16384": (softmax, [F32, F32, integer(), integer()], {"BLOCK": 16384}, 16, (8, 8, 0, 0), 2, 0),
    "softmax of rows": (
        softmax_rows, [F32, F32, integer(), integer(1)], {"ROWS": 4, "COLS": 512}, 4, (4, 4, 0, 0), 0, 0
    ),
    "layer norm": (
        layer_norm, [F16, F16, F16, F16, F32, F32, integer(), integer(), ("fp32", 1)], {"BLOCK": 1024}, 4,
        (9, 1, 0, 2), 2, 0,
    ),
    "transposition": (transpose, [F32, F32, integer(), integer()], {"BM": 64, "BN": 64}, 4, (8, 8, 0, 0), 1, 1),
    "transposition of halves": (
        transpose, [F16, F16, integer(), integer()], {"BM": 64, "BN": 64}, 4, (4, 4, 0, 0), 1, 1
    ),
    "prefix sums": (cumsum, [F32, F32], {"BLOCK": 1024}, 4, (2, 2, 0, 0), 1, 0),
    "column sums": (column_sums, [F32, F32, integer()], {"ROWS": 64, "COLS": 64}, 4, (8, 1, 0, 0), 1, 0),
    "scattered additions": (scatter_add, [F32, I32, F32], {"BLOCK": 1024}, 4, (4, 0, 0, 0), 0, 0),
    "matrix product": (
        matmul, [F32, F32, F32, integer(), integer(), integer()], {"BM": 64, "BN": 64, "BK": 32}, 4, (0, 8, 0, 0), 1, 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize("name", CASES)
def test_kernel(name, sm):
    kernel, entries, constants, warps, accesses, barriers, conversions = CASES[name]
    compiled = compile_kernel(kernel, *entries, sm=sm, num_warps=warps, **constants)
    wide = compiled.count(WIDE_LOAD), compiled.count(WIDE_STORE)
    others = compiled.count(LOAD) - wide[0], compiled.count(STORE) - wide[1]
    assert (*wide, *others) == accesses
    assert compiled.count(BARRIER) == barriers
    assert compiled.ttgir.count("convert_layout") == conversions
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)


@pytest.mark.parametrize("name", CASES)
def test_wide_offsets_keep_the_accesses(name):
    """With offsets of 64 bits, for arrays of more than 2**31 elements, memory is accessed as it is with 32."""
    kernel, entries, constants, warps, accesses, barriers, conversions = CASES[name]
    text = _C._run_pass(ir(kernel, *entries, **constants), "cse")
    wide = compile_ir(_C._run_pass(text, "widen"), 90, warps, pipeline=True)
    vectors = wide.count(WIDE_LOAD), wide.count(WIDE_STORE)
    if name == "vector add of any length":  # of a vector's last element, that it is never accessed alone is not found
        accesses = 4, 2, 16, 8
    assert (*vectors, wide.count(LOAD) - vectors[0], wide.count(STORE) - vectors[1]) == accesses
    assert wide.count(BARRIER) == barriers
    assert wide.ttgir.count("convert_layout") == conversions
    assert assemble(wide, 90).spills == 0


@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize(
    "dtype, warps, tile, multiplications, loads",
    [
        (F32, 8, (128, 128, 64), 512, 32),  # eight k, each with two vectors of both operands
        (F32, 4, (128, 128, 64), 512, 24),
        (F32, 4, (64, 64, 32), 1024, 96),  # small enough to go without a loop
    ],
)  # fmt: skip
def test_products_are_rolled_loops_over_vectors(dtype, warps, tile, multiplications, loads, sm):
    sizes = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    compiled = compile_kernel(
        matmul, dtype, dtype, F32, integer(), integer(), integer(), sm=sm, num_warps=warps, **sizes
    )
    assert compiled.count(r"\bfma\.rn\.f32\b") == multiplications
    assert compiled.count(r"\bld\.shared\.v4\.b32") == loads == compiled.count(r"\bld\.shared\b")


TILE = {"BM": 128, "BN": 128, "BK": 64}


def tensor_core_product(dtype, sm, warps=8, other=None, **options):
    entries = [dtype, other or dtype, F32, integer(), integer(), integer()]
    return compile_kernel(matmul, *entries, sm=sm, num_warps=warps, **{**TILE, **options})


@triton.jit
def several_products(a_ptr, b_ptr, c_ptr, n, count: tl.constexpr, BRANCH: tl.constexpr):
    """One after the other, each in tiles that the programs share; half of them in branches."""
    rows, depths = tl.arange(0, 128), tl.arange(0, 64)
    for each in tl.static_range(count):
        for tile in range(tl.program_id(0), n, tl.num_programs(0)):
            first, sums = (each * n + tile) * 128, tl.zeros((128, 128), tl.float32)
            if BRANCH and tile % 2 == 0:
                for k in range(0, n, 64):
                    a = tl.load(a_ptr + (first + rows)[:, None] * n + k + depths)
                    sums = tl.dot(a, tl.load(b_ptr + (k + depths)[:, None] * n + rows), sums)
            else:
                for k in range(0, n, 64):
                    a = tl.load(a_ptr + (first + rows)[:, None] * n + k + depths)
                    sums = tl.dot(a, tl.load(b_ptr + (k + depths)[:, None] * n + rows), sums)
            tl.store(c_ptr + (first + rows)[:, None] * n + rows, sums)


def test_products_one_after_the_other_share_their_buffers():
    entries = [F16, F16, F32, integer()]
    options = {"sm": 90, "num_warps": 8, "num_stages": 4}
    alone = compile_kernel(several_products, *entries, count=1, BRANCH=False, **options)
    copies = alone.count(r"cp\.async\.cg\.shared\.global")
    for count, branch in [(2, False), (4, False), (4, True)]:
        compiled = compile_kernel(several_products, *entries, count=count, BRANCH=branch, **options)
        assert compiled.shared == alone.shared
        assert compiled.count(r"cp\.async\.cg\.shared\.global") == copies * count * (2 if branch else 1)


@pytest.mark.parametrize("columns, left, barriers", [(256, 2, 1), (128, 1, 2)])
def test_products_of_warpgroups(columns, left, barriers):
    """Operands come in vectors and are read where they land; products stay under way in the next iteration. Where a
    slot less lets two programs onto a multiprocessor, the copies wait for the products of the iteration before."""
    compiled = tensor_core_product(F16, 90, BN=columns)
    assert compiled.count(rf"wgmma\.mma_async\.sync\.aligned\.m64n{columns}k16\.f32\.f16\.f16") == 4
    assert compiled.count(rf"wgmma\.wait_group\.sync\.aligned {left};") == 1
    copies = (TILE["BM"] + columns) * TILE["BK"] * 2 // 16 // 256
    assert compiled.count(r"cp\.async\.cg\.shared\.global") == copies * 3  # two iterations ahead, and in the loop
    assert compiled.count(r"fence\.proxy") == 0
    loop = re.search(r"cp\.async\.wait_group 1;.*?bra", compiled.ptx, re.S)[0]
    assert loop.count("bar.sync") == barriers and "ld.shared" not in loop
    portions = [part.count("cp.async.cg") for part in loop.split("wgmma.mma_async")[1:-1]]
    assert sum(portions) == copies and max(portions) - min(portions) <= 1  # behind each step but the last
    assert loop.count("wgmma.commit_group") == 2  # of the first step, and of the rest
    used = assemble(compiled, 90)
    assert (used.stack, used.spills) == (0, 0)


@pytest.mark.parametrize(
    "sums, warps, most, columns",
    [("fp32", 8, 0, 256), ("fp32", 8, 128, 128), ("fp32", 16, 0, 128), ("fp32", 32, 0, 64), ("fp16", 16, 0, 256)],
)
def test_products_have_registers_for_an_instruction(sums, warps, most, columns):
    """ptxas refuses a wgmma whose sums leave it none."""
    entries = [F16, F16, pointer(sums), integer(), integer(), integer()]
    text = ir(matmul, *entries, BM=256, BN=256, BK=16, SUM={"fp16": tl.float16, "fp32": tl.float32}[sums])
    compiled = compile_ir(text, 90, warps, pipeline=True, max_registers=most)
    assert compiled.count(r"wgmma\.mma_async") == compiled.count(rf"m64n{columns}k16") > 0
    assemble(compiled, 90)


@triton.jit
def product_in_batches(a_ptr, b_ptr, c_ptr, m, n, k, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """Tiles with a dimension for the batch, of one element, which goes before the product."""
    batch, i, d = tl.program_id(0) + tl.arange(0, 1)[:, None, None], tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    a_ptrs = a_ptr + batch * m * k + i[None, :, None] * k + d[None, None, :]
    b_ptrs = b_ptr + batch * n * k + d[None, :, None] * n + i[None, None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        a, b = tl.load(a_ptrs, mask=d[None, None, :] < k - start, other=0.0), tl.load(b_ptrs)
        if HOW == "reshape":
            a, b = a.reshape(BLOCK, BLOCK), b.reshape(BLOCK, BLOCK)
        elif HOW == "index":
            a, b = a[0], b[0]
        else:
            a, b = tl.sum(a, 0), tl.sum(b, 0)
        sums = tl.dot(a.to(tl.float16), b.to(tl.float16), sums)
        a_ptrs += BLOCK
        b_ptrs += BLOCK * n
    tl.store(c_ptr + i[:, None] * BLOCK + i[None, :], sums)


@pytest.mark.parametrize("how", ["reshape", "index", "sum"])
@pytest.mark.parametrize("sm", SMS)
def test_products_of_what_has_a_dimension_of_one_element(how, sm):
    """Copies go to the buffer that tensor cores read."""
    entries = [F16, F16, F32, integer(), integer(), integer()]
    compiled = compile_kernel(product_in_batches, *entries, sm=sm, HOW=how, BLOCK=64)
    assert compiled.count(r"cp\.async\.cg") == 24
    assert compiled.count(r"\bld\.shared") <= 8 and compiled.count(r"\bst\.shared") <= 8  # of the sums alone
    assemble(compiled, sm)


@pytest.mark.parametrize("by", ["pointers", "descriptor"])
def test_tiles_in_one_loop_are_loaded_ahead(by):
    """What a tile begins with is computed in a branch some steps before, and products are waited for where it ends."""
    entries = [F16, F16, integer(), integer(), integer(), F32]
    text = ir(tiles_in_one_loop, *entries, BM=128, BN=128, BK=64, BY=by, STAGES=3)
    compiled = compile_ir(text, 90, 8, pipeline=True)
    assert compiled.count(r"cp\.async\.cg") == 3 * (128 + 128) * 64 * 2 // 16 // 256
    assert compiled.count(r"\bld\.global") == 0
    waits = re.findall(r"wgmma\.wait_group\.sync\.aligned (\d);", compiled.ptx)
    assert sorted(waits) == ["0", "0", "1"]  # where a tile ends, behind the loop, and for the step before
    assemble(compiled, 90)


def product_in_this_way(way, sm, sums=F32):
    operand = pointer("i16") if way == "bits" else F16
    text = ir(product_in_a_way, operand, operand, integer(), integer(), sums, WAY=way, BM=128, BN=128, BK=64)
    return compile_ir(text, sm, 8, pipeline=True)


@pytest.mark.parametrize("way", WAYS + AHEAD)
def test_ways_to_write_a_product(way):
    """Each iteration's operands are copied ahead to where tensor cores read them, and its products stay under way."""
    compiled = product_in_this_way(way, 90)
    products = 2 if way in ("two", "unrolled") else 1
    assert compiled.count(r"cp\.async\.cg") >= 24 * products
    waits = re.findall(r"wgmma\.wait_group\.sync\.aligned (\d);", compiled.ptx)
    assert waits[0] != "0" and waits.count("0") <= 2  # behind the loop, and behind what is left of an unrolled one
    assemble(compiled, 90)


@pytest.mark.parametrize("way", BRANCHES)
@pytest.mark.parametrize("sm", [80, 90])
def test_products_in_branches(way, sm):
    """What they take is copied ahead where the program comes to them."""
    compiled = product_in_this_way(way, sm)
    assert compiled.count(r"cp\.async\.cg") >= 24
    assert compiled.count(r"\bld\.global") == 0
    assemble(compiled, sm)


@triton.jit
def doubled_in_a_branch(a, b, c, k, TIMES: tl.constexpr):
    lines = tl.arange(0, 64)
    places = lines[:, None] * 64 + lines[None, :]
    sums = tl.zeros((64, 64), tl.float32)
    for step in range(k):
        if step % 2 == 0:
            x = tl.load(a + step * 4096 + places)
            for _ in tl.static_range(TIMES):
                x = x * x + x
            sums = tl.dot(x, tl.load(b + step * 4096 + places), sums)
    tl.store(c + places, sums)


def test_long_computations_of_what_a_branch_loads():
    """Each value is looked at once, however often others are made of it."""
    compiled = compile_kernel(doubled_in_a_branch, F16, F16, F32, integer(), num_warps=4, TIMES=40)
    assert compiled.count(r"cp\.async\.c[ag]") > 0


@triton.jit
def loaded_arrays(pointers, sizes, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product of matrices whose addresses and extents lie in memory; rows have as many elements as they are apart."""
    m, n, k = tl.load(sizes), tl.load(sizes + 1), tl.load(sizes + 2)
    of_a, of_b = (
        tl.load(pointers).to(tl.pointer_type(tl.float16)),
        tl.load(pointers + 1).to(tl.pointer_type(tl.float16)),
    )
    a = tl.make_tensor_descriptor(of_a, [m, k], [k, 1], [BM, BK])
    b = tl.make_tensor_descriptor(of_b, [n, k], [k, 1], [BN, BK])
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        sums = tl.dot(a.load([0, start]), b.load([0, start]).T, sums)
    tl.store(c + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], sums)


@pytest.mark.parametrize("sm", [80, 90])
def test_descriptors_of_loaded_arrays(sm):
    """A descriptor promises rows that begin at multiples of 16 bytes: so many are copied at once, ahead of products."""
    text = ir(loaded_arrays, pointer("i64"), pointer("i32"), F32, BM=128, BN=128, BK=64)
    compiled = compile_ir(text, sm, 8, pipeline=True)
    assert (
        compiled.count(r"cp\.async\.c[ag]\.shared\.global \[\S+\], \[\S+\], 16")
        == 3 * (128 + 128) * 64 * 2 // 16 // 256
    )
    assert compiled.count(r"ld\.global") == compiled.count(r"ld\.global\S*b(32|64)") == 5  # sizes and addresses
    assemble(compiled, sm)


@triton.jit
def in_8_bits(q, k, v, out, BM: tl.constexpr):
    lines = tl.arange(0, BM)
    places = lines[:, None] * BM + lines[None, :]
    weights = tl.dot(tl.load(q + places), tl.trans(tl.load(k + places))).to(tl.float8e4nv)
    tl.store(out + places, tl.dot(weights, tl.trans(tl.load(v + places))))


def test_narrow_elements_are_shuffled_in_words():
    """Sums become operands of 8 bits in the registers of other lanes: four in each exchange."""
    fp8 = pointer("fp8e4nv")
    compiled = compile_kernel(in_8_bits, fp8, fp8, fp8, F32, num_warps=4, BM=64)
    assert compiled.count(r"wgmma\.mma_async") == 4
    assert compiled.count(r"shfl\.sync") == 64 * 64 // 128 // 4
    assemble(compiled, 90)


@triton.jit
def planes(x, w, out, WIDE, AREA, CHANNELS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product of places in planes of an image, of which it is not known how they lie, and channels."""
    place = tl.program_id(0) * BM + tl.arange(0, BM)
    row, column, columns, depth = place // WIDE, place % WIDE, tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, CHANNELS, BK):
        channel, i, j = start + depth, row + start // BK, column - start // BK
        inside = (channel < CHANNELS)[None, :] & (i < WIDE)[:, None] & (j >= 0)[:, None] & (j < WIDE)[:, None]
        spots = x + (channel * AREA)[None, :] + (i * WIDE)[:, None] + (j * CHANNELS)[:, None]
        tile = tl.load(spots, mask=inside, other=0.0)
        sums = tl.dot(tile, tl.load(w + channel[:, None] * BN + columns[None, :]), sums)
    tl.store(out + place[:, None] * BN + columns[None, :], sums)


def test_pointers_stay_where_they_are_computed():
    """What is gathered for a buffer is loaded where its pointers are, which are wider, and would cross memory."""
    sizes = [integer(1), integer(1), integer(1)]
    text = ir(planes, F16, F16, F32, *sizes, BM=128, BN=128, BK=64)
    moved = re.findall(r"convert_layout .*ptr<", compile_ir(text, 90, 8, pipeline=True).ttgir)
    assert not moved


@triton.jit
def claim(places, keys, table, BLOCK: tl.constexpr):
    lines = tl.arange(0, BLOCK)
    tl.atomic_cas(table + tl.load(places + lines), tl.full((BLOCK,), -1, tl.int32), tl.load(keys + lines))


@triton.jit
def count(values, table, BLOCK: tl.constexpr):
    lines = tl.arange(0, BLOCK)
    tl.atomic_add(table + lines, tl.load(values + lines))


@pytest.mark.parametrize("kernel, entries", [(claim, [I32, I32, I32]), (count, [I32, I32])])
def test_atomics_of_neighbours_are_those_of_neighbouring_lanes(kernel, entries):
    """A warp's update of neighbours takes a request for each sector; a thread's own neighbours would take one each."""
    compiled = compile_kernel(kernel, *entries, num_warps=4, BLOCK=512)
    assert compiled.count(r"ld\.global\S*\.v[24]") == 0
    assert compiled.count(r"ld\.global") == 4 * (len(entries) - 1)
    assemble(compiled, 90)


@pytest.mark.parametrize("branch", [False, True])
@pytest.mark.parametrize("sm", [80, 90])
def test_products_of_triangles(branch, sm):
    """Blocks are copied ahead whole, and selected in registers on their way to the tensor cores."""
    sizes = {"BRANCH": branch, "BM": 128, "BN": 128, "BK": 64, "STAGES": 3}
    text = ir(product_of_triangle, F16, F16, integer(), integer(), F32, **sizes)
    compiled = compile_ir(text, sm, 8, pipeline=True)
    assert compiled.count(r"cp\.async\.cg") == 3 * (128 + 128) * 64 * 2 // 16 // 256
    assert compiled.count(r"\bld\.global") == 0
    assemble(compiled, sm)


def test_products_of_warps():
    compiled = tensor_core_product(F16, 80)
    assert compiled.count(r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32") == 64
    assert compiled.count(r"ldmatrix\.sync\.aligned\.m8n8\.x4") == 24
    assert "ld.shared" not in re.search(r"cp\.async\.wait_group 1;.*?bra", compiled.ptx, re.S)[0]
    used = assemble(compiled, 80)
    assert (used.stack, used.spills) == (0, 0)


def test_fragments_are_multiplied_in_the_registers_that_they_are_loaded_into():
    """Words of an operand are registers in a row, of ldmatrix as of the product: in another order each is copied."""
    ptx, words = tensor_core_product(F16, 80).ptx, r"\{([^}]*)\}"
    loaded = [found.split(", ") for found in re.findall(rf"ldmatrix\S+ {words}", ptx)]
    fragments = {tuple(four[i : i + count]) for four in loaded for count in (2, 4) for i in range(0, 4, count)}
    products = re.findall(rf"mma\.sync\S+ {words}, {words}, {words}", ptx)
    assert products
    for _, left, right in products:
        assert {tuple(left.split(", ")), tuple(right.split(", "))} <= fragments


@triton.jit
def chained_products(a_ptr, b_ptr, c_ptr, n, TURNED: tl.constexpr):
    """A product of what an iteration scales and of what the one before left, in 16 bits."""
    rows = tl.arange(0, 64)
    state = tl.zeros([64, 64], dtype=tl.float32)
    for start in range(0, n, 64):
        a = tl.load(a_ptr + (start + rows)[:, None] * 64 + rows[None, :])
        b = tl.load(b_ptr + (start + rows)[:, None] * 64 + rows[None, :])
        left, old = tl.trans(a) if TURNED else a, tl.trans(state) if TURNED else state
        state += tl.dot(left * 2, old.to(tl.float16))
        state += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * 64 + rows[None, :], state)


@pytest.mark.parametrize("turned", [False, True])
def test_fragments_cross_shared_memory_as_matrices(turned):
    """What a product left or takes goes to a buffer, and comes from it, in rows of 16 bytes, whichever way it lies."""
    options = {"num_warps": 4, "num_stages": 2, "TURNED": turned}
    compiled = compile_kernel(chained_products, F16, F16, F32, integer(), sm=90, **options)
    loop = re.search(r"cp\.async\.wait_group.*\sbra", compiled.ptx, re.S)[0]
    for name in "ldmatrix", "stmatrix":
        assert loop.count(f"{name}.sync.aligned.m8n8.x4{'.trans' if turned else ''}.shared") == 4
    assert "ld.shared" not in loop and "st.shared" not in loop
    assemble(compiled, 90)


@pytest.mark.parametrize("sm, columns, matrices, words", [(80, 32, 0, 8), (90, 32, 2, 0), (90, 64, 4, 0)])
def test_fragments_are_stored_in_rows(sm, columns, matrices, words):
    """A thread's words become vectors of a row: four matrices at once where there are such stores, else words."""
    sizes = {"BM": 64, "BN": columns, "BK": 32}
    compiled = compile_kernel(matmul, F16, F16, F16, integer(), integer(), integer(), sm=sm, **sizes)
    assert compiled.count(SHARED_LOAD) == compiled.count(r"\bld\.shared") == columns // 16
    assert compiled.count(r"stmatrix\S*\.x4\.shared") == matrices
    assert compiled.count(r"\bst\.shared\.b32") == compiled.count(r"\bst\.shared") == words
    assemble(compiled, sm)


@triton.jit
def chained_products_of_bytes(a_ptr, b_ptr, c_ptr, out_ptr, n):
    rows = tl.arange(0, 64)
    a = tl.load(a_ptr + rows[:, None] * 64 + rows[None, :])
    sums = tl.zeros([64, 64], dtype=tl.float32)
    for start in range(0, n, 64):
        b = tl.load(b_ptr + (start + rows)[None, :] * 64 + rows[:, None])
        c = tl.load(c_ptr + rows[None, :] * n + (start + rows)[:, None])
        sums = tl.dot(tl.dot(a, b).to(c.dtype), c, sums)
    tl.store(out_ptr + rows[:, None] * 64 + rows[None, :], sums)


@pytest.mark.parametrize("stages", [2, 3])
def test_bytes_go_from_one_iteration_to_the_next_as_words(stages):
    """What a product leaves is the next one's left operand: it is not packed where the loop ends or begins."""
    operands = [pointer("fp8e4nv")] * 3
    options = {"num_warps": 4, "num_stages": stages}
    compiled = compile_kernel(chained_products_of_bytes, *operands, F32, integer(), sm=90, **options)
    assert compiled.count(r"wgmma\.mma_async") == 4
    assert compiled.count(r"shfl\.sync\.idx") == 8 and compiled.count(r"\b(prmt|shr)\.b(16|32)") == 0
    used = assemble(compiled, 90)
    assert (used.stack, used.spills) == (0, 0)


@triton.jit
def matmul_with_hints(a_ptr, b_ptr, c_ptr, k, BLOCK: tl.constexpr):
    rows, depth = tl.arange(0, BLOCK), tl.arange(0, 64)
    acc = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for start in range(0, k, 64):
        a = tl.load(a_ptr + rows[:, None] * 64 + start + depth[None, :], eviction_policy="evict_first")
        b = tl.load(b_ptr + (start + depth)[:, None] * BLOCK + rows[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc)


@pytest.mark.parametrize("sm", SMS)
def test_copies_carry_no_hints_of_eviction(sm):
    """With a policy for the cache and a slot in a uniform register ptxas makes an illegal instruction of a copy."""
    compiled = compile_kernel(matmul_with_hints, F16, F16, F32, integer(), sm=sm, BLOCK=64)
    assert compiled.count(r"cp\.async\.cg\.shared\.global ") > 0
    assert "cache_hint" not in compiled.ptx and "createpolicy" not in compiled.ptx
    assemble(compiled, sm)


def test_products_of_the_oldest_tensor_cores():
    compiled = tensor_core_product(F16, 75)
    assert compiled.count(r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.f16\.f16\.f32") == 128
    assert "cp.async" not in compiled.ptx
    assemble(compiled, 75)


HALVES_OF_A_WORD = r"mov\.b32\s+(\{%rs\d+, |%r\d+, \{%rs)"


@pytest.mark.parametrize(
    "sm, instruction, products", [(75, "m16n8k8", 128), (80, "m16n8k16", 64), (90, "m64n128k16", 4)]
)
def test_sums_of_halves(sm, instruction, products):
    """Tensor cores add up in fp16; nothing takes their words apart, neither between products nor behind a loop."""
    entries = [F16, F16, pointer("fp16"), integer(), integer(), integer()]
    compiled = compile_kernel(matmul, *entries, sm=sm, num_warps=8, SUM=tl.float16, **TILE)
    sums = r"f16\.f16\.f16" if sm == 90 else r"row\.col\.f16\.f16\.f16\.f16"
    assert compiled.count(rf"mma\S*\.{instruction}\.{sums} ") == products
    assert compiled.count(r"cvt\.\S*f16") == 0
    assert sm < 80 or compiled.count(HALVES_OF_A_WORD) == 0  # before that loads go through registers
    assemble(compiled, sm)


@pytest.mark.parametrize("most, sums", [(None, "f16"), (32, "f32")])
def test_sums_of_halves_of_8_bit_floats(most, sums):
    """By wgmma; partial sums are added up in fp32."""
    entries = [pointer("fp8e4nv"), pointer("fp8e4nv"), pointer("fp16"), integer(), integer(), integer()]
    compiled = compile_kernel(matmul, *entries, sm=90, BM=64, BN=32, BK=64, IMPRECISE=most, SUM=tl.float16)
    assert compiled.count(r"wgmma\.mma_async") == compiled.count(rf"{sums}\.e4m3\.e4m3") == 2
    assemble(compiled, 90)


@pytest.mark.parametrize("way", WAYS + AHEAD + BRANCHES)
def test_sums_of_halves_are_carried_in_words(way):
    """Through loops and branches, as those of fp32 are under way in them."""
    compiled = product_in_this_way(way, 90, pointer("fp16"))
    assert compiled.count(r"wgmma\.mma_async") == compiled.count(r"f16\.f16\.f16 ") >= 4
    assert compiled.count(HALVES_OF_A_WORD) == 0
    waits = [
        re.findall(r"wgmma\.wait_group\.sync\.aligned (\d);", c.ptx) for c in (compiled, product_in_this_way(way, 90))
    ]
    assert waits[0] == waits[1]


@pytest.mark.parametrize(
    "precision, products, part",
    [("tf32x3", 3, "k8.*tf32.tf32"), ("bf16x3", 3, "k16.*bf16.bf16"), ("bf16x6", 6, "k16.*bf16.bf16")],
)
@pytest.mark.parametrize("sm, instruction", [(80, "mma.sync"), (90, "wgmma.mma_async")])
def test_products_of_parts(precision, products, part, sm, instruction):
    sizes = {"BM": 64, "BN": 16, "BK": 16, "warps": 4}
    compiled = tensor_core_product(F32, sm, PRECISION=precision, **sizes)
    steps = 2 if "tf32" in precision else 1
    assert compiled.count(rf"{instruction}\.\S*{part}") == products * steps * (2 if sm == 80 else 1)
    assemble(compiled, sm)


@triton.jit
def product_of_integers(a_ptr, b_ptr, c_ptr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    c = tl.dot(tl.load(a_ptr + i * K + k[None, :]), tl.load(b_ptr + k[:, None] * N + j))
    tl.store(c_ptr + i * N + j, c)


@pytest.mark.parametrize("sm, shape, count", [(75, "m8n8k16", 16), (80, "m16n8k32", 4), (90, "m16n8k32", 4)])
def test_integers_saturate(sm, shape, count):
    """As those of the public compiler do, on the instructions of a warp."""
    arrays = pointer("i8"), pointer("i8"), pointer("i32")
    compiled = compile_kernel(product_of_integers, *arrays, sm=sm, N=32, K=64)
    assert compiled.count(rf"mma\.sync\.aligned\.{shape}\.row\.col\.satfinite\.s32\.s8\.s8\.s32") == count
    assemble(compiled, sm)


@pytest.mark.parametrize("a, b", [("fp8e4nv", "fp8e4nv"), ("fp8e4nv", "fp8e5")])
def test_products_of_8_bit_floats(a, b):
    """By instructions for them, which take two formats, or else by those for fp16."""
    sizes = {"BM": 64, "BN": 64, "BK": 64, "warps": 4}
    for sm, kinds in ((80, r"f16\.f16"), (89, r"e4m3\." + ("e4m3" if a == b else "e5m2"))):
        compiled = tensor_core_product(pointer(a), sm, other=pointer(b), **sizes)
        assert compiled.count(rf"mma\.sync\.\S*f32\.{kinds}\.f32") == (32 if sm == 80 else 16)
        assemble(compiled, sm)
    compiled = tensor_core_product(pointer(a), 90, other=pointer(b), **sizes)
    assert compiled.count(rf"wgmma\.mma_async\.\S*f32\.{kinds}") == 2
    assemble(compiled, 90)


@pytest.mark.parametrize("a, b", [("fp8e4nv", "fp8e4nv"), ("fp8e4nv", "fp8e5")])
@pytest.mark.parametrize("sm, widened", [(89, False), (90, True), (100, True), (120, False)])
def test_few_rows_of_8_bit_floats(a, b, sm, widened):
    """Where mma.sync is not for them they are widened in front of it: ptxas would add each product to the sums."""
    sizes = {"BM": 16, "BN": 64, "BK": 64, "warps": 4}
    compiled = tensor_core_product(pointer(a), sm, other=pointer(b), **sizes)
    assert compiled.count(r"mma\.sync\.\S*k32\S*e4m3") == (0 if widened else 4)
    assert compiled.count(r"mma\.sync\.\S*k16\S*f32\.f16\.f16\.f32") == (8 if widened else 0)
    if sm <= 100:
        assemble(compiled, sm)


@pytest.mark.parametrize("most, parts, steps", [(None, 0, 4), (32, 4, 4), (64, 2, 4)])
def test_partial_sums_of_8_bit_floats(most, parts, steps):
    """After so much of K they are added in registers: a group, a wait and additions for each part."""
    fp8 = pointer("fp8e4nv")
    compiled = tensor_core_product(fp8, 90, 4, BM=64, BN=32, BK=128, IMPRECISE=most)
    assert compiled.count(r"wgmma\.mma_async") == steps
    assert compiled.count(r"wgmma\.commit_group") == (parts or 2)
    assert compiled.count(r"\badd(\.rn)?\.f32") == parts * 64 * 32 // 128
    assemble(compiled, 90)


@pytest.mark.parametrize("dtype, products", [("fp16", 16), ("fp32", 32)])
@pytest.mark.parametrize("sm", SMS)
def test_batches_of_products(dtype, products, sm):
    """A warp has a batch: tensor cores, and copies ahead of them."""
    entries = [pointer(dtype), pointer(dtype), F32, integer()]
    compiled = compile_kernel(batched_matmul, *entries, sm=sm, B=4, N=32, BK=32)
    assert compiled.count(r"mma\.sync\.aligned\.m16n8k") == products
    assert compiled.count(r"cp\.async\.cg\.shared\.global") == products // 2 * 3
    assert compiled.count(r"fma\.rn\.f") == (2 * 32 * 32 // 32 if dtype == "fp32" else 0)  # rounding to tf32
    assemble(compiled, sm)


@pytest.mark.parametrize(
    "dtype, depth, mma, wgmma",
    [
        ("fp16", 8, 2, 0),
        ("fp16", 24, 4, 2),
        ("fp16", 48, 6, 3),
        ("fp8e5", 16, 2, 0),
        ("fp8e5", 96, 6, 3),
        ("bf16", 3, 2, 0),
    ],
)
def test_products_of_any_depth(dtype, depth, mma, wgmma):
    """What K has less than a step of the instruction is zeros."""
    for sm, instruction, count in ((89, r"mma\.sync", mma), (90, r"wgmma\.mma_async", wgmma)):
        entries = [pointer(dtype), pointer(dtype), F32, integer(), integer(), integer()]
        compiled = compile_kernel(matmul, *entries, sm=sm, BM=64, BN=16, BK=depth)
        assert compiled.count(instruction) == count
        widened = 2 if sm == 90 and dtype == "fp8e5" else 1
        assert count or compiled.count(r"mma\.sync") == mma * widened
        assert compiled.count(r"\bfma\.rn|\bmad\.lo") < 16
        assemble(compiled, sm)


@triton.jit
def normalised_twice(x_ptr, out_ptr, sums_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j)
    most = tl.max(x, axis=1)
    y = x / most[:, None]
    total = tl.sum(y * y, axis=1) + most
    z = y / total[:, None]
    total = tl.sum(z * y, axis=1) + total * most
    tl.store(out_ptr + i[:, None] * N + j, z * total[:, None])
    tl.store(sums_ptr + i, total + most)


@pytest.mark.parametrize("rows, columns", [(8, 16), (4, 16), (2, 32), (16, 16)])
def test_sums_of_few_rows_stay_where_they_are_computed(rows, columns):
    """Though lanes side by side would store them together."""
    compiled = compile_kernel(normalised_twice, F32, F32, F32, M=rows, N=columns)
    assert compiled.count("bar.sync") == 0 and compiled.count(r"(ld|st)\.shared") == 0


@triton.jit
def sums_of_rows(x_ptr, sums_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tl.atomic_add(sums_ptr + i, tl.sum(tl.load(x_ptr + i[:, None] * N + j), axis=1))


def test_sums_that_many_threads_have_are_added_by_one_each():
    assert compile_kernel(sums_of_rows, F32, F32, num_warps=2, M=16, N=16).count(r"(red|atom)\.") == 1


@triton.jit
def gathered_products(x_ptr, y_ptr, blocks_ptr, out_ptr, count, B: tl.constexpr):
    i = tl.arange(0, B)
    sums = tl.zeros((B,), tl.float32)
    for block in range(count):
        x = tl.load(x_ptr + i[:, None] * B + i, mask=i[:, None] < 60, other=0)
        y = tl.load(y_ptr + (tl.load(blocks_ptr + block) * B + i) * B + i[:, None])
        sums += tl.sum(tl.exp(tl.dot(x, y)), axis=1)
    tl.store(out_ptr + i, sums)


def test_what_does_not_change_is_loaded_before_a_loop_that_may_not_run():
    """Two steps before the loop and one in it copy only what changes."""
    compiled = compile_kernel(gathered_products, F16, F16, I32, F32, integer(), B=64)
    assert compiled.count(r"cp\.async\.cg") == 3 * 64 * 64 // (128 * 8) and compiled.count("wgmma.mma_async") == 4


def test_large_tiles_get_all_registers():
    """ptxas, left alone, saves registers here and spills them instead."""
    compiled = compile_kernel(weighted_sums, F32, F32, integer(), COUNT=8, BLOCK=4096)
    assert ".minnctapersm 1" in compiled.ptx
    used = assemble(compiled, 90)
    assert used.registers > 200 and used.spills < 1000
    limited = compile_ir(ir(weighted_sums, F32, F32, integer(), COUNT=8, BLOCK=4096), 90, max_registers=64)
    assert ".maxnreg 64" in limited.ptx and ".minnctapersm" not in limited.ptx


def test_products_leave_room_for_a_second_program():
    """Its multiplications fill the time that the first one waits at barriers."""
    entries, sizes = [F32, F32, F32, integer(), integer(), integer()], {"BM": 128, "BN": 128, "BK": 16}
    compiled = compile_kernel(matmul, *entries, num_warps=8, **sizes)
    used = assemble(compiled, 90)
    assert used.registers <= 128 and used.spills == 0
    assert ".minnctapersm" not in compile_kernel(softmax, F32, F32, integer(), integer(), BLOCK=1024).ptx


@triton.jit
def converted_product(a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The left operand is converted, in registers; K is cut off at its end."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs, b_ptrs = a_ptr + rows[:, None] * k + depth[None, :], b_ptr + columns[None, :] * k + depth[:, None]
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for start in range(0, k, BK):
        a = tl.load(a_ptrs, mask=depth[None, :] < k - start, other=0.0).to(b_ptr.dtype.element_ty)
        acc += tl.dot(a, tl.load(b_ptrs, mask=depth[:, None] < k - start, other=0.0))
        a_ptrs += BK
        b_ptrs += BK
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def test_products_of_warpgroups_leave_room_for_a_second_program():
    """Where shared memory has it, and what the loop holds: with 132 registers there would be one."""
    entries = [F16, pointer("bf16"), pointer("bf16"), integer(), integer(), integer()]
    compiled = compile_kernel(converted_product, *entries, num_warps=8, **TILE)
    used = assemble(compiled, 90)
    assert ".minnctapersm 2" in compiled.ptx and used.registers <= 128 and used.spills == 0
    wide = compile_kernel(converted_product, *entries, num_warps=8, BM=128, BN=256, BK=64)
    assert ".minnctapersm 1" in wide.ptx


@triton.jit
def product_onto(a_ptr, b_ptr, c_ptr, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    c_ptrs, depth = c_ptr + rows[:, None] * n + columns[None, :], tl.arange(0, BK)
    acc = tl.load(c_ptrs)
    for start in range(0, k, BK):
        a = tl.load(a_ptr + rows[:, None] * k + (start + depth)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (start + depth)[:, None] * n + columns[None, :]), acc)
    tl.store(c_ptrs, acc)


def test_what_sums_begin_with_is_loaded_where_the_product_has_them():
    """By sectors: through shared memory it would cross beside the slots, which leave room for two programs."""
    compiled = compile_kernel(product_onto, F16, F16, F32, integer(), integer(), num_warps=8, **TILE)
    before = compiled.ptx[: compiled.ptx.index("cp.async.wait_group")]
    assert "st.shared" not in before and before.count("ld.global.v2.b32") == 128 * 128 // 2 // 256
    assert compiled.shared == 3 * (128 + 128) * 64 * 2 and ".minnctapersm 2" in compiled.ptx
    used = assemble(compiled, 90)
    assert used.registers <= 128 and used.spills == 0


@triton.jit
def attention_onto(
    q_ptr, k_ptr, v_ptr, old_ptr, out_ptr, n, ONTO: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    rows, columns, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    places = rows[:, None] * D + depth[None, :]
    q = tl.load(q_ptr + places)
    top, total = tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    sums = tl.load(old_ptr + places) if ONTO else tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        keys = (start + columns[:, None]) * D + depth[None, :]
        x = tl.dot(q, tl.trans(tl.load(k_ptr + keys)))
        now = tl.maximum(top, tl.max(x, 1))
        p = tl.exp2(x - now[:, None])
        scale = tl.exp2(top - now)
        total = total * scale + tl.sum(p, 1)
        sums = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_ptr + keys), sums * scale[:, None])
        top = now
    tl.store(out_ptr + places, sums / total[:, None])


ATTENTION = [F16, F16, F16, F32, F32, integer()]


def test_scaled_sums_begin_where_the_product_has_them_if_that_is_another_program():
    """The slots of 96 KB and the queries leave room for two, and none for 32 KB of exchanged sums."""
    two = compile_kernel(attention_onto, *ATTENTION, num_warps=4, num_stages=3, ONTO=True, BM=64, BN=64, D=128)
    assert two.shared == (1 + 2 * 3) * 64 * 128 * 2 and ".minnctapersm 2" in two.ptx
    one = compile_kernel(attention_onto, *ATTENTION, num_warps=8, num_stages=3, ONTO=True, BM=128, BN=64, D=128)
    assert one.shared > (2 + 2 * 3) * 64 * 128 * 2 and ".minnctapersm 1" in one.ptx


def test_programs_of_a_warp_copy_less_far_ahead():
    """Three programs of two slots, for four schedulers, are more than two of three; two of two warps are enough."""
    slot = 2 * 64 * 128 * 2
    one = compile_kernel(attention_onto, *ATTENTION, num_warps=1, num_stages=3, ONTO=False, BM=16, BN=64, D=128)
    assert 2 * slot < one.shared < 3 * slot
    two = compile_kernel(attention_onto, *ATTENTION, num_warps=2, num_stages=3, ONTO=False, BM=16, BN=64, D=128)
    assert 3 * slot < two.shared < 4 * slot


@pytest.mark.parametrize(("num_warps", "programs"), [(1, 8), (2, 4)])
def test_products_of_multiply_adds_have_the_registers_of_a_scheduler(num_warps, programs):
    """Nine to eleven warps leave a thread 168 registers, as twelve do: one scheduler has three of them."""
    sizes = {"BM": 64 * num_warps, "BN": 64, "BK": 16}
    entries = [F32, F32, F32, integer(), integer(), integer()]
    compiled = compile_kernel(matmul, *entries, num_warps=num_warps, **sizes)
    used = assemble(compiled, 90)
    assert f".minnctapersm {programs}\n" in compiled.ptx and used.registers > 168 and used.spills == 0


@pytest.mark.parametrize("sm", [80, 90])
def test_copies_feed_multiply_adds(sm):
    """Nothing goes through registers, which the sums need; addresses are immediates."""
    entries, sizes = [F32, F32, F32, integer(), integer(), integer()], {"BM": 128, "BN": 128, "BK": 32}
    compiled = compile_kernel(matmul, *entries, sm=sm, num_warps=4, **sizes)
    assert not compiled.count(r"\bld\.global") and not compiled.count(r"\bst\.shared")
    loop = compiled.ptx[compiled.ptx.index("cp.async.wait_group") :]
    assert len(re.findall(r"\bcp\.async\.ca\S* \[.*\], 4", loop)) == 32  # of a, which lies along K
    assert len(re.findall(r"\bcp\.async\.cg\S* \[.*\], 16", loop)) == 8
    assert compiled.count(r"\bld\.shared\.v4") == compiled.count(r"\bld\.shared")
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)


def test_masked_accesses_are_predicated():
    compiled = compile_kernel(vector_add, F32, F32, F32, integer(), BLOCK=1024)
    assert compiled.count(r"@%p\d+ ld\.global\.v4\.b32") == 4
    assert compiled.count(r"@%p\d+ st\.global\.v4\.b32") == 2
    assert compiled.count(r"\bbra\b") == 0


@triton.jit
def bytes_as_words(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + 3 * i, mask=i < n, other=0).to(tl.int32))


@triton.jit
def halve_rows(x_ptr, out_ptr, n_rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (rows < n_rows)[:, None]
    tl.store(out_ptr + places, tl.load(x_ptr + places, mask=mask) * 0.5, mask=mask)


@pytest.mark.parametrize("divisibility, comparisons", [(16, 1), (8, 2), (1, 8)])
def test_rows_that_begin_and_end_together_share_a_mask(divisibility, comparisons):
    compiled = compile_kernel(halve_rows, F32, F32, integer(divisibility), ROWS=16, COLUMNS=64, num_warps=1)
    assert compiled.count(r"\bsetp\b") == comparisons
    assemble(compiled, 90)


def test_loads_into_wide_registers_clear_their_high_bits():
    ptx = compile_kernel(bytes_as_words, pointer("u8"), I32, integer(), BLOCK=128).ptx
    assert re.search(r"ld\.global\.b8 %r\d", ptx) and "255" not in ptx and "cvt" not in ptx


def test_offsets_are_immediates():
    compiled = compile_kernel(vector_add, F32, F32, F32, integer(), BLOCK=4096)
    assert compiled.count(r"\[%rd\d+\+14336\]") == 3
    assert compiled.count(r"\bmul\.wide\.s32\b") == 1  # of the offset that the arrays have in common
    assert compiled.count(r"\badd\.s64\b") == 3  # one address for each array


@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize(
    "source, target",
    [
        ("fp32", "fp8e4nv"), ("fp32", "fp8e5"), ("fp8e4nv", "fp16"), ("fp8e5", "fp32"), ("fp16", "fp8e4b15"),
        ("fp32", "fp8e4b8"), ("fp8e5b16", "fp16"),
        ("fp32", "bf16"), ("bf16", "fp32"), ("fp32", "fp16"),
    ],
)  # fmt: skip
def test_narrow_casts(source, target, sm):
    compiled = compile_kernel(cast, pointer(source), pointer(target), sm=sm, BLOCK=1024)
    used = assemble(compiled, sm)
    assert (used.stack, used.spills) == (0, 0)
    if sm == 90 and target in ("fp8e4nv", "fp8e5"):
        kind = "e4m3" if target == "fp8e4nv" else "e5m2"
        assert compiled.count(rf"cvt\.rn\.satfinite\.{kind}x2\.f32") == 4
    if target == "bf16":
        assert compiled.count(r"cvt\.rn\.bf16x2\.f32") == 4
    if target == "fp16" and source == "fp32":
        assert compiled.count(r"cvt\.rn\.f16x2\.f32") == 4


@pytest.mark.parametrize(
    "target, moves, additions",
    [("fp16", 4, r"add\.rn\.f16x2"), ("bf16", 4, r"sub\.rn\.bf16x2"), ("fp32", 8, r"add\.rn\.f32")],
)
def test_bytes_of_a_word_become_floats_where_they_are(target, moves, additions):
    """Eight bytes of a thread: each, or two at once, is put in place and has a bias subtracted."""
    compiled = compile_kernel(cast, pointer("i8"), pointer(target), sm=90, BLOCK=1024)
    assert compiled.count(r"prmt\.b32") == compiled.count(additions) == moves
    assert compiled.count(r"cvt\.s8|cvt\.s16|cvt\.rn|add\.s16") == 0


@triton.jit
def product_with_nibbles(
    a_ptr, b_ptr, scale_ptr, c_ptr, k, BIAS: tl.constexpr, SIZE: tl.constexpr, DEPTH: tl.constexpr
):
    """Two weights in a byte, which are neighbours along K, as bytes are in memory."""
    rows, depth, half = tl.arange(0, SIZE), tl.arange(0, DEPTH), tl.arange(0, DEPTH // 2)
    scales = tl.load(scale_ptr + rows)
    sums = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptr + rows[:, None] * k + start + depth[None, :])
        packed = tl.load(b_ptr + rows[None, :] * (k // 2) + start // 2 + half[:, None])
        b = tl.join(packed & 15, packed >> 4).permute(0, 2, 1).reshape(DEPTH, SIZE)
        sums = tl.dot(a, (b.to(a.dtype) - BIAS) * scales[None, :], sums)
    tl.store(c_ptr + rows[:, None] * SIZE + rows[None, :], sums)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_nibbles_are_unpacked_in_words(dtype):
    """Of 32 weights of a thread: two masks and a shift for eight of them, and six moves of bytes; all in vectors."""
    pointers = [pointer(dtype), pointer("u8"), pointer(dtype), F32]
    options = {"num_warps": 8, "num_stages": 3, "BIAS": 8, "SIZE": 128, "DEPTH": 64}
    compiled = compile_kernel(product_with_nibbles, *pointers, integer(), sm=90, **options)
    loop = re.search(r"cp\.async\.wait_group 1.*?wgmma", compiled.ptx, re.S)[0]
    counts = {
        "ld.shared.v4.b32": 1,
        "st.shared.v4.b32": 4,
        "and.b32": 8,
        "prmt.b32": 24,
        "cvt.u16": 0,
        "ld.shared.b8": 0,
    }
    assert {name: loop.count(name) for name in counts} == counts
    assemble(compiled, 90)


@triton.jit
def few_rows_by_nibbles(a_ptr, b_ptr, scale_ptr, c_ptr, k, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    """Weights that lie along K, as the transpose of their tile."""
    rows, columns, depth, half = tl.arange(0, 16), tl.arange(0, SIZE), tl.arange(0, DEPTH), tl.arange(0, DEPTH // 2)
    scales = tl.load(scale_ptr + columns)
    sums = tl.zeros((16, SIZE), tl.float32)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptr + rows[:, None] * k + start + depth[None, :])
        packed = tl.load(b_ptr + columns[:, None] * (k // 2) + start // 2 + half[None, :])
        b = tl.join(packed & 15, packed >> 4).reshape(SIZE, DEPTH)
        sums = tl.dot(a, tl.trans((b.to(a.dtype) - 8) * scales[:, None]), sums)
    tl.store(c_ptr + rows[:, None] * SIZE + columns[None, :], sums)


@pytest.mark.parametrize("sm", [80, 90])
def test_transposes_that_lie_along_k_stay_in_registers(sm):
    """Each warp unpacks the weights of its columns where mma takes them: nothing is stored, and threads meet once."""
    pointers = [F16, pointer("u8"), F16, F32]
    options = {"num_warps": 4, "num_stages": 3, "SIZE": 64, "DEPTH": 128}
    compiled = compile_kernel(few_rows_by_nibbles, *pointers, integer(), sm=sm, **options)
    loop = re.search(r"cp\.async\.wait_group 1.*\n.*mma\.sync", compiled.ptx, re.S)[0]
    assert loop.count("st.shared") == 0 and loop.count("bar.sync") == 1
    assemble(compiled, sm)


def test_partial_results_are_vectors():
    """A thread's partial results of several columns go to the other warps as one vector, and come back so."""
    compiled = compile_kernel(column_sums, F32, F32, integer(), ROWS=64, COLS=64)
    assert (compiled.count(SHARED_STORE), compiled.count(r"\bst\.shared")) == (1, 1)
    assert (compiled.count(SHARED_LOAD), compiled.count(r"\bld\.shared")) == (4, 4)  # of four warps
    compiled = compile_kernel(scans_of_columns, F32, F32, integer(), BLOCK=64)
    assert (compiled.count(SHARED_STORE), compiled.count(r"\bst\.shared")) == (8, 8)
    assert compiled.count(SHARED_LOAD) == compiled.count(r"\bld\.shared") <= 32


@pytest.mark.parametrize("dtype, block", [("fp32", 64), ("fp32", 128), ("fp16", 128)])
def test_transpositions_exchange_vectors(dtype, block):
    x = pointer(dtype)
    compiled = compile_kernel(transpose, x, x, integer(), integer(), num_warps=8, BM=block, BN=block)
    each = block * block // 256  # elements of a thread
    vectors = each * (4 if dtype == "fp32" else 2) // 16
    assert (compiled.count(SHARED_STORE), compiled.count(r"\bst\.shared")) == (vectors, vectors)
    assert (compiled.count(SHARED_LOAD), compiled.count(r"\bld\.shared")) == (vectors, vectors)


def test_sorting_networks_are_written_out():
    """1024 elements: 55 steps, of which 3 distances lie in a thread's registers, 5 in lanes, 2 in warps."""
    compiled = compile_kernel(sort, F32, F32, BLOCK=1024)
    assert compiled.count(r"\bbra\b") == 0
    assert compiled.count(r"\bshfl\.sync\.bfly") == 8 * 30
    assert compiled.count(SHARED_STORE) == compiled.count(SHARED_LOAD) == 2 * 5
    used = assemble(compiled, 90)
    assert (used.stack, used.spills) == (0, 0)


@triton.jit
def sort_rows(x_ptr, y_ptr, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    r, n, k = tl.arange(0, ROWS), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + r[:, None] * N + n[None, :])
    tl.store(y_ptr + r[:, None] * K + k[None, :], tl.sort(x) if N == K else tl.topk(x, K))


@pytest.mark.parametrize("k, steps", [(256, 6 + 5 + 4 + 3 + 2), (8, 9.5)])
def test_rows_are_sorted_within_warps(k, steps):
    """A thread has 16 elements. Bits 2 to 6 of their numbers lie in lanes: a distance 4 (8, ...) is there in 6 (5, ...)
    rounds. Of runs of 8 sorted by one such step, lanes find the largest four times and merge them, then registers."""
    compiled = compile_kernel(sort_rows, F32, F32, ROWS=8, N=256, K=k)
    assert compiled.count(r"\bbar\.sync") == compiled.count(SHARED_STORE) == 0
    assert compiled.count(r"\bshfl\.sync") == 16 * steps


@triton.jit
def sort_columns(x_ptr, y_ptr, d, N: tl.constexpr, BLOCK: tl.constexpr):
    i, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, N)
    at = n[:, None] * d + i[None, :]
    x = tl.load(x_ptr + at, mask=i[None, :] < d, other=0)
    tl.store(y_ptr + at, tl.trans(tl.sort(tl.trans(x))), mask=i[None, :] < d)


@pytest.mark.parametrize("dtype, num_warps", [("fp32", 1), ("fp32", 4), ("fp16", 2)])
def test_columns_are_sorted_in_registers(dtype, num_warps):
    x = pointer(dtype)
    block = 32 * num_warps * 4 // (2 if dtype == "fp16" else 4)
    compiled = compile_kernel(sort_columns, x, x, integer(), num_warps=num_warps, N=16, BLOCK=block)
    assert compiled.count(r"\bbar\.sync") == compiled.count(SHARED_STORE) == compiled.count(r"\bshfl\.sync") == 0


@pytest.mark.parametrize(
    "dtype, sm, vector, elements, single",
    [
        ("fp32", 90, "add.v4.f32", 4, "add.f32"),
        ("fp16", 90, "add.noftz.v4.f16x2", 8, "add.noftz.f16x2"),
        ("bf16", 90, "add.noftz.v4.bf16x2", 8, "add.noftz.bf16x2"),
        ("fp32", 80, "add.f32", 1, "add.f32"),
        ("fp16", 80, "add.noftz.f16x2", 2, "add.noftz.f16x2"),
    ],
)
def test_additions_are_vectors(dtype, sm, vector, elements, single):
    """And elements, but for the last, where a mask cuts the vector. Their order is given by a fence before all of them
    and one after."""
    x, each = pointer(dtype), 1024 // 128
    for divisibility in (16, 1):
        compiled = compile_kernel(add_rows, x, x, integer(divisibility), sm=sm, BLOCK=1024)
        additions = re.findall(r"red\.global\.gpu\.relaxed\.(\S+)", compiled.ptx)
        cut = divisibility == 1 and elements > 1
        assert sorted(additions) == sorted(
            [vector] * (each // elements) + [single] * (each - each // elements if cut else 0)
        )
        assert compiled.count(r"\bfence\.acq_rel\.gpu") == 2
        assemble(compiled, sm)


@pytest.mark.parametrize("sm", SMS)
def test_halves_are_added_in_pairs(sm):
    compiled = compile_kernel(vector_add, F16, F16, F16, integer(), sm=sm, BLOCK=1024)
    assert compiled.count(r"\badd(\.rn)?\.f16x2\b") == 4
    assert compiled.count(r"\badd(\.rn)?\.f16\b") == 0


HINTS = """
kernel @hints(%x: ptr<f32> {{divisibility = [16]}}, %y: ptr<f32> {{divisibility = [16]}}) {{
  %range = range {{start = 0, end = 512}} : tile<512xi32>
  %xs = splat %x : tile<512xptr<f32>>
  %from = addptr %xs, %range : tile<512xptr<f32>>
  %value = load %from {load} : tile<512xf32>
  %ys = splat %y : tile<512xptr<f32>>
  %to = addptr %ys, %range : tile<512xptr<f32>>
  store %to, %value {store}
  return
}}
"""


@pytest.mark.parametrize(
    "load, store, loads, stores",
    [
        ('{cache = ".cg"}', '{cache = ".cs"}', "ld.global.cg.v4.b32", "st.global.cs.v4.b32"),
        ('{cache = ".ca"}', '{cache = ".wb"}', "ld.global.ca.v4.b32", "st.global.wb.v4.b32"),
        ('{cache = ".cv"}', '{cache = ".wt"}', "ld.global.cv.v4.b32", "st.global.wt.v4.b32"),
        (
            '{evict = "evict_first"}', '{evict = "evict_last"}', "ld.global.L1::evict_first.L2::cache_hint.v4.b32",
            "st.global.L1::evict_last.L2::cache_hint.v4.b32",
        ),
        ('{evict = "evict_normal"}', "", "ld.global.v4.b32", "st.global.v4.b32"),
        ("{volatile = 1}", "", "ld.volatile.global.v4.b32", "st.global.v4.b32"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sm", SMS)
def test_hints(load, store, loads, stores, sm):
    compiled = compile_ir(HINTS.format(load=load, store=store), sm)
    assert compiled.count(re.escape(loads)) == 1
    assert compiled.count(re.escape(stores)) == 1
    assemble(compiled, sm)


@triton.jit
def wide_index(x, y, row, column, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = (row + at % 7).to(tl.int64) + (column * (at % 5)).to(tl.int64)
    tl.store(y + at, tl.load(x + place))


def test_summands_of_wide_indices_move_the_pointer():
    """Each by one wide product and sum; nothing is added up in 64 bits before."""
    compiled = compile_kernel(wide_index, F32, F32, integer(), integer(), sm=90, BLOCK=128)
    assert compiled.count(r"mul\.wide\.s32|mad\.wide\.s32") >= 2
    assert compiled.count(r"cvt\.s64\.s32") == 0
    assemble(compiled, 90)


ATOMIC = """
kernel @atomic(%x: ptr<{type}>, %y: ptr<{type}>) {{
  %range = range {{start = 0, end = 128}} : tile<128xi32>
  %xs = splat %x : tile<128xptr<{type}>>
  %from = addptr %xs, %range : tile<128xptr<{type}>>
  %value = load %from : tile<128x{type}>
  %ys = splat %y : tile<128xptr<{type}>>
  %to = addptr %ys, %range : tile<128xptr<{type}>>
  %old = atomic_rmw %to, %value {{kind = "{kind}", sem = "{sem}", scope = "{scope}"}} : tile<128x{type}>
  {use}
  return
}}
"""


@pytest.mark.parametrize(
    "kind, dtype, sem, scope, used, sm, instruction",
    [
        ("add", "i32", "relaxed", "gpu", False, 80, "atom.global.gpu.relaxed.add.u32"),
        ("add", "i32", "acq_rel", "cta", True, 80, "atom.global.cta.acq_rel.add.u32"),
        ("add", "i64", "acquire", "sys", False, 80, "atom.global.sys.acquire.add.u64"),
        ("fadd", "f32", "release", "gpu", False, 80, "atom.global.gpu.release.add.f32"),
        ("fadd", "f16", "relaxed", "gpu", False, 80, "atom.global.gpu.relaxed.add.noftz.f16"),
        ("fadd", "bf16", "relaxed", "gpu", False, 90, "atom.global.gpu.relaxed.add.noftz.bf16"),
        ("fadd", "bf16", "relaxed", "gpu", False, 80, "atom.global.relaxed.gpu.cas.b16"),
        ("fmax", "f32", "relaxed", "gpu", True, 80, "atom.global.gpu.relaxed.max.s32"),
        ("max_u", "i64", "relaxed", "gpu", True, 80, "atom.global.gpu.relaxed.max.u64"),
        ("xchg", "f64", "acq_rel", "gpu", True, 80, "atom.global.gpu.acq_rel.exch.b64"),
        ("add", "i8", "relaxed", "gpu", True, 80, "atom.global.relaxed.gpu.cas.b32"),
        ("load", "i32", "acquire", "gpu", True, 80, "ld.acquire.gpu.global.b32"),
        ("load", "i64", "relaxed", "sys", True, 90, "ld.relaxed.sys.global.b64"),
        ("load", "i8", "acquire", "cta", True, 80, "ld.acquire.cta.global.b8"),
        ("store", "i16", "release", "gpu", False, 80, "st.release.gpu.global.b16"),
        ("store", "i64", "relaxed", "cta", False, 90, "st.relaxed.cta.global.b64"),
    ],
)
def test_atomics(kind, dtype, sem, scope, used, sm, instruction):
    text = ATOMIC.format(kind=kind, type=dtype, sem=sem, scope=scope, use="store %from, %old" if used else "")
    compiled = compile_ir(text, sm)
    assert compiled.count(re.escape(instruction)) >= 1
    assemble(compiled, sm)


@triton.jit
def take_lock(lock, data, SEM: tl.constexpr, SCOPE: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem=SEM, scope=SCOPE) == 1:
        pass
    tl.store(data, tl.load(data) + 1)
    tl.atomic_xchg(lock, 0, sem="release")


@pytest.mark.parametrize("sem, scope", [("acquire", "gpu"), ("relaxed", "cta"), ("release", "sys"), ("acq_rel", "gpu")])
def test_comparing_and_swapping(sem, scope):
    """The order stands in front of the scope, where programs that look for it look."""
    for sm in SMS:
        compiled = compile_kernel(take_lock, I32, I32, sm=sm, SEM=sem, SCOPE=scope)
        assert compiled.count(rf"atom\.global\.{sem}\.{scope}\.cas\.b32") == 1
        assemble(compiled, sm)


def test_lines_of_the_program():
    compiled = compile_ir(ir(vector_add, F32, F32, F32, integer(), locations=True, BLOCK=1024), 90)
    lines = {int(line) for line in re.findall(r"\.loc\s+\d+ (\d+) ", compiled.ptx)}
    first = vector_add.first_line
    assert lines & set(range(first, first + 6))
    assert re.search(r'\.file\s+\d+ ".*kernels\.py"', compiled.ptx)
    assert ", debug" not in compiled.ptx  # or ptxas would not optimise
    assemble(compiled, 90)


@pytest.mark.parametrize("sm", [75, 80, 86, 89, 90, 100, 120])
def test_every_architecture(sm):
    for kernel, entries, constants, warps, *_ in (CASES["softmax of 1024"], CASES["prefix sums"]):
        compiled = compile_kernel(kernel, *entries, sm=sm, num_warps=warps, **constants)
        assert f".target sm_{sm}" in compiled.ptx
        assemble(compiled, sm)


def test_the_version_of_ptx():
    text = ir(vector_add, F32, F32, F32, integer(), BLOCK=1024)
    assert ".version 8.3" in compile_ir(text, 90, ptx_version=83).ptx


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
def test_every_number_of_warps(warps):
    for kernel, entries, constants, *_ in (CASES["softmax of rows"], CASES["transposition"], CASES["prefix sums"]):
        compiled = compile_kernel(kernel, *entries, num_warps=warps, **constants)
        assert f".reqntid {32 * warps}" in compiled.ptx
        assert (compiled.count(BARRIER) == 0) == (warps == 1 or kernel is softmax_rows and warps <= 4)
        assemble(compiled, 90)


@triton.jit
def logarithms(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.log(tl.load(x_ptr + offsets)))


def test_a_logarithm_takes_multiplications_and_no_shifts():
    compiled = compile_kernel(logarithms, F32, F32, num_warps=1, BLOCK=32)
    assert compiled.count(r"\blg2\b|\bsh[lr]\.[bsu]32\b(?!.*%tid)") <= 1  # the one is of the thread's place
    assert compiled.count(r"\bfma\.rn\.f32\b") == 11
    assemble(compiled, 90)


@triton.jit
def largest_of_random(x_ptr, out_ptr, place_ptr, seed, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets) - tl.log(-tl.log(tl.rand(seed, offsets)))
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr, value)
    tl.store(place_ptr, place)


@triton.jit
def logarithm_of_sum(x_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n_columns + columns, mask=columns < n_columns, other=-float("inf"))
    x = x.to(tl.float32)
    top = tl.max(x, axis=0)
    tl.store(out_ptr + tl.program_id(0), top + tl.log(tl.sum(tl.exp(x - top), axis=0)))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_the_largest_of_halves_is_found_before_they_are_widened(dtype):
    """128 elements of a thread would take as many registers, and spill."""
    compiled = compile_kernel(logarithm_of_sum, pointer(dtype), F32, integer(), num_warps=16, BLOCK=65536)
    assert compiled.count(rf"\bmax\.{dtype.replace('fp', 'f')}x2\b") == 63
    used = assemble(compiled, 90)
    assert used.registers <= 96 and used.spills == 0


def test_the_largest_of_halves_runs_along_with_what_is_loaded():
    """Of a tree ptxas would compute one half before it loads the other."""
    compiled = compile_kernel(logarithm_of_sum, pointer("bf16"), F32, integer(), num_warps=32, BLOCK=65536)
    loads = [words.split(", ") for words in re.findall(r"\bld\.global[\w.:]*\.v4\.b32 \{([^}]*)\}", compiled.ptx)]
    largest = re.findall(r"\bmax\.bf16x2\s+%r\d+, (%r\d+), (%r\d+);", compiled.ptx)
    of_results = [pair for pair in largest if not any(word in pair for words in loads for word in words)]
    assert len(loads) == 8 and len(largest) == 31
    assert len(of_results) == 3  # a running result for each word of a vector
    assert not any(set(pair) <= set(words) for pair in largest for words in loads)


@triton.jit
def exponentials_of_a_square(x_ptr, out_ptr, N: tl.constexpr, ALONG: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + places)
    top = tl.max(x, axis=1)
    tl.store(out_ptr + places, tl.exp(x - (top[:, None] if ALONG else top[None, :])))


def test_exponentials_that_are_never_above_one_are_shorter():
    """What a row's largest was taken from cannot be positive; what another row's was may be."""
    compiled = compile_kernel(logarithm_of_sum, F32, F32, integer(), BLOCK=1024)
    assert compiled.count(r"\bcvt\.sat\.f32") == 8 and not compiled.count(r"\bmul\.rz\.f32")
    for along in (True, False):
        compiled = compile_kernel(exponentials_of_a_square, F32, F32, N=32, ALONG=along)
        assert compiled.count(r"\bcvt\.sat\.f32") == (8 if along else 0)
        assert compiled.count(r"\bmul\.rz\.f32") == (0 if along else 8)


def test_elements_that_take_many_registers_are_computed_in_turns_before_a_reduction():
    """Ten numbers for each of 32 elements at a time would be a third of the programs on a multiprocessor."""
    used = assemble(compile_kernel(largest_of_random, F32, F32, I32, integer(), BLOCK=4096), 90)
    assert used.registers <= 64 and used.spills == 0


@triton.jit
def running_sum(x_ptr, out_ptr, count, step, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptrs, out_ptrs = x_ptr + offsets, out_ptr + offsets
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(count):
        tl.store(out_ptrs, total)
        total += tl.load(x_ptrs)
        x_ptrs += step
        out_ptrs += step


def test_an_offset_that_pointers_of_a_loop_share_is_multiplied_in_front_of_it():
    compiled = compile_kernel(running_sum, F32, F32, integer(), integer(), BLOCK=512)
    before, loop = compiled.ptx.split("$L__BB0_2:")
    assert len(re.findall(r"\bmul\.wide\.s32\b", before)) == 1 and not re.search(r"\bm(ul|ad)\.wide\b", loop)
    assemble(compiled, 90)


@triton.jit
def gathered_product(a, b, c, table, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    sums = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, n, K, num_stages=4):
        places = tl.load(table + start + depth)
        x = tl.load(a + row[:, None] * n + places[None, :])
        sums = tl.dot(x, tl.load(b + (start + depth)[:, None] * N + column), sums)
    tl.store(c + row[:, None] * N + column, sums)


def test_gathered_elements_come_out_of_branches_in_words():
    """Of narrow ones ptxas puts two into a register in the branch, and waits for them there."""
    compiled = compile_kernel(gathered_product, F16, F16, F32, I32, integer(), M=64, N=64, K=32)
    assert len(re.findall(r"\bld\.global\.b16\b", compiled.ptx)) == 5 * 16  # for iterations 0 to 3, and in the loop
    assert not re.search(r"\b(mov|selp)\.b16\b", compiled.ptx)
    assert not re.search(r"\bmad\.wide\.s32 %rd\d+, %r\d+, 2,", compiled.ptx)
    moves = len(re.findall(r"\bmov\.b32\s+%r\d+, %r\d+;", compiled.ptx))
    assert moves < 2 * 5 * 16  # nothing is moved to where a branch has loaded nothing
    used = assemble(compiled, 90)
    assert ".minnctapersm 4" in compiled.ptx and used.registers <= 128 and used.spills == 0


@triton.jit
def scale_groups(x_ptr, scale_ptr, out_ptr, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    scale = tl.load(scale_ptr + offsets // GROUP, mask=mask)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * scale, mask=mask)


def test_an_element_that_a_thread_needs_several_times_is_loaded_once():
    compiled = compile_kernel(scale_groups, F32, F32, F32, integer(), GROUP=32, BLOCK=512)
    assert compiled.count(LOAD) - compiled.count(WIDE_LOAD) == 1  # of four: no group begins within them
    assemble(compiled, 90)


@triton.jit
def add_to_rows(x_ptr, weight_ptr, m, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    x_ptrs = x_ptr + rows * COLS + columns
    weights = tl.load(weight_ptr + tl.broadcast_to(columns, (ROWS, COLS)), mask=rows < m)
    tl.store(x_ptrs, tl.load(x_ptrs) + weights)


@pytest.mark.parametrize("divisor, loads", [(16, 1), (2, 4)])
def test_a_vector_that_a_thread_needs_for_several_rows_is_loaded_once(divisor, loads):
    """Under one mask: these rows are four apart."""
    compiled = compile_kernel(add_to_rows, F32, F32, integer(divisor), ROWS=16, COLS=128)
    assert compiled.count(WIDE_LOAD) == 4 + loads and compiled.count(WIDE_STORE) == 4
    assemble(compiled, 90)


@triton.jit
def neighbours(x_ptr, out_ptr, width, BLOCK: tl.constexpr, FIRST: tl.constexpr):
    place = FIRST + tl.arange(0, BLOCK)
    row, column = place // width, place % width
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in tl.static_range(-1, 2):
        inside = (column + tap >= 0) & (column + tap < width)
        total += tl.load(x_ptr + row * width + column + tap, mask=inside, other=0)
    tl.store(out_ptr + place, total.to(tl.float16))


@pytest.mark.parametrize("first, loads, divisions", [(0, 2 * (4 + 1 + 4), 2 * 1), (-512, 3 * 8, 2)])
@pytest.mark.parametrize("sm", SMS)
def test_neighbours_in_an_image_stay_in_their_threads(sm, first, loads, divisions):
    """One of three lies in vectors, and a thread divides for one of four elements side by side; if some may be negative
    it divides for two of eight."""
    compiled = compile_kernel(neighbours, F16, F16, integer(), sm=sm, BLOCK=1024, FIRST=first)
    assert compiled.count(BARRIER) == compiled.count(r"\b(ld|st)\.shared") == 0
    assert compiled.count(LOAD) == loads and compiled.count(r"\bdiv\.") == divisions
    assemble(compiled, sm)


@triton.jit
def product_and_bias(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    rows, columns, depth = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :], tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        a = tl.load(a_ptr + rows * k + start + depth[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (start + depth[:, None]) * n + columns), acc)
    mask = (rows < m) & (columns < n)
    bias = tl.load(bias_ptr + tl.broadcast_to(columns, (BM, BN)), mask)
    tl.store(out_ptr + rows * n + columns, (acc + bias).to(tl.float16), mask)


@pytest.mark.parametrize("divisor, words, vectors, barriers", [(16, 16, 0, 4), (1, 0, 8, 6)])
def test_one_row_for_all_is_loaded_where_a_product_has_its_sums(divisor, words, vectors, barriers):
    """By threads that have several rows under one mask: it need not cross shared memory."""
    arguments = F16, F16, F16, F16, integer(divisor), integer(), integer()
    compiled = compile_kernel(product_and_bias, *arguments, sm=90, BM=64, BN=128, BK=64)
    assert compiled.count(WIDE_LOAD) == vectors and compiled.count(LOAD) == words + vectors
    assert compiled.count(BARRIER) == barriers
    assemble(compiled, 90)


@triton.jit
def merge_moments(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta, count = mean_b - mean_a, count_a + count_b
    share = count_b / count
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def moments(x_ptr, out_ptr, BLOCK: tl.constexpr):
    mean, m2 = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.float32)
    for start in range(0, 2 * BLOCK, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < 2 * BLOCK)
        if start == 0:
            mean, count = x, count + 1.0
        else:
            count += 1.0
            delta = x - mean
            mean += delta / count
            m2 += delta * (x - mean)
    mean, m2, count = tl.reduce((mean, m2, count), 0, merge_moments)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, m2)
    tl.store(out_ptr + 2, count)


@triton.jit
def columns_of_a_product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + inner[None, :])
    y = tl.load(b + inner[:, None] * N + columns[None, :])
    tl.store(out + columns, tl.sum(tl.dot(x, y), 0))


def test_lanes_share_out_results_that_warps_exchange():
    """A thread has 16 columns, as 7 others: it exchanges 8, 4 and, being left with a vector, 4, not 16 each time."""
    compiled = compile_kernel(columns_of_a_product, F16, F16, F32, num_warps=4, M=64, N=64, K=16)
    assert compiled.count(r"wgmma\.mma_async") == 1
    assert compiled.count(r"\bshfl\.sync") == 8 + 4 + 4
    assert compiled.count(r"\bst\.shared") == 1 + 2  # and the operands
    assemble(compiled, 90)


@triton.jit
def filter_of_planes(x, w, out, places, strides, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    sums = tl.zeros((M, N), tl.float32)
    for step in range(9):
        a = tl.load(x + step + rows[:, None] + inner[None, :] * places)
        b = tl.load(w + step + inner[:, None] * 9 + columns[None, :] * strides)
        sums = tl.dot(a, b, sums)
    tl.store(out + rows[:, None] + columns[None, :] * places, sums)


def test_lanes_gather_what_lies_closest():
    """Places of planes, which are rows; and channels of weights, which are K: outputs lie farther apart."""
    compiled = compile_kernel(filter_of_planes, F16, F16, F32, integer(), integer(), num_warps=4, M=64, N=64, K=32)
    layouts = dict(re.findall(r"^(#\d+) = layout<\w+> .*lanes = \[(.*?)\]", compiled.ttgir, re.MULTILINE))
    gathered = {shape: layouts[at] for shape, at in re.findall(r" = load .*: tile<(\w+)xf16> (#\d+)", compiled.ttgir)}
    assert gathered["64x32"].startswith("(1,0), (2,0), (4,0), (8,0)")
    assert gathered["32x64"].startswith("(1,0), (2,0), (4,0), (8,0)")
    assert compiled.count(r"\bst\.shared\.v4") and not compiled.count(r"\bst\.shared\.[bu]16")
    assemble(compiled, 90)


def test_how_many_elements_a_partial_result_is_of_is_known_at_compile_time():
    compiled = compile_kernel(moments, F32, F32, BLOCK=2048)
    assert not re.search(r"\b(div|rcp|selp|setp\.lt)\b", compiled.ptx)
    assert compiled.count(r"\bshfl\b") == 2 * 5 and compiled.count(r"\bst\.shared") == 2
    assemble(compiled, 90)


@triton.jit
def moments_of_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr, CENTRED: tl.constexpr):
    row, offsets = tl.program_id(0) + tl.arange(0, 1)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * columns + offsets)
    mean, m2, count = tl.reduce((x, x * 0, x * 0 + 1), 1, merge_moments)
    if CENTRED:
        tl.store(out_ptr + row * columns + offsets, x - mean[:, None])
    else:
        tl.store(out_ptr + row, mean[:, None])
        tl.store(out_ptr + columns + row, tl.sqrt(m2 / count)[:, None])


def test_warps_whose_copy_of_a_result_nobody_needs_do_not_combine_it():
    """Each would repeat what one of 16 does with their partial results. What all threads need, all combine."""
    for kernel, options, combines_once in [
        (moments_of_rows, {"BLOCK": 2048, "CENTRED": False}, True),
        (moments_of_rows, {"BLOCK": 2048, "CENTRED": True}, False),
    ]:
        compiled = compile_kernel(kernel, F32, F32, integer(), num_warps=16, **options)
        after = compiled.ptx.split("bar.sync")[1]
        before_loads, after_loads = re.split(r"ld\.shared", after, maxsplit=1)
        assert bool(re.search(r"\bbra\b", before_loads)) == combines_once
        assert ("shfl" in after_loads) and not re.search(r"shfl|div", before_loads)
        assert compiled.count("shfl.sync.idx") == combines_once  # by which ptxas knows that a warp branches as one
        assemble(compiled, 90)
    compiled = compile_kernel(moments, F32, F32, BLOCK=2048)  # of scalars, too
    assert re.search(r"\bbra\b[^$]*\$L__BB(.|\n)*ld\.shared", compiled.ptx.split("bar.sync")[1])


def test_maxnreg_is_a_limit():
    types = {name: "*fp32" for name in vector_add.arg_names[:3]} | {vector_add.arg_names[3]: "i32"}
    source = triton.compiler.ASTSource(vector_add, types, {"BLOCK": 1024})
    for limit in (24, None):
        ptx = triton.compile(source, target="cuda:90", options={"maxnreg": limit}).asm["ptx"]
        registers = assemble(SimpleNamespace(ptx=ptx, effort=3), 90).registers
        assert registers <= 24 if limit else registers > 24


def test_too_old_a_gpu():
    with pytest.raises(RuntimeError, match="7.0: 7.5 is the oldest"):
        compile_ir(ir(vector_add, F32, F32, F32, integer(), BLOCK=64), 70)


def test_a_wrong_number_of_warps():
    with pytest.raises(ValueError, match="num_warps is 3"):
        compile_ir(ir(vector_add, F32, F32, F32, integer(), BLOCK=64), 80, 3)


def test_out_of_shared_memory():
    text = ir(transpose, F32, F32, integer(), integer(), BM=256, BN=256)
    with pytest.raises(
        RuntimeError, match=r"^\d+:\d+: .* needs 262144 bytes, and sm_80 has 166912(.|\n)*smaller tiles"
    ):
        compile_ir(text, 80, 8)


def test_out_of_shared_memory_names_the_largest_buffers():
    text = ir(transpose_twice, F32, F32, F16, integer(), BLOCK=256)
    with pytest.raises(RuntimeError, match=r"'convert_layout' takes 262144 bytes\n.*'convert_layout' takes 131072"):
        compile_ir(text, 80, 8)


LIBRARY = """
kernel @library(%x: ptr<f32>, %y: ptr<f32>) {
  %value = load %x : f32
  %result = extern_call %value {symbol = "acosh"} : f32
  store %y, %result
  return
}
"""


def test_libdevice_that_is_not_there(monkeypatch):
    with pytest.raises(ValueError, match="cannot read libdevice from /nowhere(.|\n)*TRITON_LIBDEVICE_PATH"):
        compile_ir(LIBRARY, 80, libdevice="/nowhere")


def test_libdevice_is_inlined():
    try:
        compiled = compile_ir(LIBRARY, 80)
    except ValueError as error:
        assert "libdevice, which is not found" in str(error)
        pytest.skip("no libdevice on this machine")
    assert "__nv_acosh" not in compiled.ptx and compiled.count(r"\bcall\b") == 0
    assemble(compiled, 80)


@triton.jit
def powers_inside(x, y, power, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < N
    base = tl.load(x + i, inside, other=0.0) - power
    tl.store(y + i, tl.where((base > 0) & inside, libdevice.pow(base, power), 0.0), inside)


@pytest.mark.parametrize("warps", [1, 4])
def test_inlined_code_that_nothing_needs(warps):
    """Of elements past the end the power is computed for nothing. What is left stands behind phis."""
    try:
        compiled = compile_kernel(powers_inside, F32, F32, ("fp32", 1), N=200, BLOCK=1024, num_warps=warps)
    except ValueError as error:
        assert "libdevice, which is not found" in str(error)
        pytest.skip("no libdevice on this machine")
    assemble(compiled, 90)


@pytest.mark.parametrize("sm", SMS)
def test_16_bit_integers_are_not_negated_as_such(sm):
    """ptxas takes -(-32768) for 32768 where it is widened: see nvptx_shorts.c."""

    @triton.jit
    def signs(source, target, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        x = tl.load(source + i)
        tl.store(target + i, (-x).to(tl.int32))
        tl.store(target + BLOCK + i, tl.abs(x).to(tl.int32))
        tl.store(target + 2 * BLOCK + i, (x * -1 < tl.flip(x)).to(tl.int32))
        tl.store(target + 3 * BLOCK + i, (tl.where(x < 0, -x, x) >> 2).to(tl.int32))

    ptx = compile_kernel(signs, pointer("i16"), I32, sm=sm, BLOCK=128).ptx
    assert not re.search(r"\b(neg|abs)\.s16\b|\bsub\.s16\s+%rs\d+, 0,", ptx)
    assert re.search(r"\bneg\.s32", ptx) and re.search(r"\babs\.s32", ptx)


@pytest.mark.parametrize("sm", SMS)
def test_what_is_known_of_16_bit_integers_is_known_early(sm):
    """Of rows behind the mask, no load is left for ptxas to find out about: see nvptx_known.c and nvptx_shorts.c."""

    @triton.jit
    def rows_before_24(source, target):
        at = tl.arange(0, 16)[:, None] * 7 + tl.arange(0, 7)[None, :]
        least = tl.minimum(tl.load(source + at, mask=at < 24, other=0), tl.load(source + 112 + at))
        tl.store(target + at, tl.where(least == 0, 3, least))

    @triton.jit
    def larger_one_found(source, target):
        i = tl.arange(0, 32)
        x, y, z = tl.load(source + i), tl.load(source + 32 + i), tl.load(source + 64 + i)
        larger = tl.maximum(x, y)
        tl.store(target + i, tl.where(larger == z, 3, larger))

    compiled = compile_kernel(rows_before_24, pointer("i16"), pointer("i16"), sm=sm, num_warps=1)
    assert compiled.count(r"ld\.global") == 1 + 4 and "mov.pred" not in compiled.ptx
    for dtype in "i16", "i8":
        found = compile_kernel(larger_one_found, pointer(dtype), pointer(dtype), sm=sm, num_warps=1).ptx
        assert "max.s16" in found and "setp.ne.b16" in found and "setp.eq.b16" not in found


def test_sums_that_are_read_before_the_next_product_have_registers_of_their_own():
    """ptxas computes what was computed from them once more, from the sums of the product: see wgmma_move."""

    @triton.jit
    def before_and_after(a_ptr, b_ptr, out_ptr, n):
        i, k = tl.arange(0, 64), tl.arange(0, 32)
        sums = before = tl.zeros((64, 64), tl.float32)
        for step in range(n):
            a = tl.load(a_ptr + step * 2048 + i[:, None] * 32 + k[None, :])
            b = tl.load(b_ptr + step * 2048 + k[:, None] * 64 + i[None, :])
            sums = tl.dot(a, b, sums)
            least = tl.minimum(sums, 2)
            sums = tl.dot(a, b, sums)
            before += least
        tl.store(out_ptr + i[:, None] * 64 + i[None, :], before + sums)

    ptx = compile_kernel(before_and_after, F16, F16, F32, integer(1)).ptx
    products = re.findall(r"wgmma\.mma_async\S+ \{(%\w+),", ptx)
    assert len(products) == 4 and products[0] == products[1] != products[2] == products[3]


def test_scans_in_order_combine_once_a_step():
    """Lanes take what stands before them, five times, their neighbour's prefix and the last lane's total: each of two
    values and four vectors. Rows of 4096 leave a multiprocessor three programs of eight warps."""

    @triton.jit
    def later_largest(a, i, b, j):
        later = (b > a) | ((b == a) & (j > i))
        return tl.where(later, b, a), tl.where(later, j, i)

    @triton.jit
    def running_largest(x_ptr, out_ptr, place_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
        x, place = tl.associative_scan((x, i), 0, later_largest)
        tl.store(out_ptr + tl.program_id(0) * n + i, x, mask=i < n)
        tl.store(place_ptr + tl.program_id(0) * n + i, place.to(tl.int64), mask=i < n)

    compiled = compile_kernel(running_largest, F32, F32, pointer("i64"), integer(), num_warps=8, BLOCK=4096)
    assert compiled.count(r"shfl\.sync\.idx") == 2 * 4 * 7 and compiled.count(r"shfl\.sync\.bfly") == 0
    used = assemble(compiled, 90)
    assert used.spills == 0 and used.registers <= 80


def test_atomic_updates_that_change_nothing_are_loads():
    @triton.jit
    def look_back(flag_ptr, out_ptr):
        word = tl.atomic_add(flag_ptr, 0, sem="acquire")
        while word == 0:
            word = tl.atomic_add(flag_ptr, 0, sem="acquire")
        tl.store(out_ptr, word + tl.atomic_add(flag_ptr, 0))

    compiled = compile_kernel(look_back, I32, I32)
    assert compiled.count(r"ld\.acquire\.gpu\.global") == 2 and compiled.count(r"\batom\.") == 1


@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize("combine", [tl.reduce, tl.associative_scan])
def test_lanes_tell_each_other_nothing_that_nobody_uses(combine, sm):
    """ptxas drops it, and what it must not drop: see nvptx_unused.c. A result takes five shuffles."""

    @triton.jit
    def sum_and_largest(a, b, c, d):
        return a + c, tl.maximum(b, d)

    @triton.jit
    def largest(source, target, combine: tl.constexpr, sums: tl.constexpr):
        x = tl.load(source + tl.arange(0, 32))
        sum_of_all, largest_of_all = combine(((x > 0).to(tl.int32), x), 0, sum_and_largest)
        tl.store(target + tl.arange(0, 32), largest_of_all)
        if sums:
            tl.store(target + tl.arange(32, 64), sum_of_all)

    for sums, shuffles in (False, 5), (True, 10):
        compiled = compile_kernel(largest, I32, I32, sm=sm, num_warps=1, combine=combine, sums=sums)
        assert compiled.count(r"shfl\.sync") == shuffles
        assert not unused(compiled.ptx)
    told = "shfl.sync.bfly.b32 \t%r2, %r1, 1, 31, -1;"
    assert unused(told) and not unused(told + "st.shared.b32 [shared], %r2;")


@pytest.mark.parametrize("sm", [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121])
def test_every_architecture_has_a_version_of_ptx(sm):
    ptx = compile_kernel(vector_add, F32, F32, F32, integer(), sm=sm, BLOCK=1024).ptx
    assert re.search(rf"\.target sm_{sm}a?\b", ptx)


def test_architectures_that_are_none():
    with pytest.raises(RuntimeError, match="compute capability 9.9: no such architecture is known"):
        compile_kernel(vector_add, F32, F32, F32, integer(), sm=99, BLOCK=1024)


@triton.jit
def product_of_known_depth(a_ptr, b_ptr, c_ptr, K: tl.constexpr, BK: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + i[:, None] * K + (start + k)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (start + k)[:, None] * 64 + i[None, :]), acc)
    tl.store(c_ptr + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("iterations, slots, copies", [(2, 2, 2), (3, 3, 3), (6, 3, 3)])
def test_copies_of_a_loop_as_short_as_it_goes_ahead(iterations, slots, copies):
    """As many slots as iterations, and nothing in the loop is left of what would be copied for others."""
    compiled = compile_kernel(product_of_known_depth, F16, F16, F32, K=64 * iterations, BK=64)
    assert len(re.findall(rf"smem_alloc .*: buffer<{slots}, 64x64xf16>", compiled.ttgir)) == 2
    assert compiled.count(r"cp\.async\.cg\.shared\.global ") == copies * 8


@triton.jit
def block_of_a_diagonal(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr, BK: tl.constexpr):
    block = tl.program_id(0)
    i, k = tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, n), BK):
        a = tl.load(a_ptr + i[:, None] * 1024 + (start + k)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (start + k)[:, None] * 64 + i[None, :]), acc)
    tl.store(c_ptr + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("block, slots, copies", [(64, 1, 1), (128, 2, 2), (256, 3, 3)])
def test_copies_of_a_loop_whose_bounds_are_near_each_other(block, slots, copies):
    compiled = compile_kernel(block_of_a_diagonal, F16, F16, F32, integer(), BLOCK=block, BK=64)
    assert len(re.findall(rf"smem_alloc .*: buffer<{slots}, 64x64xf16>", compiled.ttgir)) == 2
    assert compiled.count(r"cp\.async\.cg\.shared\.global ") == copies * 8


def test_the_state_of_a_recurrence_lies_where_it_takes_little_work():
    """No access says where: a thread has parts of several columns, so neither rows nor sums cross shared memory."""

    @triton.jit
    def states(q_ptr, k_ptr, v_ptr, out_ptr, n, K: tl.constexpr, V: tl.constexpr):
        keys, values = tl.arange(0, K), tl.arange(0, V)
        state = tl.zeros([K, V], tl.float32)
        for i in range(n):
            key, value = tl.load(k_ptr + i * K + keys), tl.load(v_ptr + i * V + values)
            value -= tl.sum(state * key[:, None], 0)
            state += key[:, None] * value[None, :]
            tl.store(out_ptr + i * V + values, tl.sum(state * tl.load(q_ptr + i * K + keys)[:, None], 0))

    ptx = compile_kernel(states, F32, F32, F32, F32, integer(), K=64, V=64).ptx
    assert ".shared" not in ptx and len(re.findall(r"\bshfl\b", ptx)) <= 8
    assert len(re.findall(WIDE_LOAD, ptx)) == 8 and len(re.findall(r"\bfma\b", ptx)) <= 3 * 32


@triton.jit
def attention_with_its_powers(
    q_ptr, k_ptr, v_ptr, p_ptr, out_ptr, n, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    rows, columns, depth = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + depth[None, :])
    out = tl.zeros((ROWS, D), tl.float32)
    for start in range(0, n, COLUMNS):
        keys = start + columns
        scores = tl.dot(q, tl.load(k_ptr + keys[None, :] * D + depth[:, None]))
        p = tl.exp2(scores).to(tl.float16)
        tl.store(p_ptr + rows[:, None] * n + keys[None, :], p)
        out = tl.dot(p, tl.load(v_ptr + keys[:, None] * D + depth[None, :]), out)
    tl.store(out_ptr + rows[:, None] * D + depth[None, :], out)


def test_an_iteration_more_than_was_asked_for_leaves_room_for_the_rest():
    """Warpgroups would take turns with three slots of 64 KB; two fit beside the memory that rows of p cross."""
    types = {name: "*fp16" for name in ("q_ptr", "k_ptr", "v_ptr", "p_ptr", "out_ptr")} | {"n": "i32"}
    sizes = {"D": 128, "ROWS": 128, "COLUMNS": 128}
    source = ASTSource(attention_with_its_powers, types, sizes, {(i,): [["tt.divisibility", 16]] for i in range(6)})
    compiled = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 8, "num_stages": 2})
    assert len(re.findall(r"smem_alloc .*: buffer<2, 128x128xf16>", compiled.asm["ttgir"])) == 2


@triton.jit
def halves_of_products(x_ptr, y_ptr, low_ptr, high_ptr, SIGNED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(low_ptr + i, (x * y) ^ (x * (-5 if SIGNED else 0xD2511F53)))
    if SIGNED:
        tl.store(high_ptr + i, libdevice.mulhi(x, y) ^ libdevice.mulhi(x, -5))
    else:
        tl.store(high_ptr + i, tl.umulhi(x, y) ^ tl.umulhi(x, 0xD2511F53))


@pytest.mark.parametrize("signed", [True, False])
def test_both_halves_of_a_product_by_one_instruction(signed):
    words = pointer("i32" if signed else "u32")
    ptx = compile_kernel(halves_of_products, words, words, words, words, SIGNED=signed, BLOCK=128).ptx
    assert len(re.findall(rf"\bmul\.wide\.{'s' if signed else 'u'}32 %rd\d+, %r\d+, (?:%r\d+|-\d+);", ptx)) == 2
    assert not re.search(r"\bmul\.(hi|lo)\b", ptx)


def test_halves_of_products_of_halves_of_products():
    """What is multiplied was a product's half before."""

    @triton.jit
    def chain(x_ptr, y_ptr, z_ptr, out_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        x, y, z = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)
        product = x * y
        high = tl.umulhi(x, y) ^ tl.umulhi(product, z)
        tl.store(out_ptr + i, high ^ product * z ^ product)

    words = pointer("u32")
    ptx = compile_kernel(chain, words, words, words, words, BLOCK=128).ptx
    assert len(re.findall(r"\bmul\.wide\.u32 %rd\d+, %r\d+, %r\d+;", ptx)) == 2
    assert not re.search(r"\bmul\.(hi|lo)\b", ptx)


def test_random_words_of_philox():
    """Ten rounds of two products, of which the first round's and some of the last take less."""

    @triton.jit
    def words(out_ptr, seed, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        a, b, c, d = tl.randint4x(seed, i)
        tl.store(out_ptr + i, a ^ b ^ c ^ d)

    ptx = compile_kernel(words, pointer("i32"), integer(1), BLOCK=128).ptx
    assert len(re.findall(r"\bmul\.wide\.u32\b", ptx)) >= 16 and len(re.findall(r"\bmul\.(hi|lo)\b", ptx)) <= 4


@pytest.mark.parametrize("rows, columns", [(64, 64), (32, 128)])
def test_rows_and_columns_loaded_apart(rows, columns):
    """A warp's loads touch a line for each lane: 8 columns in 4 lanes and 4 rows in 8 are 64 of them, others more."""

    @triton.jit
    def pairs(a_ptr, b_ptr, out_ptr, n, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
        a, b = tl.load(a_ptr + i * stride), tl.load(b_ptr + j * stride)
        distances = tl.abs(a[:, None] - b[None, :]).to(tl.float16)
        tl.store(out_ptr + i[:, None] * n + j[None, :], distances)

    ptx = compile_kernel(pairs, F32, F32, F16, integer(), integer(), ROWS=rows, COLUMNS=columns).ptx
    assert len(re.findall(LOAD, ptx)) == 8 + 4 and len(re.findall(WIDE_STORE, ptx)) == 4
    assert not re.search(BARRIER, ptx)


@pytest.mark.parametrize("columns, slots", [(64, 2), (32, 3)])
def test_an_iteration_gives_way_to_a_second_program(columns, slots):
    """Three slots of 48 KB fill a multiprocessor, two leave room for another program, as three of 32 do."""

    @triton.jit
    def product(a_ptr, b_ptr, out_ptr, k, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
        i, j, d = tl.arange(0, 32), tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
        sums = tl.zeros((32, COLUMNS), tl.float32)
        for start in range(0, k, DEPTH):
            a = tl.load(a_ptr + i[:, None] * k + (start + d)[None, :])
            sums = tl.dot(a, tl.load(b_ptr + j[None, :] * k + (start + d)[:, None]), sums)
        tl.store(out_ptr + i[:, None] * COLUMNS + j[None, :], sums)

    types = {"a_ptr": "*fp32", "b_ptr": "*fp32", "out_ptr": "*fp32", "k": "i32"}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    source = ASTSource(product, types, {"COLUMNS": columns, "DEPTH": 128}, facts)
    compiled = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4, "num_stages": 3})
    assert len(re.findall(rf"smem_alloc .*: buffer<{slots}, ", compiled.asm["ttgir"])) == 2


@triton.jit
def rows_by_staying(x_ptr, out_ptr, n_rows, stride, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * stride + columns)
        tl.store(out_ptr + row * stride + columns, x - tl.sum(x) / BLOCK)


@triton.jit
def rows_that_wait(x_ptr, out_ptr, n_rows, stride, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        tl.atomic_add(out_ptr + n_rows * stride, 1.0)
        x = tl.load(x_ptr + row * stride + columns)
        tl.store(out_ptr + row * stride + columns, x - tl.sum(x) / BLOCK)


@pytest.mark.parametrize(
    "kernel, stages, copies", [(rows_by_staying, 3, 3 * 2), (rows_by_staying, 1, 0), (rows_that_wait, 3, 0)]
)
def test_loops_without_products_that_ask_for_stages(kernel, stages, copies):
    """Two 16-byte copies a thread: before the loop for two rows, in it for one more; not past an atomic operation."""
    ptx = compile_kernel(kernel, F32, F32, integer(1), integer(), STAGES=stages, BLOCK=1024).ptx
    assert len(re.findall(r"\bcp\.async\.c[ag]\b", ptx)) == copies


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def exponentials(a, b, n, WAY: tl.constexpr):
    k = tl.arange(0, 128)
    x = tl.exp(tl.load(a + k).to(tl.float32))
    if WAY == "sigmoid":
        y = 1 / (1 + x)
    elif WAY == "share":
        y = x / tl.sum(x)
    elif WAY == "product":
        y = tl.reduce(x, 0, multiply)
    elif WAY == "logarithm":
        y = tl.log(x)
    elif WAY == "carried":
        y = x
        for i in range(n):
            y = tl.where(tl.load(a + i) > 0, y * x, x) + y
    elif WAY == "both":
        y = x * 2
        tl.store(a + k, x)
    else:
        y = x
    tl.store(b + k, y)


@pytest.mark.parametrize(
    "way, source, result, corrected",
    [
        ("itself", "fp32", "fp32", True),
        ("itself", "fp32", "bf16", False),
        ("sigmoid", "fp32", "fp16", False),
        ("share", "fp32", "fp16", False),
        ("product", "fp32", "fp16", True),
        ("share", "fp32", "fp32", True),
        ("logarithm", "fp32", "fp16", True),
        ("carried", "fp32", "fp16", False),
        ("carried", "fp32", "fp32", True),
        ("both", "fp32", "fp16", True),
        ("both", "bf16", "bf16", False),
    ],
)
def test_exponentials_of_few_bits_are_not_corrected(way, source, result, corrected):
    """What rounding the exponent lost does not show in 16 bits."""
    text = ir(exponentials, (f"*{source}", 16), (f"*{result}", 16), ("i32", 1), WAY=way)
    ptx = _C._compile_gpu(text, 90, 4)["ptx"]
    assert ("mul.rz" in ptx) == corrected and "ex2.approx" in ptx
