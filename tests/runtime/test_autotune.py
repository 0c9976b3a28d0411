"""@triton.autotune and @triton.heuristics."""

import threading
import time

import numpy as np
import pytest
import torch

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.store(x + index, tl.load(x + index, mask=mask) + 1, mask=mask)


def configs(*blocks, **options):
    return [triton.Config({"BLOCK": block}, **options) for block in blocks]


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def instant(launch, quantiles=None):
    """Times nothing: the smallest block wins, for it comes first."""
    launch()
    return [1.0, 1.0, 1.0]


def tuned(*args, key=("n",), do_bench=instant, **kwargs):
    return triton.autotune(*args, key=list(key), do_bench=do_bench, **kwargs)(triton.jit(add_one.fn))


class Launched:
    """No kernel, but launched like one."""

    def __init__(self):
        self.fn, self.launches = (lambda: None), []

    def run(self, **keywords):
        self.launches.append(keywords["BLOCK"])


def test_what_is_no_kernel_is_tuned():
    def bench(launch, quantiles):
        launch()
        return [abs(launched.launches[-1] - 32)] * 3

    launched, asked = Launched(), []
    prune = {
        "early_config_prune": lambda configs, named, **keywords: configs[1:],
        "perf_model": lambda BLOCK, **keywords: asked.append(BLOCK) or BLOCK,
        "top_k": 0.7,
    }
    tuner = triton.runtime.Autotuner(launched, [], configs(8, 64, 32, 16), [], prune_configs_by=prune, do_bench=bench)
    tuner.run()
    assert asked == [64, 32, 16] and launched.launches == [16, 32, 32] and tuner.best_config.kwargs == {"BLOCK": 32}
    with pytest.raises(TypeError, match="it takes a kernel, not 'int'"):
        triton.runtime.Autotuner(3, [], configs(8), [])


def test_the_best_configuration_is_chosen_once_for_a_key():
    launches = []

    def bench(launch, quantiles):
        launch()
        launches.append(kernel.fn.variants())
        return [3.0, 2.0, 1.0, 4.0][(len(launches) - 1) % 4], 0, 0

    kernel = tuned(configs(16, 32, 64, 128), do_bench=bench, restore_value=["x"])
    x = np.zeros(100, np.float32)
    kernel[grid](x, 100)
    assert (x == 1).all()
    assert len(launches) == 4
    assert kernel.best_config.kwargs == {"BLOCK": 64}
    assert list(kernel.configs_timings.values()) == [[each, 0, 0] for each in (3.0, 2.0, 1.0, 4.0)]
    kernel[grid](x, 100)
    assert len(launches) == 4
    kernel[grid](x, 99)
    assert len(launches) == 8
    kernel[grid](np.zeros(100, np.float64), 100)
    assert len(launches) == 12
    assert len(kernel.cache) == 3


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_real_timing(make):
    kernel = triton.autotune(configs(16, 64), key=["n"], restore_value=["x"], warmup=1, rep=2)(triton.jit(add_one.fn))
    x, start = make(100), time.perf_counter()
    compiled = kernel[grid](x, n=100)
    longest = (time.perf_counter() - start) * 1e3
    assert (x == 1).all()
    assert compiled.metadata.constants["BLOCK"] == kernel.best_config.kwargs["BLOCK"]
    assert all(0 < each <= longest for times in kernel.configs_timings.values() for each in times)


def test_one_configuration_needs_no_timing():
    kernel = tuned(configs(16), do_bench=None)
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all()
    assert kernel.best_config.kwargs == {"BLOCK": 16}
    assert not kernel.cache


def test_options_of_a_configuration():
    kernel = tuned(configs(16, num_warps=2, num_stages=5))
    metadata = kernel[grid](np.zeros(64, np.float32), 64).metadata
    assert metadata.num_warps == 2
    assert metadata.num_stages == 5


def test_conflicts_with_the_launch():
    kernel = tuned(configs(16, 32))
    x = np.zeros(64, np.float32)
    with pytest.raises(ValueError) as error:
        kernel[grid](x, 64, BLOCK=16)
    assert str(error.value) == "add_one(): 'BLOCK' given by the launch, but the autotuner chooses it"
    with pytest.raises(ValueError, match="'num_warps' given by the launch"):
        kernel[grid](x, 64, num_warps=2)


def test_names_are_checked():
    with pytest.raises(ValueError, match="reset_to_zero or restore_value 'y' is no parameter"):
        tuned(configs(16), reset_to_zero=["y"])
    with pytest.raises(ValueError, match="heuristics for 'BLOK' is no parameter"):
        triton.heuristics({"BLOK": lambda args: 1})(add_one)
    with pytest.raises(TypeError, match="'BLOCK' takes a function of the launch's arguments, not 16"):
        triton.heuristics({"BLOCK": 16})(add_one)
    with pytest.raises(ValueError, match="prune_configs_by: unknown entry 'top'"):
        tuned(configs(16), prune_configs_by={"top": 1})


def test_names_of_configurations_are_checked_when_they_are_used():
    """A file may be imported whose configurations are for another target's options."""
    x = np.zeros(64, np.float32)
    unknown = triton.Config({"BLOCK": 16, "waves_per_eu": 2})
    for made in ([unknown], [*configs(16), unknown]):
        kernel = tuned(made)
        with pytest.raises(ValueError, match="Config 'waves_per_eu' is no parameter of 'add_one'"):
            kernel[grid](x, 64)
    kernel = tuned([*configs(16), unknown], prune_configs_by={"early_config_prune": lambda made, *_, **__: made[:1]})
    kernel[grid](x, 64)
    assert (x == 1).all()


def test_what_times_may_be_replaced():
    """Libraries that time in place set the attribute, for not every release hands the argument on."""
    launches = []

    def bench(launch, quantiles):
        launches.append(launch())
        return [1.0]

    kernel = tuned(configs(16, 32), do_bench=None)
    kernel.do_bench = bench
    assert kernel.do_bench is bench
    kernel[grid](np.zeros(64, np.float32), 64)
    assert len(launches) == 2


def test_a_key_that_is_no_parameter():
    """It counts where a launch gives it: as an option here."""
    launches = []

    def bench(launch, quantiles):
        launches.append(launch())
        return [1.0]

    with pytest.warns(UserWarning, match="@triton.autotune: key 'enable_fp_fusion' is no parameter of 'add_one'; it"):
        kernel = tuned(configs(16, 32), key=["n", "enable_fp_fusion"], do_bench=bench)
    x = np.zeros(64, np.float32)
    for _ in range(2):
        kernel[grid](x, 64)
        assert len(launches) == 2
    kernel[grid](x, 64, enable_fp_fusion=False)
    assert len(launches) == 4
    kernel[grid](x, 64, enable_fp_fusion=True)
    assert len(launches) == 6
    assert list(kernel.cache) == [(64, "float32"), (64, False, "float32"), (64, True, "float32")]


def test_options_among_the_values_of_a_configuration():
    config = triton.Config({"BLOCK": 16, "num_warps": 2, "num_stages": 5, "num_ctas": 1, "maxnreg": 64})
    assert config == triton.Config({"BLOCK": 16}, num_warps=2, num_stages=5, num_ctas=1, maxnreg=64)
    assert config.kwargs == {"BLOCK": 16}
    metadata = tuned([config])[grid](np.zeros(64, np.float32), 64).metadata
    assert (metadata.num_warps, metadata.num_stages, metadata.maxnreg) == (2, 5, 64)
    config = triton.Config({"BLOCK": 16, "enable_fp_fusion": False})
    assert not tuned([config])[grid](np.zeros(64, np.float32), 64).metadata.enable_fp_fusion


def test_texts_in_place_of_stages(tmp_path, target):
    file, x = tmp_path / "changed.ttir", np.zeros(64, np.float32)
    text = tuned(configs(16))[grid](x, 64).asm["ttir"]
    assert x[0] == 1 and text.count("{value = 1.0}") == 1
    file.write_text(text.replace("{value = 1.0}", "{value = 5.0}"))
    by_name = triton.Config({"BLOCK": 16}, ir_override=file)
    assert by_name == triton.Config({"BLOCK": 16, "ir_override": str(file)}) and str(file) in str(by_name)
    assert by_name != triton.Config({"BLOCK": 16})
    tuned([by_name])[grid](x, 64)
    assert x.tolist() == [6] * 64
    assert add_one[(4,)](x, 64, BLOCK=16).asm["ttir"] == text  # that of the kernel itself
    for name, content, message in [
        ("changed.txt", "", f"has to end in the stage that it stands for, and a kernel for {target} has ttir, "),
        ("mlir.ttir", "module { tt.func public @k() }", r"mlir.ttir"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(triton.CompilationError, match=message):
            tuned([triton.Config({"BLOCK": 16}, ir_override=tmp_path / name)])[grid](x, 64)


def test_the_order_of_decorators_is_checked():
    with pytest.raises(TypeError, match="@triton.autotune goes above @triton.jit"):
        triton.autotune(configs(16), key=[])(add_one.fn)
    with pytest.raises(TypeError, match="@triton.heuristics goes above @triton.jit"):
        triton.heuristics({})(add_one.fn)
    with pytest.raises(TypeError, match="@triton.jit goes below"):
        triton.jit(tuned(configs(16)))


def test_hooks():
    seen = []
    kernel = tuned(
        [triton.Config({"BLOCK": 16}, pre_hook=lambda args: seen.append(("config", args["BLOCK"], args["n"])))]
        + configs(32),
        pre_hook=lambda args: seen.append(("pre", args["BLOCK"])),
        post_hook=lambda args, exception: seen.append(("post", args["BLOCK"], exception)),
    )
    kernel[grid](np.zeros(64, np.float32), 64)
    assert seen == [
        ("config", 16, 64),
        ("pre", 16),
        ("post", 16, None),
        ("pre", 32),
        ("post", 32, None),
        ("pre", 16),
        ("config", 16, 64),
    ]


def test_pruning():
    timed = []

    def bench(launch, quantiles):
        launch()
        timed.append(1)
        return (1.0, 1.0, 1.0)

    def early(configs, named, **kwargs):
        assert named["n"] == 64
        return [config for config in configs if config.kwargs["BLOCK"] <= 64]

    def model(n, BLOCK, **rest):
        return abs(BLOCK - 32)

    x = np.zeros(64, np.float32)
    kernel = tuned(configs(16, 32, 64, 128), do_bench=bench, prune_configs_by={"early_config_prune": early})
    kernel[grid](x, 64)
    assert len(timed) == 3
    kernel = tuned(configs(16, 32, 64, 128), do_bench=bench, prune_configs_by={"perf_model": model, "top_k": 2})
    kernel[grid](x, 64)
    assert len(timed) == 5
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    kernel = tuned(configs(16, 32, 64, 128), do_bench=bench, prune_configs_by={"perf_model": model, "top_k": 0.25})
    kernel[grid](x, 64)
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert len(timed) == 5
    half = {"early_config_prune": lambda configs, named, **kwargs: configs[:2], "perf_model": model, "top_k": 0.5}
    kernel = tuned(configs(16, 32, 64, 128), do_bench=bench, prune_configs_by=half)
    kernel[grid](x, 64)
    assert len(timed) == 5  # half of what is left is one
    kernel = tuned(configs(16, 32), prune_configs_by={"early_config_prune": lambda configs, named, **kwargs: []})
    with pytest.raises(triton.AutotunerError, match="No valid autotuner configs after pruning"):
        kernel[grid](x, 64)


@triton.jit
def only_small(x, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 16, "too large")
    tl.store(x, BLOCK)


def test_configurations_that_do_not_compile_are_left_out():
    x = np.zeros(1, np.float32)
    kernel = triton.autotune(configs(64, 16, 32), key=["n"], do_bench=instant)(only_small)
    kernel[(1,)](x, 5)
    assert x[0] == 16
    kernel = triton.autotune(configs(64, 32), key=["n"], do_bench=instant)(only_small)
    with pytest.raises(triton.AutotunerError) as error:
        kernel[(1,)](x, 5)
    assert str(error.value).startswith(
        "none of the 2 configurations of kernel 'only_small' works; the first failed with: "
    )
    assert isinstance(error.value.__cause__, triton.CompilationError)


def test_errors_of_the_arguments_are_not_hidden():
    kernel = tuned(configs(16, 32))
    with pytest.raises(TypeError, match=r"add_one\(\) argument 'x': arrays of dtype complex"):
        kernel[grid](np.zeros(64, complex), 64)


def test_printing(monkeypatch, capsys):
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    tuned(configs(16, 32))[grid](np.zeros(64, np.float32), 64)
    out = capsys.readouterr().out
    assert out.startswith("Autotuned add_one for n=64, float32 in ")
    assert "BLOCK: 16, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None (1 ms, best of 2)" in out


def test_warmup_compiles_every_configuration():
    x = np.zeros(64, np.float32)
    compiled = tuned(configs(16, 32)).warmup(x, 64, grid=(1,))
    assert [each.metadata.constants["BLOCK"] for each in compiled] == [16, 32]
    assert not x.any()


def test_config():
    config = triton.Config({"BLOCK": 16}, num_warps=8)
    assert config == triton.Config({"BLOCK": 16}, num_warps=8)
    assert hash(config) == hash(triton.Config({"BLOCK": 16}, num_warps=8))
    assert config != triton.Config({"BLOCK": 16})
    assert config != triton.Config({"BLOCK": 32}, num_warps=8)
    assert str(config) == "BLOCK: 16, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None"
    assert config.all_kwargs() == {"BLOCK": 16, "num_warps": 8, "num_ctas": 1, "num_stages": 3}


# ---- heuristics


@triton.jit
def write_choice(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.store(x, BLOCK)
    tl.store(x + 1, EVEN)


def test_heuristics():
    kernel = triton.heuristics(
        {"BLOCK": lambda args: triton.next_power_of_2(args["n"]), "EVEN": lambda args: args["BLOCK"] == args["n"]}
    )(write_choice)
    x = np.zeros(2, np.int32)
    kernel[(1,)](x, 100)
    assert x.tolist() == [128, 0]
    kernel[(1,)](x, n=64)
    assert x.tolist() == [64, 1]
    assert kernel.warmup(x, 64, grid=(1,)).metadata.constants == {"BLOCK": 64, "EVEN": True}


def test_heuristics_of_options():
    values = {
        "num_warps": lambda args: 8 if args["n"] > 50 else 2,
        "num_stages": lambda args: args["num_warps"] // 2,
        "num_ctas": lambda args: 1,
        "maxnreg": lambda args: args["n"],
    }
    x = np.zeros(2, np.int32)
    kernel = triton.heuristics(values)(write_choice)
    for n, warps in ((64, 8), (32, 2)):
        metadata = kernel[(1,)](x, n, 16, True).metadata
        assert (metadata.num_warps, metadata.num_stages, metadata.maxnreg) == (warps, warps // 2, n)
    below = triton.autotune([triton.Config({"BLOCK": 16})], key=[])(kernel)  # what stands closer to the kernel wins
    assert below[(1,)](x, 64, EVEN=True).metadata.num_warps == 8


@pytest.mark.parametrize("tune_above", [True, False])
def test_heuristics_and_autotuning_stack(tune_above):
    tune = triton.autotune(configs(16, 32), key=["n"], do_bench=instant)
    choose = triton.heuristics({"EVEN": lambda args: args["n"] % args.get("BLOCK", 16) == 0})
    kernel = tune(choose(write_choice)) if tune_above else choose(tune(write_choice))
    x = np.zeros(2, np.int32)
    kernel[(1,)](x, 48)
    assert x.tolist() == [16, 1]
    assert kernel.kernel is write_choice and kernel.base_fn is write_choice.fn
    assert kernel.arg_names == ["x", "n", "BLOCK", "EVEN"]
    assert kernel.__name__ == "write_choice"


def test_tuning_in_several_threads():
    kernel = tuned(configs(16, 32, 64), restore_value=["x"])
    results = []

    def work():
        x = np.zeros(64, np.float32)
        kernel[grid](x, 64)
        results.append((x == 1).all())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_arrays_that_a_launch_does_without():
    @triton.autotune(
        [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64})],
        ["n"],
        reset_to_zero=["x_ptr"],
        restore_value=["y_ptr"],
    )
    @triton.jit
    def count(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.static_assert(x_ptr is None and y_ptr is None)
        tl.store(z_ptr + offsets, offsets, mask=offsets < n)

    z = np.zeros(100, np.int32)
    count[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](None, None, z, 100)
    assert (z == np.arange(100)).all()
