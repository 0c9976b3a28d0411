"""Spaces of configurations, and searching them.

A kernel's own part of the space are parameters annotated with `tunable`; the compiler adds what it could do differently
(`num_warps`, `num_stages`, the choice points of its passes). A front end for another language needs three things of
this file: `tunable` for what a program declares, `Choice` and `Space` for what results, and `search`, which knows
neither kernels nor devices: it asks for times of points.
"""

import itertools
import math
from collections import namedtuple

SMALL = 20  # points that are all timed
UNTIL, OF_DOUBLED = 100, 4  # of more points than this, so many more are timed each time that they double
SHARES = 0.1, 0.25  # of how long a measurement takes in full
NEAR = 1.2, 1.06  # times the best time, behind each of these
MOST, FINALISTS = 4, 3  # points that are timed for longer, and in full
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


def search(
    points, neighbours, time, kind=None, budget=None, beside=(), is_slow=None, look=None, rounds=math.inf, count=None
):  # fmt: skip
    """The fastest point and its time, by timing a part of them.

    First the first of each kind from the front of the list; then neighbours of the best of these, the most promising
    first, and those of whatever is clearly faster, while the budget lasts. All are timed briefly, what comes near the
    best again for longer, and the few that are left at last in full. Rounds are few and large, since the points of one
    are compiled at the same time, and that takes as long as the slowest of them.

    :param points: the most promising first.
    :param neighbours: function from a point to points like it, which need not be in the list.
    :param time: function from a list of points, and how long to measure as a fraction of in full, to their times;
        infinity for one that does not work.
    :param kind: function from a point to what it has in common with those that differ in what matters least.
    :param budget: points to time; by default as `budget_of` says.
    :param beside: points that the first round has, too.
    :param is_slow: function from a point to whether the others of a round would wait for it to be compiled; such points
        have no part in the first round of many.
    :param look: function from a point to what is known of it: of points that look alike the first round of many has
        the first, and others if there is room.
    :param rounds: how many there are at most, if any point works; of few points one more, for others near the best.
    :param count: how many points there are, if these are not all.
    """
    budget = budget_of(len(points)) if budget is None else budget
    places = {_text(point): place for place, point in enumerate(points)}
    if (count or len(points)) <= min(budget, SMALL):
        fresh, rounds = points, rounds + 1  # what is near the best is none of them
    else:
        ready = [point for point in points if not (is_slow and is_slow(point))]
        fresh = _front(ready, kind or _text, look or _text, budget * 2 // 5)
    fresh = list({_text(point): point for point in [*fresh[:budget], *beside]}.values())
    known, tried, left = {}, set(), max(budget, len(fresh))  # text to point and time, of those that came near the best
    best, fastest = None, math.inf
    while fresh:
        tried.update(map(_text, fresh))
        left, rounds = left - len(fresh), rounds - 1
        point, milliseconds = _sift(fresh, time, known, SHARES if rounds > 0 else SHARES[:1])
        has_gained = milliseconds < fastest * GAIN
        if best is None or milliseconds < fastest:
            best, fastest = point, milliseconds
        fresh = []
        if fastest == math.inf:
            fresh = [point for point in points if _text(point) not in tried][:left]
        elif has_gained and rounds > 0:
            near = [point for point, milliseconds in known.values() if milliseconds <= fastest * LEVEL] or [best]
            found = {_text(point): point for each in near for point in neighbours(each)}
            found = [(places.get(text, 0), text, point) for text, point in found.items() if text not in tried]
            fresh = [point for *_, point in sorted(found, key=lambda item: item[:2])][:left]
    last = sorted(known.values(), key=lambda item: item[1])[:FINALISTS]
    last = [point for point, milliseconds in last if milliseconds <= NEAR[-1] * last[0][1]] or [best]
    return min(zip(last, time(last, 1.0), strict=True), key=lambda item: item[1])


def _front(points, kind, look, count):
    """The first of each kind, of so many kinds that do not look alike, or of others if there are none."""
    firsts, unlike = {}, {}
    for point in points:
        firsts.setdefault(kind(point), point)
    for point in firsts.values():
        unlike.setdefault(look(point), point)
    alike = [point for point in firsts.values() if unlike[look(point)] is not point]
    return [*unlike.values(), *alike][: max(1, count)]


def _sift(points, time, known, shares):
    """Time the points briefly, and what comes near the best for longer; adds these to `known`. The best of them."""
    for share, near in zip(shares, NEAR, strict=False):
        times = time(points, share)
        limit = min([*times, *(milliseconds for _, milliseconds in known.values())]) * near
        order = sorted(range(len(points)), key=times.__getitem__)
        places = [place for place in order if times[place] <= limit][:MOST] or order[:1]
        points, times = [points[place] for place in places], [times[place] for place in places]
    for point, milliseconds in zip(points, times, strict=True):
        if milliseconds < math.inf:
            known[_text(point)] = point, milliseconds
    return points[0], times[0]


def _text(point):
    return repr(sorted(point.items(), key=str))
