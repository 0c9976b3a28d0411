"""Spaces of configurations: what is tunable, how a space is searched, and what the compiler adds to it."""

import math
import random
from collections import Counter
from threading import Event
from typing import Annotated

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime.cost_model import GPUModel
from triton.runtime.estimates import Estimates, kind_of
from triton.runtime.making import Making
from triton.runtime.parallel import core_count
from triton.runtime.space import Bench, Choice, Space, budget_of, rounds_of, search
from triton.runtime.space_tuner import SpaceTuner

pytestmark = pytest.mark.host


def test_tunable():
    assert triton.tunable([3, 96]).values == (3, 96)
    assert triton.tunable(16, 128).values == (16, 32, 64, 128)
    assert triton.tunable(8, 8).values == (8,)
    with pytest.raises(ValueError, match=r"tunable\(3, 64\): each bound must be a power of 2"):
        triton.tunable(3, 64)
    with pytest.raises(ValueError, match="there is no value to choose"):
        triton.tunable(64, 32)


SPACE = Space([Choice("a", (1, 2, 4)), ("b", range(50)), ("c", [False, True])])


def test_points_and_neighbours():
    assert len(SPACE) == len(SPACE.points()) == 300
    assert SPACE.points()[0] == {"a": 1, "b": 0, "c": False}
    near = list(SPACE.neighbours({"a": 2, "b": 0, "c": True}))
    assert near == [
        {"a": 1, "b": 0, "c": True},
        {"a": 4, "b": 0, "c": True},
        {"a": 2, "b": 1, "c": True},
        {"a": 2, "b": 0, "c": False},
    ]
    assert list(
        Space([("rows", (32, 64)), ("warps", (2, 4, 8))], along="warps").neighbours({"rows": 64, "warps": 4})
    ) == [
        {"rows": 32, "warps": 4},
        {"rows": 32, "warps": 2},
        {"rows": 64, "warps": 2},
        {"rows": 64, "warps": 8},
    ]


def test_points_of_a_large_space(monkeypatch):
    monkeypatch.setattr("triton.runtime.space.LARGEST", 20)
    points = SPACE.points(seed=1)
    assert len(points) == 20 and len({repr(point) for point in points}) == 20
    assert points == SPACE.points(seed=1) != SPACE.points(seed=2)
    assert all(point["b"] in range(50) for point in points)


def cost(point):
    return abs(point["a"] - 2) + abs(point["b"] - 20) / 10 + point["c"]


class Recorder(Bench):
    """Tells in which rounds points were started and how long each was measured."""

    def __init__(self, milliseconds):
        super().__init__(self._measure)
        self.milliseconds, self.rounds, self.shares = milliseconds, [], []

    def start(self, points):
        self.rounds.append(list(points))
        super().start(points)

    def _measure(self, point, share):
        self.shares.append(share)
        return self.milliseconds(point)

    def timed(self):
        return len({repr(point) for points in self.rounds for point in points})


def searched(points, **options):
    bench = Recorder(cost)
    best, milliseconds = search(points, SPACE.neighbours, bench, **options)
    return best, milliseconds, bench.timed()


def test_a_small_space_is_timed_as_a_whole():
    points = SPACE.points()[::20]
    best, milliseconds, count = searched(points)
    assert cost(best) == milliseconds == min(map(cost, points))
    assert count >= len(points)


@pytest.mark.parametrize("seed", range(5))
def test_a_good_order_finds_the_best_with_few_timings(seed):
    """The estimates are wrong by up to half."""

    noise = random.Random(seed)
    points = sorted(SPACE.points(), key=lambda point: (cost(point) + 0.2) * noise.uniform(0.7, 1.5))
    best, milliseconds, count = searched(points)
    assert milliseconds <= 0.2 and count <= budget_of(300) == 27


def test_the_budget_is_kept():
    for budget in (1, 2, 5, 40):
        assert searched(SPACE.points(), budget=budget)[2] <= budget


def first_round(points, bench, **options):
    bench.rounds.clear()
    best = search(points, options.pop("near", lambda point: []), bench, **options)[0]
    return best, [tuple(point.values()) for point in bench.rounds[0]]


def test_the_front_has_one_of_each_kind():
    """The best kind is the ninth, behind eight whose points differ in what hardly matters."""
    points = [{"tile": tile, "depth": depth} for tile in range(9) for depth in range(20)]
    bench = Recorder(lambda point: 100 - 5 * point["tile"] + (point["depth"] != 7) / 10)
    near = lambda point: [{**point, "depth": depth} for depth in range(20)]  # noqa: E731
    how = {"near": near, "kind": lambda point: point["tile"]}
    best, first = first_round(points, bench, **how)
    assert best == {"tile": 8, "depth": 7} and first == [(tile, 0) for tile in range(9)]
    beside = lambda: [{"tile": 0, "depth": depth} for depth in (0, 5) if bench.rounds]  # noqa: E731
    assert first_round(points, bench, beside=beside, **how)[1] == first and bench.rounds[1] == [{"tile": 0, "depth": 5}]
    is_slow = lambda point: point["tile"] in (0, 3, 5)  # noqa: E731
    assert first_round(points, bench, is_slow=is_slow, **how)[1] == [(tile, 0) for tile in (1, 2, 4, 6, 7, 8)]


def test_the_front_has_what_looks_alike_last():
    """The order hardly tells the second half of a grid from the first."""
    points = [{"tile": tile, "group": group} for tile in range(15) for group in (1, 8)]
    bench = Recorder(lambda point: 1.0)
    assert first_round(points, bench, guess=lambda point: 1 + point["tile"])[1] == [(tile, 1) for tile in range(8)]
    first = first_round(points, bench, guess=lambda point: 1 + point["tile"] // 5)[1]
    assert first == [(0, 1), (5, 1), (10, 1), (0, 8), (1, 1), (1, 8), (2, 1), (2, 8)]


def test_rounds_that_there_is_time_for():
    """The best of each round is a step from that of the last. The only one is not sifted before the finals; where there
    are several these are longer, and of more points."""
    assert [rounds_of(count, cores=16) for count in (1, 20, 200, 201, 2000)] == [1, 1, 1, 2, 10]
    assert [rounds_of(count, cores=64) for count in (200, 2000)] == [1, 4]
    points = [{"b": number} for number in range(30)]
    near = lambda point: [{"b": point["b"] + 1}]  # noqa: E731
    for rounds, shares in (1, {0.2: 8, 1.0: 3}), (2, {0.2: 9, 0.5: 4, 1.0: 3}), (3, {0.2: 10, 0.5: 5, 2.0: 4}):
        bench = Recorder(lambda point: 100.0 - point["b"])
        assert search(points, near, bench, rounds=rounds)[0] == {"b": 6 + rounds}
        assert Counter(bench.shares) == shares


def test_another_round_is_for_what_gains():
    """Each step is 5 % faster until the fifth, and from then on 0.5 %."""
    bench = Recorder(lambda point: 0.95 ** min(point["step"], 5) * 0.995 ** max(point["step"] - 5, 0))
    points = [{"step": step} for step in (0, 2, 0.5, *(1 / step for step in range(3, 60)))]
    best, _ = search(points, lambda point: [{"step": point["step"] + 1}], bench, budget=40)
    rounds = [[point["step"] for point in points] for points in bench.rounds]
    assert [each for each in rounds[1:] if len(each) == 1] == [[3], [4], [5], [6]] and best == {"step": 6}


def test_points_that_fail():
    def found(points, near, milliseconds):
        return search(points, near, Recorder(milliseconds))

    works = lambda point: float("inf") if point["b"] else 1.0  # noqa: E731
    assert found(SPACE.points(), SPACE.neighbours, works)[0]["b"] == 0
    hidden = lambda point: 1.0 if point["b"] > 12 else float("inf")  # noqa: E731
    assert found([{"b": number} for number in range(40)], lambda point: [], hidden)[0]["b"] > 12
    assert found(SPACE.points()[1:9], lambda point: [], lambda point: float("inf"))[1] > 1e9


class Factory(Recorder):
    """Makes points ready, all at the same time: each takes as long as it says."""

    def __init__(self, milliseconds, seconds):
        super().__init__(milliseconds)
        self.seconds, self.now, self.begun, self.left = seconds, 0, [], []

    @property
    def count(self):
        return len(self.left)

    def start(self, points):
        self.rounds.append(list(points))
        self.begun.append(self.now)
        self.left += [(self.now + self.seconds(point), point) for point in points]

    def has_ready(self):
        return any(end <= self.now for end, _ in self.left)

    def take(self, share):
        first = min(self.left, key=lambda item: item[0])
        self.left.remove(first)
        self.now = max(self.now, first[0])
        return first[1], self.time(first[1], share)


def test_the_next_round_does_not_wait_for_the_slowest():
    """The second begins when six of the eight are timed; and something more is compiled than the last of the first."""
    points = [{"b": number, "deep": 0} for number in range(30)]
    near = lambda point: [{**point, "deep": deep} for deep in (1, 2)]  # noqa: E731
    bench = Factory(lambda point: 10 + abs(point["b"] - 2) - point["deep"] / 2, lambda point: 1 + point["b"])
    assert search(points, near, bench, rounds=2)[0] == {"b": 2, "deep": 2}
    assert bench.begun == [0, 6] and bench.now == 9
    assert [len(points) for points in bench.rounds] == [8, 2]


def test_what_has_no_prospects_is_not_waited_for():
    """Four say how wrong a guess may be. If the best is guessed slower than the fifth, that may be the best."""
    points = [{"b": number} for number in range(30)]
    for wrong, seconds in (0, 4), (4.5, 5):
        bench = Factory(lambda point: 10 + point["b"], lambda point: 1 + point["b"])
        guess = lambda point: 10 + point["b"] + wrong * (point["b"] == 0)  # noqa: B023, E731
        assert search(points, lambda point: [], bench, guess=guess)[0] == {"b": 0}
        assert bench.now == seconds and bench.count == 8 - seconds


def test_the_last_round_waits_for_less():
    """One of six that a guess was wrong of says nothing where there is no time for another round."""
    points = [{"b": number} for number in range(30)]
    guess = lambda point: (10 + point["b"]) * (3 if point["b"] == 1 else 1)  # noqa: E731
    for rounds, seconds in (2, 8), (1, 6):
        bench = Factory(lambda point: 10 + point["b"], lambda point: 1 + point["b"])
        assert search(points, lambda point: [], bench, guess=guess, rounds=rounds)[0] == {"b": 0}
        assert bench.now == seconds and bench.count == 8 - seconds


def test_without_time_what_works_is_enough():
    """What is not ready yet is not waited for, but for the first that works."""
    points = [{"b": number} for number in range(30)]
    for seconds in 3, 1:
        milliseconds = lambda point: 100 - point["b"] if point["b"] else math.inf  # noqa: E731
        bench = Factory(milliseconds, lambda point: 1 + point["b"])
        bench.waits = lambda bench=bench, seconds=seconds: bench.now < seconds
        best, _ = search(points, lambda point: [], bench)
        assert best == {"b": max(seconds, 2) - 1} and bench.now == max(seconds, 2)


def test_how_long_a_point_takes_a_core(monkeypatch):
    """Of two that began, one ended after 3 s, and the other has taken 6 so far."""
    making = Making(None, None, (), {}, is_beside=True)
    making._begun, making._ended = [2.0, 4.0], [5.0]
    monkeypatch.setattr("time.perf_counter", lambda: 10.0)
    assert making.seconds_each() == 9


class Clock(Bench):
    """What a search would take: each point its time, noisier the shorter it is measured."""

    def __init__(self, seed):
        super().__init__(self.measure)
        self.random, self.spent, self.shares = random.Random(seed), 0.0, Counter()

    def measure(self, point, share):
        self.shares[share] += 1
        self.spent += share / 2 * milliseconds(point)
        return milliseconds(point) * (1 + self.random.gauss(0, 0.02 / (share / 2) ** 0.5))


def milliseconds(point):
    return 1 + abs(point["rows"] - 4) / 4 + abs(point["depth"] - 3) / 5 + point["warps"] % 3 / 6


WIDE = Space([Choice("rows", range(12)), Choice("depth", range(10)), Choice("warps", range(8))])


@pytest.mark.parametrize("seed", range(20))
def test_a_search_by_a_clock(seed):
    """A fiftieth of an exhaustive search's time, and 3 % of its result, with estimates that are wrong by a third."""
    clock, points = Clock(seed), WIDE.points()
    wrong = random.Random(seed)
    ordered = sorted(points, key=lambda point: milliseconds(point) * wrong.uniform(0.67, 1.5))
    best, _ = search(ordered, WIDE.neighbours, clock)
    assert milliseconds(best) <= 1.03 * min(map(milliseconds, points))
    assert clock.spent <= 0.02 * sum(map(milliseconds, points))
    brief, longer, full = sorted(clock.shares)
    assert full == 4 and clock.shares[brief] > clock.shares[longer] >= 1 and clock.shares[full] <= 6


# ---- kernels


@triton.jit
def scale(x, n, BLOCK: triton.tunable(16, 128), ROUNDS: triton.tunable([1, 50]) = 1):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 128, "too large")
    for _ in range(ROUNDS):
        tl.store(x + index, index.to(tl.float32), mask=index < n)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def only_on_cpus(target):
    if target != "cpu":
        pytest.skip("elsewhere the number of warps belongs to the space")


def test_the_space_of_a_kernel(target):
    only_on_cpus(target)

    def bench(launch, quantiles):
        constants = launch().metadata.constants
        return [constants["ROUNDS"] * constants["BLOCK"]]

    kernel = triton.autotune("auto", key=["n"], do_bench=bench)(scale)
    assert isinstance(kernel, SpaceTuner)
    x = np.zeros(10000, np.float32)
    kernel[grid](x, 10000)
    assert (x == np.arange(10000)).all()
    assert kernel.considered == 8 and len(kernel.space) == 8
    assert kernel.best_config.kwargs == {"BLOCK": 16, "ROUNDS": 1}
    timings = kernel.timings[0]
    assert len(timings["configurations"]) == 6
    assert len(kernel.cache) == 1
    kernel[grid](x, 10000)
    assert len(kernel.timings) == 1


def test_most_points_are_estimated_and_not_compiled(target):
    only_on_cpus(target)

    @triton.jit
    def fill(x, n, BLOCK: triton.tunable(1, 512), A: triton.tunable(range(10)), B: triton.tunable(range(5))):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + index, A * 16 + B, mask=index < n)

    def bench(launch, quantiles):
        return [launch().metadata.constants["A"]]

    kernel = triton.autotune("auto", key=["n"], do_bench=bench)(fill)
    kernel[grid](np.zeros(64, np.float32), 64)
    assert len(kernel.space) == kernel.considered == 500 and kernel.best_config.kwargs["A"] == 0
    compiled = {tuple(sorted(each.metadata.constants.items())) for each in fill.variants()}
    assert 8 < len(compiled) == len(kernel.timings[0]["configurations"]) <= 30


def test_what_the_launch_gives_is_not_chosen(target):
    only_on_cpus(target)
    kernel = triton.autotune("auto", key=["n"], rep=1)(scale)
    kernel[grid](np.zeros(64, np.float32), 64, ROUNDS=1)
    assert [choice.name for choice in kernel.space.choices] == ["BLOCK"]
    assert set(kernel.best_config.kwargs) == {"BLOCK"}


def test_without_a_tuner_it_is_a_compile_time_parameter():
    x = np.zeros(64, np.float32)
    scale[(1,)](x, 64, BLOCK=64)
    assert x[63] == 63
    with pytest.raises(TypeError, match="BLOCK"):
        scale[(1,)](x, 64)


def test_no_point_works():
    @triton.jit
    def never(x, BLOCK: triton.tunable(16, 32)):
        tl.static_assert(BLOCK < 16, "too large")

    with pytest.raises(triton.AutotunerError, match="no point of the space of kernel 'never' works.*too large"):
        triton.autotune("auto", key=[])(never)[(1,)](np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="a list of triton.Config, or 'auto'"):
        triton.autotune("best", key=[])(scale)


def test_heuristics_between():
    @triton.autotune("auto", key=["n"], rep=1)
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def fill(x, n, BLOCK: triton.tunable(16, 64), EVEN: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(x + index, 1.0)
        else:
            tl.store(x + index, 1.0, mask=index < n)

    x = np.zeros(100, np.float32)
    fill[grid](x, 100)
    assert (x == 1).all()


def test_found_again_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found = []
    for _ in range(2):
        kernel = triton.autotune("auto", key=["n"], rep=1, cache_results=True)(triton.jit(scale.fn))
        x = np.zeros(64, np.float32)
        kernel[grid](x, 64)
        assert (x == np.arange(64)).all()
        found.append((kernel.best_config, kernel.considered))
    assert found[0][0] == found[1][0] and found[0][1] >= 8 and found[1][1] == 0


def test_what_was_timed_for_a_part_only_does_not_win(tmp_path, monkeypatch):
    """Each timing says more than the one before, so what is left out early has the least number."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    count = iter(range(1, 1000))
    found = []
    for _ in range(2):
        bench = lambda launch, quantiles: [float(next(count))] * 3  # noqa: E731
        kernel = triton.autotune("auto", key=["n"], do_bench=bench, cache_results=True)(triton.jit(scale.fn))
        kernel[grid](np.zeros(64, np.float32), 64)
        found.append(kernel.best_config)
    assert found[0] == found[1]
    timed = kernel.timings[0]["configurations"]
    assert len(timed) == 1 and not timed[0]["brief"]


def test_what_was_timed_for_less_long_than_the_finalists_does_not_win(monkeypatch):
    """Where there is time for several rounds, in full is not for as long as the last."""
    monkeypatch.setattr("triton.runtime.space_tuner.rounds_of", lambda count, cores: 3)
    monkeypatch.setattr("triton.runtime.space.SHARES", (0.2, 1.0, 1.0))
    monkeypatch.setattr("triton.runtime.space.FINALISTS", 0)
    shares = []

    def bench(launch, quantiles):
        shares.append(kernel._tuning.share)
        return [100.0 + len(shares) / 10 + (shares[-1] == 2) * 3] * 3  # a lucky one in full

    kernel = triton.autotune("auto", key=["n"], do_bench=bench)(triton.jit(scale.fn))
    kernel[grid](np.zeros(64, np.float32), 64)
    timed = kernel.timings[0]["configurations"]
    assert timed[0]["milliseconds"][0] > 103 and not timed[0]["brief"]
    assert sum(not each["brief"] for each in timed) == shares.count(2) and 1 in shares


@pytest.mark.parametrize("part, timed", [(0.0, [1]), (1e6, range(4, 30))])
def test_a_tenth_of_the_time_of_all_points(part, timed, monkeypatch):
    """Once that has passed, nothing is waited for but the first that works; before, what may be the best."""
    monkeypatch.setattr("triton.runtime.space_tuner.TENTH", part)
    monkeypatch.setattr("triton.runtime.space_tuner.rounds_of", lambda count, cores: 2)
    monkeypatch.setattr("triton.runtime.autotuner.Autotuner._is_on_gpu", lambda *_: True)
    monkeypatch.setattr("triton.runtime.making.Making.has_ready", lambda making: bool(making._ready))
    kernel = triton.autotune("auto", key=["n"], rep=1)(triton.jit(scale.fn))
    kernel[grid](np.zeros(64, np.float32), 64)
    assert len(kernel.timings[0]["configurations"]) in timed


def test_warmup_compiles_the_most_promising():
    kernel = triton.autotune("auto", key=["n"])(scale)
    x = np.zeros(64, np.float32)
    (compiled,) = kernel.warmup(x, 64, grid=grid)
    assert compiled.metadata.constants["ROUNDS"] == 1 and not x.any()


# ---- what the compiler counts and can choose


@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    sums = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + k + ks[None, :])
        y = tl.load(b + (k + ks[:, None]) * N + columns[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


def survey(target, variants, M=64, N=64, BK=32, K=256):
    pointer = ("*fp16", 16)
    entries = pointer, pointer, ("*fp32", 16), ("i32", 16), *map(tl.constexpr, (M, N, BK))
    return triton._C.survey(product, entries, {}, target, (None, None, None, K), (1, 1, 1), variants)


def test_work_is_counted():
    work, _ = survey("cpu", [{}])
    assert work["multiplications"] == 64 * 64 * 256
    assert work["loaded_bytes"] == work["operand_bytes"] == (64 * 256 + 256 * 64) * 2
    assert work["stored_bytes"] == 64 * 64 * 4 and work["rounds"] == 8


def test_choices_of_the_compiler():
    _, (small, large) = survey("cuda:90", [{}, {"num_warps": 8}], M=128, N=128)
    assert small["choices"]["wgmma"] == ((1, 0), 1) and small["choices"]["rows"][0] == (4,)
    assert large["choices"]["rows"] == ((4, 8), 8)
    assert set(large["choices"]) == {"num_warps", "num_stages", "wgmma", "rows", "programs"}
    assert 0 < large["shared"] <= 232448 and 0 < large["registers"] < small["registers"]
    _, (old,) = survey("cuda:80", [{"choices": "wgmma=0"}])
    assert old["failure"] == "the compiler has no choice 'wgmma=0' for this kernel"
    _, (many, few) = survey("cuda:80", [{"num_stages": 6}, {"num_stages": 2}], M=128, N=128, BK=128)
    assert many["remarks"] == 1 and few["remarks"] == 0


CHOICES = [("sim:80", f"rows={rows}") for rows in (1, 2, 4)] + [("sim:90", f"rows={rows} wgmma=0") for rows in (1, 4)]


@pytest.mark.parametrize("target, choices", [*CHOICES, ("sim:90", "wgmma=0"), ("sim:90", "wgmma=1 rows=4")])
def test_every_choice_gives_the_same_product(target, choices, monkeypatch):
    monkeypatch.setenv("TRITON_TARGET", target)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    product[(1,)](a, b, c, 64, 64, 64, 32, choices=choices)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=1e-2)


def test_a_choice_that_is_none(monkeypatch):
    arrays = [np.zeros(1, dtype) for dtype in (np.float16, np.float16, np.float32)]
    monkeypatch.setenv("TRITON_TARGET", "cpu")
    compiled = product.warmup(*arrays, 64, 64, 64, 32, grid=(1,), choices="no=1")
    assert compiled.metadata.choices == "no=1"  # a CPU has none
    with pytest.raises(TypeError, match="option choices=3: it must be a string"):
        product.warmup(*arrays, 64, 64, 64, 32, grid=(1,), choices=3)
    source = triton.compiler.ASTSource(
        product, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}, {"M": 64, "N": 64, "BK": 32}
    )
    ptx = {}
    for choices in ("", "programs=3", "wgmma=0"):
        ptx[choices] = triton.compile(source, target="cuda:90", options={"choices": choices}).asm["ptx"]
    assert len(set(ptx.values())) == 3 and "wgmma.mma" not in ptx["wgmma=0"]
    with pytest.raises(triton.CompilationError) as error:
        triton.compile(source, target="cuda:90", options={"choices": "rows=3"})
    assert "the compiler has no choice 'rows=3' for this kernel" in str(error.value)
    assert "num_stages=1, num_stages=2" in str(error.value) and "rows=4" in str(error.value)


def test_the_space_of_a_product(target, monkeypatch):
    if target == "cpu":
        monkeypatch.setenv("TRITON_TARGET", "sim:80")
    kernel = triton.autotune("auto", key=["K"], do_bench=lambda launch, quantiles: [launch().metadata.num_warps])(
        triton.jit(product.fn)
    )
    a = np.ones((32, 32), np.float16)
    c = np.zeros((32, 32), np.float32)
    kernel[(1,)](a, a, c, 32, 32, 32, 32)
    assert (c == 32).all()
    assert {choice.name for choice in kernel.space.choices} == {"num_warps", "num_stages"}
    assert kernel.best_config.num_warps == 1
    tried = {entry["values"].get("choices", "") for entry in kernel.timings[0]["configurations"]}
    assert any("programs=" in each for each in tried)


# ---- estimates

H100 = {
    "multiprocessor_count": 132, "max_shared_mem": 232448, "max_shared_mem_per_multiprocessor": 233472,
    "sm_clock_rate": 1_980_000, "capability": 90,
}  # fmt: skip


def facts(code, registers=64, remarks=0, failure=None, tensor_cores=True, choices=()):
    return {
        "shared": 32768, "registers": registers, "ahead": 2, "tensor_cores": tensor_cores, "crossed": 0.0, "code": code,
        "remarks": remarks, "choices": {"wgmma": ((1, 0), 1), **dict(choices)}, "failure": failure,
    }  # fmt: skip


@pytest.mark.parametrize(
    "registers, options, spills",
    [
        (208, {"num_warps": 4}, False),
        (256, {"num_warps": 4}, True),
        (208, {"num_warps": 4, "programs": 2}, False),
        (208, {"num_warps": 4, "programs": 3}, True),
        (120, {"num_warps": 16}, False),
        (128, {"num_warps": 16}, True),  # the sums of a product take all there are: none is left for addresses
    ],
)
def test_what_spills_by_estimate(registers, options, spills):
    assert GPUModel(H100).spills(facts("", registers), options) == spills


def test_what_takes_long_to_compile():
    model = GPUModel(H100)
    assert model.effort(facts("", 208)) > model.effort(facts("", 104)) > 0
    assert model.takes_long(facts("", 208), {"num_warps": 4}) and not model.takes_long(facts("", 136), {"num_warps": 8})


class Model:
    """Whose estimate is the shared memory."""

    multiprocessors = 0

    def milliseconds(self, work, facts, options, programs):
        return work["tile"] * (1 + options["num_stages"] / 100) * (3 if options.get("wgmma") == 0 else 1)

    def spills(self, facts, options):
        return facts["registers"] > 255 or options.get("programs", 0) > 3

    def takes_long(self, facts, options):
        return facts["registers"] > 200

    def effort(self, facts):
        return facts["registers"]


def estimates_of(registers=lambda tile: 64, tiles=(8, 4, 16)):
    asked = []

    def survey(point, variants, multiprocessors):
        asked.append((point, variants))
        choices = {"programs": ((0, 2, 4), 2)}
        codes = [(point["tile"], each["num_stages"], each.get("choices", "programs=2")) for each in variants]
        made = [facts(code, registers(point["tile"]), choices=choices) for code in codes]
        return {"tile": point["tile"]}, made, (1, 1, 1)

    estimates = Estimates(Model(), survey)
    estimates.add([{"tile": tile} for tile in tiles], [{"num_stages": stages} for stages in (1, 2, 3)])
    return estimates, asked


def test_points_in_the_order_of_their_estimates():
    estimates, _ = estimates_of()
    points = estimates.ordered()
    assert [(point["tile"], point["num_stages"]) for point in points] == [(t, s) for t in (4, 8, 16) for s in (1, 2, 3)]
    assert [point["tile"] for point in estimates.worth(2)] == [4] * 3 + [8] * 3
    assert [point["tile"] for point in estimates.worth(7)] == [4] * 3 + [8] * 3 + [16]
    assert estimates.heads([points[2], points[5], {"tile": 5}]) == [points[0], points[3]]
    assert estimates.not_worse(points[3], points, 1.1) == points[:6]
    assert kind_of(points[0]) == kind_of(points[1]) != kind_of(points[3])


def test_what_is_compiled_soonest():
    """What is 4 % slower by the model takes a third of the registers."""
    estimates, _ = estimates_of(lambda tile: {100: 180, 104: 60, 200: 30}[tile], tiles=(100, 104, 200))
    points = estimates.ordered()
    first = estimates.soonest(points)
    assert (points[0]["tile"], first["tile"]) == (100, 104)
    assert {point["tile"] for point in points if estimates.is_slower(point, first)} == {100}


def test_few_points_are_surveyed_in_parts(monkeypatch):
    """Each is walked again, so that few options are not worth it."""
    monkeypatch.setattr("triton.runtime.estimates.core_count", lambda: 16)
    asked = []

    def survey(point, variants, multiprocessors):
        asked.append(len(variants))
        return {"tile": point["tile"]}, [facts((point["tile"], each["num_stages"])) for each in variants], (1, 1, 1)

    for options, parts in ((30, [8, 8, 8, 6]), (5, [5])):
        estimates = Estimates(Model(), survey)
        estimates.add([{"tile": tile} for tile in range(1, 3)], [{"num_stages": stages} for stages in range(options)])
        assert sorted(asked) == sorted(2 * parts) and len(estimates.ordered()) == 2 * options
        asked.clear()


def test_of_many_points_the_promising_kinds_are_surveyed_at_every_depth():
    """The last works at depth 1 only, and the one before spills."""
    asked = Counter()

    def survey(point, variants, multiprocessors):
        tile, made = point["tile"], []
        for each in variants:
            stages = each["num_stages"]
            asked[tile, stages] += 1
            fact = facts((tile, stages), 300 if tile == 39 else 64)
            made.append({**fact, "failure": "too deep" if tile == 40 and stages > 1 else None})
        return {"tile": point["tile"]}, made, (1, 1, 1)

    estimates = Estimates(Model(), survey)
    points, depths = [{"tile": tile} for tile in range(1, 41)], [{"num_stages": stages} for stages in range(1, 7)]
    estimates.add(points, depths)
    whole = {tile for tile, stages in asked if stages == 5}
    assert whole == {*range(1, 17), 40} and len(asked) == 40 * 2 + 17 * 4 and set(asked.values()) == {1}
    assert estimates.share() == 240 / len(asked)
    known = estimates.ordered()
    assert {"tile": 40, "num_stages": 1} in known and {"tile": 30, "num_stages": 3} not in known
    estimates.complete([{"tile": 30, "num_stages": 4, "choices": ""}, {"tile": 3, "num_stages": 1}])
    assert len(asked) == 40 * 2 + 18 * 4 and set(asked.values()) == {1}
    assert {"tile": 30, "num_stages": 3} in estimates.ordered()
    asked.clear()
    estimates = Estimates(Model(), survey)
    estimates.add(points, depths, whole=True)
    assert len(asked) == 240 and estimates.share() == 1


def test_what_spills_is_left_out_unless_all_does():
    assert {point["tile"] for point in estimates_of(lambda tile: 300 if tile < 8 else 64)[0].ordered()} == {8, 16}
    assert {point["tile"] for point in estimates_of(lambda tile: 300)[0].ordered()} == {4, 8, 16}
    estimates, _ = estimates_of(lambda tile: {4: 300, 8: 220, 16: 64}[tile])
    points = estimates.ordered(all_of_them=True)
    assert [point["tile"] for point in points] == [4] * 3 + [8] * 3 + [16] * 3
    assert [estimates.takes_long(point) for point in points[3:]] == [True] * 3 + [False] * 3


def test_the_first_of_equal_code_stands_for_the_others():
    """However the threads come along: here the first is surveyed last."""
    others = [Event() for _ in range(3)]

    def survey(point, variants, multiprocessors):
        if point["tile"]:
            others[point["tile"] - 1].set()
        elif core_count() > 1:
            assert all(other.wait(10) for other in others)
        return {"tile": 1}, [facts("same") for _ in variants], (1, 1, 1)

    estimates = Estimates(Model(), survey)
    estimates.add([{"tile": tile} for tile in range(4)], [{"num_stages": 1}])
    assert estimates.ordered() == [{"tile": 0, "num_stages": 1}] and len(estimates.firsts) == 4


def test_other_choices_are_estimated_too():
    """`wgmma=0` is three times as slow by the model, `programs=4` spills, and 2 is what it takes by itself."""
    estimates, asked = estimates_of()
    point = estimates.ordered()[0]
    others = estimates.other_choices(point)
    assert others == [{**point, "choices": "programs=0"}]
    assert asked[-1] == (
        {"tile": 4},
        [{"num_stages": 1, "choices": each} for each in ("wgmma=0", "programs=0", "programs=4")],
    )
    assert estimates.other_choices(others[0]) == [point]


Rounds = Annotated[tl.constexpr, triton.tunable([1, 50])]


def test_tunable_beside_the_type_that_checkers_see():
    @triton.jit
    def kernel(x, BLOCK: Annotated[tl.constexpr, triton.tunable(16, 32)], ROUNDS: Rounds, LATER: "Rounds", n: int):
        tl.store(x + tl.arange(0, BLOCK), ROUNDS + LATER)

    x = np.zeros(32, np.int32)
    kernel[(1,)](x, 16, 2, 3, 7)
    assert (x == np.array([5] * 16 + [0] * 16)).all()
    assert [param.annotation.values for param in kernel.params[1:4]] == [(16, 32), (1, 50), (1, 50)]
