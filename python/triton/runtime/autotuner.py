"""@triton.autotune: launches that choose compile-time parameters by timing them."""

import os
from _thread import RLock
from _thread import _local as ThreadLocal
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from functools import partial

from .._C import cuda_is_captured, tuning_key
from ..errors import AutotunerError, CompilationError, InternalError, OutOfResources, PTXASError  # noqa: F401
from . import interpret
from .config import Config
from .contest import FAILED, GIVEN_UP, Contest, Entry
from .driver import current_stream, driver, stream_handle
from .environment import flag
from .jit import KernelInterface, prepare_tuning
from .launchable import Heuristics, Launchable, check_names, heuristics  # noqa: F401
from .making import FAILURES, Making
from .tables import Tunings
from .tuning_store import device_text, has_unlike_gpus
from .wrapper import TensorWrapper

# Of more than these, each is timed for a part of that, and then the fastest in full, the one after the other.
FINALISTS, PART = 4, 0.25


class Autotuner(Launchable):
    """A kernel that finds the fastest of its configurations for each value of its key.

    After a launch ``best_config`` is the configuration it used, ``cache`` maps keys to the best configurations, and
    ``configs_timings`` has what ``_bench`` returned for each when they were compared last: the quantiles 0.5, 0.2 and
    0.8 of the milliseconds of a launch. ``timings`` has, as JSON can have it, what was found for each key in turn: all
    configurations with their times, the fastest first, and why some failed.

    Made to be derived from, as libraries do: ``run`` may be overridden, or ``_bench`` and ``prune_configs``, which it
    calls. While configurations are compared, ``nargs`` has the positional arguments by name.
    """

    _decorator = "autotune"
    # Milliseconds that a configuration is warmed up and timed for. The clock gives up hopeless ones long before.
    _WARMUP, _REP = 10, 50

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
        self._keywords, self._by_device = {}, None
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
        unknown = set(prune) - {"perf_model", "top_k", "configs_top_k", "early_config_prune"}
        if unknown:
            raise ValueError(f"prune_configs_by: unknown entry {sorted(unknown)[0]!r}")
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", prune.get("configs_top_k", 1.0))  # torch names it by the attribute
        self.early_config_prune = prune.get("early_config_prune")
        self._do_bench = do_bench
        self.timings = Tunings()
        self._tuning, self._turns = ThreadLocal(), (os.getpid(), RLock())
        prepare_tuning()
        check_names(self, [*self.reset_to_zero, *self.restore_value], "reset_to_zero or restore_value")

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
        configs = self._pruned(args, kwargs)
        given = self._hooked(configs, args, kwargs)
        return [
            self.fn.warmup(*args, **kwargs, **self._checked(config, kwargs))
            for config, (args, kwargs) in zip(configs, given, strict=True)
        ]

    def _choose(self, args, kwargs):
        if len(self.configs) == 1 or interpret.is_asked():  # how long Python takes says nothing
            return self.configs[0]
        key = self._key(args, kwargs)
        config = self.cache.get(key)
        if config is None:
            config = self.cache[key] = self._tune(key, args, kwargs)
            self.pre_hook({**self._named(args, kwargs), **self._checked(config, kwargs)}, reset_only=True)
        return config

    def _key(self, args, kwargs):
        """The values of the key's arguments that the launch gives, and the names of the dtypes of all arrays; and the
        device, where there are GPUs of several kinds."""
        if len(kwargs) == 1 and "grid" in kwargs:  # nothing but positional arguments
            key = tuning_key(args, self._places)
        else:
            named = self._named(args, kwargs)
            values = tuple(named[name] for name in self.keys if name in named)
            key = values + tuning_key(tuple(value for name, value in named.items() if name in self.arg_names), ())
        if self._by_device is None:  # the first launch: a program on CPUs never asks for GPUs
            self._by_device = device_number((*args, *kwargs.values())) is not None and has_unlike_gpus()
        return (*key, device_text(device_number((*args, *kwargs.values())))) if self._by_device else key

    def _keep_keywords(self, config):
        check_names(self, config.kwargs, "Config", options=True)  # now: some are of other targets, and never launched
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
        with self._turn():
            known = self.cache.get(key)
            return known if known is not None else self._tune_alone(key, args, kwargs)

    def _turn(self):
        """The lock of this process (a child has its own): two threads that time at once disturb each other."""
        if self._turns[0] != os.getpid():
            self._turns = os.getpid(), RLock()
        return self._turns[1]

    def _tune_alone(self, key, args, kwargs):
        configs = self._start(args, kwargs)
        if len(configs) == 1:
            return configs[0]
        named = self._named(args, kwargs)
        if _is_captured(named, kwargs.get("stream")):
            raise AutotunerError(
                f"kernel {self.__name__!r} is not tuned yet for {self._key_text(key, named)}, and that cannot be done "
                "while a CUDA graph is captured: launch it with such arguments once before"
            )
        contest = Contest(self.__name__, self._key_items(key, named), configs)
        was_known = self._measure_all(contest, self._store(key, named), args, kwargs)
        best = contest.best()
        contest.end()
        self.configs_timings, self.bench_time = contest.timings(), contest.seconds
        if contest.entries[best].times == FAILED:
            raise self._nothing_works(contest, args, kwargs)
        self.timings.append(contest.as_data())
        self._tell(key, configs[best], was_known)
        return configs[best]

    def _measure_all(self, contest, store, args, kwargs):
        """Every entry, those that are on disk from there; whether these were all."""
        if store is None:
            self._compete(contest, args, kwargs)
        elif self._recall(contest, store):
            return True
        else:
            with store.locked():
                if self._recall(contest, store):  # another process has done it
                    return True
                try:
                    self._compete(contest, args, kwargs)
                finally:
                    self._keep(contest, store)
        return False

    def _tell(self, key, best, was_known):
        from .. import knobs

        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=self.kernel,
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=None if was_known else self.bench_time,
                cache_hit=was_known,
            )

    def _start(self, args, kwargs):
        """The configurations that a comparison begins with; `_compete` may add others."""
        return self._pruned(args, kwargs)

    def _compete(self, contest, args, kwargs):
        """Time each configuration that has no entry yet, and one that was given up once if it is the fastest now."""
        waiting = [number for number in range(len(contest.configs)) if number not in contest.entries]
        has_finals = len(waiting) > FINALISTS and self._has_own_clock() and self.num_reps is None
        with self._timing(contest, args, kwargs) as making:
            making.start(waiting)
            with self._measured_for(PART if has_finals else 1.0):
                while making.count:
                    self._enter(contest, making.take(), args, kwargs)
            if has_finals:
                self._run_finals(contest, args, kwargs)
            self._confirm_best(contest, args, kwargs)

    @contextmanager
    def _timing(self, contest, args, kwargs):
        """What compiles configurations for the contest, which is the one that times are compared with meanwhile."""
        self._tuning.contest, self._tuning.firsts = contest, {}
        is_beside = self._has_own_clock() and self._is_on_gpu(args, kwargs)
        try:
            with Making(self, contest, args, kwargs, is_beside) as making:
                self._tuning.making = making
                yield making
        finally:
            self._tuning.contest = self._tuning.firsts = self._tuning.making = None

    @contextmanager
    def _measured_for(self, share):
        """Times are taken for a part of as long."""
        self._tuning.share = share
        try:
            yield
        finally:
            self._tuning.share = 1.0

    def _enter(self, contest, made, args, kwargs):
        """Time a configuration, unless it failed or has the code of another."""
        number, launch, failure = made
        config = contest.configs[number]
        same = number
        if launch is not None:
            same = self._tuning.firsts.setdefault((launch, id(config.pre_hook)), number)
        if failure is not None:
            contest.fail(number, failure)
            self._tell_failure(config, failure, args, kwargs)
        elif same == number:
            self._time(contest, number, args, kwargs)
        else:
            contest.same(number, same)

    def _confirm_best(self, contest, args, kwargs):
        """Beside what was timed briefly and got lucky, the best may be given up each time."""
        again = set()
        while contest.entries[best := contest.best()].state == GIVEN_UP and best not in again:
            again.add(best)
            del contest.entries[best]
            self._time(contest, best, args, kwargs)

    def _time(self, contest, number, args, kwargs):
        times = self._bench(*args, config=contest.configs[number], **kwargs)
        contest.add(number, times, getattr(self._tuning, "share", 1.0) < 1)

    def _tell_failure(self, config, failure, args, kwargs):
        """What does not compile is no launch, but its hooks are called as if it were one that fails."""
        if self._post_hook is None:
            return
        named = {**self._named(args, kwargs), **self._checked(config, kwargs)}
        with self._restoring(named):
            self.pre_hook(named)
            self.post_hook(named, exception=failure)

    def _has_own_clock(self):
        """Whether it is this class that times."""
        return self._do_bench is None and type(self)._bench is Autotuner._bench

    def _is_on_gpu(self, args, kwargs):
        """Whether launches leave the host's cores alone."""
        on_gpu = device_number((*args, *kwargs.values())) is not None
        return on_gpu and driver.active.get_current_target().backend == "cuda"

    def _run_finals(self, contest, args, kwargs):
        finalists = contest.fastest(FINALISTS)
        for number in finalists:
            del contest.entries[number]
        for number in finalists:
            self._time(contest, number, args, kwargs)
        contest.renew_copies()

    def _hooked(self, configs, args, kwargs):
        """For each configuration the positional and the keyword arguments that it is compiled for, with descriptors as
        its `pre_hook` leaves them, which sets the shape of their blocks: copies, for several are in use at a time."""
        if not any(map(_is_descriptor, (*args, *kwargs.values()))):
            return [(args, kwargs)] * len(configs)
        with self._restoring(self._named(args, kwargs)):
            return [self._after_hook(config, args, kwargs) for config in configs]

    def _after_hook(self, config, args, kwargs):
        if config.pre_hook is None:
            return args, kwargs
        args = tuple(map(_copy_of_descriptor, args))
        kwargs = {name: _copy_of_descriptor(value) for name, value in kwargs.items()}
        with suppress(*FAILURES):  # it fails again when the configuration is timed, which leaves it out
            config.pre_hook({**self._named(args, kwargs), **self._checked(config, kwargs)})
        return args, kwargs

    @contextmanager
    def _restoring(self, named):
        """At its end the arrays that are to be restored hold what they held; with a function that does so earlier."""
        arrays = [_memory(named.get(name)) for name in self.restore_value]
        saved = [(array, _copy(array)) for array in arrays if array is not None]
        try:
            yield lambda: _put_back(saved)
        finally:
            _put_back(saved)

    def _bench(self, *args, config, **meta):
        """Milliseconds of a launch with `config`, as the list that `do_bench` returns; infinity if it cannot run."""
        try:
            return self._measure(config, args, meta)
        except FAILURES:
            return list(FAILED)

    def _measure(self, config, args, kwargs):
        keywords = self._checked(config, kwargs)
        named = {**self._named(args, kwargs), **keywords}

        def prepare():
            put_back()
            if config.pre_hook is not None:
                config.pre_hook(named)
            self.pre_hook(named)

        def run():
            try:
                return self.fn.run(*args, **kwargs, **keywords)
            except Exception as error:
                self.post_hook(named, exception=error)
                raise

        def finish():
            self.post_hook(named, exception=None)

        def launch():
            prepare()
            compiled = run()
            finish()
            return compiled

        with self._restoring(named) as put_back, _device_of(named.values()):
            if self._do_bench is not None:
                result = self._do_bench(launch, quantiles=(0.5, 0.2, 0.8))
            else:
                result = self._race(launch().info["target"].split(":")[0], run, prepare, finish)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def _race(self, backend, run, prepare, finish):
        """Quantiles of the time of `run`, which is given up as soon as it is clearly slower than the best so far."""
        from .timing import BesideClock, EventClock, GraphClock, HostClock, quantile, race

        warmup = self._WARMUP if self.num_warmups is None else self.num_warmups
        share = getattr(self._tuning, "share", 1.0)
        warmup, rep = warmup * share, (self._REP if self.num_reps is None else self.num_reps) * share
        contest = getattr(self._tuning, "contest", None)
        best = contest.best_time() if contest else float("inf")
        if backend == "cuda" and self.use_cuda_graph:
            from .cuda import side_stream

            with side_stream():
                times, gave_up = race(GraphClock(run, prepare, finish, rep / 10), warmup, rep, best)
        else:
            making = getattr(self._tuning, "making", None)
            clock = HostClock
            if backend == "cuda":
                clock = BesideClock if making and making.is_beside and making.is_busy() else EventClock
            times, gave_up = race(clock(run, prepare, finish), warmup, rep, best)
        if contest:
            contest.runs, contest.gave_up = len(times), gave_up
        times.sort()
        return [quantile(times, fraction) for fraction in (0.5, 0.2, 0.8)]

    @property
    def do_bench(self):
        """What times a launch: the function that was given, or that of the active driver."""
        return self._do_bench or driver.active.get_benchmarker()

    @do_bench.setter
    def do_bench(self, function):
        self._do_bench = function

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

    def _nothing_works(self, contest, args, kwargs):
        """The error that says why the first configuration fails; if that is when it runs, it is tried once more."""
        configs, reason = contest.configs, contest.error
        text = f"none of the {len(configs)} configurations of kernel {self.__name__!r} works"
        if reason is None:
            try:
                self._measure(configs[0], args, kwargs)
            except Exception as error:
                reason = error
        if reason is None:
            return AutotunerError(text)
        error = AutotunerError(f"{text}; the first failed with: {reason}")
        error.__cause__ = reason
        return error

    # ---- results on disk

    def _key_items(self, key, named):
        """The key's values with their names, then the dtypes."""
        given = [name for name in self.keys if name in named]
        return [*zip(given, key, strict=False), *(("", dtype) for dtype in key[len(given) :])]

    def _key_text(self, key, named):
        return ", ".join(f"{name}={value!r}" if name else str(value) for name, value in self._key_items(key, named))

    def _store(self, key, named):
        """Where the timings are kept, or None where they are not to be."""
        if not (self.cache_results or flag("TRITON_CACHE_AUTOTUNING")) or not self.is_compiled:
            return None
        from .cache import triton_key
        from .dependencies import value_text
        from .tuning_store import TuningStore, folder

        if folder() is None:
            return None
        items = [f"{name}={value_text(value)}" for name, value in self._key_items(key, named)]
        how = f"graph={self.use_cuda_graph} warmup={self.num_warmups} rep={self.num_reps}"
        bench = "" if self._do_bench is None else value_text(self._do_bench)
        device = device_text(device_number(named.values()))
        target = os.environ.get("TRITON_TARGET", "")
        identity = [triton_key(), self.kernel.cache_key, target, device, how, bench, *self._identity(), *items]
        return TuningStore(identity)

    def _identity(self):
        """What else the results on disk depend on."""
        return []

    def _recall(self, contest, store):
        """Fill in what is on disk; whether that is all."""
        kept = store.read()
        for number, config in enumerate(contest.configs):
            data = kept.get(config_text(config))
            if data is not None:
                contest.entries[number] = Entry.of(config, data)
        whole = len(contest.entries) == len(contest.configs)
        return whole and contest.entries[contest.best()].state != GIVEN_UP

    def _keep(self, contest, store):
        if contest.entries:
            store.write({config_text(entry.config): entry.as_data() for entry in contest.entries.values()})

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
                error = AutotunerError(
                    "Autotuner error: No valid autotuner configs after pruning. `early_config_prune` should return at "
                    "least one config."
                )
                error.add_note(f"of kernel {self.__name__!r}")
                raise error
        if self.perf_model is not None:
            top = self.configs_top_k
            count = top if isinstance(top, int) else int(len(configs) * top)
            if len(configs) > count:
                estimates = {config: self.perf_model(**named, **kwargs, **config.all_kwargs()) for config in configs}
                configs = sorted(configs, key=estimates.get)[: max(count, 1)]
        return list(configs)


def _takes(function, name):
    """Whether a function may be called with a keyword."""
    from inspect import signature

    parameters = signature(function).parameters.values()
    return any(each.name == name or each.kind == each.VAR_KEYWORD for each in parameters)


def device_number(arguments):
    """The number of the GPU that the arrays lie on, or None."""
    devices = [getattr(_memory(argument), "device", None) for argument in arguments]
    on_gpu = [device for device in devices if getattr(device, "platform", "gpu") != "cpu"]  # JAX numbers its CPUs too
    numbers = (getattr(device, "index", getattr(device, "id", None)) for device in on_gpu)
    return next((number for number in numbers if isinstance(number, int)), None)


def _device_of(arguments):
    """A context in which the GPU of the arrays is the current one, for it is there that the time is taken."""
    number = device_number(arguments)
    if number is None:
        return nullcontext()
    from .cuda import current_device

    return current_device(number)


def _is_captured(named, stream):
    """Does what is launched on these arrays now become part of a CUDA graph?"""
    number = device_number(named.values())
    if number is None:
        return False
    streams = [current_stream(number)] + ([] if stream is None else [stream_handle(stream)])
    return any(map(cuda_is_captured, streams))


def config_text(config):
    """What a configuration is found by on disk."""
    from .dependencies import value_text

    items = sorted(config.all_kwargs().items(), key=str)
    hook = [] if config.pre_hook is None else [value_text(config.pre_hook)]
    return "; ".join([*(f"{name}={value_text(value)}" for name, value in items), *hook])


# ---- contents of arrays of any library


def _memory(argument):
    """The array itself, without what it is seen through: another element type, a descriptor, a gradient's history."""
    while isinstance(argument, TensorWrapper) or _is_descriptor(argument):
        argument = argument.base
    return argument.detach() if hasattr(argument, "detach") else argument


def _is_descriptor(argument):
    return getattr(type(argument), "__triton_kind__", None) == "descriptor"


def _copy_of_descriptor(argument):
    if not _is_descriptor(argument):
        return argument
    found = copy(argument)
    found.block_shape = list(argument.block_shape)
    return found


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
    seed=0,
):
    """Decorator above ``@triton.jit``: time the configurations when one of the arguments in `key` changes.

    While they are timed the kernel runs many times; what it adds to must be reset each time. The launch that was asked
    for finds the arrays of `reset_to_zero` zeroed too when it had to be tuned for, and not otherwise.

    :param configs: a list of `triton.Config`. A single one is used as it is, and nothing is timed or reset. Or "auto":
        values for the parameters that are annotated with `triton.tunable`, and what the compiler could do differently,
        are searched, starting with what the compiler's estimates promise most of.
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
    :param warmup: milliseconds of warm-up for each configuration (10).
    :param rep: milliseconds of measurement (50); a configuration that is clearly slower than another is given up
        before.
    :param use_cuda_graph: time with `triton.testing.do_bench_cudagraph`, where the target has graphs.
    :param do_bench: ``do_bench(launch, quantiles=...)`` to time with, instead of `triton.testing.do_bench`.
    :param cache_results: keep the timings on disk, beside compiled kernels (TRITON_CACHE_DIR), for this kernel, key,
        device and version of the compiler; TRITON_CACHE_AUTOTUNING=1 does so for all. Of several processes one tunes,
        and the others wait for it, TRITON_AUTOTUNING_WAIT seconds (600) at most.
    :param seed: of what is random in a search ("auto").
    """

    def decorate(fn):
        names = fn.arg_names if isinstance(fn, KernelInterface) else ()
        for name in key:
            if name not in names:
                _warn_of_key(name, fn)
        if isinstance(configs, str):
            if configs != "auto":
                raise ValueError(f"@triton.autotune(configs={configs!r}): a list of triton.Config, or 'auto'")
            from .space_tuner import SpaceTuner

            make = partial(SpaceTuner, fn, names, seed=seed)
        else:
            make = partial(Autotuner, fn, names, configs)
        return make(
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
