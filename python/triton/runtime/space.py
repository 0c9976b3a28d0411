"""Spaces of configurations, and searching them.

A kernel's own part of the space are parameters annotated with `tunable`; the compiler adds what it could do differently
(`num_warps`, `num_stages`, the choice points of its passes). A front end for another language needs three things of
this file: `tunable` for what a program declares, `Choice` and `Space` for what results, and `search`, which knows
neither kernels nor devices: it asks for times of points.
"""

import itertools
import math
from collections import namedtuple

SMALL = 16  # points that are all timed
SHARE = 0.06  # of the points of larger spaces
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
    """All combinations of values of choices. A point is a dict from names to values."""

    def __init__(self, choices):
        self.choices = [Choice(name, tuple(values)) for name, values in choices]

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
        """The points that differ by one step of one choice."""
        for name, values in self.choices:
            if point[name] in values:
                place = values.index(point[name])
                for other in (place - 1, place + 1):
                    if 0 <= other < len(values):
                        yield {**point, name: values[other]}


def _random(seed):
    from random import Random  # whose import takes a tenth of this package's

    return Random(seed)


def search(points, neighbours, time, budget=None, seed=0):
    """The fastest point and its time, by timing a part of them.

    First the front of the list, with a few from the rest; of these the better half is timed longer, and again, until
    few are left (successive halving). Then its neighbours, and those of whatever is faster, while the budget lasts.

    :param points: the most promising first.
    :param neighbours: function from a point to points like it, which need not be in the list.
    :param time: function from a list of points, and how long to measure as a fraction of in full, to their times;
        infinity for one that does not work.
    :param budget: points to time; by default all of up to SMALL, and SHARE of more.
    :param seed: of what is random.
    """
    budget = max(SMALL, math.ceil(len(points) * SHARE)) if budget is None else budget
    front = list(points[: max(1, budget * 5 // 8)])
    chosen = _random(seed)
    if len(points) <= budget:
        front = list(points)
    elif budget > 8:
        front += chosen.sample(points[len(front) :], budget // 8)
    best, fastest = _halve(front, time)
    tried, left = {_text(point) for point in front}, budget - len(front)
    while left > 0:
        fresh = [point for point in neighbours(best) if _text(point) not in tried]
        if not fresh:
            break
        fresh = fresh if len(fresh) <= left else chosen.sample(fresh, left)
        tried.update(map(_text, fresh))
        left -= len(fresh)
        other, milliseconds = _halve(fresh, time)
        if milliseconds >= fastest:
            break
        best, fastest = other, milliseconds
    return best, fastest


def _halve(points, time):
    share = min(1.0, 4.0 / len(points))
    times = time(points, share)
    while share < 1 or len(points) > 3:
        order = sorted(range(len(points)), key=times.__getitem__)
        points = [points[i] for i in order[: max(2, len(points) // 2)]]
        if times[order[0]] == float("inf"):
            break
        if share == 1:
            times = [times[i] for i in order[: len(points)]]
        else:
            share = min(1.0, 2 * share)
            times = time(points, share)
        if len(points) <= 2 and share == 1:
            break
    best = min(range(len(points)), key=times.__getitem__)
    return points[best], times[best]


def _text(point):
    return repr(sorted(point.items(), key=str))
