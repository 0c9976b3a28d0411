"""@triton.autotune and @triton.heuristics: launches that choose compile-time parameters themselves."""

import os
import time
from contextlib import nullcontext, suppress
from functools import partial

from .._C import named_arguments, tuning_key
from ..errors import AutotunerError, CompilationError
from .jit import JITFunction


class Config:
    """One way to compile a kernel: values of compile-time parameters, and launch options.

    :param kwargs: name to value, for parameters that the autotuner fills in.
    :param num_warps: warps a program runs on.
    :param num_stages: how deep loads in loops are pipelined.
    :param num_ctas: blocks in a cluster.
    :param maxnreg: the most registers a thread may use, or None.
    :param pre_hook: called with a dict of all arguments before the kernel runs with this configuration.
    """

    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None):
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook

    def _options(self):
        return {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
        }

    def all_kwargs(self):
        """The keywords of a launch with this configuration."""
        return {**self.kwargs, **{name: value for name, value in self._options().items() if value is not None}}

    def __eq__(self, other):
        if not isinstance(other, Config):
            return NotImplemented
        mine = self.kwargs, self._options(), self.pre_hook
        return mine == (other.kwargs, other._options(), other.pre_hook)

    def __hash__(self):
        return hash((*sorted(self.all_kwargs().items(), key=str), self.pre_hook))

    def __str__(self):
        items = {**self.kwargs, **self._options()}.items()
        return ", ".join(f"{name}: {value}" for name, value in items)

    def __repr__(self):
        return f"Config({self})"


class _Launchable:
    """What stands in for a kernel: ``self[grid](...)`` is ``self.run(..., grid=grid)``."""

    def __init__(self, fn):
        if not isinstance(fn, (JITFunction, _Launchable)):
            raise TypeError(
                f"@triton.{type(self)._decorator} goes above @triton.jit: it takes a kernel, not {type(fn).__name__!r}"
            )
        self.fn = fn
        self.base_fn = fn if isinstance(fn, JITFunction) else fn.base_fn
        self.arg_names = fn.arg_names
        self.__name__ = self.base_fn.__name__
        self.__qualname__ = self.base_fn.__qualname__
        self.__module__ = self.base_fn.__module__
        self.__doc__ = self.base_fn.__doc__
        self.__wrapped__ = self.base_fn.fn

    def __getitem__(self, grid):
        return partial(self.run, grid=grid)

    def __get__(self, instance, owner=None):
        return self

    def __call__(self, *args, **kwargs):
        return self.base_fn(*args, **kwargs)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"{type(self).__name__}({self.fn!r})"

    def _named(self, args, kwargs):
        """All arguments by name."""
        return named_arguments(self.arg_names, args, kwargs)


class Heuristics(_Launchable):
    """A kernel some of whose parameters are functions of the other arguments."""

    _decorator = "heuristics"

    def __init__(self, fn, values):
        super().__init__(fn)
        self.values = dict(values)
        _check_names(self, self.values, "heuristics for")

    def _filled(self, args, kwargs):
        named = self._named(args, kwargs)
        for name, function in self.values.items():
            kwargs[name] = named[name] = function(named)
        return kwargs

    def run(self, *args, **kwargs):
        return self.fn.run(*args, **self._filled(args, kwargs))

    def warmup(self, *args, **kwargs):
        return self.fn.warmup(*args, **self._filled(args, kwargs))


class Autotuner(_Launchable):
    """A kernel that finds the fastest of its configurations for each value of its key.

    After a launch ``best_config`` is the configuration it used, ``cache`` maps keys to the best configurations, and
    ``configs_timings`` has the milliseconds that each took when they were compared last.
    """

    _decorator = "autotune"

    def __init__(
        self,
        fn,
        configs,
        key,
        *,
        prune_configs_by=None,
        reset_to_zero=None,
        restore_value=None,
        pre_hook=None,
        post_hook=None,
        warmup=None,
        rep=None,
        use_cuda_graph=False,
        do_bench=None,
    ):
        super().__init__(fn)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self._key_places = [(name, self.arg_names.index(name)) for name in self.keys if name in self.arg_names]
        self._places = tuple(place for _, place in self._key_places)
        self._keywords = {}
        self.cache = {}
        self.best_config = None
        self.configs_timings = None
        self.bench_time = None
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self.pre_hook, self.post_hook = pre_hook, post_hook
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        prune = prune_configs_by or {}
        unknown = set(prune) - {"perf_model", "top_k", "early_config_prune"}
        if unknown:
            raise ValueError(f"prune_configs_by: unknown entry {sorted(unknown)[0]!r}")
        self.perf_model = prune.get("perf_model")
        self.top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self._do_bench = do_bench
        _check_names(self, self.keys, "key")
        for config in self.configs:
            _check_names(self, config.kwargs, "Config")
        _check_names(self, [*self.reset_to_zero, *self.restore_value], "reset_to_zero or restore_value")

    # ---- launching

    def run(self, *args, **kwargs):
        config = self.best_config = self._choose(args, kwargs)
        keywords = self._checked(config, kwargs)
        if config.pre_hook is not None:
            config.pre_hook({**self._named(args, kwargs), **keywords})
        kwargs |= keywords
        return self.fn.run(*args, **kwargs)

    def warmup(self, *args, **kwargs):
        """Compile every configuration that is not pruned; the list of compiled kernels."""
        return [
            self.fn.warmup(*args, **kwargs, **self._checked(config, kwargs)) for config in self._pruned(args, kwargs)
        ]

    def _choose(self, args, kwargs):
        if len(self.configs) == 1:
            return self.configs[0]
        key = self._key(args, kwargs)
        config = self.cache.get(key)
        if config is None:
            config = self.cache[key] = self._tune(key, args, kwargs)
        return config

    def _key(self, args, kwargs):
        """The values of the key's arguments, and the dtypes of all arrays."""
        if len(kwargs) == 1 and "grid" in kwargs:  # nothing but positional arguments
            return tuning_key(args, self._places)
        count = len(args)
        key = [args[place] if place < count else kwargs.get(name) for name, place in self._key_places]
        key += [getattr(value, "dtype", None) for value in args]
        if kwargs:
            key += [getattr(kwargs.get(name), "dtype", None) for name in self.arg_names[count:]]
        return tuple(key)

    def _keep_keywords(self, config):
        entry = self._keywords[id(config)] = config, config.all_kwargs()
        return entry

    def _checked(self, config, kwargs):
        """The configuration's keywords; an error if the launch gives one of them too."""
        _, keywords = self._keywords.get(id(config)) or self._keep_keywords(config)
        if not keywords.keys().isdisjoint(kwargs):
            names = ", ".join(map(repr, sorted(keywords.keys() & kwargs.keys())))
            raise ValueError(f"{self.__name__}(): {names} given by the launch, but the autotuner chooses it")
        return keywords

    # ---- tuning

    def _tune(self, key, args, kwargs):
        configs = self._pruned(args, kwargs)
        if len(configs) == 1:
            return configs[0]
        start = time.perf_counter()
        backend, failures = self._compile_all(configs, args, kwargs), []
        bench = self._do_bench or self._bench_on(backend)
        with _device_of(backend, (*args, *kwargs.values())):
            timings = {config: self._bench(bench, config, args, kwargs, failures) for config in configs}
        self.bench_time = time.perf_counter() - start
        self.configs_timings = timings
        best = min(timings, key=timings.get)
        if timings[best] == float("inf"):
            raise AutotunerError(
                f"none of the {len(configs)} configurations of kernel {self.__name__!r} works; the first failed with: "
                f"{failures[0]}"
            ) from failures[0]
        if os.environ.get("TRITON_PRINT_AUTOTUNING", "0") not in ("", "0"):
            count = len(self._key_places)
            values = [f"{name}={value!r}" for (name, _), value in zip(self._key_places, key[:count], strict=True)]
            values += [str(dtype) for dtype in key[count:] if dtype is not None]
            print(
                f"Autotuned {self.__name__} for {', '.join(values)} in {self.bench_time:.2f} s: {best} "
                f"({timings[best]:.4g} ms, best of {len(timings)})"
            )
        return best

    def _compile_all(self, configs, args, kwargs):
        """Compile on all cores, for the compiler does not hold the interpreter; what fails, fails again in _bench.

        Returns the backend that the kernels are for, "cpu" if none of them compiles.
        """
        from concurrent.futures import ThreadPoolExecutor

        def compile_one(config):
            with suppress(CompilationError):
                compiled = self.fn.warmup(*args, **kwargs, **self._checked(config, kwargs))
                compiled = compiled[0] if isinstance(compiled, list) else compiled  # a tuner in a tuner has several
                compiled._init_handles()
                return compiled.info["target"].split(":")[0]

        workers = min(len(configs), os.cpu_count() or 1)
        with ThreadPoolExecutor(workers) as pool:
            backends = list(pool.map(compile_one, configs))
        return next(filter(None, backends), "cpu")

    def _bench_on(self, backend):
        from ..testing import benchmarker

        limits = {"warmup": self.num_warmups, "rep": self.num_reps}
        limits = {name: value for name, value in limits.items() if value is not None}
        return partial(benchmarker(backend, self.use_cuda_graph), **limits)

    def _bench(self, bench, config, args, kwargs, failures):
        """Milliseconds of a launch with `config`; infinity, and a failure noted, if it cannot run."""
        keywords = self._checked(config, kwargs)
        named = {**self._named(args, kwargs), **keywords}
        saved = {name: _copy(named[name]) for name in self.restore_value if named[name] is not None}

        def launch():
            if config.pre_hook is not None:
                config.pre_hook(named)
            self._before(named, saved)
            try:
                self.fn.run(*args, **kwargs, **keywords)
            except Exception as error:
                self._after(named, error)
                raise
            self._after(named, None)

        try:
            result = bench(launch, quantiles=(0.5, 0.2, 0.8))
            return result[0] if isinstance(result, (list, tuple)) else result
        except CompilationError as error:
            failures.append(error)
            return float("inf")
        finally:
            for name, value in saved.items():
                _assign(named[name], value)

    def _before(self, named, saved):
        for name in self.reset_to_zero:
            if named[name] is not None:  # an array that this launch does without
                _zero(named[name])
        for name, value in saved.items():
            _assign(named[name], value)
        if self.pre_hook is not None:
            self.pre_hook(named)

    def _after(self, named, error):
        if self.post_hook is not None:
            self.post_hook(named, exception=error)

    def _pruned(self, args, kwargs):
        """The configurations worth timing for these arguments."""
        configs = self.configs
        named = dict(zip(self.arg_names, args, strict=False))
        if self.early_config_prune is not None:
            configs = self.early_config_prune(configs, named, **kwargs)
            if not configs:
                raise AutotunerError(f"kernel {self.__name__!r}: early_config_prune left no configuration")
        if self.perf_model is not None:
            count = self.top_k if isinstance(self.top_k, int) else int(len(self.configs) * self.top_k)
            if len(configs) > count:
                estimates = {config: self.perf_model(**named, **kwargs, **config.all_kwargs()) for config in configs}
                configs = sorted(configs, key=estimates.get)[: max(count, 1)]
        return list(configs)


def _check_names(tuner, names, what):
    for name in names:
        if name not in tuner.arg_names and not any(param.kind == 4 for param in tuner.base_fn.params):
            raise ValueError(f"@triton.{tuner._decorator}: {what} {name!r} is no parameter of {tuner.__name__!r}")


def _device_of(backend, arguments):
    """A context in which the GPU of the arrays is the current one, for it is there that the time is taken."""
    if backend != "cuda":
        return nullcontext()
    from .cuda import current_device

    devices = (getattr(argument, "device", None) for argument in arguments)
    numbers = (getattr(device, "index", getattr(device, "id", None)) for device in devices)
    return current_device(next((number for number in numbers if isinstance(number, int)), None))


def _zero(array):
    array.zero_() if hasattr(array, "zero_") else array.fill(0)


def _copy(array):
    return array.clone() if hasattr(array, "clone") else array.copy()


def _assign(array, value):
    if hasattr(array, "copy_"):
        array.copy_(value)
    else:
        array[...] = value


def autotune(
    configs,
    key,
    prune_configs_by=None,
    reset_to_zero=None,
    restore_value=None,
    pre_hook=None,
    post_hook=None,
    warmup=None,
    rep=None,
    use_cuda_graph=False,
    do_bench=None,
    cache_results=False,
):
    """Decorator above ``@triton.jit``: time the configurations when one of the arguments in `key` changes.

    While they are timed the kernel runs many times; what it adds to must be reset each time.

    :param configs: a list of `triton.Config`.
    :param key: names of the arguments whose values decide which configuration is best.
    :param prune_configs_by: ``early_config_prune(configs, named_args, **kwargs)`` returns the configurations worth
        trying; ``perf_model(**arguments)`` estimates the time of one, and the ``top_k`` best (a number, or a fraction
        of all) are timed.
    :param reset_to_zero: names of arrays to fill with zeros before each run.
    :param restore_value: names of arrays whose contents are put back before each run and in the end.
    :param pre_hook: ``pre_hook(arguments)`` before each timed run.
    :param post_hook: ``post_hook(arguments, exception=...)`` after it.
    :param warmup: milliseconds of warm-up for each configuration.
    :param rep: milliseconds of measurement.
    :param use_cuda_graph: time with `triton.testing.do_bench_cudagraph`, where the target has graphs.
    :param do_bench: ``do_bench(launch, quantiles=...)`` to time with, instead of `triton.testing.do_bench`.
    :param cache_results: accepted; results are kept as long as the process runs.
    """

    def decorate(fn):
        return Autotuner(
            fn,
            configs,
            key,
            prune_configs_by=prune_configs_by,
            reset_to_zero=reset_to_zero,
            restore_value=restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
        )

    return decorate


def heuristics(values):
    """Decorator above ``@triton.jit``: compute compile-time parameters from the other arguments.

    :param values: parameter name to a function of a dict of all arguments.
    """
    return lambda fn: Heuristics(fn, values)
