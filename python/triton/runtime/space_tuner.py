"""@triton.autotune(configs="auto"): the configurations come from the program and from the compiler."""

import time

from .._C import argument_entry, survey
from ..errors import AutotunerError, CompilationError, InternalError
from .autotuner import Autotuner, config_text, device_number
from .config import Config
from .contest import FAILED
from .parallel import for_each
from .space import Choice, Space, search, tunable
from .target import asked_target

_OPTIONS = "num_warps", "num_stages"
_SEARCH = "(search)"  # what the entry on disk is called that says which point was found


class SpaceTuner(Autotuner):
    """A kernel that searches the space of its tunable parameters and of the compiler's choices.

    The compiler's own estimates say which points cannot work and which are promising, without compiling them; a part is
    compiled, on all cores, and timed. ``configs_timings`` and ``timings`` tell of those. ``space`` is the last space
    that was searched, ``considered`` how many points of it were estimated.
    """

    _WARMUP, _REP = 4, 20  # of the last few, which were timed before

    def __init__(self, fn, arg_names, key, *options, seed=0, **more):
        super().__init__(fn, arg_names, [], key, *options, **more)
        self.configs, self.seed, self.space, self.considered = [], seed, None, 0
        self.tunables = [Choice(each.name, each.annotation.values) for each in self.kernel.params if is_tunable(each)]

    def warmup(self, *args, **kwargs):
        """Compile the configuration that the estimates like best, in a list."""
        points = self._promising(args, kwargs)
        return [self.fn.warmup(*args, **kwargs, **self._checked(config_of(points[0]), kwargs))]

    # ---- tuning

    def _may_time_again(self):
        return False  # the search does so by itself

    def _start(self, args, kwargs):
        return []

    def _identity(self):
        return ["auto", repr(self.tunables), str(self.seed)]

    def _recall(self, contest, store):
        found = store.read().get(_SEARCH)
        if found is None:
            return False
        config = config_of(found["point"])
        contest.configs.append(config)
        contest.add(0, found["times"])
        return True

    def _keep(self, contest, store):
        if getattr(contest, "points", None):
            best = contest.best()
            store.write({_SEARCH: {"point": contest.points[best], "times": contest.entries[best].times}})

    def _compete(self, contest, args, kwargs):
        start = time.perf_counter()
        points = self._promising(args, kwargs)
        contest.estimating = time.perf_counter() - start
        numbers, timed = {}, {}  # text of a configuration to its number in the contest, and that to the point

        def times_of(points, share):
            configs = [config_of(point) for point in points]
            for point, config in zip(points, configs, strict=True):
                if (text := config_text(config)) not in numbers:
                    numbers[text] = len(contest.configs)
                    timed[numbers[text]] = point
                    contest.configs.append(config)
            ordered = [numbers[config_text(config)] for config in configs]
            self._tuning.share = share
            for number in ordered:  # once more, for longer, what was timed before
                if number in contest.entries and contest.entries[number].times != FAILED:
                    del contest.entries[number]
            super(SpaceTuner, self)._compete(contest, args, kwargs)
            return [contest.entries[number].times[0] for number in ordered]

        try:
            search(points, self._neighbours, times_of, seed=self.seed)
            contest.points = timed  # it came to its end, and may be kept
        finally:
            self._tuning.share = 1.0

    # ---- estimates

    def _promising(self, args, kwargs):
        """The points that may work, the fastest by the model first, and of those whose code is the same the first;
        sets `space`, and for each point what choices it has and which one stands for it."""
        target = self._target(args, kwargs)
        model = _model(target)
        free = [choice for choice in self.tunables if choice.name not in kwargs]
        own = Space(free).points(self.seed)
        options = self._options(own, args, kwargs, target)
        self.space = Space([*free, *options], along="num_warps")
        variants = Space(options).points()
        found, failures, codes, self._choices, self._firsts = [], [], {}, {}, {}

        def look(point):
            try:
                work, facts, grid = self._survey(point, variants, args, kwargs, target, model.multiprocessors)
            except (CompilationError, InternalError, AutotunerError) as error:
                failures.append(error)
                return
            fewest = min((fact["remarks"] for fact in facts if fact["failure"] is None), default=0)
            for variant, fact in zip(variants, facts, strict=True):
                if fact["failure"] is None and fact["remarks"] > fewest:  # it gets what it asked for with other options
                    continue
                if fact["failure"] is None:
                    whole = {**point, **variant}
                    text = config_text(config_of(whole))
                    first = self._firsts[text] = codes.setdefault((fact["code"], grid), whole)
                    if first is whole:
                        self._choices[text] = fact["choices"]
                        programs = grid[0] * grid[1] * grid[2]
                        found.append((model.milliseconds(work, fact, {**_DEFAULTS, **variant}, programs), whole))
                else:
                    failures.append(AutotunerError(fact["failure"]))

        for_each(look, own)
        self.considered = len(self._firsts) + len(failures)
        if not found:
            text = f"no point of the space of kernel {self.__name__!r} works; the first failed with: {failures[0]}"
            raise AutotunerError(text) from failures[0]
        found.sort(key=lambda item: (item[0], repr(item[1])))
        return [point for _, point in found]

    def _options(self, points, args, kwargs, target):
        """What the compiler says it could do with options: of the first points that work."""
        if target == "cpu":
            return []
        for point in points[len(points) // 2 :] + points[: len(points) // 2]:
            try:
                _, facts, _ = self._survey(point, [{}], args, kwargs, target, 0)
            except (CompilationError, InternalError, AutotunerError):
                continue
            if facts[0]["failure"] is None:
                known = facts[0]["choices"]
                return [Choice(name, known[name][0]) for name in _OPTIONS if name in known and name not in kwargs]
        return []

    def _neighbours(self, point):
        """The points that differ by one step of one choice: each by the one that stands for it."""
        firsts = (self._firsts.get(self._base(other)) for other in self.space.neighbours(point))
        yield from (first for first in firsts if first is not None)
        yield from self._other_choices(point)

    @staticmethod
    def _base(point):
        """What the facts of a point are found by: they do not depend on the choices."""
        return config_text(config_of({**point, "choices": ""}))

    def _other_choices(self, point):
        """The same with another value at one choice point of the compiler."""
        known = self._choices.get(self._base(point), {})
        asked = dict(item.split("=") for item in point.get("choices", "").split())
        for name, (values, own) in known.items():
            for value in values if name not in _OPTIONS else ():
                if str(value) != asked.get(name, str(own)):
                    items = {**asked, name: str(value)}
                    yield {**point, "choices": " ".join(f"{key}={items[key]}" for key in sorted(items))}

    def _survey(self, point, variants, args, kwargs, target, multiprocessors):
        """Work, a dict of facts for each variant, and the extents of the grid."""
        named = self._filled({**self._named(args, kwargs), **point})
        entries, numbers = [], []
        for param in self.kernel.params:
            entry = self._entry(param, named)
            entries.append(entry)
            numbers += _numbers(entry, named.get(param.name))
        grid = _extents(kwargs.get("grid"), named)
        given = tuple(entries), {}, target, tuple(numbers), grid, variants, multiprocessors
        return *survey(self.kernel, *given), grid

    def _filled(self, named):
        """With what @triton.heuristics between this and the kernel adds."""
        fn = self.fn
        while fn is not self.kernel:
            for name, function in getattr(fn, "values", {}).items():
                named[name] = function(named)
            fn = fn.fn
        return named

    def _entry(self, param, named):
        from ..language import constexpr

        if param.name not in named and not param.has_default:
            raise AutotunerError(f"kernel {self.__name__!r}: no value for parameter {param.name!r}")
        value = named.get(param.name, param.default)
        if param.is_constexpr:
            return value if isinstance(value, constexpr) else constexpr(value)
        return argument_entry(value, param.is_const, param.do_not_specialize, param.do_not_specialize_on_alignment)

    def _target(self, args, kwargs):
        """Name of the target that the launch would compile for."""
        from .target import target_name

        number = device_number(self._named(args, kwargs).values())
        if asked_target() or number is None:
            return target_name()
        from .. import _C

        return f"cuda:{_C.cuda_device(number)['capability']}"


_DEFAULTS = {"num_warps": 4, "num_stages": 3}


def is_tunable(param):
    return isinstance(param.annotation, tunable)


def config_of(point):
    return Config({name: value for name, value in point.items() if name != "choices" or value})


def _model(target):
    from .cost_model import CPUModel, GPUModel
    from .driver import driver, thread_count

    backend, _, capability = target.partition(":")
    if backend == "cpu":
        return CPUModel(thread_count())
    properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
    return GPUModel({**properties, "capability": int(capability)})


def _numbers(entry, value):
    """What the run-time parameters of an argument's entry are, as far as they are integers."""
    if getattr(type(entry), "__triton_kind__", None) == "constexpr":
        return []
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
        return [int(value) if isinstance(value, int) else None]
    return [number for item, part in zip(entry, value, strict=True) for number in _numbers(item, part)]


def _extents(grid, named):
    grid = grid(named) if callable(grid) else grid
    extents = (grid,) if isinstance(grid, int) else tuple(grid or (1,))
    return tuple(int(extent) for extent in (*extents, 1, 1)[:3])
