"""@triton.autotune and @triton.heuristics: launches that choose compile-time parameters themselves."""

import os
import time
from _thread import _local as ThreadLocal
from contextlib import nullcontext, suppress
from functools import partial

from .._C import launch_options, named_arguments, tuning_key
from ..errors import AutotunerError, CompilationError, OutOfResources, PTXASError  # noqa: F401 (found here too)
from .driver import driver
from .jit import JITFunction, KernelInterface, prepare_tuning
from .wrapper import TensorWrapper


class Config:
    """One way to compile a kernel: values of compile-time parameters, and launch options.

    :param kwargs: name to value, for parameters that the autotuner fills in, and for launch options: those of the
        parameters below are taken from here rather than from there.
    :param num_warps: warps a program runs on.
    :param num_stages: how deep loads in loops are pipelined.
    :param num_ctas: blocks in a cluster.
    :param maxnreg: the most registers a thread may use, or None.
    :param pre_hook: called with a dict of all arguments before the kernel runs with this configuration.
    :param ir_override: None; another value raises NotImplementedError, for kernels are compiled from their source.
    """

    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None):
        if ir_override is not None:
            raise NotImplementedError("Config(ir_override=...): a kernel is compiled from its source and nothing else")
        self.kwargs = dict(kwargs)
        self.num_warps = self.kwargs.pop("num_warps", num_warps)
        self.num_stages = self.kwargs.pop("num_stages", num_stages)
        self.num_ctas = self.kwargs.pop("num_ctas", num_ctas)
        self.maxnreg = self.kwargs.pop("maxnreg", maxnreg)
        self.pre_hook = pre_hook
        self.ir_override = ir_override

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


class _Launchable(KernelInterface):
    """What stands in for a kernel."""

    def __init__(self, fn):
        if not isinstance(fn, KernelInterface):
            raise TypeError(
                f"@triton.{type(self)._decorator} goes above @triton.jit: it takes a kernel, not {type(fn).__name__!r}"
            )
        self.fn = fn
        self.kernel = fn  # innermost
        while not isinstance(self.kernel, JITFunction):
            self.kernel = self.kernel.fn
        self.base_fn = self.__wrapped__ = self.kernel.fn
        self.arg_names = fn.arg_names
        self.__name__ = self.kernel.__name__
        self.__qualname__ = self.kernel.__qualname__
        self.__module__ = self.kernel.__module__
        self.__doc__ = self.kernel.__doc__

    def __get__(self, instance, owner=None):
        return self

    def __call__(self, *args, **kwargs):
        return self.kernel(*args, **kwargs)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"{type(self).__name__}({self.fn!r})"

    def _named(self, args, kwargs):
        """All arguments by name."""
        return named_arguments(self.arg_names, args, kwargs)


class Heuristics(_Launchable):
    """A kernel some of whose parameters, or launch options, are functions of the other arguments."""

    _decorator = "heuristics"

    def __init__(self, fn, arg_names, values):
        super().__init__(fn)
        self.arg_names = arg_names
        self.values = dict(values)
        _check_names(self, self.values, "heuristics for", options=True)

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
    ``configs_timings`` has what ``_bench`` returned for each when they were compared last: the quantiles 0.5, 0.2 and
    0.8 of the milliseconds of a launch.

    Made to be derived from, as libraries do: ``run`` may be overridden, or ``_bench`` and ``prune_configs``, which it
    calls. While configurations are compared, ``nargs`` has the positional arguments by name.
    """

    _decorator = "autotune"

    def __init__(
        self,
        fn,
        arg_names,
        configs,
        key,
        reset_to_zero=None,
        restore_value=None,
        pre_hook=None,
        post_hook=None,
        prune_configs_by=None,
        warmup=None,
        rep=None,
        use_cuda_graph=False,
        do_bench=None,
        cache_results=False,
    ):
        super().__init__(fn)
        self.arg_names = arg_names
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self._places = tuple(arg_names.index(name) if name in arg_names else -1 for name in self.keys)
        self._keywords = {}
        self.cache = {}
        self.cache_results = cache_results
        self.best_config = None
        self.configs_timings = None
        self.bench_time = None
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self._pre_hook, self._post_hook = pre_hook, post_hook
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        prune = prune_configs_by or {}
        unknown = set(prune) - {"perf_model", "top_k", "early_config_prune"}
        if unknown:
            raise ValueError(f"prune_configs_by: unknown entry {sorted(unknown)[0]!r}")
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self._do_bench = do_bench
        self._tuning = ThreadLocal()
        prepare_tuning()
        for config in self.configs:
            _check_names(self, config.kwargs, "Config", options=True)
        _check_names(self, [*self.reset_to_zero, *self.restore_value], "reset_to_zero or restore_value")

    @property
    def nargs(self):
        """The positional arguments of the launch that this thread tunes for, by name; None when it does not."""
        return getattr(self._tuning, "nargs", None)

    @nargs.setter
    def nargs(self, named):
        self._tuning.nargs = named

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
            self.pre_hook({**self._named(args, kwargs), **self._checked(config, kwargs)}, reset_only=True)
        return config

    def _key(self, args, kwargs):
        """The values of the key's arguments that the launch gives, and the names of the dtypes of all arrays."""
        if len(kwargs) == 1 and "grid" in kwargs:  # nothing but positional arguments
            return tuning_key(args, self._places)
        named = self._named(args, kwargs)
        values = tuple(named[name] for name in self.keys if name in named)
        return values + tuning_key(tuple(value for name, value in named.items() if name in self.arg_names), ())

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
        self._compile_all(configs, args, kwargs)
        timings = {config: self._bench(*args, config=config, **kwargs) for config in configs}
        self.bench_time = time.perf_counter() - start
        self.configs_timings = timings
        best = min(timings, key=timings.get)
        if timings[best] == _FAILED:
            raise self._nothing_works(configs, args, kwargs)
        if os.environ.get("TRITON_PRINT_AUTOTUNING", "0") not in ("", "0"):
            named = self._named(args, kwargs)
            self._print(key, [name for name in self.keys if name in named], best)
        return best

    def _compile_all(self, configs, args, kwargs):
        """Compile on all cores, for the compiler does not hold the interpreter; what fails, fails again in _bench."""
        from threading import Thread

        left, errors = iter(configs), []  # an iterator that threads may share

        def compile_one(config):
            with suppress(CompilationError):
                compiled = self.fn.warmup(*args, **kwargs, **self._checked(config, kwargs))
                for each in compiled if isinstance(compiled, list) else [compiled]:  # a tuner in a tuner has several
                    each._init_handles()

        def work():
            try:
                for config in left:
                    if errors:
                        break
                    compile_one(config)
            except BaseException as error:
                errors.append(error)

        # Daemons: after Ctrl-C nobody waits for what they are at, nor does the end of the process.
        threads = [Thread(target=work, daemon=True) for _ in range(min(len(configs), os.cpu_count() or 1))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as error:
            errors.append(error)
        if errors:
            raise errors[0]

    def _bench(self, *args, config, **meta):
        """Milliseconds of a launch with `config`, as the list that `do_bench` returns; infinity if it cannot run."""
        try:
            return self._measure(config, args, meta)
        except CompilationError:
            return _FAILED

    def _measure(self, config, args, kwargs):
        keywords = self._checked(config, kwargs)
        named = {**self._named(args, kwargs), **keywords}
        arrays = [_memory(named.get(name)) for name in self.restore_value]
        saved = [(array, _copy(array)) for array in arrays if array is not None]

        def launch():
            _put_back(saved)
            if config.pre_hook is not None:
                config.pre_hook(named)
            self.pre_hook(named)
            try:
                compiled = self.fn.run(*args, **kwargs, **keywords)
            except Exception as error:
                self.post_hook(named, exception=error)
                raise
            self.post_hook(named, exception=None)
            return compiled

        try:
            with _device_of(named.values()):
                bench = self._do_bench or self._bench_on(launch().info["target"].split(":")[0])
                result = bench(launch, quantiles=(0.5, 0.2, 0.8))
        finally:
            _put_back(saved)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    @property
    def do_bench(self):
        """What times a launch: the function that was given, or that of the active driver."""
        return self._do_bench or driver.active.get_benchmarker()

    def _bench_on(self, backend):
        from ..testing import benchmarker

        limits = {"warmup": self.num_warmups, "rep": self.num_reps}
        limits = {name: value for name, value in limits.items() if value is not None}
        return partial(benchmarker(backend, self.use_cuda_graph), **limits)

    def pre_hook(self, arguments, reset_only=False):
        """Comes before each run that is timed, and once more, with `reset_only`, before the launch that was asked for:
        zeroes what is to be, then calls the function that was given as `pre_hook`."""
        for name in self.reset_to_zero:
            array = _memory(arguments.get(name))
            if array is not None:  # an array that this launch does without
                _zero(array)
        if self._pre_hook is None:
            return
        if reset_only and _takes(self._pre_hook, "reset_only"):
            self._pre_hook(arguments, reset_only=True)
        else:
            self._pre_hook(arguments)

    def post_hook(self, arguments, exception=None):
        """Comes after each run that is timed: calls the function that was given as `post_hook`."""
        if self._post_hook is not None:
            self._post_hook(arguments, exception=exception)

    def _nothing_works(self, configs, args, kwargs):
        """The error that says why the first configuration fails: it is tried once more."""
        text = f"none of the {len(configs)} configurations of kernel {self.__name__!r} works"
        try:
            self._measure(configs[0], args, kwargs)
        except Exception as reason:
            error = AutotunerError(f"{text}; the first failed with: {reason}")
            error.__cause__ = reason
            return error
        return AutotunerError(text)

    def _print(self, key, given, best):
        timings = self.configs_timings
        values = [f"{name}={value!r}" for name, value in zip(given, key, strict=False)] + [*key[len(given) :]]
        print(
            f"Autotuned {self.__name__} for {', '.join(values)} in {self.bench_time:.2f} s: {best} "
            f"({timings[best][0]:.4g} ms, best of {len(timings)})"
        )

    def _pruned(self, args, kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            return self.prune_configs(kwargs)
        finally:
            self.nargs = None

    def prune_configs(self, kwargs):
        """The configurations worth timing for the arguments in ``nargs`` and these."""
        configs, named = self.configs, self.nargs
        if self.early_config_prune is not None:
            configs = self.early_config_prune(configs, named, **kwargs)
            if not configs:
                raise AutotunerError(f"kernel {self.__name__!r}: early_config_prune left no configuration")
        if self.perf_model is not None:
            top = self.configs_top_k
            count = top if isinstance(top, int) else int(len(self.configs) * top)
            if len(configs) > count:
                estimates = {config: self.perf_model(**named, **kwargs, **config.all_kwargs()) for config in configs}
                configs = sorted(configs, key=estimates.get)[: max(count, 1)]
        return list(configs)


_FAILED = [float("inf")] * 3


def _check_names(tuner, names, what, options=False):
    known = {*tuner.arg_names, *(launch_options() if options else ())}
    for name in names:
        if name not in known and not any(param.kind == 4 for param in tuner.kernel.params):
            raise ValueError(f"@triton.{tuner._decorator}: {what} {name!r} is no parameter of {tuner.__name__!r}")


def _takes(function, name):
    """Whether a function may be called with a keyword."""
    from inspect import signature

    parameters = signature(function).parameters.values()
    return any(each.name == name or each.kind == each.VAR_KEYWORD for each in parameters)


def _device_of(arguments):
    """A context in which the GPU of the arrays is the current one, for it is there that the time is taken."""
    devices = [getattr(_memory(argument), "device", None) for argument in arguments]
    on_gpu = [device for device in devices if getattr(device, "platform", "gpu") != "cpu"]  # JAX numbers its CPUs too
    numbers = (getattr(device, "index", getattr(device, "id", None)) for device in on_gpu)
    number = next((number for number in numbers if isinstance(number, int)), None)
    if number is None:
        return nullcontext()
    from .cuda import current_device

    return current_device(number)


# ---- contents of arrays of any library


def _memory(argument):
    """The array itself, without what it is seen through: another element type, a descriptor, a gradient's history."""
    while isinstance(argument, TensorWrapper) or getattr(type(argument), "__triton_kind__", None) == "descriptor":
        argument = argument.base
    return argument.detach() if hasattr(argument, "detach") else argument


def _zero(array):
    array.zero_() if hasattr(array, "zero_") else array.fill(0)


def _copy(array):
    return array.clone() if hasattr(array, "clone") else array.copy()


def _put_back(saved):
    for array, value in saved:
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

    While they are timed the kernel runs many times; what it adds to must be reset each time. The launch that was asked
    for finds the arrays of `reset_to_zero` zeroed too when it had to be tuned for, and not otherwise.

    :param configs: a list of `triton.Config`. A single one is used as it is, and nothing is timed or reset.
    :param key: names of the arguments whose values decide which configuration is best. A name that is no parameter
        counts where a launch gives it as a keyword, and gets a warning.
    :param prune_configs_by: ``early_config_prune(configs, named_args, **kwargs)`` returns the configurations worth
        trying; ``perf_model(**arguments)`` estimates the time of one, and the ``top_k`` best (a number, or a fraction
        of all) are timed.
    :param reset_to_zero: names of arrays to fill with zeros before each run.
    :param restore_value: names of arrays whose contents are put back before each run and in the end.
    :param pre_hook: ``pre_hook(arguments)`` before each timed run, and ``pre_hook(arguments, reset_only=True)`` (if it
        takes that keyword) before the launch that was asked for, when it had to be tuned for.
    :param post_hook: ``post_hook(arguments, exception=...)`` after it.
    :param warmup: milliseconds of warm-up for each configuration.
    :param rep: milliseconds of measurement.
    :param use_cuda_graph: time with `triton.testing.do_bench_cudagraph`, where the target has graphs.
    :param do_bench: ``do_bench(launch, quantiles=...)`` to time with, instead of `triton.testing.do_bench`.
    :param cache_results: accepted; results are kept as long as the process runs.
    """

    def decorate(fn):
        names = fn.arg_names if isinstance(fn, KernelInterface) else ()
        for name in key:
            if name not in names:
                _warn_of_key(name, fn)
        return Autotuner(
            fn,
            names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            prune_configs_by,
            warmup,
            rep,
            use_cuda_graph,
            do_bench,
            cache_results,
        )

    return decorate


def _warn_of_key(name, fn):
    import warnings

    text = f"@triton.autotune: key {name!r} is no parameter of {fn.__name__!r}; it counts only as a launch's keyword"
    warnings.warn(text, stacklevel=3)


def heuristics(values):
    """Decorator above ``@triton.jit``: compute compile-time parameters from the other arguments.

    :param values: name of a parameter, or of a launch option (``num_warps``), to a function of a dict of all arguments.
    """
    return lambda fn: Heuristics(fn, getattr(fn, "arg_names", ()), values)
