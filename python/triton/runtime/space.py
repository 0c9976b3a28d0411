"""Spaces of configurations, and searching them.

A kernel's own part of the space are parameters annotated with `tunable`; the compiler adds what it could do differently
(`num_warps`, `num_stages`, the choice points of its passes). A front end for another language needs three things of
this file: `tunable` for what a program declares, `Choice` and `Space` for what results, and `search`, which knows
neither kernels nor devices: it asks for times of points.
"""

import itertools
import math
from collections import deque, namedtuple

SMALL = 20  # points that are all timed
UNTIL, OF_DOUBLED = 100, 4  # of more points than this, so many more are timed each time that they double
SHARES = 0.2, 0.5, 1.0  # of how long a measurement takes in full: first, for longer, at last
NEAR = 1.2, 1.06  # times the best time, of what is timed for longer, and in full
MOST, FINALISTS = 4, 3  # points that are, at most
LONGEST = 4  # times as long as in full, at most, the finalists are timed where there is time for several rounds
FEW = 1 / 3  # of a round's points: when only so many are not timed yet, the next begins
ENOUGH = 4  # points that were timed, to say how wrong a guess may be
PART = 1 / 6  # of these, whose guesses are taken to be oddly wrong where there is no time for another round
GAIN, LEVEL = 0.99, 1.02  # of the best time: what is worth another round, and what may be the best when timed again
TENTH = 0.1  # of the time that all points would take
LARGEST = 20_000  # points that are looked at; of more, so many at random


class tunable:
    """Annotation of a compile-time parameter that the autotuner chooses: ``BLOCK: triton.tunable([32, 64, 96])``, or
    ``triton.tunable(32, 256)`` for the powers of two from 32 to 256."""

    __triton_kind__ = "constexpr"  # what the parameter is

    def __init__(self, values, last=None):
        if last is None:
            self.values = tuple(values)
        else:
            for bound in (values, last):
                if not isinstance(bound, int) or bound < 1 or bound & (bound - 1):
                    raise ValueError(f"tunable({values!r}, {last!r}): each bound must be a power of 2")
            self.values = tuple(1 << log for log in range(values.bit_length() - 1, last.bit_length()))
        if not self.values:
            raise ValueError("tunable: there is no value to choose")

    def __repr__(self):
        return f"tunable({list(self.values)})"


Choice = namedtuple("Choice", "name values")
Choice.__doc__ = "A name and its values, in an order in which neighbours are alike."


class Space:
    """All combinations of values of choices. A point is a dict from names to values.

    :param along: a choice that wants to be larger where others are.
    """

    def __init__(self, choices, along=None):
        self.choices = [Choice(name, tuple(values)) for name, values in choices]
        self.along = along

    def __len__(self):
        return math.prod(len(choice.values) for choice in self.choices)

    def points(self, seed=0):
        """Every point, or LARGEST of them at random."""
        names = [choice.name for choice in self.choices]
        size = len(self)
        if size <= LARGEST:
            every = itertools.product(*(choice.values for choice in self.choices))
            return [dict(zip(names, values, strict=True)) for values in every]
        return [self._point(number) for number in _random(seed).sample(range(size), LARGEST)]

    def _point(self, number):
        point = {}
        for choice in self.choices:
            number, index = divmod(number, len(choice.values))
            point[choice.name] = choice.values[index]
        return point

    def neighbours(self, point):
        """The points that differ by one step of one choice, and of the choice `along` in the same direction."""
        for name, _ in self.choices:
            for step in (-1, 1):
                yield from (near := self._step(point, name, step))
                if name != self.along:
                    for other in near:
                        yield from self._step(other, self.along, step)

    def others(self, point, name):
        """The points that have another value of one choice."""
        values = next((choice.values for choice in self.choices if choice.name == name), ())
        return [{**point, name: value} for value in values if value != point.get(name)]

    def _step(self, point, name, step):
        """The point so many values further in one choice, in a list; nothing if there is none."""
        values = next((choice.values for choice in self.choices if choice.name == name), ())
        place = values.index(point[name]) + step if point.get(name) in values else -1
        return [{**point, name: values[place]}] if 0 <= place < len(values) else []


def _random(seed):
    from random import Random  # whose import takes a tenth of this package's

    return Random(seed)


def budget_of(count):
    """Points to time of so many: all of up to SMALL, and of more a few for each time that they double."""
    return SMALL + (math.ceil(OF_DOUBLED * math.log2(count / UNTIL)) if count > UNTIL else 0)


def rounds_of(count, cores):
    """Rounds of compiling that take about a tenth of the time of compiling so many points; one at least."""
    return math.ceil(count * TENTH / max(cores, SMALL))


class Bench:
    """What a search asks for times; this one gets them from a function of a point and of how long to measure it, as a
    fraction of in full, one after the other. Another may make points ready while others are timed."""

    def __init__(self, time):
        self.time, self._started = time, deque()

    @property
    def count(self):
        """Points that were started and not taken yet."""
        return len(self._started)

    def start(self, points):
        """The most promising first; none twice."""
        self._started.extend(points)

    def has_ready(self):
        """Whether there is one that is taken without waiting for it."""
        return bool(self._started)

    def waits(self):
        """Until one is ready; or false, when that takes too long."""
        return True

    def take(self, share):
        """A point, of those that are ready the first, and its time; infinity if it does not work."""
        point = self._started.popleft()
        return point, self.time(point, share)


class _Times:
    """What a search knows of points: for each by its text that, its milliseconds and how often it was timed."""

    def __init__(self, bench, guess):
        self.bench, self.guess, self.fastest = bench, guess, math.inf
        self.started, self._entries, self._under_way = set(), {}, {}

    def start(self, points):
        """Those that were not started before; a list of them."""
        fresh = {_text(point): point for point in points if _text(point) not in self.started}
        self.started.update(fresh)
        self._under_way.update(fresh)
        if fresh:
            self.bench.start(list(fresh.values()))
        return list(fresh.values())

    def take(self):
        point, milliseconds = self.bench.take(SHARES[0])
        del self._under_way[_text(point)]
        self._add(point, milliseconds, 0)

    def _add(self, point, milliseconds, level):
        self._entries.pop(_text(point), None)
        if milliseconds < math.inf:
            self._entries[_text(point)] = point, milliseconds, level
        self.fastest = min((known for _, known, _ in self._entries.values()), default=math.inf)

    def count_promising(self, part=0):
        """How many of the points under way may be the fastest: even if the guess is as wrong of them as it was of the
        one that it was most wrong of, such a part of those that were timed left aside."""
        if not self.guess or len(self._entries) < ENOUGH:
            return len(self._under_way)
        ratios = sorted(known / self.guess(point) for point, known, _ in self._entries.values())
        least = ratios[int(len(ratios) * part)]
        return sum(not self.guess(point) * least >= self.fastest * LEVEL for point in self._under_way.values())

    def near(self, factor, level=0):
        """Points whose times are at most so many times the least one, the fastest first."""
        found = [item for item in self._entries.values() if item[1] <= self.fastest * factor and item[2] >= level]
        return [point for point, *_ in sorted(found, key=lambda item: item[1])]

    def refine(self, points, level, share=None):
        """Time the first of these that was not timed so often for longer; whether there is one."""
        point = next((point for point in points if self._entries[_text(point)][2] < level), None)
        if point is not None:
            self._add(point, self.bench.time(point, share or SHARES[level]), level)
        return point is not None

    def best(self):
        """Of what was timed for longest."""
        level = max((level for *_, level in self._entries.values()), default=0)
        found = [(milliseconds, point) for point, milliseconds, known in self._entries.values() if known == level]
        milliseconds, point = min(found, key=lambda item: item[0], default=(math.inf, None))
        return point, milliseconds


def search(
    points, neighbours, bench, kind=None, budget=None, beside=tuple, is_slow=None, guess=None, rounds=math.inf,
    count=None,
):  # fmt: skip
    """The fastest point and its time, by timing a part of them.

    First the first of each kind from the front of the list; then neighbours of the best of these, the most promising
    first, and those of whatever is clearly faster, while the budget lasts. All are timed briefly, what comes near the
    best again for longer, and the few that are left at last in full. Rounds are few and large, since the points of one
    are made ready at the same time; each is timed once it is ready, and the next round begins when few are left. What
    has no prospects any more is not waited for.

    :param points: the most promising first.
    :param neighbours: function from a point to points like it, which need not be in the list.
    :param bench: a `Bench`.
    :param kind: function from a point to what it has in common with those that differ in what matters least.
    :param budget: points to time; by default as `budget_of` says.
    :param beside: function to the points that the first round has, too; it is asked while the others are made ready.
    :param is_slow: function from a point to whether the others of a round would wait for it to be compiled; such points
        have no part in the first round of many.
    :param guess: function from a point to how long it may take: of points that are alike by that the first round of
        many has the first, and others if there is room.
    :param rounds: how many there are at most, if any point works; of few points one more, for others near the best.
    :param count: how many points there are, if these are not all.
    """
    budget = budget_of(len(points)) if budget is None else budget
    care = max(1, min(rounds - 1, LONGEST))
    places = {_text(point): place for place, point in enumerate(points)}
    if (count or len(points)) <= min(budget, SMALL):
        fresh, rounds = points, rounds + 1  # what is near the best is none of them
    else:
        ready = [point for point in points if not (is_slow and is_slow(point))]
        fresh = _front(ready, kind or _text, guess or _text, budget * 2 // 5)
    times, before = _Times(bench, guess), math.inf
    fresh = times.start(fresh[:budget])
    fresh += times.start(beside())
    left = max(budget, len(fresh))
    while True:
        if fresh:
            left, rounds, few = left - len(fresh), rounds - 1, len(fresh) * FEW
            fresh = []
        if bench.has_ready():
            times.take()
        elif rounds > 0 and times.refine(times.near(NEAR[0])[:MOST], 1):
            continue  # it decides about the next round; the last one's are timed in full
        elif rounds > 0 and times.count_promising() <= few and times.fastest < before * GAIN:
            before = times.fastest
            found = {_text(point): point for each in times.near(LEVEL, 1) for point in neighbours(each)}
            found = [(places.get(text, 0), text, point) for text, point in found.items() if text not in times.started]
            fresh = times.start([point for *_, point in sorted(found, key=lambda item: item[:2])][:left])
        elif times.count_promising(0 if rounds > 0 else PART):
            if times.refine(times.near(NEAR[1])[:FINALISTS], 2):  # for which there is time
                continue
            if times.fastest < math.inf and not bench.waits():
                break
            times.take()
        elif times.fastest == math.inf and left > 0:
            fresh = times.start([point for point in points if _text(point) not in times.started][:left])
            if not fresh:
                break
        else:
            break
    for point in times.near(NEAR[1])[: FINALISTS + care - 1]:
        times.refine([point], 2 if care == 1 else 3, care * SHARES[2])
    return times.best()


def _front(points, kind, guess, count):
    """The first of each kind, of so many kinds that do not look alike, or of others if there are none."""
    firsts, unlike = {}, {}
    for point in points:
        firsts.setdefault(kind(point), point)
    for point in firsts.values():
        unlike.setdefault(guess(point), point)
    alike = [point for point in firsts.values() if unlike[guess(point)] is not point]
    return [*unlike.values(), *alike][: max(1, count)]


def _text(point):
    return repr(sorted(point.items(), key=str))
