"""Classes that libraries derive from the tuners, with the parameters in the order of the public API."""

import numpy as np
import pytest
import torch

import triton
import triton.language as tl
from triton.runtime import Autotuner, Heuristics

pytestmark = pytest.mark.host


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    """Adds one."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1000, "too large")
    tl.store(x + index, tl.load(x + index, mask=index < n) + 1, mask=index < n)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def configs(*blocks):
    return [triton.Config({"BLOCK": block}) for block in blocks]


def bench(launch, quantiles):
    launch()
    return [1.0, 0.5, 1.5]


class OwnLoop(Autotuner):
    """Chooses by itself, with the parts that the base class offers, as libraries with a cache of their own do."""

    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, pre_hook=None, post_hook=None):
        super().__init__(
            fn,
            arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            {"early_config_prune": lambda configs, named, **kwargs: configs[: named["n"]]},
            1,
            2,
            False,
            bench,
        )
        self.best = {}

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        key = tuple(self.nargs[name] for name in self.keys)
        if key not in self.best:
            timings = {config: self._bench(*args, config=config, **kwargs) for config in self.prune_configs(kwargs)}
            self.configs_timings = timings
            self.best[key] = min(timings, key=timings.get)
            self.pre_hook({**self.nargs, **kwargs, **self.best[key].all_kwargs()}, reset_only=True)
        config = self.best_config = self.best[key]
        self.nargs = None
        return self.fn.run(*args, **kwargs, **config.all_kwargs())


def test_a_loop_of_its_own():
    kernel = OwnLoop(add_one, add_one.arg_names, configs(1024, 16, 32), ["n"], ["x"], None)
    assert kernel.reset_to_zero == ["x"] and kernel.restore_value == [] and kernel.keys == ["n"]
    x = np.full(64, 9, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all()
    assert list(kernel.configs_timings.values()) == [[float("inf")] * 3, [1.0, 0.5, 1.5], [1.0, 0.5, 1.5]]
    assert kernel.best_config.kwargs == {"BLOCK": 16}
    kernel[grid](x, 64)
    assert (x == 2).all()
    kernel[grid](np.zeros(2, np.float32), 2)
    assert len(kernel.configs_timings) == 2  # pruned by `n`


class FromFile(Autotuner):
    """Takes one configuration that it knows from elsewhere before the first launch."""

    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, **kwargs):
        super().__init__(fn, arg_names, configs, key, reset_to_zero, restore_value, **kwargs)
        self.checked = False

    def run(self, *args, **kwargs):
        if not self.checked:
            self.checked = True
            self.configs = [triton.Config({"BLOCK": 32}, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None)]
        return super().run(*args, **kwargs)


def test_configurations_that_are_replaced():
    kernel = FromFile(
        add_one,
        add_one.arg_names,
        configs(16, 64),
        [],
        None,
        None,
        pre_hook=None,
        post_hook=None,
        prune_configs_by=None,
        warmup=None,
        rep=None,
        use_cuda_graph=False,
        do_bench=None,
        cache_results=False,
    )
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all() and kernel.best_config.kwargs == {"BLOCK": 32}
    assert not kernel.cache and not kernel.cache_results


class Forgiving(Autotuner):
    """Scores whatever fails as infinitely slow."""

    def _bench(self, *args, config, **meta):
        try:
            return super()._bench(*args, config=config, **meta)
        except ValueError:
            return [float("inf")] * 3


def test_the_measurement_is_overridden():
    def refuse_16(launch, quantiles):
        if launch().metadata.constants["BLOCK"] == 16:
            raise ValueError("not this one")
        return 1.0

    kernel = Forgiving(add_one, add_one.arg_names, configs(16, 32), ["n"], ["x"], None, do_bench=refuse_16)
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all() and kernel.best_config.kwargs == {"BLOCK": 32}
    kernel = Forgiving(add_one, add_one.arg_names, configs(16, 16), ["n"], ["x"], None, do_bench=refuse_16)
    with pytest.raises(triton.AutotunerError, match="none of the 2 configurations .* first failed with: not this one"):
        kernel[grid](x, 64)


def test_what_is_known_of_the_kernel():
    inner = Heuristics(add_one, add_one.arg_names, {"BLOCK": lambda arguments: 16})
    kernel = Autotuner(inner, inner.arg_names, [triton.Config({})], ["n"], None, None)
    for each in (inner, kernel):
        assert each.base_fn is add_one.fn and each.arg_names == ["x", "n", "BLOCK"]
        assert each.__name__ == "add_one" and each.__doc__ == "Adds one."
    assert kernel.do_bench is triton.testing.do_bench and kernel.nargs is None
    assert kernel.fn is inner and inner.fn is add_one
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert (x == 1).all()


class OwnHooks(Autotuner):
    """Puts other functions in place of the hooks, which keep what they need themselves."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        assert not self.user_defined_pre_hook and not self.user_defined_post_hook
        self.pre_hook, self.post_hook = self.keep, self.put_back

    def keep(self, arguments, reset_only=False):
        for name in self.reset_to_zero:
            arguments[name].fill(0)
        if not reset_only:
            self.copies = {name: arguments[name].copy() for name in self.restore_value}

    def put_back(self, arguments, exception):
        for name, copy in self.copies.items():
            arguments[name][...] = copy


@pytest.mark.parametrize("option, result", [("reset_to_zero", 1), ("restore_value", 10)])
def test_hooks_that_are_replaced(option, result):
    options = {"reset_to_zero": None, "restore_value": None, option: ["x"]}
    kernel = OwnHooks(add_one, add_one.arg_names, configs(16, 32), ["n"], do_bench=bench, **options)
    x = np.full(64, 9, np.float32)
    kernel[grid](x, 64)
    assert (x == result).all()
    kernel[grid](x, n=64)
    assert (x == result + 1).all() and list(kernel.cache) == [(64, "float32")]


def test_keys_of_the_cache():
    """The values that the key names, as far as they are given, then the dtypes in the order of the call."""

    @triton.jit
    def nothing(x, n, y, m=3, BLOCK: tl.constexpr = 16):
        pass

    kernel = Autotuner(nothing, nothing.arg_names, configs(16, 32), ["m", "n"], None, None, do_bench=bench)
    x, y = np.zeros(1, np.float16), torch.zeros(1)
    kernel[(1,)](x, 5, y)
    kernel[(1,)](x, 5, y, 4)
    kernel[(1,)](x, 6, m=7, y=y)
    kernel[(1,)](y=y, n=8, x=x)
    names = ("float16", "torch.float32")
    assert list(kernel.cache) == [(5, *names), (4, 5, *names), (7, 6, *names), (8, *names[::-1])]
    known = kernel.cache[9, *names] = triton.Config({"BLOCK": 64})
    kernel[(1,)](x, 9, y)
    assert kernel.best_config is known
