"""Launches of few programs: what multiplies in a loop loads further ahead than it asks for, with the memory that would
lie idle, and gives the same results."""

import re

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime import background

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("TRITON_TARGET", "sim:90")
    monkeypatch.setenv("TRITON_SIM_MULTIPROCESSORS", "2")
    yield
    assert background.wait()


def new_product():
    @triton.jit
    def product(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr):
        rm = tl.program_id(0) * BM + tl.arange(0, BM)
        rn = tl.program_id(1) * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        sums = tl.zeros((BM, BN), SUM)
        for k in range(0, K, BK):
            left = tl.load(a + rm[:, None] * K + k + rk[None, :], mask=k + rk[None, :] < K, other=0)
            right = tl.load(b + (k + rk[:, None]) * N + rn[None, :], mask=k + rk[:, None] < K, other=0)
            sums = tl.dot(left, right, sums)
        tl.store(c + rm[:, None] * N + rn[None, :], sums)

    return product


def numbers(shape, dtype=torch.float16):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(-8, 8, shape, generator=generator).to(dtype)


def launch(kernel, rows, K=256, dtype=torch.float16, tile=(16, 32, 32), **options):
    BM, BN, BK = tile
    a, b = numbers((rows * BM, K), dtype), numbers((K, BN), dtype)
    sum_type = torch.int32 if dtype == torch.int8 else torch.float32
    c = torch.zeros(rows * BM, BN, dtype=sum_type)
    name = tl.int32 if dtype == torch.int8 else tl.float32
    compiled = kernel[(rows, 1)](a, b, c, BN, K, BM=BM, BN=BN, BK=BK, SUM=name, **options)
    return compiled, c


def slots(compiled):
    return max(int(n) for n in re.findall(r"smem_alloc .*buffer<(\d+),", compiled.asm["ttgir"]))


def most(compiled):
    """How many programs a multiprocessor gets in the launches that it is for; 0: any number."""
    return int((re.findall(r"programs = (\d)", compiled.asm["ttir"]) or [0])[0])


def expected(rows, K, dtype, tile=(16, 32, 32)):
    BM, BN, _ = tile
    return numbers((rows * BM, K), dtype).double() @ numbers((K, BN), dtype).double()


def test_each_class_of_grids_has_its_variant():
    kernel = new_product()
    found = [launch(kernel, rows)[0] for rows in (1, 2, 3, 4, 5, 2, 4)]
    assert [most(compiled) for compiled in found] == [1, 1, 2, 2, 0, 1, 2]
    assert found[0] is found[1] is found[5] and found[2] is found[3] is found[6]
    assert len(kernel.variants()) == 3
    assert [slots(found[i]) for i in (0, 2, 4)] == [12, 12, 3]
    assert {compiled.metadata.num_stages for compiled in found} == {3}


def test_each_program_of_two_has_half_of_the_memory():
    kernel = new_product()
    one, two, any_number = (launch(kernel, rows, 2048, tile=(64, 64, 64))[0] for rows in (1, 3, 5))
    assert slots(one) > slots(two) > slots(any_number)
    assert one.metadata.shared <= 227 << 10 and two.metadata.shared <= (228 << 10) // 2 - 1024


def test_products_that_stay_in_flight_keep_the_slot_that_takes():
    """Three stages of 48 KB take four slots, which are all there is: a further iteration would take that slot away."""
    kernel = new_product()
    one, any_number = (launch(kernel, rows, tile=(128, 256, 64), num_warps=8)[0] for rows in (1, 5))
    assert most(one) == 1 and most(any_number) == 0
    assert one.asm["ttgir"].replace(" {programs = 1}", "") == any_number.asm["ttgir"]


@pytest.mark.parametrize("target", ["sim:80", "sim:90"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "float8_e4m3fn"])
@pytest.mark.parametrize("tile", [(16, 32, 32), (64, 64, 32)])
def test_results_are_the_same(monkeypatch, target, dtype, tile):
    """However many iterations there are: none, fewer than are loaded ahead, or more, and with a part of one."""
    monkeypatch.setenv("TRITON_TARGET", target)
    dtype = getattr(torch, dtype)
    for K in (0, 16, 80, 480):
        results = []
        for multiprocessors in "0", "1", "2":
            monkeypatch.setenv("TRITON_SIM_MULTIPROCESSORS", multiprocessors)
            compiled, c = launch(new_product(), 2, K, dtype, tile)
            assert most(compiled) == (0, 2, 1)[int(multiprocessors)]
            results.append(c)
        assert all(torch.equal(c, results[0]) for c in results)
        assert torch.equal(results[0].double(), expected(2, K, dtype, tile))


def test_the_general_variant_runs_at_once_and_the_one_for_the_grid_later(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    first, _ = launch(kernel, 5)
    assert background.wait()
    compiled, c = launch(kernel, 2)
    assert compiled is first and torch.equal(c.double(), expected(2, 256, torch.float16))
    assert background.wait()
    assert most(launch(kernel, 2)[0]) == 1
    compiled, c = launch(kernel, 3)
    assert most(compiled) != 2 and torch.equal(c.double(), expected(3, 256, torch.float16))
    assert background.wait()
    assert most(launch(kernel, 3)[0]) == 2 and most(launch(kernel, 2)[0]) == 1 and launch(kernel, 5)[0] is first


def test_a_variant_for_few_programs_runs_many_until_there_is_another(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    few, _ = launch(kernel, 1)
    assert most(few) == 1
    compiled, c = launch(kernel, 5)  # what it needs is being compiled
    assert most(compiled) in (0, 1) and torch.equal(c.double(), expected(5, 256, torch.float16))
    assert background.wait()
    assert most(launch(kernel, 5)[0]) == 0 and most(launch(kernel, 1)[0]) == 1


def test_what_prints_while_it_is_compiled_does_so_once(monkeypatch, capsys):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")

    @triton.jit
    def product(a, b, c, n):
        tl.static_print("compiled")
        i, sums = tl.arange(0, 16), tl.zeros((16, 16), tl.float32)
        for k in range(0, n):
            left = tl.load(a + i[:, None] * 16 * n + k * 16 + i[None, :])
            sums = tl.dot(left, tl.load(b + (k * 16 + i[:, None]) * 16 + i[None, :]), sums)
        tl.store(c + i[:, None] * 16 + i[None, :], sums)

    for programs in 8, 1, 3:
        product[(programs,)](numbers((16, 160)), numbers((160, 16)), torch.zeros(16, 16), 10)
        assert background.wait()
    assert capsys.readouterr().out.count("compiled") == 1


def test_what_does_not_multiply_has_one_variant():
    @triton.jit
    def scale(x, y, n, BLOCK: tl.constexpr):
        for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=3):
            offsets = start + tl.arange(0, BLOCK)
            tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)

    x = torch.arange(1000.0)
    for programs in 1, 3, 10:
        y = torch.zeros(1000)
        scale[(programs,)](x, y, 1000, BLOCK=64)
        assert torch.equal(y, 2 * x)
    assert len(scale.variants()) == 1


@pytest.mark.parametrize(
    "options", [{"num_stages": 1}, {"launch_cooperative_grid": True}], ids=["one stage", "cooperative"]
)
def test_what_is_not_deepened_has_one_variant(options):
    kernel = new_product()
    assert [most(launch(kernel, rows, **options)[0]) for rows in (2, 4, 5)] == [0, 0, 0]
    assert len(kernel.variants()) == 1


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("TRITON_DEEPEN", "0")
    kernel = new_product()
    assert [slots(launch(kernel, rows)[0]) for rows in (2, 4, 5)] == [3, 3, 3]
    assert len(kernel.variants()) == 1


def test_a_loop_of_constant_length_is_no_deeper_than_long():
    @triton.jit
    def product(a, b, c, TIMES: tl.constexpr):
        i, sums = tl.arange(0, 16), tl.zeros((16, 16), tl.float32)
        for k in range(0, TIMES):
            left = tl.load(a + i[:, None] * 16 * TIMES + k * 16 + i[None, :])
            sums = tl.dot(left, tl.load(b + (k * 16 + i[:, None]) * 16 + i[None, :]), sums)
        tl.store(c + i[:, None] * 16 + i[None, :], sums)

    for times, most_slots in ((3, 3), (5, 5), (20, 12)):
        a, b = numbers((16, 16 * times)), numbers((16 * times, 16))
        c = torch.zeros(16, 16)
        assert slots(product[(1,)](a, b, c, TIMES=times)) == most_slots
        assert torch.equal(c, a.float() @ b.float())


def new_attention():
    @triton.jit
    def attention(q, k, v, o, n, D: tl.constexpr, BLOCK: tl.constexpr):
        rm, rn, rd = tl.arange(0, 16), tl.arange(0, BLOCK), tl.arange(0, D)
        queries = tl.load(q + (tl.program_id(0) * 16 + rm[:, None]) * D + rd[None, :])
        largest, total = tl.full([16], -1e30, tl.float32), tl.zeros([16], tl.float32)
        sums = tl.zeros([16, D], tl.float32)
        for start in tl.range(0, n, BLOCK, num_stages=2):
            keys = tl.load(k + (start + rn[None, :]) * D + rd[:, None])
            scores = tl.dot(queries, keys)
            now = tl.maximum(largest, tl.max(scores, 1))
            p, alpha = tl.exp2(scores - now[:, None]), tl.exp2(largest - now)
            total = total * alpha + tl.sum(p, 1)
            values = tl.load(v + (start + rn[:, None]) * D + rd[None, :])
            sums = tl.dot(p.to(tl.float16), values, sums * alpha[:, None])
            largest = now
        tl.store(o + (tl.program_id(0) * 16 + rm[:, None]) * D + rd[None, :], sums / total[:, None])

    return attention


def test_attention_leaves_room_for_what_it_exchanges(monkeypatch):
    """Two loads, a query that stays, and scratch within the loop."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(512, 128, generator=generator).half() for _ in range(3))
    results = []
    for multiprocessors in "0", "2":
        monkeypatch.setenv("TRITON_SIM_MULTIPROCESSORS", multiprocessors)
        o = torch.zeros(16, 128)
        compiled = new_attention()[(1,)](q, k, v, o, 512, D=128, BLOCK=64)
        results.append(o)
    assert most(compiled) == 1 and slots(compiled) > 3 and compiled.metadata.shared <= 227 << 10
    assert torch.equal(*results)
    scores = torch.softmax(q[:16].float() @ k.float().T * np.log(2), -1)
    assert torch.allclose(results[0], scores @ v.float(), atol=1e-2)


def test_loops_in_loops():
    """The products of several tiles, one after the other."""

    @triton.jit
    def products(a, b, c, tiles, K, B: tl.constexpr):
        i = tl.arange(0, B)
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            rows, sums = tile * B + i, tl.zeros((B, B), tl.float32)
            for k in range(0, K, B):
                left = tl.load(a + rows[:, None] * K + k + i[None, :])
                sums = tl.dot(left, tl.load(b + (k + i[:, None]) * B + i[None, :]), sums)
            tl.store(c + rows[:, None] * B + i[None, :], sums)

    a, b = numbers((5 * 64, 320)), numbers((320, 64))
    c = torch.zeros(5 * 64, 64)
    compiled = products[(2,)](a, b, c, 5, 320, B=64)
    assert slots(compiled) > 4 and torch.equal(c, a.float() @ b.float())


def test_weights_that_are_computed_with_first():
    @triton.jit
    def product(a, weights, c, K, B: tl.constexpr):
        i, j, sums = tl.arange(0, 16), tl.arange(0, B), tl.zeros((16, B), tl.float32)
        for k in range(0, K, B):
            left = tl.load(a + i[:, None] * K + k + j[None, :])
            packed = tl.load(weights + (k + j[:, None]) // 2 * B + j[None, :])
            right = ((packed >> (4 * (j[:, None] % 2))) & 15).to(tl.float16)
            sums = tl.dot(left, right, sums)
        tl.store(c + i[:, None] * B + j[None, :], sums)

    a = numbers((16, 512))
    packed = torch.randint(0, 256, (256, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    c = torch.zeros(16, 32)
    compiled = product[(1,)](a, packed, c, 512, B=32)
    weights = torch.stack((packed & 15, packed >> 4), 1).reshape(512, 32)
    assert slots(compiled) > 3 and torch.equal(c, a.float() @ weights.float())


# ---- what is compiled ahead


def warm(kernel, grid):
    half = torch.float16
    more = {"BM": 16, "BN": 32, "BK": 32, "SUM": tl.float32}
    return kernel.warmup(half, half, torch.float32, 32, 256, **more, **grid)


@pytest.mark.parametrize("rows, programs", [(2, 1), (4, 2), (5, 0)])
def test_a_warmup_for_a_grid_compiles_what_the_launch_runs(rows, programs):
    kernel = new_product()
    compiled = warm(kernel, {"grid": lambda meta: (rows * 16 // meta["BM"], 1)})
    assert most(compiled) == programs
    assert launch(kernel, rows)[0] is compiled and len(kernel.variants()) == 1


@pytest.mark.parametrize("grid", [{}, {"grid": None}, {"grid": (1,)}], ids=str)
def test_a_warmup_for_any_grid_compiles_what_was_asked_for(grid):
    kernel = new_product()
    assert most(warm(kernel, grid)) == 0


def test_a_warmup_for_any_grid_is_that_also_when_the_background_has_compiled(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    for rows in 5, 2:
        launch(kernel, rows)
        assert background.wait()
    assert most(warm(kernel, {"grid": (1,)})) == 0


def test_a_tuner_times_what_launches_run():
    kernel = triton.autotune([triton.Config({"BK": 32}, num_stages=n) for n in (2, 4)], key=["K"])(new_product())
    a, b = numbers((32, 256)), numbers((256, 32))
    c = torch.zeros(32, 32)
    kernel[(2, 1)](a, b, c, 32, 256, BM=16, BN=32, SUM=tl.float32)
    assert torch.equal(c, a.float() @ b.float())
    variants = kernel.fn.variants()
    assert [most(compiled) for compiled in variants] == [1] * len(variants) and variants


def test_code_for_others_is_as_asked():
    types = dict.fromkeys("ab", "*fp16") | {"c": "*fp32", "N": "i32", "K": "i32"}
    constants = {"BM": 16, "BN": 32, "BK": 32, "SUM": tl.float32}
    compiled = triton.compile(triton.compiler.ASTSource(new_product(), types, constants))
    assert most(compiled) == 0


def test_the_disk_has_each(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_CACHE_SIZE", raising=False)
    monkeypatch.delenv("TRITON_VERIFY", raising=False)
    for was_kept in False, True, True:
        kernel = new_product()
        found = [launch(kernel, rows)[0] for rows in (2, 4, 5)]
        assert [most(compiled) for compiled in found] == [1, 2, 0]
        assert [compiled.info["cached"] for compiled in found] == [was_kept] * 3
    monkeypatch.setenv("TRITON_DEEPEN", "0")
    kernel = new_product()
    compiled, _ = launch(kernel, 2)
    assert not compiled.info["cached"] and most(compiled) == 0


def test_the_code_for_few_programs_runs_any_number():
    kernel = new_product()
    compiled, _ = launch(kernel, 2)
    a, b = numbers((80, 256)), numbers((256, 32))
    c = torch.zeros(80, 32)
    compiled[(5, 1, 1)](a, b, c, 32, 256, 16, 32, 32, tl.float32)
    assert torch.equal(c, a.float() @ b.float())
