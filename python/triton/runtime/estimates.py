"""Which points of a kernel's space are promising: what the compiler and the model say of them before compiling any."""

import math

from ..errors import AutotunerError, CompilationError, InternalError
from .autotuner import config_text
from .config import Config
from .parallel import core_count, for_each

OPTIONS = "num_warps", "num_stages"
LEAST = "num_stages", "choices"  # what matters less than the rest of a point
# Times the estimate of the best point so far: what is beyond is not tried: if it is of another kind, of the same kind,
# and at all (times the least estimate).
OTHER, WORSE, HOPELESS = 1.2, 1.5, 2.5
ALIKE = 1.05  # times the least estimate: what the model does not tell from the best
SLOW = 1.5  # times the effort of compiling another point, where that would wait for it
SHARES, PART = 2, 8  # of the work for each core, where few points are surveyed; sets of options worth a walk
# Of more than MANY points, depths of loops at first: the least that loads ahead, and a large one. Most kinds are
# hopeless at both, and what lies between is not far from either. So many of the most promising kinds get all.
MANY, ROUGH, KINDS = 100, (2, 4), 16
DEFAULTS = {"num_warps": 4, "num_stages": 3}


class Estimates:
    """What the model says of points, and which of them stands for others: by the text of a configuration.

    :param survey: function from a point, variants of options and a number of multiprocessors to what `_survey` returns.
    """

    def __init__(self, model, survey):
        self.model, self.survey = model, survey
        self.firsts, self.failures = {}, []  # text to the first point with its code
        self._milliseconds, self._choices, self._codes, self._spilling, self._heads = {}, {}, {}, {}, {}
        self._surveyed, self._total, self._rest, self._whole = 0, 0, [], set()  # the last: kinds with all depths
        self._long, self._efforts = set(), {}  # texts of points that take long to compile, and efforts of compiling

    def add(self, points, variants, whole=False):
        """Of points of the kernel's own choices, each with sets of options; they are surveyed on all cores.

        Of many, unless the whole is wanted, two depths of each kind at first, and all of the most promising kinds and
        of those that work at neither. `complete` adds those of another.
        """
        rough = [variant for variant in variants if variant.get("num_stages") in ROUGH]
        if whole or not rough or len(points) * len(variants) <= MANY:
            return self._add_all([(point, variants) for point in points])
        self._total = len(points) * len(variants)
        self._rest = [variant for variant in variants if variant not in rough]
        self._add_all([(point, rough) for point in points])
        known = {kind_of(point) for point in self.ordered(all_of_them=True)}
        every = ({**point, **variant} for point in points for variant in rough)
        lost = [point for point in every if kind_of(point) not in known]
        front = {kind_of(point): point for point in reversed(self.ordered())}
        self.complete([*lost, *list(front.values())[: -KINDS - 1 : -1]])

    def complete(self, points):
        """The other depths of the kinds of these points."""
        given = []
        for point in points:
            if self._rest and kind_of(point) not in self._whole:
                self._whole.add(kind_of(point))
                own = {name: value for name, value in point.items() if name not in (*OPTIONS, "choices")}
                given.append((own, [each for each in self._rest if each.get("num_warps") == point.get("num_warps")]))
        self._add_all(given)

    def share(self):
        """How many points there are for each that was surveyed."""
        return max(1, self._total / max(1, self._surveyed))

    def _add_all(self, given):
        """Points with sets of options each."""
        size = max(PART, math.ceil(sum(len(variants) for _, variants in given) / (SHARES * core_count())))
        most = max((len(variants) for _, variants in given), default=0)
        jobs = [  # a point's first part walks for the others
            (number, point, variants[start : start + size])
            for start in range(0, most, size)
            for number, (point, variants) in enumerate(given)
            if start < len(variants)
        ]
        found = [None] * len(jobs)

        def look(place):
            _, point, part = jobs[place]
            try:
                found[place] = self.survey(point, part, self.model.multiprocessors)
            except (CompilationError, InternalError, AutotunerError) as error:
                found[place] = error

        for_each(look, range(len(jobs)))
        surveyed = [[] for _ in given]
        for (number, *_), result in zip(jobs, found, strict=True):
            surveyed[number].append(result)
        # In order, for the first of equal code stands for the others.
        for (point, variants), results in zip(given, surveyed, strict=True):
            self._surveyed += len(variants)
            failed = next((each for each in results if isinstance(each, Exception)), None)
            if failed is not None:
                self.failures.append(failed)
            elif results:
                work, _, grid = results[0]
                self._add_variants(point, variants, work, [fact for _, facts, _ in results for fact in facts], grid)

    def _add_variants(self, point, variants, work, facts, grid):
        fewest = min((fact["remarks"] for fact in facts if fact["failure"] is None), default=0)
        for variant, fact in zip(variants, facts, strict=True):
            if fact["failure"] is not None:
                self.failures.append(AutotunerError(fact["failure"]))
            elif fact["remarks"] <= fewest:  # else it gets what it asked for with other options
                self._add({**point, **variant}, work, fact, {**DEFAULTS, **variant, **_asked(variant)}, grid)

    def _add(self, whole, work, fact, options, grid):
        text = _text(whole)
        first = self.firsts[text] = self._codes.setdefault((fact["code"], grid), whole)
        if first is not whole:
            return
        self._choices[text] = fact["choices"]
        if self.model.takes_long(fact, options):
            self._long.add(text)
        self._efforts[text] = self.model.effort(fact)
        milliseconds = self.model.milliseconds(work, fact, options, math.prod(grid))
        known = self._spilling if self.model.spills(fact, options) else self._milliseconds
        known[text] = milliseconds, whole

    def ordered(self, all_of_them=False):
        """The most promising first; what spills registers only if all does, or it is asked for."""
        known = {**self._spilling, **self._milliseconds} if all_of_them else self._milliseconds or self._spilling
        points = [point for _, point in sorted(known.values(), key=lambda item: (item[0], repr(item[1])))]
        self._heads = {kind_of(point): point for point in reversed(points)}
        return points

    def heads(self, points):
        """The most promising of the kinds of some points."""
        found = (self._heads.get(kind_of(point)) for point in points)
        return [head for head in found if head]

    def worth(self, least):
        """Without those that the model thinks hopeless, if there are more than so many."""
        points = self.ordered()
        return max(self.not_worse(points[0], points, HOPELESS), points[:least], key=len)

    def not_worse(self, point, others, factor=WORSE):
        """Those of the other points, by the ones that stand for them, that may be about as fast."""
        own = self.estimate(point)
        firsts = (self.firsts.get(_text(other)) for other in others)
        return [first for first in firsts if first and self.estimate(first) <= own * factor]

    def estimate(self, point):
        return self._milliseconds.get(_text(point), (math.inf,))[0]

    def takes_long(self, point):
        """To compile: where registers have to be saved."""
        return _text(point) in self._long

    def soonest(self, points):
        """Of what is level with the first by the model, the point that is compiled soonest."""
        limit = self.estimate(points[0]) * ALIKE
        return min((point for point in points if self.estimate(point) <= limit), key=self._effort)

    def is_slower(self, point, other):
        """To compile, so that the other one would wait for it."""
        return self._effort(point) > self._effort(other) * SLOW

    def _effort(self, point):
        return self._efforts[_text(point)]

    def other_choices(self, point):
        """The same with another value at one choice point of the compiler."""
        known, asked = self._choices.get(_text(point), {}), _asked(point)
        own = {name: value for name, value in point.items() if name != "choices"}
        options = {name: own.pop(name) for name in OPTIONS if name in own}
        variants = []
        for name, (values, taken) in known.items():
            for value in values if name not in OPTIONS else ():
                if value != asked.get(name, taken):
                    items = {**asked, name: value}
                    text = " ".join(f"{key}={items[key]}" for key in sorted(items))
                    variants.append({**options, "choices": text})
        if variants:
            self.add([own], variants)
        return self.not_worse(point, [{**own, **variant} for variant in variants])


def _asked(point):
    """The values of the compiler's choices that a point names."""
    return {name: int(value) for name, value in (item.split("=") for item in point.get("choices", "").split())}


def _text(point):
    return config_text(config_of(point))


def kind_of(point):
    return repr(sorted(item for item in point.items() if item[0] not in LEAST))


def config_of(point):
    return Config({name: value for name, value in point.items() if name != "choices" or value})
