"""@triton.autotune(configs="auto"): the configurations come from the program and from the compiler."""

import math
import time
from functools import partial

from .._C import argument_entry, survey
from ..errors import AutotunerError, CompilationError, InternalError
from .autotuner import Autotuner, config_text, device_number
from .estimates import OPTIONS, OTHER, Estimates, config_of, kind_of
from .parallel import core_count
from .space import SMALL, TENTH, Bench, Choice, Space, budget_of, rounds_of, search, tunable
from .target import asked_target

BESIDE = 5  # points that are compiled with the first ones, in case the best is what is thought to be
FEW_ROUNDS = 2
TIMED = 0.01  # seconds that it takes to time a point of a list
_SEARCH = "(search)"  # what the entry on disk is called that says which point was found


class SpaceTuner(Autotuner):
    """A kernel that searches the space of its tunable parameters and of the compiler's choices.

    The compiler's own estimates say which points cannot work and which are promising, without compiling them; a part is
    compiled, on all cores, and timed. ``configs_timings`` and ``timings`` tell of those. ``space`` is the last space
    that was searched, ``considered`` how many points of it were estimated.
    """

    _WARMUP, _REP = 0.5, 2  # of the last few, which were timed before

    def __init__(self, fn, arg_names, key, *options, seed=0, **more):
        super().__init__(fn, arg_names, [], key, *options, **more)
        self.configs, self.seed, self.space, self.considered = [], seed, None, 0
        self.tunables = [Choice(each.name, each.annotation.values) for each in self.kernel.params if is_tunable(each)]

    def warmup(self, *args, **kwargs):
        """Compile the configuration that the estimates like best, in a list."""
        point = self._estimate(args, kwargs).ordered()[0]
        return [self.fn.warmup(*args, **kwargs, **self._checked(config_of(point), kwargs))]

    # ---- tuning

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
        with self._timing(contest, args, kwargs) as making:
            start = time.perf_counter()
            estimates = self._estimate(args, kwargs)
            contest.estimating = time.perf_counter() - start
            points = estimates.worth(SMALL)
            bench, how = Launches(self, contest, making, args, kwargs), self._how(estimates, points)
            if how["rounds"] > 1:  # the first has its time
                bench.total = how["count"]
            search(points, partial(self._neighbours, estimates), bench, **how)
            bench.leave_lucky_aside()
            self._confirm_best(contest, args, kwargs)
        contest.points = bench.points  # it came to its end, and may be kept

    def _how(self, estimates, points):
        """The rest of what `search` is told."""
        count, first = round(len(estimates.ordered(all_of_them=True)) * estimates.share()), points[0]
        rounds = rounds_of(count, core_count())
        if rounds > FEW_ROUNDS:
            is_slow = lambda point: estimates.takes_long(point) and point is not first  # noqa: E731
        else:  # a round of what is compiled soon, if that is all there is time for
            first = estimates.soonest(points)
            is_slow = lambda point: estimates.is_slower(point, first)  # noqa: E731
        beside = lambda: [point for point in self._beside(estimates, first) if not is_slow(point)][:BESIDE]  # noqa: E731
        return {
            "kind": kind_of, "beside": beside, "is_slow": is_slow, "guess": estimates.estimate, "rounds": rounds,
            "count": count, "budget": budget_of(round(len(points) * estimates.share())),
        }  # fmt: skip

    # ---- estimates

    def _estimate(self, args, kwargs, whole=False):
        """Of the space, each point of it if that is wanted; one at least works. Sets `space` and `considered`."""
        target = self._target(args, kwargs)
        free = [choice for choice in self.tunables if choice.name not in kwargs]
        own = Space(free).points(self.seed)
        options = self._options(own, args, kwargs, target)
        self.space = Space([*free, *options], along="num_warps")
        estimates = Estimates(_model(target), partial(self._survey, args, kwargs, target))
        estimates.add(own, Space(options).points(), whole)
        self.considered = len(estimates.firsts) + len(estimates.failures)
        if not estimates.firsts:
            failure = estimates.failures[0]
            text = f"no point of the space of kernel {self.__name__!r} works; the first failed with: {failure}"
            raise AutotunerError(text) from failure
        return estimates

    def _options(self, points, args, kwargs, target):
        """What the compiler says it could do with options: of the first points that work."""
        if target == "cpu":
            return []
        for point in points[len(points) // 2 :] + points[: len(points) // 2]:
            try:
                _, facts, _ = self._survey(args, kwargs, target, point, [{}], 0)
            except (CompilationError, InternalError, AutotunerError):
                continue
            if facts[0]["failure"] is None:
                known = facts[0]["choices"]
                return [Choice(name, known[name][0]) for name in OPTIONS if name in known and name not in kwargs]
        return []

    def _neighbours(self, estimates, point):
        """Points that may be about as fast: those that differ in what matters least, and of the kinds one step of one
        choice away the most promising."""
        own = {**point, "choices": ""}
        estimates.complete([point])
        alike = [] if point.get("choices") else self.space.others(own, "num_stages")
        yield from estimates.not_worse(point, alike)
        yield from estimates.other_choices(point)
        for head in estimates.not_worse(point, estimates.heads(self.space.neighbours(own)), OTHER):
            if not estimates.takes_long(head) or estimates.not_worse(point, [head], 1):
                yield head

    def _beside(self, estimates, first):
        """What would be tried next if this point is the best: in a round of its own it would be compiled alone."""
        return [point for point in self._neighbours(estimates, first) if kind_of(point) == kind_of(first)]

    def _survey(self, args, kwargs, target, point, variants, multiprocessors):
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


class Launches(Bench):
    """Points as configurations of a contest: compiled on all cores, and timed by launching them."""

    def __init__(self, tuner, contest, making, args, kwargs):
        self.tuner, self.contest, self.making, self.args, self.kwargs = tuner, contest, making, args, kwargs
        self.points = {}  # by their numbers in the contest
        self.total = math.inf  # points of the space, a tenth of whose time there is
        self._shares = {}  # by these numbers, too: how long each was timed
        self._numbers = {}  # by the texts of configurations

    @property
    def count(self):
        return self.making.count

    def start(self, points):
        first = len(self.contest.configs)
        for number, point in enumerate(points, first):
            config = config_of(point)
            self.contest.configs.append(config)
            self.points[number], self._numbers[config_text(config)] = point, number
        self.making.start(range(first, first + len(points)))

    def has_ready(self):
        return self.making.has_ready()

    def waits(self):
        while self.total < math.inf and not self.has_ready():
            each = self.making.seconds_each() / core_count() + TIMED
            left = self.contest.start + TENTH * self.total * each - time.perf_counter()
            if left <= 0:
                return False
            self.making.wait(left)
        return True

    def take(self, share):
        made = self.making.take()
        self._shares[made.number] = share
        with self.tuner._measured_for(share):
            self.tuner._enter(self.contest, made, self.args, self.kwargs)
        return self.points[made.number], self.contest.entries[made.number].times[0]

    def time(self, point, share):
        number = self._numbers[config_text(config_of(point))]
        del self.contest.entries[number]
        self._shares[number] = share
        with self.tuner._measured_for(share):
            self.tuner._time(self.contest, number, self.args, self.kwargs)
        return self.contest.entries[number].times[0]

    def leave_lucky_aside(self):
        """Only what was timed for as long as the finalists may be the best: the least of many short times is luck."""
        longest = max(self._shares.values(), default=0)
        for number, share in self._shares.items():
            self.contest.entries[number].brief = share < longest


def is_tunable(param):
    return isinstance(param.annotation, tunable)


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
