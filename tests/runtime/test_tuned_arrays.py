"""What arrays hold after tuning: as if the launch that the user asked for had been the only one."""

import itertools

import numpy as np
import pytest
import torch

import triton
import triton.language as tl
from triton.runtime import reinterpret
from triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.host


@triton.jit
def accumulate(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1000, "too large")
    tl.atomic_add(x + index, tl.full((BLOCK,), 1, tl.float32), mask=index < n)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def bench_of(*milliseconds):
    """A `do_bench` that runs a kernel three times and says that the configurations take these times."""
    times = itertools.cycle(milliseconds)

    def bench(launch, quantiles):
        for _ in range(3):
            launch()
        return [next(times)] * 3

    return bench


def tuned(configs, kernel=accumulate, do_bench=None, **options):
    fresh = triton.jit(kernel.fn)
    return triton.autotune(configs, key=["n"], do_bench=do_bench or bench_of(1.0), **options)(fresh)


def blocks(*sizes, **options):
    return [triton.Config({"BLOCK": size}, **options) for size in sizes]


ARRAYS = pytest.mark.parametrize("make", [np.zeros, torch.zeros])


@ARRAYS
@pytest.mark.parametrize("fastest", [0, 1])
def test_zeroed_arrays_hold_one_launch(make, fastest):
    kernel = tuned(blocks(16, 32), do_bench=bench_of(2.0 - fastest, 1.0 + fastest), reset_to_zero=["x"])
    x = make(64)
    x[:] = 5
    kernel[grid](x, 64)
    assert (x == 1).all()
    kernel[grid](x, 64)
    assert (x == 2).all()  # the key is known, so nothing is zeroed


@ARRAYS
def test_restored_arrays_hold_one_launch(make):
    kernel = tuned(blocks(16, 32), restore_value=["x"])
    x = make(64)
    x[:] = 5
    kernel[grid](x, 64)
    assert (x == 6).all()
    kernel[grid](x, 64)
    assert (x == 7).all()


@pytest.mark.parametrize("option", ["reset_to_zero", "restore_value"])
def test_a_second_key(option):
    kernel = tuned(blocks(16, 32), **{option: ["x"]})
    for n in (64, 48):
        x = np.zeros(64, np.float32)
        kernel[grid](x, n)
        assert (x[:n] == 1).all() and (x[n:] == 0).all()
    assert len(kernel.cache) == 2


@pytest.mark.parametrize("sizes", [(16, 1024), (1024, 16), (1024, 16, 2048, 32)])
@pytest.mark.parametrize("option", ["reset_to_zero", "restore_value"])
def test_configurations_that_do_not_compile(option, sizes):
    kernel = tuned(blocks(*sizes), **{option: ["x"]})
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all()


def test_configurations_that_fail_when_they_run():
    """What the failing runs left behind is gone, and the failure is told to the hook."""
    seen = []

    def out_of_registers(arguments):
        arguments["x"][:] = 100
        raise triton.OutOfResources(2, 1, "registers")

    configs = blocks(16, pre_hook=out_of_registers) + blocks(32)
    x = np.full(64, 5, np.float32)
    kernel = tuned(configs, restore_value=["x"], post_hook=lambda arguments, exception: seen.append(exception))
    kernel[grid](x, 64)
    assert (x == 6).all()
    assert kernel.best_config is configs[1]
    assert seen == [None] * 3

    kernel = tuned(blocks(16, 32, pre_hook=out_of_registers), restore_value=["x"])
    with pytest.raises(triton.AutotunerError, match="none of the 2 configurations .* out of resource: registers"):
        kernel[grid](x, 64)
    assert (x == 6).all()


def test_hooks_are_told_of_what_does_not_compile():
    @triton.jit
    def small(x, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK <= 16, "too large")
        tl.store(x + tl.arange(0, BLOCK), 7)

    counts, failures, x = [0], [], np.full(64, 5, np.float32)

    def before(arguments):
        counts[0] += 1
        arguments["x"][:] = 100

    def after(arguments, exception):
        counts[0] -= 1
        if exception is not None:
            failures.append((arguments["BLOCK"], exception))

    configs = blocks(32, 16)
    kernel = triton.autotune(configs, key=[], restore_value=["x"], pre_hook=before, post_hook=after)(small)
    kernel[(1,)](x)
    ((block, failure),) = failures
    assert block == 32 and isinstance(failure, triton.errors.CompileTimeAssertionFailure)
    assert counts == [1]  # the launch that was asked for is made ready and not timed
    assert (x[:16] == 7).all() and (x[16:] == 100).all()


def test_an_error_that_ends_tuning_restores():
    def interrupt(launch, quantiles):
        launch()
        raise KeyboardInterrupt

    x = np.full(64, 5, np.float32)
    with pytest.raises(KeyboardInterrupt):
        tuned(blocks(16, 32), do_bench=interrupt, restore_value=["x"])[grid](x, 64)
    assert (x == 5).all()


def test_both_kinds_of_arrays_and_both_hooks():
    events = []

    @triton.jit
    def both(x, y, n, BLOCK: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(x + index, 1.0, mask=index < n)
        tl.atomic_add(y + index, 1.0, mask=index < n)

    def pre_hook(arguments, reset_only=False):
        events.append(("pre", reset_only, float(arguments["x"][0]), float(arguments["y"][0])))

    def post_hook(arguments, exception):
        events.append(("post", exception, float(arguments["x"][0]), float(arguments["y"][0])))

    kernel = tuned(
        blocks(16, 32), both, reset_to_zero=["x"], restore_value=["y"], pre_hook=pre_hook, post_hook=post_hook
    )
    x, y = np.full(64, 7, np.float32), np.full(64, 5, np.float32)
    kernel[grid](x, y, 64)
    assert (x == 1).all() and (y == 6).all()
    run = [("pre", False, 0.0, 5.0), ("post", None, 1.0, 6.0)]
    assert events == run * 6 + [("pre", True, 0.0, 5.0)]
    kernel[grid](x, y, 64)
    assert (x == 2).all() and (y == 7).all() and len(events) == 13


@pytest.mark.parametrize("takes_reset_only", [True, False])
def test_a_pre_hook_that_zeroes_itself(takes_reset_only):
    def zero(arguments, reset_only=False):
        arguments["x"][:] = 0

    kernel = tuned(blocks(16, 32), pre_hook=zero if takes_reset_only else lambda arguments: zero(arguments))
    x = np.full(64, 9, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all()


@pytest.mark.parametrize("option", [{}, {"reset_to_zero": ["x"]}, {"restore_value": ["x"]}])
def test_a_configuration_that_fills_the_array(option):
    """As a product does that splits its sum: its configurations alone know whether they add."""

    def three(arguments):
        arguments["x"][:] = 3

    kernel = tuned(blocks(16, pre_hook=three) + blocks(32, pre_hook=three), **option)
    x = np.full(64, 9, np.float32)
    for _ in range(2):
        kernel[grid](x, 64)
        assert (x == 4).all()


def test_what_a_slower_configuration_fills_does_not_stay():
    def three(arguments):
        arguments["x"][:] = 3

    kernel = tuned(blocks(16, pre_hook=three) + blocks(32, 64), do_bench=bench_of(3.0, 2.0, 1.0), restore_value=["x"])
    x = np.full(64, 9, np.float32)
    kernel[grid](x, 64)
    assert (x == 10).all()


@pytest.mark.parametrize("count", [1, 2])
def test_pruning_to_one_is_tuning_too(count):
    prune = {"early_config_prune": lambda configs, named, **kwargs: configs[:count]}
    kernel = tuned(blocks(16, 32), prune_configs_by=prune, reset_to_zero=["x"])
    x = np.full(64, 9, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all()


def test_one_configuration_resets_nothing():
    kernel = tuned(blocks(16), reset_to_zero=["x"])
    x = np.full(64, 9, np.float32)
    kernel[grid](x, 64)
    assert (x == 10).all()


def test_parameters_that_require_a_gradient():
    kernel = tuned(blocks(16, 32), reset_to_zero=["x"])
    x = torch.nn.Parameter(torch.ones(64))
    kernel[grid](x, 64)
    assert (x == 1).all()
    kernel = tuned(blocks(16, 32), restore_value=["x"])
    kernel[grid](x, 64)
    assert (x == 2).all()


@ARRAYS
@pytest.mark.parametrize("option, result", [("reset_to_zero", 1), ("restore_value", 6)])
def test_arrays_seen_as_another_type(make, option, result):
    @triton.jit
    def add_one(x, n, BLOCK: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + index, tl.load(x + index, mask=index < n) + 1, mask=index < n)

    bits = make(64, dtype=np.int32 if make is np.zeros else torch.int32)
    bits[:] = int(np.float32(5).view(np.int32))
    tuned(blocks(16, 32), add_one, **{option: ["x"]})[grid](reinterpret(bits, tl.float32), 64)
    assert (bits == int(np.float32(result).view(np.int32))).all()


@ARRAYS
@pytest.mark.parametrize("option, result", [("reset_to_zero", 1), ("restore_value", 6)])
def test_arrays_behind_descriptors(make, option, result):
    @triton.jit
    def add_one(x, n, BLOCK: tl.constexpr):
        place = tl.program_id(0) * BLOCK
        x.store([place], x.load([place]) + 1)

    def set_block(arguments):
        arguments["x"].block_shape = [arguments["BLOCK"]]

    array = make(64, dtype=np.float32 if make is np.zeros else torch.float32)
    array[:] = 5
    descriptor = TensorDescriptor.from_tensor(array, [1])
    tuned(blocks(16, 32, pre_hook=set_block), add_one, **{option: ["x"]})[grid](descriptor, 64)
    assert (array == result).all()


@triton.jit
def turn_blocks(source, target, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    tile = tl.reshape(source.load([0, row, column]), (ROWS, COLUMNS))
    target.store([column, row], tl.trans(tile))


@pytest.mark.parametrize("by_name", [False, True])
def test_blocks_that_configurations_set(by_name):
    """The descriptors are made with blocks for which the kernel would not compile; each configuration sets its own."""
    compiled = []

    def set_blocks(arguments):
        rows, columns = arguments["ROWS"], arguments["COLUMNS"]
        compiled.append((rows, columns))
        arguments["source"].block_shape = [1, rows, columns]
        arguments["target"].block_shape[:] = [columns, rows]

    sizes = [(8, 16), (16, 8), (32, 32)]
    configs = [triton.Config({"ROWS": rows, "COLUMNS": columns}, pre_hook=set_blocks) for rows, columns in sizes]
    kernel = tuned(configs, turn_blocks, do_bench=bench_of(3.0, 1.0, 3.0), restore_value=["target"])
    source, target = np.arange(64 * 96, dtype=np.float32).reshape(1, 64, 96), np.zeros((96, 64), np.float32)
    given = TensorDescriptor.from_tensor(source, [1, 1, 1]), TensorDescriptor.from_tensor(target, [1, 1])
    where = lambda meta: (64 // meta["ROWS"], 96 // meta["COLUMNS"])  # noqa: E731
    assert len(kernel.warmup(*given, 64, grid=(1,))) == 3
    assert [each.block_shape for each in given] == [[1, 1, 1], [1, 1]]
    kernel[where](*given, n=64) if by_name else kernel[where](*given, 64)
    assert set(compiled) == set(sizes)
    assert (target == source[0].T).all()
    assert kernel.best_config.kwargs == {"ROWS": 16, "COLUMNS": 8}
    assert [each.block_shape for each in given] == [[1, 16, 8], [8, 16]]
    assert all(times[0] < float("inf") for times in kernel.configs_timings.values())


def test_heuristics_above_and_below():
    values = {"BLOCK": lambda arguments: 16}

    @triton.jit
    def spread(x, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(x + index, SPLIT * 1.0, mask=index < n)

    configs = [triton.Config({"SPLIT": split}) for split in (1, 2)]
    tune = triton.autotune(configs, key=["n"], do_bench=bench_of(2.0, 1.0), reset_to_zero=["x"])
    for kernel in (tune(triton.heuristics(values)(spread)), triton.heuristics(values)(tune(spread))):
        x = np.full(64, 9, np.float32)
        kernel[(4,)](x, 64)
        assert (x == 2).all()


@triton.jit
def split_product(a, b, c, M, N, K, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr):
    rows, columns = tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for start in range(tl.program_id(0) * BLOCK_K, K, BLOCK_K * SPLIT):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * K + depth[None, :])
        right = tl.load(b + depth[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], total)


def test_a_product_whose_sum_is_split():
    a, b = (torch.randint(-3, 4, shape).float() for shape in ((16, 256), (256, 16)))  # sums are exact in any order
    configs = [triton.Config({"BLOCK_K": 16, "SPLIT": split}) for split in (1, 2, 4)]
    kernel = triton.autotune(configs, key=["K"], reset_to_zero=["c"], warmup=1, rep=2)(split_product)
    for c in (torch.zeros(16, 16), torch.zeros(16, 16)):
        kernel[lambda meta: (meta["SPLIT"],)](a, b, c, 16, 16, 256)
        torch.testing.assert_close(c, a @ b)
